"""Alert rules and the dashboard: Prometheus takes them, and they ask for nothing that is not exported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.metrics import FAMILIES, Readings, exposition
from reconciler.verdicts import Verdict

FOLDER = Path(__file__).resolve().parents[2] / "tools" / "monitoring"
ALERTS, DASHBOARD = FOLDER / "alerts.yml", FOLDER / "dashboard.json"
EXPORTED = {family.name: family for family in FAMILIES}
_NAME = re.compile(r"\b(?:logstore|kafka_log)_[a-z_]+")
_SELECTOR = re.compile(r"\b((?:logstore|kafka_log)_[a-z_]+)\{([^}]*)\}")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"([^\"]*)\"")
GRID_WIDTH = 24


@pytest.fixture
def promtool() -> str:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    return program


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return document


def queries() -> Iterator[str]:
    """Every expression of the alerts, of the panels and of the variables."""
    yield from re.findall(r"^\s+expr: (.+)$", ALERTS.read_text(encoding="utf-8"), re.MULTILINE)
    document = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    yield from (target["expr"] for panel in document["panels"] for target in panel["targets"])
    yield from (each["definition"] for each in document["templating"]["list"] if each["type"] == "query")


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_a_query_asks_for_metrics_labels_and_verdicts_that_are_exported(query: str) -> None:
    names = set(_NAME.findall(query))
    assert names and names <= set(EXPORTED)
    for name, matchers in _SELECTOR.findall(query):
        for label, value in _MATCHER.findall(matchers):
            assert label in ("command", *EXPORTED[name].labels), (name, label)
            if label == "verdict":
                assert set(value.split("|")) <= set(Verdict)


@pytest.mark.promtool
def test_prometheus_takes_the_alert_rules(promtool: str) -> None:
    checked = subprocess.run([promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "12 rules found" in checked.stdout


@pytest.mark.promtool
def test_the_alerts_ring_for_what_they_are_about_and_for_nothing_else(promtool: str, tmp_path: Path) -> None:
    audit = '{command="audit",instance="a",cluster="c",broker="1",log_dir="/d"'
    series = {
        f"logstore_log_dir_online{audit}}}": "0x2000",
        f'logstore_replicas{audit},verdict="STALE_ID"}}': "2x2000",
        f'logstore_replicas{audit.replace("audit", "watch")},verdict="STALE_ID"}}': "2x2000",
        f'logstore_replicas{audit},verdict="OK"}}': "900x2000",
        f"kafka_log_orphan_partition_count{audit}}}": "0x2000",
        f"logstore_staged_first_due_timestamp_seconds{audit}}}": "1e9x2000",
        'logstore_run_exit_code{command="audit",instance="a"}': "1x2000",
        'logstore_metadata_age_seconds{command="audit",instance="a",cluster="c",source="kraft"}': "60x2000",
        'logstore_purge_running{command="purge",instance="a"}': "1x2000",
        'logstore_purge_progress_timestamp_seconds{command="purge",instance="a"}': "7x2000",
        'logstore_purge_running{command="purge",instance="b"}': "0x2000",
        'logstore_purge_progress_timestamp_seconds{command="purge",instance="b"}': "7x2000",
    }
    place = {"instance": "a", "cluster": "c", "broker": "1"}
    expected = {
        "LogDirAbsent": [{**place, "log_dir": "/d"}],
        "StaleTopicIds": [place],
        "PurgeStopped": [{"command": "purge", "instance": "a"}],
    }
    names = re.findall(r"alert: (\w+)", ALERTS.read_text(encoding="utf-8"))
    rules = tmp_path / "test.yml"
    alerts = re.sub(r"\n        annotations:\n(?: {10}.*\n)+", "\n", ALERTS.read_text(encoding="utf-8"))
    (tmp_path / "alerts.yml").write_text(alerts, encoding="utf-8")
    severity = dict(re.findall(r"alert: (\w+)\n(?:.*\n){2,4}?\s+severity: (\w+)", alerts))
    document = {
        "rule_files": ["alerts.yml"],
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values.replace("x", "+0x")} for name, values in series.items()
                ],
                "alert_rule_test": [
                    {
                        "eval_time": "30h",
                        "alertname": name,
                        "exp_alerts": [
                            {"exp_labels": {**labels, "severity": severity[name]}} for labels in expected.get(name, [])
                        ],
                    }
                    for name in names
                ],
            }
        ],
    }
    rules.write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML too
    ran = subprocess.run([promtool, "test", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(names) == len(severity) == 12


@pytest.mark.promtool
def test_prometheus_finds_no_fault_with_what_is_exported_but_the_name_that_kip_370_gave(promtool: str) -> None:
    readings = Readings("audit")
    for family in FAMILIES:
        readings.add(family, 1, *("x" for _ in family.labels))
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=exposition(readings), capture_output=True, check=False
    )
    faults = checked.stdout.decode() + checked.stderr.decode()
    named = {line.split(" ")[0] for line in faults.splitlines() if line.strip()}
    assert named == {"kafka_log_orphan_partition_count"}, faults


def test_the_dashboard_is_one_that_grafana_can_draw(dashboard: dict[str, Any]) -> None:
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= set(dashboard)
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(numbers) == len(set(numbers)) > 10
    taken = set()
    for panel in dashboard["panels"]:
        assert panel["type"] in ("stat", "timeseries", "bargauge", "table"), panel["title"]
        assert panel["title"] and panel["targets"] and panel["fieldConfig"]["defaults"]["unit"]
        assert set(re.findall(r"\$\{?(\w+)\}?", json.dumps(panel))) <= variables
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= GRID_WIDTH
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert not cells & taken, panel["title"]
        taken |= cells
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def test_the_two_metrics_of_kip_370_are_shown_and_ring(dashboard: dict[str, Any]) -> None:
    for text in (json.dumps(dashboard), ALERTS.read_text(encoding="utf-8")):
        assert "kafka_log_orphan_partition_count" in text
        assert "kafka_log_orphan_partition_size_bytes" in text
