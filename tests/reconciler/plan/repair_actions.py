"""Plans of repairs made by hand from what lies there, and carried out; the proposal of plans has tests of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from layout.ours import sum_of
from logstore.fs import read_small_file
from logstore.log_dir import read_identity
from logstore.repair import FileRepair
from reconciler.plan import Action, ActionKind, KeptCopy, Plan, PlanChoice, PlannedLogDir, encode_plan, parse_plan
from reconciler.plan.file import sealed
from tests.logstore.repair import file_repairs
from tests.logstore.repair.file_repairs import CHECKPOINT, METADATA


def write_id(log_dir: object, name: str, topic_id: str, **changes: Any) -> Action:
    """Give ``name`` that topic ID; with ``kind`` over another one."""
    topic, _, partition = name.rpartition("-")
    kind = changes.pop("kind", ActionKind.WRITE_PARTITION_METADATA)
    made = file_repairs.write_id(log_dir, name, topic_id, **changes)
    return _action(kind, log_dir, made, topic=topic, partition=int(partition), wanted_topic_id=topic_id)


def rebuild(log_dir: object, file: str = CHECKPOINT, drops: Iterable[tuple[str, int]] = ()) -> Action:
    """Keep the whole lines of a damaged checkpoint."""
    dropped = list(drops)
    made = file_repairs.rebuild(log_dir, file, dropped)
    return _action(ActionKind.REBUILD_CHECKPOINT, log_dir, made, drops=_lines(dropped))


def drop(log_dir: object, *entries: tuple[str, int], file: str = CHECKPOINT) -> Action:
    """Drop entries of a sound checkpoint."""
    made = file_repairs.drop(log_dir, *entries, file=file)
    return _action(ActionKind.DROP_CHECKPOINT_ENTRIES, log_dir, made, drops=_lines(entries))


def remove(log_dir: object, name: str) -> Action:
    """Remove a leftover."""
    return _action(ActionKind.REMOVE_LEFTOVER, log_dir, file_repairs.remove(log_dir, name))


def stage_copy(log_dir: object, name: str, topic_id: str | None, kept_in: object, kept_id: str | None) -> Action:
    """Stage the copy in one log dir, and keep the one of the same name in the other."""
    topic, _, partition = name.rpartition("-")
    return Action(
        *(ActionKind.STAGE_DUPLICATE, str(log_dir), name, topic, int(partition), topic_id, None),
        *("DUPLICATE", "a test"),
        inode=os.stat(f"{log_dir}/{name}").st_ino,
        expects=sum_of(read_small_file(f"{log_dir}/{name}/{METADATA}", 1 << 16)),
        keeps=KeptCopy(str(kept_in), name, os.stat(f"{kept_in}/{name}").st_ino, kept_id),
    )


def plan_of(*actions: Action) -> Plan:
    """A plan as it comes out of its file."""
    paths = {each.log_dir for each in actions} | {each.keeps.log_dir for each in actions if each.keeps is not None}
    log_dirs = tuple(map(planned, sorted(paths)))
    made = sealed(Plan(1, "a-host", "a user", PlanChoice().delay_ms, {}, log_dirs, (), actions))
    return parse_plan(encode_plan(made))


def planned(path: str) -> PlannedLogDir:
    """A log dir as a plan names it."""
    identity = read_identity(path).identity
    assert identity is not None
    directory_id = None if identity.directory_id is None else str(identity.directory_id)
    return PlannedLogDir(path, identity.cluster_id, identity.node_id, directory_id, None)


def _action(kind: ActionKind, log_dir: object, made: FileRepair, **fields: Any) -> Action:
    of_replica = {"topic": "", "partition": -1, "topic_id": None, "wanted_topic_id": None, "verdict": "DAMAGED"}
    sums = {"expects": made.expects, "writes": made.writes, "inode": made.inode}
    return Action(
        **{"kind": kind, "log_dir": str(log_dir), "name": made.path, "why": "a test", **of_replica, **sums, **fields}
    )


def _lines(entries: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    return tuple(f"{topic} {partition}" for topic, partition in sorted(entries))
