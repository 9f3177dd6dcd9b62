"""The ledger of a folder, crashed and failed at every step: what it was told lasts, and nothing looks damaged."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from layout.ids import TopicId
from layout.ours import LedgerEvent, StagedRecord, parse_ledger
from layout.scheme import LEDGER_FILE
from logstore.fs import Directory, Disk, remove_file
from logstore.fs.durable import TEMPORARY
from logstore.log_dir.ledger import LedgerFile
from tests.crash.broken_disks import NoFileSynced, NothingSynced
from tests.crash.histories import Done, Driver, History, WrongError
from tests.crash.images import read_tree

ID = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")
NAMES = [f"{ID}_{number}" for number in range(6)]
RECORDS = {
    name: StagedRecord("orders", number, ID, f"orders-{number}", "STALE_ID", "", 1000, 2000)
    for number, name in enumerate(NAMES)
}
STAGED, RESTORED, PURGING, PURGED, KEPT = LedgerEvent
ORDER = [STAGED, PURGING, PURGED]


def stage(file: LedgerFile, done: Done, *names: str) -> None:
    file.stage({name: RECORDS[name] for name in names})
    for name in names:
        done(f"staged {name}")


def lives(root: str, disk: Disk, done: Done) -> None:
    """Stage, purge and compact, as staging and purging will."""
    with Directory.open(root) as folder, LedgerFile.open(disk, folder) as file:
        stage(file, done, *NAMES[:3])
        file.note(PURGING, NAMES[:2], durable=True)
        for name in NAMES[:2]:
            done(f"purging {name}")
        file.note(PURGED, NAMES[:2], durable=False)
        stage(file, done, *NAMES[3:5])
        done("about to compact")
        file.compact(NAMES[2:5], least=1)
        stage(file, done, NAMES[5])


def reopens(root: str, disk: Disk) -> None:
    """What a recovery will do."""
    with Directory.open(root) as folder:
        remove_file(disk, folder, LEDGER_FILE + TEMPORARY)
        LedgerFile.open(disk, folder).close()


def lasts(root: str, done: tuple[str, ...]) -> None:
    """What was said to be durable stands in the ledger, or something later; of the rest nothing looks damaged."""
    data = read_tree(root)[LEDGER_FILE]
    assert isinstance(data, bytes)
    found = parse_ledger(data)
    assert found.damaged == []
    assert found.torn == []
    for name, entry in found.entries.items():
        assert entry.record == RECORDS[name]
        assert not entry.in_doubt
    compacting = "about to compact" in done
    for text in done:
        what, _, name = text.partition(" ")
        if name in RECORDS and not (compacting and name in NAMES[:2]):
            assert name in found.entries, f"{text}, and nothing is said of it any more"
            assert ORDER.index(found.entries[name].event) >= ORDER.index(LedgerEvent(what))
    if not compacting:
        unsaid = [name for name in NAMES[:2] if f"purging {name}" not in done and f"staged {name}" in done]
        assert all(found.entries[name].event in (STAGED, PURGING) for name in unsaid)


HISTORY = History("ledger", lambda root: None, lives, lasts, reopens, many_ends=True)


def test_what_it_was_told_lasts_whenever_it_crashes(crash: Driver) -> None:
    assert crash(HISTORY).cases >= 40


def test_what_it_was_told_lasts_when_a_failure_is_followed_by_a_crash(crash_after_failure: Driver) -> None:
    assert crash_after_failure(HISTORY).cases >= 80


def test_whichever_step_fails_it_can_be_read_and_goes_on(fail: Driver) -> None:
    assert fail(HISTORY).steps >= 20


def test_on_a_full_disk_the_space_that_it_keeps_is_used(fail: Driver) -> None:
    assert fail(HISTORY, numbers=[errno.ENOSPC]).steps >= 20


@pytest.mark.parametrize("broken", [NothingSynced, NoFileSynced])
def test_without_its_syncs_this_would_be_found_out(broken: type, crash: Driver) -> None:
    with pytest.raises(WrongError):
        crash(HISTORY, recorder=broken)


def goes_on(root: str, disk: Disk, done: Done) -> None:
    """Go on after a sync that failed, as if that were a small matter."""
    with Directory.open(root) as folder, LedgerFile.open(disk, folder) as file:
        for name in NAMES[:4]:
            try:
                stage(file, done, name)
            except OSError:
                done("failed")


def said_lasts(root: str, done: tuple[str, ...]) -> None:
    lasts(root, tuple(text for text in done if text != "failed"))


def test_what_is_staged_after_a_failure_lasts_too(crash_after_failure: Driver) -> None:
    history = replace(HISTORY, name="ledger that goes on", act=goes_on, check=said_lasts)
    assert crash_after_failure(history).cases >= 60
