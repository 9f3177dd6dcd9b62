"""One batch of replicas: what each of its steps leaves on the disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from layout.ours import StagedRecord, staged_record
from layout.partition_metadata import encode_json
from layout.topic import TopicPartition
from logstore import UnsafePathError
from logstore.fs import Disk
from logstore.log_dir import LogDir
from logstore.staging import Candidate, FallbackRecords, Placement, list_staged, records
from logstore.staging.batch import StagingBatch
from logstore.staging.session import StagingSession
from tests.logstore.engine import NOW_MS, ORDERS_ID, DiskThat, candidate, contents, fill

Make = Callable[..., StagingBatch]


@pytest.fixture
def log_dir(our_log_dir: Path) -> Iterator[LogDir]:
    fill(our_log_dir / "orders-0")
    for number in range(5):
        fill(our_log_dir / f"t-{number}")
    with LogDir.open(str(our_log_dir), disk=DiskThat()) as opened:
        yield opened


@pytest.fixture
def session(log_dir: LogDir) -> Iterator[StagingSession]:
    with ExitStack() as opened:
        with log_dir.changing("it is marked"):
            made = StagingSession(log_dir, Placement.INSIDE, FallbackRecords(None), NOW_MS, opened)
        assert isinstance(log_dir.disk, DiskThat)
        log_dir.disk.calls.clear()
        yield made


def five() -> list[Candidate]:
    return [candidate(f"t-{number}", TopicPartition("t", number)) for number in range(5)]


def written(session: StagingSession, candidates: list[Candidate], *, each_synced: bool = False) -> StagingBatch:
    """A batch that is past its first step."""
    batch = StagingBatch(session, candidates, each_synced=each_synced)
    batch.write_records()
    return batch


def calls(log_dir: LogDir, name: str) -> int:
    assert isinstance(log_dir.disk, DiskThat)
    return log_dir.disk.calls.get(name, 0)


def files_of(log_dir: LogDir) -> list[str]:
    return [name for name in os.listdir(f"{log_dir.path}/deleting") if name.startswith(staged_record.STAGED_RECORD)]


def links(log_dir: LogDir) -> list[int]:
    paths = (f"{log_dir.path}/deleting/{ORDERS_ID}_{number}/{staged_record.STAGED_RECORD}" for number in range(5))
    return [os.stat(path).st_nlink for path in paths]


def test_the_records_of_many_are_one_file_whose_own_name_goes_at_the_end(
    session: StagingSession, log_dir: LogDir
) -> None:
    batch = written(session, five())
    assert (len(files_of(log_dir)), batch.files) == (1, 1)
    assert not [
        number for number in range(5) if Path(log_dir.path, f"t-{number}", staged_record.STAGED_RECORD).exists()
    ]
    batch.rename()
    assert links(log_dir) == [6] * 5
    batch.drop_files()
    assert (files_of(log_dir), links(log_dir)) == ([], [5] * 5)
    assert (calls(log_dir, "sync"), calls(log_dir, "sync_file_system")) == (0, 0)


def test_files_of_records_are_synced_and_then_what_they_were_linked_into(
    session: StagingSession, log_dir: LogDir
) -> None:
    batch = written(session, five())
    batch.sync_records()
    assert calls(log_dir, "sync") == 2, "the file, and its entry"
    batch.rename()
    batch.sync_renamed()
    assert calls(log_dir, "sync") == 2 + 5 + 2, "each partition dir, the staging root, and the log dir"


def test_records_that_are_synced_one_by_one_need_no_file(session: StagingSession, log_dir: LogDir) -> None:
    batch = written(session, [candidate()], each_synced=True)
    batch.sync_records()
    assert (calls(log_dir, "sync"), batch.files) == (0, 0)
    batch.rename()
    assert calls(log_dir, "sync") == 2, "the record, and its entry"
    assert calls(log_dir, "sync_file_system") == 0


def test_a_log_dir_that_nobody_would_recover_gets_no_file_of_records(
    session: StagingSession, log_dir: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogDir, "is_marked", False)
    batch = written(session, five())
    assert (files_of(log_dir), batch.files) == ([], 0)
    batch.rename()
    assert links(log_dir) == [1] * 5


def test_what_is_renamed_can_be_listed_as_it_was_reported(session: StagingSession, log_dir: LogDir) -> None:
    batch = written(session, [*five(), candidate("gone-0", TopicPartition("gone", 0))])
    batch.rename()
    assert sorted(batch.staged(), key=lambda staged: staged.location) == list_staged(log_dir)
    assert [refused.reason for refused in batch.refused] == ["gone-0 was left where it is: it is gone"]


def test_a_file_whose_name_cannot_be_removed_is_left_to_recovery(session: StagingSession, log_dir: LogDir) -> None:
    batch = written(session, five())
    batch.rename()
    assert isinstance(log_dir.disk, DiskThat)
    log_dir.disk.number, log_dir.disk.fails = errno.EACCES, {"unlink"}
    batch.drop_files()
    assert (len(files_of(log_dir)), log_dir.leave_unclean) == (1, True)
    log_dir.disk.number = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        batch.drop_files()


@pytest.mark.parametrize("renamed", [False, True])
def test_what_is_undone_lies_where_it_was_without_a_record(
    session: StagingSession, log_dir: LogDir, renamed: bool
) -> None:
    before = contents(Path(log_dir.path))
    batch = written(session, five())
    if renamed:
        batch.rename()
    assert contents(Path(log_dir.path)) != before
    batch.undo()
    assert contents(Path(log_dir.path)) == before
    assert log_dir.leave_unclean, "a record, or a file of them, may come back after a crash"


@pytest.mark.parametrize("each_synced", [True, False])
def test_a_replica_that_is_swapped_in_between_is_noticed(
    session: StagingSession, log_dir: LogDir, each_synced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap_and_rename(source: int, name: str, target: int, new_name: str) -> None:
        os.rename(f"{log_dir.path}/{name}", f"{log_dir.path}/elsewhere-0")
        fill(Path(log_dir.path, name))
        Disk.rename(log_dir.disk, source, name, target, new_name)

    monkeypatch.setattr(log_dir.disk, "rename", swap_and_rename, raising=False)
    batch = written(session, [candidate()], each_synced=each_synced)
    with pytest.raises(UnsafePathError, match="is not the directory that was looked at before"):
        batch.rename()


def test_a_replica_that_is_swapped_before_it_is_looked_at_is_refused(session: StagingSession, log_dir: LogDir) -> None:
    inode = os.stat(f"{log_dir.path}/orders-0").st_ino
    batch = written(session, [replace(candidate(), inode=inode)])
    os.rename(f"{log_dir.path}/orders-0", f"{log_dir.path}/elsewhere-0")
    fill(Path(log_dir.path, "orders-0"))
    batch.rename()
    assert (batch.moves, [refused.candidate for refused in batch.refused]) == ([], list(batch.candidates))
    assert "so it is another directory" in batch.refused[0].reason


def test_a_file_of_records_has_no_more_than_its_share(
    session: StagingSession, log_dir: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "REPLICAS_PER_FILE", 2)
    batch = written(session, five())
    assert len(files_of(log_dir)) == batch.files == 3
    batch.rename()
    batch.drop_files()
    assert links(log_dir) == [2, 2, 2, 2, 1]


@pytest.mark.parametrize("metadata", [partition_metadata.encode, lambda topic_id: encode_json(topic_id, "t", 0)])
def test_replicas_share_a_file_whatever_form_their_metadata_has(
    session: StagingSession, log_dir: LogDir, metadata: Callable[[TopicId], bytes]
) -> None:
    Path(log_dir.path, "t-0", "partition.metadata").write_bytes(metadata(ORDERS_ID))
    batch = written(session, five())
    batch.rename()
    assert links(log_dir) == [6] * 5


def test_a_replica_on_the_slow_path_has_a_record_of_its_own_and_the_others_share_theirs(
    session: StagingSession, log_dir: LogDir
) -> None:
    former = StagedRecord(
        "t", 3, ORDERS_ID, "t-3", "STALE_ID", "as it was", 1, 2, {"recovery-point-offset-checkpoint": 42}
    )
    Path(log_dir.path, "t-3", staged_record.STAGED_RECORD).write_bytes(staged_record.encode_record(former))
    batch = written(session, five())
    batch.rename()
    batch.drop_files()
    assert sorted(move.name for move in batch.moves) == [f"{ORDERS_ID}_{number}" for number in range(5)]
    assert links(log_dir) == [4, 4, 4, 1, 4]
    assert sorted(batch.staged(), key=lambda staged: staged.location) == list_staged(log_dir)
    (record,) = [move.record for move in batch.moves if move.candidate.path == "t-3"]
    assert record.checkpoints == former.checkpoints


def test_where_a_file_of_records_cannot_be_written_each_has_its_own(
    session: StagingSession, log_dir: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "STAGED_RECORD_LIMIT", 500)
    batch = written(session, five())
    assert (files_of(log_dir), batch.files) == ([], 0)
    batch.rename()
    assert [move.name for move in batch.moves] == [f"{ORDERS_ID}_{number}" for number in range(5)]
    assert links(log_dir) == [1] * 5


class RoomForFilesAlone(DiskThat):
    """Has room for files of records, and for nothing in a partition dir."""

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def create(self, parent: int, name: str) -> int:
        if name == staged_record.STAGED_RECORD:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().create(parent, name)


def test_a_record_that_lies_outside_goes_by_a_name_that_no_file_speaks_of(our_log_dir: Path, tmp_path: Path) -> None:
    fill(our_log_dir / "orders-0")
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(our_log_dir), disk=RoomForFilesAlone()) as log_dir, ExitStack() as opened:
        with log_dir.changing("it is marked"):
            batch = StagingBatch(
                StagingSession(log_dir, Placement.INSIDE, fallback, NOW_MS, opened), [candidate()], each_synced=False
            )
            batch.write_records()
            batch.rename()
        assert [move.name for move in batch.moves] == [f"{ORDERS_ID}_0.2"]
        assert list_staged(log_dir, fallback) == batch.staged()


@pytest.mark.parametrize("each_synced", [True, False])
def test_a_former_record_of_a_live_replica_hands_on_its_offsets(
    session: StagingSession, log_dir: LogDir, each_synced: bool
) -> None:
    former = StagedRecord(
        "orders", 0, ORDERS_ID, "orders-0", "STALE_ID", "as it was", 1, 2, {"recovery-point-offset-checkpoint": 42}
    )
    Path(log_dir.path, "orders-0", staged_record.STAGED_RECORD).write_bytes(staged_record.encode_record(former))
    batch = written(session, [candidate()], each_synced=each_synced)
    batch.rename()
    (record,) = [move.record for move in batch.moves]
    assert record.checkpoints == {"recovery-point-offset-checkpoint": 42}
    assert (record.evidence, record.staged_ms) == ("the cluster has it under another ID", NOW_MS)


@pytest.mark.parametrize("each_synced", [True, False])
def test_a_directory_in_the_place_of_the_record_is_reported(
    session: StagingSession, log_dir: LogDir, each_synced: bool
) -> None:
    Path(log_dir.path, "orders-0", staged_record.STAGED_RECORD).mkdir()
    batch = written(session, [candidate()], each_synced=each_synced)
    batch.rename()
    assert (batch.moves, len(batch.refused)) == ([], 1)
    assert "takes the place of its record" in batch.refused[0].reason
