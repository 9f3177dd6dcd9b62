"""Rules about log dirs, by release and mode: FACTS §1.5, §1.6, §2.2, and rows 146-164 of 10.6."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from layout import checkpoint, meta_properties
from logstore.scan import Denied
from reconciler.preflight import FULL_BELOW, SeenBroker, StartEffect, free_room, look_at_broker
from reconciler.preflight.log_dir_rules import GIVEN_BY_ROOT
from tests.reconciler.preflight.disks import (
    METADATA_LOG,
    ask,
    effects,
    identity,
    kraft_log_dir,
    log_dir,
    metadata_log,
    of_rule,
    replica,
    write_identity,
)
from tests.reconciler.preflight.scenarios import full, of_another_owner

STOPS, OFFLINE = StartEffect.STARTUP_ABORTS, StartEffect.LOG_DIR_OFFLINE


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    """A KRaft broker with two log dirs, in order."""
    return [kraft_log_dir(tmp_path / "1"), log_dir(tmp_path / "2", (), identity(number=2))]


def test_two_log_dirs_in_order_give_no_finding(pair: list[Path]) -> None:
    answer = ask(pair)
    assert (effects(answer, notes=True), answer.starts, answer.is_clean) == ([], True, True)


def test_a_zookeeper_broker_refuses_version_1_and_a_migrating_one_takes_it(pair: list[Path]) -> None:
    # 10.6 row 147
    assert effects(ask(pair, mode="zookeeper")) == [("identity", STOPS)] * 2
    assert effects(ask(pair, mode="migration")) == []


@pytest.mark.parametrize("changed", [{"node_id": 9}, {"cluster_id": "another"}])
def test_log_dirs_of_two_brokers_or_two_clusters_do_not_start(pair: list[Path], changed: dict[str, object]) -> None:
    # 10.6 rows 159, 164
    write_identity(pair[1], identity(number=2, **changed))
    (found,) = of_rule(ask(pair), "identity")
    assert (found.effect, found.place.log_dir) == (STOPS, str(pair[1]))


def test_a_directory_id_twice_stops_a_broker_since_3_7(pair: list[Path]) -> None:
    # FACTS §2.2: 3.6 ignores directory.id.
    write_identity(pair[1], identity(number=1))
    assert effects(ask(pair, "3.7.1")) == [("identity", STOPS)]
    assert effects(ask(pair, "3.6.2")) == []


def test_before_3_7_zookeepers_broker_asks_that_all_identities_are_the_same(tmp_path: Path) -> None:
    paths = [log_dir(tmp_path / name, (), identity(0, directory_id=None)) for name in "12"]
    assert effects(ask(paths, "2.8", "zookeeper")) == []
    for changed in (identity(0), identity(0, cluster_id=None, directory_id=None)):
        write_identity(paths[1], changed)
        for release, found in (("2.8", [("identity", STOPS)]), ("3.6.2", [("identity", STOPS)]), ("3.7", [])):
            assert effects(ask(paths, release, "zookeeper")) == found


def test_an_unformatted_log_dir_stops_kraft_and_is_written_to_by_zookeeper(tmp_path: Path) -> None:
    # 10.6 row 160; FACTS §1.5
    first, second = kraft_log_dir(tmp_path / "1"), tmp_path / "2"
    replica(tmp_path / "2" if second.mkdir() else second / "orders-0")
    assert effects(ask([first, second])) == [("not_formatted", STOPS)]
    write_identity(first, identity(0))
    assert effects(ask([first, second], mode="zookeeper")) == []


def test_where_no_log_dir_has_an_identity_the_disk_is_looked_at_and_not_a_file_that_is_not_there(
    tmp_path: Path,
) -> None:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
    both = [tmp_path / "1", tmp_path / "2"]
    assert {rule for rule, effect in effects(ask(both)) if effect is STOPS} == {"not_formatted"}
    (tmp_path / "1" / meta_properties.FILE_NAME).write_bytes(b"version=x")
    found = of_rule(ask(both), "not_formatted")
    assert {each.place.log_dir for each in found} == {str(tmp_path / "2")}
    (tmp_path / "2" / meta_properties.FILE_NAME).write_bytes(b"version=x")
    assert ("identity", STOPS) in effects(ask(both))


def test_an_empty_directory_without_identity_may_be_a_disk_that_is_not_mounted(tmp_path: Path) -> None:
    # FACTS §1.5: a ZooKeeper broker makes the directory and the file.
    first = log_dir(tmp_path / "1", (), identity(0))
    (tmp_path / "empty").mkdir()
    answer = ask([first, tmp_path / "empty", tmp_path / "absent"], mode="zookeeper")
    assert effects(answer) == [("absent_log_dir", StartEffect.CREATED_EMPTY)] * 2
    assert answer.starts and not answer.is_clean


def test_the_data_log_dir_may_be_offline_and_the_metadata_log_dir_may_not(tmp_path: Path) -> None:
    # 10.6 rows 161, 162
    good, broken = kraft_log_dir(tmp_path / "good"), tmp_path / "file"
    broken.write_bytes(b"")
    assert effects(ask([good, broken])) == [("unusable_log_dir", OFFLINE)]
    assert ask([good, broken]).starts
    answer = ask([broken, log_dir(tmp_path / "2", (), identity(number=2))])
    assert not answer.starts
    assert any("metadata log dir" in each.problem for each in of_rule(answer, "identity"))


def test_without_a_log_dir_online_the_broker_halts(tmp_path: Path) -> None:
    # FACTS §1.5
    path = log_dir(tmp_path / "1", (), identity(0))
    (path / checkpoint.CLEANER_CHECKPOINT).write_bytes(b"x")
    assert effects(ask(path, mode="zookeeper")) == [("no_log_dir_online", STOPS), ("damaged_checkpoint", OFFLINE)]


def test_a_log_dir_that_fails_is_not_loaded_so_nothing_in_it_counts(pair: list[Path]) -> None:
    (pair[1] / "lost+found").mkdir()
    (pair[1] / "meta.properties").write_bytes(b"version=9")
    assert effects(ask(pair)) == [("damaged_identity", OFFLINE)]


def test_an_unexpected_metadata_log_stops_kraft_alone(pair: list[Path]) -> None:
    # 10.6 row 163
    metadata_log(pair[1])
    assert effects(ask(pair)) == [("metadata_log_elsewhere", STOPS)]
    assert effects(ask(pair, mode="migration")) == []


def test_the_metadata_log_dir_may_lie_apart(tmp_path: Path) -> None:
    data = log_dir(tmp_path / "data", ["orders-0"])
    apart = metadata_log(log_dir(tmp_path / "metadata", (), identity(number=2))).parent
    (apart / "lost+found").mkdir()
    answer = ask(look_at_broker([str(data)], str(apart)))
    # Only log.dirs are scanned for partitions.
    assert effects(answer, notes=True) == []


@pytest.mark.parametrize(
    ("file", "data", "effect"),
    [
        # FACTS §1.6, §2.3: I/O errors take the disk offline; numbers are forgiven in two of the files.
        *((file, b"0\n1\nx\n", OFFLINE) for file in checkpoint.OFFSET_CHECKPOINTS),
        (checkpoint.RECOVERY_POINT_CHECKPOINT, b"0\n1\norders 0 x\n", StartEffect.NOTE),
        (checkpoint.LOG_START_CHECKPOINT, b"0\n-1\n", StartEffect.NOTE),
        (checkpoint.HIGH_WATERMARK_CHECKPOINT, b"0\n1\norders 0 x\n", StartEffect.NOT_SERVED),
        (checkpoint.CLEANER_CHECKPOINT, b"0\n-1\n", StartEffect.NOTE),
    ],
)
def test_a_damaged_checkpoint_is_as_grave_as_its_kind(
    pair: list[Path], file: str, data: bytes, effect: StartEffect
) -> None:
    (pair[1] / file).write_bytes(data)
    (found,) = of_rule(ask(pair), "damaged_checkpoint")
    assert (found.effect, found.place.name) == (effect, file)


@pytest.mark.parametrize("file", checkpoint.OFFSET_CHECKPOINTS)
def test_before_3_1_a_bad_number_in_a_checkpoint_takes_the_disk_offline(tmp_path: Path, file: str) -> None:
    path = log_dir(tmp_path / "1", (), identity(0))
    (log_dir(tmp_path / "2", (), identity(0)) / file).write_bytes(b"0\n1\norders 0 x\n")
    for release, is_offline in (("2.8", True), ("3.0.2", True), ("3.1", False)):
        (found,) = of_rule(ask([path, tmp_path / "2"], release, "zookeeper"), "damaged_checkpoint")
        assert (found.effect is OFFLINE) == is_offline


def test_before_3_7_an_identity_that_makes_no_sense_ends_the_startup(tmp_path: Path) -> None:
    paths = [log_dir(tmp_path / name, (), identity(0)) for name in "12"]
    (paths[1] / "meta.properties").write_bytes(b"version=9\n")
    for release, effect in (("2.8", STOPS), ("3.6.2", STOPS), ("3.7", OFFLINE)):
        assert effects(ask(paths, release, "zookeeper")) == [("damaged_identity", effect)]
    (paths[1] / "meta.properties").unlink()
    (paths[1] / "meta.properties").mkdir()
    assert effects(ask(paths, "2.8", "zookeeper")) == [("damaged_identity", OFFLINE)]


def test_empty_and_sound_checkpoints_and_our_own_files_are_nothing(pair: list[Path]) -> None:
    for name in checkpoint.OFFSET_CHECKPOINTS:
        (pair[0] / name).write_bytes(b"")
        (pair[1] / name).write_bytes(b"0\n1\norders 0 5\n")
    for name in (
        ".logstore_unclean",
        ".logstore_intent",
        ".logstore_repair.0123456789abcdef.json",
        "notes.txt",
        ".lock",
    ):
        (pair[1] / name).write_bytes(b"")
    (pair[1] / "recovery-point-offset-checkpoint.tmp").write_bytes(b"x")
    assert effects(ask(pair), notes=True) == []


def test_a_log_dir_of_ours_that_is_flat_is_a_brokers_log_dir(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-0"], identity(scheme="flat"))
    metadata_log(path)
    assert effects(ask(path), notes=True) == []


@pytest.mark.parametrize(
    ("scheme", "below", "rules"),
    [
        ("namespaced", "org/orders-0", ["foreign_name", "scheme_not_flat"]),
        # A namespace directory that is named like a partition dir is taken for one.
        ("namespaced", "org-1/orders-0", ["scheme_not_flat"]),
        ("by-topic-id", "00/000102030405060708090a0b0c0d0e0f_0", ["foreign_name", "scheme_not_flat"]),
    ],
)
def test_other_schemes_hide_replicas_from_a_broker(tmp_path: Path, scheme: str, below: str, rules: list[str]) -> None:
    path = log_dir(tmp_path / "1", (), identity(0, scheme=scheme))
    (path / below).parent.mkdir()
    (path / below).parent.joinpath(".logstore_tier").write_bytes(b"")
    replica(path / below)
    answer = ask(path, mode="zookeeper")
    assert [rule for rule, _ in effects(answer)] == rules
    assert of_rule(answer, "scheme_not_flat")[0].replicas == 1


def test_an_unclean_stop_is_only_a_note_and_only_where_replicas_lie(tmp_path: Path) -> None:
    path = kraft_log_dir(tmp_path / "1")
    (path / ".kafka_cleanshutdown").unlink()
    assert ask(path).is_clean and not of_rule(ask(path), "unclean_stop")
    replica(path / "orders-0")
    answer = ask(path)
    assert answer.is_clean and of_rule(answer, "unclean_stop")


def test_a_missing_metadata_log_is_a_note_in_kraft_alone(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1")
    (found,) = of_rule(ask(path), "no_metadata_log")
    assert (found.effect, found.place.name) == (StartEffect.NOTE, METADATA_LOG)
    assert not of_rule(ask(path, mode="zookeeper"), "no_metadata_log")


@pytest.mark.parametrize(
    ("release", "mode", "free", "effect", "words"),
    [
        ("2.8", "zookeeper", 0, StartEffect.STARTUP_ABORTS, "2.8.2 was seen not to start"),
        ("2.8", "zookeeper", 4096, StartEffect.UNKNOWN, "at the first write that finds no room"),
        ("3.9", "zookeeper", 0, StartEffect.UNKNOWN, "3.9.2 was seen to"),
        ("4.3", "kraft", 0, StartEffect.UNKNOWN, "where a stale replica had to be set aside"),
    ],
)
def test_a_full_disk_is_told_by_what_its_release_was_seen_to_do(
    tmp_path: Path, release: str, mode: str, free: int, effect: StartEffect, words: str
) -> None:
    version = 0 if mode == "zookeeper" else 1
    seen = full(log_dir(tmp_path, ["orders-0"], identity(version)), free)
    (found,) = of_rule(ask(seen, release, mode), "full_disk")
    assert (found.effect, words in found.problem) == (effect, True)
    roomy = full(tmp_path, FULL_BELOW)
    assert of_rule(ask(roomy, release, mode), "full_disk") == []


def test_the_room_on_a_disk_is_that_of_others_than_root(tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    room = free_room(str(tmp_path))
    assert room is not None and 0 <= room <= found.f_blocks * found.f_frsize
    assert free_room(str(tmp_path / "absent")) is None


@pytest.mark.parametrize(
    ("denied", "name", "effect", "problem"),
    [
        (Denied.READ, "orders-0", StartEffect.LOG_DIR_OFFLINE, "may not read 1 directory of it"),
        (Denied.CHANGE, "orders-0", StartEffect.UNKNOWN, "may not make files in 1 directory of it"),
        (Denied.READ, METADATA_LOG, StartEffect.STARTUP_ABORTS, "may not read it"),
        (Denied.CHANGE, METADATA_LOG, StartEffect.UNKNOWN, "may not make files in it"),
    ],
)
def test_a_directory_that_the_owner_of_the_log_dir_may_not_use_is_told_as_far_as_it_is_known(
    tmp_path: Path, denied: Denied, name: str, effect: StartEffect, problem: str
) -> None:
    (found,) = of_rule(ask(of_another_owner(tmp_path, denied, name)), "another_owner")
    assert found.effect is effect
    assert problem in found.problem and name in f"{found.problem} {found.place.name}"
    assert found.problem.endswith(f"; {GIVEN_BY_ROOT}")


@pytest.mark.parametrize(
    ("denied", "name", "top", "effect", "problem"),
    [
        (Denied.READ, "orders-0", {}, StartEffect.LOG_DIR_OFFLINE, "may not read files in 1 directory of it"),
        (Denied.CHANGE, "orders-0", {}, StartEffect.UNKNOWN, "may not write files in 1 directory of it"),
        (
            Denied.CHANGE,
            "orders-0",
            {Denied.CHANGE: ".lock"},
            StartEffect.UNKNOWN,
            "may not write files in it and in 1 directory of it, and a broker that runs as that user takes the log dir "
            "offline at the first file that it cannot open to write: .lock, orders-0/of-root",
        ),
        (Denied.READ, "", {Denied.READ: "of-root"}, StartEffect.LOG_DIR_OFFLINE, "may not read files in it"),
        (Denied.READ, METADATA_LOG, {}, StartEffect.STARTUP_ABORTS, "may not read it"),
        (Denied.CHANGE, METADATA_LOG, {}, StartEffect.UNKNOWN, "may not write it"),
    ],
)
def test_files_that_the_owner_of_the_log_dir_may_not_use_are_told_as_far_as_it_is_known(
    tmp_path: Path, denied: Denied, name: str, top: dict[Denied, str], effect: StartEffect, problem: str
) -> None:
    (only,) = of_another_owner(tmp_path, Denied.NOTHING).log_dirs
    directories = [
        replace(each, denied_files={denied: "of-root"}) if each.name == name else each for each in only.directories
    ]
    seen = SeenBroker.of([replace(only, directories=directories, denied_files=top)])
    (found,) = of_rule(ask(seen), "another_owner")
    assert found.effect is effect
    assert problem in found.problem
    assert "of-root" in f"{found.problem} {found.place.name}"
    assert found.problem.endswith(f"; {GIVEN_BY_ROOT}")
