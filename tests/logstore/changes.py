"""Shared by the tests of changes of many steps: a broker with two disks, and a machine that stops at the n-th step."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.store import LogStore
from tests.logstore.engine import (
    HookedDisk,
    Picture,
    contents_as_told,
    formatted,
    opened,
    read_offsets,
    without_copy_numbers,
)

ORDERS = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")
CLICKS = TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")
CHECKPOINT = "recovery-point-offset-checkpoint"


class PowerCutError(Exception):
    """The machine stops."""


class DyingDisk(HookedDisk):
    """Stops the machine just before one step, counted from when it is armed; no further step is taken.

    Attributes:
        at: method and name of the entry at which it stops as well.
    """

    def __init__(self) -> None:
        self.left: int | None = None
        self.at: tuple[str, str] | None = None

    def arm(self, steps: int) -> None:
        """Allow a number of further steps."""
        self.left = steps

    def before(self, what: str, *arguments: Any) -> None:
        if self.at is not None and self.at == (what, arguments[1] if len(arguments) > 1 else ""):
            self.arm(0)
        if self.left is not None:
            if self.left == 0:
                raise PowerCutError
            self.left -= 1


def two_disks(folder: Path, scheme: str = "namespaced") -> list[Path]:
    """An empty broker with two log dirs that are ours."""
    return [formatted(folder / f"disk-{number}", number, scheme=scheme) for number in (1, 2)]


def fill_store(store: LogStore, *topics: str, topic_id: TopicId = ORDERS) -> None:
    """Make topics of two partitions, one on each disk, with some data and a recovery point; IDs count up."""
    for number, topic in enumerate(topics):
        own = TopicId((int.from_bytes(topic_id.to_bytes(), "big") + (number << 120)).to_bytes(17, "big")[-16:])
        for partition, log_dir in enumerate(store.log_dirs):
            at = TopicPartition(topic, partition)
            made = store.create(at, own, directory_id=log_dir.identity.directory_id)
            (Path(made.log_dir) / made.path / "00000000000000000000.log").write_bytes(f"{at}".encode())
            store.write_offsets(CHECKPOINT, {at: 40 + partition})


def filled_disks(folder: Path) -> list[Path]:
    """A broker with two log dirs that are ours, and a topic of two partitions."""
    paths = two_disks(folder)
    with opened(*paths) as store:
        fill_store(store, "orders")
    return paths


def look(paths: list[Path]) -> list[Picture]:
    """Give the contents of the log dirs, without marks that come and go."""
    return [without_copy_numbers(contents_as_told(path)) for path in paths]


def lies(paths: list[Path]) -> list[str]:
    """List every segment by its content, with its directory: which replica lies where."""
    return [
        f"{segment.read_text()} in {segment.parent.relative_to(path)}"
        for path in paths
        for segment in sorted(path.rglob("*.log"))
    ]


def offsets(paths: list[Path]) -> dict[str, int]:
    """Read the recovery points of all log dirs."""
    return {
        f"{topic}-{partition}": offset
        for path in paths
        if (path / CHECKPOINT).exists()
        for (topic, partition), offset in read_offsets(path).items()
    }


def abandon(store: LogStore) -> None:
    """Leave everything as it is, as a crash does."""
    for log_dir in store.log_dirs:
        log_dir.abandon()


def cut_everywhere(
    folder: Path, build: Callable[[list[Path]], None], act: Callable[[LogStore], object], **how: Any
) -> int:
    """Stop the machine before each step of a change in turn, and check that the next open finishes or undoes it.

    Returns:
        The number of steps.
    """
    scheme = how.get("scheme", "namespaced")
    after = _done(two_disks(folder / "done", scheme), build, act)
    ends: set[bool] = set()
    for steps in count():
        paths = two_disks(folder / str(steps), scheme)
        build(paths)
        before = look(paths)
        if not _cut(paths, act, steps):
            assert ends == {False, True}, "both ends were seen"
            return steps
        opened(*paths).close()
        found = look(paths)
        assert found in (before, after), f"cut before step {steps + 1}: neither undone nor done"
        ends.add(found == after)
        opened(*paths).close()
        assert look(paths) == found, f"cut before step {steps + 1}: a second open changed something"
        shutil.rmtree(folder / str(steps))
    raise AssertionError("it never ends")


def _done(paths: list[Path], build: Callable[[list[Path]], None], act: Callable[[LogStore], object]) -> list[Picture]:
    build(paths)
    with opened(*paths) as store:
        act(store)
    return look(paths)


def _cut(paths: list[Path], act: Callable[[LogStore], object], steps: int) -> bool:
    """Stop the machine after a number of steps; False: the change was finished by then."""
    disk = DyingDisk()
    store = opened(*paths, disk=disk)
    disk.arm(steps)
    try:
        act(store)
    except PowerCutError:
        abandon(store)
        return True
    disk.left = None
    store.close()
    return False
