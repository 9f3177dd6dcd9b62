"""IDs and text files against the golden vectors: what upstream's own classes read and wrote, input by input.

An upstream error is compared by its class chain. For partition.metadata and the checkpoints a storage error takes the
log dir offline, and anything else ends the startup (FACTS §1.6); an error in meta.properties marks its log dir as
failed (FACTS §2.2); a quorum-state that does not read lets no node start (FACTS §2.8).
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from layout import checkpoint, meta_properties, partition_metadata, quorum_state
from layout.errors import BrokerEffect, DamagedFileError, InvalidIdError
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.quorum_state import QuorumState

Vector = dict[str, Any]

PREFIXES = (
    *("uuid.", "partition.metadata.", "leader-epoch-checkpoint.", "offset-checkpoint.", "meta.properties."),
    "quorum-state.",
)
MISSING_FILE = "<missing file>"


def error_chain(vector: Vector) -> list[str] | None:
    """The exception classes of an upstream error, outermost first; None when upstream accepted the input."""
    output = vector["output"]
    return output["error"]["exceptionChain"] if isinstance(output, dict) and "error" in output else None


def effect_of(chain: list[str]) -> BrokerEffect:
    """What the outermost class of an error while loading a log does to a broker."""
    return BrokerEffect.LOG_DIR_OFFLINE if chain[0] == "KafkaStorageException" else BrokerEffect.STARTUP_ABORTS


def described_identity(text: str) -> MetaProperties:
    """The identity that upstream's ``toString`` describes."""
    match = re.fullmatch(
        r"MetaProperties\(version=(\d)(?:, clusterId=(.*?))?(?:, nodeId=(-?\d+))?(?:, directoryId=([\w-]+))?\)", text
    )
    assert match is not None
    version, cluster_id, node_id, directory_id = match.groups()
    return MetaProperties(
        int(version),
        cluster_id,
        None if node_id is None else int(node_id),
        None if directory_id is None else DirectoryId.parse(directory_id),
    )


@pytest.mark.shared(kinds=("uuid.toString",))
def test_an_id_prints_hashes_and_is_reserved_as_upstream(vector: Vector) -> None:
    found, expected = DirectoryId.from_halves(*vector["input"]), vector["output"]
    assert (str(found), found.java_hash, found.is_reserved) == (
        expected["str"],
        expected["hash"],
        expected["dirReserved"],
    )


@pytest.mark.shared(kinds=("uuid.fromString",))
def test_an_id_reads_as_upstream(vector: Vector) -> None:
    if error_chain(vector):
        with pytest.raises(InvalidIdError):
            TopicId.parse(vector["input"])
        return
    found, expected = TopicId.parse(vector["input"]), vector["output"]
    assert found.halves == (expected["msb"], expected["lsb"])
    assert str(found) == expected["canonical"]


@pytest.mark.shared(kinds=("partition.metadata.bytes",))
def test_partition_metadata_is_written_as_upstream(vector: Vector) -> None:
    assert partition_metadata.encode(TopicId.parse(vector["input"])).hex() == vector["output"]["hex"]


@pytest.mark.shared(kinds=("partition.metadata.read",))
@pytest.mark.parametrize("read", [partition_metadata.parse, partition_metadata.parse_shipped])
def test_partition_metadata_reads_as_upstream(vector: Vector, read: Any) -> None:
    text, chain = vector["input"], error_chain(vector)
    if text == MISSING_FILE:
        # There are no bytes to read; what vanishes between listing and reading is an I/O error of the scan.
        assert chain == ["KafkaStorageException", "NoSuchFileException"]
        return
    data = bytes.fromhex(text.removeprefix("bytes ")) if text.startswith("bytes ") else text.encode()
    if chain is None:
        found = read(data)
        assert (str(found.topic_id), found.version) == (vector["output"]["topicId"], vector["output"]["version"])
        assert found.effect is BrokerEffect.NONE
        return
    with pytest.raises(DamagedFileError) as raised:
        read(data)
    assert raised.value.effect is effect_of(chain)


@pytest.mark.shared(kinds=("leader-epoch-checkpoint.created",))
def test_a_fresh_leader_epoch_checkpoint_is_legal(vector: Vector) -> None:
    assert checkpoint.parse_leader_epochs(bytes(vector["output"]["len"])) == []


@pytest.mark.shared(kinds=("leader-epoch-checkpoint.bytes",))
def test_a_leader_epoch_checkpoint_is_written_as_upstream(vector: Vector) -> None:
    entries = [(int(epoch), int(offset)) for epoch, offset in re.findall(r"\((\d+),(\d+)\)", vector["input"])]
    assert checkpoint.encode_leader_epochs(entries).decode() == vector["output"]


@pytest.mark.shared(kinds=("leader-epoch-checkpoint.read",))
def test_a_leader_epoch_checkpoint_reads_as_upstream(vector: Vector) -> None:
    data, chain = vector["input"].encode(), error_chain(vector)
    if chain is None:
        shown = [f"EpochEntry(epoch={e}, startOffset={o})" for e, o in checkpoint.parse_leader_epochs(data)]
        assert f"[{', '.join(shown)}]" == vector["output"]
        return
    with pytest.raises(DamagedFileError) as raised:
        checkpoint.parse_leader_epochs(data)
    assert raised.value.effect is effect_of(chain)


@pytest.mark.shared(kinds=("offset-checkpoint.bytes",))
def test_an_offset_checkpoint_is_written_as_upstream(vector: Vector) -> None:
    entries = {(topic, int(n)): int(offset) for topic, n, offset in re.findall(r"(\w+)-(\d+)=(\d+)", vector["input"])}
    assert checkpoint.encode_offsets(entries).decode() == vector["output"]


@pytest.mark.shared(kinds=("offset-checkpoint.read",))
def test_an_offset_checkpoint_reads_as_upstream(vector: Vector) -> None:
    data, chain = vector["input"].encode(), error_chain(vector)
    if chain is None:
        read = checkpoint.parse_offsets(data, checkpoint.HIGH_WATERMARK_CHECKPOINT)
        shown = [f"{topic}-{partition}={offset}" for (topic, partition), offset in read.items()]
        assert f"{{r={{{', '.join(shown)}}}}}" == vector["output"]
        return
    with pytest.raises(DamagedFileError) as raised:
        checkpoint.parse_offsets(data, checkpoint.HIGH_WATERMARK_CHECKPOINT)
    # No log is loaded while this file is read, so what is no I/O error ends no startup.
    offline = effect_of(chain) is BrokerEffect.LOG_DIR_OFFLINE
    assert raised.value.effect is (BrokerEffect.LOG_DIR_OFFLINE if offline else BrokerEffect.NONE)


@pytest.mark.shared(kinds=("meta.properties.bytes",))
def test_meta_properties_is_written_as_upstream_but_for_the_order_of_keys(vector: Vector) -> None:
    expected = vector["output"].split("\n")
    written = meta_properties.encode(described_identity(vector["input"]), expected[1].removeprefix("#"))
    lines = written.decode().split("\n")
    assert lines[:2] == expected[:2]
    assert sorted(lines[2:]) == sorted(expected[2:])


@pytest.mark.shared(kinds=("meta.properties.bytes(JDK 25 store order)",))
def test_meta_properties_is_written_as_a_newer_java_does_to_the_byte(vector: Vector) -> None:
    keys = vector["input"]
    directory_id = DirectoryId.parse(keys["directory.id"])
    identity = MetaProperties(int(keys["version"]), keys["cluster.id"], int(keys["node.id"]), directory_id)
    date = vector["output"].split("\n")[1].removeprefix("#")
    assert meta_properties.encode(identity, date).decode() == vector["output"]


@pytest.mark.shared(kinds=("meta.properties.reread",))
def test_meta_properties_reads_back_what_upstream_reads_back(vector: Vector) -> None:
    written = meta_properties.encode(described_identity(vector["input"]), "date")
    assert meta_properties.parse(written) == described_identity(vector["output"])


@pytest.mark.shared(kinds=("meta.properties.read",))
def test_meta_properties_reads_as_upstream(vector: Vector) -> None:
    data, chain = vector["input"].encode("iso-8859-1"), error_chain(vector)
    if chain is None:
        found, expected = meta_properties.parse(data), described_identity(vector["output"])
        assert (found.version, found.cluster_id, found.node_id, found.directory_id) == (
            expected.version,
            expected.cluster_id,
            expected.node_id,
            expected.directory_id,
        )
        return
    assert chain[0] == "RuntimeException"
    with pytest.raises(DamagedFileError) as raised:
        meta_properties.parse(data)
    assert raised.value.effect is BrokerEffect.LOG_DIR_OFFLINE


@pytest.mark.shared(kinds=("quorum-state.bytes",))
def test_quorum_state_is_written_as_upstream(vector: Vector) -> None:
    text = vector["input"]
    epoch = re.search(r"epoch=(\d+)", text)
    leader = re.search(r"leaderId=OptionalInt\[(\d+)\]", text)
    vote = re.search(r"ReplicaKey\(id=(\d+), directoryId=Optional\[([\w-]+)\]\)", text)
    voters = re.search(r"voters=\[([\d, ]*)\]", text)
    assert epoch is not None and voters is not None
    state = QuorumState(
        int(epoch[1]),
        None if leader is None else int(leader[1]),
        None if vote is None else int(vote[1]),
        quorum_state.NO_DIRECTORY_ID if vote is None else DirectoryId.parse(vote[2]),
        tuple(map(int, re.findall(r"\d+", voters[1]))),
    )
    assert quorum_state.encode(state, 1 if text.endswith("KRAFT_VERSION_1") else 0).decode() == vector["output"]


@pytest.mark.shared(kinds=("quorum-state.read",))
def test_quorum_state_reads_as_upstream(vector: Vector) -> None:
    data = vector["input"].encode()
    if error_chain(vector):
        with pytest.raises(DamagedFileError) as raised:
            quorum_state.parse(data)
        assert raised.value.effect is BrokerEffect.STARTUP_ABORTS
        return
    state = quorum_state.parse(data)
    assert state.voted_id is None and "votedKey=Optional.empty" in vector["output"]
    assert vector["output"] == (
        f"Optional[Election(epoch={state.leader_epoch}, leaderId=OptionalInt[{state.leader_id}], "
        f"votedKey=Optional.empty, voters={list(state.voters)})]"
    )


@pytest.mark.shared
def test_no_vector_of_these_files_is_left_out(golden_vectors: list[Vector]) -> None:
    tested = {
        kind
        for test in globals().values()
        for marker in getattr(test, "pytestmark", [])
        for kind in marker.kwargs.get("kinds", ())
    }
    there = [vector["kind"] for vector in golden_vectors if vector["kind"].startswith(PREFIXES)]
    assert set(there) == tested
    # 9 + 18 IDs, 1 + 24 partition.metadata, 1 + 2 + 22 and 1 + 10 checkpoints, 3 + 1 + 3 + 16 meta.properties, 5 + 8.
    assert len(there) == 124


@pytest.mark.shared
def test_one_vector_has_no_bytes(golden_vectors: list[Vector]) -> None:
    assert sum(vector["input"] == MISSING_FILE for vector in golden_vectors) == 1
