"""INCONSISTENT_TOPIC_ID on real brokers, the cure that people copy from the internet, and ours.

With ZooKeeper: it loses its data, topics are made anew, the disks keep the old IDs, and a broker serves none of them;
``logstore repair --adopt-topic-id`` gives the data to the new topics. In KRaft: ``find -name partition.metadata
-delete`` sets every replica aside, ``logstore preflight`` says so before, and ``repair`` and ``restore`` undo it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconciler.cli import logstore
from tests.broker.preflight_bench import end_offset
from tools.real_broker import znodes
from tools.real_broker.client import until
from tools.real_broker.cluster import Cluster

pytestmark = pytest.mark.broker

StartCluster = Callable[..., Cluster]
GROUP, RECORDS, PARTITIONS = "billing", 60, 2
COMMITTED = {0: 7, 1: 11}
STALE = ["__consumer_offsets-0", "orders-0", "orders-1"]


def run(*arguments: object) -> Result:
    """The command, as a user gives it."""
    return CliRunner().invoke(logstore, [str(argument) for argument in arguments])


def commit(cluster: Cluster) -> None:
    """Commit an offset for each partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP})
    offsets = [TopicPartition("orders", number, offset) for number, offset in COMMITTED.items()]
    try:
        until("the offsets are committed", lambda: _committed_now(consumer, offsets))
    finally:
        consumer.close()


def _committed_now(consumer: object, offsets: list[object]) -> bool:
    from confluent_kafka import KafkaException

    try:
        consumer.commit(offsets=offsets, asynchronous=False)  # type: ignore[attr-defined]
    except KafkaException:
        return False
    return True


def committed(cluster: Cluster, seconds: float = 8) -> dict[int, int] | None:
    """The offsets that the group has committed, below 0 for none; None: the cluster does not answer."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP})
    try:
        found = consumer.committed([TopicPartition("orders", number) for number in COMMITTED], timeout=seconds)
    except KafkaException:
        return None
    finally:
        consumer.close()
    return {each.partition: each.offset for each in found}


def names(disks: Iterable[Path]) -> list[str]:
    """The partition dirs on some disks."""
    return sorted(path.name for disk in disks for path in disk.iterdir() if path.is_dir() and path.name in STALE)


def strays(disks: Iterable[Path]) -> list[str]:
    """What the strays on some disks were."""
    return sorted(path.name.partition(".")[0] for disk in disks for path in disk.glob("*-stray"))


def lose_zookeeper(cluster: Cluster) -> None:
    """Let ZooKeeper begin anew, without a topic, while the disks stay as they are."""
    cluster.stop()
    shutil.rmtree(cluster.metadata.data)
    cluster.metadata.launch()
    cluster.metadata.wait_until_ready()
    znodes.set_cluster_id(cluster.zookeeper, cluster.cluster_id)
    cluster.start()


def plan_and_apply(disks: list[Path], metadata: str, plan: Path, *options: str) -> list[str]:
    """Plan a repair, carry it out, and say which kinds of actions it had."""
    planned = run("repair", *disks, "--metadata", metadata, *options, "-o", plan)
    assert planned.exit_code == 1, planned.output
    applied = run("repair", "--apply", plan)
    assert applied.exit_code == 0, applied.output
    return sorted({each["kind"] for each in json.loads(plan.read_text())["actions"]})


def findings(disks: list[Path], metadata: str, release: str, mode: str) -> dict[str, list[str]]:
    """What preflight says, notes apart: names of replicas by effect."""
    options = ["--metadata", metadata, "--kafka", release, "--mode", mode, "--no-notes", "--format", "json"]
    document = json.loads(run("preflight", *disks, *options).stdout)
    found: dict[str, list[str]] = {}
    for each in document["findings"]:
        found.setdefault(each["effect"], []).append(each["name"])
    return {effect: sorted(which) for effect, which in found.items()}


def test_a_topic_id_that_zookeeper_forgot_is_adopted_and_consumers_go_on(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster("3.9", mode="zk", log_dirs=2)
    disks, client = cluster.brokers[1].log_dirs, cluster.client
    client.create_topic("orders", [[1]] * PARTITIONS)
    written = client.produce("orders", RECORDS)
    commit(cluster)
    old = client.describe_topic("orders").topic_id
    lose_zookeeper(cluster)
    new = client.create_topic("orders", [[1]] * PARTITIONS).topic_id
    assert new != old
    # Asking for the group makes __consumer_offsets anew as well, and nobody answers for either.
    assert committed(cluster) is None
    assert client.find_topic("__consumer_offsets") is not None
    until("the broker refuses the IDs", lambda: "does not match the topic ID" in cluster.brokers[1].log.read_text())
    assert end_offset(cluster.bootstrap, "orders", 0) is None

    cluster.stop_broker(1)
    metadata = f"zk:{cluster.zookeeper}"
    assert findings(disks, metadata, "3.9", "zookeeper") == {"not_served": STALE}
    audited = json.loads(run("audit", *disks, "--metadata", metadata, "--format", "json").stdout)
    found = {each["name"]: each for each in audited["findings"] if each["verdict"] == "STALE_ID"}
    assert sorted(found) == STALE
    assert (found["orders-0"]["disk_topic_id"], found["orders-0"]["metadata_topic_id"]) == (old, new)
    # Without a word of the operator's nothing is changed.
    silent = run("repair", *disks, "--metadata", metadata)
    assert "There is nothing that can be repaired" in silent.output
    assert "--adopt-topic-id orders keeps the data" in silent.output
    adopt = [option for name in ("orders", "__consumer_offsets") for option in ("--adopt-topic-id", name)]
    assert plan_and_apply(disks, metadata, tmp_path / "plan.json", *adopt) == ["replace_topic_id"]
    assert findings(disks, metadata, "3.9", "zookeeper") == {}

    cluster.start_broker(1)
    assert client.consume("orders") == written
    assert until("the group's offsets are loaded", lambda: committed(cluster)) == COMMITTED
    more = client.produce("orders", RECORDS)
    assert client.consume("orders") == sorted([*written, *more])
    assert client.describe_topic("orders").topic_id == new


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_deleting_partition_metadata_makes_all_stray_in_kraft_as_preflight_said_and_all_comes_back(
    start_cluster: StartCluster, tmp_path: Path, release: str
) -> None:
    # USERS F4
    cluster = start_cluster(release, mode="kraft", log_dirs=2)
    disks, client = cluster.brokers[1].log_dirs, cluster.client
    client.create_topic("orders", [[1]] * PARTITIONS)
    written = client.produce("orders", RECORDS)
    commit(cluster)
    cluster.stop_broker(1)
    metadata = f"kraft:{cluster.metadata.data}"
    assert names(disks) == STALE and findings(disks, metadata, release, "kraft") == {}
    for file in [path for disk in disks for path in disk.rglob("partition.metadata")]:
        file.unlink()

    # The cure for the cure, where preflight is asked first.
    assert findings(disks, metadata, release, "kraft") == {"renamed_to_stray": STALE}
    kept = tmp_path / "kept"
    for disk in disks:
        shutil.copytree(disk, kept / disk.name)
    assert plan_and_apply(disks, metadata, tmp_path / "before.json") == ["write_partition_metadata"]
    assert findings(disks, metadata, release, "kraft") == {}
    cluster.start_broker(1)
    assert client.consume("orders") == written
    cluster.stop_broker(1)

    # And where nobody asked.
    for disk in disks:
        shutil.rmtree(disk)
        shutil.copytree(kept / disk.name, disk)
    cluster.start_broker(1)
    assert strays(disks) == STALE
    assert client.consume("orders") == []
    assert committed(cluster) != COMMITTED
    cluster.stop_broker(1)
    # Nothing is overwritten, so what the broker has made anew goes out of the way first.
    for path in [disk / name for disk in disks for name in STALE if (disk / name).is_dir()]:
        shutil.move(path, tmp_path / f"anew-{path.name}")
    for topic in ("orders", "__consumer_offsets"):
        restored = run("restore", *disks, "--topic", topic)
        assert restored.exit_code == 0, restored.output
    assert plan_and_apply(disks, metadata, tmp_path / "after.json") == ["write_partition_metadata"]
    assert findings(disks, metadata, release, "kraft") == {}
    cluster.start_broker(1)
    assert client.consume("orders") == written
    assert until("the group's offsets are loaded", lambda: committed(cluster)) == COMMITTED
    assert strays(disks) == []
