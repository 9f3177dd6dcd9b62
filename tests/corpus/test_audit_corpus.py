"""Audits of log dirs that real brokers wrote: no false alarm, and no oddity missed that the index of the corpus names.

Each tree is audited as a user would: the folder alone, by the command line, with whatever metadata lies in it.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconciler.cli import logstore

pytestmark = pytest.mark.corpus

JUDGED = frozenset({"OK", "NOT_COMPARED"})
"""What a healthy tree gives: everything as wanted, or nobody to ask."""

FOUND: dict[str, dict[str, int]] = {
    # An older generation of node 1 lies beside the newer one, under the same cluster.id: 51 partitions are live twice,
    # and one replica's topic was re-created on another broker.
    "greenlemonT__kafka-temp": {"DUPLICATE": 102, "STALE_ID": 1},
    # Brokers 1 and 2 have two log dirs each that hold the same replicas, 42 of them twice on each.
    "ACS7th__dlink-apps@6867050": {"DUPLICATE": 168},
    # A checkpoint's temporary file was left by a crash.
    "NikhilDighe9975__kafka_setup": {"LEFTOVER": 1},
    # The newest ZooKeeper snapshot that was kept was written before topic test1 was created; its note says that changes
    # after it are unknown.
    "biglogic__kafka-zookeeper@1c9a05b": {"UNKNOWN_TOPIC": 4},
    # Two remnants: checkpoints alone, without meta.properties and without the directories that they name.
    "biglogic__kafka-zookeeper@4ed0e76": {"ABSENT": 2, "CHECKPOINT_ENTRY": 3},
}
"""Verdicts beside those of a healthy tree, and why they are true. Every other tree has none."""

FLEET: dict[str, list[str]] = {
    "greenlemonT__kafka-temp": [
        *["TOPIC_UNDER_SEVERAL_IDS"] * 3,  # the three topics that the index lists as mismatched
        "DUPLICATE_NODE_ID",  # node.id=1 twice
        "ONLY_KNOWN_COPY",
    ],
    # Two generations of a three-node cluster lie side by side.
    "bhaskar290391__Kafka_By_Sergey_Kargopolov@7a99e45": ["NODE_IN_SEVERAL_CLUSTERS"] * 3,
    # broker.id=1 twice, with different cluster.ids.
    "ACS7th__dlink-apps@ca54c3d": ["NODE_IN_SEVERAL_CLUSTERS"],
    # Three log dirs are only formatted, with the node IDs of the brokers and other directory IDs.
    "ogs59__docker-compose-kafka4.10": ["LOG_DIR_NOT_REGISTERED"] * 3,
}
"""Kinds of fleet finding beside OWN_METADATA. Every other tree has none."""

STOPPED = {
    "arafiq81__kafka-mcp-docker": 1,
    "bhaskar290391__Kafka_By_Sergey_Kargopolov@7a99e45": 2,
    "bhaskar290391__Kafka_By_Sergey_Kargopolov@276d1be": 1,
    "bhaskar290391__Kafka_By_Sergey_Kargopolov@a42cb60": 1,
    "bhaskar290391__Kafka_By_Sergey_Kargopolov@6129349": 1,
    "bhaskar290391__Kafka_By_Sergey_Kargopolov@9355129": 1,
    "ogs59__docker-compose-kafka4.10": 1,
    "greenlemonT__kafka-temp": 1,
    "rosakim83__Boaz-pipeline": 1,
    # Of these the only voter's log after the snapshot was not uploaded, or its beginning is gone.
    "DeusVaulte__ChatProject": 1,
    "MashaKosher__Internship@23643ad": 1,
    "MashaKosher__Internship@8a93fee": 1,
    "MashaKosher__Internship@e642a02": 1,
}
"""How many of a tree's clusters are compared with the own metadata of a broker that does not run.

The metadata of the only voter of a cluster is not counted where it is whole: nothing was decided after it.
"""

NOTED: dict[str, str] = {
    # meta.properties has cluster.id=Some(…), a Scala Option printed into the file.
    "bhaskar290391__Kafka_By_Sergey_Kargopolov@a42cb60": "cluster.id Some(5L6g3nShT-eMCtK--X86sw)",
    "cesaralcancio__study-kafka": "77 of 77 live replicas have no partition.metadata",
    "PINetDalhousie__amnis-data-sync@92c54dc": "54 of 54 live replicas have no partition.metadata",
    "matera-aem__kafka-topology-scenarios": "153 of 153 live replicas hold no segment",
    "MashaKosher__Internship@23643ad": "68 of 68 live replicas hold no segment",
    "ebcoders__MA-Streaming-Pipeline": "meta.properties has Windows line ends",
    "MashaKosher__Internship@8a93fee": "the log begins at offset 498211",
    "DeusVaulte__ChatProject": "the log after the snapshot is absent",
    "Noosarpparashar__kafka-localfullsetup": "knows no topic at all: nothing was compared with it",
}
"""Oddities of the index that ask nobody to act, and what the notes say of them."""


@pytest.fixture(scope="module")
def audits(shared: Path, corpus: Path) -> dict[str, dict[str, Any]]:
    index = json.loads((shared / "corpus" / "INDEX.json").read_text())
    audits = {}
    for tree in index["trees"]:
        ran = CliRunner().invoke(logstore, ["audit", str(corpus / tree["tree"]), "--format", "json"])
        assert ran.exit_code in (0, 1), f"{tree['tree']}: {ran.stderr}"
        audits[tree["tree"]] = json.loads(ran.stdout) | {"index": tree}
    return audits


def test_all_31_trees_are_audited(audits: dict[str, dict[str, Any]]) -> None:
    assert len(audits) == 31


def test_every_partition_dir_of_the_index_but_the_metadata_logs_gets_a_verdict(
    corpus: Path, audits: dict[str, dict[str, Any]]
) -> None:
    for name, audit in audits.items():
        beside = {"ABSENT", "LEFTOVER", "CHECKPOINT_ENTRY"}
        judged = sum(count for verdict, count in audit["totals"].items() if verdict not in beside)
        metadata_logs = sum(path.is_dir() for path in (corpus / name).rglob("__cluster_metadata-0"))
        assert judged == audit["index"]["partition_dirs"] - metadata_logs, name


def test_the_verdicts_are_those_that_are_true_and_no_others(audits: dict[str, dict[str, Any]]) -> None:
    for name, audit in audits.items():
        found = {verdict: count for verdict, count in audit["totals"].items() if verdict not in JUDGED}
        assert found == FOUND.get(name, {}), name


def test_the_fleet_findings_are_those_that_are_true_and_no_others(audits: dict[str, dict[str, Any]]) -> None:
    for name, audit in audits.items():
        expected = Counter(FLEET.get(name, [])) + Counter({"OWN_METADATA": STOPPED.get(name, 0)})
        assert Counter(finding["kind"] for finding in audit["fleet"]) == expected, name


def test_every_kraft_tree_is_compared_with_its_own_metadata(audits: dict[str, dict[str, Any]]) -> None:
    for name, audit in audits.items():
        if audit["index"]["mode"] == "kraft":
            assert "NOT_COMPARED" not in audit["totals"], name
            assert audit["metadata_sources"], name


def test_every_zookeeper_tree_whose_snapshot_has_ids_is_compared(audits: dict[str, dict[str, Any]]) -> None:
    compared = {name for name, audit in audits.items() if audit["index"]["mode"] == "zk" and "OK" in audit["totals"]}
    with_ids = {
        name
        for name, audit in audits.items()
        if any(snapshot["topics_with_id"] for snapshot in audit["index"]["zookeeper_snapshots"].values())
    }
    assert compared == with_ids
    assert len(with_ids) == 3


def test_the_mismatched_topics_of_the_index_are_reported_with_all_their_ids(audits: dict[str, dict[str, Any]]) -> None:
    for name, audit in audits.items():
        details = {f["subject"]: f["detail"] for f in audit["fleet"] if f["kind"] == "TOPIC_UNDER_SEVERAL_IDS"}
        mismatches = audit["index"]["topic_id_mismatches"]
        assert set(details) == set(mismatches), name
        for topic, ids in mismatches.items():
            assert all(topic_id in details[topic] for topic_id in ids)


@pytest.mark.parametrize("tree", NOTED)
def test_oddities_that_ask_nobody_to_act_are_noted(audits: dict[str, dict[str, Any]], tree: str) -> None:
    assert any(NOTED[tree] in note for note in audits[tree]["notes"]), audits[tree]["notes"]


def test_brokers_that_were_not_stopped_cleanly_are_noted(audits: dict[str, dict[str, Any]]) -> None:
    for name, audit in audits.items():
        log_dirs = audit["index"]["log_dirs"].values()
        # A log dir without an identity gets no other finding.
        unclean = sum(not log_dir["clean_shutdown"] for log_dir in log_dirs if log_dir["cluster_id"])
        noted = [note for note in audit["notes"] if "no clean shutdown marker" in note]
        assert bool(noted) == bool(unclean), name
        assert all(note.startswith(f"{unclean} of {len(log_dirs)} log dirs") for note in noted), name
