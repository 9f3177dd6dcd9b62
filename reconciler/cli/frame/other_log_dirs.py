"""What is known of a broker's log dirs that were not given, before a replica is brought back.

A broker does not start with a partition that is live in two of its log dirs. A replica that comes back may have a twin
in a log dir that nobody gave, such as the live replica of its re-created topic. So what can be known is asked for::

    a log dir beside the given ones, or named by a journal here, is this broker's     it is looked into
    the broker registered a log dir with its controller that is not among them        the replica stays, unless the
                                                                                      metadata places it in one of them
    no registration; a journal here names more log dirs than there are                the replica stays
    one of these two, and none is missing                                             it comes back
    neither; the metadata wants the partition here under another ID, and it is gone   the replica stays
    neither; the metadata says nothing of the kind                                    it comes back
    nothing at all; it was staged because its topic was re-created                    the replica stays
    nothing at all                                                                    it comes back, with a remark

Brokers of Kafka 3.7 and newer register the IDs of their log dirs, and their own copy of the metadata has them.
Source: FACTS §1.7, §2.2.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import pyarrow.compute as pc

from layout.directory_name import DirectoryKind, parse
from layout.topic import TopicPartition
from logstore.log_dir import read_identity
from reconciler.desired import BrokerKey, DesiredState, in_memory
from reconciler.next_steps import OTHER_LOG_DIR
from reconciler.plan import read_history
from reconciler.text import count, listed
from reconciler.verdicts import Verdict

_MOST_BESIDE = 1000
"""Greatest number of entries of a folder that are looked at for other log dirs."""


@dataclass(frozen=True, slots=True)
class KnownLogDirs:
    """The log dirs of one broker, as far as the disks tell.

    Attributes:
        broker: whose they are.
        given: those that were given.
        found: further ones, beside those or named by a journal in them.
        named: the greatest number of log dirs that a run on this broker was given; 0: no journal says so.
    """

    broker: BrokerKey
    given: tuple[str, ...]
    found: tuple[str, ...] = ()
    named: int = 0

    def twin_of(self, path: str) -> str | None:
        """Find a path below a log dir in one of the further log dirs; None: in none of them."""
        return next((f"{each}/{path}" for each in self.found if os.path.lexists(f"{each}/{path}")), None)


@dataclass(frozen=True, slots=True)
class Returning:
    """A replica that is to come back: its partition, its topic ID as text, and why it was staged (empty: a stray)."""

    partition: TopicPartition
    topic_id: str | None
    verdict: str


def find_log_dirs(broker: BrokerKey, given: Sequence[str]) -> KnownLogDirs:
    """Look for further log dirs of a broker beside those that were given, without a lock."""
    named = [journal.log_dirs for _, journal in read_history(given).journals]
    places = {os.path.realpath(path) for path in given}
    ids = {_directory_id(path) for path in given} - {None}
    found = []
    for path in dict.fromkeys((*_beside(given), *(path for paths in named for path in paths))):
        identity = read_identity(path).identity
        if identity is None or (identity.cluster_id or "", identity.node_id) != broker:
            continue
        place = os.path.realpath(path)
        if place in places:
            continue
        places.add(place)
        own_id = _directory_id(path)
        is_copy = _holds_the_same(path, given) if own_id is None else own_id in ids
        if not is_copy:
            found.append(path)
    return KnownLogDirs(broker, tuple(given), tuple(found), max(map(len, named), default=0))


class TwinSearch:
    """Says of each replica that is to come back to one broker whether it may have a live twin elsewhere."""

    def __init__(self, known: KnownLogDirs, states: Sequence[DesiredState]) -> None:
        """Gather what metadata of its cluster, the newest last, says of the broker."""
        self.known = known
        self._name, node = f"broker {known.broker.node}", known.broker.node
        self._registered = _registered(states, node)
        here = (*known.given, *known.found)
        self._here = {_directory_id(path) for path in here} - {None}
        self._missing = sorted(self._registered - self._here)
        self._unnamed = known.named > len(here)
        self._wanted = _wanted(states[-1], node) if states else None

    @property
    def is_blind(self) -> bool:
        """Whether nothing says which log dirs the broker has, or what it should have in them."""
        return not (self._registered or self.known.named) and self._wanted is None

    @property
    def other_log_dirs(self) -> list[str]:
        """The log dirs that were not given and should be; a blank stands for one whose path is not known."""
        unknown = not self.known.found or self._missing or self._unnamed
        return [*self.known.found, *([OTHER_LOG_DIR] if unknown else [])]

    def why_it_stays(self, replica: Returning) -> str | None:
        """Say in a clause why a replica may be live in a log dir that was not given; None: nothing says so."""
        name, wanted = replica.partition, (self._wanted or {}).get(replica.partition)
        if self._missing and not (wanted is not None and wanted.directory_id in self._here):
            if wanted is not None and wanted.directory_id in self._missing:
                return (
                    f"the metadata places {name} of {self._name} in directory.id {wanted.directory_id}, which is none "
                    "of those given"
                )
            return (
                f"{self._name} registered {count(len(self._registered), 'log dir')}, and directory.id "
                f"{listed(self._missing)} is none of those given: {name} may be live there"
            )
        if self._registered:
            return None
        if self.known.named:
            many = count(self.known.named, "log dir")
            return (
                f"a run here was given {many} of {self._name}: {name} may be live in another" if self._unnamed else None
            )
        if self._wanted is None and replica.verdict == Verdict.STALE_ID:
            return (
                f"its topic was re-created, and nothing here says whether {self._name} has other log dirs: the new "
                f"{name} may be live there"
            )
        if wanted is None or None in (wanted.topic_id, replica.topic_id) or wanted.topic_id == replica.topic_id:
            return None
        return (
            f"the metadata wants {name} on {self._name} with topic ID {wanted.topic_id}, and none of the given log "
            "dirs holds that: it may be live in another"
        )


def _beside(given: Iterable[str]) -> Iterator[str]:
    """Yield paths at which further log dirs may lie: /disks/2 beside /disks/1, /disks/2/kafka beside /disks/1/kafka."""
    for path in map(os.path.abspath, given):
        above, name = os.path.split(path)
        for folder, below in ((above, ""), (os.path.dirname(above), name)):
            if folder == "/":
                continue
            try:
                with os.scandir(folder) as entries:
                    places = [entry.path for entry in islice(entries, _MOST_BESIDE) if entry.is_dir()]
            except OSError:
                continue
            yield from (os.path.join(place, below) if below else place for place in sorted(places))


def _holds_the_same(path: str, given: Iterable[str]) -> bool:
    """Whether a directory without an ID is a copy of a log dir: most of its live replicas are live there too.

    Two log dirs of one broker have none in common, or it would not start.
    """
    own = _live_names(path)
    return any(2 * len(own & _live_names(each)) > len(own) for each in given)


def _live_names(path: str) -> set[str]:
    try:
        return {name for name in os.listdir(path) if parse(name).kind is DirectoryKind.LIVE}
    except OSError:
        return set()


def _directory_id(path: str) -> str | None:
    identity = read_identity(path).identity
    return None if identity is None or identity.directory_id is None else str(identity.directory_id)


def _registered(states: Sequence[DesiredState], node: int) -> set[str]:
    """Return the log dirs that a broker registered, by the newest metadata that tells."""
    for state in reversed(states):
        for row in state.brokers.to_pylist():
            if row["node_id"] == node and row["directory_ids"]:
                return set(row["directory_ids"])
    return set()


class _Wanted(NamedTuple):
    """How the metadata wants a replica on the broker: its topic ID, and its log dir where it names one."""

    topic_id: str | None
    directory_id: str | None


def _wanted(state: DesiredState, node: int) -> dict[TopicPartition, _Wanted]:
    rows = in_memory(state.replicas).select(["topic", "topic_id", "partition", "node_id", "directory_id"])
    return {
        TopicPartition(row["topic"], row["partition"]): _Wanted(row["topic_id"], row["directory_id"])
        for row in rows.filter(pc.equal(rows.column("node_id"), node)).to_pylist()
    }
