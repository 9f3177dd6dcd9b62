"""Rules about files in partition dirs and in the metadata log: FACTS §1.9, §2.5, §2.8, §7.2."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.preflight import StartEffect
from tests.reconciler.preflight.disks import (
    HEX,
    METADATA_LOG,
    ask,
    effects,
    identity,
    kraft_log_dir,
    log_dir,
    of_rule,
)

STOPS, OFFLINE = StartEffect.STARTUP_ABORTS, StartEffect.LOG_DIR_OFFLINE
LAYOUT_1 = b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}'


@pytest.fixture
def broker(tmp_path: Path) -> list[Path]:
    """Two log dirs; the replica is not in that of the metadata log."""
    return [kraft_log_dir(tmp_path / "1"), log_dir(tmp_path / "2", ["orders-0"], identity(number=2))]


@pytest.mark.parametrize("name", ["backup.log", "x.index", "1a.timeindex", ".txnindex", "old 0.log"])
def test_a_file_that_ends_like_a_segment_and_has_no_number_stops_a_broker(broker: list[Path], name: str) -> None:
    (broker[1] / "orders-0" / name).write_bytes(b"")
    (found,) = ask(broker).findings
    assert (found.rule, found.effect, found.place.name) == ("odd_file_name", STOPS, f"orders-0/{name}")


@pytest.mark.parametrize(
    "name", ["notes.txt", "0.log", "00000000000000000042.txnindex", "core", "x.checkpoint", "a.tmp2"]
)
def test_other_files_are_ignored(broker: list[Path], name: str) -> None:
    (broker[1] / "orders-0" / name).write_bytes(b"")
    assert effects(ask(broker), notes=True) == []


def test_directories_and_fifos_in_a_partition_dir_are_ignored(broker: list[Path]) -> None:
    import os

    (broker[1] / "orders-0" / "folder.log").mkdir()
    os.mkfifo(broker[1] / "orders-0" / "pipe.log")
    assert effects(ask(broker), notes=True) == []


@pytest.mark.parametrize("name", [f"orders-1.{HEX}-delete", f"orders-1.{HEX}-stray", f"orders-1.{HEX}-future"])
def test_files_count_in_every_directory_that_is_loaded(broker: list[Path], name: str) -> None:
    # FACTS §1.6: all of them are loaded before they are classified.
    (broker[1] / name).mkdir()
    (broker[1] / name / "backup.log").write_bytes(b"")
    assert of_rule(ask(broker), "odd_file_name")[0].effect is STOPS


@pytest.mark.parametrize(
    ("data", "effect"),
    [
        # FACTS §2.3: USERS pain 15
        *((bytes(30), OFFLINE), (b"0\n1\n1\n", OFFLINE), (b"0\n2\n0 0\n", OFFLINE), (b"1\n0\n", OFFLINE)),
        *((b"0\n1\nx 0\n", STOPS), (b"0\n-1\n", STOPS), (b"", None), (b"0\n1\n0 0\n", None)),
    ],
)
def test_a_damaged_leader_epoch_checkpoint_is_as_grave_as_its_kind(
    broker: list[Path], data: bytes, effect: StartEffect | None
) -> None:
    (broker[1] / "orders-0" / "leader-epoch-checkpoint").write_bytes(data)
    assert effects(ask(broker)) == ([] if effect is None else [("leader_epochs", effect)])


@pytest.mark.parametrize(("release", "effect"), [("3.0", STOPS), ("3.2.0", STOPS), ("3.2.1", OFFLINE)])
def test_before_3_2_1_damaged_leader_epochs_end_the_startup(tmp_path: Path, release: str, effect: StartEffect) -> None:
    # KAFKA-13773
    path = log_dir(tmp_path / "1", ["orders-0"], identity(0))
    other = log_dir(tmp_path / "2", (), identity(0))
    (path / "orders-0" / "leader-epoch-checkpoint").write_bytes(b"x")
    assert effects(ask([path, other], release, "zookeeper")) == [("leader_epochs", effect)]


def test_leftovers_are_one_note_for_each_directory(broker: list[Path]) -> None:
    for name in ("0.log.deleted", "1.log.deleted", "2.log.swap", "3.log.cleaned", "4.snapshot.deleted"):
        (broker[1] / "orders-0" / name).write_bytes(b"")
    answer = ask(broker)
    (found,) = answer.findings
    assert (found.rule, found.effect, answer.is_clean) == ("leftovers", StartEffect.NOTE, True)
    assert "3 .deleted" in found.problem and "1 .swap" in found.problem


@pytest.mark.parametrize(
    ("release", "mode", "stops"),
    [("3.7.1", "kraft", True), ("3.8", "kraft", False), ("3.7.1", "migration", True), ("3.9", "migration", False)],
)
def test_a_newer_quorum_state_stops_an_older_broker(broker: list[Path], release: str, mode: str, stops: bool) -> None:
    # FACTS §2.8
    (broker[0] / METADATA_LOG / "quorum-state").write_bytes(LAYOUT_1)
    assert effects(ask(broker, release, mode)) == [("quorum_state_too_new", STOPS)] * stops


@pytest.mark.parametrize(
    ("file", "data"),
    [
        *(("quorum-state", b""), ("quorum-state", b"[]"), ("quorum-state", b'{"data_version":2}')),
        *(("partition.metadata", b""), ("leader-epoch-checkpoint", b"x")),
        *(("bootstrap.checkpoint", b""), ("notes.log", b"")),
    ],
)
def test_whatever_fails_on_the_metadata_log_stops_a_broker(broker: list[Path], file: str, data: bytes) -> None:
    (broker[0] / METADATA_LOG / file).write_bytes(data)
    assert effects(ask(broker)) == [("metadata_log_damaged", STOPS)]


def test_a_metadata_log_that_nobody_reads_is_nothing(broker: list[Path]) -> None:
    (broker[0] / METADATA_LOG / "quorum-state").write_bytes(b"")
    for path, number in zip(broker, (1, 2), strict=True):
        (path / "meta.properties").write_bytes(
            f"version=0\nbroker.id=1\ndirectory.id=AAAAAAAAAE0AAAAAAAAA{number}Q".encode()
        )
    assert effects(ask(broker, "3.9", "zookeeper")) == []


def test_snapshots_must_reach_the_beginning_of_the_log(broker: list[Path]) -> None:
    # FACTS §7.2
    log = broker[0] / METADATA_LOG
    (log / "00000000000000000000.log").rename(log / "00000000000000000100.log")
    for name, stops in (
        ("00000000000000000099-0000000001.checkpoint", True),
        ("00000000000000000200-0000000001.checkpoint.part", True),
        ("00000000000000000200-0000000001.checkpoint.deleted", True),
        ("00000000000000000100-0000000001.checkpoint", False),
    ):
        (log / name).write_bytes(b"")
        assert effects(ask(broker)) == [("metadata_log_snapshot", STOPS)] * stops


def test_a_metadata_log_behind_a_link_is_not_judged(broker: list[Path], tmp_path: Path) -> None:
    (broker[0] / METADATA_LOG).rename(tmp_path / "elsewhere")
    (broker[0] / METADATA_LOG).symlink_to(tmp_path / "elsewhere")
    assert ("metadata_log_damaged", StartEffect.UNKNOWN) in effects(ask(broker))
