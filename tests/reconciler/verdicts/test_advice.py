"""Every verdict and every finding of the fleet has advice, and where it lies, how urgent it is and why is told."""

from __future__ import annotations

import pytest

from reconciler.audit import fleet
from reconciler.desired import Mode
from reconciler.verdicts import (
    ADVICE,
    BENIGN,
    DOUBT_CLAUSE,
    FLEET_ADVICE,
    Advice,
    Doubt,
    Severity,
    Verdict,
    advice_of,
    full_evidence,
    location_of,
    severity,
    severity_of,
    with_doubt,
)

STALE = {"log_dir": "/disks/1", "name": "orders-0", "topic": "orders", "partition": 0, "broker": 3}


def test_every_verdict_has_its_advice() -> None:
    assert set(ADVICE) == set(Verdict)
    assert all(type(advice) is Advice for advice in (*ADVICE.values(), *FLEET_ADVICE.values()))
    assert all(advice.meaning.endswith(".") and advice.why.endswith(".") for advice in ADVICE.values())


def test_every_kind_of_fleet_finding_has_its_advice() -> None:
    kinds = {query.kind for query in fleet.QUERIES} | {
        fleet.ID_CHANGES.kind,
        "OTHER_CLUSTER",
        "OWN_METADATA",
        "INVENTORY_AGE",
        "INVENTORY_UNREADABLE",
        "BROKER_NOT_REPORTED",
    }
    assert set(FLEET_ADVICE) == kinds


def test_a_finding_is_where_its_path_says() -> None:
    assert location_of(STALE) == "/disks/1/orders-0"
    assert location_of({**STALE, "name": "."}) == "/disks/1"
    assert location_of({**STALE, "log_dir": None}) == "orders-0"
    assert location_of({**STALE, "name": "../1.deleting/x_0"}) == "/disks/1.deleting/x_0"


def test_the_evidence_tells_the_rank_of_a_copy_and_the_only_replica_in_sync() -> None:
    finding = {"evidence": "twice", "copy_rank": 2, "only_in_sync": True, "doubt": None}
    finding |= {"disk_topic_id": "new", "metadata_topic_id": "new"}
    assert full_evidence(finding) == "copy 2: twice; the metadata's only in-sync replica"
    other = "; this is not the metadata's only in-sync replica, which has topic ID new and should be here"
    assert full_evidence({**finding, "disk_topic_id": "old"}) == f"copy 2: twice{other}"
    assert full_evidence({**finding, "copy_rank": None, "only_in_sync": False}) == "twice"


def test_the_evidence_ends_with_the_doubt_that_its_verdict_is_in() -> None:
    assert set(DOUBT_CLAUSE) == set(Doubt)
    for doubt, clause in DOUBT_CLAUSE.items():
        finding = {"evidence": "seen", "copy_rank": None, "only_in_sync": False, "doubt": doubt.value}
        assert full_evidence(finding) == with_doubt("seen", doubt) == f"seen; {clause}"


def test_what_asks_nobody_to_act_is_calm_or_ok() -> None:
    for verdict in Verdict:
        assert (severity(verdict) in (Severity.CALM, Severity.OK)) == (verdict in BENIGN)


def test_a_stale_topic_id_is_never_answered_with_the_zookeeper_cure() -> None:
    assert "Never delete" in ADVICE[Verdict.STALE_ID].why
    assert "--adopt-topic-id" in ADVICE[Verdict.STALE_ID].why


def test_what_follows_from_a_stale_replica_hangs_on_the_mode() -> None:
    zookeeper, kraft = (advice_of(Verdict.STALE_ID, mode).why for mode in Mode)
    assert "INCONSISTENT_TOPIC_ID" in zookeeper and "makes no new one" in zookeeper and "-stray" not in zookeeper
    assert "renames it to -stray and makes the new replica" in kraft and "INCONSISTENT_TOPIC_ID" not in kraft
    both = advice_of(Verdict.STALE_ID, None).why
    assert "In ZooKeeper mode" in both and "in KRaft mode" in both


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("verdict", list(Verdict))
def test_advice_in_a_mode_means_the_same(verdict: Verdict, mode: Mode) -> None:
    advice, of_all = advice_of(verdict, mode), ADVICE[verdict]
    assert advice.meaning == of_all.meaning
    assert advice.why.endswith(".") and "  " not in advice.why


@pytest.mark.parametrize("verdict", [Verdict.STALE_ID, Verdict.NO_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC])
def test_no_mode_is_told_what_only_the_other_does(verdict: Verdict) -> None:
    assert "-stray" not in advice_of(verdict, Mode.ZOOKEEPER).why
    assert "ZooKeeper" not in advice_of(verdict, Mode.KRAFT).why


def test_a_plain_file_that_a_broker_ignores_is_not_critical() -> None:
    ignored = {"verdict": "FOREIGN", "evidence": "a plain file that does not belong to a log dir"}
    assert severity_of(ignored) is Severity.CALM
    assert severity_of(ignored | {"evidence": "the name has no '-'"}) is Severity.CRITICAL
    assert severity_of(ignored | {"verdict": "STRAY"}) is severity(Verdict.STRAY)
