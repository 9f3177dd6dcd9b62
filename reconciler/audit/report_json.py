"""An audit as JSON: totals, brokers and the identity of the metadata first, then the findings, one after the other.

    {"schema_version": 1, "engine": "embedded", "audited_ms": …,
     "metadata": {"source": "kraft", "cluster_id": …, "offset": …, "age_ms": …}, "metadata_sources": […],
     "brokers": […], "totals": {"STALE_ID": 12}, "bytes": {"STALE_ID": 1900000000000}, "fleet": […], "notes": […],
     "findings": [{"verdict": "STALE_ID", "broker": 3, "log_dir": …, "name": "orders-0", …}]}

``metadata`` is the one source, and null when there was none, or several; ``metadata_sources`` has them all. Findings
have the columns of ``findings.FINDING_SCHEMA``. Owns this document; the text of rows is left to ``row_text``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, BinaryIO

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.audit.result import AuditResult
from reconciler.desired import MetadataIdentity
from reconciler.text import write_array
from reconciler.verdicts import URGENCY, Verdict

AUDIT_SCHEMA_VERSION = 1
"""Of the document and of the findings' columns; raised whenever a field changes its meaning or goes."""

SORTED_MOST = 1_000_000
"""Findings of one verdict that are sorted; more of them come as the engine left them."""


def summary(result: AuditResult) -> dict[str, Any]:
    """The document without its findings, of a size that does not grow with the fleet's replicas."""
    sources = [_identity(source, result.audited_ms) for source in result.metadata]
    return {
        "schema_version": AUDIT_SCHEMA_VERSION,
        "engine": result.engine,
        "audited_ms": result.audited_ms,
        "metadata": sources[0] if len(sources) == 1 else None,
        "metadata_sources": sources,
        "brokers": [asdict(broker) | ({} if result.bytes else {"bytes": None}) for broker in result.brokers],
        "totals": dict(result.totals),
        "bytes": dict(result.bytes),
        "fleet": [asdict(finding) for finding in result.fleet],
        "notes": list(result.notes),
    }


def write_summary(result: AuditResult, out: BinaryIO) -> None:
    """Write the document without its findings, for people as well."""
    out.write(orjson.dumps(summary(result), option=orjson.OPT_INDENT_2) + b"\n")


def write_findings(result: AuditResult, out: BinaryIO, verdicts: Sequence[Verdict] = URGENCY) -> None:
    """Write the whole document; findings stream, so their number costs no memory.

    Args:
        result: of either engine.
        out: takes the bytes.
        verdicts: findings of these are written, in this order; totals always speak of all.
    """
    out.write(orjson.dumps(summary(result))[:-1] + b',"findings":')
    write_array(by_urgency(result, verdicts), out)
    out.write(b"}\n")


def by_urgency(result: AuditResult, verdicts: Sequence[Verdict] = URGENCY) -> Iterator[pa.Table]:
    """Findings by verdict in the order given, each by broker, topic and partition; huge verdicts last and unsorted."""
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
    """The identity with its age at the time of the audit, in ms; None where the source does not say its time."""
    return {
        **asdict(source),
        "scope": None if source.scope is None else sorted(source.scope),
        "age_ms": None if source.timestamp_ms is None else audited_ms - source.timestamp_ms,
    }
