"""Judge the live replicas of a broker against a LeaderAndIsr request, by the one case table. Pure.

Rows of one topic differ in little, so each distinct row is judged once. A reassignment in a request does not make its
replica IN_FLIGHT here, as it does for an audit: this request creates the replica, and a later one drops it.
Source: DESIGN §3, §4; KIP516-5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from layout.ids import TopicId
from logstore.rows import Kind
from logstore.store import Entry
from reconciler.protocol import LeaderAndIsrRequest, RequestType, TopicState
from reconciler.verdicts import CASES, JoinedRow, Verdict, case_number, fill_evidence

PartitionKey: TypeAlias = tuple[str, int]
"""Full topic name and partition."""


LOOKS_UNWANTED: Final = frozenset({Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC})
"""Verdicts of replicas that a FULL request stages where it can."""


class Judged(NamedTuple):
    """The verdict on one replica, the row that it was judged by, and the template of its evidence."""

    verdict: Verdict
    row: JoinedRow
    template: str

    @property
    def evidence(self) -> str:
        """The sentence that goes with the verdict."""
        return fill_evidence(self.template, self.row)


@dataclass(frozen=True, slots=True)
class LiveReplicas:
    """The live replicas of this broker.

    Attributes:
        entries: as the store holds them.
        duplicates: keys of replicas that are live in two log dirs.
        offline: offline log dirs; replicas in them are not judged.
        topic_of: topic ID → topic of a replica here with that ID.
    """

    entries: Mapping[PartitionKey, Entry]
    duplicates: Collection[PartitionKey]
    offline: Collection[str]
    topic_of: Callable[[TopicId], str | None]


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
    """The case table for one request."""

    def __init__(self, request: LeaderAndIsrRequest) -> None:
        self.complete = request.type is RequestType.FULL
        self.ids = {topic.topic: _topic_id_text(topic) for topic in request.topics}
        self.names = {topic_id: topic for topic, topic_id in self.ids.items() if topic_id}

    def live(self, topic: str, entry: Entry, copies: int, wanted: bool) -> Judged:
        """Judge a replica that is here."""
        topic_id, wanted_id = entry.topic_id or "", self.ids.get(topic, "")
        return _judge(
            JoinedRow(
                on_disk=True,
                kind=Kind.LIVE.value,
                state=entry.state,
                topic=topic,
                disk_topic_id=topic_id,
                problem=f"its partition.metadata is {entry.state}",
                copies=copies,
                judged=True,
                complete=self.complete,
                wanted=wanted,
                wanted_topic_id=wanted_id if wanted else "",
                name_known=topic in self.ids,
                name_topic_id=wanted_id,
                id_topic=self.names.get(topic_id, ""),
            )
        )

    def absent(self, topic: str) -> Judged:
        """Judge a wanted replica that is not here."""
        wanted_id = self.ids[topic]
        return _judge(
            JoinedRow(
                topic=topic,
                judged=True,
                complete=self.complete,
                wanted=True,
                wanted_topic_id=wanted_id,
                name_known=True,
                name_topic_id=wanted_id,
            )
        )


def judge(request: LeaderAndIsrRequest, node_id: int, present: LiveReplicas) -> Judgement:
    """Judge live replicas against a request.

    A FULL request covers every replica of the broker. Any other request covers the replicas that it names, by topic or
    by topic ID.

    Args:
        request: checked.
        node_id: of this broker.
        present: the live replicas.
    """
    table = _RequestTable(request)
    named: list[Judged | OfflineReplica | None] = []
    left = dict(present.entries)
    for topic in request.topics:
        named += _judge_topic(table, topic, node_id, present, left)
    if request.type is RequestType.FULL:
        others = [(key, entry) for key, entry in left.items() if entry.log_dir not in present.offline]
    else:
        others = _renamed(request, present, left)
    known: dict[tuple[str, str | None, str, bool], Judged] = {}
    judged = []
    for key, entry in others:
        row = (key[0], entry.topic_id, entry.state, key in present.duplicates)
        found = known.get(row)
        if found is None:
            found = known[row] = table.live(key[0], entry, 1 + row[3], wanted=False)
        judged.append((key, found))
    return Judgement(named, judged)


def _judge_topic(
    table: _RequestTable, topic: TopicState, node_id: int, present: LiveReplicas, left: dict[PartitionKey, Entry]
) -> list[Judged | OfflineReplica | None]:
    """Judge each partition of one topic, and remove the replicas that are here from ``left``."""
    name, offline, duplicates = topic.topic, present.offline, present.duplicates
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
                judged = known[row] = table.live(name, entry, 1 + row[3], wanted)
            found.append(judged)
    return found


def _renamed(
    request: LeaderAndIsrRequest, present: LiveReplicas, left: Mapping[PartitionKey, Entry]
) -> list[tuple[PartitionKey, Entry]]:
    """Find replicas that are here under a topic ID of the request and another topic name."""
    found = []
    for topic in request.topics:
        former = None if topic.topic_id is None else present.topic_of(topic.topic_id)
        if former is not None and former != topic.topic:
            for state in topic.partitions:
                entry = left.get((former, state.partition))
                if entry is not None and entry.log_dir not in present.offline:
                    found.append(((former, state.partition), entry))
    return found


def _judge(row: JoinedRow) -> Judged:
    case = CASES[case_number(row)]
    return Judged(case.verdict, row, case.evidence)


def _topic_id_text(topic: TopicState) -> str:
    return "" if topic.topic_id is None else str(topic.topic_id)
