"""Plan, apply, restore and purge on the disks of a real broker, which is started then: is it in order, or as before?"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from layout.ours import LedgerEvent, parse_ledger, run_journal
from layout.scheme import LEDGER_FILE
from tests.broker.cure_bench import STALE, SickBroker, allocated, contents
from tools.real_broker.client import until
from tools.real_broker.cluster import Cluster

pytestmark = pytest.mark.broker

ROOM_FOR_JOURNALS = 32_768
"""Bytes that a cure itself leaves on two disks: journals, and staging roots that are empty."""

ROOM_FOR_LEDGERS = 2 * (1 << 17)
"""Bytes that the ledgers of two disks take: each keeps 64 KiB behind its last line, so that a full disk can stage."""

STALE_ALONE = ("--verdict", "STALE_ID", "--verdict", "NOT_ASSIGNED", "--verdict", "UNKNOWN_TOPIC")
"""Leaves out the topic IDs that a plan for 2.8 writes as well."""


@pytest.fixture(scope="module")
def planted(each_cluster: Cluster) -> SickBroker:
    """A broker with four stale replicas, of each release and mode in turn."""
    return SickBroker(each_cluster)


@pytest.fixture
def sick(planted: SickBroker) -> SickBroker:
    """That broker, stopped, with its disks as they were when the replicas were planted."""
    planted.put_back()
    return planted


def joins_with_the_old_records(sick: SickBroker) -> None:
    """2.8 compares topic IDs only where it has the partition open already, so not after a start."""
    sick.until_in_sync()
    assert "in memory: " not in sick.log()
    assert sick.served() == sick.records
    # In sync it is by offsets alone: what lies there are the records of the topic that was deleted.
    assert sick.old_records_lie_under_the_name()
    assert set(STALE) <= set(sick.replicas())


def refuses_and_stays_behind(sick: SickBroker) -> None:
    """ZooKeeper mode: INCONSISTENT_TOPIC_ID, for as long as the stale replica is there; nothing is taken away."""
    refusal = f"Topic ID in memory: {sick.first.topic_id} does not match the topic ID for partition again-0 received: "
    until("it refuses", lambda: f"{refusal}{sick.new.topic_id}" in sick.log())
    client = sick.cluster.client
    until("the rest is in sync", lambda: client.under_replicated() == [("again", 0), ("again", 1)])
    assert client.describe_topic("again").partitions[0].isr == (1,)
    assert set(STALE) <= set(sick.replicas())


def makes_them_stray_for_ever(sick: SickBroker) -> None:
    """KRaft: renamed to ``-stray``, and never deleted."""
    sick.until_in_sync()
    assert sick.served() == sick.records
    assert sick.strays() == set(STALE)
    assert "marked stray and renamed to" in sick.log()


BY_ITSELF: dict[str, Callable[[SickBroker], None]] = {
    "2.8-zk": joins_with_the_old_records,
    "3.9-zk": refuses_and_stays_behind,
    "3.9-kraft": makes_them_stray_for_ever,
    "4.3-kraft": makes_them_stray_for_ever,
}


def test_2_8_takes_old_records_for_new_ones_until_it_is_to_lead_and_then_nobody_leads(
    start_cluster: Callable[..., Cluster],
) -> None:
    sick = SickBroker(start_cluster("2.8", brokers=2, log_dirs=2))
    said = {each["name"]: each["problem"] for each in sick.starts()["findings"]}
    assert "counts as in sync" in said["again-0"] and "once it is to lead" in said["again-0"]
    sick.start()
    joins_with_the_old_records(sick)
    sick.cluster.stop_broker(1)
    refusal = f"Topic Id in memory: {sick.first.topic_id} does not match the topic Id for partition again-0"
    until("it refuses to lead", lambda: refusal in sick.log())
    # The metadata names it as the only one in sync, and nobody leads, so that no cure is planned unasked any more.
    assert sick.cluster.client.describe_topic("again").partitions[0].isr == (2,)
    sick.broker.stop()
    refused = sick.plan(codes=(3,)).output
    assert "again-0" in refused and "--allow live-copy" in refused


def test_only_the_planted_replicas_are_planned_for(sick: SickBroker) -> None:
    before = [contents(disk) for disk in sick.disks]
    verdicts = {name: verdict for name, verdict in sick.verdicts().items() if verdict != "NO_ID"}
    assert verdicts == STALE
    sick.plan()
    assert {each["name"]: each["verdict"] for each in sick.planned()} == STALE
    assert [contents(disk) for disk in sick.disks] == before


def test_after_the_cure_the_broker_starts_and_serves_every_record(sick: SickBroker) -> None:
    assert len(sick.cluster.client.under_replicated()) > 0
    outcome = sick.cure()
    assert {each["status"] for each in outcome["results"]} == {"done"}
    journals = [run_journal.parse_run_journal(Path(path).read_bytes()) for path in outcome["journals"]]
    assert len(journals) == len(sick.disks)
    done = {line["name"]: line["status"] for each in journals for line in each.lines if line["kind"] == "stage"}
    assert done == dict.fromkeys(STALE, "done")
    waiting = sick.staged()
    assert {name: each["verdict"] for name, each in waiting.items()} == STALE
    aside = [contents(root) for root in sick.staging_roots]
    assert sick.starts()["nothing_lost"]

    sick.start()
    sick.until_in_sync()
    assert sick.served() == sick.records
    both = ("again", "orders")
    assert sick.served_alone(*both) == {name: sick.records[name] for name in both}
    # Nothing is left of the stale ones but what is staged, and that the broker never saw.
    assert not {"moved-0", "gone-0"} & set(sick.replicas())
    assert sick.strays() == set()
    assert sick.first.topic_id is not None and sick.first.topic_id not in sick.log()
    assert [contents(root) for root in sick.staging_roots] == aside
    assert sick.staged() == waiting
    sick.cluster.stop_broker(2)
    assert set(sick.verdicts().values()) - {"NO_ID"} == {"STAGED"}


def test_what_is_restored_is_byte_for_byte_what_it_was_and_the_broker_does_as_before(sick: SickBroker) -> None:
    verdicts, before = sick.verdicts(), {name: contents(path) for name, path in sick.replicas().items()}
    sick.cure(*STALE_ALONE)
    assert not set(STALE) & set(sick.replicas())
    for each in sick.planned():
        sick.run(*shlex.split(each["undo"])[1:])
    assert {name: contents(path) for name, path in sick.replicas().items()} == before
    assert sick.verdicts() == verdicts
    assert sick.staged() == {}
    sick.start()
    BY_ITSELF[sick.way](sick)


def test_a_purge_takes_only_what_is_due_and_gives_the_space_back(sick: SickBroker) -> None:
    sick.cure()
    waiting = sick.staged()
    sick.run("purge", *sick.disks)
    assert sick.staged() == waiting
    sick.put_back()
    before, stale = allocated(*sick.disks), allocated(*(sick.replicas()[name] for name in STALE))
    sick.cure("--delay", "0s", *STALE_ALONE)
    held = [contents(root) for root in sick.staging_roots]
    assert all(held)
    said = sick.run("purge", *sick.disks).output
    left = [contents(root) for root in sick.staging_roots]
    assert [list(each) for each in left] == [[LEDGER_FILE]] * len(sick.disks), said
    entries = [parse_ledger(each[LEDGER_FILE]).entries.values() for each in left]
    assert sum(map(len, entries)) == len(STALE)
    assert {each.event for found in entries for each in found} == {LedgerEvent.PURGED}
    assert sick.staged() == {}
    ledgers = allocated(*(root / LEDGER_FILE for root in sick.staging_roots))
    assert ledgers <= ROOM_FOR_LEDGERS
    assert allocated(*sick.disks, *sick.staging_roots) - ledgers <= before - stale + ROOM_FOR_JOURNALS
    sick.start()
    sick.until_in_sync()
    assert sick.served() == sick.records
    assert not {"moved-0", "gone-0"} & set(sick.replicas())


def test_staged_in_place_a_broker_passes_it_over_or_does_not_start_as_preflight_said(sick: SickBroker) -> None:
    warned = "A broker before 3.6.1 does not know that form" in sick.plan("--staging", "in-place").stderr
    assert warned == (sick.cluster.mode == "zk")
    sick.apply()
    waiting = sick.staged()
    assert sick.strays() == set(STALE)
    assert {name: each["state"] for name, each in waiting.items()} == dict.fromkeys(STALE, "staged")
    if sick.way == "2.8-zk":
        assert not sick.starts()["starts"]
        sick.fails_to_start()
        assert "is not in the form of topic-partition" in sick.log()
        sick.run("restore", *sick.disks, "--all")
        sick.start()
        return
    assert sick.starts()["starts"]
    sick.start()
    sick.until_in_sync()
    assert sick.served() == sick.records
    assert sick.log().count("Loaded stray log") == len(STALE)
    sick.cluster.stop_broker(2)
    after = sick.staged()
    assert {name: each["location"] for name, each in after.items()} == {
        name: each["location"] for name, each in waiting.items()
    }
    # A broker has had it open, and it comes back all the same; the other is purged.
    sick.run("restore", *sick.disks, "--topic", "moved")
    assert sick.verdicts()["moved-0"] == "NOT_ASSIGNED"
    sick.run("purge", *sick.disks, "--location", after["gone-0"]["location"], "--before-due")
    assert set(sick.staged()) == {"again-0", "again-1"}
