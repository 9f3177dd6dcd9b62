"""The copies of a topic, each with the verdict of the case table and the brokers on which the metadata wants it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from reconciler.desired import REPLICA_SCHEMA, DesiredState, SavedTable, by_cluster, in_memory
from reconciler.errors import MetadataError
from reconciler.verdicts import Judged, Row, compare
from reconciler.whereabouts.lookup import Found, place_of
from reconciler.whereabouts.subject import Subject

COPY_VERSION = 1
"""Version of the fields of :class:`Copy`; raised whenever one changes its meaning or goes."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a partition on a disk, or one that is wanted and lies on no disk of its broker.

    Attributes:
        cluster_id: None: its log dir names none.
        broker: node.id; None: its log dir names none.
        host: the machine that scanned.
        log_dir: None, as all that a disk says: it lies on no disk.
        directory_id: of the log dir.
        name: of the directory, below the log dir.
        kind: ``live``, ``future``, ``delete``, ``stray``, ``staged``, or ``checkpoint_entry``: a checkpoint names it.
        topic: full name.
        partition: its number.
        topic_id: on the disk; None: the disk holds none.
        bytes: lengths of its files.
        disk_bytes: space that they take.
        modified_ms: when the newest of its files was written to, in ms since 1970.
        due_ms: staged only: when a purge may take it.
        since_ms: the first of the given scans, or of those of a history, that saw it there; a copy that was in order is
            in no history.
        scanned_ms: the newest scan, which says all this.
        verdict: of the case table; None: no metadata was given.
        evidence: why, in one sentence.
        doubt: which side is too old for this verdict; None: neither.
        wanted_on: the brokers on which the metadata wants this partition under this topic ID; None: not known.
        metadata_topic_id: the metadata's ID of the topic.
        problem: what is wrong with the directory, in one sentence.
    """

    cluster_id: str | None
    broker: int | None
    host: str | None
    log_dir: str | None
    directory_id: str | None
    name: str | None
    kind: str | None
    topic: str | None
    partition: int | None
    topic_id: str | None
    bytes: int | None
    disk_bytes: int | None
    modified_ms: int | None
    due_ms: int | None
    since_ms: int | None
    scanned_ms: int | None
    verdict: str | None
    evidence: str | None
    doubt: str | None
    wanted_on: tuple[int, ...] | None
    metadata_topic_id: str | None
    problem: str | None


def related_topics(subject: Subject, found: Found, states: Sequence[DesiredState]) -> set[str]:
    """Find the topic names under which rows beside those of the subject lie, which decide on its verdicts too.

    They are the names of what was found under a topic ID, and the metadata's name for that ID.
    """
    import pyarrow.compute as pc

    names = {row["topic"] for row in found.rows if row["topic"]}
    for state in states:
        named = state.topics.filter(pc.equal(state.topics.column("topic_id"), subject.topic_id or ""))
        names.update(named.column("topic").to_pylist())
    return names - subject.topics


def copies_of(
    subject: Subject, found: Found, neighbours: Iterable[Row], states: Sequence[DesiredState], now_ms: int
) -> list[Copy]:
    """List the copies of the subject by cluster, topic, partition and broker; judged, where there is metadata.

    Args:
        subject: what was asked for.
        found: its rows.
        neighbours: the rows of :func:`related_topics`.
        states: the desired states of the metadata sources.
        now_ms: compared with due times, ms since 1970.

    Raises:
        RefusedError: the metadata does not fit the log dirs; see :func:`reconciler.desired.by_cluster`.
        MetadataError: a saved state cannot be read.
    """
    if not states:
        return sorted((_copy(row, found) for row in found.rows if subject.fits(row)), key=_order)
    seen = list({(*place_of(row), row["kind"]): row for row in (*found.rows, *neighbours)}.values())
    clusters = by_cluster(states, {row["cluster_id"] for row in found.log_dirs if row["cluster_id"]})
    names = {row["topic"] for row in seen if row["topic"]} | subject.topics
    ids = {row["topic_id"] for row in seen if row["topic_id"]} | subject.values["topic_id"]
    copies: list[Copy] = []
    for cluster in {row["cluster_id"] or "" for row in found.log_dirs}:
        state = clusters.get(cluster)
        few = {} if state is None else {cluster: _of_topics(state, names, ids)}
        wanted = None if state is None else _Wanted(few[cluster])
        rows = [row for row in (*found.log_dirs, *seen) if (row["cluster_id"] or "") == cluster]
        for each in compare(few, rows, now_ms):
            if _is_asked(each, subject):
                copy = replace(_judged(each, found), cluster_id=cluster or None)
                copies.append(copy if wanted is None else wanted.beside(copy))
    return sorted(copies, key=_order)


def _is_asked(judged: Judged, subject: Subject) -> bool:
    row = judged.wanted if judged.observed is None else judged.observed
    return row is not None and row.get("kind") != "log_dir" and subject.fits(row)


def _copy(row: Row, found: Found) -> Copy:
    values: dict[str, Any] = dict.fromkeys(Copy.__dataclass_fields__)
    values |= {name: row[name] for name in values if name in row}
    return Copy(**values | {"broker": row["node_id"], "since_ms": found.since.get(place_of(row))})


def _judged(judged: Judged, found: Found) -> Copy:
    if judged.observed is not None:
        copy = _copy(judged.observed, found)
    else:
        assert judged.wanted is not None
        nothing: dict[str, Any] = dict.fromkeys(Copy.__dataclass_fields__)
        here = {name: judged.wanted[name] for name in ("topic", "partition")}
        copy = Copy(**nothing | here | {"broker": judged.wanted["node_id"]})
    doubt = None if judged.doubt is None else judged.doubt.value
    return replace(copy, verdict=judged.verdict.value, evidence=judged.evidence, doubt=doubt)


class _Wanted:
    """On which brokers the metadata of one cluster wants each partition, by the topic's ID and by its name."""

    def __init__(self, state: DesiredState) -> None:
        self._by_id: dict[tuple[str, int], list[int]] = {}
        self._by_name: dict[tuple[str, int], list[int]] = {}
        self._id_of: dict[str, str | None] = {}
        for row in in_memory(state.replicas).to_pylist():
            self._id_of[row["topic"]] = row["topic_id"]
            self._by_name.setdefault((row["topic"], row["partition"]), []).append(row["node_id"])
            if row["topic_id"] is not None:
                self._by_id.setdefault((row["topic_id"], row["partition"]), []).append(row["node_id"])

    def beside(self, copy: Copy) -> Copy:
        """Add to a copy what is wanted of its partition.

        A copy under another ID than the metadata's is wanted nowhere; one without an ID, or where the metadata has
        none, is known by its name.
        """
        if copy.topic is None or copy.partition is None:
            return copy
        known = self._id_of.get(copy.topic)
        by_name = copy.topic_id is None or (known is None and copy.topic in self._id_of)
        nodes = (
            self._by_name.get((copy.topic, copy.partition), [])
            if by_name
            else self._by_id.get((copy.topic_id or "", copy.partition), [])
        )
        return replace(copy, wanted_on=tuple(sorted(nodes)), metadata_topic_id=known)


def _of_topics(state: DesiredState, names: Collection[str], ids: Collection[str]) -> DesiredState:
    """Choose some topics of a state, by name or by ID; of a saved state only what may hold them is read."""
    import pyarrow.compute as pc

    asked = {"topic": pa.array(sorted(names), pa.string()), "topic_id": pa.array(sorted(ids), pa.string())}
    topics = state.topics.filter(pc.field("topic").isin(asked["topic"]) | pc.field("topic_id").isin(asked["topic_id"]))
    # Replicas are chosen by name alone, by which a saved state is sorted: IDs are random, so that for one of them
    # every row would be read.
    fits = pc.field("topic").isin(topics.column("topic").combine_chunks())
    if not topics.num_rows:
        topics = state.topics.slice(0, 1)  # metadata that knows no topic at all would speak for no broker
    return replace(state, replicas=_replicas(state.replicas, fits), topics=topics)


def _replicas(replicas: pa.Table | SavedTable, fits: Any) -> pa.Table:
    if not isinstance(replicas, SavedTable):
        return replicas.filter(fits)
    import pyarrow.parquet as pq

    try:
        return pq.read_table(replicas.path, columns=REPLICA_SCHEMA.names, filters=fits).cast(REPLICA_SCHEMA)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise MetadataError(f"{replicas.path} cannot be read as Parquet: {reason:.200}") from error


def _order(copy: Copy) -> tuple[Any, ...]:
    return (
        copy.cluster_id or "",
        copy.topic or "",
        -1 if copy.partition is None else copy.partition,
        -1 if copy.broker is None else copy.broker,
        copy.log_dir or "",
        copy.name or "",
    )
