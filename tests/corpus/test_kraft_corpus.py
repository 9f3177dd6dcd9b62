"""The metadata directories that real brokers wrote, against the index of the corpus (FACTS §7)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from layout.topic import METADATA_DIR
from reconciler.errors import MetadataError
from reconciler.sources.kraft import list_files, open_file, read_batches
from reconciler.sources.kraft import source as kraft
from reconciler.sources.kraft.files import name_snapshot
from reconciler.sources.kraft.replay import Replay, read, read_snapshot

pytestmark = pytest.mark.corpus


@dataclass(frozen=True)
class Known:
    """One log dir with a metadata directory, and what the index says of it."""

    log_dir: Path
    cluster_id: str
    metadata: dict[str, Any]

    @property
    def has_whole_log(self) -> bool:
        """Whether the log is there and goes on from offset 0 or from the newest snapshot."""
        return bool(self.metadata["segments"]) and not self.metadata["log_absent"]


@pytest.fixture(scope="module")
def known(shared: Path, corpus: Path) -> list[Known]:
    index = json.loads((shared / "corpus" / "INDEX.json").read_text())
    return [
        Known(corpus / tree["tree"] / path, log_dir["cluster_id"], log_dir["cluster_metadata"])
        for tree in index["trees"]
        for path, log_dir in tree["log_dirs"].items()
        if log_dir.get("cluster_metadata")
    ]


def _read(path: Path) -> Replay:
    return read(str(path), hashlib.sha256())


def _snapshots(known: list[Known]) -> Iterator[str]:
    for each in known:
        for snapshot in list_files(str(each.log_dir / METADATA_DIR)).snapshots:
            yield snapshot.path


def test_the_corpus_has_metadata_of_many_kinds(known: list[Known]) -> None:
    assert any(each.metadata["log_absent"] for each in known)
    assert any(each.has_whole_log and each.metadata["checkpoints"] for each in known)
    assert any(each.has_whole_log and not each.metadata["checkpoints"] for each in known)
    assert len({each.metadata["features"]["metadata.version"] for each in known}) > 4


def test_topics_partitions_cluster_and_brokers_are_those_of_the_index(known: list[Known]) -> None:
    for each in known:
        state = kraft.load(str(each.log_dir))
        counted = state.topics.num_rows, sum(state.topics["partitions"].to_pylist())
        assert counted == (each.metadata["topics"], each.metadata["partitions"]), each.log_dir
        assert state.identity.cluster_id == each.cluster_id, each.log_dir
        brokers = {str(row["node_id"]) for row in state.brokers.to_pylist()}
        assert brokers == set(each.metadata["brokers_registered"]), each.log_dir


def test_features_are_those_of_the_index(known: list[Known]) -> None:
    for each in known:
        assert _read(each.log_dir).image.features == each.metadata["features"], each.log_dir


def test_a_whole_log_is_read_to_its_end_without_a_problem(known: list[Known]) -> None:
    for each in known:
        if each.has_whole_log:
            identity = kraft.load(str(each.log_dir)).identity
            assert (identity.offset, identity.problems) == (each.metadata["last_offset"], ()), each.log_dir
            assert identity.ends_early == ()


def test_where_the_log_is_absent_the_newest_snapshot_answers_and_says_so(known: list[Known]) -> None:
    for each in known:
        if not each.has_whole_log:
            newest = list_files(str(each.log_dir / METADATA_DIR)).snapshots[0]
            identity = kraft.load(str(each.log_dir)).identity
            assert (identity.offset, identity.epoch) == (newest.name.offset - 1, newest.name.epoch)
            assert not identity.tail_uncommitted
            (problem,) = identity.problems
            assert identity.ends_early == (problem,)
            assert f"changes from offset {newest.name.offset} are unknown" in problem


def test_the_whole_log_and_the_snapshot_with_the_rest_of_it_give_the_same_state(
    known: list[Known], tmp_path: Path
) -> None:
    """Two ways to one state: each transition of years of real logs is held to the snapshots that Kafka itself wrote."""
    compared = 0
    for number, each in enumerate(known):
        segments = [name for name in each.metadata["segments"] if each.has_whole_log]
        if not segments or int(segments[0].removesuffix(".log")) != 0:
            continue
        folder = tmp_path / str(number) / METADATA_DIR
        folder.mkdir(parents=True)
        for name in segments:
            os.symlink(each.log_dir / METADATA_DIR / name, folder / name)
        from_log, from_both = _read(folder), _read(each.log_dir)
        assert len(from_log.image.removed_topics) == each.metadata["removed_topics"], each.log_dir
        assert from_log.image.topics == from_both.image.topics, each.log_dir
        assert from_log.image.brokers == from_both.image.brokers, each.log_dir
        assert from_log.image.features == from_both.image.features, each.log_dir
        compared += each.metadata["checkpoints"] > 0
    assert compared > 5


def test_every_snapshot_is_whole(known: list[Known]) -> None:
    for path in _snapshots(known):
        replay = read_snapshot(name_snapshot(path), hashlib.sha256())
        replay.image.check()
        assert (replay.problems, replay.image.unknown_types, replay.unknown_controls) == ([], {}, {}), path


def test_a_snapshot_that_lost_its_last_batch_is_not_whole(known: list[Known], tmp_path: Path) -> None:
    path = next(_snapshots(known))
    with open_file(path) as (file, size):
        last = list(read_batches(file, size, hashlib.sha256()))[-1]
    copy = tmp_path / os.path.basename(path)
    copy.write_bytes(Path(path).read_bytes()[: last.position])
    with pytest.raises(MetadataError, match="does not end with a footer"):
        read_snapshot(name_snapshot(str(copy)), hashlib.sha256())
