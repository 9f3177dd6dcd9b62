"""What a history plays and what it leaves out: swarm testing, drawn from the seed.

A history in which everything happens hides what only shows where something does *not* happen: what is never restored,
deleted or moved piles up, and rare pairs meet. So each seed switches some features off, and has a pace and delays of
its own. Source: Groce et al., *Swarm Testing*, 2012.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random
from typing import Self

from logstore import DELETE_DELAY, STALE_DELAY, Settings
from reconciler.errors import UsageError
from reconciler.simulator.cluster import ClusterSettings
from reconciler.simulator.kernel import FAULT_KINDS

FEATURES = (
    *("delete", "grow", "shrink", "reassign", "prefer", "namespace", "move_namespace", "configure", "stop"),
    *("away", "move_disk", "restore", "purge", "convert", "plan", "repair"),
    *("watch", "audit"),
)
"""What administrators and operators do and look at; a topic is created in every history."""

_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", re.ASCII)

_OFF = 0.25
"""How likely a feature is switched off."""

_PAUSES_MS = (60, 150, 400, 2_500)
_BURSTS = (0.0, 0.15, 0.4)
_STALE_MS, _DELETED_MS = (1_000, 20_000, 300_000), (500, 5_000, 60_000)
_PURGES_MS = (1_000, 10_000, 30_000)
_FETCHES_MS = (2_000, 2_000, 5_000)

_WIDE, _WIDEST, _EVERY = (12, 40), 500, 70
"""Partitions of a wide topic: up to the first numbers often, the last one in one history of so many."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a history leaves out of what its seed draws, so that a failure needs less; the rest stays as it is.

    Attributes:
        features: of :data:`FEATURES`, and kinds of faults.
        actions: numbers of single actions of the workload, from 0.
    """

    features: frozenset[str] = frozenset()
    actions: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, features: str, actions: str) -> Self:
        """Read ``delete,crash`` and ``0-3,7``; an empty text leaves nothing out.

        Raises:
            UsageError: what is no feature and no fault, or no number or range of numbers.
        """
        names = frozenset(each.strip() for each in features.split(",") if each.strip())
        unknown = sorted(names - {*FEATURES, *FAULT_KINDS})
        if unknown:
            known = ", ".join((*FEATURES, *FAULT_KINDS))
            raise UsageError(f"{unknown[0]!r:.40} cannot be left out of a history: there are {known}")
        numbers = set[int]()
        for each in filter(None, (part.strip() for part in actions.split(","))):
            match = _RANGE.fullmatch(each)
            first, last = (0, -1) if match is None else (int(match[1]), int(match[2] or match[1]))
            if first > last:
                raise UsageError(f"{each!r:.40} is no action and no range of actions: write numbers such as 0-3,7")
            numbers.update(range(first, last + 1))
        return cls(names, frozenset(numbers))

    @property
    def arguments(self) -> tuple[str, ...]:
        """What ``logstore simulate`` takes to leave the same out."""
        ranges = list[list[int]]()
        for number in sorted(self.actions):
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        skipped = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
        known = (each for each in (*FEATURES, *FAULT_KINDS) if each in self.features)
        without = ",".join(known)
        return (*(("--without", without) if without else ()), *(("--skip", skipped) if skipped else ()))

    def applied(self, settings: ClusterSettings) -> ClusterSettings:
        """Give the settings of a cluster to which the kinds of faults that are left out do not happen."""
        never = {kind: 0.0 for kind in FAULT_KINDS if kind in self.features}
        return replace(settings, rates=replace(settings.rates, **never)) if never else settings


NOTHING = LeftOut()


@dataclass(frozen=True, slots=True)
class Swarm:
    """What one history plays.

    Attributes:
        features: of :data:`FEATURES`, those that are on.
        longest_pause_ms: between two actions.
        burst: how likely an action is followed by several at once.
        wide: partitions of the topics that have more than a few; 0: there are none.
        stale_ms: how long stale replicas are staged.
        deleted_ms: how long deleted replicas are staged.
        purge_ms: between two purges of a broker.
        fetch_wait_ms: how long a fetch waits for records; long waits leave room for other events.
        directory_ids: whether log dirs have IDs, which moves between disks need.
    """

    features: frozenset[str]
    longest_pause_ms: int
    burst: float
    wide: int
    stale_ms: int
    deleted_ms: int
    purge_ms: int
    fetch_wait_ms: int
    directory_ids: bool

    @classmethod
    def of(cls, seed: int) -> Self:
        """Draw what the history of a seed plays."""
        random = Random(f"{seed}/swarm")
        features = frozenset(each for each in FEATURES if random.random() >= _OFF)
        wide = random.choice((0, *_WIDE))
        if random.randrange(_EVERY) == 0:
            wide = _WIDEST
        return cls(
            features,
            random.choice(_PAUSES_MS),
            random.choice(_BURSTS),
            wide,
            random.choice(_STALE_MS),
            random.choice(_DELETED_MS),
            random.choice(_PURGES_MS),
            random.choice(_FETCHES_MS),
            "move_disk" in features or random.random() < 0.5,
        )

    def applied(self, settings: ClusterSettings) -> ClusterSettings:
        """Give the settings of a cluster with the delays and the log dirs of this history."""
        broker = replace(
            settings.broker,
            delays=Settings({"": {STALE_DELAY: self.stale_ms, DELETE_DELAY: self.deleted_ms}}),
            purge_ms=self.purge_ms,
            purge_steps=max(settings.broker.purge_steps, 2 * self.wide),
            fetch_wait_ms=self.fetch_wait_ms,
            directory_ids=self.directory_ids,
        )
        return replace(settings, broker=broker)
