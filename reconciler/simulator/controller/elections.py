"""Who leads a partition: one function for each cause, as in Kafka 2.8. Pure.

Each is given the replicas in order of preference and gives the new leader with the in-sync replicas that go with it, or
None when nobody can lead. An in-sync set is never left empty. Source: Kafka 2.8's four election strategies; CREATE-4.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Elected(NamedTuple):
    """A leader, and the in-sync replicas in the order in which they were known."""

    leader: int
    isr: tuple[int, ...]


def offline_election(
    replicas: Sequence[int], isr: Sequence[int], live: Collection[int], *, unclean: bool = False
) -> Elected | None:
    """The leader is gone: the first replica that lives and is in sync.

    Args:
        replicas: of the partition.
        isr: in sync, as far as is known.
        live: replicas that can serve.
        unclean: where there is none, take the first that lives, and lose what it has not.
    """
    leader = next((each for each in replicas if each in live and each in isr), None)
    if leader is not None:
        return Elected(leader, tuple(each for each in isr if each in live))
    leader = next((each for each in replicas if each in live), None) if unclean else None
    return None if leader is None else Elected(leader, (leader,))


def reassignment_election(target: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Elected | None:
    """The leader is not among the replicas that are to stay: the first of those that lives and is in sync."""
    leader = next((each for each in target if each in live and each in isr), None)
    return None if leader is None else Elected(leader, tuple(isr))


def preferred_election(replicas: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Elected | None:
    """The first replica, if it lives and is in sync."""
    first = next(iter(replicas), None)
    return Elected(first, tuple(isr)) if first is not None and first in live and first in isr else None


def shutdown_election(
    replicas: Sequence[int], isr: Sequence[int], live: Collection[int], leaving: Collection[int]
) -> Elected | None:
    """The leader is about to stop: the first replica in sync that lives and stays; those that leave go out of sync.

    Args:
        replicas: of the partition.
        isr: in sync.
        live: replicas that can serve, those on brokers that are about to stop included.
        leaving: brokers that are about to stop.
    """
    leader = next((each for each in replicas if each in live and each in isr and each not in leaving), None)
    return None if leader is None else Elected(leader, tuple(each for each in isr if each not in leaving))
