"""The join in Python: which rows meet, one small fleet at a time."""

from __future__ import annotations

from typing import Any

from logstore.rows import ROW_SCHEMA
from reconciler.desired import BrokerKey, Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.verdicts import (
    CLOCK_SKEW_MS,
    Doubt,
    JoinedRow,
    Judged,
    KnownTopics,
    Row,
    Verdict,
    broker_of,
    compare,
    fill_evidence,
)

A, B = "a" * 21 + "A", "b" * 21 + "A"


def row(kind: str = "log_dir", **columns: Any) -> dict[str, Any]:
    return dict.fromkeys(ROW_SCHEMA.names) | {
        "cluster_id": "c1",
        "node_id": 1,
        "directory_id": "d1",
        "log_dir": "/b1",
        "name": ".",
        "kind": kind,
        "metadata_state": "ok",
        **columns,
    }


def live(topic: str, topic_id: str | None, **columns: Any) -> dict[str, Any]:
    return row("live", name=f"{topic}-0", topic=topic, partition=0, topic_id=topic_id) | columns


def state(
    *topics: tuple[str, str | None, list[int]], directories: tuple[str, ...] = (), **identity: Any
) -> DesiredState:
    builder = DesiredBuilder()
    for topic, topic_id, replicas in topics:
        builder.partition(topic, topic_id, 0, replicas, directories=directories)
    return builder.build(MetadataIdentity("kraft", "/m", "c1", **identity))


def judge(states: dict[str, DesiredState], *rows: Row, now_ms: int = 0) -> list[Judged]:
    return [judged for judged in compare(states, rows, now_ms) if judged.row.kind != "log_dir"]


def verdicts(states: dict[str, DesiredState], *rows: dict[str, Any], now_ms: int = 0) -> list[Verdict]:
    return [judged.verdict for judged in judge(states, *rows, now_ms=now_ms)]


def test_a_wanted_replica_is_ok_and_carries_both_sides() -> None:
    (judged,) = judge({"c1": state(("t", A, [1, 2]))}, row(), live("t", A))
    assert judged.verdict is Verdict.OK
    assert judged.observed is not None and judged.wanted is not None
    assert judged.wanted["node_id"] == 1


def test_what_another_broker_should_hold_is_not_missing_here() -> None:
    assert verdicts({"c1": state(("t", A, [2]))}, row()) == []


def test_a_wanted_replica_that_is_nowhere_is_missing() -> None:
    (judged,) = judge({"c1": state(("t", A, [1]))}, row())
    assert (judged.verdict, judged.observed) == (Verdict.MISSING, None)


def test_a_broker_that_was_not_scanned_misses_nothing() -> None:
    assert verdicts({"c1": state(("t", A, [1, 2, 3]))}, row(), live("t", A)) == [Verdict.OK]


def test_a_replica_on_a_log_dir_that_was_not_scanned_is_absent_with_it() -> None:
    assert verdicts({"c1": state(("t", A, [1]), directories=("d2",))}, row()) == [Verdict.ABSENT]


def test_a_replica_on_another_log_dir_than_assigned_is_ok() -> None:
    states = {"c1": state(("t", A, [1]), directories=("d2",))}
    assert verdicts(states, row(), live("t", A), row(directory_id="d2", log_dir="/b1b")) == [Verdict.OK]


def test_directories_that_kafka_marked_meet_the_metadata_by_topic_id() -> None:
    stray = live("cut-name", A, kind="stray", name="cut-name-0.x-stray")
    judged = judge({"c1": state(("a-very-long-name", A, [1]))}, row(), stray)
    assert [(j.verdict, j.row.wanted) for j in judged] == [(Verdict.STRAY, True), (Verdict.MISSING, True)]
    assert "restore it" in judged[0].evidence


def test_the_same_partition_in_two_log_dirs_is_a_duplicate_twice() -> None:
    second = row(log_dir="/b1b", directory_id="d2")
    rows = (row(), live("t", A), second, live("t", A, log_dir="/b1b", directory_id="d2"))
    assert verdicts({"c1": state(("t", A, [1]))}, *rows) == [Verdict.DUPLICATE] * 2
    for states, wanted in (({"c1": state(("t", A, [1]))}, f"wanted {A}"), ({}, "and which one is wanted is not known")):
        evidence = [each.evidence for each in judge(states, *rows)]
        assert all(text.endswith(f"topic ID here {A}, {wanted}") for text in evidence), evidence


def test_log_dirs_without_identity_are_not_called_duplicates_of_each_other() -> None:
    nobody = {"cluster_id": None, "node_id": None}
    rows = (row(**nobody), live("t", A, **nobody), live("t", A, **nobody, log_dir="/copy"))
    assert verdicts({}, *rows) == [Verdict.NOT_COMPARED] * 2


def test_a_future_replica_beside_its_live_copy_is_a_move() -> None:
    future = live("t", A, kind="future", name="t-0.x-future", log_dir="/b1b")
    assert verdicts({"c1": state(("t", A, [1]))}, row(), live("t", A), future) == [Verdict.OK, Verdict.FUTURE]


def test_a_future_replica_that_has_no_topic_id_yet_is_a_move_beside_its_live_copy() -> None:
    future = live("t", None, kind="future", name="t-0.x-future", log_dir="/b1b")
    assert verdicts({"c1": state(("t", A, [1]))}, row(), live("t", A), future) == [Verdict.OK, Verdict.FUTURE]


def test_due_is_decided_by_the_time_that_is_given() -> None:
    staged = live("t", A, kind="staged", name="deleting/x_0", due_ms=100)
    assert verdicts({}, row(), staged, now_ms=99) == [Verdict.STAGED]
    assert verdicts({}, row(), staged, now_ms=100) == [Verdict.STAGED_DUE]


def test_an_incremental_source_judges_what_it_names_and_nothing_else() -> None:
    states = {"c1": state(("t", B, [1]), completeness=Completeness.INCREMENTAL)}
    assert verdicts(states, row(), live("t", A), live("u", A)) == [Verdict.STALE_ID, Verdict.NOT_COMPARED]


def test_rows_of_a_cluster_without_metadata_are_not_compared() -> None:
    other = {"cluster_id": "c2"}
    assert verdicts({"c1": state(("t", A, [1]))}, row(**other), live("u", A, **other)) == [Verdict.NOT_COMPARED]


def test_evidence_shows_empty_text_as_none() -> None:
    assert fill_evidence("ID {disk_topic_id} of {topic}", JoinedRow(topic="t")) == "ID none of t"


def test_a_row_without_identity_belongs_to_no_broker() -> None:
    assert broker_of(row(cluster_id=None, node_id=None)) == BrokerKey("", -1)


def doubts(states: dict[str, DesiredState], *rows: dict[str, Any]) -> list[Doubt | None]:
    return [judged.doubt for judged in judge(states, *rows)]


def test_what_was_written_to_after_the_metadata_is_condemned_in_doubt() -> None:
    states = {"c1": state(("t", B, [1]), timestamp_ms=100 + CLOCK_SKEW_MS)}
    newer, older = live("t", A, modified_ms=101), live("u", A, modified_ms=100)
    assert doubts(states, row(), newer, older) == [Doubt.CHANGED_SINCE_METADATA, None]


def test_a_replica_that_is_ok_is_in_no_doubt_however_new_it_is() -> None:
    assert doubts({"c1": state(("t", A, [1]), timestamp_ms=100)}, row(), live("t", A, modified_ms=500)) == [None]


def test_metadata_or_a_replica_without_a_time_gives_rise_to_no_doubt() -> None:
    for time in (None, 0):
        assert doubts({"c1": state(("t", B, [1]), timestamp_ms=time)}, row(), live("t", A, modified_ms=5)) == [None]
    assert doubts({"c1": state(("t", B, [1]), timestamp_ms=100)}, row(), live("t", A)) == [None]


def test_what_a_scan_before_the_metadata_did_not_find_is_missing_in_doubt() -> None:
    states = {"c1": state(("t", A, [1]), timestamp_ms=100)}
    assert doubts(states, row(scanned_ms=99)) == [Doubt.SCANNED_BEFORE_METADATA]
    assert doubts(states, row(scanned_ms=100)) == [None]
    assert doubts(states, row(scanned_ms=200), row(scanned_ms=99, directory_id="d2", log_dir="/b1b")) == [
        Doubt.SCANNED_BEFORE_METADATA
    ]
    assert doubts(states, row()) == [None]


def test_a_row_is_joined_with_what_is_known_of_its_name_and_of_its_id() -> None:
    topics = KnownTopics({"t": A, "bare": ""}, {A: "t"}, judged=True, complete=False)
    lies = {"kind": "live", "state": "ok", "problem": "", "copies": 1}
    stale = topics.on_disk("t", B, A, **lies)
    assert (stale.wanted, stale.wanted_topic_id, stale.name_topic_id, stale.id_topic) == (True, A, A, "")
    renamed = topics.on_disk("old", A, None, **lies)
    assert (renamed.wanted, renamed.name_known, renamed.id_topic) == (False, False, "t")
    bare = topics.on_disk("bare", "", "", **lies)
    assert (bare.wanted, bare.wanted_topic_id, bare.name_known) == (True, "", True)
    absent = topics.absent("t", A, home_seen=False)
    assert (absent.on_disk, absent.wanted, absent.name_topic_id, absent.home_seen) == (False, True, A, False)
    assert {(each.judged, each.complete) for each in (stale, renamed, bare, absent)} == {(True, False)}
