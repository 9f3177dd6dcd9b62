"""Strays that a broker left get a due time where they lie."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from layout.ours import LedgerEvent
from layout.scheme import LEDGER_FILE
from logstore import ChangeFailedError, ChangeRefusedError
from logstore.fs import Disk
from logstore.log_dir import FallbackRecords, LogDir
from logstore.purge import PurgeRules, purge
from logstore.staging import BROKERS_STRAY, Placement, Staged, adopt_stray, forget_stray, list_staged
from tests.logstore.engine import (
    NOW_MS,
    ORDERS,
    ORDERS_ID,
    DiskThat,
    contents_but_ledgers,
    fill,
    formatted,
    full_disk,
    identity,
    ledger_entries,
    ledger_events,
    picture,
)

NAME = f"orders-0.{'0123456789abcdef' * 2}-stray"
REASON = ("STRAY", "nobody wants it")


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A real broker's log dir with a stray."""
    from layout import meta_properties

    root = tmp_path / "kafka"
    fill(root / NAME)
    (root / "meta.properties").write_bytes(meta_properties.encode(identity(scheme=None), "today"))
    return root


def only(log_dir: LogDir) -> Staged:
    (stray,) = list_staged(log_dir)
    return stray


def test_it_stays_where_it_is_until_its_time_has_come_and_then_a_purge_takes_it(broker: Path) -> None:
    with LogDir.open(str(broker)) as log_dir:
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
        stray = only(log_dir)
        assert (stray.partition, stray.topic_id, stray.due_ms) == (ORDERS, ORDERS_ID, NOW_MS + 1000)
        assert stray.record is not None and (stray.record.verdict, stray.record.path) == ("STRAY", "orders-0")
        purge([log_dir], PurgeRules(NOW_MS + 999))
        assert (broker / NAME).exists()
        purge([log_dir], PurgeRules(NOW_MS + 1000))
        assert not (broker / NAME).exists()


def test_its_due_time_is_logged_as_a_date(broker: Path, caplog: pytest.LogCaptureFixture) -> None:
    with LogDir.open(str(broker)) as log_dir:
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
    assert caplog.messages == [
        f"{broker}/{NAME}: it may be purged from 2023-11-14 22:13:21 UTC on, because of STRAY; 'logstore purge' does it"
    ]


def test_a_line_of_the_ledger_is_all_that_is_added(broker: Path) -> None:
    before, stray = contents_but_ledgers(broker), picture(broker / NAME)
    with LogDir.open(str(broker)) as log_dir:
        record = adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
    assert (contents_but_ledgers(broker), picture(broker / NAME)) == (before, stray)
    assert ledger_entries(broker)[NAME].record == record


@pytest.mark.parametrize("times", [1, 2])
def test_its_due_time_is_taken_back_and_may_be_given_again(broker: Path, times: int) -> None:
    before, stray = contents_but_ledgers(broker), picture(broker / NAME)
    with LogDir.open(str(broker)) as log_dir:
        listed = only(log_dir)
        for _ in range(times):
            adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
            forget_stray(log_dir, only(log_dir))
            assert only(log_dir) == listed
        purge([log_dir], PurgeRules(NOW_MS + 1000))
        assert (only(log_dir).problem, only(log_dir).due_ms) == (BROKERS_STRAY, None)
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 2000)
        assert only(log_dir).due_ms == NOW_MS + 2000
    assert (contents_but_ledgers(broker), picture(broker / NAME)) == (before, stray)


def test_what_is_taken_back_is_so_after_a_crash(broker: Path) -> None:
    synced: list[str] = []

    class Noted(Disk):
        def sync(self, descriptor: int) -> None:
            super().sync(descriptor)
            synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))

    with LogDir.open(str(broker), disk=Noted()) as log_dir:
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
        assert LEDGER_FILE in synced
        synced.clear()
        forget_stray(log_dir, only(log_dir))
        assert LEDGER_FILE in synced
    assert ledger_events(broker) == {NAME: LedgerEvent.RESTORED}


def test_a_due_time_in_the_folder_for_spare_records_is_taken_back_there_and_never_left_in_silence(
    broker: Path, tmp_path: Path
) -> None:
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(broker)) as log_dir:
        with fallback.ledger(log_dir.path, make=True) as other:
            assert other is not None
            other.stage({NAME: adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)})
        log_dir.ledgers.close()
        (broker / LEDGER_FILE).unlink()
        (listed,) = list_staged(log_dir, fallback)
        with pytest.raises(ChangeRefusedError, match="name the folder for spare records"):
            forget_stray(log_dir, listed)
        forget_stray(log_dir, listed, fallback=fallback)
        assert [each.due_ms for each in list_staged(log_dir, fallback)] == [None]


def test_only_a_stray_that_has_a_due_time_and_was_listed_loses_it(broker: Path) -> None:
    with LogDir.open(str(broker)) as log_dir:
        listed = only(log_dir)
        with pytest.raises(ChangeRefusedError, match="is no stray with a record"):
            forget_stray(log_dir, listed)
        adopt_stray(log_dir, listed, REASON, NOW_MS, 1000)
        adopted = only(log_dir)
        with pytest.raises(ChangeRefusedError, match="is no stray with a record"):
            forget_stray(log_dir, adopted._replace(placement=Placement.SIBLING))
        with pytest.raises(ChangeRefusedError, match="list again"):
            forget_stray(log_dir, adopted._replace(inode=1))
        assert only(log_dir) == adopted


def test_one_that_a_purge_may_have_begun_keeps_its_due_time(broker: Path) -> None:
    with LogDir.open(str(broker)) as log_dir:
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
        log_dir.ledgers.of(log_dir.root).note(LedgerEvent.PURGING, [NAME], durable=True)
        with pytest.raises(ChangeRefusedError, match="it can only be purged"):
            forget_stray(log_dir, only(log_dir))
        assert only(log_dir).may_be_partly_purged


def test_what_cannot_be_written_leaves_nothing(broker: Path) -> None:
    with LogDir.open(str(broker)) as log_dir:
        stray = only(log_dir)
    before = picture(broker / NAME)
    with LogDir.open(str(broker), disk=DiskThat(errno.ENOSPC, {"write"})) as log_dir:
        with pytest.raises(ChangeFailedError):
            adopt_stray(log_dir, stray, REASON, NOW_MS, 1000)
        assert only(log_dir) == stray
    assert picture(broker / NAME) == before
    assert not (broker / LEDGER_FILE).exists()


def test_on_a_full_disk_the_room_that_the_ledger_has_is_enough(broker: Path) -> None:
    disk = full_disk()
    with LogDir.open(str(broker), disk=disk) as log_dir:
        disk.fails = set()
        log_dir.ledgers.of(log_dir.root)
        disk.fails = {"write", "mkdir"}
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
        forget_stray(log_dir, only(log_dir))
        assert only(log_dir).record is None


def test_another_directory_one_without_a_name_and_one_with_a_record_are_refused(broker: Path) -> None:
    with LogDir.open(str(broker)) as log_dir:
        stray = only(log_dir)
        for other in (
            stray._replace(inode=1),
            stray._replace(found_partition=None),
            stray._replace(placement=Placement.SIBLING),
        ):
            with pytest.raises(ChangeRefusedError):
                adopt_stray(log_dir, other, REASON, NOW_MS, 1000)
        adopt_stray(log_dir, stray, REASON, NOW_MS, 1000)
        with pytest.raises(ChangeRefusedError):
            adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
        with pytest.raises(ChangeRefusedError, match="has a line in"):
            adopt_stray(log_dir, stray, REASON, NOW_MS, 1000)


def test_in_a_log_dir_that_is_ours_a_stray_gets_its_due_time_in_the_same_way(tmp_path: Path) -> None:
    ours = formatted(tmp_path / "ours")
    fill(ours / NAME)
    with LogDir.open(str(ours)) as log_dir:
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
        forget_stray(log_dir, only(log_dir))
        assert only(log_dir).problem == BROKERS_STRAY
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
    with LogDir.open(str(ours)) as log_dir:
        assert only(log_dir).due_ms == NOW_MS + 1000
        purge([log_dir], PurgeRules(NOW_MS + 1000))
        assert not (ours / NAME).exists() and list_staged(log_dir) == []
