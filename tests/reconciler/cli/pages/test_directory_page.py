"""The explanation of a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout.ids import TopicId
from layout.ours import StagedRecord
from reconciler.cli.frame import log_dir_of_path
from reconciler.cli.pages import (
    Explanation,
    explain_directory,
    explain_log_dir,
    scan_rows,
)
from reconciler.text import size
from tests.logstore.engine import write_ledger

UNIQUE = "0123456789abcdef0123456789abcdef"


def explained(cluster, name: str) -> Explanation:
    path = cluster.log_dir(1) / name
    path.mkdir(parents=True, exist_ok=True)
    return explained_as_it_is(path)


def explained_as_it_is(path: Path) -> Explanation:
    home = log_dir_of_path(str(path))
    assert home is not None
    row = next((row for row in scan_rows(home.log_dir) if row["name"] == home.name), None)
    return explain_directory(str(path), home, row)


def facts(explanation: Explanation) -> dict[str, str]:
    return dict(explanation.facts)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("orders-0", "a live replica: partition 0 of topic orders"),
        (f"orders-0.{UNIQUE}-future", "on its way from another log dir"),
        (f"orders-0.{UNIQUE}-delete", "waits for its deletion"),
        (f"orders-0.{UNIQUE}-stray", "a broker has set aside"),
        ("remote-log-index-cache", "a directory of the broker itself"),
        ("lost+found", "not Kafka's"),
        (
            "../broker-1.deleting/AAECAwQFBgcICQoLDA0ODw_0",
            "a staged replica: partition 0 of topic ID AAECAwQFBgcICQoLDA0ODw",
        ),
    ],
)
def test_every_kind_of_directory_is_named_with_its_rule(cluster, name: str, what: str) -> None:
    explanation = explained(cluster, name)
    assert what in explanation.what
    assert explanation.rule
    assert [start.kafka for start in explanation.at_start] == ["3.9 KRaft", "4.3 KRaft"]


@pytest.mark.parametrize("name", ["lost+found", "orders-0", f"orders-0.{UNIQUE}-stray"])
def test_what_nobody_staged_among_what_is_staged_beside_a_log_dir_stops_no_broker(cluster, name: str) -> None:
    explanation = explained(cluster, f"../broker-1.deleting/{name}")
    assert "not Kafka's" in explanation.what and explanation.at_start == ()
    assert facts(explanation)["at start"].startswith(f"nothing: no broker looks into {cluster.log_dir(1)}.deleting")


def test_a_stray_with_a_record_is_staged_and_says_by_what(cluster) -> None:
    path = cluster.log_dir(1) / f"orders-0.{UNIQUE}-stray"
    path.mkdir(parents=True)
    topic_id = TopicId.parse("AAECAwQFBgcICQoLDA0ODw")
    record = StagedRecord("orders", 0, topic_id, "orders-0", "STALE_ID", "why", 1000, 5000)
    write_ledger(path.parent, {path.name: record})
    explanation = explained_as_it_is(path)
    assert explanation.what == "a staged replica: partition 0 of topic ID AAECAwQFBgcICQoLDA0ODw"
    assert "a line of .logstore_ledger says what it was" in explanation.rule


def test_a_live_replica_tells_its_topic_id_and_its_files(cluster) -> None:
    (cluster.log_dir(1) / "orders-0" / "00000000000000000000.log.deleted").write_bytes(bytes(10))
    found = facts(explained(cluster, "orders-0"))
    assert found["topic ID"] == "AAECAwQFBgcICQoLDA0ODw"
    assert found["partition.metadata"] == "in order"
    logs = (cluster.log_dir(1) / "orders-0").glob("*.log*")
    assert f"2 .log ({size(sum(512 * log.stat().st_blocks for log in logs))})" in found["files"]
    assert found["leftovers"] == "1 file of a change under way: 00000000000000000000.log.deleted"


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty"), (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "zero ID"), (b"\xff\n\xff", "not UTF-8")],
)
def test_a_damaged_file_is_reported_with_what_it_does_to_each_release(cluster, content: bytes, said: str) -> None:
    (cluster.log_dir(1) / "orders-0" / "partition.metadata").write_bytes(content)
    explanation = explained(cluster, "orders-0")
    assert said in facts(explanation)["partition.metadata"]
    assert {start.action for start in explanation.at_start} <= {
        "the log dir goes offline",
        "the broker does not start",
    }


def test_a_replica_without_topic_id_is_made_stray_by_kraft_brokers_alone(cluster) -> None:
    (cluster.log_dir(1) / "orders-0" / "partition.metadata").unlink()
    (cluster.log_dir(1) / "meta.properties").unlink()
    (cluster.log_dir(1) / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    starts = {start.kafka: start.action for start in explained(cluster, "orders-0").at_start}
    assert starts["3.9 ZooKeeper"] == "loaded as the current replica"
    assert starts["3.9 KRaft"] == starts["4.3 KRaft"] == "loaded, and renamed to a stray"


def test_a_foreign_directory_stops_every_release(cluster) -> None:
    explanation = explained(cluster, "lost+found")
    assert {start.action for start in explanation.at_start} == {"the broker does not start"}
    assert "has no '-'" in explanation.rule


def test_a_stray_is_unknown_to_old_releases(cluster) -> None:
    (cluster.log_dir(1) / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=cluster-of-the-tests\n")
    starts = {start.kafka: start.action for start in explained(cluster, f"orders-0.{UNIQUE}-stray").at_start}
    assert starts["2.8 ZooKeeper"] == "the broker does not start"
    assert starts["3.9 ZooKeeper"] == "loaded, and kept as a stray"


def test_a_directory_outside_any_log_dir_is_reported_by_its_name(tmp_path) -> None:
    (tmp_path / "orders-0").mkdir()
    explanation = explain_directory(str(tmp_path / "orders-0"), None, None)
    assert "by its name alone" in facts(explanation)["log dir"]
    assert facts(explanation)["partition.metadata"] == "missing"


def test_a_log_dir_tells_whose_it_is_what_it_holds_and_what_stops_a_broker(cluster) -> None:
    (cluster.log_dir(1) / "lost+found").mkdir()
    (cluster.log_dir(1) / "notes.txt").write_text("")
    home = log_dir_of_path(str(cluster.log_dir(1)))
    assert home is not None
    found = facts(explain_log_dir(home, scan_rows(home.log_dir)))
    assert (found["cluster"], found["broker"]) == ("cluster-of-the-tests", "1")
    assert found["belongs to"] == "a real broker"
    assert sorted(found["holds"].split(", ")) == ["2 foreign", "2 live"]
    assert found["stops a broker"] == "lost+found"


def test_files_without_a_segment_are_those_that_a_broker_removes(cluster) -> None:
    path = cluster.log_dir(1) / "orders-0"
    assert "removed at start" not in facts(explained(cluster, "orders-0"))
    for name in (f"{9:020d}.index", f"{3:020d}.snapshot", f"{7:020d}.snapshot", f"{9:020d}.log.deleted"):
        (path / name).write_bytes(b"")
    found = facts(explained(cluster, "orders-0"))
    assert found["removed at start"] == f"2 files without a segment: {3:020d}.snapshot, {9:020d}.index"
    assert found["leftovers"] == f"1 file of a change under way: {9:020d}.log.deleted"
