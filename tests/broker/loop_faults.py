"""Faults on the disks of a real broker, each by the story that causes it; most are those of the embedded operator loop.

A fault stands here anew where a real broker is needed for it: a replica that an older topic's broker wrote, metadata
that the stopped broker kept itself, a reassignment that is on its way.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

from layout import meta_properties
from layout.directory_name import future_name
from layout.ids import DirectoryId
from tests.broker.loop_bench import HealthyBroker
from tests.operator_loop import faults as embedded
from tests.operator_loop.bench import UNIQUE

Plant = Callable[[HealthyBroker], None]


def stale_id(bench: HealthyBroker) -> None:
    """The topic was re-created while the broker was down."""
    bench.unwanted("again-0")


def not_assigned(bench: HealthyBroker) -> None:
    """A reassignment took the replica away while the broker was down."""
    bench.unwanted("moved-0")


def unknown_topic(bench: HealthyBroker) -> None:
    """A topic was deleted while the broker was down."""
    bench.unwanted("gone-0")


def future(bench: HealthyBroker) -> None:
    """A move between the disks goes on."""
    home = bench.disks.index(bench.home_of("clicks-5"))
    bench.replica(1 - home, future_name("clicks", 5, UNIQUE), bench.topics["clicks"])


def metadata_log_left(bench: HealthyBroker) -> None:
    """Somebody moved the metadata log to the first disk, and left the old one behind."""
    shutil.copytree(bench.disks[0] / "__cluster_metadata-0", bench.disks[1] / "__cluster_metadata-0")


def disk_made_anew(bench: HealthyBroker) -> None:
    """The second disk broke, and a new one was formatted in its place; with ZooKeeper, all disks have one identity."""
    bench.registers_anew = bench.in_kraft
    identity = meta_properties.parse((bench.disks[1] / meta_properties.FILE_NAME).read_bytes())
    shutil.rmtree(bench.disks[1])
    bench.disks[1].mkdir()
    anew = replace(identity, directory_id=DirectoryId.from_halves(99, 2)) if bench.in_kraft else identity
    (bench.disks[1] / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(anew, "today"))


def disk_unformatted(bench: HealthyBroker) -> None:
    """The second disk broke, and a new one is mounted in its place, with nothing on it."""
    bench.registers_anew = bench.in_kraft
    embedded.disk_unformatted(bench)


FAULTS: Mapping[str, Plant] = {
    plant.__name__: plant
    for plant in (
        *(stale_id, not_assigned, unknown_topic, future, embedded.future_abandoned, embedded.marked_delete),
        *(embedded.stray, embedded.stray_that_is_wanted),
        *(embedded.duplicate, embedded.duplicate_alike, embedded.damaged, embedded.no_id, embedded.renamed),
        *(embedded.checkpoint_entry, embedded.damaged_checkpoint, embedded.leftover, embedded.missing),
        *(embedded.foreign_directory, embedded.foreign_file, embedded.staged, embedded.staged_due),
        *(embedded.disk_not_mounted, embedded.disk_not_given, embedded.own_copy_alone),
        *(embedded.stray_without_id, embedded.stray_without_id_of_deleted_topic, embedded.damaged_unwanted),
        *(embedded.damaged_future, embedded.damaged_stray, metadata_log_left, disk_made_anew),
        disk_unformatted,
    )
}
"""All faults by name, in the order in which they are planted: those of whole disks come last."""

NEEDS_KRAFT = frozenset(
    {
        *("disk_not_given", "own_copy_alone", "metadata_log_left"),
        *("stray_without_id", "stray_without_id_of_deleted_topic"),
    }
)
"""Faults of which only metadata with the IDs of log dirs, or a copy of it on each broker, tells, and strays that only a
broker in KRaft mode makes."""

ALONE = tuple(FAULTS)[-8:]
"""Faults that are played alone: the embedded loop plays their pairs."""


def one_and_two_of(mode: str) -> list[tuple[str, ...]]:
    """List each fault, and every two that are not played alone, that a cluster of this mode can have."""
    names = [name for name in FAULTS if mode == "kraft" or name not in NEEDS_KRAFT]
    pairs = combinations((name for name in names if name not in ALONE), 2)
    return [(name,) for name in names] + list[tuple[str, ...]](pairs)


def sample(ways: Sequence[tuple[str, str]], seed: int) -> dict[tuple[str, str], list[tuple[str, ...]]]:
    """Choose pairs and faults alone for each release and mode, so that every fault occurs once over all of them."""
    chosen: dict[tuple[str, str], list[tuple[str, ...]]] = {way: [] for way in ways}
    kraft = [way for way in ways if way[1] == "kraft"]
    random = Random(seed)
    names = [name for name in FAULTS if name not in NEEDS_KRAFT and name not in ALONE]
    random.shuffle(names)
    everywhere = _by_two(names)
    for number, pair in enumerate(everywhere):
        chosen[ways[number % len(ways)]].append(pair)
    for number, name in enumerate(sorted(NEEDS_KRAFT.difference(ALONE))):
        chosen[kraft[number % len(kraft)]].append((random.choice(names), name))
    for number, name in enumerate(ALONE):
        chosen[kraft[number % len(kraft)]].append((name,))
    return chosen


def _by_two(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Put two and two together; the last of an odd number goes with the first."""
    for number in range(0, len(names), 2):
        first, second = sorted((names[number], names[(number + 1) % len(names)]), key=list(FAULTS).index)
        yield first, second
