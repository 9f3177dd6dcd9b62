"""Preflight of log dirs that real brokers wrote: they would start where they did, and where not, for a reason.

The log dirs of one tree that name the same cluster and node are one broker's, in the order of the index; the one with
the metadata log is the metadata log dir.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconciler.cli import logstore

pytestmark = pytest.mark.corpus

FOUND: dict[tuple[str, str], dict[tuple[str, str], int]] = {
    # An older generation of node 1 lies beside the newer one, with a metadata log of its own; the newer one's metadata
    # want none of its replicas here. Their metadata.version came with 3.5, whose brokers stop at the first replica that
    # is there twice, and delete what is not wanted; later ones make strays of it first.
    ("greenlemonT__kafka-temp", "1"): {
        ("startup_aborts", "metadata_log_elsewhere"): 1,
        ("startup_aborts", "duplicate"): 102,
        ("deleted", "unwanted"): 52,
    },
    # Brokers 1 and 2 have two log dirs each that hold the same replicas, 42 of them twice on each.
    ("ACS7th__dlink-apps@6867050", "1"): {("startup_aborts", "duplicate"): 84},
    ("ACS7th__dlink-apps@6867050", "2"): {("startup_aborts", "duplicate"): 84},
    # Two remnants: checkpoints alone, without meta.properties.
    ("biglogic__kafka-zookeeper@4ed0e76", "None"): {("startup_aborts", "not_formatted"): 3},
    # The first segment of the metadata log was too large to be kept, and no snapshot reaches the second.
    ("MashaKosher__Internship@8a93fee", "1"): {("startup_aborts", "metadata_log_snapshot"): 1},
}
"""What is found of a broker beside notes; every other broker of the corpus would start, and lose nothing."""

DOWNGRADES: list[tuple[str, str, str, str]] = [
    # Replicas without partition.metadata, which 2.7 never wrote, and what KRaft does with them.
    ("cesaralcancio__study-kafka", "2.7", "zookeeper", "would start here"),
    ("cesaralcancio__study-kafka", "3.9", "migration", "77 replicas would not be served"),
    ("PINetDalhousie__amnis-data-sync@92c54dc", "3.9", "kraft", "54 replicas would be renamed to -stray"),
    ("PINetDalhousie__amnis-data-sync@92c54dc", "3.7.0", "kraft", "would not start here"),
    ("PINetDalhousie__amnis-data-sync@92c54dc", "2.8", "zookeeper", "would start here"),
]
"""Tree, release, mode, and the words of the answers for all its brokers together, with their numbers added up."""


def brokers(tree: dict[str, Any], corpus: Path) -> dict[str, list[str]]:
    """Arguments for each broker of a tree, by its cluster and node."""
    grouped = defaultdict(list)
    for name, found in tree["log_dirs"].items():
        grouped[found["cluster_id"], str(found["node_id"])].append((f"{corpus}/{tree['tree']}/{name}", found))
    options = {}
    for (cluster, node), log_dirs in grouped.items():
        own = [path for path, found in log_dirs if found["cluster_metadata"]]
        options[f"{cluster} {node}"] = [path for path, _ in log_dirs] + (["--metadata-log-dir", own[0]] if own else [])
    return options


def answers(tree: dict[str, Any], corpus: Path, *args: str) -> dict[str, dict[str, Any]]:
    """The answer for each broker of a tree."""
    found = {}
    for broker, paths in brokers(tree, corpus).items():
        ran = CliRunner().invoke(logstore, ["preflight", *paths, "--format", "json", *args])
        assert ran.exit_code in (0, 1), f"{tree['tree']}: {ran.stderr}"
        found[broker] = json.loads(ran.stdout)
        assert ran.exit_code == (0 if found[broker]["nothing_lost"] else 1)
    return found


@pytest.fixture(scope="module")
def trees(shared: Path) -> dict[str, dict[str, Any]]:
    index = json.loads((shared / "corpus" / "INDEX.json").read_text())
    return {tree["tree"]: tree for tree in index["trees"]}


@pytest.fixture(scope="module")
def all_answers(trees: dict[str, dict[str, Any]], corpus: Path) -> dict[str, dict[str, dict[str, Any]]]:
    return {name: answers(tree, corpus) for name, tree in trees.items()}


def test_all_31_trees_are_answered_for(all_answers: dict[str, dict[str, dict[str, Any]]]) -> None:
    assert len(all_answers) == 31 and sum(map(len, all_answers.values())) >= 80


def test_the_brokers_would_start_and_lose_nothing_but_for_those_that_have_a_reason(
    all_answers: dict[str, dict[str, dict[str, Any]]],
) -> None:
    for tree, of_brokers in all_answers.items():
        for broker, answer in of_brokers.items():
            found = Counter((each["effect"], each["rule"]) for each in answer["findings"] if each["effect"] != "note")
            wanted = FOUND.get((tree, broker.rpartition(" ")[2]), {})
            assert found == wanted, (tree, broker)
            assert answer["starts"] is not any(effect == "startup_aborts" for effect, _ in wanted)


def test_every_broker_is_asked_about_in_the_mode_of_its_index(
    all_answers: dict[str, dict[str, dict[str, Any]]], trees: dict[str, dict[str, Any]]
) -> None:
    modes = {"kraft": "kraft", "zk": "zookeeper"}
    for tree, of_brokers in all_answers.items():
        for broker, answer in of_brokers.items():
            if not broker.endswith("None"):
                assert answer["mode"] == modes[trees[tree]["mode"]], tree


@pytest.mark.parametrize(("tree", "release", "mode", "words"), DOWNGRADES)
def test_other_releases_and_modes_would_do_otherwise(
    trees: dict[str, dict[str, Any]], corpus: Path, tree: str, release: str, mode: str, words: str
) -> None:
    found = answers(trees[tree], corpus, "--kafka", release, "--mode", mode)
    totals = sum((Counter(answer["totals"]) for answer in found.values()), Counter())
    if words[0].isdigit():
        effect = "not_served" if "served" in words else "renamed_to_stray"
        assert totals[effect] == int(words.partition(" ")[0])
    else:
        assert all(words in answer["sentence"] for answer in found.values())
