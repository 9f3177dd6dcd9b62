"""An audit as JSON: totals, brokers and the identity of the metadata first, then the findings.

    {"schema_version": 1, "engine": "embedded", "audited_ms": …,
     "metadata": {"source": "kraft", "cluster_id": …, "offset": …, "age_ms": …}, "metadata_sources": […],
     "brokers": […], "totals": {"STALE_ID": 12}, "bytes": {"STALE_ID": 1900000000000},
     "disk_bytes": {"STALE_ID": 1899000000000}, "fleet": […], "notes": […],
     "findings": [{"verdict": "STALE_ID", "broker": 3, "log_dir": …, "name": "orders-0", …}]}

``metadata`` is the only source, and null when there is none or several; ``metadata_sources`` lists all of them.
Findings have the columns of :data:`reconciler.audit.findings.FINDING_SCHEMA`, and ``next``, the command that comes
next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, BinaryIO

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.audit.next_steps import BrokerCalls, advised_steps, next_of_fleet, with_next
from reconciler.audit.result import AuditResult
from reconciler.desired import MetadataIdentity
from reconciler.next_steps import Call
from reconciler.text import write_array
from reconciler.verdicts import URGENCY, Verdict

AUDIT_SCHEMA_VERSION = 1
"""Version of the document and of the columns of findings; raised whenever a field changes its meaning or goes."""

SORTED_MOST = 1_000_000
"""Up to this many findings of one verdict are sorted; more keep the order in which the engine wrote them."""


def summary(result: AuditResult, call: Call | None = None) -> dict[str, Any]:
    """Build the document without its findings; its size does not grow with the number of replicas.

    Args:
        result: the audit.
        call: how the command was called, for the commands that come next; None: not known.
    """
    calls = BrokerCalls(result, call)
    sources = [_identity(source, result.audited_ms) for source in result.metadata]
    unknown = {} if result.bytes else {"bytes": None, "disk_bytes": None}
    return {
        "schema_version": AUDIT_SCHEMA_VERSION,
        "engine": result.engine,
        "audited_ms": result.audited_ms,
        "metadata": sources[0] if len(sources) == 1 else None,
        "metadata_sources": sources,
        "brokers": [asdict(broker) | unknown for broker in result.brokers],
        "totals": dict(result.totals),
        "bytes": dict(result.bytes),
        "disk_bytes": dict(result.disk_bytes),
        "doubts": dict(result.doubts),
        "accepted": list(result.accepted),
        "allowed": dict(result.allowed),
        "fleet": [finding.as_row() | {"next": next_of_fleet(finding.kind, calls)} for finding in result.fleet],
        "notes": list(result.notes),
        "next": [
            {"verdict": each.verdict.value, **each.step.as_row()} for each in advised_steps(result, URGENCY, call)
        ],
    }


def write_summary(result: AuditResult, out: BinaryIO, call: Call | None = None) -> None:
    """Write the document without its findings, indented."""
    out.write(orjson.dumps(summary(result, call), option=orjson.OPT_INDENT_2) + b"\n")


def write_findings(
    result: AuditResult, out: BinaryIO, verdicts: Sequence[Verdict] = URGENCY, call: Call | None = None
) -> None:
    """Write the whole document; findings are streamed, so their number costs no memory.

    ``verdicts``: those whose findings are written, in this order, while totals always cover all; ``call``: how the
    command was called, for the commands that come next; None: not known.
    """
    out.write(orjson.dumps(summary(result, call))[:-1] + b',"findings":')
    write_array(with_next(by_urgency(result, verdicts), BrokerCalls(result, call)), out)
    out.write(b"}\n")


def by_urgency(result: AuditResult, verdicts: Sequence[Verdict] = URGENCY) -> Iterator[pa.Table]:
    """Yield findings verdict by verdict in the given order, sorted by broker, topic and partition.

    Verdicts with more than :data:`SORTED_MOST` findings come last and unsorted.
    """
    huge = []
    for verdict in verdicts:
        total = result.totals.get(verdict.value, 0)
        if total > SORTED_MOST:
            huge.append(verdict.value)
        elif total:
            yield result.most_urgent(total, (verdict,))
    if huge:
        for batch in result.batches():
            chosen = batch.filter(pc.is_in(batch.column("verdict"), pa.array(huge)))
            yield pa.Table.from_batches([chosen])


def _identity(source: MetadataIdentity, audited_ms: int) -> dict[str, Any]:
    """Convert an identity, with its age at the time of the audit in ms; None where the source gives no time."""
    return {
        **asdict(source),
        "scope": None if source.scope is None else sorted(source.scope),
        "age_ms": None if source.as_of_ms is None else audited_ms - source.as_of_ms,
    }
