"""A repair that a crash or a failing disk cuts short: nothing is changed without a way back, and it comes to its end.

Left to itself, a log dir after the crash has each file whole, old or new, and the way back for every new one. The same
plan, applied again, ends where it would have ended; an undo, begun again, as well.
"""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from layout import meta_properties
from layout.errors import DamagedFileError
from layout.ids import DirectoryId
from layout.meta_properties import MetaProperties
from layout.ours import is_run_journal, parse_run_journal, repair_backup
from layout.scheme import UNCLEAN_FILE
from logstore import ChangeFailedError, LogStoreError
from logstore.clock import ManualClock
from logstore.fs import Disk
from logstore.repair import FileRepair, undo_repair
from logstore.store import LogStore, StoreOptions
from reconciler.plan import Action, ActionKind, ApplyOptions, Plan, PlannedLogDir, apply_plan
from reconciler.plan.file import sealed
from tests.crash.histories import NUMBERS, Done, History
from tests.crash.images import Tree, read_tree
from tests.logstore.repair.file_repairs import FINGERPRINT, METADATA, drop, rebuild, remove, repair, write_id

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


def repairs_for(folder: str) -> list[FileRepair]:
    """The repairs of a tree that was just built; after a crash its inodes are others, so they do not name them."""
    build(folder)
    place = f"{folder}/{DISK}"
    made = [
        *(write_id(place, name, ID) for name in ("missing-0", "broken-1")),
        rebuild(place, RECOVERY),
        drop(place, ("gone", 0), file=CLEANER),
        remove(place, "meta.properties.tmp"),
    ]
    return [replace(each, inode=None) for each in made]


@pytest.fixture
def wanted(tmp_path) -> list[FileRepair]:
    """The repairs, once: they are the same in every root."""
    os.mkdir(tmp_path / "built")
    return repairs_for(str(tmp_path / "built"))


def repairs(wanted):
    def act(root: str, disk: Disk, done: Done | None = None) -> None:
        outcome = repair(f"{root}/{DISK}", *wanted, now_ms=1000, disk=disk)
        if not outcome.is_complete:
            raise ChangeFailedError(f"not all of it was done: {'; '.join(outcome.details)}")
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


def test_after_a_crash_each_file_is_whole_and_every_new_one_has_its_way_back(crash, wanted) -> None:
    tried = crash(History("repair, then open", build, repairs(wanted), old_or_new, reopens, disks=(DISK,)))
    assert tried.cases > 50


def test_after_a_crash_the_same_plan_comes_to_the_same_end(crash, wanted) -> None:
    act = repairs(wanted)
    tried = crash(History("repair, then repair", build, act, all_new, act, disks=(DISK,)))
    assert tried.cases > 50


def test_whichever_step_fails_the_same_plan_comes_to_the_same_end(fail, wanted) -> None:
    act = repairs(wanted)
    tried = fail(History("repair", build, act, all_new, act, disks=(DISK,), errors=ERRORS))
    assert tried.steps > 20


def test_an_undo_that_a_crash_cuts_short_comes_to_its_end(crash, fail, wanted) -> None:
    def repaired(root: str) -> None:
        build(root)
        repairs(wanted)(root, Disk())

    history = History("undo", repaired, undoes, all_old, undoes, disks=(DISK,), errors=ERRORS)
    assert crash(history).cases > 20
    history = replace(history, counted=unmarked)
    assert fail(history, numbers=(errno.ENOSPC, errno.EIO)).steps > 20


def applies(wanted):
    """Carry out a plan of the first two repairs: with its journal, its locks, and all that is looked at again."""

    def act(root: str, disk: Disk, done: Done | None = None) -> None:
        path = f"{root}/{DISK}"
        actions = tuple(
            Action(
                *(
                    ActionKind.WRITE_PARTITION_METADATA,
                    path,
                    each.path,
                    topic,
                    partition,
                    None,
                    ID,
                    "DAMAGED",
                    "a test",
                ),
                expects=each.expects,
                writes=each.writes,
            )
            for each, (topic, partition) in zip(wanted, (("missing", 0), ("broken", 1)), strict=False)
        )
        log_dirs = (PlannedLogDir(path, "C", 1, None, None),)
        plan = replace(sealed(Plan(1, "a-host", "a user", 1000, {}, log_dirs, (), actions)), fingerprint=FINGERPRINT)
        outcome = apply_plan(plan, ApplyOptions("a-host", "a user", ManualClock(1000), disk))
        if not outcome.is_complete:
            raise ChangeFailedError(f"not all of it was done: {outcome.results}")
        if done is not None:
            done("repaired")

    return act


def both_new(root: str, done: tuple[str, ...]) -> None:
    """The two files are put right and backed up, and no journal says of a run that it goes on."""
    files = [f"{name}/{METADATA}" for name in ("missing-0", "broken-1")]
    assert {name: held(root)[name] for name in files} == {name: NEW[name] for name in files}
    assert kept(root) == {name: OLD[name] for name in files}
    journals = [name for name in os.listdir(f"{root}/{DISK}") if is_run_journal(name)]
    read = [parse_run_journal(Path(f"{root}/{DISK}/{name}").read_bytes()) for name in journals]
    assert all(each.finished_ms is not None for each in read)


def without_journals(tree: Tree) -> Tree:
    """A full disk has no room for a journal either, which keeps no file from being put right."""
    return {path: what for path, what in unmarked(tree).items() if not is_run_journal(path.rpartition("/")[2])}


def test_after_a_crash_the_same_plan_ends_with_its_journals_whole(crash, fail, wanted) -> None:
    act = applies(wanted)
    history = History("apply repairs", build, act, both_new, act, disks=(DISK,), errors=ERRORS)
    assert crash(history).cases > 50
    assert fail(replace(history, counted=without_journals), numbers=(errno.ENOSPC, errno.EIO)).steps > 20
