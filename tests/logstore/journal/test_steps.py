"""The steps of a change, each done twice: the second time there is nothing left to do.

# KIP37-3 KIP516-12
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from layout.ours import IntentStep, MakeDirectory, RemoveDirectory, Rename, RenameEntries, Rewrite, Stage, inverse_steps
from layout.scheme import Scheme
from logstore import ChangeFailedError, ChangeRefusedError, OfflineLogDirError
from logstore.journal.steps import do_steps
from logstore.log_dir import FallbackRecords, LogDir
from logstore.staging import list_staged, stage
from tests.logstore.engine import (
    NOW_MS,
    ORDERS_ID,
    SHIPPED,
    DiskThat,
    Picture,
    candidate,
    contents,
    contents_as_told,
    fill,
    formatted,
    read_offsets,
    without_copy_numbers,
    write_offsets,
)

Do = Callable[..., None]
IDENTITY = "#\n#x\nversion=1\ncluster.id=C\nnode.id=1\nlogstore.scheme="


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log dir with three replicas and a file of recovery points."""
    path = formatted(tmp_path / "d", scheme="namespaced")
    for number in range(3):
        fill(path / f"orders-{number}")
    write_offsets(path, {("clicks", 0): 8, ("orders", 0): 7})
    return path


@pytest.fixture
def disk() -> DiskThat:
    return DiskThat(errno.EACCES)


@pytest.fixture
def log_dir(path: Path, disk: DiskThat) -> Iterator[LogDir]:
    with LogDir.open(str(path), disk=disk) as log_dir:
        yield log_dir


@pytest.fixture
def do(log_dir: LogDir) -> Do:
    """Does steps: ``do(step, step, resuming=True)``."""

    def done(*steps: IntentStep, resuming: bool = False) -> None:
        do_steps(log_dir, steps, "try the steps", resuming=resuming, fallback=FallbackRecords(None))

    return done


def stage_step(number: int = 0) -> Stage:
    return Stage(0, f"orders-{number}", "orders", number, str(ORDERS_ID), "V", "because", NOW_MS, NOW_MS + 5)


def seen(path: Path) -> Picture:
    """What a log dir holds, but for the numbers in the names of staged directories: no name is used twice."""
    return without_copy_numbers(contents_as_told(path))


ALL: dict[str, list[IntentStep]] = {
    "tiers": [MakeDirectory(0, "org", tier=True), MakeDirectory(0, "org/apache", tier=True)],
    "prefixes": [MakeDirectory(0, f"{number:02x}", tier=False) for number in range(20)],
    "renames": [MakeDirectory(0, "org", tier=True), Rename(0, "orders-0", "org/orders-0")],
    "one rewrite": [Rewrite(0, "orders-0/partition.metadata", SHIPPED.decode(), "{}")],
    "many rewrites": [
        Rewrite(0, f"orders-{number}/{file}", old, "new")
        for number in range(3)
        for file, old in (("partition.metadata", SHIPPED.decode()), ("leader-epoch-checkpoint", "0\n1\n0 0\n"))
    ],
    "entries": [RenameEntries(0, "orders", "org:orders")],
    "stages": [stage_step(0), stage_step(1)],
    "all": [
        MakeDirectory(0, "org", tier=True),
        Rename(0, "orders-0", "org/orders-0"),
        Rewrite(0, "org/orders-0/partition.metadata", SHIPPED.decode(), "{}"),
        RenameEntries(0, "orders", "org:orders"),
        stage_step(1),
    ],
}


@pytest.mark.parametrize("steps", ALL.values(), ids=ALL)
def test_done_again_they_change_nothing_and_their_inverses_bring_everything_back(
    path: Path, do: Do, steps: list[IntentStep]
) -> None:
    before = seen(path)
    do(*steps)
    after = seen(path)
    assert after != before
    do(*steps, resuming=True)
    assert seen(path) == after
    do(*inverse_steps(steps), resuming=True)
    assert seen(path) == before
    do(*inverse_steps(steps), resuming=True)
    assert seen(path) == before


@pytest.mark.parametrize("steps", ALL.values(), ids=ALL)
def test_whatever_part_of_them_was_done_the_rest_can_be_done(path: Path, do: Do, steps: list[IntentStep]) -> None:
    for number in range(len(steps)):
        do(*steps[: number + 1], resuming=number > 0)
        do(*inverse_steps(steps), resuming=True)
    do(*steps)
    with_all = seen(path)
    do(*inverse_steps(steps[1:]), resuming=True)
    do(*steps, resuming=True)
    assert seen(path) == with_all


def test_a_tier_that_holds_something_stays_with_its_marker(path: Path, do: Do) -> None:
    do(MakeDirectory(0, "org", tier=True))
    (path / "org" / "stranger").mkdir()
    with pytest.raises(ChangeRefusedError, match="holds 'stranger'"):
        do(RemoveDirectory(0, "org", tier=True))
    do(RemoveDirectory(0, "org", tier=True), resuming=True)
    assert sorted(entry.name for entry in (path / "org").iterdir()) == [".logstore_tier", "stranger"]


def test_a_rename_never_replaces_anything(path: Path, do: Do) -> None:
    with pytest.raises(ChangeFailedError, match="File exists"):
        do(Rename(0, "orders-0", "orders-1"))
    before = contents(path)
    do(Rename(0, "orders-0", "orders-1"), resuming=True)
    do(Rename(0, "gone-0", "gone-1"), resuming=True)
    assert contents(path) == before
    with pytest.raises(ChangeFailedError, match="No such file"):
        do(Rename(0, "gone-0", "gone-1"))


def test_undoing_brings_back_what_it_staged_itself_and_nothing_older_from_that_path(
    path: Path, log_dir: LogDir, do: Do
) -> None:
    stage(log_dir, [candidate()], NOW_MS - 9)
    fill(path / "orders-0")
    do(stage_step(0))
    do(*inverse_steps([stage_step(0)]), resuming=True)
    left = [each.record for each in list_staged(log_dir)]
    assert [record.staged_ms for record in left if record is not None] == [NOW_MS - 9]


def test_a_directory_is_durable_where_it_goes_before_where_it_was(path: Path, do: Do, disk: DiskThat) -> None:
    do(MakeDirectory(0, "org", tier=True))
    assert disk.synced[-2:] == [str(path), str(path / "org")], "the second sync is that of the marker"
    do(Rename(0, "orders-0", "org/orders-0"))
    assert disk.synced[-2:] == [str(path / "org"), str(path)]


def test_a_file_that_holds_other_bytes_is_left_as_it_is(path: Path, do: Do) -> None:
    step = Rewrite(0, "orders-0/partition.metadata", "something", "else")
    with pytest.raises(ChangeRefusedError, match="holds other bytes"):
        do(step)
    do(step, resuming=True)
    do(Rewrite(0, "gone-0/partition.metadata", "something", "else"), resuming=True)
    assert (path / "orders-0" / "partition.metadata").read_bytes() == SHIPPED


def test_the_scheme_of_the_open_log_dir_follows_its_file(path: Path, log_dir: LogDir, do: Do) -> None:
    old = (path / "meta.properties").read_text()
    do(Rewrite(0, "meta.properties", old, old.replace("namespaced", "by-topic-id")))
    assert log_dir.scheme is Scheme.BY_TOPIC_ID


def test_entries_keep_their_place_and_their_offset(path: Path, do: Do) -> None:
    do(RenameEntries(0, "orders", "org:orders"))
    assert list(read_offsets(path).items()) == [(("clicks", 0), 8), (("org:orders", 0), 7)]


def test_a_replica_that_is_not_what_was_planned_is_refused_and_nothing_is_staged(path: Path, do: Do) -> None:
    other = stage_step(1)._replace(topic_id="")
    with pytest.raises(ChangeRefusedError, match="none was expected"):
        do(other)
    assert (path / "orders-1").is_dir()


@pytest.mark.parametrize("failing", ["create", "write", "rename", "sync_file_system"])
def test_rewrites_that_fail_leave_no_temporary_file(path: Path, do: Do, disk: DiskThat, failing: str) -> None:
    before = contents(path)
    disk.after, disk.fails = 0 if failing == "sync_file_system" else 3, {failing}
    with pytest.raises(ChangeFailedError):
        do(*ALL["many rewrites"])
    disk.fails = set()
    do(*inverse_steps(ALL["many rewrites"]), resuming=True)
    assert contents(path) == before


def test_a_disk_that_fails_goes_offline(do: Do, disk: DiskThat, log_dir: LogDir) -> None:
    disk.number, disk.fails = errno.EIO, {"rename"}
    with pytest.raises(OfflineLogDirError, match="try the steps"):
        do(Rename(0, "orders-0", "orders-9"))
    assert log_dir.offline
