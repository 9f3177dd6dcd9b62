"""Metrics: names as Prometheus has them, labels with a bound, and readings that add up."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

from logstore.purge import LogDirPurge, Purged
from logstore.repair import RepairStatus
from logstore.rows import ROW_SCHEMA
from reconciler.audit import AuditResult, VerdictTotal
from reconciler.desired import MetadataIdentity
from reconciler.metrics import (
    FAMILIES,
    OTHER_TOPICS,
    Family,
    Readings,
    exposition,
    read_apply,
    read_audit,
    read_judged,
    read_metadata,
    read_plan,
    read_purge,
    read_purge_under_way,
    read_scan,
)
from reconciler.plan import Action, ActionKind, AppliedAction, ApplyOutcome, Gate, LeftAlone, Plan
from reconciler.verdicts import UNWANTED, JoinedRow, Judged, Verdict

BOUNDED = {
    *("cluster", "broker", "log_dir", "verdict", "kind", "state", "outcome", "status", "gate", "source"),
    "topic",  # the largest few, and one for the rest
}
Key = tuple[str, frozenset[tuple[str, str]]]


def samples(readings: Readings) -> dict[Key, float]:
    """Every sample as Prometheus' own parser reads it, without the label of the command."""
    return {
        (sample.name, frozenset(each for each in sample.labels.items() if each[0] != "command")): sample.value
        for family in text_string_to_metric_families(exposition(readings).decode())
        for sample in family.samples
    }


def key(name: str, **labels: str) -> Key:
    return name, frozenset(labels.items())


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_names_follow_the_conventions_and_no_label_grows_without_a_bound(family: Family) -> None:
    assert re.fullmatch(r"(kafka_log|logstore)_[a-z_]+", family.name)
    assert family.is_counter == family.name.endswith("_total")
    assert set(family.labels) <= BOUNDED
    assert family.text and not family.text.endswith(".") and "\n" not in family.text
    for word, unit in (("space", "_bytes"), ("how long", "_seconds"), ("age of", "_seconds")):
        assert not family.text.lower().startswith(word) or family.name.endswith(unit)


def test_no_name_stands_twice_and_those_of_kip_370_are_there() -> None:
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names)) > 20
    assert {"kafka_log_orphan_partition_count", "kafka_log_orphan_partition_size_bytes"} <= set(names)


def test_samples_add_up_and_every_one_says_which_command_took_it() -> None:
    family = next(family for family in FAMILIES if family.labels == ("kind",))
    readings = Readings("audit")
    readings.add(family, 1, 'a "kind"\n')
    readings.add(family, 2, 'a "kind"\n')
    readings.end(now_s=12.5, seconds=1, exit_code=4)
    found = text_string_to_metric_families(exposition(readings).decode())
    assert {sample.labels["command"] for each in found for sample in each.samples} == {"audit"}
    assert samples(readings)[key(family.name, kind='a "kind"\n')] == 3
    assert samples(readings)[key("logstore_run_timestamp_seconds")] == 12.5
    assert samples(readings)[key("logstore_run_exit_code")] == 4


def test_a_path_that_is_not_utf_8_becomes_a_label_all_the_same() -> None:
    readings = Readings("scan")
    read_scan(readings, rows({"kind": "log_dir", "log_dir": r"/disk/\xff", "metadata_state": "ok"}))
    assert samples(readings)[key("logstore_log_dir_online", cluster="", broker="", log_dir=r"/disk/\xff")] == 1
    readings = Readings("purge")
    read_purge(readings, [LogDirPurge("/disk/\udcff")], {}, dry_run=False)
    assert key("logstore_purge_complete", cluster="", broker="", log_dir=r"/disk/\xff") in samples(readings)


def rows(*changes: dict[str, object]) -> pa.Table:
    nothing = dict.fromkeys(ROW_SCHEMA.names)
    return pa.Table.from_pylist([nothing | each for each in changes], schema=ROW_SCHEMA)


def test_a_scan_counts_what_lies_there_and_what_is_staged_until_when() -> None:
    of_one = {"cluster_id": "c", "node_id": 1, "log_dir": "/d", "scanned_ms": 5000}
    labels = {"cluster": "c", "broker": "1", "log_dir": "/d"}
    readings = Readings("scan")
    table = rows(
        of_one | {"kind": "log_dir", "metadata_state": "ok"},
        of_one | {"kind": "live", "disk_bytes": 10},
        of_one | {"kind": "live", "disk_bytes": 20},
        of_one | {"kind": "staged", "disk_bytes": 7, "due_ms": 4000},
        of_one | {"kind": "staged", "disk_bytes": 8, "due_ms": 6000},
        of_one | {"kind": "foreign"},
    )
    read_scan(readings, table)
    found = samples(readings)
    assert found[key("logstore_scanned_entries", **labels, kind="live")] == 2
    assert found[key("logstore_scanned_size_bytes", **labels, kind="live")] == 30
    assert key("logstore_scanned_size_bytes", **labels, kind="foreign") not in found
    assert key("logstore_scanned_entries", **labels, kind="log_dir") not in found
    assert found[key("logstore_staged_size_bytes", **labels, state="due")] == 7
    assert found[key("logstore_staged_size_bytes", **labels, state="waiting")] == 8
    assert found[key("logstore_staged_first_due_timestamp_seconds", **labels)] == 4


@pytest.mark.parametrize(
    ("state", "word"),
    [("ok", "online"), ("absent", "absent"), ("unreadable", "offline"), ("missing", "unidentified")],
)
def test_a_log_dir_is_in_one_state(state: str, word: str) -> None:
    readings = Readings("scan")
    read_scan(readings, rows({"kind": "log_dir", "log_dir": "/d", "metadata_state": state}))
    found = samples(readings)
    states = {dict(labels)["state"]: value for (name, labels), value in found.items() if name == "logstore_log_dirs"}
    assert states == {each: each == word for each in ("online", "absent", "offline", "unidentified")}
    assert found[key("logstore_log_dir_online", cluster="", broker="", log_dir="/d")] == (word == "online")


def audited(*totals: VerdictTotal, **changes: object) -> AuditResult:
    values = {"disk_bytes": {"OK": 1}, "totals": {}} | changes
    return AuditResult("e", 9000, (), (), values["totals"], {}, values["disk_bytes"], (), "/f", by_log_dir=totals)


def test_orphans_are_what_the_cluster_does_not_want_and_nothing_else() -> None:
    readings = Readings("audit")
    read_audit(readings, audited(*(VerdictTotal("c", 1, "/d", verdict, 1, 0, 100) for verdict in Verdict)), 0)
    found, labels = samples(readings), {"cluster": "c", "broker": "1", "log_dir": "/d"}
    assert found[key("kafka_log_orphan_partition_count", **labels)] == len(UNWANTED) == 4
    assert found[key("kafka_log_orphan_partition_size_bytes", **labels)] == 400
    assert sum(value for (name, _), value in found.items() if name == "logstore_replicas") == len(Verdict)
    assert found[key("logstore_staged_replicas", **labels, state="due")] == 1


def test_bytes_that_nobody_counted_are_not_zero_bytes() -> None:
    readings = Readings("audit")
    read_audit(readings, audited(VerdictTotal("c", 1, "/d", Verdict.STRAY, 3, 0, 0), disk_bytes={}), 0)
    assert not [name for name, _ in samples(readings) if name.endswith("_bytes")]


def test_metadata_that_says_no_time_has_no_age() -> None:
    readings = Readings("audit")
    read_metadata(readings, MetadataIdentity("describe", "/x", "c"), 9000)
    assert samples(readings) == {}
    read_metadata(readings, MetadataIdentity("kraft", "/x", "c", timestamp_ms=4000), 9000)
    assert samples(readings) == {
        key("logstore_metadata_timestamp_seconds", cluster="c", source="kraft"): 4,
        key("logstore_metadata_age_seconds", cluster="c", source="kraft"): 5,
    }


@pytest.mark.parametrize(("dry_run", "purged", "due"), [(False, 1, 3), (True, 0, 4)])
def test_a_purge_says_what_went_and_what_is_left(dry_run: bool, purged: int, due: int) -> None:
    report = LogDirPurge(
        "/d", [Purged("x", None, 2, 50)], not_due=4, waiting=2, next_due_ms=7000, failures=["x"], freed_bytes=40
    )
    readings = Readings("purge")
    read_purge(readings, [report], {"/d": ("c", 1)}, dry_run=dry_run)
    found, labels = samples(readings), {"cluster": "c", "broker": "1", "log_dir": "/d"}
    assert found[key("logstore_purge_directories", **labels, outcome="purged")] == purged
    assert found[key("logstore_staged_replicas", **labels, state="due")] == due
    assert found[key("logstore_staged_replicas", **labels, state="waiting")] == 4
    assert found[key("logstore_purge_expected_size_bytes", **labels)] == 50
    assert found[key("logstore_purge_freed_size_bytes", **labels)] == 40
    assert found[key("logstore_purge_complete", **labels)] == 0
    assert found[key("logstore_staged_first_due_timestamp_seconds", **labels)] == 7


def test_a_purge_under_way_says_what_it_has_removed_and_since_when_nothing_more() -> None:
    readings = Readings("purge")
    read_purge_under_way(readings, 3, 50, 9.5)
    assert samples(readings) == {
        key("logstore_purge_running"): 1,
        key("logstore_purge_removed_directories"): 3,
        key("logstore_purge_removed_size_bytes"): 50,
        key("logstore_purge_progress_timestamp_seconds"): 9.5,
    }


STAGE = Action(ActionKind.STAGE, "/d", "t-0", "t", 0, None, None, "STALE_ID", "why", bytes=9, disk_bytes=8)


def test_a_plan_says_what_it_would_do_what_it_leaves_and_why_it_was_refused() -> None:
    readings = Readings("plan")
    left = LeftAlone("/d", "t-1", "DAMAGED", "why")
    read_plan(readings, Plan(0, "h", "u", 0, {}, (), (), (STAGE, STAGE), (left,)), [Gate.SHARE])
    assert samples(readings) == {
        key("logstore_plan_actions", kind="stage"): 2,
        key("logstore_plan_size_bytes", kind="stage"): 16,
        key("logstore_plan_left_alone", verdict="DAMAGED"): 1,
        key("logstore_plan_gates_shut", gate="share"): 1,
    }


def test_only_what_was_staged_now_counts_as_staged_by_a_plan() -> None:
    readings = Readings("apply")
    results = [
        AppliedAction(STAGE, status) for status in (RepairStatus.DONE, RepairStatus.ALREADY, RepairStatus.FAILED)
    ]
    read_apply(readings, ApplyOutcome(results))
    found = samples(readings)
    assert found[key("logstore_apply_staged_size_bytes")] == 8
    assert found[key("logstore_apply_actions", kind="stage", status="already")] == 1


def test_what_a_plan_judged_reads_as_an_audit_of_it_does() -> None:
    observed = {"cluster_id": "c", "node_id": 1, "log_dir": "/d", "metadata_state": "ok", "disk_bytes": 5}
    ok = Judged(Verdict.OK, "", JoinedRow(), 0, observed | {"kind": "log_dir"}, None)
    stray = Judged(Verdict.STRAY, "", JoinedRow(topic="t"), 0, observed | {"kind": "stray"}, None)
    missing = Judged(Verdict.MISSING, "", JoinedRow(topic="t"), 0, None, {"node_id": 1})
    readings, labels = Readings("plan"), {"cluster": "c", "broker": "1"}
    read_judged(readings, {"c": [ok, stray, missing]}, 1)
    found = samples(readings)
    assert found[key("kafka_log_orphan_partition_size_bytes", **labels, log_dir="/d")] == 5
    assert found[key("logstore_replicas", **labels, log_dir="", verdict="MISSING")] == 1
    assert found[key("logstore_topic_orphan_partitions", cluster="c", topic="t")] == 1
    assert not [key for key in found if ("verdict", "OK") in key[1]]


def test_no_topic_can_have_the_name_of_the_rest() -> None:
    assert re.fullmatch(r"[a-zA-Z0-9._:-]+", OTHER_TOPICS) is None
