"""Repairs for the tests of the engine, made by hand from what lies there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from layout import checkpoint, partition_metadata
from layout.ids import TopicId
from layout.ours import MISSING, sum_of
from layout.topic import TopicPartition
from logstore import LogStoreError
from logstore.fs import Disk, read_small_file
from logstore.log_dir import FallbackRecords, LogDir
from logstore.repair import (
    CheckedRepair,
    CheckpointWithout,
    FileRepair,
    RepairStatus,
    TopicIdFile,
    check_repair,
    repair_files,
    replicas_with_directory,
)
from logstore.store import recover_all

METADATA = partition_metadata.FILE_NAME
CHECKPOINT = "recovery-point-offset-checkpoint"
FINGERPRINT = "ab" * 32


def write_id(log_dir: object, name: str, topic_id: str, **changes: Any) -> FileRepair:
    """Give ``name`` that topic ID, or replace another one by it."""
    path = f"{log_dir}/{name}"
    topic, _, partition = name.rpartition("-")
    return FileRepair(
        **{
            "path": f"{name}/{METADATA}",
            "content": TopicIdFile(TopicPartition(topic, int(partition)), TopicId.parse(topic_id)),
            "expects": sum_of(read_small_file(f"{path}/{METADATA}", 1 << 16)),
            "writes": sum_of(partition_metadata.encode(TopicId.parse(topic_id))),
            "inode": os.stat(path).st_ino,
            **changes,
        }
    )


def rebuild(log_dir: object, file: str = CHECKPOINT, drops: Iterable[tuple[str, int]] = ()) -> FileRepair:
    """Keep the whole lines of a damaged checkpoint."""
    data = read_small_file(f"{log_dir}/{file}", 1 << 20) or b""
    content = CheckpointWithout(frozenset(drops), is_rebuilt=True)
    return FileRepair(file, content, sum_of(data), sum_of(checkpoint.rebuilt(data, content.dropped)))


def drop(log_dir: object, *entries: tuple[str, int], file: str = CHECKPOINT) -> FileRepair:
    """Drop entries of a sound checkpoint."""
    data = read_small_file(f"{log_dir}/{file}", 1 << 20) or b""
    content = CheckpointWithout(frozenset(entries))
    return FileRepair(file, content, sum_of(data), sum_of(checkpoint.pruned(data, file, content.dropped)))


def remove(log_dir: object, name: str) -> FileRepair:
    """Remove a leftover."""
    return FileRepair(name, None, sum_of(read_small_file(f"{log_dir}/{name}", 1 << 20)), MISSING)


@dataclass
class Repaired:
    """What became of some repairs of one log dir, in their order, and the path of the backup."""

    statuses: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    backup: str | None = None

    @property
    def is_complete(self) -> bool:
        return set(self.statuses) <= {RepairStatus.DONE, RepairStatus.ALREADY}


def repair(path: object, *repairs: FileRepair, now_ms: int = 1, disk: Disk | None = None) -> Repaired:
    """Open a log dir, check every repair, and do what still fits, as a plan is carried out."""
    with LogDir.open(str(path), disk=disk) as log_dir:
        recover_all([log_dir], FallbackRecords(None))
        checked: dict[str, CheckedRepair] = {}
        said = dict.fromkeys((each.path for each in repairs), (RepairStatus.ALREADY, ""))
        held = replicas_with_directory(log_dir)
        for each in repairs:
            try:
                found = check_repair(log_dir, each, held)
            except LogStoreError as error:
                said[each.path] = RepairStatus.SKIPPED, str(error)
            else:
                checked |= {} if found is None else {each.path: found}
        backup = None
        if checked:
            backup, failed = repair_files(log_dir, list(checked.values()), FINGERPRINT, now_ms)
            for name in checked:
                status = RepairStatus.FAILED if name in failed else RepairStatus.DONE
                said[name] = status, str(failed.get(name, ""))
    statuses, details = zip(*said.values(), strict=True)
    return Repaired([each.value for each in statuses], list(details), backup)
