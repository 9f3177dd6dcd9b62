"""A ZooKeeper snapshot as a metadata source: the choice of the file, the state it gives, and its problems."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler.desired import Completeness, DesiredState
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.zookeeper import DATA_DIR, is_data_dir, jute, marked_for_deletion, snapshot
from tools.writers.zookeeper_writer import snapshot_bytes, topic_nodes

ORDERS = TopicId.from_halves(7, 9)
CLUSTER = {"/cluster/id": b'{"version":"1","id":"XB4QhweWTe-kZwMNW25y1A"}', "/controller_epoch": b"12"}
NODES = {
    **CLUSTER,
    **topic_nodes("orders", {0: [1, 2], 1: [2, 3]}, topic_id=ORDERS, leader_epoch=4),
    **topic_nodes("legacy", {0: [1]}),
    "/brokers/ids/2": b"{}",
    "/brokers/ids/1": b"{}",
}


def write(folder: Path, nodes: dict[str, bytes], zxid: int = 0x2A, suffix: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"snapshot.{zxid:x}{suffix}"
    path.write_bytes(snapshot_bytes(nodes, czxids={"/brokers/ids/1": 0x20}, modified_ms=1_700_000_000_123))
    return path


def load(nodes: dict[str, bytes], folder: Path) -> DesiredState:
    return snapshot.load(str(write(folder, nodes)))


def test_identity_says_where_it_comes_from_and_how_old_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, NODES)
    identity = snapshot.load(str(path)).identity
    assert (identity.source, identity.location) == ("zookeeper-snapshot", str(path))
    assert (identity.cluster_id, identity.offset, identity.epoch) == ("XB4QhweWTe-kZwMNW25y1A", 0x2A, 12)
    assert (identity.timestamp_ms, identity.scope, identity.tail_uncommitted) == (1_700_000_000_123, None, False)
    assert identity.completeness is Completeness.FULL
    assert identity.digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_it_always_says_that_of_the_transaction_log_only_the_times_are_read(tmp_path: Path) -> None:
    (problem,) = load(NODES, tmp_path).identity.problems
    assert "only the times are read: changes after zxid 0x2a are unknown" in problem


def test_topics_partitions_and_brokers_are_known(tmp_path: Path) -> None:
    state = load(NODES, tmp_path)
    assert sorted(state.topics.to_pylist(), key=lambda row: row["topic"]) == [
        {"topic": "legacy", "topic_id": None, "partitions": 1},
        {"topic": "orders", "topic_id": str(ORDERS), "partitions": 2},
    ]
    assert [(row["node_id"], row["broker_epoch"], row["fenced"]) for row in state.brokers.to_pylist()] == [
        (1, 0x20, False),
        (2, 1, False),
    ]
    rows = [row for row in state.replicas.to_pylist() if row["topic"] == "orders"]
    assert [(row["partition"], row["node_id"], row["leader"], row["in_sync"]) for row in rows] == [
        (0, 1, True, True),
        (0, 2, False, True),
        (1, 2, True, True),
        (1, 3, False, True),
    ]
    assert {(row["isr_size"], row["leader_epoch"], row["topic_id"]) for row in rows} == {(2, 4, str(ORDERS))}


def test_the_partition_epoch_is_the_version_of_the_state_node(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.1"
    path.write_bytes(snapshot_bytes(NODES, versions={"/brokers/topics/legacy/partitions/0/state": 31}))
    rows = snapshot.load(str(path)).replicas.to_pylist()
    assert [row["partition_epoch"] for row in rows if row["topic"] == "legacy"] == [31]


def test_replicas_in_flight_are_marked(tmp_path: Path) -> None:
    content = b'{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{"0":[2]},"removing_replicas":{"0":[1]}}'
    rows = load({"/brokers/topics/orders": content}, tmp_path).replicas.to_pylist()
    assert [(row["node_id"], row["adding"], row["removing"]) for row in rows] == [(1, False, True), (2, True, False)]


def test_a_partition_without_a_state_has_no_leader_and_no_known_epoch(tmp_path: Path) -> None:
    (row,) = load({"/brokers/topics/t": b'{"partitions":{"0":[5]}}'}, tmp_path).replicas.to_pylist()
    assert (row["leader"], row["isr_size"], row["leader_epoch"], row["partition_epoch"]) == (False, 0, None, None)


def test_a_state_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    nodes = {"/brokers/topics/t": b'{"partitions":{"0":[5]}}', "/brokers/topics/t/partitions/0/state": b"?"}
    problems = load(nodes, tmp_path).identity.problems
    assert any("state of 1 partition cannot be read" in problem and "t-0" in problem for problem in problems)


def test_a_broken_topic_is_known_and_named(tmp_path: Path) -> None:
    state = load({**NODES, "/brokers/topics/broken": b"{"}, tmp_path)
    assert {"topic": "broken", "topic_id": None, "partitions": 0} in state.topics.to_pylist()
    assert any(problem.startswith("topic broken: its node is no JSON") for problem in state.identity.problems)


def test_a_topic_id_that_two_topics_carry_counts_for_one_only(tmp_path: Path) -> None:
    nodes = {**topic_nodes("a", {0: [1]}, topic_id=ORDERS), **topic_nodes("b", {0: [1]}, topic_id=ORDERS)}
    state = load(nodes, tmp_path)
    assert state.topics["topic_id"].to_pylist() == [str(ORDERS), None]
    assert any("is that of a" in problem for problem in state.identity.problems)


# KIP37-4
def test_a_namespaced_topic_has_its_full_name_and_state(tmp_path: Path) -> None:
    state = load({"/brokers/topics/org": b"", **topic_nodes("org:apache:orders", {0: [3]}, leader_epoch=6)}, tmp_path)
    assert state.topics["topic"].to_pylist() == ["org:apache:orders"]
    assert state.replicas["leader_epoch"].to_pylist() == [6]


def test_topics_marked_for_deletion_are_kept_and_named(tmp_path: Path) -> None:
    state = load({**NODES, "/admin/delete_topics/orders": b""}, tmp_path)
    assert "orders" in state.topics["topic"].to_pylist()
    assert any("1 topic is marked for deletion and counts" in problem for problem in state.identity.problems)


def test_a_cluster_that_kraft_took_over_is_named(tmp_path: Path) -> None:
    problems = load({**NODES, "/migration": b'{"kraft_controller_id":3000}'}, tmp_path).identity.problems
    assert any("KRaft controller 3000 has taken this cluster over" in problem for problem in problems)


def test_names_that_are_no_broker_ids_are_passed_over_with_a_sentence(tmp_path: Path) -> None:
    state = load({**NODES, "/brokers/ids/x": b""}, tmp_path)
    assert state.brokers["node_id"].to_pylist() == [1, 2]
    assert any("no broker ids" in problem for problem in state.identity.problems)


@pytest.mark.parametrize(
    ("nodes", "said"), [({"/x": b""}, "no /brokers/topics"), ({"/brokers/topics": b""}, "no topics")]
)
def test_a_snapshot_without_topics_is_an_empty_state_that_says_so(
    tmp_path: Path, nodes: dict[str, bytes], said: str
) -> None:
    state = load(nodes, tmp_path)
    assert state.topics.num_rows == 0
    assert any(said in problem for problem in state.identity.problems)


def test_a_cluster_under_a_chroot_is_found(tmp_path: Path) -> None:
    state = load({f"/prod/kafka{path}": data for path, data in NODES.items()}, tmp_path)
    assert (state.topics.num_rows, state.identity.cluster_id) == (2, "XB4QhweWTe-kZwMNW25y1A")
    assert state.brokers.num_rows == 2


def test_two_clusters_under_chroots_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(MetadataError, match="the nodes of 2 clusters, and one is expected: /a, /b"):
        load({"/a/brokers/topics": b"", "/b/brokers/topics": b""}, tmp_path)


def test_the_cluster_at_the_root_goes_before_those_under_chroots(tmp_path: Path) -> None:
    state = load({**NODES, "/other/brokers/topics/x": b"{}"}, tmp_path)
    assert state.topics.num_rows == 2
    assert any("passed over: /other" in problem for problem in state.identity.problems)


@pytest.mark.parametrize("given_path", [".", "version-2"])
def test_of_a_folder_the_newest_snapshot_by_zxid_counts(tmp_path: Path, given_path: str) -> None:
    folder = tmp_path / "version-2"
    write(folder, CLUSTER, zxid=0x9)
    write(folder, NODES, zxid=0x10)
    identity = snapshot.load(str(tmp_path / given_path)).identity
    assert identity.offset == 0x10
    assert identity.location == str(tmp_path / given_path)


def test_newer_snapshots_that_are_not_sound_are_problems(tmp_path: Path) -> None:
    write(tmp_path, NODES, zxid=0x10)
    (tmp_path / "snapshot.11").write_bytes(b"")
    (tmp_path / "snapshot.12").write_bytes((tmp_path / "snapshot.10").read_bytes()[:-60])
    (tmp_path / "snapshot.13.snappy").write_bytes(b"\x82SNAPPY\x00")
    identity = snapshot.load(str(tmp_path)).identity
    assert identity.offset == 0x10
    assert [problem.split()[0] for problem in identity.problems[:3]] == [
        "snapshot.13.snappy",
        "snapshot.12",
        "snapshot.11",
    ]


def test_a_folder_without_a_sound_snapshot_is_refused_with_the_reasons(tmp_path: Path) -> None:
    (tmp_path / "snapshot.11").write_bytes(b"")
    with pytest.raises(MetadataError, match=r"none of 1 snapshots is sound: snapshot.11 .* the file is empty"):
        snapshot.load(str(tmp_path))


def test_a_folder_without_snapshots_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MetadataError, match="holds no snapshot"):
        snapshot.load(str(tmp_path))


def test_an_absent_path_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        snapshot.load(str(tmp_path / "absent"))


def test_a_pipe_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "snapshot.1")
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        snapshot.load(str(tmp_path / "snapshot.1"))
    assert not snapshot.recognises(str(tmp_path / "snapshot.1"))


def test_a_file_that_may_not_be_opened_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, NODES)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(MetadataError, match=r"snapshot.2a cannot be read: Permission denied"):
        snapshot.load(str(path))


def test_a_folder_that_may_not_be_listed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(UsageError, match="cannot be looked at: Permission denied"):
        snapshot.load(str(tmp_path))


def test_a_snapshot_compressed_with_gzip_is_read(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain", NODES)
    packed = tmp_path / "snapshot.2a.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert snapshot.load(str(packed)).replicas.equals(snapshot.load(str(plain)).replicas)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"x" + data, lambda data: b""])
def test_a_damaged_gzip_file_is_refused(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    path = tmp_path / "snapshot.2a.gz"
    path.write_bytes(damage(gzip.compress(snapshot_bytes(NODES))))
    with pytest.raises(MetadataError, match="no sound gzip file"):
        snapshot.load(str(path))


def test_a_small_file_that_unpacks_to_much_is_refused_before_any_of_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "snapshot.2a.gz"
    path.write_bytes(gzip.compress(snapshot_bytes(NODES)[:16] + bytes(64 << 20)))
    monkeypatch.setattr(jute, "read", lambda *_: pytest.fail("it is read"))
    with pytest.raises(MetadataError, match=rf"unpacks to more than {100 * path.stat().st_size}, the most"):
        snapshot.load(str(path))


def test_a_snapshot_that_unpacks_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_UNPACKED_BYTES", 100)
    path = tmp_path / "snapshot.2a.gz"
    path.write_bytes(gzip.compress(snapshot_bytes(NODES)))
    with pytest.raises(MetadataError, match="unpacks to more than 100, the most"):
        snapshot.load(str(path))


def test_a_snapshot_under_another_name_is_known_by_its_first_bytes_and_dated_by_its_nodes(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    path.write_bytes(snapshot_bytes(NODES, czxids={"/brokers/ids/1": 0x77}))
    assert snapshot.recognises(str(path))
    assert snapshot.load(str(path)).identity.offset == 0x77


def test_what_is_no_snapshot_is_not_recognised(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"ZK")
    assert not snapshot.recognises(str(tmp_path / "other"))
    assert not snapshot.recognises(str(tmp_path))
    assert not snapshot.recognises(str(tmp_path / "absent"))


def test_a_data_dir_has_its_name_and_a_snapshot(tmp_path: Path) -> None:
    (tmp_path / DATA_DIR).mkdir()
    assert not is_data_dir(str(tmp_path / DATA_DIR))
    write(tmp_path / DATA_DIR, NODES)
    assert is_data_dir(str(tmp_path / DATA_DIR))
    assert not is_data_dir(str(tmp_path))


SOUND = snapshot_bytes(NODES)


@settings(max_examples=150)
@given(st.integers(0, len(SOUND) - 1), st.integers(1, 255), st.integers(0, len(SOUND)))
def test_a_damaged_file_gives_a_state_or_our_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, flip: int, length: int
) -> None:
    damaged = bytearray(SOUND)
    damaged[place] ^= flip
    path = tmp_path_factory.getbasetemp() / "snapshot.fa"
    for data in (bytes(damaged), SOUND[:length]):
        path.write_bytes(data)
        try:
            assert isinstance(snapshot.load(str(path)), DesiredState)
        except MetadataError as error:
            assert str(path) in str(error)


def test_topics_that_are_about_to_go_are_counted_in_plain_english() -> None:
    assert marked_for_deletion(["a"]) == "1 topic is marked for deletion and counts as wanted until it goes: a"
    assert marked_for_deletion(["a", "b"]).startswith("2 topics are marked for deletion and count as wanted until they")
