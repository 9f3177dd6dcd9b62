"""The findings as the page's script reads them."""

from __future__ import annotations

import json
from collections.abc import Callable

from reconciler.audit import AuditResult
from reconciler.audit.report.charts import BrokerNames
from reconciler.audit.report.findings_table import as_script_data, in_groups, shown_findings

Make = Callable[..., AuditResult]
NAMES = BrokerNames([])


def test_a_text_that_many_findings_share_stands_once(make_result: Make) -> None:
    rows = [{"verdict": "STRAY", "broker": broker, "disk_bytes": broker} for broker in (10, 2, 10)]
    findings = shown_findings(make_result(*rows), NAMES, None)
    data = json.loads(as_script_data(findings, [("c1", 10), ("c1", 2)], NAMES))
    assert data["verdict"] == {"values": ["STRAY"], "rows": [0, 0, 0]}
    assert data["broker"] == {"values": ["2", "10"], "rows": [0, 1, 1]}
    assert data["disk_bytes"] == [2, 10, 10]
    assert data["modified_ms"] == [None] * 3
    assert data["next"]["values"] == ["logstore doctor /disks/1 --metadata /meta"]


def test_no_text_of_a_disk_ends_the_script_element(make_result: Make) -> None:
    foreign = {"verdict": "FOREIGN", "name": "</script>&<!---0", "evidence": "</SCRIPT>\x00"}
    written = as_script_data(shown_findings(make_result(foreign), NAMES, None), [("c1", 1)], NAMES)
    assert not set("<>&\x00") & set(written)
    assert json.loads(written)["where"]["values"] == ["/disks/1/</script>&<!---0"]
    assert json.loads(written)["evidence"]["values"] == ["</SCRIPT>\\x00"]


def test_a_group_of_what_a_broker_ignores_is_calm_and_a_mixed_one_is_not(make_result: Make) -> None:
    ignored = {"verdict": "FOREIGN", "evidence": "a plain file of somebody"}
    stopping = {"verdict": "FOREIGN", "evidence": "the name has no '-'", "broker": 2}
    findings = shown_findings(make_result(ignored, ignored | {"broker": 2}, stopping), NAMES, None)
    assert [(group["broker"], group["severity"]) for group in in_groups(findings)] == [("1", "calm"), ("2", "critical")]
