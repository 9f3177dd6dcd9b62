"""Plans for the tests of the engine, made by hand from what lies there; the proposal of plans has tests of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from layout import checkpoint, partition_metadata
from layout.ids import TopicId
from layout.ours import (
    MISSING,
    KeptCopy,
    PlannedLogDir,
    RepairAction,
    RepairKind,
    RepairPlan,
    encode_repair_plan,
    parse_repair_plan,
    sealed_repair_plan,
    sum_of,
)
from logstore.fs import read_small_file
from logstore.log_dir import read_identity

METADATA = partition_metadata.FILE_NAME
CHECKPOINT = "recovery-point-offset-checkpoint"


def write_id(log_dir: object, name: str, topic_id: str, **changes: Any) -> RepairAction:
    """Give ``name`` that topic ID; with ``kind`` over another one."""
    path = f"{log_dir}/{name}"
    topic, _, partition = name.rpartition("-")
    return RepairAction(
        **{
            "kind": RepairKind.WRITE_PARTITION_METADATA,
            "log_dir": str(log_dir),
            "path": f"{name}/{METADATA}",
            "evidence": "a test",
            "expects": sum_of(read_small_file(f"{path}/{METADATA}", 1 << 16)),
            "writes": sum_of(partition_metadata.encode(TopicId.parse(topic_id))),
            "topic": topic,
            "partition": int(partition),
            "topic_id": topic_id,
            "inode": os.stat(path).st_ino,
            **changes,
        }
    )


def rebuild(log_dir: object, file: str = CHECKPOINT, drops: Iterable[tuple[str, int]] = ()) -> RepairAction:
    """Keep the whole lines of a damaged checkpoint."""
    data = read_small_file(f"{log_dir}/{file}", 1 << 20) or b""
    dropped = frozenset(drops)
    written = checkpoint.rebuilt(data, dropped)
    shown = tuple(f"{topic} {partition}" for topic, partition in sorted(dropped))
    kind = RepairKind.REBUILD_CHECKPOINT
    return RepairAction(kind, str(log_dir), file, "a test", sum_of(data), sum_of(written), drops=shown)


def drop(log_dir: object, *entries: tuple[str, int], file: str = CHECKPOINT) -> RepairAction:
    """Drop entries of a sound checkpoint."""
    data = read_small_file(f"{log_dir}/{file}", 1 << 20) or b""
    written = checkpoint.pruned(data, file, frozenset(entries))
    shown = tuple(f"{topic} {partition}" for topic, partition in sorted(entries))
    kind = RepairKind.DROP_CHECKPOINT_ENTRIES
    return RepairAction(kind, str(log_dir), file, "a test", sum_of(data), sum_of(written), drops=shown)


def remove(log_dir: object, name: str) -> RepairAction:
    """Remove a leftover."""
    data = read_small_file(f"{log_dir}/{name}", 1 << 20)
    return RepairAction(RepairKind.REMOVE_LEFTOVER, str(log_dir), name, "a test", sum_of(data), MISSING)


def stage_copy(log_dir: object, name: str, topic_id: str | None, kept_in: object, kept_id: str | None) -> RepairAction:
    """Stage the copy in one log dir, and keep the one of the same name in the other."""
    data = read_small_file(f"{log_dir}/{name}/{METADATA}", 1 << 16)
    topic, _, partition = name.rpartition("-")
    return RepairAction(
        RepairKind.STAGE_DUPLICATE,
        str(log_dir),
        name,
        "a test",
        sum_of(data),
        MISSING,
        topic,
        int(partition),
        topic_id,
        os.stat(f"{log_dir}/{name}").st_ino,
        keeps=KeptCopy(str(kept_in), name, os.stat(f"{kept_in}/{name}").st_ino, kept_id),
    )


def plan_of(*actions: RepairAction) -> RepairPlan:
    """A plan as it comes out of its file."""
    paths = {each.log_dir for each in actions} | {each.keeps.log_dir for each in actions if each.keeps is not None}
    return parse_repair_plan(
        encode_repair_plan(sealed_repair_plan(RepairPlan(1, tuple(map(planned, sorted(paths))), (), actions)))
    )


def planned(path: str) -> PlannedLogDir:
    """A log dir as a plan names it."""
    identity = read_identity(path).identity
    assert identity is not None
    directory_id = None if identity.directory_id is None else str(identity.directory_id)
    return PlannedLogDir(path, identity.cluster_id, identity.node_id, directory_id)
