"""The drill of log dirs: sound code keeps what it promises, and a mistake is noticed within a hundred seeds."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress

import pytest

from layout import checkpoint
from layout.ours import StagedRecord, encode_mark
from layout.topic import TopicPartition
from logstore.fs import Directory, Disk, replace_file
from logstore.log_dir import (
    CheckpointFiles,
    FallbackRecords,
    LedgerFile,
    LogDir,
    StagingLock,
    fallback_records,
    ledger,
    lock,
    log_dir,
)
from logstore.staging import placement, records, root_ledger, run
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_log_dirs
from reconciler.simulator.runs.coverage import EXPECTED
from tests.reconciler.simulator.drills.counting import counted

SEEDS, STEPS = 100, 40


def test_sound_log_dirs_keep_what_they_promise_and_a_seed_always_plays_the_same() -> None:
    found = counted(drill_log_dirs, SEEDS, STEPS)
    assert found.keys() == {each for each in EXPECTED if each.startswith("drill_log_dir ")}
    assert counted(drill_log_dirs, 6, STEPS) == counted(drill_log_dirs, 6, STEPS)


def marked_too_early(self: LedgerFile) -> None:
    self._append([encode_mark(self.ledger.end)])
    self._disk.sync(self._descriptor)
    self._synced = self.ledger.end
    self._unsynced.clear()
    self.is_durable = True


def written_whatever_it_was(self: CheckpointFiles, disk: Disk) -> None:
    for file in sorted(self._changed):
        replace_file(disk, self._root, file, checkpoint.encode_offsets(self._entries[file]))
    self._changed.clear()


def given_back_over_newer(self: CheckpointFiles, partition: TopicPartition, offsets: dict[str, int]) -> None:
    for file, offset in offsets.items():
        self._entries[file][partition.topic, partition.partition] = offset
        self._changed.add(file)


def said_to_be_written(self: LogDir) -> bool:
    with suppress(OSError):
        self.checkpoints.write(self.disk)
    return True


def path_of_the_record(_: LogDir, record: StagedRecord) -> str:
    return record.path


def parent_of_anything(opened: LogDir, folder: str, _: TopicPartition) -> Directory:
    return opened.root.below(folder)


def unlocked(cls: type[StagingLock], path: str, **_: object) -> None:
    return None


Patch = pytest.MonkeyPatch


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(LedgerFile, "sync", marked_too_early), "nothing damaged a ledger"),
        (
            lambda patch: patch.setattr(
                LedgerFile, "_sync_failed", property(lambda _: False, lambda *_: None), raising=False
            ),
            "nothing damaged a ledger|a ledger says",
        ),
        (lambda patch: patch.setattr(ledger, "PURGE_BYTES", 64), "a full disk cannot be purged"),
        (lambda patch: patch.setattr(ledger, "_is_shared", lambda _: False), "changed in the copy too"),
        (lambda patch: patch.setattr(lock, "_is_still_there", lambda *_: True), "by two at once|a file that is gone"),
        (lambda patch: patch.setattr(StagingLock, "take", classmethod(unlocked)), "by two at once"),
        (
            lambda patch: patch.setattr(log_dir, "DISK_FAILURES", log_dir.DISK_FAILURES - {errno.EROFS}),
            "Read-only file system: ChangeFailedError",
        ),
        (
            lambda patch: patch.setattr(
                LogDir, "leave_unclean", property(lambda _: False, lambda *_: None), raising=False
            ),
            "the checkpoint entries are",
        ),
        (lambda patch: patch.setattr(LogDir, "write_checkpoints", said_to_be_written), "the checkpoint entries are"),
        (lambda patch: patch.setattr(run._Staging, "_unfinished", lambda _: {}), "the checkpoint entries are"),
        (lambda patch: patch.setattr(CheckpointFiles, "write", written_whatever_it_was), "left for a repair"),
        (lambda patch: patch.setattr(CheckpointFiles, "give_back", given_back_over_newer), "and should hold"),
        (lambda patch: patch.setattr(fallback_records, "_key", lambda _: "shared"), "the other copy is staged with"),
        (
            lambda patch: patch.setattr("logstore.store.create.open_replica_parent", parent_of_anything),
            "nobody made its namespace",
        ),
        (lambda patch: patch.setattr(placement, "_same_mount", lambda *_: True), "are staged sibling"),
        (lambda patch: patch.setattr(root_ledger, "check_record_of", lambda *_: None), "the line of"),
        (lambda patch: patch.setattr(records, "restored_path", path_of_the_record), "the line of|is restored as"),
        (lambda patch: patch.setattr(FallbackRecords, "read", lambda *_: None), "the other copy is staged with|is not"),
    ],
    ids=[
        *("marked before the sync", "not written again", "room for a purge", "hard links", "lock", "staging lock"),
        *(
            "read-only",
            "unclean",
            "offsets not written",
            "offsets of a line",
            "damaged checkpoint",
            "newer offsets",
            "shared fallback folder",
            "no namespace",
            "another mount",
            "line of another",
            "path of another",
            "spare records",
        ),
    ],
)
def test_a_mistake_is_noticed(mistake: Callable[[Patch], None], said: str, monkeypatch: Patch) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_log_dirs, SEEDS, STEPS)
