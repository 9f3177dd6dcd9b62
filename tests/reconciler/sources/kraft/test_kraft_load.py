"""KRaft metadata as a desired state: the tables, the identity, and any bytes at all."""

from __future__ import annotations

import gc
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout.ids import DirectoryId, TopicId
from reconciler.desired import DesiredState
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.kraft import source as kraft
from tools.writers import (
    feature_level_record,
    no_op_record,
    partition_change_record,
    partition_record,
    register_broker_record,
    remove_topic_record,
    topic_record,
    write_metadata_dir,
)
from tools.writers.kraft_writer import begin_transaction, end_transaction, log_bytes, snapshot_bytes

ORDERS = TopicId.parse("cxBT72dK4si8Ied1iP4wBA")
EMPTY = TopicId.parse("oTM53yT_SbSfzlvkh_PfVA")
GONE = TopicId.parse("IG4dPxZf9SoYZxfZsXXdJg")
LEFT = DirectoryId.parse("s33AdXtkR8Gf_xRO-R_dpA")
CLUSTER = "AtgGav8yQjiaJ3rTXE7VCA"

SNAPSHOT = [
    feature_level_record("metadata.version", 21),
    register_broker_record(2, 11, fenced=True),
    register_broker_record(1, 10, directory_ids=[LEFT]),
    topic_record("zeta-empty", EMPTY),
    topic_record("gone", GONE),
    partition_record(GONE, 0, [1]),
    topic_record("orders", ORDERS),
    partition_record(
        ORDERS, 1, [1, 2, 3, 4], isr=[1, 2], removing=[1], adding=[4], leader=2, leader_epoch=5, partition_epoch=7,
        directories=[LEFT, DirectoryId.UNASSIGNED, DirectoryId.LOST, DirectoryId.MIGRATING],
    ),
    partition_record(ORDERS, 0, [2], leader=-1, isr=[]),
]  # fmt: skip
LOG = [[remove_topic_record(GONE)], [partition_change_record(ORDERS, 0, isr=[2], leader=2)]]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log dir of a controller: a snapshot, a log after it, and the identity beside them."""
    write_metadata_dir(
        tmp_path / "disk", snapshot=SNAPSHOT, end_offset=100, log=LOG, epoch=3, timestamp_ms=1_700_000_000_000,
        cluster_id=CLUSTER,
    )  # fmt: skip
    return tmp_path / "disk"


def test_every_replica_is_a_row(log_dir: Path) -> None:
    orders = {"topic": "orders", "topic_id": str(ORDERS)}
    moving = {**orders, "partition": 1, "isr_size": 2, "leader_epoch": 5, "partition_epoch": 7}
    still = {"adding": False, "removing": False}
    expected = [
        # The change in the log gave partition 0 a leader and raised both of its epochs.
        {
            **orders, **still, "partition": 0, "node_id": 2, "directory_id": None, "leader": True, "in_sync": True,
            "isr_size": 1, "leader_epoch": 1, "partition_epoch": 1,
        },
        {
            **moving, "node_id": 1, "directory_id": str(LEFT), "leader": False, "in_sync": True, "adding": False,
            "removing": True,
        },
        {**moving, **still, "node_id": 2, "directory_id": None, "leader": True, "in_sync": True},
        {
            **moving, **still, "node_id": 3, "directory_id": str(DirectoryId.LOST), "leader": False, "in_sync": False,
        },
        {
            **moving, "node_id": 4, "directory_id": None, "leader": False, "in_sync": False, "adding": True,
            "removing": False,
        },
    ]  # fmt: skip
    assert kraft.load(str(log_dir)).replicas.to_pylist() == expected


def test_the_only_broker_that_may_lead_has_the_only_copy_in_sync(tmp_path: Path) -> None:
    stopped = partition_change_record(
        ORDERS, 1, leader=-1, isr=[], eligibleLeaderReplicas=[2], lastKnownElr=[2], version=2
    )
    write_metadata_dir(tmp_path, snapshot=SNAPSHOT, end_offset=100, log=[[stopped]], epoch=3, cluster_id=CLUSTER)
    rows = [row for row in kraft.load(str(tmp_path)).replicas.to_pylist() if row["partition"] == 1]
    assert [(row["node_id"], row["in_sync"], row["isr_size"], row["leader"]) for row in rows] == [
        (1, False, 1, False),
        (2, True, 1, False),
        (3, False, 1, False),
        (4, False, 1, False),
    ]


def test_a_topic_without_partitions_is_known_and_a_removed_one_is_not(log_dir: Path) -> None:
    assert kraft.load(str(log_dir)).topics.to_pylist() == [
        {"topic": "orders", "topic_id": str(ORDERS), "partitions": 2},
        {"topic": "zeta-empty", "topic_id": str(EMPTY), "partitions": 0},
    ]


def test_every_registered_broker_is_a_row(log_dir: Path) -> None:
    assert kraft.load(str(log_dir)).brokers.to_pylist() == [
        {"node_id": 1, "broker_epoch": 10, "fenced": False, "directory_ids": [str(LEFT)]},
        {"node_id": 2, "broker_epoch": 11, "fenced": True, "directory_ids": []},
    ]


def test_the_identity_says_where_how_far_how_old_and_that_a_single_voter_has_committed_all(log_dir: Path) -> None:
    identity = kraft.load(str(log_dir)).identity
    assert (identity.source, identity.location, identity.cluster_id) == ("kraft", str(log_dir), CLUSTER)
    # The snapshot ends before 100; then a LeaderChange and two records.
    assert (identity.offset, identity.epoch, identity.timestamp_ms) == (102, 3, 1_700_000_000_000)
    assert (identity.tail_uncommitted, identity.uncommitted, identity.ends_early) == (False, (), ())
    assert identity.problems == ()


def test_the_same_state_comes_from_the_log_dir_and_from_its_metadata_directory(log_dir: Path) -> None:
    one, other = kraft.load(str(log_dir)), kraft.load(str(log_dir / "__cluster_metadata-0"))
    assert one.replicas.equals(other.replicas)
    assert (one.identity.digest, one.identity.cluster_id) == (other.identity.digest, other.identity.cluster_id)


def test_a_snapshot_by_itself_is_committed_and_finds_its_cluster(log_dir: Path) -> None:
    (file,) = log_dir.glob("*/*.checkpoint")
    state = kraft.load(str(file))
    assert [row["topic"] for row in state.topics.to_pylist()] == ["gone", "orders", "zeta-empty"]
    assert (state.identity.offset, state.identity.tail_uncommitted, state.identity.cluster_id) == (99, False, CLUSTER)
    assert state.identity.digest == hashlib.sha256(file.read_bytes()).hexdigest()
    assert len(state.identity.problems) == 1


def test_a_snapshot_that_was_copied_elsewhere_does_not_take_the_cluster_of_what_lies_there(log_dir: Path) -> None:
    (file,) = log_dir.glob("*/*.checkpoint")
    copy = log_dir / "backup" / file.name
    copy.parent.mkdir()
    copy.write_bytes(file.read_bytes())
    identity = kraft.load(str(copy)).identity
    assert identity.cluster_id is None
    assert "its cluster is not known" in identity.problems[-1]


@pytest.mark.parametrize(
    ("content", "said"), [(None, "No such file"), (b"version=7\n", "version 7"), (b"version=0\n", "has no cluster.id")]
)
def test_a_cluster_that_is_not_known_is_a_problem(log_dir: Path, content: bytes | None, said: str) -> None:
    file = log_dir / "meta.properties"
    file.unlink() if content is None else file.write_bytes(content)
    identity = kraft.load(str(log_dir)).identity
    assert identity.cluster_id is None
    assert said in identity.problems[-1]


def test_a_path_is_taken_relative_to_the_current_directory(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log_dir / "__cluster_metadata-0")
    (file,) = Path().glob("*.checkpoint")
    assert kraft.load(str(file)).identity.cluster_id == CLUSTER
    assert kraft.load(".").identity.cluster_id == CLUSTER


def test_bootstrap_checkpoint_is_no_statement_about_a_cluster(log_dir: Path) -> None:
    (log_dir / "bootstrap.checkpoint").write_bytes(
        snapshot_bytes([feature_level_record("metadata.version", 21)], epoch=0)
    )
    with pytest.raises(MetadataError, match="the offset and the epoch of a snapshot stand in its name"):
        kraft.load(str(log_dir / "bootstrap.checkpoint"))


def test_reading_changes_nothing_and_the_collector_goes_on(log_dir: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in log_dir.rglob("*")}
    assert gc.isenabled()
    kraft.load(str(log_dir))
    with pytest.raises(UsageError):
        kraft.load(str(log_dir / "absent"))
    assert gc.isenabled()
    assert {path: path.stat().st_mtime_ns for path in log_dir.rglob("*")} == before


def _load_or_refuse(folder: Path) -> DesiredState | None:
    try:
        return kraft.load(str(folder))
    except MetadataError:
        return None


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log dir whose files each example writes anew."""
    folder = tmp_path_factory.mktemp("fuzzed")
    os.makedirs(folder / "__cluster_metadata-0")
    return folder


def _write(folder: Path, snapshot: bytes, log: bytes) -> None:
    for file in (folder / "__cluster_metadata-0").iterdir():
        file.unlink()
    (folder / "__cluster_metadata-0" / f"{20:020d}-{1:010d}.checkpoint").write_bytes(snapshot)
    (folder / "__cluster_metadata-0" / f"{20:020d}.log").write_bytes(log)


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_any_bytes_are_refused(fuzzed: Path, snapshot: bytes, log: bytes) -> None:
    _write(fuzzed, snapshot, log)
    assert _load_or_refuse(fuzzed) is None


GOOD_SNAPSHOT = snapshot_bytes(SNAPSHOT, timestamp_ms=5, batch_size=4)
GOOD_LOG = log_bytes([*LOG, [begin_transaction(), no_op_record(), end_transaction()]], 20, timestamp_ms=6)
MUTATION = st.tuples(st.integers(0, 10_000), st.binary(max_size=8), st.integers(0, 8))


def _mutated(content: bytes, mutation: tuple[int, bytes, int]) -> bytes:
    at, new, dropped = mutation
    place = at % len(content)
    return content[:place] + new + content[place + dropped :]


@settings(max_examples=300)
@given(MUTATION, MUTATION, st.sampled_from(("snapshot", "log", "both")))
def test_a_mutated_file_gives_a_true_state_or_none(
    fuzzed: Path, one: tuple[int, bytes, int], other: tuple[int, bytes, int], which: str
) -> None:
    """A state that comes out is the one after some whole number of batches, never a mixture."""
    snapshot = _mutated(GOOD_SNAPSHOT, one) if which != "log" else GOOD_SNAPSHOT
    log = _mutated(GOOD_LOG, other) if which != "snapshot" else GOOD_LOG
    _write(fuzzed, snapshot, log)
    state = _load_or_refuse(fuzzed)
    if state is None:
        return
    # The log's offsets: 20 LeaderChange, 21 gone is removed, 22 the change, 23 to 25 the transaction.
    names = [row["topic"] for row in state.topics.to_pylist()]
    removed = (state.identity.offset or 0) >= 21
    assert names == (["orders", "zeta-empty"] if removed else ["gone", "orders", "zeta-empty"])
    assert (state.identity.offset == 25) or state.identity.problems


@settings(max_examples=200)
@given(st.lists(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=4), max_size=4))
def test_sound_batches_of_any_values_are_a_state_or_refused(fuzzed: Path, groups: list[list[bytes]]) -> None:
    _write(fuzzed, GOOD_SNAPSHOT, log_bytes(groups, 20))
    state = _load_or_refuse(fuzzed)
    if state is not None:
        assert state.identity.offset == 20 + sum(map(len, groups)) or state.identity.problems
