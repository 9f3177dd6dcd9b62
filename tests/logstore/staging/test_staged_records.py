"""Files of records in a staging root: how they are written, and how recovery finishes a file that a crash left."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from layout.ours import StagedRecord, staged_record
from layout.topic import TopicPartition
from logstore import OfflineLogDirError
from logstore.fs import Disk
from logstore.log_dir import LogDir
from logstore.staging import Placement, finish_shared_records, list_staged, open_staging_root, records, stage
from logstore.staging.records import sync_shared_records, write_shared_records
from logstore.store import recover
from tests.logstore.engine import NOW_MS, ORDERS_ID, OTHER_ID, DiskThat, candidate, contents, fill, formatted

OTHER = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
NAME = f"{ORDERS_ID}_0"


def record(partition: int = 0, path: str | None = None, topic: str = "t") -> StagedRecord:
    path = path or f"{topic}-{partition}"
    return StagedRecord(topic, partition, ORDERS_ID, path, "STALE_ID", "", NOW_MS, NOW_MS)


@pytest.fixture(params=["ours", "broker"])
def path(request: pytest.FixtureRequest, log_dir: Any, our_log_dir: Path) -> Path:
    found: Path = our_log_dir if request.param == "ours" else log_dir.path
    return found


class LosesLinks(Disk):
    """What a crash leaves that kept every rename, lost every link, and the removal of the files."""

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        """Lose it."""

    def unlink(self, parent: int, name: str) -> None:
        if not name.startswith(staged_record.STAGED_RECORD):
            super().unlink(parent, name)


def crashed(path: Path, placement: Placement | None = None) -> Path:
    """Six replicas that were renamed and have no record; the staging root."""
    for number in range(6):
        fill(path / f"t-{number}")
    candidates = [candidate(f"t-{number}", TopicPartition("t", number)) for number in range(6)]
    log_dir = LogDir.open(str(path), disk=LosesLinks())
    stage(log_dir, candidates, NOW_MS, placement=placement)
    with open_staging_root(log_dir, placement or default(log_dir)) or log_dir.root as root:
        staging_root = Path(os.path.realpath(f"/proc/self/fd/{root.descriptor}"))
        assert staged_record.shared_records_name(0) in os.listdir(root.descriptor)
    log_dir.abandon()
    return staging_root


def default(log_dir: LogDir) -> Placement:
    return Placement.INSIDE if log_dir.is_ours else Placement.SIBLING


def test_replicas_that_lost_their_links_get_them_back_and_the_file_goes(path: Path) -> None:
    root = crashed(path)
    with LogDir.open(str(path)) as log_dir:
        (reported,) = recover(log_dir)
        assert "6 of its replicas had no record yet" in reported
        staged = list_staged(log_dir)
        assert [(each.problem, each.partition) for each in staged] == [
            (None, TopicPartition("t", number)) for number in range(6)
        ]
        assert recover(log_dir) == [], "a second look changes nothing"
    assert [name for name in os.listdir(root) if not (root / name).is_dir()] == []


def test_a_listing_shows_what_recovery_will_make_of_a_file_of_records(path: Path) -> None:
    root = crashed(path)
    with LogDir.open(str(path)) as log_dir:
        before = list_staged(log_dir)
        assert not list(root.glob("*/staged.json"))
        recover(log_dir)
        assert len(before) == 6
        assert list_staged(log_dir) == before


def test_a_left_record_of_another_topic_id_is_not_reported(path: Path) -> None:
    root = crashed(path)
    (root / f"{ORDERS_ID}_3" / "partition.metadata").write_text(OTHER)
    with LogDir.open(str(path)) as log_dir:
        assert [each.name for each in list_staged(log_dir) if each.problem] == [f"{ORDERS_ID}_3"]


def test_strays_get_their_links_back_as_well(log_dir: Any) -> None:
    path: Path = log_dir.path
    assert crashed(path, Placement.IN_PLACE) == path
    with LogDir.open(str(path)) as opened:
        assert len(recover(opened)) == 1
        assert [each.problem for each in list_staged(opened)] == [None] * 6
    assert not (path / staged_record.shared_records_name(0)).exists()


def test_a_file_that_never_became_durable_says_nothing_and_goes(path: Path) -> None:
    root = crashed(path)
    (root / staged_record.shared_records_name(0)).write_bytes(b'{"schema_version": 1, "records": {')
    with LogDir.open(str(path)) as log_dir:
        (reported,) = recover(log_dir)
    assert "did not finish, and is removed" in reported
    assert not list(root.rglob("staged.json*"))


def test_a_record_that_is_there_already_stays(path: Path) -> None:
    root = crashed(path)
    own = staged_record.encode_record(record(3))
    (root / f"{ORDERS_ID}_3" / staged_record.STAGED_RECORD).write_bytes(own)
    with LogDir.open(str(path)) as log_dir:
        recover(log_dir)
    assert (root / f"{ORDERS_ID}_3" / staged_record.STAGED_RECORD).read_bytes() == own


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[tuple[LogDir, Path]]:
    """A log dir of ours, with a live replica and an empty staging root."""
    path = formatted(tmp_path / "ours")
    fill(path / "t-0")
    with LogDir.open(str(path)) as log_dir, log_dir.changing("it is marked"):
        yield log_dir, path / "deleting"


def planted(inside: tuple[LogDir, Path], records: dict[str, StagedRecord]) -> list[str]:
    """Recover a staging root that holds a file with these records."""
    log_dir, root = inside
    (root / staged_record.shared_records_name(0)).write_bytes(staged_record.encode_records(records))
    return recovered(log_dir)


def recovered(log_dir: LogDir) -> list[str]:
    root = open_staging_root(log_dir, Placement.INSIDE)
    assert root is not None
    with root:
        return list(finish_shared_records(log_dir, Placement.INSIDE, root))


@pytest.mark.parametrize("name", ["../t-0", "..", ".", "t-0", f"{ORDERS_ID}_0", "nothing", "nothing/t-0", ""])
def test_no_name_in_a_file_leads_to_anything_but_a_staged_replica(inside: tuple[LogDir, Path], name: str) -> None:
    log_dir, root = inside
    fill(root / "t-0")
    before = contents(Path(log_dir.path))
    assert len(planted(inside, {name: record()})) == 1
    assert contents(Path(log_dir.path)) == before


def staged_as(change: Callable[[Path], Any]) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        fill(root / NAME)
        change(root / NAME)

    return make


@pytest.mark.parametrize(
    "make",
    [
        staged_as(lambda path: (path / "partition.metadata").unlink()),
        staged_as(lambda path: (path / "partition.metadata").write_text(OTHER)),
        lambda root: (root / NAME).mkdir(),
        lambda root: (root / NAME).write_text("a file"),
        lambda root: (root / NAME).symlink_to(root.parent / "t-0"),
    ],
)
def test_what_is_not_the_replica_of_a_record_does_not_get_it(
    inside: tuple[LogDir, Path], make: Callable[[Path], None]
) -> None:
    log_dir, root = inside
    make(root)
    before = contents(Path(log_dir.path))
    planted(inside, {NAME: record()})
    assert contents(Path(log_dir.path)) == before


@pytest.mark.parametrize("wrong", [record(1), replace(record(), topic_id=OTHER_ID), record(path="../t-0")])
def test_a_record_that_speaks_of_another_replica_is_not_given(inside: tuple[LogDir, Path], wrong: StagedRecord) -> None:
    fill(inside[1] / NAME)
    planted(inside, {NAME: wrong})
    assert not (inside[1] / NAME / staged_record.STAGED_RECORD).exists()


def test_a_file_goes_when_the_links_to_it_are_durable(path: Path) -> None:
    class Noted(Disk):
        steps: ClassVar[list[str]] = []

        def link(self, source: int, name: str, target: int, new_name: str) -> None:
            super().link(source, name, target, new_name)
            self.steps.append(f"link {os.readlink(f'/proc/self/fd/{target}')}")

        def sync(self, descriptor: int) -> None:
            super().sync(descriptor)
            self.steps.append(f"synced {os.readlink(f'/proc/self/fd/{descriptor}')}")

        def unlink(self, parent: int, name: str) -> None:
            super().unlink(parent, name)
            self.steps.append(f"unlink {name}")

    root = crashed(path)
    with LogDir.open(str(path), disk=Noted()) as log_dir:
        recover(log_dir)
    before = Noted.steps[: Noted.steps.index(f"unlink {staged_record.shared_records_name(0)}")]
    linked = [step.removeprefix("link ") for step in before if step.startswith("link ")]
    assert len(linked) == 6
    assert all(f"synced {directory}" in before[before.index(f"link {directory}") :] for directory in linked)
    assert f"synced {root}" in Noted.steps[len(before) :]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to(path.parent.parent / "t-0/x")])
def test_a_fifo_or_a_link_in_its_place_goes(inside: tuple[LogDir, Path], make: Callable[[Path], None]) -> None:
    log_dir, root = inside
    make(root / staged_record.shared_records_name(7))
    assert len(recovered(log_dir)) == 1
    assert os.listdir(root) == []


@pytest.mark.parametrize(
    "name", [staged_record.shared_records_name(0), "staged.json", "staged.json.x.tmp", "staged.json.1.tmp.old"]
)
def test_what_has_not_its_name_or_is_a_directory_is_left(inside: tuple[LogDir, Path], name: str) -> None:
    log_dir, root = inside
    (root / name).mkdir() if name == staged_record.shared_records_name(0) else (root / name).touch()
    assert recovered(log_dir) == []
    assert os.listdir(root) == [name]


def test_a_link_that_the_system_refuses_keeps_the_file_for_the_next_open(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = crashed(path)
    disk = DiskThat(errno.EACCES, {"link"})
    with LogDir.open(str(path), disk=disk) as log_dir:
        assert recover(log_dir) == []
        assert log_dir.leave_unclean
    assert (root / staged_record.shared_records_name(0)).exists()
    assert "cannot get its record back: Permission denied" in caplog.text
    with LogDir.open(str(path)) as log_dir:
        assert len(recover(log_dir)) == 1
        assert {staged.problem for staged in list_staged(log_dir)} == {None}


def test_a_disk_that_fails_at_it_goes_offline_and_the_file_stays(path: Path) -> None:
    root = crashed(path)
    with (
        LogDir.open(str(path), disk=DiskThat(errno.EIO, {"link"})) as log_dir,
        pytest.raises(OfflineLogDirError),
    ):
        recover(log_dir)
    assert (root / staged_record.shared_records_name(0)).exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_file_that_finds_no_room_is_not_there(inside: tuple[LogDir, Path], number: int) -> None:
    log_dir, root = inside
    with open_staging_root(log_dir, Placement.INSIDE) or log_dir.root as opened:
        assert not write_shared_records(DiskThat(number, {"write"}), opened, 0, {NAME: record()})
        assert os.listdir(root) == []
        with pytest.raises(OSError, match="Input/output error"):
            write_shared_records(DiskThat(errno.EIO, {"write"}), opened, 0, {NAME: record()})


def test_a_file_too_long_for_its_reader_is_not_written(
    inside: tuple[LogDir, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dir, root = inside
    monkeypatch.setattr(records, "STAGED_RECORD_LIMIT", 50)
    with open_staging_root(log_dir, Placement.INSIDE) or log_dir.root as opened:
        assert not write_shared_records(log_dir.disk, opened, 0, {NAME: record()})
    assert os.listdir(root) == []


def test_each_file_is_synced_and_their_entries_once(inside: tuple[LogDir, Path]) -> None:
    log_dir, _ = inside
    disk = DiskThat()
    with open_staging_root(log_dir, Placement.INSIDE) or log_dir.root as opened:
        for number in range(3):
            assert write_shared_records(disk, opened, number, {NAME: record()})
        assert disk.calls.get("sync", 0) == 0
        sync_shared_records(disk, opened, range(3))
    assert disk.calls["sync"] == 4
