"""Judge the live replicas of a broker against a LeaderAndIsr request, by the one case table. Pure.

Rows of one topic differ in little, so each distinct row is judged once. A reassignment in a request does not make its
replica IN_FLIGHT here, as it does for an audit: this request creates the replica, and a later one drops it.
Source: DESIGN §3, §4; KIP516-5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from logstore.rows import Kind
from logstore.store import Entry
from reconciler.broker.memory import PartitionKey
from reconciler.broker.snapshot import DiskSnapshot
from reconciler.protocol import LeaderAndIsrRequest, RequestType, TopicState
from reconciler.verdicts import CASES, JoinedRow, KnownTopics, Verdict, case_number, fill_evidence

LOOKS_UNWANTED: Final = frozenset({Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC})
"""Verdicts of replicas that a FULL request stages where it can."""


@dataclass(frozen=True, eq=False)
class Judged:
    """The verdict on all replicas that one joined row describes, and the template of its evidence."""

    verdict: Verdict
    row: JoinedRow
    template: str

    @cached_property
    def evidence(self) -> str:
        """The sentence that goes with the verdict."""
        return fill_evidence(self.template, self.row)

    @cached_property
    def reason(self) -> tuple[str, str]:
        """Verdict and evidence, as an action has them."""
        return self.verdict.value, self.evidence


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdicts on all replicas that a request is about.

    Attributes:
        named: one for each partition of the request, in its order: the verdict; None for a replica that is neither here
            nor wanted; or a replica on an offline disk, which is not judged.
        others: replicas that the request does not name but covers.
    """

    named: Sequence[Judged | OfflineReplica | None]
    others: Sequence[tuple[PartitionKey, Judged]]


class OfflineReplica(NamedTuple):
    """A replica on an offline disk."""

    log_dir: str


class _RequestTable:
    """The case table for one request on one broker's disks."""

    def __init__(self, request: LeaderAndIsrRequest, present: DiskSnapshot) -> None:
        ids = {topic.topic: "" if topic.topic_id is None else str(topic.topic_id) for topic in request.topics}
        names = {topic_id: topic for topic, topic_id in ids.items() if topic_id}
        self.topics = KnownTopics(ids, names, judged=True, complete=request.type is RequestType.FULL)
        self.offline = present.offline
        self.duplicates = {(each.partition.topic, each.partition.partition) for each in present.duplicates}

    def live(self, topic: str, entry: Entry, copies: int, *, wanted: bool) -> Judged:
        """Judge a replica that is here."""
        return _judge(
            self.topics.on_disk(
                topic,
                entry.topic_id or "",
                self.topics.id_of[topic] if wanted else None,
                kind=Kind.LIVE.value,
                state=entry.state,
                problem=f"its partition.metadata is {entry.state}",
                copies=copies,
            )
        )

    def absent(self, topic: str) -> Judged:
        """Judge a wanted replica that is not here."""
        return _judge(self.topics.absent(topic, self.topics.id_of[topic]))


def judge(request: LeaderAndIsrRequest, node_id: int, present: DiskSnapshot) -> Judgement:
    """Judge live replicas against a request.

    A FULL request covers every replica of the broker. Any other request covers the replicas that it names, by topic or
    by topic ID.
    """
    table = _RequestTable(request, present)
    named: list[Judged | OfflineReplica | None] = []
    left = dict(present.entries)
    for topic in request.topics:
        named += _judge_topic(table, topic, node_id, left)
    if request.type is RequestType.FULL:
        others = [(key, entry) for key, entry in left.items() if entry.log_dir not in present.offline]
    else:
        others = _renamed(request, present, left)
    known: dict[tuple[str, str | None, str, bool], Judged] = {}
    judged = []
    for key, entry in others:
        row = (key[0], entry.topic_id, entry.state, key in table.duplicates)
        found = known.get(row)
        if found is None:
            found = known[row] = table.live(key[0], entry, 1 + row[3], wanted=False)
        judged.append((key, found))
    return Judgement(named, judged)


def _judge_topic(
    table: _RequestTable, topic: TopicState, node_id: int, left: dict[PartitionKey, Entry]
) -> list[Judged | OfflineReplica | None]:
    """Judge each partition of one topic, and remove the replicas that are here from ``left``."""
    name, offline, duplicates = topic.topic, table.offline, table.duplicates
    known: dict[tuple[str | None, str, bool, bool], Judged] = {}
    absent: Judged | None = None
    found: list[Judged | OfflineReplica | None] = []
    for state in topic.partitions:
        key = (name, state.partition)
        entry = left.pop(key, None)
        wanted = node_id in state.replicas or node_id in state.adding or node_id in state.removing
        if entry is None:
            if wanted and absent is None:
                absent = table.absent(name)
            found.append(absent if wanted else None)
        elif entry.log_dir in offline:
            found.append(OfflineReplica(entry.log_dir))
        else:
            row = (entry.topic_id, entry.state, wanted, key in duplicates)
            judged = known.get(row)
            if judged is None:
                judged = known[row] = table.live(name, entry, 1 + row[3], wanted=wanted)
            found.append(judged)
    return found


def _renamed(
    request: LeaderAndIsrRequest, present: DiskSnapshot, left: Mapping[PartitionKey, Entry]
) -> list[tuple[PartitionKey, Entry]]:
    """Find replicas that are here under a topic ID of the request and another topic name."""
    found = []
    for topic in request.topics:
        topic_id = str(topic.topic_id)
        for former in present.topics.get(topic_id, ()):
            for state in topic.partitions if former != topic.topic else ():
                entry = left.get((former, state.partition))
                # Another partition of that name may be of another topic, which the request does not name.
                if entry is not None and entry.topic_id == topic_id and entry.log_dir not in present.offline:
                    found.append(((former, state.partition), entry))
    return found


def _judge(row: JoinedRow) -> Judged:
    case = CASES[case_number(row)]
    return Judged(case.verdict, row, case.evidence)
