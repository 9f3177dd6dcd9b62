"""The ZooKeeper snapshots that real clusters wrote say what the index of the corpus says of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.desired import DesiredState
from reconciler.sources import locate
from reconciler.sources.zookeeper import snapshot as zookeeper_snapshot

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def indexed(shared: Path) -> list[tuple[str, dict[str, Any]]]:
    """The path below the corpus of each snapshot, and what the index says of it."""
    trees = json.loads((shared / "corpus" / "INDEX.json").read_bytes())["trees"]
    return [(f"{tree['tree']}/{path}", said) for tree in trees for path, said in tree["zookeeper_snapshots"].items()]


def loaded(
    corpus: Path, indexed: list[tuple[str, dict[str, Any]]]
) -> Iterator[tuple[str, dict[str, Any], DesiredState]]:
    for path, said in indexed:
        yield path, said, zookeeper_snapshot.load(str(corpus / path))


def test_the_index_leaves_no_snapshot_out(corpus: Path, indexed: list[tuple[str, dict[str, Any]]]) -> None:
    on_disk = {str(path.relative_to(corpus)) for path in corpus.rglob("version-2/snapshot.*")}
    assert on_disk == {path for path, _ in indexed}
    assert indexed


def test_each_snapshot_has_the_indexed_topics_ids_cluster_and_brokers(
    corpus: Path, indexed: list[tuple[str, dict[str, Any]]]
) -> None:
    for path, said, state in loaded(corpus, indexed):
        with_id = state.topics.num_rows - state.topics["topic_id"].null_count
        assert (state.topics.num_rows, with_id) == (said["topics"], said["topics_with_id"]), path
        assert state.identity.cluster_id == said["cluster_id"], path
        assert state.brokers["node_id"].to_pylist() == sorted(int(broker) for broker in said["brokers"]), path


def test_each_snapshot_names_the_indexed_topics_that_are_marked_for_deletion(
    corpus: Path, indexed: list[tuple[str, dict[str, Any]]]
) -> None:
    for path, said, state in loaded(corpus, indexed):
        marked = [problem for problem in state.identity.problems if "marked for deletion" in problem]
        assert len(marked) == (1 if said["delete_topics"] else 0), path
        assert all(topic in marked[0] for topic in said["delete_topics"][: zookeeper_snapshot.SHOWN]), path


def test_each_snapshot_is_sound_to_its_last_byte(corpus: Path, indexed: list[tuple[str, dict[str, Any]]]) -> None:
    for path, _, state in loaded(corpus, indexed):
        assert not [problem for problem in state.identity.problems if "checksum" in problem.lower()], path


def test_each_partition_has_a_leader_epoch_and_every_row_a_known_topic(
    corpus: Path, indexed: list[tuple[str, dict[str, Any]]]
) -> None:
    for path, _, state in loaded(corpus, indexed):
        assert state.replicas["leader_epoch"].null_count == 0, path
        assert set(state.replicas["topic"].to_pylist()) <= set(state.topics["topic"].to_pylist()), path


def test_every_folder_of_snapshots_is_found_and_gives_its_newest(
    corpus: Path, indexed: list[tuple[str, dict[str, Any]]]
) -> None:
    newest: dict[str, int] = {}
    for path, _ in indexed:
        folder, _, zxid = str(corpus / path).rpartition("/snapshot.")
        newest[folder] = max(newest.get(folder, 0), int(zxid, 16))
    found = [path for path in locate.find(str(corpus)) if path.endswith("version-2")]
    assert found == sorted(newest)
    assert {path: zookeeper_snapshot.load(path).identity.offset for path in found} == newest
