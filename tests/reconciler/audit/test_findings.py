"""The order and the sets of verdicts that reports rely on."""

from __future__ import annotations

from reconciler.audit import FINDING_SCHEMA
from reconciler.verdicts import BENIGN, URGENCY, Verdict


def test_urgency_orders_every_verdict_once() -> None:
    assert sorted(URGENCY) == sorted(Verdict)


def test_benign_verdicts_stand_at_the_end_of_the_order() -> None:
    tail = URGENCY[-len(BENIGN) :]
    assert set(tail) == BENIGN


def test_nothing_that_could_lose_data_is_benign() -> None:
    harmful = {
        Verdict.ABSENT,
        Verdict.DAMAGED,
        Verdict.DUPLICATE,
        Verdict.STALE_ID,
        Verdict.MISSING,
        Verdict.STAGED_DUE,
    }
    assert not harmful & BENIGN


def test_a_finding_has_the_columns_that_the_json_promises() -> None:
    promised = {
        *("verdict", "broker", "log_dir", "name", "topic", "partition"),
        *("disk_topic_id", "metadata_topic_id", "bytes", "evidence"),
    }
    assert promised <= set(FINDING_SCHEMA.names)
