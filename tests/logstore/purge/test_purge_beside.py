"""A purge beside a running broker: what is staged beside its log dir goes, and the log dir itself is only read."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from layout import meta_properties
from layout.ours import LedgerEvent
from layout.scheme import LEDGER_FILE, UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore import ChangeRefusedError, OfflineLogDirError
from logstore.fs import TEMPORARY, Directory, Disk
from logstore.log_dir import FallbackRecords, LogDir, ReadOnlyLogDir, StagingBeside
from logstore.log_dir.lock import Lock
from logstore.purge import LogDirPurge, PurgeRules, planned_purge, purge
from logstore.staging import Placement, find_staged, planned_restore, restore, stage
from logstore.store import recover_all
from tests.logstore.engine import NOW_MS, DiskThat, candidate, fill, formatted, identity, ledger_events, picture

LATER_MS = NOW_MS + 1_000_000


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A real broker's log dir: three replicas are staged beside it, two in it, and one is live."""
    root = tmp_path / "kafka"
    for number in range(6):
        fill(root / f"orders-{number}")
    (root / "meta.properties").write_bytes(meta_properties.encode(identity(scheme=None), "today"))
    with LogDir.open(str(root)) as log_dir:
        for placement, numbers in ((Placement.SIBLING, (0, 1, 2)), (Placement.IN_PLACE, (3, 4))):
            wanted = [
                candidate(f"orders-{number}", TopicPartition("orders", number), delay_ms=1000 * (number % 3 + 1))
                for number in numbers
            ]
            stage(log_dir, wanted, NOW_MS, placement=placement)
    return root


@pytest.fixture(autouse=True)
def running(broker: Path) -> Iterator[Lock]:
    """What the broker holds while it runs."""
    with Directory.open(str(broker)) as opened:
        lock = Lock.take(opened, Disk())
        yield lock
        lock.release()


def beside_purge(broker: Path, rules: PurgeRules, disk: Disk | None = None, **options: int) -> LogDirPurge:
    with StagingBeside.open(str(broker), disk=disk) as beside:
        (report,) = purge([beside], rules, **options).log_dirs
    return report


def partitions(broker: Path) -> list[int]:
    with ReadOnlyLogDir.open(str(broker)) as log_dir:
        return sorted(each.partition.partition for each in find_staged(log_dir) if each.partition)


@pytest.mark.parametrize("workers", [1, 3])
def test_what_is_due_beside_goes_and_what_is_due_in_the_log_dir_is_counted(broker: Path, workers: int) -> None:
    before = picture(broker, but=())
    report = beside_purge(broker, PurgeRules(NOW_MS + 2000), workers=workers)
    assert [str(each.partition) for each in report.purged] == ["orders-0", "orders-1"]
    assert (report.is_whole, report.waiting, report.not_due) == (True, 2, 1)
    assert partitions(broker) == [2, 3, 4]
    assert picture(broker, but=()) == before, "something in the broker's log dir was touched"
    said = [*ledger_events(broker.parent / "kafka.deleting").values()]
    assert said == [LedgerEvent.PURGED, LedgerEvent.PURGED, LedgerEvent.STAGED]


def test_a_staging_root_that_was_made_after_the_purge_began_is_not_touched_without_its_lock(broker: Path) -> None:
    root, aside = broker.parent / "kafka.deleting", broker.parent / "aside"
    root.rename(aside)
    with StagingBeside.open(str(broker)) as beside:
        aside.rename(root)
        (report,) = purge([beside], PurgeRules(LATER_MS)).log_dirs
    assert (report.purged, report.failures, report.error) == ([], [], None)
    assert partitions(broker) == [0, 1, 2, 3, 4]


def test_a_dry_run_says_the_same(broker: Path) -> None:
    rules = PurgeRules(NOW_MS + 1000)
    with ReadOnlyLogDir.open(str(broker)) as log_dir:
        planned = planned_purge(log_dir, rules, beside=True)
    report = beside_purge(broker, rules)
    assert (planned.purged, planned.waiting, planned.not_due) == (report.purged, report.waiting, report.not_due)
    assert (len(planned.purged), planned.waiting, planned.not_due) == (1, 1, 3)


def test_when_the_broker_is_stopped_the_rest_goes(broker: Path, running: Lock) -> None:
    beside_purge(broker, PurgeRules(LATER_MS))
    running.release()
    with LogDir.open(str(broker)) as log_dir:
        (report,) = purge([log_dir], PurgeRules(LATER_MS)).log_dirs
    assert (len(report.purged), report.waiting, partitions(broker)) == (2, 0, [])


def test_cut_short_it_has_said_so_beside_and_half_a_replica_is_never_restored(broker: Path, tmp_path: Path) -> None:
    before = picture(broker, but=())
    disk = DiskThat(errno.EIO, {"unlink"}, below=tmp_path / "kafka.deleting")
    report = beside_purge(broker, PurgeRules(NOW_MS + 2000), disk, workers=1)
    assert "Input/output error" in str(report.error)
    said = [*ledger_events(tmp_path / "kafka.deleting").values()]
    assert said == [LedgerEvent.PURGING, LedgerEvent.PURGING, LedgerEvent.STAGED]
    assert picture(broker, but=()) == before
    with ReadOnlyLogDir.open(str(broker)) as log_dir:
        for staged in find_staged(log_dir):
            if staged.placement is Placement.SIBLING and staged.is_due(NOW_MS + 2000):
                with pytest.raises(ChangeRefusedError, match="only be purged"):
                    planned_restore(log_dir, staged)
            else:
                assert planned_restore(log_dir, staged).log_dir == str(broker)
    assert beside_purge(broker, PurgeRules(NOW_MS + 2000)).is_whole
    assert partitions(broker) == [2, 3, 4]


def test_cancelled_it_names_what_is_partly_gone_in_the_staging_root(broker: Path, tmp_path: Path) -> None:
    cancel = threading.Event()
    rules = PurgeRules(LATER_MS, cancel=cancel, progress=lambda *_: cancel.set())
    assert beside_purge(broker, rules, workers=1).cancelled
    said = sorted(ledger_events(tmp_path / "kafka.deleting").values())
    assert said == [LedgerEvent.PURGING, LedgerEvent.STAGED, LedgerEvent.STAGED]
    assert set(ledger_events(broker).values()) == {LedgerEvent.STAGED}


def test_what_a_killed_purge_left_half_written_beside_goes_with_the_recovery_of_the_log_dir(
    broker: Path, tmp_path: Path, running: Lock
) -> None:
    draft = tmp_path / "kafka.deleting" / (LEDGER_FILE + TEMPORARY)
    draft.write_bytes(b"half a ledger")
    assert beside_purge(broker, PurgeRules(NOW_MS + 1000)).is_whole, "a draft is in nobody's way"
    running.release()
    (broker / UNCLEAN_FILE).touch()
    with LogDir.open(str(broker)) as log_dir:
        recover_all([log_dir], FallbackRecords(None))
    assert not draft.exists()
    assert partitions(broker) == [1, 2, 3, 4]


def test_after_its_disk_failed_it_is_not_used_again(broker: Path, tmp_path: Path) -> None:
    disk = DiskThat(errno.EIO, {"unlink"}, below=tmp_path / "kafka.deleting")
    with StagingBeside.open(str(broker), disk=disk) as beside:
        assert purge([beside], PurgeRules(LATER_MS)).log_dirs[0].error is not None
        with pytest.raises(OfflineLogDirError):
            beside.check_online()
        (again,) = purge([beside], PurgeRules(LATER_MS)).log_dirs
    assert again.error is not None and again.purged == []


def test_what_lies_in_a_log_dir_that_is_ours_waits_whole(tmp_path: Path) -> None:
    ours = formatted(tmp_path / "ours")
    fill(ours / "orders-0")
    with LogDir.open(str(ours)) as log_dir:
        stage(log_dir, [candidate()], NOW_MS)
        before = picture(ours, but=())
        report = beside_purge(ours, PurgeRules(NOW_MS + 86_400_000))
        assert (report.purged, report.waiting, picture(ours, but=())) == ([], 1, before)
        (staged,) = find_staged(log_dir)
        assert restore(log_dir, staged).path == "orders-0"
