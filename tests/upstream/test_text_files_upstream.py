"""Upstream's own test cases for IDs and text files, as far as they speak of formats and not of a running log.

``rows.txt`` says of each row where it is held.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layout import checkpoint, clean_shutdown, meta_properties, partition_metadata, quorum_state
from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT, parse_leader_epochs, parse_offsets
from layout.errors import BrokerEffect, DamagedFileError, InvalidIdError
from layout.ids import DirectoryId, TopicId
from layout.log_dir_set import FailedLogDir, LogDirSet, Requirement, startup_problems
from layout.meta_properties import NODE_KEYS, MetaProperties, to_properties
from layout.quorum_state import NO_DIRECTORY_ID, QuorumState
from logstore.fs import read_small_file
from logstore.log_dir import LogDir, read_identity
from logstore.rows import MetadataState
from logstore.scan import scan
from tests.reconciler.preflight.disks import ask, identity, kraft_log_dir, log_dir, replica, write_identity

CLUSTER = "zd2vLVrZQlCLJj8-k7A10w"
A, B = TopicId.from_halves(1, 2), TopicId.from_halves(3, 4)


def reread(identity: MetaProperties) -> MetaProperties:
    """What a reader finds after this identity was written."""
    return meta_properties.parse(meta_properties.encode(identity, "date"))


# 10.1 partition.metadata


def test_PartitionMetadataFileTest_testMaybeFlushWithTopicIdPresent() -> None:
    assert partition_metadata.encode(A).decode().splitlines() == ["version: 0", f"topic_id: {A}"]


def test_PartitionMetadataFileTest_testRead() -> None:
    found = partition_metadata.parse(partition_metadata.encode(A))
    assert (found.version, found.topic_id) == (0, A)


# 10.3 clean shutdown and directory IDs


def test_LogManagerTest_testLoadDirectoryIds() -> None:
    first, second = (DirectoryId.parse(text) for text in ("ZwkGXjB0TvSF6mjVh6gO7Q", "kQfNPJ2FTHq_6Qlyyv6Jqg"))
    identities = [MetaProperties(0), MetaProperties(0, directory_id=first), None]
    identities += [MetaProperties(0, directory_id=second), MetaProperties(0)]
    log_dirs = {str(n): identity and reread(identity) for n, identity in enumerate(identities)}
    assert LogDirSet(log_dirs).directory_ids == {"1": first, "3": second}


def stopped_cleanly(log_dir: Path) -> tuple[bool, int | None]:
    """Whether a scan finds the mark of a clean stop, and the broker epoch in it."""
    (row,) = scan(str(log_dir)).rows.slice(0, 1).to_pylist()
    data = read_small_file(str(log_dir / clean_shutdown.FILE_NAME), 1 << 16)
    return row["clean_shutdown"], None if data is None else clean_shutdown.parse_broker_epoch(data)


def test_CleanShutdownFileHandlerTest_testCleanShutdownFileBasic(tmp_path: Path) -> None:
    mark = log_dir(tmp_path) / clean_shutdown.FILE_NAME
    mark.write_bytes(clean_shutdown.encode(10))
    assert stopped_cleanly(tmp_path) == (True, 10)
    mark.unlink()
    assert stopped_cleanly(tmp_path)[0] is False


def test_CleanShutdownFileHandlerTest_testCleanShutdownFileNonExist(tmp_path: Path) -> None:
    mark = log_dir(tmp_path) / clean_shutdown.FILE_NAME
    mark.write_bytes(clean_shutdown.encode(10))
    mark.unlink()
    assert stopped_cleanly(tmp_path)[1] is None
    # An epoch that one log dir does not have counts for no other.
    assert clean_shutdown.combined_epoch([None, 10]) is None


def test_CleanShutdownFileHandlerTest_testCleanShutdownFileCanParseWithUnknownFields() -> None:
    assert clean_shutdown.parse_broker_epoch(b'{"version":0,"brokerEpoch":10,"unknown":123}') == 10


# 10.5 checkpoints


def test_OffsetCheckpointFileWithFailureHandlerTest_shouldPersistAndOverwriteAndReloadFile() -> None:
    for entries in ({("foo", 1): 5, ("bar", 2): 10}, {("foo", 2): 15, ("bar", 3): 20}):
        assert parse_offsets(checkpoint.encode_offsets(entries), HIGH_WATERMARK_CHECKPOINT) == entries


def test_OffsetCheckpointFileWithFailureHandlerTest_shouldHandleMultipleLines() -> None:
    entries = {("foo", n): 5 for n in range(1, 6)} | {("bar", n): 10 for n in range(6, 11)}
    assert parse_offsets(checkpoint.encode_offsets(entries), HIGH_WATERMARK_CHECKPOINT) == entries


def test_OffsetCheckpointFileWithFailureHandlerTest_shouldReturnEmptyMapForEmptyFile() -> None:
    for data in (b"", checkpoint.encode_offsets({})):
        assert parse_offsets(data, HIGH_WATERMARK_CHECKPOINT) == {}


def test_OffsetCheckpointFileWithFailureHandlerTest_shouldThrowIfVersionIsNotRecognised() -> None:
    with pytest.raises(DamagedFileError, match="version 1") as raised:
        parse_offsets(b"1\n1\nfoo 1 5\n", HIGH_WATERMARK_CHECKPOINT)
    assert raised.value.effect is BrokerEffect.LOG_DIR_OFFLINE


def test_LeaderEpochCheckpointFileWithFailureHandlerTest_shouldPersistAndOverwriteAndReloadFile() -> None:
    for entries in ([(0, 1), (1, 2), (2, 3)], [(3, 4), (4, 5)]):
        assert parse_leader_epochs(checkpoint.encode_leader_epochs(entries)) == entries


def test_LeaderEpochCheckpointFileWithFailureHandlerTest_shouldRetainValuesEvenIfCheckpointIsRecreated(
    tmp_path: Path,
) -> None:
    path = replica(log_dir(tmp_path) / "orders-0") / checkpoint.LEADER_EPOCH_CHECKPOINT
    entries = [(0, 1), (1, 2), (2, 3)]
    path.write_bytes(checkpoint.encode_leader_epochs(entries))
    for _ in range(2):
        scan(str(tmp_path))
        LogDir.open(str(tmp_path)).close()
        assert parse_leader_epochs(path.read_bytes()) == entries


# 10.6 meta.properties


@pytest.mark.parametrize(
    ("identity", "properties"),
    [
        (MetaProperties(0), {"version": "0"}),
        (MetaProperties(0, CLUSTER), {"version": "0", "cluster.id": CLUSTER}),
        (MetaProperties(0, None, 0), {"version": "0", "broker.id": "0"}),
        (MetaProperties(0, CLUSTER, 0), {"version": "0", "cluster.id": CLUSTER, "broker.id": "0"}),
        (
            MetaProperties(0, CLUSTER, 0, DirectoryId.parse("3Adc4FjfTeypRWROmQDNIQ")),
            {
                "version": "0",
                "cluster.id": CLUSTER,
                "broker.id": "0",
                "directory.id": "3Adc4FjfTeypRWROmQDNIQ",
            },
        ),
        (MetaProperties(1, CLUSTER, 0), {"version": "1", "cluster.id": CLUSTER, "node.id": "0"}),
        (
            MetaProperties(1, CLUSTER, 1, DirectoryId.parse("3Adc4FjfTeypRWROmQDNIQ")),
            {
                "version": "1",
                "cluster.id": CLUSTER,
                "node.id": "1",
                "directory.id": "3Adc4FjfTeypRWROmQDNIQ",
            },
        ),
        (MetaProperties(1, "my@cluster@id", 2), {"version": "1", "cluster.id": "my@cluster@id", "node.id": "2"}),
    ],
    ids=[
        "V0SerializationWithNothing",
        "V0SerializationWithJustClusterId",
        "V0SerializationWithJustNodeId",
        "V0SerializationWithJustClusterIdAndNodeId",
        "V0SerializationWithAll",
        "V1SerializationWithoutDirectoryId",
        "V1SerializationWithDirectoryId",
        "V1SerializationWithNonUuidClusterId",
    ],
)
def test_MetaPropertiesTest_testSerialization(identity: MetaProperties, properties: dict[str, str]) -> None:
    assert to_properties(identity) == properties
    assert reread(identity) == identity


def test_MetaPropertiesTest_testClusterIdRequiredInV1() -> None:
    with pytest.raises(DamagedFileError, match=r"cluster\.id is missing"):
        MetaProperties(1, None, 1)


def test_MetaPropertiesTest_testNodeIdRequiredInV1() -> None:
    with pytest.raises(DamagedFileError, match=r"node\.id is missing"):
        MetaProperties(1, CLUSTER)


@pytest.mark.parametrize("version", [0, 1])
def test_MetaPropertiesVersionTest_testV0_testV1_FromTo_Number(version: int) -> None:
    found = meta_properties.parse(f"version={version}\ncluster.id=c\nnode.id=1\n".encode())
    assert found.version == version
    assert to_properties(found)["version"] == str(version)


def test_MetaPropertiesVersionTest_testFromInvalidNumber() -> None:
    with pytest.raises(DamagedFileError, match="version 2 is not known"):
        meta_properties.parse(b"version=2\n")


def test_MetaPropertiesVersionTest_testFromInvalidString() -> None:
    with pytest.raises(DamagedFileError, match="'orange' is no integer"):
        meta_properties.parse(b"version=orange\n")


def test_MetaPropertiesVersionTest_testHasBrokerId_testAlwaysHasNodeId_testAlwaysHasClusterId() -> None:
    assert NODE_KEYS == {0: "broker.id", 1: "node.id"}
    assert MetaProperties(0).node_id is None and MetaProperties(0).cluster_id is None
    with pytest.raises(DamagedFileError, match=r"cluster\.id is missing.*node\.id is missing"):
        MetaProperties(1)


FOO = LogDirSet(
    {
        "/tmp/empty1": None,
        "/tmp/empty2": None,
        "/tmp/error3": FailedLogDir("I/O error"),
        "/tmp/dir4": MetaProperties(1, "fooClusterId", 2),
        "/tmp/dir5": MetaProperties(1, "fooClusterId", 2),
    },
    "/tmp/dir4",
)
EMPTY = LogDirSet({})


def test_MetaPropertiesEnsembleTest_testForFoo() -> None:
    assert len(FOO.normal) + len(FOO.empty) == 4
    assert len(FOO.empty) == 2
    assert (FOO.node_id, FOO.cluster_id, FOO.metadata_log_dir) == (2, "fooClusterId", "/tmp/dir4")
    assert set(FOO.failed) == {"/tmp/error3"}


def test_MetaPropertiesEnsembleTest_testForEmpty() -> None:
    assert not EMPTY.normal and not EMPTY.empty and not EMPTY.failed
    assert (EMPTY.node_id, EMPTY.cluster_id, EMPTY.metadata_log_dir) == (None, None, None)


def test_MetaPropertiesEnsembleTest_testSuccessfulVerification() -> None:
    asked = Requirement.ONE_NORMAL | Requirement.METADATA_LOG_DIR
    assert startup_problems(FOO, asked, "fooClusterId", 2) == []


def test_MetaPropertiesEnsembleTest_testVerificationFailureOnRequireV0() -> None:
    problems = startup_problems(FOO, Requirement.VERSION_0)
    assert [problem.split(":")[0] for problem in problems] == ["/tmp/dir4/meta.properties", "/tmp/dir5/meta.properties"]
    assert all("version 1 is not expected" in problem for problem in problems)


def test_MetaPropertiesEnsembleTest_testVerificationFailureOnRequireAtLeastOneValid() -> None:
    assert startup_problems(EMPTY, Requirement.ONE_NORMAL) == ["no readable meta.properties in any log dir"]


def test_MetaPropertiesEnsembleTest_testVerificationFailureOnLackOfMetadataLogDir() -> None:
    one_empty = LogDirSet({"/tmp/foo1": None})
    assert startup_problems(one_empty, Requirement.METADATA_LOG_DIR) == ["no metadata log dir is given"]


def test_MetaPropertiesEnsembleTest_testVerificationFailureOnMetadataLogDirWithError() -> None:
    failed = LogDirSet({"/tmp/foo1": FailedLogDir("I/O error")}, "/tmp/foo1")
    assert startup_problems(failed, Requirement.METADATA_LOG_DIR) == ["metadata log dir /tmp/foo1: I/O error"]


def loaded(metadata_log_dir: Path, *others: Path) -> LogDirSet:
    """The log dirs as they lie on the disk; a file that is there and cannot be read marks its log dir as failed."""
    log_dirs: dict[str, MetaProperties | FailedLogDir | None] = {}
    for path in (metadata_log_dir, *others):
        found = read_identity(str(path))
        failed = found.identity is None and found.state is not MetadataState.MISSING
        log_dirs[str(path)] = FailedLogDir(found.problem or "") if failed else found.identity
    return LogDirSet(log_dirs, str(metadata_log_dir))


def test_MetaPropertiesEnsembleTest_testMetaPropertiesEnsembleLoad(tmp_path: Path) -> None:
    found = loaded(log_dir(tmp_path, (), MetaProperties(1, "AtgGav8yQjiaJ3rTXE7VCA", 1)))
    assert startup_problems(found, Requirement.KRAFT, "AtgGav8yQjiaJ3rTXE7VCA", 1) == []
    assert found.normal == {str(tmp_path): MetaProperties(1, "AtgGav8yQjiaJ3rTXE7VCA", 1)}
    assert not found.empty and not found.failed


def test_MetaPropertiesEnsembleTest_testMetaPropertiesEnsembleLoadEmpty(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert (found.empty, found.normal, found.failed) == ({str(tmp_path)}, {}, {})
    assert startup_problems(found, Requirement.METADATA_LOG_DIR) == []
    assert startup_problems(found, Requirement.ONE_NORMAL) != []


def test_MetaPropertiesEnsembleTest_testMetaPropertiesEnsembleLoadError(tmp_path: Path) -> None:
    (tmp_path / "m" / "meta.properties").mkdir(parents=True)
    found = loaded(tmp_path / "m", log_dir(tmp_path / "d"))
    assert (set(found.failed), set(found.normal)) == ({str(tmp_path / "m")}, {str(tmp_path / "d")})


def test_MetaPropertiesEnsembleTest_testCopierGenerateValidDirectoryId() -> None:
    used = [
        DirectoryId.from_halves(2336837413447398698, 1758400403264101670),
        DirectoryId.from_halves(4341931186263415792, 6389410885970711333),
    ]
    last = DirectoryId.from_halves(7265008559332826740, 3478747443029687715)
    drawn = iter([bytes(16), *(directory_id.to_bytes() for directory_id in (*used, last))])
    assert DirectoryId.random(lambda size: next(drawn), used) == last


def test_KafkaRaftServerTest_testSuccessfulLoadMetaProperties(tmp_path: Path) -> None:
    path = kraft_log_dir(tmp_path)
    write_identity(path, identity(directory_id=None))
    before = (path / meta_properties.FILE_NAME).read_bytes()
    answer = ask(path)
    assert answer.starts and answer.is_clean
    LogDir.open(str(path)).close()
    assert (path / meta_properties.FILE_NAME).read_bytes() == before
    # What a broker adds leaves everything else as it was.
    after = to_properties(reread(identity(directory_id=DirectoryId.parse("4jm0e-YRYeB6CCKBvwoS8w"))))
    assert after == {**to_properties(identity(directory_id=None)), "directory.id": "4jm0e-YRYeB6CCKBvwoS8w"}


def test_KafkaRaftServerTest_testLoadMetaPropertiesWithInconsistentNodeId() -> None:
    found = LogDirSet({"/d": MetaProperties(1, CLUSTER, 1)}, "/d")
    problems = startup_problems(found, Requirement.KRAFT, node_id=0)
    assert problems == ["/d/meta.properties: the node id is 1, expected 0"]


def test_KafkaRaftServerTest_testStartupFailsIfMetaPropertiesMissingInSomeLogDir() -> None:
    found = LogDirSet({"/d": MetaProperties(1, CLUSTER, 1), "/e": None}, "/d")
    assert startup_problems(found, Requirement.KRAFT) == ["/e: no meta.properties, the log dir is not formatted"]


def test_KafkaRaftServerTest_testStartupFailsIfMetaLogDirIsOffline() -> None:
    found = LogDirSet({"/m": FailedLogDir("a plain file"), "/d": MetaProperties(1, CLUSTER, 1)}, "/m")
    assert startup_problems(found, Requirement.KRAFT) == ["metadata log dir /m: a plain file"]


def test_KafkaRaftServerTest_testStartupDoesNotFailIfDataDirIsOffline() -> None:
    found = LogDirSet({"/m": MetaProperties(1, CLUSTER, 1), "/d": FailedLogDir("a plain file")}, "/m")
    assert startup_problems(found, Requirement.KRAFT) == []
    assert (set(found.failed), found.node_id) == ({"/d"}, 1)


def test_KafkaRaftServerTest_testLoadPropertiesWithInconsistentClusterIds() -> None:
    found = LogDirSet({"/m": MetaProperties(1, "one", 1), "/d": MetaProperties(1, "other", 1)}, "/m")
    assert startup_problems(found, Requirement.KRAFT) == ["/d/meta.properties: cluster.id is 'other', expected 'one'"]


# 10.7 Uuid and DirectoryId


def test_UuidTest_testSignificantBits() -> None:
    assert TopicId.from_halves(34, 98).halves == (34, 98)


def test_UuidTest_testUuidEquality() -> None:
    one, same, other = (TopicId.from_halves(*halves) for halves in ((12, 13), (12, 13), (24, 38)))
    assert one == same and hash(one) == hash(same)
    assert one != other


@pytest.mark.parametrize(
    ("halves", "java_hash"),
    [((16, 7), 23), ((1043, 20075), 19064), ((104312423523523, 200732425676585), -2011255899)],
)
def test_UuidTest_testHashCode(halves: tuple[int, int], java_hash: int) -> None:
    assert TopicId.from_halves(*halves).java_hash == java_hash


@pytest.mark.parametrize("topic_id", [TopicId.ZERO, TopicId.from_halves(2336837413447398698, 1758400403264101670)])
def test_UuidTest_testStringConversion(topic_id: TopicId) -> None:
    assert TopicId.parse(str(topic_id)) == topic_id


def test_UuidTest_testRandomUuid() -> None:
    # Draws that must not come back stand before the good one, a hundred times over.
    good = bytes.fromhex("01" * 16)
    for first in range(100):
        drawn = iter([b"\xf8" + bytes([first]) * 15, b"\xfb" + bytes([first]) * 15, good])
        topic_id = TopicId.random(lambda size, drawn=drawn: next(drawn))  # type: ignore[misc]
        assert topic_id not in (TopicId.ZERO, TopicId.METADATA)
        assert not str(topic_id).startswith("-")


def test_UuidTest_testCompareUuids() -> None:
    ids = [TopicId.from_halves(*halves) for halves in ((0, 0), (0, 1), (1, 0))]
    assert ids[0] < ids[1] < ids[2] and not ids[1] < ids[0] and not ids[0] < ids[0]


@pytest.mark.parametrize("text", ["A" * 43, "AAAAAA"])
def test_UuidTest_testFromStringWithInvalidInput(text: str) -> None:
    # 32 bytes print as 43 characters and 4 bytes as 6.
    with pytest.raises(InvalidIdError):
        TopicId.parse(text)


@pytest.mark.parametrize("reserved", [DirectoryId.UNASSIGNED, DirectoryId.LOST, DirectoryId.MIGRATING])
def test_DirectoryIdTest_testIsReserved(reserved: DirectoryId) -> None:
    assert reserved.is_reserved


def test_DirectoryIdTest_testIsOnline() -> None:
    texts = ("imQKg2cXTVe8OUFNa3R9bg", "Mwy5wxTDQxmsZwGzjsaX7w", "s8rHMluuSDCnxt3FmKwiyw")
    registered = [DirectoryId.parse(text) for text in texts]
    asked = [*registered, DirectoryId.MIGRATING, DirectoryId.UNASSIGNED, DirectoryId.LOST]
    asked.append(DirectoryId.parse("AMYchbMtS6yhtsXbca7DQg"))
    assert [one.is_online(registered) for one in asked] == [True, True, True, True, True, False, False]
    assert asked[-1].is_online([])


# 10.8 quorum-state

ELECTED = QuorumState(2, leader_id=1, voters=(1, 2, 3))
VOTED = QuorumState(2, voted_id=1, voted_directory_id=DirectoryId(b"\x07" * 16), voters=(1, 2, 3))


def test_FileQuorumStateStoreTest_testWriteReadElectedLeader() -> None:
    assert quorum_state.parse(quorum_state.encode(ELECTED, 0)) == ELECTED
    assert quorum_state.parse(quorum_state.encode(ELECTED, 1)) == QuorumState(2, leader_id=1)


def test_FileQuorumStateStoreTest_testWriteReadVotedCandidate() -> None:
    in_layout_0, in_layout_1 = (
        quorum_state.parse(quorum_state.encode(VOTED, 0)),
        quorum_state.parse(quorum_state.encode(VOTED, 1)),
    )
    assert (in_layout_0.voted_directory_id, in_layout_0.voters) == (NO_DIRECTORY_ID, (1, 2, 3))
    assert (in_layout_1.voted_directory_id, in_layout_1.voters) == (VOTED.voted_directory_id, ())


def test_FileQuorumStateStoreTest_testReload() -> None:
    unknown_leader = QuorumState(2, voters=(1, 2, 3))
    assert quorum_state.parse(quorum_state.encode(unknown_leader, 1)) == QuorumState(2)


def test_FileQuorumStateStoreTest_testCantReadVersionQuorumState() -> None:
    data = quorum_state.encode(ELECTED, 0).replace(b'"data_version":0', b'"data_version":2')
    with pytest.raises(DamagedFileError, match="data_version is 2"):
        quorum_state.parse(data)


def test_FileQuorumStateStoreTest_testSupportedVersion() -> None:
    # Layout 1 has no tagged fields: what is not one of its own is written by neither layout.
    assert json.loads(quorum_state.encode(ELECTED, 0)).keys() == {
        *("clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters", "data_version"),
    }
    assert json.loads(quorum_state.encode(VOTED, 1)).keys() == {
        *("leaderId", "leaderEpoch", "votedId", "votedDirectoryId", "data_version"),
    }
