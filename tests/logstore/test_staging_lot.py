"""One lot of replicas: what each of its steps leaves on the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from layout import partition_metadata, staged_record
from layout.ids import TopicId
from layout.partition_metadata import encode_json
from layout.staged_record import StagedRecord
from layout.topic import TopicPartition
from logstore import staging_lot
from logstore.candidate import Candidate
from logstore.errors import UnsafePathError
from logstore.log_dir import LogDir
from logstore.spare_records import SpareRecords
from logstore.staged import list_staged
from logstore.staging_lot import SHARED_RECORDS, Lot
from logstore.staging_place import Place
from logstore.staging_root import Placement
from tests.logstore.engine import NOW_MS, ORDERS_ID, DiskThat, candidate, contents, fill

Make = Callable[..., Lot]


@pytest.fixture
def log_dir(our_log_dir: Path) -> Iterator[LogDir]:
    fill(our_log_dir / "orders-0")
    for number in range(5):
        fill(our_log_dir / f"t-{number}")
    with LogDir.open(str(our_log_dir), disk=DiskThat()) as opened:
        yield opened


@pytest.fixture
def place(log_dir: LogDir) -> Iterator[Place]:
    with ExitStack() as opened:
        made = Place(log_dir, Placement.INSIDE, SpareRecords(None), NOW_MS, opened)
        assert isinstance(log_dir.disk, DiskThat)
        log_dir.disk.calls.clear()
        yield made


def five() -> list[Candidate]:
    return [candidate(f"t-{number}", TopicPartition("t", number)) for number in range(5)]


def calls(log_dir: LogDir, name: str) -> int:
    assert isinstance(log_dir.disk, DiskThat)
    return log_dir.disk.calls.get(name, 0)


def test_the_records_of_many_are_one_file_of_which_no_name_is_left(place: Place, log_dir: LogDir) -> None:
    lot = Lot(place, five(), each_synced=False)
    lot.write_records()
    inodes = {os.stat(f"{log_dir.path}/t-{number}/{staged_record.FILE_NAME}").st_ino for number in range(5)}
    assert len(inodes) == 1
    assert SHARED_RECORDS not in os.listdir(f"{log_dir.path}/deleting")
    assert calls(log_dir, "sync") == 0


def test_a_barrier_makes_everything_durable_and_says_so(place: Place, log_dir: LogDir) -> None:
    lot = Lot(place, five(), each_synced=False)
    lot.write_records()
    assert lot.make_durable()
    assert calls(log_dir, "sync_file_system") == 1


def test_records_that_are_synced_one_by_one_need_no_barrier(place: Place, log_dir: LogDir) -> None:
    lot = Lot(place, [candidate()], each_synced=True)
    lot.write_records()
    synced = calls(log_dir, "sync")
    assert synced == 2, "the record, and its entry"
    assert not lot.make_durable()
    assert (calls(log_dir, "sync"), calls(log_dir, "sync_file_system")) == (synced, 0)


def test_what_is_renamed_can_be_listed_as_it_was_told(place: Place, log_dir: LogDir) -> None:
    lot = Lot(place, [*five(), candidate("gone-0", TopicPartition("gone", 0))], each_synced=False)
    lot.write_records()
    lot.rename()
    assert sorted(lot.staged(), key=lambda staged: staged.location) == list_staged(log_dir)
    assert [refused.reason for refused in lot.refused] == ["gone-0 was left where it is: it is gone"]


@pytest.mark.parametrize("renamed", [False, True])
def test_what_is_undone_lies_where_it_was_without_a_record(place: Place, log_dir: LogDir, renamed: bool) -> None:
    before = contents(Path(log_dir.path))
    lot = Lot(place, five(), each_synced=False)
    lot.write_records()
    if renamed:
        lot.rename()
    assert contents(Path(log_dir.path)) != before
    lot.undo()
    assert contents(Path(log_dir.path)) == before
    assert log_dir.leave_unclean, "a record may come back after a crash"


def test_a_replica_that_is_swapped_in_between_is_noticed(place: Place, log_dir: LogDir) -> None:
    lot = Lot(place, [candidate()], each_synced=True)
    lot.write_records()
    os.rename(f"{log_dir.path}/orders-0", f"{log_dir.path}/elsewhere-0")
    fill(Path(log_dir.path, "orders-0"))
    with pytest.raises(UnsafePathError, match="is not the directory that was looked at before"):
        lot.rename()


def test_a_file_of_records_has_no_more_than_its_share(
    place: Place, log_dir: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging_lot, "_TOGETHER", 2)
    Lot(place, five(), each_synced=False).write_records()
    links = [os.stat(f"{log_dir.path}/t-{number}/{staged_record.FILE_NAME}").st_nlink for number in range(5)]
    assert links == [2, 2, 2, 2, 1]


@pytest.mark.parametrize("metadata", [partition_metadata.encode, lambda topic_id: encode_json(topic_id, "t", 0)])
def test_replicas_share_a_file_whatever_form_their_metadata_has(
    place: Place, log_dir: LogDir, metadata: Callable[[TopicId], bytes]
) -> None:
    Path(log_dir.path, "t-0", "partition.metadata").write_bytes(metadata(ORDERS_ID))
    Lot(place, five(), each_synced=False).write_records()
    assert os.stat(f"{log_dir.path}/t-0/{staged_record.FILE_NAME}").st_nlink == 5


def test_one_unusual_replica_makes_all_beside_it_be_looked_at_one_by_one(place: Place, log_dir: LogDir) -> None:
    former = StagedRecord(
        "t", 3, ORDERS_ID, "t-3", "STALE_ID", "as it was", 1, 2, {"recovery-point-offset-checkpoint": 42}
    )
    path = Path(log_dir.path, "t-3", staged_record.FILE_NAME)
    path.write_bytes(staged_record.encode(former))
    lot = Lot(place, five(), each_synced=False)
    lot.write_records()
    assert [step.name for step in lot.steps] == [f"{ORDERS_ID}_{number}" for number in range(5)]
    assert [step.record.checkpoints for step in lot.steps] == [{}, {}, {}, former.checkpoints, {}]
    assert staged_record.parse(path.read_bytes()) == lot.steps[3].record
    assert all(os.stat(path.parents[1] / f"t-{number}" / path.name).st_nlink == 1 for number in range(5))
    assert os.listdir(f"{log_dir.path}/deleting") == []


@pytest.mark.parametrize("each_synced", [True, False])
def test_a_former_record_of_a_live_replica_hands_on_its_offsets(
    place: Place, log_dir: LogDir, each_synced: bool
) -> None:
    former = StagedRecord(
        "orders", 0, ORDERS_ID, "orders-0", "STALE_ID", "as it was", 1, 2, {"recovery-point-offset-checkpoint": 42}
    )
    Path(log_dir.path, "orders-0", staged_record.FILE_NAME).write_bytes(staged_record.encode(former))
    lot = Lot(place, [candidate()], each_synced=each_synced)
    lot.write_records()
    (record,) = [step.record for step in lot.steps]
    assert record.checkpoints == {"recovery-point-offset-checkpoint": 42}
    assert (record.evidence, record.staged_ms) == ("the cluster has it under another ID", NOW_MS)


@pytest.mark.parametrize("each_synced", [True, False])
def test_a_directory_in_the_place_of_the_record_is_told(place: Place, log_dir: LogDir, each_synced: bool) -> None:
    Path(log_dir.path, "orders-0", staged_record.FILE_NAME).mkdir()
    lot = Lot(place, [candidate()], each_synced=each_synced)
    lot.write_records()
    assert (lot.steps, len(lot.refused)) == ([], 1)
    assert "takes the place of its record" in lot.refused[0].reason
