"""A directory called ``deleting`` inside the log dir of a real broker: why a broker's replicas are staged elsewhere.

The name has no ``-``, so no release takes it for a replica or for one that is marked for deletion (FACTS §1.3, §1.6).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from layout.scheme import STAGING_DIR
from reconciler.cli import logstore
from tests.broker.cure_bench import contents
from tools.real_broker.client import Topic
from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import StartError
from tools.real_broker.releases import EACH_WAY

pytestmark = pytest.mark.broker

PARTITIONS = 4
RECORDS = 200
TOPIC = "orders"


def nothing(inside: Path, topic: Topic, replica: Path) -> None:
    """An empty directory."""


def a_staged_replica(inside: Path, topic: Topic, replica: Path) -> None:
    """A whole replica, under the name that a log dir of ours gives it."""
    shutil.copytree(replica, inside / f"{topic.topic_id}_{replica.name.rpartition('-')[2]}")


def a_name_of_nothing(inside: Path, topic: Topic, replica: Path) -> None:
    """A directory whose own name could not be parsed either."""
    (inside / "not a replica").mkdir()


@pytest.mark.parametrize(("release", "mode"), EACH_WAY)
def test_with_it_the_broker_does_not_start_at_all_and_without_it_all_is_as_before(
    start_cluster: Callable[..., Cluster], release: str, mode: str
) -> None:
    cluster = start_cluster(release, mode=mode, log_dirs=2)
    broker = cluster.brokers[1]
    topic = cluster.client.create_topic(TOPIC, [[1]] * PARTITIONS)
    written = cluster.client.produce(TOPIC, RECORDS)
    cluster.stop_broker(1)
    data = [data_of(disk) for disk in broker.log_dirs]
    assert all(data)
    for fill in (nothing, a_staged_replica, a_name_of_nothing):
        inside = broker.log_dirs[1] / STAGING_DIR
        inside.mkdir()
        fill(inside, topic, min(broker.log_dirs[1].glob(f"{TOPIC}-*")))
        does_not_start(cluster, inside)
        shutil.rmtree(inside)
        assert [data_of(disk) for disk in broker.log_dirs] == data
    assert preflight(cluster)["starts"]
    cluster.start_broker(1)
    assert cluster.client.consume(TOPIC) == written
    assert not any((disk / STAGING_DIR).exists() for disk in broker.log_dirs)


def does_not_start(cluster: Cluster, inside: Path) -> None:
    """Start the broker: it ends, as preflight says, and names the directory; what is in there is left alone."""
    broker, within = cluster.brokers[1], contents(inside)
    said = preflight(cluster)
    assert not said["starts"]
    assert [each["name"] for each in said["findings"] if each["effect"] == "startup_aborts"] == [STAGING_DIR]
    place = broker.log.stat().st_size
    broker.launch()
    with pytest.raises(StartError, match="ended before it could"):
        broker.wait_until_ready()
    with broker.log.open(encoding="utf-8", errors="replace") as log:
        log.seek(place)
        text = log.read()
    # It is the whole broker that ends, and not one disk that goes offline.
    assert f"Found directory {inside}, '{STAGING_DIR}' is not in the form of topic-partition" in text
    assert "Stopping serving logs in dir" not in text
    assert contents(inside) == within
    # In KRaft it halts where it stands: the mark of the last clean stop is gone, and the next start recovers.
    marked = [(disk / ".kafka_cleanshutdown").exists() for disk in broker.log_dirs]
    assert marked == [cluster.mode == "zk"] * 2


def data_of(disk: Path) -> dict[str, bytes]:
    """The segments and topic IDs of the replicas on a disk; indexes grow when a broker merely opens them."""
    paths = (path for path in disk.glob(f"{TOPIC}-*/*") if path.suffix == ".log" or path.name == "partition.metadata")
    return {str(path): path.read_bytes() for path in paths}


def preflight(cluster: Cluster) -> dict[str, Any]:
    """What ``logstore preflight`` says of the broker's disks."""
    mode = "zookeeper" if cluster.mode == "zk" else "kraft"
    asked = ["--kafka", cluster.release.version, "--mode", mode, "--metadata", "none", "--format", "json"]
    result = CliRunner().invoke(logstore, ["preflight", *map(str, cluster.brokers[1].log_dirs), *asked])
    assert result.exit_code in (0, 1), result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document
