"""A scan of the log dirs that real brokers wrote finds what the corpus' own index counts and notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from logstore.log_dir import discover
from logstore.scan import Observation, scan

pytestmark = pytest.mark.corpus

REMNANT = "biglogic__kafka-zookeeper@4ed0e76"


@pytest.fixture(scope="module")
def index(shared: Path) -> list[dict[str, Any]]:
    """The trees as INDEX.json describes them."""
    trees = json.loads((shared / "corpus" / "INDEX.json").read_text(encoding="utf-8"))["trees"]
    assert len(trees) == 31
    return list(trees)


@pytest.fixture(scope="module")
def observed(corpus: Path, index: list[dict[str, Any]]) -> dict[tuple[str, str], Observation]:
    """(tree, log dir) → what a scan sees."""
    return {
        (tree["tree"], name): scan(f"{corpus}/{tree['tree']}/{name}") for tree in index for name in tree["log_dirs"]
    }


def test_partition_dirs_and_metadata_files_are_as_many_as_the_index_counts(index: Any, observed: Any) -> None:
    for tree in index:
        for name, wanted in tree["log_dirs"].items():
            rows = observed[tree["tree"], name].rows.to_pylist()
            dirs = [row for row in rows if row["kind"] in ("live", "internal") and row["partition"] is not None]
            with_id = [row for row in dirs if row["metadata_state"] == "ok"]
            found = (len(dirs), len(with_id), len({row["topic"] for row in dirs}))
            assert found == (wanted["partition_dirs"], wanted["with_partition_metadata"], wanted["topics"]), (
                tree,
                name,
            )
            assert not {row["metadata_state"] for row in dirs} - {"ok", "missing"}


def test_identities_are_those_of_the_index(index: Any, observed: Any) -> None:
    for tree in index:
        for name, wanted in tree["log_dirs"].items():
            row = observed[tree["tree"], name].rows.slice(0, 1).to_pylist()[0]
            node_id = None if wanted["node_id"] is None else int(wanted["node_id"])
            found = (row["cluster_id"], row["node_id"], row["directory_id"])
            assert found == (wanted["cluster_id"], node_id, wanted["directory_id"]), (tree["tree"], name)
            assert row["metadata_state"] == ("missing" if wanted["meta_version"] is None else "ok")


def test_checkpoint_entries_without_a_directory_are_found_where_the_index_notes_them(observed: Any) -> None:
    def orphans(name: str, file: str) -> set[str]:
        rows = observed[REMNANT, name].rows.to_pylist()
        return {
            f"{row['topic']}-{row['partition']}"
            for row in rows
            if (row["kind"], row["name"]) == ("checkpoint_entry", file)
        }

    assert orphans("kafka_data", "recovery-point-offset-checkpoint") == {"test1-0", "test1-1"}
    assert orphans("kafka_data_2", "replication-offset-checkpoint") == {"dev-topics-0"}


def test_every_leftover_of_a_log_dir_is_found(corpus: Path, observed: Any) -> None:
    for (tree, name), seen in observed.items():
        on_disk = {path.name for path in (corpus / tree / name).glob("*.tmp")}
        assert {row["name"] for row in seen.rows.to_pylist() if row["kind"] == "leftover"} == on_disk
    left = observed["NikhilDighe9975__kafka_setup", "kafka-logs"].rows.to_pylist()
    assert "cleaner-offset-checkpoint.tmp" in {row["name"] for row in left if row["kind"] == "leftover"}


def test_every_log_dir_of_the_index_is_discovered(corpus: Path, index: Any) -> None:
    for tree in index:
        found = set(discover(f"{corpus}/{tree['tree']}"))
        assert {f"{corpus}/{tree['tree']}/{name}" for name in tree["log_dirs"]} <= found
