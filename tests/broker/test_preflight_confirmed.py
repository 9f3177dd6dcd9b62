"""What ``logstore preflight`` says before, beside what the broker then does, with the same damage on its disks.

The cases are in ``preflight_cases``; of each the answer is compared as a whole: whether the broker starts, which disks
go offline, which directories are deleted, replaced or set aside. Some rules no broker here can confirm:

    unreadable_directory, unreadable_file, closed_to_this_user
                                             who runs the tests may be root, whom no permission stops
    another_owner                            the brokers here run as the user who owns their disks
    read_only_disk                           only root can mount a disk so
    stray_search_fails                       KRaft of 3.0 to 3.6 alone; none of these is among the releases
    quorum_state_too_new                     KRaft before 3.8, of which there is none either
    feature_level_too_new                    a broker of an older release than its cluster's, which no case starts
    full_request_fails                       takes a KRaft controller that migrates a ZooKeeper cluster

Nor can the parts of other rules that speak of releases between those that are started here.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from layout import partition_metadata
from reconciler.cli import logstore
from reconciler.preflight.rules import RULES
from tests.broker.preflight_bench import Lab, Outcome
from tests.broker.preflight_cases import CASES
from tests.broker.preflight_damage import OTHER_ID
from tools.real_broker.cluster import Cluster
from tools.real_broker.releases import EACH_WAY

pytestmark = pytest.mark.broker

StartCluster = Callable[..., Cluster]
OutcomeOf = Callable[[str, str], Outcome]
WAYS = ["-".join(way) for way in EACH_WAY]
BROKERS = 4
NOT_HERE = {
    *("unreadable_directory", "unreadable_file", "stray_search_fails", "quorum_state_too_new", "full_request_fails"),
    *("feature_level_too_new", "closed_to_this_user", "read_only_disk", "another_owner"),
}
ON_THEIR_OWN = {"empty_metadata", "full_disk"}
"""By a test of their own: below, and in ``test_operator_heals_brokers`` on disks that are full."""


@pytest.fixture(scope="module")
def outcome_of(shared_cluster: StartCluster) -> OutcomeOf:
    """What came of a case with a release and mode; the first question tries all of them."""
    known: dict[str, dict[str, Outcome]] = {}

    def get(way: str, name: str) -> Outcome:
        if way not in known:
            release, _, mode = way.partition("-")
            lab = Lab(shared_cluster(release, mode=mode, brokers=BROKERS, log_dirs=3))
            known[way] = lab.run(CASES)
            lab.cluster.stop()
        return known[way][name]

    return get


@pytest.mark.parametrize(("way", "name"), [(way, name) for way in WAYS for name in CASES if way in CASES[name].ways])
def test_a_broker_does_what_preflight_said(way: str, name: str, outcome_of: OutcomeOf) -> None:
    case, outcome = CASES[name], outcome_of(way, name)
    assert outcome.error is None, str(outcome)
    assert outcome.agrees and outcome.came_true and outcome.logged, str(outcome)
    assert set(case.rules) <= outcome.rules, str(outcome)


def test_every_rule_is_confirmed_or_it_is_said_why_not() -> None:
    confirmed = {rule for case in CASES.values() for rule in case.rules}
    assert confirmed | NOT_HERE | ON_THEIR_OWN == set(RULES)
    assert not confirmed & NOT_HERE


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_a_cluster_without_topics_takes_every_replica_for_a_stray(start_cluster: StartCluster, release: str) -> None:
    cluster = start_cluster(release, mode="kraft")
    cluster.stop_broker(1)
    (disk,) = cluster.brokers[1].log_dirs
    replica = disk / "orders-0"
    replica.mkdir()
    (replica / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(OTHER_ID))
    options = ["--metadata", f"kraft:{cluster.metadata.data}", "--kafka", cluster.release.version, "--format", "json"]
    document = json.loads(CliRunner().invoke(logstore, ["preflight", str(disk), *options]).stdout)
    assert "empty_metadata" in {each["rule"] for each in document["findings"]}
    assert document["starts"] and document["totals"]["renamed_to_stray"] == 1
    cluster.start_broker(1)
    assert [path.name.partition(".")[0] for path in disk.glob("orders-*")] == ["orders-0"]
    (stray,) = disk.glob("orders-0.*-stray")
    assert (stray / partition_metadata.FILE_NAME).read_bytes() == partition_metadata.encode(OTHER_ID)
