"""The removal of one staged directory: what it takes, what it never touches, in which order, and how it stops."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from layout.directory_name import parse_staged
from logstore import UnsafePathError
from logstore.fs import Disk
from logstore.log_dir import FallbackRecords, FileHolder, LogDir
from logstore.purge import PurgeRules, measure_removal
from logstore.purge.eligibility import DueDirectory, StagingRoot
from logstore.purge.remove import Removal
from logstore.purge.report import KeptDirectory
from logstore.staging import Placement, RootLedger, open_staging_root, stage
from tests.logstore.engine import (
    NOW_MS,
    ORDERS_ID,
    DiskThat,
    HookedDisk,
    SwappingDisk,
    candidate,
    fill,
    formatted,
    open_descriptors,
)

DUE_MS = NOW_MS + 1000
NAME = f"{ORDERS_ID}_0"


class Noting(HookedDisk):
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def before(self, what: str, *arguments: Any) -> None:
        if what in ("truncate", "unlink", "rmdir"):
            self.steps.append(f"{what} {arguments[1]}")


class Case:
    """One staged directory in a log dir that is ours, and its removal."""

    def __init__(self, log_dir: LogDir, path: Path) -> None:
        self.log_dir, self.path = log_dir, path
        self.directory = path / "deleting" / NAME
        self.holders: dict[int, tuple[FileHolder, ...]] = {}

    def staging(self, rules: PurgeRules | None = None) -> StagingRoot:
        root = open_staging_root(self.log_dir, Placement.INSIDE)
        assert root is not None
        ledger = RootLedger(self.log_dir, root, FallbackRecords(None))
        made = StagingRoot(self.log_dir, Placement.INSIDE, root, rules or PurgeRules(DUE_MS), ledger)
        made.holders = self.holders
        return made

    def judge(self, rules: PurgeRules | None = None) -> DueDirectory | KeptDirectory | None:
        staging = self.staging(rules)
        with staging.root:
            judged = staging.judge(parse_staged(NAME), self.directory.stat().st_ino)
            if not isinstance(judged, DueDirectory):
                return judged
            return staging.kept_in_use(judged) or judged

    def remove(self, rules: PurgeRules | None = None, disk: Disk | None = None) -> DueDirectory:
        due, staging = self.judge(rules), self.staging(rules)
        assert isinstance(due, DueDirectory)
        with staging.root:
            assert Removal(staging, disk or Disk()).remove(due) is due.removed
        return due

    def names(self) -> set[str]:
        return set(os.listdir(self.directory))


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    path = formatted(tmp_path / "disk")
    fill(path / "orders-0")
    before = open_descriptors()
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, [candidate(delay_ms=1000)], NOW_MS)
        yield Case(log_dir, path)
    assert open_descriptors() == before


def test_all_goes_the_directory_last(case: Case) -> None:
    disk, names = Noting(), case.names()
    due = case.remove(disk=disk)
    assert not case.directory.exists()
    assert sorted(disk.steps[:-1]) == sorted(f"unlink {name}" for name in names)
    assert disk.steps[-1] == f"rmdir {NAME}"
    assert (due.files, due.problem, due.cancelled, due.removed) == (3, None, False, True)


def test_its_last_blocks_are_not_given_back_while_others_wait_for_the_staging_root(case: Case) -> None:
    opened: set[int] = set()

    class Watching(Disk):
        """Sees which directories are open here while one is removed: those give nothing back before they are closed."""

        def rmdir(self, parent: int, name: str) -> None:
            for number in os.listdir("/proc/self/fd"):
                with suppress(OSError):  # the listing has a descriptor of its own
                    opened.add(os.fstat(int(number)).st_ino)
            super().rmdir(parent, name)

    inode = case.directory.stat().st_ino
    case.remove(disk=Watching())
    assert inode in opened
    assert not case.directory.exists()


def test_what_is_given_back_is_what_the_disk_had_given_it(case: Case) -> None:
    (case.directory / "00000000000000000000.log").write_bytes(bytes(300_000))
    allocated = sum(512 * each.stat().st_blocks for each in case.directory.iterdir())
    staging = case.staging()
    with staging.root, staging.root.child(NAME) as directory:
        planned = measure_removal(directory, {})
    due = case.remove()
    assert (due.files, due.bytes) == (planned.files, planned.bytes) == (3, allocated)


def test_links_fifos_and_sockets_go_and_nothing_is_followed(case: Case, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("stays")
    (case.directory / "to-a-directory").symlink_to(precious)
    (case.directory / "to-a-file").symlink_to(precious / "file")
    os.mkfifo(case.directory / "fifo")
    inner = case.directory / "inner" / "deeper"
    inner.mkdir(parents=True)
    (inner / "link").symlink_to(precious)
    with socket.socket(socket.AF_UNIX) as server:
        descriptor = os.open(case.directory, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{descriptor}/socket")
        os.close(descriptor)
    case.remove()
    assert not case.directory.exists()
    assert (precious / "file").read_text() == "stays"


def test_a_link_in_the_place_of_the_directory_is_left(case: Case, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    case.directory.rename(moved)
    case.directory.symlink_to(moved)
    due = case.remove()
    assert due.problem is not None
    assert "symbolic link" in due.problem
    assert (due.touched, due.removed) == (False, False)
    assert len(list(moved.iterdir())) == 3


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount")
def test_a_mount_point_inside_stops_it_before_anything_goes(case: Case, tmp_path: Path) -> None:
    other, inside = tmp_path / "other", case.directory / "mounted"
    other.mkdir()
    inside.mkdir()
    (other / "precious").write_text("stays")
    if subprocess.run(["mount", "--bind", other, inside], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        due = case.remove()
        assert due.problem is not None
        assert "mounted" in due.problem
        assert (other / "precious").exists()
        assert len(case.names()) == 4
        assert not due.touched
    finally:
        subprocess.run(["umount", inside], check=True)


def test_directories_nested_without_end_are_left_before_anything_goes(case: Case) -> None:
    (case.directory / "/".join("d" * 40)).mkdir(parents=True)
    due = case.remove()
    assert due.problem is not None
    assert "nested" in due.problem
    assert len(case.names()) == 4
    assert not due.touched
    staging = case.staging()
    with staging.root, staging.root.child(NAME) as directory, pytest.raises(UnsafePathError, match="nested"):
        measure_removal(directory, {})


def segment(case: Case, length: int = 100_000) -> Path:
    path = case.directory / "00000000000000000042.log"
    path.write_bytes(os.urandom(length))
    return path


def test_a_large_segment_is_cut_off_from_its_end_in_steps(case: Case) -> None:
    weight = segment(case).stat().st_blocks * 512
    disk, reported = Noting(), []
    due = case.remove(PurgeRules(DUE_MS, step_bytes=40_000, progress=lambda *step: reported.append(step)), disk)
    assert disk.steps[[step.startswith("truncate") for step in disk.steps].index(True) :][:3] == [
        "truncate 66666",
        "truncate 33333",
        "unlink 00000000000000000042.log",
    ]
    assert due.bytes >= weight
    assert sum(number_of_bytes for _, number_of_bytes in reported) == due.bytes
    assert sum(directories for directories, _ in reported) == 1


def test_a_file_with_another_name_elsewhere_is_unlinked_whole_and_gives_nothing_back(case: Case, tmp_path) -> None:
    path = segment(case)
    content, disk = path.read_bytes(), Noting()
    os.link(path, tmp_path / "backup")
    due = case.remove(PurgeRules(DUE_MS, step_bytes=50_000), disk)
    assert (tmp_path / "backup").read_bytes() == content
    assert not [step for step in disk.steps if step.startswith("truncate")]
    assert due.bytes < len(content)


def test_a_file_that_a_process_holds_is_never_cut_off_and_is_reported(case: Case) -> None:
    status = segment(case).stat()
    case.holders[status.st_ino] = (FileHolder(42, "java"),)
    disk = Noting()
    due = case.remove(PurgeRules(DUE_MS, step_bytes=50_000), disk)
    assert not [step for step in disk.steps if step.startswith("truncate")]
    assert due.held == [(status.st_ino, "00000000000000000042.log", status.st_blocks * 512)]


def test_cancelled_in_the_middle_of_a_segment_it_is_begun_and_goes_on_later(case: Case) -> None:
    path, cancel = segment(case), threading.Event()

    class Cancelling(Noting):
        def truncate(self, descriptor: int, length: int) -> None:
            super().truncate(descriptor, length)
            cancel.set()

    due = case.remove(PurgeRules(DUE_MS, cancel=cancel, step_bytes=20_000), Cancelling())
    assert (due.cancelled, due.touched, due.removed) == (True, True, False)
    assert path.stat().st_size == 83_333
    case.remove()
    assert not case.directory.exists()


def test_what_cannot_be_removed_is_reported_and_is_not_touched(case: Case) -> None:
    due = case.remove(disk=DiskThat(errno.EPERM, {"unlink"}))
    assert due.problem == f"deleting/{NAME} is not purged whole: Operation not permitted"
    assert len(case.names()) == 3
    assert not due.touched


def test_what_cannot_be_removed_to_its_end_is_begun(case: Case) -> None:
    disk = DiskThat(errno.EPERM, {"unlink"})
    disk.after = 2
    due = case.remove(disk=disk)
    assert (len(case.names()), due.touched, due.removed) == (1, True, False)


def test_a_disk_that_fails_ends_it_all(case: Case) -> None:
    with pytest.raises(OSError, match="Input/output error"):
        case.remove(disk=DiskThat(errno.EIO, {"unlink"}))


def test_a_directory_that_was_swapped_meanwhile_is_left_and_one_that_is_gone_is_no_loss(
    case: Case, tmp_path: Path
) -> None:
    due, staging = case.judge(), case.staging()
    assert isinstance(due, DueDirectory)
    with staging.root:
        case.directory.rename(tmp_path / "moved")
        shutil.copytree(tmp_path / "moved", case.directory)
        assert not Removal(staging, Disk()).remove(due)
        assert due.problem is not None
        assert "another directory" in due.problem
        assert len(case.names()) == 3
        shutil.rmtree(case.directory)
        assert Removal(staging, Disk()).remove(due)
        assert (due.files, due.bytes) == (0, 0)


def test_what_appears_in_it_meanwhile_is_not_lost(case: Case) -> None:
    due = case.remove(disk=SwappingDisk(NAME, lambda: (case.directory / "new").write_text("new"), "rmdir"))
    assert due.problem is not None
    assert "something new" in due.problem
    assert (case.directory / "new").read_text() == "new"


def test_a_directory_of_which_a_file_went_meanwhile_is_not_called_gone(case: Case) -> None:
    gone = "leader-epoch-checkpoint"
    due = case.remove(disk=SwappingDisk(gone, (case.directory / gone).unlink, "unlink"))
    assert (due.removed, due.problem) == (False, f"deleting/{NAME} is not purged whole: No such file or directory")
    assert case.directory.exists()


def test_a_link_that_is_larger_than_a_step_is_unlinked_and_not_cut_off(case: Case) -> None:
    link, disk = case.directory / "link", Noting()
    link.symlink_to("/".join(["elsewhere"] * 40))
    if not link.lstat().st_blocks:
        pytest.skip("here a link takes no space of its own")
    for name in case.names() - {"link"}:
        (case.directory / name).unlink()
    due = case.remove(PurgeRules(DUE_MS, step_bytes=1), disk)
    assert (due.problem, disk.steps) == (None, ["unlink link", f"rmdir {NAME}"])


def test_what_lies_deeper_is_measured_and_counted_too(case: Case) -> None:
    inner = case.directory / "inner" / "deeper"
    inner.mkdir(parents=True)
    (inner / "file").write_bytes(os.urandom(50_000))
    number = (inner / "file").stat().st_ino
    files = [each for each in case.directory.rglob("*") if each.is_file()]
    allocated = sum(512 * each.stat().st_blocks for each in files)
    staging = case.staging()
    with staging.root, staging.root.child(NAME) as directory:
        planned = measure_removal(directory, {number: (FileHolder(42, "java"),)})
    assert [inode for inode, *_ in planned.held] == [number]
    due = case.remove()
    assert (due.files, due.bytes) == (planned.files, planned.bytes) == (4, allocated)


@pytest.mark.parametrize(("levels", "is_removed"), [(32, True), (33, False)])
def test_so_many_levels_go_and_one_more_does_not(case: Case, levels: int, is_removed: bool) -> None:
    (case.directory / "/".join("d" * levels)).mkdir(parents=True)
    staging = case.staging()
    with staging.root, staging.root.child(NAME) as directory:
        if is_removed:
            assert measure_removal(directory, {}).files == 3
        else:
            with pytest.raises(UnsafePathError, match="nested"):
                measure_removal(directory, {})
    assert case.remove().removed is is_removed
