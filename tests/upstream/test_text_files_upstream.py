"""Upstream's own test cases for IDs and text files, as far as they speak of formats and not of a running log.

``COVERED`` maps the number of a row to the test that stands for it; ``LEFT`` says of every other row of the same
upstream sections which part of the project it belongs to. A test holds the two against the list of rows.
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

COVERED = {
    2: "test_PartitionMetadataFileTest_testSetRecordWithSameTopicId",
    3: "test_PartitionMetadataFileTest_testMaybeFlushWithTopicIdPresent",
    5: "test_PartitionMetadataFileTest_testRead",
    10: "test_UnifiedLogTest_testLogFailsWhenInconsistentTopicIdSet",
    53: "test_LogManagerTest_testCleanShutdownFileWithBrokerEpoch",
    54: "test_LogManagerTest_testHandlingExceptionsDuringShutdown",
    57: "test_LogManagerTest_testLoadDirectoryIds",
    72: "test_CleanShutdownFileHandlerTest_testCleanShutdownFileBasic",
    73: "test_CleanShutdownFileHandlerTest_testCleanShutdownFileNonExist",
    74: "test_CleanShutdownFileHandlerTest_testCleanShutdownFileCanParseWithUnknownFields",
    121: "test_OffsetCheckpointFileWithFailureHandlerTest_shouldPersistAndOverwriteAndReloadFile",
    122: "test_OffsetCheckpointFileWithFailureHandlerTest_shouldHandleMultipleLines",
    123: "test_OffsetCheckpointFileWithFailureHandlerTest_shouldReturnEmptyMapForEmptyFile",
    124: "test_OffsetCheckpointFileWithFailureHandlerTest_shouldThrowIfVersionIsNotRecognised",
    128: "test_LeaderEpochCheckpointFileWithFailureHandlerTest_shouldPersistAndOverwriteAndReloadFile",
    **dict.fromkeys(range(130, 138), "test_MetaPropertiesTest_testSerialization"),
    138: "test_MetaPropertiesTest_testClusterIdRequiredInV1",
    139: "test_MetaPropertiesTest_testNodeIdRequiredInV1",
    140: "test_MetaPropertiesVersionTest_testFromNumberAndString",
    141: "test_MetaPropertiesVersionTest_testFromInvalidNumber",
    142: "test_MetaPropertiesVersionTest_testFromInvalidString",
    143: "test_MetaPropertiesVersionTest_testHasBrokerId_testAlwaysHasNodeId_testAlwaysHasClusterId",
    144: "test_MetaPropertiesEnsembleTest_testForFoo",
    145: "test_MetaPropertiesEnsembleTest_testForEmpty",
    146: "test_MetaPropertiesEnsembleTest_testSuccessfulVerification",
    147: "test_MetaPropertiesEnsembleTest_testVerificationFailureOnRequireV0",
    148: "test_MetaPropertiesEnsembleTest_testVerificationFailureOnRequireAtLeastOneValid",
    149: "test_MetaPropertiesEnsembleTest_testVerificationFailureOnLackOfMetadataLogDir",
    150: "test_MetaPropertiesEnsembleTest_testVerificationFailureOnMetadataLogDirWithError",
    151: "test_MetaPropertiesEnsembleTest_testMetaPropertiesEnsembleLoad",
    152: "test_MetaPropertiesEnsembleTest_testMetaPropertiesEnsembleLoadEmpty",
    153: "test_MetaPropertiesEnsembleTest_testMetaPropertiesEnsembleLoadError",
    154: "test_MetaPropertiesEnsembleTest_testCopierGenerateValidDirectoryId",
    156: "test_MetaPropertiesEnsembleTest_testCopierWriteLogDirChanges",
    158: "test_KafkaRaftServerTest_testSuccessfulLoadMetaProperties",
    159: "test_KafkaRaftServerTest_testLoadMetaPropertiesWithInconsistentNodeId",
    160: "test_KafkaRaftServerTest_testStartupFailsIfMetaPropertiesMissingInSomeLogDir",
    161: "test_KafkaRaftServerTest_testStartupFailsIfMetaLogDirIsOffline",
    162: "test_KafkaRaftServerTest_testStartupDoesNotFailIfDataDirIsOffline",
    164: "test_KafkaRaftServerTest_testLoadPropertiesWithInconsistentClusterIds",
    176: "test_UuidTest_testSignificantBits",
    177: "test_UuidTest_testUuidEquality",
    178: "test_UuidTest_testHashCode",
    179: "test_UuidTest_testStringConversion",
    180: "test_UuidTest_testRandomUuid",
    181: "test_UuidTest_testCompareUuids",
    182: "test_UuidTest_testFromStringWithInvalidInput",
    183: "test_UuidTest_testFromStringWithInvalidInput",
    185: "test_DirectoryIdTest_testIsReserved",
    187: "test_DirectoryIdTest_testIsOnline",
    242: "test_FileQuorumStateStoreTest_testWriteReadElectedLeader",
    243: "test_FileQuorumStateStoreTest_testWriteReadVotedCandidate",
    244: "test_FileQuorumStateStoreTest_testReload",
    246: "test_FileQuorumStateStoreTest_testCantReadVersionQuorumState",
    247: "test_FileQuorumStateStoreTest_testSupportedVersion",
}

LEFT = {
    1: "the pending topic ID of a log is state of the store, which changes log dirs",
    4: "whether a file is written at all is decided by the store",
    **dict.fromkeys(range(6, 10), "when a log writes its partition.metadata is decided by the store"),
    **dict.fromkeys(range(11, 14), "what a rename takes along is shown by the store"),
    **dict.fromkeys((14, 15), "needs a real broker; belongs to the broker tests"),
    **dict.fromkeys(range(35, 43), "creating and placing replicas belongs to the store"),
    43: "the name of the remote log index cache is tested with the directory names",
    44: "the rename to a -stray name belongs to the store",
    **dict.fromkeys((45, 46), "Kafka's own lock belongs to the engine that changes a log dir"),
    **dict.fromkeys(range(47, 51), "writing checkpoints of a live log dir belongs to the store"),
    **dict.fromkeys((51, 52), "deleting replicas belongs to the store"),
    **dict.fromkeys((55, 56), "when a clean shutdown is marked belongs to the store"),
    **dict.fromkeys((58, 59), "which log start offsets are checkpointed belongs to the store"),
    **dict.fromkeys(range(60, 68), "which replicas are stray is decided by the case table"),
    **dict.fromkeys(range(68, 72), "Kafka's own lock belongs to the engine that changes a log dir"),
    **dict.fromkeys((125, 126), "reading a checkpoint lazily is a matter of a running broker"),
    127: "writing only where the log dir still exists belongs to the store",
    129: "that opening a file does not truncate it is shown by the scan, which cannot write",
    155: "a path has one state in a LogDirSet, so an overlap cannot be built",
    157: "which of several files is rewritten belongs to the store",
    163: "the metadata log in the wrong log dir is found by the scan and judged by preflight",
    **dict.fromkeys((165, 166), "bootstrap.checkpoint is read with the KRaft metadata"),
    184: "converting between Java's arrays and lists has no counterpart here",
    186: "pairing replicas with directories belongs to the reading of partition records",
    245: "creating and clearing the file belongs to a KRaft node, which nothing here is",
}

CLUSTER = "zd2vLVrZQlCLJj8-k7A10w"
A, B = TopicId.from_halves(1, 2), TopicId.from_halves(3, 4)


def reread(identity: MetaProperties) -> MetaProperties:
    """What a reader finds after this identity was written."""
    return meta_properties.parse(meta_properties.encode(identity, "date"))


# 10.1 partition.metadata


def test_PartitionMetadataFileTest_testSetRecordWithSameTopicId() -> None:
    assert TopicId.parse(str(A)) == A


def test_PartitionMetadataFileTest_testMaybeFlushWithTopicIdPresent() -> None:
    assert partition_metadata.encode(A).decode().splitlines() == ["version: 0", f"topic_id: {A}"]


def test_PartitionMetadataFileTest_testRead() -> None:
    found = partition_metadata.parse(partition_metadata.encode(A))
    assert (found.version, found.topic_id) == (0, A)


def test_UnifiedLogTest_testLogFailsWhenInconsistentTopicIdSet() -> None:
    # As far as the file goes: its ID is distinguished from the given ID.
    assert partition_metadata.parse(partition_metadata.encode(A)).topic_id not in (B, TopicId.ZERO)


# 10.3 clean shutdown and directory IDs


def test_LogManagerTest_testCleanShutdownFileWithBrokerEpoch() -> None:
    files = [clean_shutdown.encode(3), clean_shutdown.encode(3)]
    assert clean_shutdown.combined_epoch(map(clean_shutdown.parse_broker_epoch, files)) == 3


def test_LogManagerTest_testHandlingExceptionsDuringShutdown() -> None:
    assert clean_shutdown.combined_epoch([None, clean_shutdown.parse_broker_epoch(clean_shutdown.encode(3))]) is None


def test_LogManagerTest_testLoadDirectoryIds() -> None:
    first, second = (DirectoryId.parse(text) for text in ("ZwkGXjB0TvSF6mjVh6gO7Q", "kQfNPJ2FTHq_6Qlyyv6Jqg"))
    identities = [MetaProperties(0), MetaProperties(0, directory_id=first), None]
    identities += [MetaProperties(0, directory_id=second), MetaProperties(0)]
    log_dirs = {str(n): identity and reread(identity) for n, identity in enumerate(identities)}
    assert LogDirSet(log_dirs).directory_ids == {"1": first, "3": second}


def test_CleanShutdownFileHandlerTest_testCleanShutdownFileBasic() -> None:
    assert clean_shutdown.parse_broker_epoch(clean_shutdown.encode(10)) == 10


def test_CleanShutdownFileHandlerTest_testCleanShutdownFileNonExist() -> None:
    # A file that does not exist gives no epoch to combine.
    assert clean_shutdown.combined_epoch([None]) is None


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
def test_MetaPropertiesVersionTest_testFromNumberAndString(version: int) -> None:
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


def test_MetaPropertiesEnsembleTest_testMetaPropertiesEnsembleLoad() -> None:
    found = LogDirSet({"/d": reread(MetaProperties(1, "AtgGav8yQjiaJ3rTXE7VCA", 1))}, "/d")
    assert startup_problems(found, Requirement.KRAFT, "AtgGav8yQjiaJ3rTXE7VCA", 1) == []
    assert len(found.normal) == 1


def test_MetaPropertiesEnsembleTest_testMetaPropertiesEnsembleLoadEmpty() -> None:
    found = LogDirSet({"/d": None}, "/d")
    assert startup_problems(found, Requirement.METADATA_LOG_DIR) == []
    assert found.empty == {"/d"}


def test_MetaPropertiesEnsembleTest_testMetaPropertiesEnsembleLoadError() -> None:
    found = LogDirSet({"/m": FailedLogDir("not readable"), "/d": MetaProperties(1, "c", 1)}, "/m")
    assert (set(found.failed), set(found.normal)) == ({"/m"}, {"/d"})


def test_MetaPropertiesEnsembleTest_testCopierGenerateValidDirectoryId() -> None:
    used = [
        DirectoryId.from_halves(2336837413447398698, 1758400403264101670),
        DirectoryId.from_halves(4341931186263415792, 6389410885970711333),
    ]
    last = DirectoryId.from_halves(7265008559332826740, 3478747443029687715)
    drawn = iter([bytes(16), *(directory_id.to_bytes() for directory_id in (*used, last))])
    assert DirectoryId.random(lambda size: next(drawn), used) == last


def test_MetaPropertiesEnsembleTest_testCopierWriteLogDirChanges() -> None:
    for text in ("oTM53yT_SbSfzlvkh_PfVA", "FcUhIv2mTzmLqGkVEabyag"):
        identity = MetaProperties(1, CLUSTER, 1, DirectoryId.parse(text))
        assert to_properties(reread(identity)) == {
            "version": "1",
            "cluster.id": CLUSTER,
            "node.id": "1",
            "directory.id": text,
        }


def test_KafkaRaftServerTest_testSuccessfulLoadMetaProperties() -> None:
    # As far as the file goes: adding a directory.id leaves everything else as it was.
    before = to_properties(MetaProperties(1, CLUSTER, 0))
    after = to_properties(reread(MetaProperties(1, CLUSTER, 0, DirectoryId.parse("4jm0e-YRYeB6CCKBvwoS8w"))))
    assert after == {**before, "directory.id": "4jm0e-YRYeB6CCKBvwoS8w"}


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


@pytest.mark.shared
def test_every_row_of_these_sections_is_covered_or_left_with_a_reason(shared: Path) -> None:
    rows = json.loads((shared / "kafka" / "upstream-tests.json").read_text(encoding="utf-8"))
    sections = ("10.1 ", "10.3 ", "10.5 ", "10.6 ")
    classes = ("UuidTest", "DirectoryIdTest", "FileQuorumStateStoreTest")
    ours = {row["n"]: row for row in rows if row["section"].startswith(sections) or row["testClass"] in classes}
    assert not COVERED.keys() & LEFT.keys()
    assert COVERED.keys() | LEFT.keys() == ours.keys()
    for number, name in COVERED.items():
        assert name.startswith(f"test_{ours[number]['testClass']}_")
        assert callable(globals().get(name)), name
