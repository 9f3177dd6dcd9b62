"""Compare desired with observed state in Python: join the rows of brokers, and apply the case table to each.

A pure function of rows and tables, without a clock, a file or a logger. The request handler, ``explain`` and the tests
use it. The audits do the same join in DuckDB and Spark (``reconciler.audit.join_sql``), and a property test holds all
three to the same answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.desired import BrokerKey, DesiredState, JudgedBroker, in_memory, speaking
from reconciler.verdicts.doubt import LATEST, Doubt, Times, doubt_of
from reconciler.verdicts.table import CASES, JoinedRow, Verdict, case_number

Row = Mapping[str, Any]
"""A row of ``logstore.rows.ROW_SCHEMA`` or of ``reconciler.desired.REPLICA_SCHEMA`` as a mapping."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The table's verdict on one joined row, with the two sides that were joined."""

    verdict: Verdict
    evidence: str
    row: JoinedRow
    case: int
    observed: Row | None
    wanted: Row | None
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """The topics that the metadata of one broker knows: the lookup from which each joined row is made in Python.

    Attributes:
        id_of: topic → its topic ID; empty text where it has none.
        name_of: topic ID → topic.
        judged: whether metadata speaks for the broker.
        complete: whether the metadata is FULL for it.
    """

    id_of: Mapping[str, str]
    name_of: Mapping[str, str]
    judged: bool
    complete: bool

    def on_disk(
        self,
        topic: str,
        topic_id: str,
        wanted_id: str | None,
        *,
        kind: str,
        state: str,
        problem: str,
        copies: int,
        due: bool = False,
        moving: bool = False,
    ) -> JoinedRow:
        """Join something on the disk with the metadata; all but ``wanted_id`` are as in :class:`JoinedRow`.

        It is the topic ID under which the metadata wants the replica on this broker, empty text for none; None: it does
        not want it.
        """
        return JoinedRow(
            on_disk=True,
            kind=kind,
            state=state,
            topic=topic,
            disk_topic_id=topic_id,
            problem=problem,
            due=due,
            copies=copies,
            judged=self.judged,
            complete=self.complete,
            wanted=wanted_id is not None,
            wanted_topic_id=wanted_id or "",
            moving=moving,
            name_known=topic in self.id_of,
            name_topic_id=self.id_of.get(topic, ""),
            id_topic=self.name_of.get(topic_id, ""),
        )

    def absent(self, topic: str, wanted_id: str, *, moving: bool = False, home_seen: bool = True) -> JoinedRow:
        """Make the row of a replica that is wanted on this broker, and lies on none of its disks."""
        return JoinedRow(
            topic=topic,
            judged=self.judged,
            complete=self.complete,
            wanted=True,
            wanted_topic_id=wanted_id,
            moving=moving,
            name_known=True,
            name_topic_id=self.id_of.get(topic, ""),
            home_seen=home_seen,
        )


@dataclass(frozen=True, slots=True)
class _Context:
    """Facts about all rows together."""

    copies: Counter[tuple[BrokerKey, str | None, int | None]]
    homes: frozenset[tuple[BrokerKey, str]]
    times: Mapping[BrokerKey, Times]
    now_ms: int


@dataclass(frozen=True, slots=True)
class _WantedReplicas:
    """One cluster's desired state, indexed for the lookups of the join."""

    by_name: dict[tuple[int, str, int], Row]
    by_topic_id: dict[tuple[int, str, int], Row]
    id_of: dict[str, str]
    name_of: dict[str, str]

    def topics(self, speaks: JudgedBroker | None) -> KnownTopics:
        """Give what is known of topics to one of the cluster's brokers; None: no metadata speaks for it."""
        return KnownTopics(self.id_of, self.name_of, speaks is not None, speaks is not None and speaks.complete)

    @staticmethod
    def of(state: DesiredState, nodes: frozenset[int]) -> _WantedReplicas:
        replicas = [row for row in in_memory(state.replicas).to_pylist() if row["node_id"] in nodes]
        topics = state.topics.to_pylist()
        return _WantedReplicas(
            {(row["node_id"], row["topic"], row["partition"]): row for row in replicas},
            {(row["node_id"], row["topic_id"], row["partition"]): row for row in replicas if row["topic_id"]},
            {topic["topic"]: topic["topic_id"] or "" for topic in topics},
            {topic["topic_id"]: topic["topic"] for topic in topics if topic["topic_id"]},
        )


_NOTHING = _WantedReplicas({}, {}, {}, {})


def broker_of(row: Row) -> BrokerKey:
    """The broker that a row of a scan belongs to."""
    return BrokerKey(row["cluster_id"] or "", -1 if row["node_id"] is None else row["node_id"])


def compare(states: Mapping[str, DesiredState], rows: Sequence[Row], now_ms: int) -> Iterator[Judged]:
    """Judge every row, and every replica that is wanted on a scanned broker but was not found.

    Args:
        states: desired state by cluster ID, as :func:`reconciler.desired.by_cluster` gives it.
        rows: rows of one scan or of many.
        now_ms: compared with due times, ms since 1970.
    """
    brokers = {broker_of(row) for row in rows if row["kind"] == "log_dir"}
    speaks = {BrokerKey(s.cluster, s.node): s for s in speaking(dict(states), brokers)}
    clusters = {
        cluster: _WantedReplicas.of(state, frozenset(b.node for b in speaks if b.cluster == cluster))
        for cluster, state in states.items()
    }
    homes = frozenset(
        (broker_of(row), row["directory_id"])
        for row in rows
        if row["kind"] == "log_dir" and row["metadata_state"] == "ok" and row["directory_id"]
    )
    copies = Counter((broker_of(row), row["topic"], row["partition"]) for row in rows if row["kind"] == "live")
    context = _Context(copies, homes, _times_of_brokers(rows, speaks), now_ms)
    all_brokers = set(map(broker_of, rows))
    topics = {broker: clusters.get(broker.cluster, _NOTHING).topics(speaks.get(broker)) for broker in all_brokers}
    for row in rows:
        broker = broker_of(row)
        wanted = _wanted(row, broker, clusters.get(broker.cluster, _NOTHING))
        yield _judge(_on_disk(row, broker, wanted, topics[broker], context), row, wanted, context.times.get(broker))
    for broker in speaks:
        for (node, topic, partition), replica in clusters[broker.cluster].by_name.items():
            if node == broker.node and not copies[broker, topic, partition]:
                joined = _absent(replica, broker, topics[broker], context)
                yield _judge(joined, None, replica, context.times[broker])


def _times_of_brokers(rows: Sequence[Row], speaks: Mapping[BrokerKey, JudgedBroker]) -> dict[BrokerKey, Times]:
    """Give the times of each broker that metadata speaks for; rows of a watch carry no time of their scan."""
    scanned: dict[BrokerKey, int] = {}
    for row in rows:
        if row["kind"] == "log_dir" and row.get("scanned_ms") is not None:
            broker = broker_of(row)
            scanned[broker] = min(row["scanned_ms"], scanned.get(broker, LATEST))
    return {
        broker: Times(as_of_ms=says.as_of_ms or -1, scanned_ms=scanned.get(broker, LATEST))
        for broker, says in speaks.items()
    }


_BESIDE_LIVE = frozenset({"live", "future", "delete", "stray", "staged"})
"""Kinds of directories whose verdict depends on the live replicas of their partition on the broker."""


def _wanted(row: Row, broker: BrokerKey, cluster: _WantedReplicas) -> Row | None:
    if row["kind"] == "live":
        return cluster.by_name.get((broker.node, row["topic"], row["partition"]))
    return cluster.by_topic_id.get((broker.node, row["topic_id"], row["partition"]))


def _on_disk(row: Row, broker: BrokerKey, wanted: Row | None, topics: KnownTopics, context: _Context) -> JoinedRow:
    # Log dirs without an identity may belong to several brokers: a replica that lies in two of them is no duplicate.
    copies = context.copies[broker, row["topic"], row["partition"]] if broker.node >= 0 else int(row["kind"] == "live")
    return topics.on_disk(
        row["topic"] or "",
        row["topic_id"] or "",
        None if wanted is None else wanted["topic_id"] or "",
        kind=row["kind"],
        state=row["metadata_state"] or "",
        problem=row["problem"] or "",
        copies=copies if row["kind"] in _BESIDE_LIVE else 0,
        due=row["due_ms"] is not None and row["due_ms"] <= context.now_ms,
        moving=wanted is not None and (wanted["adding"] or wanted["removing"]),
    )


def _absent(wanted: Row, broker: BrokerKey, topics: KnownTopics, context: _Context) -> JoinedRow:
    return topics.absent(
        wanted["topic"],
        wanted["topic_id"] or "",
        moving=wanted["adding"] or wanted["removing"],
        home_seen=wanted["directory_id"] is None or (broker, wanted["directory_id"]) in context.homes,
    )


def _judge(joined: JoinedRow, observed: Row | None, wanted: Row | None, times: Times | None) -> Judged:
    number = case_number(joined)
    case = CASES[number]
    doubt = None
    if times is not None and case.doubt is not None:
        modified_ms = None if observed is None else observed.get("modified_ms")
        doubt = doubt_of(case.doubt, replace(times, modified_ms=-1 if modified_ms is None else modified_ms))
    return Judged(case.verdict, fill_evidence(case.evidence, joined), joined, number, observed, wanted, doubt)


def fill_evidence(template: str, row: JoinedRow) -> str:
    """Fill an evidence template from a row; empty text shows as ``none``."""
    return template.format_map({name: _shown(getattr(row, name)) for name in JoinedRow.__dataclass_fields__})


def _shown(value: Any) -> str:
    return str(value) if value != "" else "none"
