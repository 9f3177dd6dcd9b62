"""What the replicas and namespaces of a store are before a change and after it, and what each disk holds then.

The paths, the markers and the checkpoints are worked out and read here by other code than the engine's own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from layout import partition_metadata
from layout.ids import TopicId
from layout.scheme import MARKER_FILE, STAGING_DIR, Scheme
from layout.topic import TopicPartition
from reconciler.simulator.drills.kept_replicas import NUMBER_FILE
from reconciler.simulator.drills.looking import path_of

OFFSETS: Final = "replication-offset-checkpoint"
STAGED: Final = "staged"
STRANGERS_FILE: Final = "notes.txt"


@dataclass(frozen=True, slots=True)
class One:
    """One replica; its number is also its offset.

    Attributes:
        disk: the number of the log dir that it lies in.
        is_staged: it lies in the staging directory.
    """

    number: int
    disk: int
    at: TopicPartition
    topic_id: TopicId
    is_staged: bool = False


class View(NamedTuple):
    """What one log dir holds.

    Attributes:
        tiers: the paths of the directories with a marker.
        replicas: number, path and name of each; a staged one's path is :data:`STAGED`.
        offsets: the entries of one checkpoint: partition, offset.
        strangers: the paths of the directories with a stranger's file.
    """

    scheme: str
    tiers: frozenset[str]
    replicas: tuple[tuple[int, str, str], ...]
    offsets: tuple[tuple[str, int], ...]
    strangers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreState:
    """All replicas and namespaces of a store; under the scheme by-topic-id no namespace is kept."""

    scheme: Scheme
    namespaces: frozenset[str]
    replicas: tuple[One, ...]

    def view(self, disk: int) -> View:
        """Give what a log dir should hold."""
        own = [each for each in self.replicas if each.disk == disk]
        replicas = sorted((each.number, self.path(each), str(each.at)) for each in own)
        offsets = sorted((str(each.at), each.number) for each in own if not each.is_staged)
        tiers = frozenset(each.replace(":", "/") for each in self.namespaces)
        return View(self.scheme, tiers, tuple(replicas), tuple(offsets))

    def path(self, each: One) -> str:
        """Where a replica lies below its log dir."""
        return STAGED if each.is_staged else path_of(self.scheme, each.at, each.topic_id)

    @property
    def live(self) -> list[One]:
        """The replicas that are not staged."""
        return [each for each in self.replicas if not each.is_staged]

    def renamed(self, topic: str, new: str) -> StoreState:
        """Give a topic another name."""
        return self._with(
            replace(each, at=TopicPartition(new, each.at.partition)) if each in self._of(topic) else each
            for each in self.replicas
        )

    def moved(self, namespace: str, target: str) -> StoreState:
        """Move a namespace with all that is in it."""
        changed = self
        for topic in sorted({each.at.topic for each in self.live if each.at.topic.startswith(f"{namespace}:")}):
            changed = changed.renamed(topic, target + topic[len(namespace) :])
        inside = self._inside(namespace)
        tiers = {target + each[len(namespace) :] for each in inside}
        return replace(changed, namespaces=self.namespaces - inside | tiers)

    def deleted(self, namespace: str) -> StoreState:
        """Delete a namespace, and stage what is in it."""
        staged = self.staged(*(each.at for each in self.live if each.at.topic.startswith(f"{namespace}:")))
        return replace(staged, namespaces=self.namespaces - self._inside(namespace))

    def staged(self, *partitions: TopicPartition) -> StoreState:
        """Stage the live replicas of partitions."""
        return self._with(replace(each, is_staged=True) if each.at in partitions else each for each in self.replicas)

    def created(self, *namespaces: str) -> StoreState:
        """Create namespaces."""
        return replace(self, namespaces=self.namespaces | set(namespaces))

    def converted(self, scheme: Scheme) -> StoreState:
        """Convert to another scheme: the namespaces that no topic is in are forgotten."""
        used = {each.at.namespace for each in self.live if scheme is Scheme.NAMESPACED} - {""}
        return StoreState(
            scheme, frozenset(used | {each.rpartition(":")[0] for each in used if ":" in each}), self.replicas
        )

    def with_one(self, one: One) -> StoreState:
        """Add a replica."""
        return replace(self, replicas=(*self.replicas, one))

    def _inside(self, namespace: str) -> frozenset[str]:
        return frozenset(each for each in self.namespaces if f"{each}:".startswith(f"{namespace}:"))

    def _of(self, topic: str) -> list[One]:
        return [each for each in self.live if each.at.topic == topic]

    def _with(self, replicas: Iterator[One]) -> StoreState:
        return replace(self, replicas=tuple(replicas))


def look(log_dir: str) -> View:
    """Read what a log dir holds."""
    tiers, replicas, strangers = set[str](), list[tuple[int, str, str]](), list[str]()
    for folder, _, names in os.walk(log_dir):
        path = folder[len(log_dir) + 1 :]
        if MARKER_FILE in names:
            tiers.add(path)
        if STRANGERS_FILE in names:
            strangers.append(path)
        if NUMBER_FILE in names:
            with open(f"{folder}/{partition_metadata.FILE_NAME}", encoding="utf-8") as text:
                fields = json.load(text)
            with open(f"{folder}/{NUMBER_FILE}", encoding="ascii") as text:
                number = int(text.read())
            where = STAGED if path.startswith(f"{STAGING_DIR}/") else path
            replicas.append((number, where, f"{fields['name']}-{fields['partition']}"))
    with open(f"{log_dir}/meta.properties", encoding="ascii") as text:
        (scheme,) = [line.split("=")[1].strip() for line in text if line.startswith("logstore.scheme=")]
    offsets = sorted(_offsets(log_dir))
    return View(scheme, frozenset(tiers), tuple(sorted(replicas)), tuple(offsets), tuple(strangers))


def _offsets(log_dir: str) -> Iterator[tuple[str, int]]:
    if os.path.exists(f"{log_dir}/{OFFSETS}"):
        with open(f"{log_dir}/{OFFSETS}", encoding="ascii") as text:
            for line in text.read().splitlines()[2:]:
                topic, partition, offset = line.split()
                yield f"{topic}-{partition}", int(offset)
