"""The metrics of a watch: how things stand, and how often they changed."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import generate_latest

from logstore.watch import LOG_DIR_KEY, WatchedLogDir
from reconciler.desired import BrokerKey
from reconciler.metrics import Readings, begin_watch, read_changes, read_watch, registry_of
from reconciler.verdicts import Verdict
from reconciler.watch import StandingVerdict, VerdictChange

BROKER = BrokerKey("c", 1)


def change(after: str) -> VerdictChange:
    return VerdictChange("/d", "t-0", BROKER, "t", 0, None, None, "OK", after, "")


def by_label(readings: Readings, name: str) -> dict[tuple[str, ...], float]:
    return next((values for family, values in readings.samples.items() if family.name == name), {})


def test_how_things_stand_is_counted_by_log_dir_and_verdict(tmp_path: Path) -> None:
    path, readings = str(tmp_path), Readings("watch")
    standing = [
        StandingVerdict(BROKER, path, LOG_DIR_KEY, Verdict.ABSENT),
        StandingVerdict(BROKER, path, "t-0", Verdict.STALE_ID),
        StandingVerdict(BROKER, path, "t-1", Verdict.STRAY),
        StandingVerdict(BROKER, path, "x", Verdict.STAGED, 5000),
        StandingVerdict(BROKER, None, None, Verdict.MISSING),
    ]
    read_watch(readings, {path: WatchedLogDir(path)}, standing, {(path, "t-0"): 70})
    assert by_label(readings, "kafka_log_orphan_partition_count")["c", "1", path] == 2
    assert by_label(readings, "kafka_log_orphan_partition_size_bytes")["c", "1", path] == 70
    assert by_label(readings, "logstore_replicas")["c", "1", "", "MISSING"] == 1
    assert by_label(readings, "logstore_staged_replicas") == {("c", "1", path, "waiting"): 1}
    assert by_label(readings, "logstore_staged_first_due_timestamp_seconds") == {("c", "1", path): 5}


def test_changes_are_a_counter_and_what_is_gone_has_a_word() -> None:
    readings = Readings("watch")
    begin_watch(readings, 12.0)
    read_changes(readings, [change("STALE_ID"), change("STALE_ID"), change("")])
    text = generate_latest(registry_of(lambda: readings)).decode()
    assert "# TYPE logstore_watch_verdict_changes_total counter" in text
    assert 'logstore_watch_verdict_changes_total{command="watch",verdict="STALE_ID"} 2.0' in text
    assert 'logstore_watch_verdict_changes_total{command="watch",verdict="GONE"} 1.0' in text
    assert 'logstore_watch_start_timestamp_seconds{command="watch"} 12.0' in text
