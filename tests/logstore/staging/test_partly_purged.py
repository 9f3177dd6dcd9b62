"""The note of a purge: a directory that a purge may have emptied in part is never restored."""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from layout.scheme import PURGE_NOTE_FILE
from logstore import ChangeRefusedError
from logstore.log_dir import LogDir
from logstore.purge import PurgeRules, purge
from logstore.staging import (
    EVERYTHING_DUE,
    PurgeNote,
    begin_purge,
    drop_spent_note,
    end_purge,
    list_staged,
    partly_purged,
    planned_restore,
    restore,
    was_purged_beside,
)
from logstore.staging.partly_purged import read_purge_note
from tests.logstore.engine import NOW_MS, DiskThat, formatted
from tests.logstore.purge.test_purge import LATER_MS, only, staged


def test_while_a_purge_is_under_way_what_was_due_cannot_come_back_and_the_rest_can(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 2) as log_dir:
        first, second = list_staged(log_dir)
        begin_purge(log_dir.disk, log_dir.root, NOW_MS + 1000)
        with pytest.raises(ChangeRefusedError, match="only be purged"):
            planned_restore(log_dir, first)
        assert planned_restore(log_dir, second).path == "orders-1"


def test_an_orderly_purge_leaves_no_note(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 3) as log_dir:
        only(log_dir, PurgeRules(NOW_MS + 1000))
        assert read_purge_note(log_dir.root) == PurgeNote()
        assert not (tmp_path / "disk" / PURGE_NOTE_FILE).exists()
        assert len([restore(log_dir, each) for each in list_staged(log_dir)]) == 2


def test_cancelled_it_names_what_is_partly_gone_and_only_that(tmp_path: Path) -> None:
    cancel = threading.Event()
    with staged(tmp_path / "disk", 3) as log_dir:
        only(log_dir, PurgeRules(LATER_MS, cancel=cancel, progress=lambda *_: cancel.set()), workers=1)
        refused = []
        for each in list_staged(log_dir):
            try:
                planned_restore(log_dir, each)
            except ChangeRefusedError:
                refused.append(each.location)
        assert refused == list(read_purge_note(log_dir.root).directories)
        assert len(refused) == 1
        only(log_dir, PurgeRules(LATER_MS))
        assert read_purge_note(log_dir.root) == PurgeNote()


def test_after_a_crash_a_purge_of_some_or_one_that_fails_does_not_vouch_for_the_others(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 3) as log_dir:
        begin_purge(log_dir.disk, log_dir.root, LATER_MS)
        names = [each.location for each in list_staged(log_dir)]
        only(log_dir, PurgeRules(LATER_MS, only=lambda each: each.location == names[0]))
        assert read_purge_note(log_dir.root).due_by_ms == LATER_MS
        log_dir.disk = DiskThat(errno.EPERM, {"unlink"}, below=tmp_path / "disk" / names[1])
        only(log_dir, PurgeRules(LATER_MS))
        assert read_purge_note(log_dir.root).due_by_ms == LATER_MS
        log_dir.disk = DiskThat()
        only(log_dir, PurgeRules(LATER_MS))
        assert read_purge_note(log_dir.root) == PurgeNote()


def test_a_purge_before_the_due_time_is_noted_for_everything(tmp_path: Path) -> None:
    noted = []
    with staged(tmp_path / "disk", 1) as log_dir:
        only(
            log_dir,
            PurgeRules(
                NOW_MS, before_due=True, progress=lambda *_: noted.append(read_purge_note(log_dir.root).due_by_ms)
            ),
        )
    assert set(noted) == {EVERYTHING_DUE}


def test_a_later_one_of_the_same_name_is_not_meant(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 1) as log_dir:
        (found,) = list_staged(log_dir)
        assert found.record is not None
        note = PurgeNote(None, {found.location: found.record.staged_ms})
        assert note.covers(found)
        assert not note.covers(replace(found, record=replace(found.record, staged_ms=NOW_MS + 1, due_ms=NOW_MS + 1)))
        assert not PurgeNote(EVERYTHING_DUE).covers(replace(found, record=None))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text('{"schema_version": 2, "due_by_ms": null, "directories": {}}'),
        lambda path: path.write_text('{"schema_version": 1, "due_by_ms": "x", "directories": {}}'),
        lambda path: path.write_text('{"schema_version": 1, "due_by_ms": null, "directories": {"a": "b"}}'),
        lambda path: path.mkdir(),
    ],
)
def test_a_note_that_cannot_be_read_vouches_for_nothing(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    path = formatted(tmp_path / "disk")
    spoil(path / PURGE_NOTE_FILE)
    with LogDir.open(str(path)) as log_dir:
        assert read_purge_note(log_dir.root).due_by_ms == EVERYTHING_DUE


def test_a_full_disk_is_purged_without_a_note_and_that_is_said(tmp_path: Path, caplog) -> None:
    caplog.set_level(logging.WARNING, partly_purged.__name__)
    with staged(tmp_path / "disk", 1, disk=DiskThat(errno.ENOSPC, {"write"})) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS)).purged) == 1
    assert "no room to note" in caplog.text


def test_a_note_that_cannot_be_written_otherwise_stops_the_purge(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 1, disk=DiskThat(errno.EACCES, {"write"})) as log_dir:
        (report,) = purge([log_dir], PurgeRules(LATER_MS)).log_dirs
        assert "Permission denied" in str(report.error)
        assert report.purged == []


def test_a_note_that_covers_nothing_any_more_is_dropped_and_one_that_does_stays(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 2) as log_dir:
        found = list_staged(log_dir)
        assert not drop_spent_note(log_dir.disk, log_dir.root, found), "there is none"
        begin_purge(log_dir.disk, log_dir.root, NOW_MS + 1000)
        assert not drop_spent_note(log_dir.disk, log_dir.root, found)
        assert drop_spent_note(log_dir.disk, log_dir.root, found[1:])
        assert read_purge_note(log_dir.root) == PurgeNote()
        begin_purge(log_dir.disk, log_dir.root, NOW_MS + 1)
        only(log_dir, PurgeRules(NOW_MS))
        assert read_purge_note(log_dir.root) == PurgeNote(), "a purge that finds nothing due does it too"
        assert not was_purged_beside(log_dir), "of a log dir that is ours its own mark speaks"


def test_the_end_takes_the_note_away_or_says_what_is_left(tmp_path: Path) -> None:
    with LogDir.open(str(formatted(tmp_path / "disk"))) as log_dir:
        end_purge(log_dir.disk, log_dir.root, PurgeNote(None, {"deleting/x": 5}))
        assert read_purge_note(log_dir.root) == PurgeNote(None, {"deleting/x": 5})
        assert begin_purge(log_dir.disk, log_dir.root, 7) == PurgeNote(None, {"deleting/x": 5})
        assert read_purge_note(log_dir.root) == PurgeNote(7, {"deleting/x": 5})
        end_purge(log_dir.disk, log_dir.root, PurgeNote())
        end_purge(log_dir.disk, log_dir.root, PurgeNote())
        assert read_purge_note(log_dir.root) == PurgeNote()
