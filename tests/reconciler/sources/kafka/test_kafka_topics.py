"""The output of kafka-topics as a metadata source: what it makes known, and what it is not taken to say."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from reconciler.desired import Completeness
from reconciler.errors import MetadataError, UsageError
from reconciler.sources import load
from reconciler.sources.kafka import kafka_topics

ID = "cxBT72dK4si8Ied1iP4wBA"
TEXT = (
    f"Topic: orders\tTopicId: {ID}\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
    "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3\tIsr: \tAdding Replicas: 3\tRemoving Replicas: 2\n"
    "Topic: legacy\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \tMarkedForDeletion: true\n"
    "\tTopic: legacy\tPartition: 0\tLeader: 3\tReplicas: 3\tIsr: 3\tMarkedForDeletion: true\n"
)
LOG_DIRS = '{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/d","error":null,"partitions":[]}]}]}'


def written(folder: Path, text: str = TEXT, name: str = "topics.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_topics_replicas_leaders_and_moves_are_known(tmp_path: Path) -> None:
    state = kafka_topics.load(str(written(tmp_path)))
    assert state.topics.to_pylist() == [
        {"topic": "orders", "topic_id": ID, "partitions": 2},
        {"topic": "legacy", "topic_id": None, "partitions": 1},
    ]
    names = ("topic", "partition", "node_id", "leader", "in_sync", "isr_size", "adding", "removing")
    assert [tuple(row[name] for name in names) for row in state.replicas.to_pylist()] == [
        ("orders", 0, 1, True, True, 1, False, False),
        ("orders", 0, 2, False, False, 1, False, False),
        ("orders", 1, 2, False, False, 0, False, True),
        ("orders", 1, 3, False, False, 0, True, False),
        ("legacy", 0, 3, True, True, 1, False, False),
    ]
    assert state.replicas["leader_epoch"].null_count == state.replicas.num_rows
    assert state.brokers.num_rows == 0


def test_the_identity_claims_no_more_than_the_text(tmp_path: Path) -> None:
    path = written(tmp_path)
    identity = kafka_topics.load(str(path)).identity
    assert (identity.source, identity.location, identity.cluster_id) == ("describe", str(path), None)
    assert (identity.offset, identity.epoch, identity.timestamp_ms, identity.scope) == (None, None, None, None)
    assert identity.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert identity.completeness is Completeness.INCREMENTAL
    assert ["neither its cluster nor its time" in identity.problems[0], "describe-all:" in identity.problems[1]] == [
        True,
        True,
    ]
    assert identity.problems[2].startswith("1 topics are marked for deletion and count as wanted until they go: legacy")


def test_it_counts_as_complete_only_where_somebody_vouches_for_it(tmp_path: Path) -> None:
    path = written(tmp_path)
    kinds = {
        spec: load(spec)[0].identity.completeness for spec in (str(path), f"describe:{path}", f"describe-all:{path}")
    }
    assert list(kinds.values()) == [Completeness.INCREMENTAL, Completeness.INCREMENTAL, Completeness.FULL]
    assert not any("describe-all" in text for text in load(f"describe-all:{path}")[0].identity.problems)


def test_it_is_recognised_by_its_first_line(tmp_path: Path) -> None:
    assert kafka_topics.recognises(str(written(tmp_path)))
    assert kafka_topics.recognises(str(written(tmp_path, "Topic:t\tPartitionCount:1\n")))
    assert not kafka_topics.recognises(str(written(tmp_path, "Topic: t is a fine name\n")))
    assert not kafka_topics.recognises(str(tmp_path))
    assert not kafka_topics.recognises(str(tmp_path / "absent"))


@pytest.mark.parametrize("name", ["log-dirs.json", "log-dirs.txt"])
def test_what_brokers_have_is_refused_under_every_name(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, LOG_DIRS, name)
    for spec in (str(path), f"describe:{path}", f"describe-all:{path}"):
        with pytest.raises(MetadataError, match="is what kafka-log-dirs prints"):
            load(spec)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "topics.txt"
    path.write_bytes(TEXT.encode("utf-16"))
    with pytest.raises(MetadataError, match="is no UTF-8 text"):
        load(f"describe:{path}")


def test_several_outputs_in_a_folder_are_refused_because_nothing_tells_which_holds(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        written(tmp_path, name=name)
    with pytest.raises(UsageError, match="holds 2 outputs of kafka-topics"):
        load(str(tmp_path))
    (tmp_path / "b.txt").unlink()
    assert load(str(tmp_path))[0].identity.location == str(tmp_path / "a.txt")


def test_an_absent_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent: no such file"):
        load(f"describe:{tmp_path}/absent")
