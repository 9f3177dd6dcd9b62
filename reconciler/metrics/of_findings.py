"""Readings of what was found: the rows of a scan, the verdicts of an audit or a plan, and the metadata. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from logstore.rows import Kind, MetadataState
from reconciler.metrics import families as of
from reconciler.metrics.families import Readings, broker_label
from reconciler.verdicts import UNWANTED, Verdict

if TYPE_CHECKING:
    import pyarrow as pa

    from reconciler.audit import AuditResult, VerdictTotal
    from reconciler.desired import MetadataIdentity
    from reconciler.verdicts import Judged

_STAGED = {Verdict.STAGED: "waiting", Verdict.STAGED_DUE: "due"}
_STATES = {MetadataState.OK: "online", MetadataState.ABSENT: "absent", MetadataState.UNREADABLE: "offline"}


def read_log_dir(readings: Readings, place: tuple[str, str, str], state: str) -> None:
    """Take in the state of one log dir.

    Args:
        readings: to be added to.
        place: cluster, broker and log dir, as labels.
        state: a :class:`logstore.rows.MetadataState`, of its ``meta.properties``.
    """
    word = _STATES.get(MetadataState(state), "unidentified")
    for each in (*_STATES.values(), "unidentified"):
        readings.add(of.LOG_DIRS, each == word, place[0], place[1], each)
    readings.least(of.LOG_DIR_ONLINE, word == "online", *place)


def read_scan(readings: Readings, rows: pa.Table) -> None:
    """Take in the rows of a scan, in ROW_SCHEMA: of one log dir or of many; call it for each table."""
    import pyarrow.compute as pc

    names = ["cluster_id", "node_id", "log_dir"]
    for row in rows.filter(pc.equal(rows["kind"], Kind.LOG_DIR)).select([*names, "metadata_state"]).to_pylist():
        read_log_dir(readings, _place(row), row["metadata_state"])
    grouped = rows.select([*names, "kind", "disk_bytes"]).group_by([*names, "kind"])
    for row in grouped.aggregate([([], "count_all"), ("disk_bytes", "sum")]).to_pylist():
        if row["kind"] != Kind.LOG_DIR:
            readings.add(of.ENTRIES, row["count_all"], *_place(row), row["kind"])
            if row["disk_bytes_sum"] is not None:
                readings.add(of.ENTRY_BYTES, row["disk_bytes_sum"], *_place(row), row["kind"])
    staged = rows.filter(pc.equal(rows["kind"], Kind.STAGED))
    for row in staged.select([*names, "due_ms", "scanned_ms", "disk_bytes"]).to_pylist():
        if row["due_ms"] is not None:
            state = "due" if row["due_ms"] <= row["scanned_ms"] else "waiting"
            _read_staged(readings, _place(row), state, 1, row["disk_bytes"])
            readings.least(of.FIRST_DUE, row["due_ms"] / 1000, *_place(row))


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["cluster_id"] or "", broker_label(row["node_id"]), row["log_dir"] or ""


def _read_staged(readings: Readings, place: tuple[str, str, str], state: str, replicas: int, size: int | None) -> None:
    readings.add(of.STAGED, replicas, *place, state)
    if size is not None:
        readings.add(of.STAGED_BYTES, size, *place, state)


def read_audit(readings: Readings, result: AuditResult, most_topics: int) -> None:
    """Take in the result of an audit.

    Args:
        readings: to be added to.
        result: its bytes are left out where none were counted.
        most_topics: so many topics have a label of their own; 0: none.
    """
    for broker in result.brokers:
        for log_dir in broker.log_dirs:
            place = (broker.cluster_id or "", broker_label(broker.node_id), log_dir["log_dir"])
            read_log_dir(readings, place, log_dir["state"])
            _read_no_orphans(readings, place, sizes=bool(result.disk_bytes))
    for total in result.by_log_dir:
        _read_total(readings, total, sizes=bool(result.disk_bytes))
    for finding in result.fleet:
        readings.add(of.FLEET_FINDINGS, 1, finding.kind)
    for identity in result.metadata:
        read_metadata(readings, identity, result.audited_ms)
    if result.scan_s is not None:
        readings.add(of.SCAN_SECONDS, result.scan_s)
    if most_topics:
        unwanted = [verdict for verdict in UNWANTED if result.totals.get(verdict)]
        _read_topics(readings, _topics(result, unwanted), most_topics)


def _topics(result: AuditResult, verdicts: Iterable[Verdict]) -> Iterable[Mapping[str, Any]]:
    for verdict in verdicts:
        found = result.of_verdict(verdict, ["cluster_id", "topic", "disk_bytes"]).group_by(["cluster_id", "topic"])
        yield from found.aggregate([([], "count_all"), ("disk_bytes", "sum")]).to_pylist()


def _read_no_orphans(readings: Readings, place: tuple[str, str, str], *, sizes: bool) -> None:
    """Begin the two metrics of KIP-370 at zero, so that a log dir without orphans has them too."""
    readings.add(of.ORPHANS, 0, *place)
    if sizes:
        readings.add(of.ORPHAN_BYTES, 0, *place)


def _read_total(readings: Readings, total: VerdictTotal, *, sizes: bool) -> None:
    place = (total.cluster, broker_label(total.node), total.log_dir or "")
    size = total.disk_bytes if sizes else None
    readings.add(of.REPLICAS, total.rows, *place, total.verdict)
    if size is not None:
        readings.add(of.REPLICA_BYTES, size, *place, total.verdict)
    if total.doubts:
        readings.add(of.IN_DOUBT, total.doubts, *place, total.verdict)
    if total.verdict in UNWANTED:
        readings.add(of.ORPHANS, total.rows, *place)
        if size is not None:
            readings.add(of.ORPHAN_BYTES, size, *place)
    if total.verdict in _STAGED:
        _read_staged(readings, place, _STAGED[total.verdict], total.rows, size)
        if total.due_ms is not None:
            readings.least(of.FIRST_DUE, total.due_ms / 1000, *place)


def read_judged(readings: Readings, judged_of: Mapping[str, Iterable[Judged]], most_topics: int) -> None:
    """Take in the rows that a plan judged, by cluster, each with a size; the log dirs themselves are among them."""
    from reconciler.audit import VerdictTotal

    topics = []
    for cluster, each in ((cluster, each) for cluster, judged in judged_of.items() for each in judged):
        row = each.observed or {}
        node = (each.observed or each.wanted or {}).get("node_id")
        place = (row.get("cluster_id") or cluster, broker_label(node), row.get("log_dir") or "")
        if row.get("kind") == Kind.LOG_DIR:
            read_log_dir(readings, place, row["metadata_state"])
            _read_no_orphans(readings, place, sizes=True)
        if row.get("kind") in (Kind.LOG_DIR, Kind.INTERNAL) and each.verdict is Verdict.OK:
            continue
        size, doubts = row.get("disk_bytes") or 0, int(each.doubt is not None)
        key = (place[0], -1 if node is None else node, place[2] or None, each.verdict)
        _read_total(readings, VerdictTotal(*key, 1, size, size, doubts, row.get("due_ms")), sizes=True)
        if each.verdict in UNWANTED:
            topics.append({"cluster_id": cluster, "topic": each.row.topic, "count_all": 1, "disk_bytes_sum": size})
    if most_topics:
        _read_topics(readings, topics, most_topics)


def _read_topics(readings: Readings, rows: Iterable[Mapping[str, Any]], most_topics: int) -> None:
    """Add up unwanted replicas by topic, and give the topics with the most bytes a label of their own."""
    numbers, weights = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in rows:
        key = (row["cluster_id"] or "", row["topic"] or "")
        numbers[key] += row["count_all"]
        weights[key] += row["disk_bytes_sum"] or 0
    ranked = sorted(numbers, key=lambda key: (-weights[key], -numbers[key], key))
    for rank, (cluster, topic) in enumerate(ranked):
        shown = topic if rank < most_topics and topic else of.OTHER_TOPICS
        readings.add(of.TOPIC_ORPHANS, numbers[cluster, topic], cluster, shown)
        readings.add(of.TOPIC_ORPHAN_BYTES, weights[cluster, topic], cluster, shown)


def read_metadata(readings: Readings, identity: MetadataIdentity, now_ms: int) -> None:
    """Take in as of when a source of metadata speaks, unless it does not say."""
    if identity.as_of_ms is not None:
        labels = (identity.cluster_id or "", identity.source)
        readings.least(of.METADATA_TIME, identity.as_of_ms / 1000, *labels)
        readings.samples.setdefault(of.METADATA_AGE, {})[labels] = (
            now_ms / 1000 - readings.samples[of.METADATA_TIME][labels]
        )
