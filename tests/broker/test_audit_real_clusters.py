"""``logstore scan`` and ``logstore audit`` on real clusters: exactly what was planted, and no false alarm."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.broker.planted_faults import (
    BROKER_BACK,
    BROKER_DOWN,
    HEALTHY,
    OWN,
    STOPPED,
    Finding,
    Story,
    story_of,
)
from tools.real_broker.releases import EACH_WAY

pytestmark = pytest.mark.broker

SEVERAL = "TOPIC_UNDER_SEVERAL_IDS"
MARKED = [("MARKED_DELETE", 1, f"{name}-0") for name in ("deleted", "recreated", "recreated-elsewhere")]
PLANTED: list[Finding] = [
    *MARKED,
    ("FUTURE", 1, "between-disks-0"),
    ("IN_FLIGHT", 1, "leaving-0"),
    ("IN_FLIGHT", 2, "leaving-0"),
    ("STALE_ID", 2, "recreated-0"),
    ("STALE_ID", 2, "recreated-elsewhere-0"),
    ("NOT_ASSIGNED", 2, "shrunk-0"),
    ("UNKNOWN_TOPIC", 2, "deleted-0"),
    ("MISSING", 2, "late-0"),
    ("NO_ID", 2, "without-id-0"),
    ("DAMAGED", 2, "damaged-0"),
    ("DUPLICATE", 2, "twice-0"),
    ("DUPLICATE", 2, "twice-0"),
]
LEFT_BY_ZOOKEEPER: list[Finding] = [
    ("STALE_ID", 2, "recreated-0"),
    ("STALE_ID", 2, "recreated-elsewhere-0"),
    ("NOT_ASSIGNED", 2, "leaving-0"),
    ("NOT_ASSIGNED", 2, "shrunk-0"),
    ("UNKNOWN_TOPIC", 2, "deleted-0"),
]
SET_ASIDE: list[Finding] = [
    ("STRAY", 2, f"{name}-0")
    for name in ("deleted", "leaving", "recreated", "recreated-elsewhere", "shrunk", "without-id")
]


@pytest.fixture(params=EACH_WAY, ids="-".join)
def story(request: pytest.FixtureRequest, start_cluster: Callable[..., Any]) -> Story:
    """What was seen in the cluster of one release and mode."""
    return story_of(start_cluster, *request.param)


def and_lazy_ids(story: Story, stage: str, expected: Iterable[Finding]) -> list[Finding]:
    """What is expected, with the replicas in which a broker of 2.8 has not written the topic ID yet."""
    findings = list(expected)
    judged = {(broker, name) for _, broker, name in findings}
    lazy = [("NO_ID", *replica) for replica in story.without_id[stage] if replica not in judged]
    return sorted(findings + lazy)


def test_a_healthy_cluster_that_runs_gives_no_finding(story: Story) -> None:
    for source, audit in story.audits[HEALTHY].items():
        assert audit.findings() == and_lazy_ids(story, HEALTHY, []), source
        assert audit.code == (1 if story.without_id[HEALTHY] else 0), source
        assert audit.fleet() == []


def test_only_release_2_8_leaves_replicas_without_their_topic_id(story: Story) -> None:
    # 2.8 stores it when a replica is made leader again or stops leading, and where it only follows, never.
    assert bool(story.without_id[HEALTHY]) == (story.release == "2.8")
    if story.release != "2.8":
        assert story.without_id[BROKER_DOWN] == {(2, "without-id-0")}
        assert story.without_id[BROKER_BACK] == story.without_id[STOPPED] == set()


def test_topics_that_change_while_a_broker_is_down_give_exactly_the_faults_that_were_planted(story: Story) -> None:
    audit = story.audits[BROKER_DOWN][OWN]
    assert audit.findings() == and_lazy_ids(story, BROKER_DOWN, PLANTED)
    assert audit.code == 1
    assert audit.fleet() == [(SEVERAL, "recreated"), (SEVERAL, "recreated-elsewhere")]


def test_the_evidence_names_the_topic_ids_that_the_brokers_tell(story: Story) -> None:
    audit = story.audits[BROKER_DOWN][OWN]
    first, later = story.first_ids, story.later_ids
    for name, where in (("recreated", "wanted here, as"), ("recreated-elsewhere", "on other brokers, as")):
        evidence = audit.evidence("STALE_ID", f"{name}-0")
        assert f"the disk holds topic ID {first[name]};" in evidence
        assert evidence.endswith(f"{where} {later[name]}")
    assert first["deleted"] in audit.evidence("UNKNOWN_TOPIC", "deleted-0")
    assert first["without-id"] in audit.evidence("NO_ID", "without-id-0") or story.release == "2.8"
    assert later["late"] in audit.evidence("MISSING", "late-0")


def test_what_a_broker_makes_of_it_at_its_next_start_is_what_the_audit_finds(story: Story) -> None:
    # FACTS §6.1: a KRaft broker sets aside what is not wanted; one on ZooKeeper keeps it for ever.
    left = LEFT_BY_ZOOKEEPER if story.mode == "zk" else SET_ASIDE
    expected = and_lazy_ids(story, BROKER_BACK, [*MARKED, ("MARKED_DELETE", 1, "between-disks-0"), *left])
    for source, audit in story.audits[BROKER_BACK].items():
        assert audit.findings() == expected, source


def test_a_cluster_that_is_stopped_is_judged_as_while_it_ran(story: Story) -> None:
    running = [row for row in story.audits[BROKER_BACK][OWN].findings() if row[0] != "NO_ID"]
    for source, audit in story.audits[STOPPED].items():
        # Its end is when a broker of 2.8 writes some of the topic IDs that it owes.
        assert [row for row in audit.findings() if row[0] != "NO_ID"] == running, source
        assert audit.findings() == and_lazy_ids(story, STOPPED, running), source


def test_a_scan_lists_every_directory_with_the_topic_id_that_the_brokers_tell(story: Story) -> None:
    for stage, rows in story.listed.items():
        listed = {
            f"{row['log_dir']}/{row['name']}" for row in rows if row["kind"] not in ("log_dir", "checkpoint_entry")
        }
        assert listed == story.directories[stage], stage
    held = {(row["topic"], row["topic_id"]) for row in story.listed[HEALTHY] if row["kind"] == "live"}
    stored = {(topic, topic_id) for topic, topic_id in held if topic_id is not None}
    assert stored <= set(story.first_ids.items())
    assert {topic for topic, _ in held} == set(story.first_ids)
    assert stored == held or story.release == "2.8"
