"""One cluster, audited by every metadata source that its release has: the same answer from each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.planted_faults import (
    BROKER_BACK,
    BROKER_DOWN,
    FOUND_BY_ITSELF,
    HEALTHY,
    OWN,
    STOPPED,
    Audit,
    Finding,
    Story,
    story_of,
)
from tools.real_broker.releases import EACH_WAY

pytestmark = pytest.mark.broker

OWN_METADATA = "OWN_METADATA"
UNMENTIONED = ("NOT_ASSIGNED", "UNKNOWN_TOPIC")
"""Verdicts that only a source gives which says that it has everything."""


@pytest.fixture(params=EACH_WAY, ids="-".join)
def story(request: pytest.FixtureRequest, start_cluster: Callable[..., Any]) -> Story:
    """What was seen in the cluster of one release and mode."""
    return story_of(start_cluster, *request.param)


def without(findings: list[Finding], *verdicts: str) -> list[Finding]:
    return [finding for finding in findings if finding[0] not in verdicts]


def identity(audit: Audit) -> dict[str, Any]:
    found: dict[str, Any] = audit.document["metadata"]
    return found


def test_each_release_is_asked_in_every_way_that_it_has(story: Story) -> None:
    live = [OWN, "kafka"] if story.mode == "zk" else [OWN, FOUND_BY_ITSELF, "kafka"]
    files = [OWN] if story.mode == "zk" else [OWN, FOUND_BY_ITSELF]
    asked = {stage: list(audits) for stage, audits in story.audits.items()}
    assert asked == {
        HEALTHY: live,
        BROKER_DOWN: [*live, "describe-all", "describe"],
        BROKER_BACK: live,
        STOPPED: files,
    }
    kinds = {source: identity(audit)["source"] for source, audit in story.audits[BROKER_DOWN].items()}
    own = "zookeeper" if story.mode == "zk" else "kraft"
    assert {kinds[source] for source in live} == {own, "kafka"}
    assert kinds["describe-all"] == kinds["describe"] == "describe"


def test_all_sources_find_the_same_while_nothing_moves(story: Story) -> None:
    for stage in (HEALTHY, BROKER_BACK, STOPPED):
        for source, audit in story.audits[stage].items():
            assert audit.findings() == story.audits[stage][OWN].findings(), (stage, source)
            others = [finding for finding in audit.fleet() if finding[0] != OWN_METADATA]
            assert others == story.audits[stage][OWN].fleet(), (stage, source)
            # With nothing running, what is found by itself is the copy of a broker that stopped.
            by_itself_alone = stage == STOPPED and source == FOUND_BY_ITSELF
            assert len(audit.fleet()) - len(others) == by_itself_alone, (stage, source)


def test_all_sources_find_the_same_faults_on_the_disks_of_a_broker_that_is_down(story: Story) -> None:
    audits = story.audits[BROKER_DOWN]
    own = audits[OWN].findings()
    for source in set(audits) - {"kafka", "describe"}:
        assert audits[source].findings() == own, source
    # Clients learn of no reassignments: an added replica is among the replicas, so it is OK.
    assert audits["kafka"].findings() == without(own, "IN_FLIGHT")
    for source, audit in audits.items():
        assert audit.fleet() == audits[OWN].fleet(), source


def test_a_text_that_may_be_of_some_topics_alone_calls_nothing_unwanted(story: Story) -> None:
    audits = story.audits[BROKER_DOWN]
    unwanted = {(broker, name) for verdict, broker, name in audits[OWN].findings() if verdict in UNMENTIONED}
    assert len(unwanted) == len(UNMENTIONED)
    silent: list[Finding] = [("NOT_COMPARED", broker, name) for broker, name in unwanted]
    assert audits["describe"].findings() == sorted(without(audits[OWN].findings(), *UNMENTIONED) + silent)


def test_every_source_but_a_text_names_the_cluster_and_says_how_old_it_is(story: Story) -> None:
    for stage, audits in story.audits.items():
        clusters = {audit.document["brokers"][0]["cluster_id"] for audit in audits.values()}
        for source, audit in audits.items():
            if source.startswith("describe"):
                assert (identity(audit)["cluster_id"], identity(audit)["age_ms"]) == (None, None)
                assert "names neither its cluster nor its time" in audit.said
            else:
                assert {identity(audit)["cluster_id"]} == clusters, (stage, source)
                assert identity(audit)["age_ms"] is not None
