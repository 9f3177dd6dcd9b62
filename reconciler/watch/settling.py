"""Hold back verdicts that may only be a matter of time: the metadata has not caught up with the disk, or it with that.

A topic that is created has a directory before the metadata that a watch has read knows it, and a topic that is deleted
loses its directory before the metadata forgets it. Such a verdict is held until the metadata was read again, and for a
moment more; what it turns into meanwhile is reported in its place, and nothing at all if it turns back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from reconciler.desired import BrokerKey
from reconciler.verdicts import Verdict
from reconciler.watch.verdicts import VerdictChange

SETTLE_S = 2.0
"""Seconds for which a verdict is held at least; a broker makes and renames directories well within that."""

_HELD = frozenset({Verdict.UNKNOWN_TOPIC, Verdict.NOT_ASSIGNED, Verdict.STALE_ID, Verdict.MISSING})

_Replica = tuple[BrokerKey, str, int]


class _Held(NamedTuple):
    """A change that is held back."""

    change: VerdictChange
    since: float
    """When it was seen."""
    newer_than: float
    """Only metadata that was read later can bear it out."""


class Settling:
    """The changes that are held back. Not thread-safe."""

    def __init__(self, clock: Callable[[], float], settle_s: float = SETTLE_S) -> None:
        """Take a clock that returns seconds and never goes back, and how long a verdict is held at least."""
        self._clock, self._settle_s = clock, settle_s
        self._held: dict[_Replica, _Held] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether a verdict waits for metadata that was read after it was seen."""
        return bool(self._held)

    def take(self, changes: Iterable[VerdictChange], newer_than: float) -> list[VerdictChange]:
        """Hold back what may be a matter of time, and return the rest.

        ``newer_than``: what is held back waits for metadata that was read later.
        """
        passed = []
        for each in changes:
            replica, change = _replica_of(each), each
            held = None if replica is None else self._held.pop(replica, None)
            if held is not None:
                change = each._replace(before=held.change.before)
            if replica is not None and change.after in _HELD and change.before != change.after:
                since = self._clock() if held is None else held.since
                self._held[replica] = _Held(change, since, newer_than)
            elif change.before != change.after:
                passed.append(change)
        return passed

    def settled(self, read_at: float) -> list[VerdictChange]:
        """Return what has been held for long enough, and by metadata that was read at this time."""
        until = self._clock() - self._settle_s
        ready = [replica for replica, held in self._held.items() if held.since <= until and read_at > held.newer_than]
        return [self._held.pop(replica).change for replica in ready]


def _replica_of(change: VerdictChange) -> _Replica | None:
    """The replica that a change is about; None: a directory that is not live, or something else."""
    if change.topic is None or change.partition is None:
        return None
    is_live = change.name is None or change.name.rpartition("/")[2] == f"{change.topic}-{change.partition}"
    return (change.broker, change.topic, change.partition) if is_live else None
