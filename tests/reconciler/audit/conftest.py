"""Makes the result of an audit by hand, for the tests of what is shown of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.audit import FINDING_SCHEMA, AuditResult
from reconciler.audit.fleet import FleetFinding
from reconciler.audit.result import BrokerSummary
from reconciler.desired import MetadataIdentity
from reconciler.verdicts import Verdict

NOW_MS = 1_700_000_000_000
PLAIN = dict.fromkeys(FINDING_SCHEMA.names) | {
    "cluster_id": "c1", "broker": 1, "log_dir": "/disks/1", "only_in_sync": False, "evidence": "seen",
}  # fmt: skip


def result_in(folder: Path) -> Callable[..., AuditResult]:
    """``made({"verdict": "STRAY", "bytes": 5}, ..., ok=3)``: totals follow the findings, which lie in the folder."""

    def made(*findings: dict[str, Any], ok: int = 0, **changes: Any) -> AuditResult:
        rows = [PLAIN | {"name": f"t-{number}", "topic": "t", "partition": number} | finding
                for number, finding in enumerate(findings)]  # fmt: skip
        path = folder / "findings.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=FINDING_SCHEMA), path)
        totals, weights, spaces = Counter(row["verdict"] for row in rows), Counter[str](), Counter[str]()
        for row in rows:
            weights[row["verdict"]] += row["bytes"] or 0
            spaces[row["verdict"]] += row["disk_bytes"] or 0
        if ok:
            totals[Verdict.OK.value], weights[Verdict.OK.value], spaces[Verdict.OK.value] = ok, 1000 * ok, 900 * ok
        broker = BrokerSummary(
            "c1", 1, ("host",), ({"log_dir": "/disks/1", "directory_id": "d1", "state": "ok", "problem": None},),
            sum(totals.values()), sum(weights.values()), sum(spaces.values()),
        )  # fmt: skip
        identity = MetadataIdentity("kraft", "/meta", "c1", offset=42, epoch=3, timestamp_ms=NOW_MS - 60_000)
        values = {
            "engine": "embedded", "audited_ms": NOW_MS, "metadata": (identity,), "brokers": (broker,),
            "totals": dict(totals), "bytes": {name: weights[name] for name in totals},
            "disk_bytes": {name: spaces[name] for name in totals}, "fleet": (),
            "doubts": dict(Counter(row["verdict"] for row in rows if row["doubt"])), "findings_path": str(path),
        }  # fmt: skip
        return AuditResult(**{**values, **changes})

    return made


@pytest.fixture
def make_result(tmp_path: Path) -> Callable[..., AuditResult]:
    """As :func:`result_in` makes results, in a folder of this test."""
    return result_in(tmp_path)


@pytest.fixture
def fleet_finding() -> FleetFinding:
    return FleetFinding("ONLY_KNOWN_COPY", "c1", "orders", "nowhere else")
