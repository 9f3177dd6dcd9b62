"""What Kafka's own commands print, as a metadata source: the same replicas as the brokers' own metadata has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.desired import Completeness
from reconciler.errors import MetadataError
from reconciler.sources import load
from tools.real_broker.java import run_command
from tools.real_broker.releases import EACH_WAY, find_release

pytestmark = pytest.mark.broker

TOPICS = ("describe-source", "describe-source-alone")
COLUMNS = ("topic", "topic_id", "partition", "node_id", "leader", "in_sync", "isr_size", "adding", "removing")
Start = Callable[..., Any]


def printed(cluster: Any, release: str, command: str, *arguments: str) -> str:
    """What a command of that release prints, without the lines of its log."""
    made = find_release(release)
    package = "org.apache.kafka.tools" if made.tools else "kafka.admin"
    silent = Path(cluster.folder) / "silent.properties"
    silent.write_text(
        "rootLogger.level=OFF\n" if made.logging_option.startswith("log4j2") else "log4j.rootLogger=OFF\n"
    )
    return run_command(
        made, command, f"{package}.{command}", ["--bootstrap-server", cluster.bootstrap, *arguments], silent
    )


@pytest.mark.parametrize(("release", "mode"), EACH_WAY)
def test_the_text_of_every_release_gives_the_replicas_that_its_metadata_has(
    shared_cluster: Start, release: str, mode: str, tmp_path: Path
) -> None:
    cluster = shared_cluster(release, mode=mode, brokers=2)
    cluster.client.create_topic(TOPICS[0], assignment=[[1, 2], [2, 1]], settings={"retention.ms": "100000"})
    cluster.client.create_topic(TOPICS[1], assignment=[[2]])
    cluster.client.wait_until_in_sync(TOPICS[0])
    text = tmp_path / "topics.txt"
    text.write_text(printed(cluster, release, "TopicCommand", "--describe"))
    (described,) = load(str(text))
    (own,) = load(f"zk:{cluster.zookeeper}" if mode == "zk" else f"kraft:{cluster.metadata.data}")
    found, expected = (
        sorted(tuple(row[name] for name in COLUMNS) for row in state.replicas.to_pylist() if row["topic"] in TOPICS)
        for state in (described, own)
    )
    assert len(found) == 5
    assert found == expected
    assert described.identity.completeness is Completeness.INCREMENTAL
    text.write_bytes(text.read_bytes()[:-10])
    with pytest.raises(MetadataError, match=r"no whole output|does not end with a line feed"):
        load(str(text))


@pytest.mark.parametrize(("release", "mode"), EACH_WAY)
def test_what_kafka_log_dirs_prints_is_refused_as_that(
    shared_cluster: Start, release: str, mode: str, tmp_path: Path
) -> None:
    cluster = shared_cluster(release, mode=mode, brokers=2)
    text = tmp_path / "log-dirs.txt"
    text.write_text(printed(cluster, release, "LogDirsCommand", "--describe"))
    with pytest.raises(MetadataError, match="is what kafka-log-dirs prints"):
        load(str(text))
