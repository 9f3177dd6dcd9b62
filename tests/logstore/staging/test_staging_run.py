from __future__ import annotations

import errno
import importlib
import json
import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from layout import partition_metadata
from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT
from layout.ids import TopicId
from layout.ours import LedgerEvent, StagedRecord
from layout.scheme import LEDGER_FILE, UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore import ChangeFailedError, ChangeRefusedError, OfflineLogDirError, UnsafePathError
from logstore.fs import TEMPORARY, Disk
from logstore.log_dir import FallbackRecords, LogDir
from logstore.staging import (
    Candidate,
    OnCommitted,
    Placement,
    Refused,
    list_staged,
    restore,
    stage,
)
from tests.logstore.engine import (
    HOUR_MS,
    NOW_MS,
    ORDERS,
    ORDERS_ID,
    OTHER_ID,
    DiskThat,
    HookedDisk,
    SwappingDisk,
    candidate,
    contents,
    contents_but_ledgers,
    fill,
    formatted,
    full_disk,
    ledger_entries,
    ledger_events,
    open_descriptors,
    picture,
    read_offsets,
    write_offsets,
)

stage_module = importlib.import_module("logstore.staging.run")
"""The module, whose name in the package is the function's."""


@pytest.fixture(params=["ours", "broker"])
def path(request: pytest.FixtureRequest, log_dir: Any, our_log_dir: Path) -> Path:
    """A log dir with one replica: once ours, once a real broker's."""
    found: Path = our_log_dir if request.param == "ours" else log_dir.path
    fill(found / "orders-0")
    return found


def staging_root_of(path: Path) -> Path:
    return path / "deleting" if (path / "deleting").exists() else Path(f"{path}.deleting")


def many(path: Path, number: int, topic: str = "t") -> list[Any]:
    made = []
    for partition in range(number):
        fill(path / f"{topic}-{partition}")
        made.append(candidate(f"{topic}-{partition}", TopicPartition(topic, partition)))
    return made


def test_a_staged_replica_is_whole_elsewhere_and_carries_its_way_back(path: Path) -> None:
    # KIP516-6
    before = contents(path / "orders-0")
    with LogDir.open(str(path)) as log_dir:
        outcome = stage(log_dir, [candidate()], NOW_MS)
    staged = staging_root_of(path) / f"{ORDERS_ID}_0"
    record = ledger_entries(staging_root_of(path))[staged.name].record
    assert record is not None
    assert (record.topic, record.partition, record.topic_id, record.path) == ("orders", 0, ORDERS_ID, "orders-0")
    assert (record.staged_ms, record.due_ms) == (NOW_MS, NOW_MS + 4 * HOUR_MS)
    assert (record.verdict, record.evidence) == ("STALE_ID", "the cluster has it under another ID")
    assert contents(staged) == before
    assert not (path / "orders-0").exists()
    assert not (path / UNCLEAN_FILE).exists()
    assert [item.name for item in outcome.staged] == [staged.name]
    assert outcome.refused == []


def test_of_a_long_evidence_the_beginning_is_kept(path: Path) -> None:
    long = Candidate("orders-0", ORDERS, ORDERS_ID, "STALE_ID", "because " * 1000, HOUR_MS)
    with LogDir.open(str(path)) as log_dir:
        (staged,) = stage(log_dir, [long], NOW_MS).staged
    assert staged.record is not None
    assert staged.record.evidence == ("because " * 1000)[:4096]


def test_a_name_of_which_the_fallback_folder_speaks_is_taken(our_log_dir: Path, tmp_path: Path) -> None:
    fill(our_log_dir / "orders-0")
    (tmp_path / "spare").mkdir()
    fallback, name = FallbackRecords(str(tmp_path / "spare")), f"{ORDERS_ID}_0"
    with LogDir.open(str(our_log_dir)) as log_dir:
        with fallback.ledger(log_dir.path, make=True) as elsewhere:
            assert elsewhere is not None
            elsewhere.stage({name: StagedRecord("orders", 0, ORDERS_ID, "orders-0", "STALE_ID", "", NOW_MS, NOW_MS)})
        (staged,) = stage(log_dir, [candidate()], NOW_MS, fallback=fallback).staged
    assert staged.name == f"{name}.2"


def test_a_name_that_only_the_disk_knows_is_taken_for_few_and_for_many(
    our_log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, many_from in enumerate((256, 1)):
        monkeypatch.setattr(stage_module, "LISTING_PAYS_FROM", many_from)
        fill(our_log_dir / f"orders-{number}")
        (our_log_dir / "deleting" / f"{ORDERS_ID}_{number}" / "inner").mkdir(parents=True)
        with LogDir.open(str(our_log_dir)) as log_dir:
            outcome = stage(log_dir, [candidate(f"orders-{number}", TopicPartition("orders", number))], NOW_MS)
        assert [each.name for each in outcome.staged] == [f"{ORDERS_ID}_{number}.2"]


def test_what_is_listed_afterwards_is_what_was_reported(path: Path) -> None:
    with LogDir.open(str(path)) as log_dir:
        outcome = stage(log_dir, [candidate()], NOW_MS)
        assert list_staged(log_dir) == outcome.staged


def test_each_one_is_reported_at_warn_with_the_time_of_its_deletion(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # KIP516-6
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, [candidate()], NOW_MS)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "orders-0 (topic ID UXyU9i5ARn6W00ON2taeWA) is staged as" in warnings[0]
    assert warnings[0].endswith(
        "because of STALE_ID, and may be purged from 2023-11-15 02:13:20 UTC on; 'logstore purge' does it"
    )
    (reported,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert (reported.name, reported.filename, reported.funcName) == (
        "logstore.staging.log_lines",
        "log_lines.py",
        "log_staged",
    )


@pytest.mark.parametrize("is_plain", [True, False])
def test_the_lines_of_a_batch_have_their_own_values_with_any_factory_of_log_records(
    path: Path, caplog: pytest.LogCaptureFixture, is_plain: bool
) -> None:
    made: list[object] = []

    def noted(*arguments: Any, **options: Any) -> logging.LogRecord:
        record = logging.LogRecord(*arguments, **options)
        made.append(record.args)
        return record

    logging.setLogRecordFactory(logging.LogRecord if is_plain else noted)  # a fixture puts the former one back
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, many(path, 6), NOW_MS)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage().split(": ")[1].split(" ")[0] for record in warnings] == [f"t-{n}" for n in range(6)]
    assert {(reported.name, reported.filename, reported.lineno) for reported in warnings} == {
        ("logstore.staging.log_lines", "log_lines.py", warnings[0].lineno)
    }
    assert is_plain or {record.args for record in warnings} <= set(made), "nobody's own records are passed by"


def test_nothing_is_reported_where_warnings_are_not_wanted(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "logstore.staging.log_lines")
    with LogDir.open(str(path)) as log_dir:
        assert stage(log_dir, [candidate()], NOW_MS).staged
    assert not caplog.records


def test_the_offsets_go_out_of_the_checkpoints_and_into_the_record(path: Path) -> None:
    write_offsets(path, {("orders", 0): 42, ("payments", 0): 7})
    write_offsets(path, {("orders", 0): 40}, HIGH_WATERMARK_CHECKPOINT)
    with LogDir.open(str(path)) as log_dir:
        outcome = stage(log_dir, [candidate()], NOW_MS)
        assert read_offsets(path) == {("payments", 0): 7}, "it is not left to the end of a long run"
    assert read_offsets(path, HIGH_WATERMARK_CHECKPOINT) == {}
    assert outcome.staged[0].record is not None
    assert set(outcome.staged[0].record.checkpoints.values()) == {42, 40}


def test_a_replica_without_a_topic_id_is_staged_under_the_zero_id(path: Path) -> None:
    fill(path / "old-3", None)
    with LogDir.open(str(path)) as log_dir:
        outcome = stage(log_dir, [candidate("old-3", TopicPartition("old", 3), None)], NOW_MS)
        assert [item.topic_id for item in list_staged(log_dir)] == [TopicId.ZERO]
    assert outcome.staged[0].name == "AAAAAAAAAAAAAAAAAAAAAA_3"


def test_a_replica_whose_metadata_is_damaged_is_staged_with_its_damage(path: Path) -> None:
    fill(path / "bad-0", b"version: x\n")
    with LogDir.open(str(path)) as log_dir:
        outcome = stage(log_dir, [candidate("bad-0", TopicPartition("bad", 0), None)], NOW_MS)
    staged = staging_root_of(path) / outcome.staged[0].name
    assert (staged / "partition.metadata").read_bytes() == b"version: x\n"


def test_the_second_and_third_of_a_name_get_a_number_and_nothing_is_merged(path: Path) -> None:
    with LogDir.open(str(path)) as log_dir:
        names = [stage(log_dir, [candidate()], NOW_MS).staged[0].name]
        for _ in range(2):
            fill(path / "orders-0")
            names.append(stage(log_dir, [candidate()], NOW_MS).staged[0].name)
        assert names == [f"{ORDERS_ID}_0", f"{ORDERS_ID}_0.2", f"{ORDERS_ID}_0.3"]
        assert len(list_staged(log_dir)) == 3


def test_two_replicas_of_one_call_never_get_one_name(path: Path) -> None:
    for topic in ("a", "b"):
        fill(path / f"{topic}-0", None)
    both = [candidate(f"{topic}-0", TopicPartition(topic, 0), None) for topic in ("a", "b")]
    with LogDir.open(str(path)) as log_dir:
        names = [item.name for item in stage(log_dir, both, NOW_MS).staged]
        listed = {item.name: item.partition for item in list_staged(log_dir)}
    assert names == ["AAAAAAAAAAAAAAAAAAAAAA_0", "AAAAAAAAAAAAAAAAAAAAAA_0.2"]
    assert [listed[name] for name in names] == [TopicPartition("a", 0), TopicPartition("b", 0)]


@pytest.mark.parametrize("number", [1, 5, 130])
def test_however_many_there_are_two_syncs_serve_them_all(path: Path, number: int) -> None:
    candidates, disk = many(path, number), DiskThat()
    with LogDir.open(str(path), disk=disk) as log_dir:
        stage(log_dir, [candidate()], NOW_MS)  # the mark, the staging root and its ledger are made
        disk.calls.clear()
        outcome = stage(log_dir, candidates, NOW_MS)
        assert disk.calls["sync"] == 4, "the way to the staging root, its ledger, and the two directories"
        assert (disk.calls["rename"], disk.calls.get("create", 0)) == (number, 0)
        assert len(outcome.staged) == number
        listed = [item for item in list_staged(log_dir) if item.partition != ORDERS]
    assert [item.problem for item in listed] == [None] * number
    assert {item.partition for item in listed} == {each.partition for each in candidates}


def test_long_names_and_long_evidence_never_make_a_record_that_its_reader_refuses(our_log_dir: Path) -> None:
    topic = "o" * 249
    candidates = [
        Candidate(each.path, each.partition, each.topic_id, each.verdict, "\u20ac" * 100_000, each.delay_ms)
        for each in many(our_log_dir, 70, topic)
    ]
    with LogDir.open(str(our_log_dir)) as log_dir:
        assert len(stage(log_dir, candidates, NOW_MS).staged) == 70
        assert [item.problem for item in list_staged(log_dir) if item.problem] == []


def test_a_topic_of_249_characters_is_staged_in_place_under_a_name_that_was_cut(log_dir: Any) -> None:
    topic = "o" * 249
    fill(log_dir.path / f"{topic}-0")
    with LogDir.open(str(log_dir)) as opened:
        partition = TopicPartition(topic, 0)
        outcome = stage(opened, [candidate(f"{topic}-0", partition)], NOW_MS, placement=Placement.IN_PLACE)
        listed = list_staged(opened)
    assert len(outcome.staged[0].name) == 255
    assert [item.partition for item in listed] == [partition], "the record knows what the name cannot hold"


def test_a_placement_can_be_chosen_by_hand(log_dir: Any) -> None:
    fill(log_dir.path / "orders-0")
    with LogDir.open(str(log_dir)) as opened:
        outcome = stage(opened, [candidate()], NOW_MS, placement=Placement.IN_PLACE)
        assert outcome.staged[0].location == outcome.staged[0].name
        assert list_staged(opened) == outcome.staged
    assert not Path(f"{log_dir.path}.deleting").exists()


@pytest.mark.parametrize(
    ("ours", "placement"), [(True, Placement.SIBLING), (True, Placement.IN_PLACE), (False, Placement.INSIDE)]
)
def test_a_place_that_nobody_would_look_into_is_refused(
    log_dir: Any, our_log_dir: Path, ours: bool, placement: Placement
) -> None:
    path = our_log_dir if ours else log_dir.path
    fill(path / "orders-0")
    with LogDir.open(str(path)) as opened, pytest.raises(ChangeRefusedError, match=f"nothing is staged {placement}"):
        stage(opened, [candidate()], NOW_MS, placement=placement)
    assert (path / "orders-0").is_dir()


def change_its_id(replica: Path) -> None:
    (replica / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}")


def take_its_metadata_away(replica: Path) -> None:
    (replica / "partition.metadata").unlink()


def remove(replica: Path) -> None:
    subprocess.run(["rm", "-r", str(replica)], check=True)


def make_it_a_file(replica: Path) -> None:
    remove(replica)
    replica.write_text("x")


def make_it_a_link(replica: Path) -> None:
    replica.rename(replica.parent.parent / "elsewhere")
    replica.symlink_to(replica.parent.parent / "elsewhere")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (change_its_id, f"its topic ID is {OTHER_ID}, and {ORDERS_ID} was expected"),
        (take_its_metadata_away, f"its topic ID is not readable, and {ORDERS_ID} was expected"),
        (remove, "it is gone"),
        (make_it_a_file, "it is no directory"),
        (make_it_a_link, "is a symbolic link, which is never followed"),
    ],
)
def test_a_replica_that_has_changed_since_is_left_and_the_others_go_on(path: Path, change: Any, reason: str) -> None:
    others = many(path, 6)
    change(path / "orders-0")
    with LogDir.open(str(path)) as log_dir:
        outcome = stage(log_dir, [others[0], candidate(), *others[1:]], NOW_MS)
    assert len(outcome.staged) == 6
    assert [refused.candidate for refused in outcome.refused] == [candidate()]
    assert outcome.refused[0].reason.startswith("orders-0 was left where it is: ")
    assert reason in outcome.refused[0].reason
    assert ledger_entries(staging_root_of(path)).keys() == {item.name for item in outcome.staged}


def test_another_directory_under_the_same_name_is_noticed_by_its_inode(path: Path) -> None:
    inode = (path / "orders-0").stat().st_ino
    with LogDir.open(str(path)) as log_dir:
        assert "is another directory" in stage(log_dir, [candidate(inode=inode + 1)], NOW_MS).refused[0].reason
        assert len(stage(log_dir, [candidate(inode=inode)], NOW_MS).staged) == 1


@pytest.mark.parametrize(
    "bad",
    [
        candidate("../orders-0"),
        candidate("/orders-0"),
        candidate("orders-0/.."),
        candidate(""),
        candidate("orders-0", TopicPartition("payments", 0)),
        candidate("orders-0", TopicPartition("orders", 1)),
        candidate("orders-0", delay_ms=-1),
        candidate("orders-0", delay_ms=1 << 64),
    ],
)
def test_a_candidate_that_could_never_come_back_as_what_it_was_is_refused(log_dir: Any, bad: Any) -> None:
    fill(log_dir.path / "orders-0")
    before = picture(log_dir.path.parent)
    with LogDir.open(str(log_dir)) as opened:
        outcome = stage(opened, [bad], NOW_MS, placement=Placement.IN_PLACE)
        assert outcome.staged == []
        assert len(outcome.refused) == 1
    after = picture(log_dir.path.parent)
    assert {name for name in before if before[name] != after.get(name)} <= {"data", "."}


@pytest.mark.parametrize("topic", ["two words", "ümlaut", "\udcff", "line\nend"])
def test_names_that_no_client_could_create_are_staged_and_come_back(log_dir: Any, topic: str) -> None:
    fill(log_dir.path / f"{topic}-0")
    with LogDir.open(str(log_dir)) as opened:
        outcome = stage(opened, [candidate(f"{topic}-0", TopicPartition(topic, 0))], NOW_MS)
        assert [item.partition for item in list_staged(opened)] == [TopicPartition(topic, 0)]
    assert outcome.refused == []


def test_a_clock_before_1970_stages_nothing(path: Path) -> None:
    with LogDir.open(str(path)) as log_dir:
        assert "staged_ms" in stage(log_dir, [candidate()], -1).refused[0].reason
    assert (path / "orders-0").is_dir()


def test_nothing_to_stage_is_no_error(path: Path) -> None:
    with LogDir.open(str(path)) as log_dir:
        outcome = stage(log_dir, [], NOW_MS)
    assert (outcome.staged, outcome.refused) == ([], [])


# A full disk


def test_a_full_disk_stages_nothing_without_a_folder_for_records(path: Path) -> None:
    candidates = [candidate(), *many(path, 6)]
    before = contents(path)
    disk = full_disk()
    with (
        LogDir.open(str(path), disk=disk) as log_dir,
        pytest.raises(ChangeFailedError, match=r"No space left.*nothing"),
    ):
        stage(log_dir, candidates, NOW_MS)
    assert contents(path) == before


def test_a_full_disk_is_staged_with_the_records_in_another_place(path: Path, tmp_path: Path) -> None:
    candidates = [candidate(), *many(path, 6)]
    fallback = FallbackRecords(str(tmp_path / "spare"))
    (tmp_path / "spare").mkdir()
    with LogDir.open(str(path), disk=full_disk()) as log_dir:
        outcome = stage(log_dir, candidates, NOW_MS, fallback=fallback)
        assert len(outcome.staged) == 7
        listed = list_staged(log_dir, fallback)
        assert {item.partition for item in listed} == {each.partition for each in candidates}
        assert [item.problem for item in listed if item.problem] == []
        without = list_staged(log_dir)
    assert all(item.record is None for item in without)


def test_replicas_without_an_id_do_not_share_a_record_on_a_full_disk(path: Path, tmp_path: Path) -> None:
    for topic in ("a", "b"):
        (path / f"{topic}-0").mkdir()
    both = [candidate(f"{topic}-0", TopicPartition(topic, 0), None) for topic in ("a", "b")]
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(path), disk=full_disk()) as log_dir:
        assert len(stage(log_dir, both, NOW_MS, fallback=fallback).staged) == 2
        assert {item.partition for item in list_staged(log_dir, fallback)} == {each.partition for each in both}


def test_no_room_for_the_sibling_stages_in_place(log_dir: Any, tmp_path: Path) -> None:
    fill(log_dir.path / "orders-0")
    disk = DiskThat(errno.ENOSPC, {"mkdir"})
    with LogDir.open(str(log_dir), disk=disk) as opened:
        outcome = stage(opened, [candidate()], NOW_MS)
        assert outcome.staged[0].placement is Placement.IN_PLACE
        assert list_staged(opened) == outcome.staged


@pytest.mark.parametrize("kind", ["missing", "file", "link", "full"])
def test_a_folder_for_records_that_is_no_use_stages_nothing_and_blames_the_right_disk(
    path: Path, tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / "spare"
    fallback = FallbackRecords(str(folder), full_disk() if kind == "full" else DiskThat(errno.EIO, {"mkdir"}))
    if kind == "file":
        folder.write_text("x")
    elif kind == "link":
        folder.symlink_to("nowhere")
    elif kind == "full":
        folder.mkdir()
    before = contents(path)
    with LogDir.open(str(path), disk=full_disk()) as log_dir:
        with pytest.raises(ChangeFailedError, match="No space left"):
            stage(log_dir, [candidate()], NOW_MS, fallback=fallback)
        assert log_dir.offline is None
    assert contents(path) == before


class RoomForNames(Disk):
    """Has room for so many names of replicas in the staging root."""

    def __init__(self, names: int) -> None:
        self.left = names

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        if name.startswith("t-"):
            if not self.left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.left -= 1
        super().rename(source, name, target, new_name)


@pytest.mark.parametrize("number", [4, 7])
@pytest.mark.parametrize("room", [1, 3])
def test_a_staging_root_with_room_for_some_names_takes_those_and_the_others_stay(
    path: Path, number: int, room: int
) -> None:
    candidates = many(path, number)
    write_offsets(path, {("t", each): each for each in range(number)})
    before = contents(path / f"t-{room}")
    with LogDir.open(str(path), disk=RoomForNames(room)) as log_dir:
        outcome = stage(log_dir, candidates, NOW_MS, partly=True)
        assert [item.partition for item in outcome.staged] == [each.partition for each in candidates[:room]]
        assert [refused.candidate for refused in outcome.refused] == candidates[room:]
        root = staging_root_of(path)
        reported = f"t-{room} was left where it is: {root} has no room for one more name (No space left on device)"
        assert outcome.refused[0] == Refused(candidates[room], reported)
        assert list_staged(log_dir) == outcome.staged
    said = ledger_events(root)
    assert [said[f"{ORDERS_ID}_{each}"] for each in range(number)] == [
        LedgerEvent.STAGED if each < room else LedgerEvent.RESTORED for each in range(number)
    ]
    assert contents(path / f"t-{room}") == before
    assert read_offsets(path) == {("t", each): each for each in range(room, number)}


@pytest.mark.parametrize(("partly", "room"), [(True, 0), (False, 3)])
def test_no_room_for_the_first_name_or_for_one_that_must_not_stay_alone_is_an_error(
    path: Path, partly: bool, room: int
) -> None:
    candidates = many(path, 7)
    before = contents_but_ledgers(path)
    with LogDir.open(str(path), disk=RoomForNames(room)) as log_dir:
        with pytest.raises(ChangeFailedError, match="t-0 and 6 more cannot be staged: No space left"):
            stage(log_dir, candidates, NOW_MS, partly=partly)
        assert list_staged(log_dir) == []
    assert contents_but_ledgers(path) == before


# Failures on the way


@pytest.mark.parametrize("number", [1, 7])
@pytest.mark.parametrize("method", ["create", "write", "sync", "rename"])
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_what_the_system_refuses_on_the_way_is_undone(path: Path, method: str, after: int, number: int) -> None:
    candidates = many(path, number)
    disk = DiskThat(errno.EACCES)
    log_dir = LogDir.open(str(path), disk=disk)
    with log_dir.changing("the mark is there beforehand"):
        before = contents_but_ledgers(path)
    disk.fails, disk.after = {method}, after
    try:
        stage(log_dir, candidates, NOW_MS)
    except ChangeFailedError:
        disk.fails = set()
        assert contents_but_ledgers(path) == before
        assert list_staged(log_dir) == []
        assert len(stage(log_dir, candidates, NOW_MS).staged) == number, "the next one finds nothing in its way"
    except OfflineLogDirError as error:
        assert method in ("sync", "rename"), f"only what hits the undoing too may take it offline: {error}"
    log_dir.abandon()


@pytest.mark.parametrize("method", ["create", "write", "sync", "rename"])
def test_a_disk_that_fails_takes_the_log_dir_offline_and_loses_nothing(path: Path, method: str) -> None:
    disk = DiskThat(errno.EIO)
    with LogDir.open(str(path), disk=disk) as log_dir:
        disk.fails = {method}
        with pytest.raises(OfflineLogDirError):
            stage(log_dir, [candidate()], NOW_MS)
        with pytest.raises(OfflineLogDirError):
            stage(log_dir, [candidate()], NOW_MS)
    staged = staging_root_of(path)
    there = [(path / "orders-0").is_dir(), staged.is_dir() and (staged / f"{ORDERS_ID}_0").is_dir()]
    assert there.count(True) == 1


@pytest.mark.parametrize(
    ("topic_id", "offsets", "kept"),
    [
        (ORDERS_ID, {}, {"recovery-point-offset-checkpoint": 42}),
        (ORDERS_ID, {("orders", 0): 50}, {"recovery-point-offset-checkpoint": 50}),
        (OTHER_ID, {}, {}),
    ],
)
def test_what_a_crash_made_live_again_keeps_the_offsets_that_only_its_line_holds(
    path: Path, topic_id: TopicId, offsets: dict[tuple[str, int], int], kept: dict[str, int]
) -> None:
    write_offsets(path, {("orders", 0): 42})
    with LogDir.open(str(path)) as log_dir:
        (first,) = stage(log_dir, [candidate()], NOW_MS).staged
    root = staging_root_of(path)
    (root / first.name).rename(path / "orders-0")
    (path / UNCLEAN_FILE).touch()
    write_offsets(path, offsets)
    (path / "orders-0" / "partition.metadata").write_bytes(partition_metadata.encode(topic_id))
    with LogDir.open(str(path)) as log_dir:
        (second,) = stage(log_dir, [candidate(topic_id=topic_id)], NOW_MS).staged
    record = ledger_entries(root)[second.name].record
    assert record is not None
    assert record.checkpoints == kept


def test_what_is_undone_is_durable_before_the_ledger_says_so(path: Path) -> None:
    class Refusing(Noted):
        """Refuses the fourth replica."""

        def write(self, descriptor: int, data: bytes) -> None:
            self.steps += ["restored"] * (b'["restored"' in data)
            super().write(descriptor, data)

        def rename(self, source: int, name: str, target: int, new_name: str) -> None:
            if name == "t-3":
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            super().rename(source, name, target, new_name)

    disk, candidates = Refusing(), many(path, 5)
    with LogDir.open(str(path), disk=disk) as log_dir, pytest.raises(ChangeFailedError):
        stage(log_dir, candidates, NOW_MS)
    last = max(number for number, step in enumerate(disk.steps) if step.startswith(f"rename {ORDERS_ID}_"))
    after = disk.steps[last : disk.steps.index("restored")]
    assert {f"synced {path.name}", f"synced {staging_root_of(path).name}"} <= set(after)


def test_an_interrupt_is_undone_and_leaves_the_mark(path: Path) -> None:
    class Interrupting(Disk):
        """Is interrupted at the third replica."""

        def rename(self, source: int, name: str, target: int, new_name: str) -> None:
            if name == "t-2":
                raise KeyboardInterrupt
            super().rename(source, name, target, new_name)

    candidates = many(path, 6)
    before = contents_but_ledgers(path)
    with LogDir.open(str(path), disk=Interrupting()) as log_dir, pytest.raises(KeyboardInterrupt):
        stage(log_dir, candidates, NOW_MS)
    assert (path / UNCLEAN_FILE).exists()
    assert contents_but_ledgers(path) == before
    assert set(ledger_events(staging_root_of(path)).values()) == {LedgerEvent.RESTORED}


def test_a_replica_that_is_swapped_before_its_rename_is_noticed_and_both_stay(path: Path) -> None:
    def swap() -> None:
        (path / "orders-0").rename(path.parent / "elsewhere")
        fill(path / "orders-0")

    disk = SwappingDisk("orders-0", swap, "rename")
    with LogDir.open(str(path), disk=disk) as log_dir:
        with pytest.raises(UnsafePathError, match="is not the directory that was looked at before"):
            stage(log_dir, [candidate()], NOW_MS)
        assert list_staged(log_dir) == []
    assert (path / "orders-0").is_dir()
    assert (path.parent / "elsewhere").is_dir()


@pytest.fixture
def mounted_inside(our_log_dir: Path) -> Iterator[Path]:
    fill(our_log_dir / "orders-0")
    subprocess.run(["mount", "--bind", str(our_log_dir / "orders-0"), str(our_log_dir / "orders-0")], check=True)
    yield our_log_dir
    subprocess.run(["umount", str(our_log_dir / "orders-0")], check=True)


@pytest.mark.root
def test_a_replica_that_is_a_mount_point_is_left_and_the_others_go_on(mounted_inside: Path) -> None:
    others = many(mounted_inside, 2)
    with LogDir.open(str(mounted_inside)) as log_dir:
        outcome = stage(log_dir, [candidate(), *others], NOW_MS)
    assert len(outcome.staged) == 2
    assert "is mounted at" in outcome.refused[0].reason


def test_a_staging_root_that_is_a_link_stages_nothing(our_log_dir: Path, tmp_path: Path) -> None:
    fill(our_log_dir / "orders-0")
    (our_log_dir / "deleting").rmdir()
    (tmp_path / "elsewhere").mkdir()
    (our_log_dir / "deleting").symlink_to(tmp_path / "elsewhere")
    with LogDir.open(str(our_log_dir)) as log_dir, pytest.raises(UnsafePathError):
        stage(log_dir, [candidate()], NOW_MS)
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("scheme", ["namespaced", "by-topic-id"])
def test_replicas_of_the_other_schemes_are_staged_from_where_they_lie(tmp_path: Path, scheme: str) -> None:
    # KIP37-2, KIP516-12
    path = formatted(tmp_path / "ours", scheme=scheme)
    where = "org/apache/orders-0" if scheme == "namespaced" else f"{ORDERS_ID.hex[:2]}/{ORDERS_ID.hex}_0"
    partition = TopicPartition("org:apache:orders", 0) if scheme == "namespaced" else ORDERS
    fill(path / where)
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, [candidate(where, partition)], NOW_MS)
        staged = list_staged(log_dir)
    assert [(item.location, item.partition) for item in staged] == [(f"deleting/{ORDERS_ID}_0", partition)]


def test_no_descriptor_is_left_behind_whatever_happens(path: Path, tmp_path: Path) -> None:
    before = open_descriptors()
    disk = DiskThat(errno.ENOSPC)
    with LogDir.open(str(path), disk=disk) as log_dir:
        stage(log_dir, [candidate(), candidate("gone-0", TopicPartition("gone", 0)), *many(path, 70)], NOW_MS)
        fill(path / "orders-0")
        disk.fails = {"write"}
        with pytest.raises(ChangeFailedError):
            stage(log_dir, [candidate()], NOW_MS)
        disk.number = errno.EIO
        with pytest.raises(OfflineLogDirError):
            stage(log_dir, [candidate()], NOW_MS)
    assert open_descriptors() == before


# The ledger


def ledger_of(path: Path) -> Path:
    return staging_root_of(path) / LEDGER_FILE


def test_a_name_that_was_used_is_not_used_again_before_all_in_the_ledger_is_over(path: Path) -> None:
    with LogDir.open(str(path)) as log_dir:
        first = stage(log_dir, [candidate()], NOW_MS).staged[0]
        restore(log_dir, first)
        second = stage(log_dir, [candidate()], NOW_MS).staged[0]
        assert (first.name, second.name) == (f"{ORDERS_ID}_0", f"{ORDERS_ID}_0.2")
        restore(log_dir, second)
    with LogDir.open(str(path)) as log_dir:
        assert stage(log_dir, [candidate()], NOW_MS).staged[0].name == f"{ORDERS_ID}_0"


def test_many_do_not_get_a_name_of_which_a_line_speaks_either(path: Path) -> None:
    candidates = many(path, stage_module.LISTING_PAYS_FROM)
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, [candidate()], NOW_MS)
        restore(log_dir, stage(log_dir, candidates[5:6], NOW_MS).staged[0])
        names = [item.name for item in stage(log_dir, candidates, NOW_MS).staged]
        assert [item.problem for item in list_staged(log_dir) if item.problem] == []
    assert names[:6] == [f"{ORDERS_ID}_0.2", *(f"{ORDERS_ID}_{number}" for number in range(1, 5)), f"{ORDERS_ID}_5.2"]
    assert len({*names}) == len(candidates)


def test_where_a_line_is_damaged_staging_goes_on_behind_it(path: Path) -> None:
    others = many(path, 2)
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, [candidate()], NOW_MS)
        stage(log_dir, others[:1], NOW_MS)
    data = ledger_of(path).read_bytes()
    ledger_of(path).write_bytes(data.replace(b"orders", b"0rders", 1))
    with LogDir.open(str(path)) as log_dir:
        (new,) = stage(log_dir, others[1:], NOW_MS).staged
        found = {item.name: item for item in list_staged(log_dir)}
    assert [name for name, item in found.items() if item.problem is None] == sorted([f"{ORDERS_ID}_0.2", new.name])
    assert (found[f"{ORDERS_ID}_0"].record, found[new.name]) == (None, new)


def of_a_later_release(file: Path) -> None:
    text = b'["logstore-ledger",2]'
    file.write_bytes(b"%08x %b\n" % (crc32(text), text))


def a_link(file: Path) -> None:
    file.symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("make", "reason"),
    [(of_a_later_release, "schema version 1 only"), (a_link, "symbolic link"), (Path.mkdir, "a directory")],
)
def test_a_ledger_that_cannot_be_used_is_named_and_nothing_is_staged(
    path: Path, make: Callable[[Path], Any], reason: str
) -> None:
    root = path / "deleting" if (path / "deleting").exists() else Path(f"{path}.deleting")
    root.mkdir(exist_ok=True)
    make(root / LEDGER_FILE)
    before = contents(path.parent)
    with LogDir.open(str(path)) as log_dir:
        with pytest.raises(ChangeRefusedError, match=reason) as raised:
            stage(log_dir, [candidate()], NOW_MS)
        assert f"{root}/{LEDGER_FILE}" in str(raised.value)
        assert log_dir.offline is None
    assert contents(path.parent) == before


def test_on_a_full_disk_the_room_that_the_ledger_has_already_is_used(path: Path) -> None:
    others, disk = many(path, 6), full_disk()
    disk.fails = set()
    with LogDir.open(str(path), disk=disk) as log_dir:
        stage(log_dir, [candidate()], NOW_MS)
        disk.fails = {"write", "mkdir"}
        assert len(stage(log_dir, others, NOW_MS).staged) == 6
        assert [item.problem for item in list_staged(log_dir)] == [None] * 7


class RoomForLines(Disk):
    """Has room for so many staged lines in the ledger of a log dir, all in all."""

    def __init__(self, lines: int) -> None:
        self.left = lines

    def write(self, descriptor: int, data: bytes) -> None:
        lines = data.count(b'["staged"')
        if lines > self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left -= lines
        super().write(descriptor, data)


def test_lines_for_which_the_ledger_has_no_room_go_to_the_other_folder_under_names_of_their_own(
    path: Path, tmp_path: Path
) -> None:
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(path), disk=RoomForLines(1)) as log_dir:
        names = []
        for _ in range(3):
            names += [item.name for item in stage(log_dir, [candidate()], NOW_MS, fallback=fallback).staged]
            fill(path / "orders-0")
        assert names == [f"{ORDERS_ID}_0", f"{ORDERS_ID}_0.2", f"{ORDERS_ID}_0.3"]
        assert [item.problem for item in list_staged(log_dir, fallback)] == [None] * 3
        assert [item.name for item in list_staged(log_dir) if item.problem is None] == names[:1]
        for item in list_staged(log_dir, fallback)[1:]:
            (path / "orders-0").rename(tmp_path / item.name)
            restore(log_dir, item, fallback=fallback)
    assert list((tmp_path / "spare").rglob(LEDGER_FILE)) == [], "what is over is removed"


@pytest.mark.parametrize("room", [1, 3, 5])
def test_where_the_ledger_has_room_for_some_lines_as_many_are_staged_and_the_others_say_why_not(
    path: Path, room: int
) -> None:
    candidates = many(path, 7)
    with LogDir.open(str(path), disk=RoomForLines(room)) as log_dir:
        outcome = stage(log_dir, candidates, NOW_MS, partly=True)
        assert list_staged(log_dir) == outcome.staged
    assert [item.partition for item in outcome.staged] == [each.partition for each in candidates[:room]]
    assert [refused.candidate for refused in outcome.refused] == candidates[room:]
    for refused in outcome.refused:
        said = f"the ledger in {staging_root_of(path)} has no room for one more line"
        assert refused.reason == f"{refused.candidate.path} was left where it is: {said}"
        assert (path / refused.candidate.path).is_dir()


@pytest.mark.parametrize(("partly", "room", "who"), [(True, 0, "t-0"), (False, 6, "t-0 and 6 more")])
def test_no_room_for_the_first_line_or_for_one_that_must_not_stay_alone_is_an_error(
    path: Path, partly: bool, room: int, who: str
) -> None:
    candidates = many(path, 7)
    before = contents_but_ledgers(path)
    with LogDir.open(str(path), disk=RoomForLines(room)) as log_dir:
        with pytest.raises(ChangeFailedError, match=f"{who} cannot be staged: No space left"):
            stage(log_dir, candidates, NOW_MS, partly=partly)
        assert list_staged(log_dir) == []
    assert contents_but_ledgers(path) == before


# Batches


@pytest.fixture
def batches_of_five(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_module, "STAGING_BATCH_SIZE", 5)


class Noted(Disk):
    """Writes down what is done, in order."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def write(self, descriptor: int, data: bytes) -> None:
        for line in data.split(b"\n"):
            if b'["staged"' in line:
                self.steps.append(f"line {json.loads(line[9:])[1]}")
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        self.steps.append(f"synced {os.path.basename(os.readlink(f'/proc/self/fd/{descriptor}'))}")

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        self.steps.append(f"rename {name}")
        super().rename(source, name, target, new_name)


@pytest.mark.usefixtures("batches_of_five")
def test_no_replica_is_renamed_before_its_line_is_durable(path: Path) -> None:
    disk = Noted()
    with LogDir.open(str(path), disk=disk) as log_dir:
        stage(log_dir, many(path, 12), NOW_MS)
    for number in range(12):
        said, renamed = disk.steps.index(f"line {ORDERS_ID}_{number}"), disk.steps.index(f"rename t-{number}")
        assert f"synced {LEDGER_FILE}" in disk.steps[said:renamed]


@pytest.mark.usefixtures("batches_of_five")
def test_no_batch_is_reported_before_its_renames_are_durable(path: Path) -> None:
    disk = Noted()
    with LogDir.open(str(path), disk=disk) as log_dir:
        stage(log_dir, many(path, 12), NOW_MS, on_committed=lambda batch: disk.steps.extend(
            f"reported {item.partition}" for item in batch))  # fmt: skip
        root = os.path.basename(staging_root_of(path))
    for number in range(12):
        renamed, reported = disk.steps.index(f"rename t-{number}"), disk.steps.index(f"reported t-{number}")
        between = disk.steps[renamed:reported]
        assert f"synced {root}" in between
        assert f"synced {path.name}" in between[between.index(f"synced {root}") :], "nowhere is worse than twice"


@pytest.mark.usefixtures("batches_of_five")
def test_the_callback_is_called_for_each_batch_when_it_is_staged_for_good(path: Path) -> None:
    reported: list[int] = []
    with LogDir.open(str(path)) as log_dir:
        outcome = stage(log_dir, many(path, 12), NOW_MS, on_committed=lambda batch: reported.append(len(batch)))
        assert list_staged(log_dir) == sorted(outcome.staged, key=lambda staged: staged.location)
    assert reported == [5, 5, 2]


@pytest.mark.usefixtures("batches_of_five")
def test_a_batch_that_the_system_refuses_leaves_those_before_it_staged_and_its_own_live(path: Path) -> None:
    reported: list[Any] = []
    committed: OnCommitted = reported.extend
    candidates = many(path, 12)
    with LogDir.open(str(path), disk=RoomForLines(7)) as log_dir:
        with pytest.raises(ChangeFailedError, match="t-5 and 4 more cannot be staged: No space left"):
            stage(log_dir, candidates, NOW_MS, on_committed=committed)
        assert {item.partition for item in list_staged(log_dir)} == {TopicPartition("t", number) for number in range(5)}
    assert [item.partition for item in reported] == [TopicPartition("t", number) for number in range(5)]
    assert all((path / f"t-{number}").is_dir() for number in range(5, 12))


@pytest.mark.usefixtures("batches_of_five")
@pytest.mark.parametrize(
    ("method", "number", "first_live"),
    [
        *(("rename", 3, 0), ("rename", 8, 5)),
        *(("sync", number, 0) for number in (1, 2, 3, 4)),
        *(("sync", number, 5) for number in (5, 6, 7)),
    ],
)
def test_a_later_failure_is_undone_up_to_the_last_batch_that_was_reported(
    path: Path, method: str, number: int, first_live: int
) -> None:
    class FailsOnce(HookedDisk):
        left = 0

        def before(self, what: str, *_: Any) -> None:
            self.left -= what == method
            if what == method and self.left == 0:
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    reported: list[Any] = []
    candidates, disk = many(path, 12), FailsOnce()
    with LogDir.open(str(path), disk=disk) as log_dir:
        stage(log_dir, [candidate()], NOW_MS)  # the mark, the staging root and its ledger are made
        disk.left = number
        with pytest.raises(ChangeFailedError, match="cannot be staged: Permission denied"):
            stage(log_dir, candidates, NOW_MS, on_committed=reported.extend)
        listed = [item.partition for item in list_staged(log_dir) if item.partition not in (None, ORDERS)]
    assert (
        sorted(listed) == [item.partition for item in reported] == [each.partition for each in candidates[:first_live]]
    )
    assert all((path / each.path).is_dir() for each in candidates[first_live:])


@pytest.mark.usefixtures("batches_of_five")
def test_the_checkpoints_are_written_once_for_all_batches(path: Path) -> None:
    write_offsets(path, {("t", number): number for number in range(12)} | {("payments", 0): 7})
    disk = Noted()
    with LogDir.open(str(path), disk=disk) as log_dir:
        stage(log_dir, many(path, 12), NOW_MS)
    assert [step for step in disk.steps if step.startswith("rename") and "checkpoint" in step] == [
        f"rename recovery-point-offset-checkpoint{TEMPORARY}"
    ]
    assert read_offsets(path) == {("payments", 0): 7}


@pytest.mark.usefixtures("batches_of_five")
@pytest.mark.parametrize("number", [1, 4, 5, 9])
def test_a_replica_that_is_named_twice_is_staged_once(path: Path, number: int) -> None:
    candidates = many(path, number)
    with LogDir.open(str(path)) as log_dir:
        outcome = stage(log_dir, [*candidates, candidates[0]], NOW_MS)
        assert [item.problem for item in list_staged(log_dir)] == [None] * number
    assert len(outcome.staged) == number
    assert [refused.reason for refused in outcome.refused] == ["t-0 was left where it is: it was named before"]
