"""A repair that a crash or a failing disk cuts short: nothing is changed without a way back, and it comes to its end.

Left to itself, a log dir after the crash has each file whole, old or new, and the way back for every new one. The same
plan, applied again, ends where it would have ended; an undo, begun again, as well.
"""

from __future__ import annotations

import errno
import os
from dataclasses import replace

import pytest

from layout import meta_properties
from layout.errors import DamagedFileError
from layout.ids import DirectoryId
from layout.meta_properties import MetaProperties
from layout.ours import RepairAction, RepairPlan, repair_backup, sealed_repair_plan
from layout.scheme import UNCLEAN_FILE
from logstore import ChangeFailedError, LogStoreError
from logstore.fs import Disk
from logstore.repair import apply_repair, undo_repair
from logstore.store import LogStore, StoreOptions
from tests.crash.histories import NUMBERS, Done, History
from tests.crash.images import Tree, read_tree
from tests.logstore.repair.repair_plans import METADATA, drop, planned, rebuild, remove, write_id

ID = "UXyU9i5ARn6W00ON2taeWA"
DISK = "disk"
RECOVERY, CLEANER = "recovery-point-offset-checkpoint", "cleaner-offset-checkpoint"
OLD = {
    f"missing-0/{METADATA}": None,
    f"broken-1/{METADATA}": b"garbage",
    RECOVERY: b"0\n9\nbroken 1 5\nhalf\n",
    CLEANER: b"0\n2\nbroken 1 5\ngone 0 7\n",
    "meta.properties.tmp": b"half",
}
NEW = {
    f"missing-0/{METADATA}": f"version: 0\ntopic_id: {ID}".encode(),
    f"broken-1/{METADATA}": f"version: 0\ntopic_id: {ID}".encode(),
    RECOVERY: b"0\n1\nbroken 1 5\n",
    CLEANER: b"0\n1\nbroken 1 5\n",
    "meta.properties.tmp": None,
}
FINGERPRINT = "ab" * 32
BACKUP = repair_backup.backup_file_name(FINGERPRINT)


def build(root: str) -> None:
    for folder in ("missing-0", "broken-1"):
        os.makedirs(f"{root}/{DISK}/{folder}")
    identity = MetaProperties(1, "C", 1, DirectoryId.from_halves(7, 8))
    files = {meta_properties.FILE_NAME: meta_properties.encode(identity, "today"), ".lock": b"", **OLD}
    for name, data in files.items():
        if data is not None:
            with open(f"{root}/{DISK}/{name}", "wb") as file:
                file.write(data)


def plan_for(root: str) -> RepairPlan:
    """The plan for a tree that was just built; after a crash its inodes are others, so it does not name them."""
    built = f"{root}/built"
    os.mkdir(built)
    build(built)
    place = f"{built}/{DISK}"
    actions: list[RepairAction] = [
        *(write_id(place, name, ID) for name in ("missing-0", "broken-1")),
        rebuild(place, RECOVERY),
        drop(place, ("gone", 0), file=CLEANER),
        remove(place, "meta.properties.tmp"),
    ]
    log_dir = f"{root}/{DISK}"
    here = tuple(replace(each, log_dir=log_dir, inode=None) for each in actions)
    return replace(
        sealed_repair_plan(RepairPlan(1, (replace(planned(place), path=log_dir),), (), here)), fingerprint=FINGERPRINT
    )


@pytest.fixture
def plan_of_root(tmp_path):
    """The plan, once: only its log dir's path differs from root to root."""
    made = plan_for(str(tmp_path))

    def plan(root: str) -> RepairPlan:
        path = f"{root}/{DISK}"
        return replace(
            made,
            log_dirs=(replace(made.log_dirs[0], path=path),),
            actions=tuple(replace(each, log_dir=path) for each in made.actions),
        )

    return plan


def repairs(plan):
    def act(root: str, disk: Disk, done: Done | None = None) -> None:
        outcome = apply_repair(plan(root), 1000, disk=disk)
        if not outcome.is_complete:
            details = "; ".join(each.detail for each in outcome.results if each.status not in ("done", "already"))
            raise ChangeFailedError(f"not all of it was done: {details}")
        if done is not None:
            done("repaired")

    return act


def undoes(root: str, disk: Disk, done: Done | None = None) -> None:
    path = f"{root}/{DISK}/{BACKUP}"
    if os.path.exists(path):
        outcome = undo_repair(path, disk=disk)
        if not outcome.backup_removed:
            raise ChangeFailedError(f"not all of it was undone: {outcome.results}")
    if done is not None:
        done("undone")


def reopens(root: str, disk: Disk) -> None:
    LogStore.open([f"{root}/{DISK}"], StoreOptions(disk=disk)).close()


def held(root: str) -> dict[str, bytes | None]:
    tree = read_tree(root)
    return {path: tree.get(f"{DISK}/{path}") for path in OLD}  # type: ignore[misc] - these are plain files


def kept(root: str) -> dict[str, bytes | None]:
    """What the backup would give back; nothing when it is cut short."""
    try:
        with open(f"{root}/{DISK}/{BACKUP}", "rb") as file:
            return {each.path: each.before for each in repair_backup.parse_backup(file.read()).files}
    except (FileNotFoundError, DamagedFileError):
        return {}


def all_new(root: str, done: tuple[str, ...]) -> None:
    assert held(root) == NEW
    assert kept(root) == OLD


def old_or_new(root: str, done: tuple[str, ...]) -> None:
    found, way_back = held(root), kept(root)
    for path, data in found.items():
        assert data in (OLD[path], NEW[path]), path
        if data != OLD[path]:
            assert path in way_back and way_back[path] == OLD[path], path
    assert not done or found == NEW
    names = {name for folder in ("", "missing-0", "broken-1") for name in os.listdir(f"{root}/{DISK}/{folder}")}
    assert names <= {
        *("missing-0", "broken-1", METADATA, RECOVERY, CLEANER, ".lock", "meta.properties", "meta.properties.tmp"),
        BACKUP,
    }


def all_old(root: str, done: tuple[str, ...]) -> None:
    assert held(root) == OLD
    assert BACKUP not in os.listdir(f"{root}/{DISK}")


def unmarked(tree: Tree) -> Tree:
    """The mark that a failing disk leaves on the log dir stays until the next open has looked."""
    return {path: what for path, what in tree.items() if not path.endswith(UNCLEAN_FILE)}


ERRORS = dict.fromkeys(NUMBERS, LogStoreError)


def test_after_a_crash_each_file_is_whole_and_every_new_one_has_its_way_back(crash, plan_of_root) -> None:
    tried = crash(History("repair, then open", build, repairs(plan_of_root), old_or_new, reopens, disks=(DISK,)))
    assert tried.cases > 50


def test_after_a_crash_the_same_plan_comes_to_the_same_end(crash, plan_of_root) -> None:
    act = repairs(plan_of_root)
    tried = crash(History("repair, then repair", build, act, all_new, act, disks=(DISK,)))
    assert tried.cases > 50


def test_whichever_step_fails_the_same_plan_comes_to_the_same_end(fail, plan_of_root) -> None:
    act = repairs(plan_of_root)
    tried = fail(History("repair", build, act, all_new, act, disks=(DISK,), errors=ERRORS))
    assert tried.steps > 20


def test_an_undo_that_a_crash_cuts_short_comes_to_its_end(crash, fail, plan_of_root) -> None:
    def repaired(root: str) -> None:
        build(root)
        repairs(plan_of_root)(root, Disk())

    history = History("undo", repaired, undoes, all_old, undoes, disks=(DISK,), errors=ERRORS)
    assert crash(history).cases > 20
    history = replace(history, counted=unmarked)
    assert fail(history, numbers=(errno.ENOSPC, errno.EIO)).steps > 20
