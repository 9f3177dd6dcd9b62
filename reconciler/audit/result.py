"""The result of an audit, the same for both engines, and how it is concluded from an engine's tables.

An engine brings ``found``, ``topics``, ``searched`` (:data:`reconciler.audit.fleet.SEARCHED`), the tables of
:mod:`reconciler.audit.dimension_tables`, and a function that runs a query over them. Totals, a line for each broker and
the bounded fleet findings are in memory, the findings in a Parquet dataset.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import pyarrow as pa

from reconciler.audit.dimension_tables import parquet_files
from reconciler.audit.findings import FINDING_SCHEMA, MAY_BE_NEWER, TOTALS, StoredFindings
from reconciler.audit.fleet import (
    ID_CHANGES,
    INVENTORY_GAP_MS,
    LIMIT,
    QUERIES,
    FleetFinding,
    FleetQuery,
    far_inventories,
    limited,
    other_clusters,
    own_metadata,
    to_findings,
    unreported_brokers,
)
from reconciler.audit.incremental import Basis
from reconciler.desired import DesiredState, MetadataIdentity, SavedTable
from reconciler.policy import PolicyRules
from reconciler.text import count, listed
from reconciler.verdicts import BENIGN, URGENCY, Verdict


class Accepted(StrEnum):
    """What a user may declare to be no reason for action: it stays listed, and the audit counts as clean."""

    OWN_METADATA = "own-metadata"
    """The only metadata is a stopped broker's own, as in a backup."""
    INVENTORY_AGE = "inventory-age"
    """Inventories and metadata are of very different times."""
    NOT_REPORTED = "not-reported"
    """Brokers of which no inventory was given."""
    DOUBT = "doubt"
    """Findings that are in doubt."""


_ACCEPTED_KINDS = {
    Accepted.OWN_METADATA: "OWN_METADATA",
    Accepted.INVENTORY_AGE: "INVENTORY_AGE",
    Accepted.NOT_REPORTED: "BROKER_NOT_REPORTED",
}


class Role(StrEnum):
    """What a node is, by what lies on its disks and by the metadata."""

    BROKER = "broker"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True)
class BrokerSummary:
    """The scanned log dirs that name one node of one cluster, or none."""

    cluster_id: str | None
    node_id: int | None
    hosts: tuple[str, ...]
    log_dirs: tuple[Mapping[str, Any], ...]
    """A dict with ``log_dir``, ``directory_id``, ``state`` and ``problem`` for each."""
    replicas: int
    """Number of partition dirs of any kind on its disks, without the metadata's own log."""
    bytes: int
    """Sum of the lengths of all files."""
    disk_bytes: int
    """Space that they take; preallocated indexes make the lengths larger."""
    role: Role | None = Role.BROKER
    """None: nobody's, as far as can be known: no identity, or a cluster whose metadata was not given beside others."""


class VerdictTotal(NamedTuple):
    """What one verdict says of one log dir, added up; cluster "" and node -1 where the log dir names none."""

    cluster: str
    node: int
    log_dir: str | None
    """None: the replicas are on no disk."""
    verdict: Verdict
    rows: int
    bytes: int
    disk_bytes: int
    doubts: int = 0
    """Rows that are in doubt."""
    due_ms: int | None = None
    """The earliest due time of these rows, ms since 1970; None: none of them is staged."""


class ScannedLogDir(NamedTuple):
    """When a log dir was scanned, ms since 1970; cluster "" and node -1 where it names none."""

    cluster: str
    node: int
    log_dir: str
    scanned_ms: int | None


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of one audit by either engine."""

    engine: str
    audited_ms: int
    metadata: tuple[MetadataIdentity, ...]
    brokers: tuple[BrokerSummary, ...]
    totals: Mapping[str, int]
    """Rows by verdict; a verdict without rows is not listed."""
    bytes: Mapping[str, int]
    """Lengths of the files by verdict."""
    disk_bytes: Mapping[str, int]
    """Space on the disk by verdict, which tables and pages show as the size."""
    fleet: tuple[FleetFinding, ...]
    findings_path: str
    """A Parquet file or a folder of them, in the columns of FINDING_SCHEMA."""
    notes: tuple[str, ...] = field(default=())
    """Sentences that a reader should know and nobody must act on."""
    doubts: Mapping[str, int] = field(default_factory=dict)
    """Rows by verdict that are in doubt, among those in :attr:`totals`; a verdict without any is not listed."""
    accepted: tuple[Accepted, ...] = ()
    allowed: Mapping[str, int] = field(default_factory=dict)
    """Rows by verdict that a policy allows, among those in :attr:`totals`."""
    rules: PolicyRules = field(default_factory=PolicyRules, compare=False)
    """The policy; without one, no rule."""
    scans: tuple[ScannedLogDir, ...] = field(default=(), compare=False)
    kept: int = field(default=0, compare=False)
    """Brokers whose findings are those of an earlier audit, because nothing changed that they rest on."""
    basis: tuple[Basis, ...] = field(default=(), compare=False)
    """What the verdicts of each broker rest on, for the next incremental audit; empty: it was not asked for."""
    by_log_dir: tuple[VerdictTotal, ...] = field(default=(), compare=False)
    scan_s: float | None = field(default=None, compare=False)
    """Seconds that the scan of trees took; None: it is not known."""
    _stored: StoredFindings = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Keep what is read of the findings with this result."""
        object.__setattr__(self, "_stored", StoredFindings(self.findings_path))

    @property
    def scope(self) -> str:
        """How many log dirs of how many brokers were audited: ``9 log dirs of 3 brokers and 1 controller``."""
        roles = Counter(each.role for each in self.brokers)
        nodes = [count(roles[role], role.value) for role in Role if roles[role]]
        strangers = sum(len(each.log_dirs) for each in self.brokers if each.role is None)
        of_nodes = sum(len(each.log_dirs) for each in self.brokers) - strangers
        parts = [f"{count(of_nodes, 'log dir')} of {' and '.join(nodes)}"] if nodes else []
        parts += [f"{count(strangers, 'log dir')} of no known broker"] if strangers or not nodes else []
        return ", ".join(parts)

    @property
    def is_clean(self) -> bool:
        """Whether no finding asks for action, but what is :attr:`accepted` or :attr:`allowed`."""
        doubt = Accepted.DOUBT in self.accepted
        kinds = {_ACCEPTED_KINDS[each] for each in self.accepted if each in _ACCEPTED_KINDS}
        totals = {name: total - (self.doubts.get(name, 0) if doubt else 0) for name, total in self.totals.items()}
        totals = {name: total - self.allowed.get(name, 0) for name, total in totals.items()}
        return not any(total for name, total in totals.items() if Verdict(name) not in BENIGN) and all(
            each.kind in kinds or (doubt and each.doubt is not None) for each in self.fleet
        )

    def is_allowed(self, finding: Mapping[str, Any]) -> bool:
        """Whether the policy allows what a finding is about, so that nobody has to act."""
        return bool(finding["verdict"] == Verdict.FOREIGN) and self.rules.allows(finding["name"])

    @property
    def count(self) -> int:
        """Number of findings in :attr:`findings_path`."""
        return int(self._stored.dataset().count_rows())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all findings in no particular order, batch by batch."""
        yield from self._stored.dataset().to_batches()

    def most_urgent(self, limit: int, verdicts: Sequence[Verdict] = URGENCY) -> pa.Table:
        """Return at most ``limit`` findings, by urgency and then by broker, topic and partition.

        Reads one verdict at a time and stops when it has enough, so a million findings cost no more than a few.
        """
        tables: list[pa.Table] = []
        room = limit
        for verdict in verdicts:
            if room <= 0:
                break
            if not self.totals.get(verdict.value):
                continue
            order = [(name, "ascending") for name in ("broker", "topic", "partition", "log_dir", "name")]
            tables.append(self._stored.of(verdict.value).sort_by(order).slice(0, room))
            room -= tables[-1].num_rows
        return pa.concat_tables(tables) if tables else FINDING_SCHEMA.empty_table()

    def of_verdict(self, verdict: Verdict, columns: Sequence[str]) -> pa.Table:
        """Return some columns of all findings of one verdict, in no particular order."""
        return self._stored.of(verdict.value, columns)


RunQuery = Callable[[str], list[dict[str, Any]]]
"""Runs SQL and returns all its rows, by column name."""

_LOG_DIRS = """
    SELECT cluster, node, host, log_dir, directory_id, state, problem, scanned_ms, clean_shutdown,
           (host, log_dir) IN (SELECT (host, log_dir) FROM log_dirs
                               WHERE kind = 'internal' AND topic = '__cluster_metadata') AS keeps_metadata
    FROM log_dirs WHERE kind = 'log_dir' ORDER BY cluster, node, host, log_dir
"""

_USUAL_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")


def conclude(
    query: RunQuery,
    states: Mapping[str, DesiredState],
    *,
    engine: str,
    now_ms: int,
    findings_path: str,
    with_previous: bool = False,
    gap_ms: int = INVENTORY_GAP_MS,
    inventoried: bool = False,
) -> AuditResult:
    """Ask an engine for totals, brokers and fleet findings.

    ``query`` runs SQL over the engine's tables; ``findings_path``: where the engine wrote the findings;
    ``with_previous``: whether a table ``previous`` holds the topics of an earlier audit; ``gap_ms``: the greatest span
    between an inventory and the metadata that is no finding; ``inventoried``: whether inventories were given, so that a
    broker without one is a finding and not a note.
    """
    disks = query("SELECT * FROM disks")
    found = query(TOTALS)
    by_log_dir = _by_log_dir(found, disks)
    queries = [q for q in QUERIES if states or not q.needs_metadata]
    if with_previous:
        queries.append(ID_CHANGES)
    log_dirs = query(_LOG_DIRS)
    brokers = _brokers(disks, log_dirs, states)
    return AuditResult(
        engine=engine,
        audited_ms=now_ms,
        metadata=tuple(state.identity for state in states.values()),
        brokers=brokers,
        totals=_sums(by_log_dir, "rows"),
        bytes=_sums(by_log_dir, "bytes"),
        disk_bytes=_sums(by_log_dir, "disk_bytes"),
        doubts={verdict: number for verdict, number in _sums(by_log_dir, "doubts").items() if number},
        fleet=(
            *own_metadata(states, log_dirs),
            *(finding for each in queries for finding in _fleet(query, each)),
            *other_clusters(states, log_dirs),
            *limited(far_inventories(states, log_dirs, now_ms, gap_ms, inventoried=inventoried)),
            *limited(_unreported(query, states, brokers) if inventoried else ()),
        ),
        findings_path=findings_path,
        notes=(
            *_notes(query, states, brokers, inventoried),
            *_disk_notes(disks, log_dirs),
            *_unknown_doubts(found, states),
        ),
        scans=tuple(ScannedLogDir(*(row[name] for name in ScannedLogDir._fields)) for row in log_dirs),
        by_log_dir=by_log_dir,
    )


_COUNTED = ("rows_observed", "bytes_counted", "disk_bytes_counted")
"""What lies in a log dir in ``disks``, and what of it is a finding in :data:`TOTALS`."""


def _by_log_dir(found: Sequence[Mapping[str, Any]], disks: Sequence[Mapping[str, Any]]) -> tuple[VerdictTotal, ...]:
    """Add up each verdict in each log dir."""
    totals, left = list[VerdictTotal](), defaultdict[tuple[str, int, str], Counter[str]](Counter)
    for row in disks:  # one log dir may have several rows, where some of its values are null and others empty
        left[row["cluster"], row["node"], row["log_dir"]].update({name: int(row[name]) for name in _COUNTED})
    for row in found:
        if row["verdict"] == Verdict.OK:
            continue  # counted below
        rows, length, size, doubts = (int(row[f"{each}_found"]) for each in ("rows", "bytes", "disk_bytes", "doubts"))
        place, verdict = (row["cluster"], row["node"], row["log_dir"]), Verdict(row["verdict"])
        totals.append(VerdictTotal(*place, verdict, rows, length, size, doubts, row["first_due_ms"]))
        if place in left:
            left[place].subtract({name: int(row[name]) for name in _COUNTED})
    # Every observed row that is no finding is OK, because ``joined`` has every row once (reconciler/audit/join_sql.py).
    for place, counted in left.items():
        if counted["rows_observed"]:
            totals.append(VerdictTotal(*place, Verdict.OK, *(counted[name] for name in _COUNTED)))
    return tuple(totals)


def _sums(by_log_dir: Sequence[VerdictTotal], name: str) -> dict[str, int]:
    """Add up a column by verdict, in the order of the verdicts."""
    sums = Counter[Verdict]()
    for total in by_log_dir:
        sums[total.verdict] += getattr(total, name)
    return {verdict.value: sums[verdict] for verdict in Verdict if verdict in sums}


def _brokers(
    disks: Sequence[Mapping[str, Any]], log_dirs: Sequence[Mapping[str, Any]], states: Mapping[str, DesiredState]
) -> tuple[BrokerSummary, ...]:
    held = defaultdict[tuple[str, int], Counter[str]](Counter)
    for row in disks:
        held[row["cluster"], row["node"]].update({name: int(row[name]) for name in ("replicas", "bytes", "disk_bytes")})
    grouped: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in log_dirs:
        grouped.setdefault((row["cluster"], row["node"]), []).append(row)
    return tuple(
        BrokerSummary(
            cluster_id=cluster or None,
            node_id=node if node >= 0 else None,
            hosts=tuple(sorted({row["host"] for row in rows if row["host"]})),
            log_dirs=tuple(
                {
                    "log_dir": row["log_dir"],
                    "directory_id": row["directory_id"],
                    "state": row["state"],
                    "problem": row["problem"] or None,
                }
                for row in rows
            ),
            replicas=held[cluster, node]["replicas"],
            bytes=held[cluster, node]["bytes"],
            disk_bytes=held[cluster, node]["disk_bytes"],
            role=_role(cluster, node, rows, held[cluster, node]["replicas"], states),
        )
        for (cluster, node), rows in grouped.items()
    )


def _role(
    cluster: str,
    node: int,
    log_dirs: Sequence[Mapping[str, Any]],
    replicas: int,
    states: Mapping[str, DesiredState],
) -> Role | None:
    """Tell brokers, controllers and log dirs of nobody known apart, so that each is counted as what it is."""
    if node < 0 or (states and cluster not in states):
        return None
    if replicas or not all(row["keeps_metadata"] for row in log_dirs):
        return Role.BROKER
    # A broker in whose only log dir no replica lies yet looks like a controller, but is registered.
    registered = states[cluster].brokers.column("node_id").to_pylist() if cluster in states else []
    return Role.BROKER if node in registered else Role.CONTROLLER


def _fleet(query: RunQuery, fleet_query: FleetQuery) -> list[FleetFinding]:
    return to_findings(fleet_query, query(f"{fleet_query.sql} LIMIT {LIMIT + 1}"))


def _unreported(
    query: RunQuery, states: Mapping[str, DesiredState], brokers: Sequence[BrokerSummary]
) -> Iterator[FleetFinding]:
    """Find brokers without a scan, where the metadata speaks of a whole cluster."""
    for cluster, state in states.items():
        if state.identity.scope is None:
            yield from unreported_brokers(cluster, _holders(query, state.replicas), _scanned(cluster, brokers))


def _scanned(cluster: str, brokers: Sequence[BrokerSummary]) -> set[int | None]:
    return {broker.node_id for broker in brokers if broker.cluster_id == (cluster or None)}


def _notes(
    query: RunQuery, states: Mapping[str, DesiredState], brokers: Sequence[BrokerSummary], inventoried: bool
) -> tuple[str, ...]:
    notes: list[str] = []
    for cluster, state in states.items():
        notes.extend(f"{state.identity.location}: {problem}" for problem in state.identity.problems)
        if not state.topics.num_rows:
            notes.append(f"{state.identity.location} knows no topic at all: nothing was compared with it")
        if inventoried:
            continue
        known = _holders(query, state.replicas).keys()
        unseen = sorted(known - _scanned(cluster, brokers))
        if unseen and state.identity.scope is None:
            shown = ", ".join(map(str, unseen[:10])) + (", …" if len(unseen) > 10 else "")
            were = "was" if len(unseen) == 1 else "were"
            notes.append(f"{len(unseen)} of {len(known)} brokers that hold replicas {were} not scanned: {shown}")
    return tuple(notes)


def _holders(query: RunQuery, replicas: pa.Table | SavedTable) -> dict[int, int]:
    """Count the replicas of each broker that holds some; the engine reads that column of a saved table in no time."""
    if isinstance(replicas, SavedTable):
        found = query(f"SELECT node_id, count(*) AS held FROM {parquet_files(replicas.path)} GROUP BY node_id")
        return {row["node_id"]: int(row["held"]) for row in found}
    counted = replicas.column("node_id").value_counts().to_pylist()
    return {each["values"]: each["counts"] for each in counted}


def _unknown_doubts(found: Sequence[Mapping[str, Any]], states: Mapping[str, DesiredState]) -> Iterator[str]:
    """Yield a note where findings may be in doubt, and a time that would say so is not known."""
    condemned = sum(int(row["rows_found"]) for row in found if row["verdict"] in MAY_BE_NEWER)
    undated = sum(int(row["undated_found"]) for row in found)
    timeless = [state.identity.location for state in states.values() if state.identity.as_of_ms is None]
    if condemned and timeless:
        yield (
            f"{listed(timeless)} does not say as of when it speaks, so it is not known whether what it condemns is "
            "newer than it, and in doubt"
        )
    if undated and len(timeless) < len(states):
        yield (
            f"it is not known of {count(undated, 'finding')} when the files were last written to, and so not whether "
            "they are newer than the metadata, and in doubt: an audit with sizes reads the times"
        )


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _disk_notes(disks: Sequence[Mapping[str, Any]], log_dirs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield notes on oddities of the disks that ask for no action."""
    live, without_metadata, without_segment = (
        sum(row[name] for row in disks) for name in ("live", "without_metadata", "without_segment")
    )
    if without_metadata:
        yield f"{without_metadata} of {live} live replicas {_have(without_metadata)} no partition.metadata"
    if without_segment:
        yield f"{without_segment} of {live} live replicas {'holds' if without_segment == 1 else 'hold'} no segment"
    unclean = sum(row["clean_shutdown"] is False for row in log_dirs)
    if unclean:
        yield (
            f"{unclean} of {len(log_dirs)} log dirs {_have(unclean)} no clean shutdown marker: their brokers run, or "
            "were not stopped cleanly"
        )
    yield from (f"{row['log_dir']}: {row['problem']}" for row in log_dirs if row["state"] == "ok" and row["problem"])
    for cluster in sorted({row["cluster"] for row in log_dirs}):
        if cluster and not _USUAL_CLUSTER_ID.fullmatch(cluster):
            yield f"cluster.id {cluster} is not of the form that Kafka's tools give: 22 characters of base64url"
