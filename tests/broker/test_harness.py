"""The harness itself, on each release: what other tests of real brokers rely on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from layout import meta_properties
from tools.machine import ROOT
from tools.real_broker.client import Topic, until
from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import StartError
from tools.real_broker.servers import answers

pytestmark = pytest.mark.broker

StartCluster = Callable[..., Cluster]
RECORDS = 500


@pytest.fixture
def cluster(each_cluster: Cluster) -> Cluster:
    """Two brokers with two disks each, of each release and mode in turn."""
    return each_cluster


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Topic]:
    """A topic of two partitions on the first broker, for one test."""
    name = f"orders-{request.node.originalname}"
    yield cluster.client.create_topic(name, [[1], [1]])
    cluster.client.delete_topic(name)


def test_records_go_in_and_come_out_the_same(cluster: Cluster, topic: Topic) -> None:
    written = cluster.client.produce(topic.name, RECORDS)
    assert len(set(written)) == RECORDS
    assert {record.partition for record in written} == {0, 1}
    assert cluster.client.consume(topic.name) == written
    assert cluster.client.consume(topic.name, [1]) == [record for record in written if record.partition == 1]


def test_the_cluster_id_is_ours_on_every_disk_and_in_the_answers(cluster: Cluster) -> None:
    assert cluster.client.cluster_id() == cluster.cluster_id
    for disk in cluster.log_dirs:
        assert meta_properties.parse((disk / "meta.properties").read_bytes()).cluster_id == cluster.cluster_id


def test_a_clean_stop_leaves_its_mark_and_a_restart_gives_every_record_back(cluster: Cluster, topic: Topic) -> None:
    written = cluster.client.produce(topic.name, RECORDS)
    cluster.stop()
    assert not any(server.running for server in cluster.servers)
    assert all((disk / ".kafka_cleanshutdown").exists() for disk in cluster.log_dirs)
    cluster.start()
    assert cluster.client.describe_topic(topic.name).topic_id == topic.topic_id
    assert cluster.client.consume(topic.name) == written


def test_a_kill_leaves_no_mark_and_a_restart_gives_every_record_back(cluster: Cluster, topic: Topic) -> None:
    written = cluster.client.produce(topic.name, RECORDS)
    cluster.kill_broker(1)
    assert not any((disk / ".kafka_cleanshutdown").exists() for disk in cluster.log_dirs)
    cluster.start_broker(1)
    assert cluster.client.consume(topic.name) == written


def test_a_replica_moves_to_the_other_disk(cluster: Cluster, topic: Topic) -> None:
    broker = cluster.brokers[1]
    written = cluster.client.produce(topic.name, RECORDS)
    before = broker.replica(topic.name, 0)
    assert before is not None
    (target,) = [disk for disk in broker.log_dirs if disk != before.parent]
    cluster.reassign(topic.name, {0: [1]}, {0: [target]})
    assert broker.replica(topic.name, 0) == target / before.name
    assert cluster.client.consume(topic.name) == written


def test_a_move_that_is_held_back_is_seen_in_flight_and_may_be_cancelled(cluster: Cluster, topic: Topic) -> None:
    broker = cluster.brokers[1]
    written = cluster.client.produce(topic.name, RECORDS, partition=0, size=5000)
    before = broker.replica(topic.name, 0)
    assert before is not None
    (target,) = [disk for disk in broker.log_dirs if disk != before.parent]
    move = cluster.reassign(topic.name, {0: [1]}, {0: [target]}, wait=False, throttle=1_000)
    until("the copy has begun", lambda: list(target.glob(f"{topic.name}-0.*-future")))
    assert not move.verify()
    move.cancel()
    until("the copy is gone", lambda: not list(target.glob(f"{topic.name}-0.*-future")))
    assert broker.replica(topic.name, 0) == before
    assert cluster.client.consume(topic.name, [0]) == written


def test_a_deleted_topic_leaves_no_live_replica(cluster: Cluster) -> None:
    cluster.client.create_topic("orders-gone", [[1]])
    cluster.client.delete_topic("orders-gone")
    assert cluster.client.find_topic("orders-gone") is None
    until("its partition dir is gone", lambda: cluster.brokers[1].replica("orders-gone", 0) is None)


def test_a_partition_moves_to_the_other_broker(cluster: Cluster, topic: Topic) -> None:
    written = cluster.client.produce(topic.name, RECORDS)
    cluster.reassign(topic.name, {0: [2], 1: [1, 2]})
    described = cluster.client.wait_until_in_sync(topic.name)
    assert {n: part.replicas for n, part in described.partitions.items()} == {0: (2,), 1: (1, 2)}
    assert cluster.brokers[2].replica(topic.name, 0) is not None
    assert cluster.client.consume(topic.name) == written


def test_a_topic_is_recreated_while_a_broker_is_down(cluster: Cluster) -> None:
    # Release 2.8 stores the topic ID of a replica when it first leads, so the one that goes down is the leader.
    old = cluster.client.create_topic("again", [[2, 1]])
    cluster.client.produce("again", RECORDS)
    cluster.client.wait_until_in_sync("again")
    cluster.stop_broker(2)
    assert ("again", 0) in cluster.client.under_replicated()
    kept = cluster.brokers[2].replica("again", 0)
    assert kept is not None
    new = cluster.recreate_topic("again", [[1, 2]])
    assert old.topic_id is not None
    assert new.topic_id not in (None, old.topic_id)
    assert old.topic_id in (kept / "partition.metadata").read_text()
    written = cluster.client.produce("again", RECORDS)
    cluster.start_broker(2)
    assert cluster.client.consume("again", [0]) == written


def test_on_zookeeper_a_broker_refuses_the_new_topic_over_its_old_replica(start_cluster: StartCluster) -> None:
    cluster = start_cluster("3.9", mode="zk", brokers=2)
    old = cluster.client.create_topic("again", [[2, 1]])
    cluster.client.produce("again", RECORDS)
    cluster.stop_broker(2)
    new = cluster.recreate_topic("again", [[1, 2]])
    broker = cluster.start_broker(2)
    refusal = f"Topic ID in memory: {old.topic_id} does not match the topic ID for partition again-0 received: "
    until("the broker refuses", lambda: f"{refusal}{new.topic_id}" in broker.log.read_text())
    assert cluster.client.describe_topic("again").partitions[0].isr == (1,)


@pytest.mark.parametrize("name", ["3.9", "4.3"])
def test_in_kraft_a_broker_makes_its_old_replica_stray(start_cluster: StartCluster, name: str) -> None:
    cluster = start_cluster(name, mode="kraft", brokers=2)
    cluster.client.create_topic("again", [[2, 1]])
    cluster.client.produce("again", RECORDS)
    cluster.stop_broker(2)
    cluster.recreate_topic("again", [[1, 2]])
    broker = cluster.start_broker(2)
    cluster.client.wait_until_in_sync("again")
    assert [path.suffix[-6:] for path in broker.log_dirs[0].glob("again-0.*")] == ["-stray"]


def test_a_broker_that_cannot_start_shows_the_end_of_its_log(start_cluster: StartCluster) -> None:
    with pytest.raises(StartError, match=r"(?s)broker-1 ended before it could .*num.io.threads"):
        start_cluster("3.9", mode="zk", settings={"num.io.threads": "many"})


@pytest.fixture
def by_hand(start_cluster: StartCluster, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A cluster that another process started, and what it printed about it."""
    command = [sys.executable, "-m", "tools.real_broker", "up", "3.9", "--mode", "zk", "--dir", str(tmp_path / "up")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        try:
            assert process.stdout is not None
            said = {}
            for line in process.stdout:
                if line.startswith("Ctrl-C"):
                    break
                key, _, value = line.strip().partition("\t")
                said[key] = value
            yield process, said
        finally:
            process.kill()


def test_up_says_where_it_is_and_stops_cleanly_when_asked(
    by_hand: tuple[subprocess.Popen[str], dict[str, str]],
) -> None:
    process, said = by_hand
    assert set(said) >= {"bootstrap", "zookeeper", "metadata", "broker 1"}
    assert answers(int(said["bootstrap"].rpartition(":")[2]))
    os.kill(process.pid, signal.SIGINT)
    assert process.wait() == 0
    assert (Path(said["broker 1"]) / ".kafka_cleanshutdown").exists()
    assert not answers(int(said["zookeeper"].rpartition(":")[2]))


def test_no_server_outlives_the_process_that_started_it(by_hand: tuple[subprocess.Popen[str], dict[str, str]]) -> None:
    process, said = by_hand
    process.kill()
    process.wait()
    for key in ("bootstrap", "zookeeper"):
        port = int(said[key].rpartition(":")[2])
        until(f"nothing listens on port {port}", lambda port=port: not answers(port))
