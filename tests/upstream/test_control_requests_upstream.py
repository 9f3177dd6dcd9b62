"""Upstream's own tests of control requests (FACTS §10.4): each test bears the name of the upstream class and test.

Where a broker of ours answers otherwise on purpose, the test says so; the reasons are in the table of
``reconciler/broker/__init__.py``. ``rows.txt`` says of each row where it is held.
"""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from layout import partition_metadata
from layout.checkpoint import LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.broker import Broker
from reconciler.protocol import (
    LeaderAndIsrRequest,
    LiveLeader,
    PartitionState,
    StopPartition,
    StopReplicaRequest,
    StopTopic,
    TopicState,
    UnsupportedVersionError,
    decode_leader_and_isr,
    decode_stop_replica,
    encode_message,
    error_response,
)
from reconciler.protocol.messages import tree
from tests.logstore.engine import DiskThat, read_offsets, write_offsets
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    ORDERS,
    UNSPECIFIED,
    A,
    B,
    Sim,
    answer,
    errors,
    leader_and_isr,
    state,
    stop_replica,
    topic,
)

FOO, BAR = TopicId.parse("Sl08ZXU2QW6uF5hIoSzc8w"), TopicId.parse("69O438ZkTSeqqclTtZO2KA")
FOO_AGAIN = TopicId.parse("JRCmVxWxQamFs4S8NXYufg")
BAZ, QUUX = TopicId.parse("2Ik9_5-oRDOKpSXd2SuG5w"), TopicId.parse("YS9owjv5TG2OlsvBM0Qw6g")
FOO_IN_LAIR = TopicId.parse("_dOOzPe3TfiWV21Lh7Vmqg")
EIGHT = {"foo-0": FOO, "foo-1": FOO, "bar-0": BAR, "bar-1": BAR}
EIGHT |= {"baz-0": BAZ, "baz-1": BAZ, "baz-2": BAZ, "quux-0": QUUX}


def strays_of(sim: Sim, *wanted: TopicState) -> set[str]:
    """Which of the eight logs on the disk a FULL request for these topics finds to be strays."""
    for number, (name, topic_id) in enumerate(EIGHT.items()):
        sim.put(name, topic_id, disk=number % 2)
    broker = sim.start()
    assert set(answer(broker, leader_and_isr(FULL, *wanted, kraft=True)).values()) <= {0}
    found = sim.staged()
    assert {name: topic_id for name, (topic_id, _) in found.items()} == {name: EIGHT[name] for name in found}
    return set(found)


def test_LogManagerTest_testFindStrayReplicasInEmptyLAIR(sim: Sim) -> None:
    assert strays_of(sim) == set(EIGHT)
    assert sim.live() == {}


def test_LogManagerTest_testFindNoStrayReplicasInFullLAIR(sim: Sim) -> None:
    wanted = topic("foo", FOO, 0, 1), topic("bar", BAR, 0, 1), topic("baz", BAZ, 0, 1, 2), topic("quux", QUUX, 0)
    assert strays_of(sim, *wanted) == set()
    assert sim.live() == EIGHT


def test_LogManagerTest_testFindSomeStrayReplicasInFullLAIR(sim: Sim) -> None:
    wanted = topic("foo", FOO, 0), topic("bar", BAR, 0, 1), topic("quux", QUUX, 0)
    assert strays_of(sim, *wanted) == {"foo-1", "baz-0", "baz-1", "baz-2"}


def test_LogManagerTest_testTopicRecreationInFullLAIR(sim: Sim) -> None:
    again = topic("foo", FOO_IN_LAIR, 0, 1)
    wanted = again, topic("bar", BAR, 0), topic("baz", BAZ, 0, 1, 2), topic("quux", QUUX, 0)
    assert strays_of(sim, *wanted) == {"foo-0", "foo-1", "bar-1"}
    assert sim.live()["foo-0"] == sim.live()["foo-1"] == FOO_IN_LAIR


def metadata(sim: Sim, name: str = "orders-0") -> bytes | None:
    """What ``partition.metadata`` of a live replica holds; None: there is none."""
    (path,) = [found for root in sim.paths for found in root.glob(name)]
    file = path / partition_metadata.FILE_NAME
    return file.read_bytes() if file.exists() else None


def id_on_disk(sim: Sim, name: str = "orders-0") -> TopicId | None:
    data = metadata(sim, name)
    return None if data is None else partition_metadata.parse(data).topic_id


def test_ReplicaManagerTest_testPartitionMetadataFile(sim: Sim) -> None:
    broker = sim.start()
    assert answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", A, 0))) == {"orders-0": 0}
    assert sim.live() == {"orders-0": A}
    assert id_on_disk(sim) == A


def test_ReplicaManagerTest_testPartitionMetadataFileCreatedWithExistingLog(sim: Sim) -> None:
    sim.put("orders-0", None)
    broker = sim.start()
    assert answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", A, 0))) == {"orders-0": 0}
    assert id_on_disk(sim) == A
    assert sim.data_of("orders-0") == b"data"


@pytest.mark.parametrize("epoch", [0, 1])
def test_ReplicaManagerTest_testPartitionMetadataFileCreatedAfterPreviousRequestWithoutIds(
    sim: Sim, epoch: int
) -> None:
    broker = sim.start()
    assert answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", None, 0))) == {"orders-0": 0}
    assert metadata(sim) is None
    assert answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", A, state(0, epoch)))) == {"orders-0": 0}
    assert id_on_disk(sim) == A


@pytest.mark.parametrize("epoch", [1, 2])
def test_ReplicaManagerTest_testInconsistentIdReturnsError(sim: Sim, epoch: int) -> None:
    broker = sim.start()
    for known in (0, 1):
        assert answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", A, state(0, known)))) == {"orders-0": 0}
    again = topic("orders", B, state(0, epoch))
    assert answer(broker, leader_and_isr(UNSPECIFIED, again)) == {"orders-0": 103}
    assert sim.live() == {"orders-0": A} and sim.staged() == {}
    # On purpose, and as KIP516-5 has it: a request that says what it is stages the old one.
    assert answer(broker, leader_and_isr(INCREMENTAL, again)) == {"orders-0": 0}
    assert sim.live() == {"orders-0": B} and sim.staged() == {"orders-0": (A, "STALE_ID")}


def test_ReplicaManagerTest_testPartitionMetadataFileNotCreated(sim: Sim) -> None:
    broker = sim.start()
    assert answer(broker, leader_and_isr(UNSPECIFIED, topic("a", None, 0))) == {"a-0": 0}
    zero = encode_message(leader_and_isr(UNSPECIFIED, topic("b", None, 0)), 7)
    assert TopicId.ZERO.to_bytes() in zero
    assert answer(broker, decode_leader_and_isr(zero, 7)) == {"b-0": 0}
    for version, epoch in ((0, 0), (4, 1)):
        old = decode_leader_and_isr(
            encode_message(leader_and_isr(UNSPECIFIED, topic("c", A, state(0, epoch))), version), version
        )
        assert answer(broker, old) == {"c-0": 0}
    assert sim.live() == dict.fromkeys(("a-0", "b-0", "c-0"))
    assert [metadata(sim, name) for name in ("a-0", "b-0", "c-0")] == [None, None, None]


def test_ReplicaManagerTest_testFetchMessagesWithInconsistentTopicId(sim: Sim) -> None:
    broker = sim.start()
    answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", A, 0)))
    assert [broker.fence(ORDERS, each) for each in (A, B)] == [0, KafkaError.INCONSISTENT_TOPIC_ID]


@pytest.mark.parametrize("leader", [1, 2])
def test_ReplicaManagerTest_testPartitionMarkedOfflineIfLogCantBeCreated(sim: Sim, leader: int) -> None:
    disk = DiskThat(errno.EACCES, {"mkdir"})
    broker = sim.start(disk)
    request = leader_and_isr(UNSPECIFIED, topic("orders", A, state(0, leader=leader)))
    assert answer(broker, request) == {"orders-0": 56}
    assert broker.leader_epoch(ORDERS) is None
    # On purpose: no disk failed, so the partition does not stay offline until a restart, and the same request does it.
    disk.fails.clear()
    assert answer(broker, request) == {"orders-0": 0}
    assert sim.live() == {"orders-0": A}


def strays(sim: Sim) -> None:
    for number in (0, 1):
        sim.put(f"hosted-topic-{number}", A)
    for number in range(10):
        sim.put(f"hosted-stray-{number}", B, disk=number % 2)


def test_ReplicaManagerTest_testFullLeaderAndIsrStrayPartitions(sim: Sim) -> None:
    strays(sim)
    broker = sim.start()
    wanted = topic("hosted-topic", A, 0, 1)
    # Nobody tells a broker of ours that a migration is on: what counts is that a request says it is full.
    answer(broker, leader_and_isr(UNSPECIFIED, wanted, kraft=True))
    assert "hosted-stray-0" in sim.live()
    answer(broker, leader_and_isr(FULL, wanted, kraft=True))
    assert sim.live() == {"hosted-topic-0": A, "hosted-topic-1": A}
    assert sim.staged() == {f"hosted-stray-{number}": (B, "UNKNOWN_TOPIC") for number in range(10)}


def test_ReplicaManagerTest_testUpdateStrayLogs(sim: Sim) -> None:
    strays(sim)
    for number in range(10):
        sim.put(f"unhosted-stray-{number}", B)
    broker = sim.start()
    answer(broker, leader_and_isr(FULL, topic("hosted-topic", A, 0, 1)))
    assert sorted(sim.live()) == ["hosted-topic-0", "hosted-topic-1"]
    assert len(sim.staged()) == 20


def migrated(sim: Sim) -> Broker:
    broker = sim.start()
    request = leader_and_isr(FULL, topic("foo", FOO, 0, 1), topic("bar", BAR, 0), kraft=True)
    assert set(answer(broker, request).values()) == {0}
    assert sim.live() == {"foo-0": FOO, "foo-1": FOO, "bar-0": BAR}
    return broker


def test_ReplicaManagerTest_testFullLairDuringKRaftMigration(sim: Sim) -> None:
    migrated(sim)


def test_ReplicaManagerTest_testFullLairDuringKRaftMigrationRemovesOld(sim: Sim) -> None:
    broker = migrated(sim)
    assert answer(broker, leader_and_isr(FULL, topic("bar", BAR, 0), kraft=True)) == {"bar-0": 0}
    assert sim.live() == {"bar-0": BAR}


def test_ReplicaManagerTest_testFullLairDuringKRaftMigrationWithTopicRecreations(sim: Sim) -> None:
    broker = migrated(sim)
    request = leader_and_isr(FULL, topic("foo", FOO_AGAIN, 0), topic("bar", BAR, 0), kraft=True)
    assert answer(broker, request) == {"foo-0": 0, "bar-0": 0}
    assert sim.live() == {"foo-0": FOO_AGAIN, "bar-0": BAR}
    assert sim.staged() == {"foo-0": (FOO, "STALE_ID"), "foo-1": (FOO, "STALE_ID")}


def offline(sim: Sim, topic_id: TopicId | None) -> Broker:
    """A broker on whose first disk, which has just failed, bar-1 lies."""
    sim.put("bar-1", topic_id)
    broker = sim.start()
    broker.store.log_dirs[0].go_offline("it failed")
    return broker


@pytest.mark.parametrize(("held", "asked"), [(None, B), (B, B), (A, B)])
def test_ReplicaManagerTest_testGetOrCreatePartition(sim: Sim, held: TopicId | None, asked: TopicId) -> None:
    # On purpose: while the disk is away nothing is made in its place, whatever ID lies on it (94).
    broker = offline(sim, held)
    assert answer(broker, leader_and_isr(INCREMENTAL, topic("bar", asked, state(1, new=True)))) == {"bar-1": 56}
    assert not list(sim.paths[1].glob("bar-*"))
    # What never lay there is made once, and found when it is asked for again.
    new = leader_and_isr(INCREMENTAL, topic("foo", A, state(0, new=True)), kraft=True)
    assert [answer(broker, new), answer(broker, new)] == [{"foo-0": 0}, {"foo-0": 0}]
    assert [path.name for path in sim.paths[1].glob("*-0")] == ["foo-0"]


def test_ReplicaManagerTest_testGetOrCreatePartitionShouldNotCreateOfflinePartition(sim: Sim) -> None:
    broker = sim.start()
    request = leader_and_isr(INCREMENTAL, topic("bar", B, state(1)))
    assert answer(broker, request) == {"bar-1": 0}
    lies_in = broker.store.get(TopicPartition("bar", 1)).log_dir
    next(each for each in broker.store.log_dirs if each.path == lies_in).go_offline("it failed")
    assert answer(broker, request) == {"bar-1": 56}
    assert len([found for path in sim.paths for found in path.glob("bar-*")]) == 1


def test_ReplicaManagerTest_testStopReplicaWithStaleControllerEpoch(sim: Sim) -> None:
    broker = sim.start()
    answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", A, 0), controller_epoch=10))
    response = broker.handle(stop_replica(controller_epoch=0))
    assert (response.error, response.topics) == (11, ())


def test_ReplicaManagerTest_testStopReplicaWithOfflinePartition(sim: Sim) -> None:
    broker = sim.start()
    answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", A, state(0, 1))))
    for log_dir in broker.store.log_dirs:
        log_dir.go_offline("it failed")
    assert errors(broker.handle(stop_replica(delete=False, epoch=1))) == {"orders-0": 56}


def test_ReplicaManagerTest_testStopReplicaWithInexistentPartition(sim: Sim) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    assert errors(broker.handle(stop_replica(delete=False))) == {"orders-0": 0}
    assert sim.live() == {"orders-0": A}


def test_ReplicaManagerTest_testStopReplicaWithInexistentPartitionAndPartitionsDelete(sim: Sim) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    assert errors(broker.handle(stop_replica())) == {"orders-0": 0}
    assert sim.live() == {} and sim.staged() == {"orders-0": (A, "DELETED")}


def test_ReplicaManagerTest_testStopReplicaWithInexistentPartitionAndPartitionsDeleteAndIOException(sim: Sim) -> None:
    sim.put("orders-0", A)
    disk = DiskThat(errno.EIO)
    broker = sim.start(disk)
    disk.fails.add("rename")
    assert errors(broker.handle(stop_replica())) == {"orders-0": 56}
    # Upstream forgets the log; here it lies on a disk that is offline, and nobody is served from it.
    assert broker.fence(ORDERS) == 56


def with_epoch_1(sim: Sim, *, disk: DiskThat | None = None) -> Broker:
    """A broker that hosts orders-0 at leader epoch 1, with an entry in two checkpoints."""
    sim.put("orders-0", A)
    for file in (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT):
        write_offsets(sim.paths[0], {("orders", 0): 1}, file)
    broker = sim.start(disk)
    assert answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", A, state(0, 1)))) == {"orders-0": 0}
    return broker


def stopped(sim: Sim, epoch: int, expected: int, *, delete: bool) -> None:
    """Stop it with a leader epoch; where it goes, its entries go from the checkpoints."""
    broker = with_epoch_1(sim)
    assert errors(broker.handle(stop_replica(delete=delete, epoch=epoch))) == {"orders-0": expected}
    gone = delete and expected == 0
    assert sim.live() == ({} if gone else {"orders-0": A})
    assert (broker.leader_epoch(ORDERS) is None) is gone
    for file in (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT):
        assert read_offsets(sim.paths[0], file) == ({} if gone else {("orders", 0): 1})


def test_ReplicaManagerTest_testStopReplicaWithExistingPartitionAndNewerLeaderEpoch(sim: Sim) -> None:
    stopped(sim, 2, 0, delete=False)


def test_ReplicaManagerTest_testStopReplicaWithExistingPartitionAndOlderLeaderEpoch(sim: Sim) -> None:
    stopped(sim, 0, 74, delete=False)


def test_ReplicaManagerTest_testStopReplicaWithExistingPartitionAndEqualLeaderEpoch(sim: Sim) -> None:
    stopped(sim, 1, 0, delete=False)


def test_ReplicaManagerTest_testStopReplicaWithExistingPartitionAndDeleteSentinel(sim: Sim) -> None:
    stopped(sim, -2, 0, delete=False)


def test_ReplicaManagerTest_testStopReplicaWithExistingPartitionAndLeaderEpochNotProvided(sim: Sim) -> None:
    stopped(sim, -1, 0, delete=False)


def test_ReplicaManagerTest_testStopReplicaWithDeletePartitionAndExistingPartitionAndNewerLeaderEpoch(sim: Sim) -> None:
    stopped(sim, 2, 0, delete=True)


def test_ReplicaManagerTest_testStopReplicaWithDeletePartitionAndExistingPartitionAndNewerLeaderEpochAndIOException(
    sim: Sim,
) -> None:
    disk = DiskThat(errno.EIO)
    broker = with_epoch_1(sim, disk=disk)
    disk.fails.add("write")
    assert errors(broker.handle(stop_replica(epoch=2))) == {"orders-0": 56}


def test_ReplicaManagerTest_testStopReplicaWithDeletePartitionAndExistingPartitionAndOlderLeaderEpoch(sim: Sim) -> None:
    stopped(sim, 0, 74, delete=True)


def test_ReplicaManagerTest_testStopReplicaWithDeletePartitionAndExistingPartitionAndEqualLeaderEpoch(sim: Sim) -> None:
    stopped(sim, 1, 0, delete=True)


def test_ReplicaManagerTest_testStopReplicaWithDeletePartitionAndExistingPartitionAndDeleteSentinel(sim: Sim) -> None:
    stopped(sim, -2, 0, delete=True)


def test_ReplicaManagerTest_testStopReplicaWithDeletePartitionAndExistingPartitionAndLeaderEpochNotProvided(
    sim: Sim,
) -> None:
    stopped(sim, -1, 0, delete=True)


VERSION_LOGIC = LeaderAndIsrRequest(
    1,
    2,
    (
        TopicState(
            "topic0",
            A,
            (
                PartitionState(0, 2, 0, 10, (0, 1), 10, (0, 1, 2), (3,), (2,)),
                PartitionState(1, 2, 0, 10, (0,), 10, (0, 1, 2), is_new=False),
            ),
        ),
        TopicState("topic1", B, (PartitionState(0, 2, 0, 10, (0, 1), 10, (0, 1, 2), is_new=True),)),
    ),
    3,
    live_leaders=(LiveLeader(0, "host0", 9090), LiveLeader(1, "host1", 9091)),
)


def test_LeaderAndIsrRequestTest_testUnsupportedVersion() -> None:
    with pytest.raises(UnsupportedVersionError, match="version 8"):
        encode_message(VERSION_LOGIC, 8)


@pytest.mark.parametrize("version", range(8))
def test_LeaderAndIsrRequestTest_testGetErrorResponse(version: int) -> None:
    request = leader_and_isr(UNSPECIFIED, topic("orders", A, 0))
    response = error_response(request, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    assert errors(response) == {"": 31, "orders-0": 31}
    said = tree(response, version)
    if version < 5:
        partition = {"topicName": "orders", "partitionIndex": 0, "errorCode": 31}
        assert said == {"errorCode": 31, "partitionErrors": [partition]}
    else:
        grouped = {"topicId": str(A), "partitionErrors": [{"partitionIndex": 0, "errorCode": 31}]}
        assert said == {"errorCode": 31, "topics": [grouped]}


@pytest.mark.parametrize("version", range(8))
def test_LeaderAndIsrRequestTest_testVersionLogic(version: int) -> None:
    read = decode_leader_and_isr(encode_message(VERSION_LOGIC, version), version)
    assert read.live_leaders == VERSION_LOGIC.live_leaders
    assert {each.topic: each.topic_id for each in read.topics} == {
        "topic0": A if version >= 5 else None,
        "topic1": B if version >= 5 else None,
    }
    for sent, found in zip(VERSION_LOGIC.topics, read.topics, strict=True):
        for one, other in zip(sent.partitions, found.partitions, strict=True):
            expected = one if version >= 3 else replace(one, adding=(), removing=())
            assert other == (expected if version >= 1 else replace(expected, is_new=False))
    assert read.broker_epoch == (3 if version >= 2 else -1)


def test_LeaderAndIsrRequestTest_testTopicPartitionGroupingSizeReduction() -> None:
    topics = (topic(f"topic{number}", None, *range(number, number + 20)) for number in range(10))
    request = leader_and_isr(UNSPECIFIED, *topics)
    assert len(encode_message(request, 2)) < len(encode_message(request, 1))


STOP = StopReplicaRequest(
    0,
    0,
    tuple(
        StopTopic(name, None, tuple(StopPartition(number, epoch, True) for number, epoch in enumerate(epochs)))
        for name, epochs in (("topic0", (0, 1)), ("topic1", (2, 3)), ("topic2", (-2, -1)))
    ),
    broker_epoch=0,
)


def test_StopReplicaRequestTest_testUnsupportedVersion() -> None:
    with pytest.raises(UnsupportedVersionError, match="version 5"):
        encode_message(STOP, 5)


@pytest.mark.parametrize("version", range(5))
def test_StopReplicaRequestTest_testGetErrorResponse(version: int) -> None:
    response = error_response(stop_replica("orders", 0, 1), KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    assert tree(response, version) == {
        "errorCode": 31,
        "partitionErrors": [{"topicName": "orders", "partitionIndex": number, "errorCode": 31} for number in (0, 1)],
    }


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("delete", [True, False])
def test_StopReplicaRequestTest_testBuilderNormalization(version: int, delete: bool) -> None:
    said = tree(stop_replica("orders", 0, 1, delete=delete), version)
    assert ("deletePartitions" in said) is (version < 3)
    if version == 0:
        assert said["deletePartitions"] is delete
        assert said["ungroupedPartitions"] == [{"topicName": "orders", "partitionIndex": each} for each in (0, 1)]
    elif version < 3:
        assert said["deletePartitions"] is delete
        assert said["topics"] == [{"name": "orders", "partitionIndexes": [0, 1]}]
    else:
        states = [{"partitionIndex": each, "leaderEpoch": -1, "deletePartition": delete} for each in (0, 1)]
        assert said["topicStates"] == [{"topicName": "orders", "partitionStates": states}]


@pytest.mark.parametrize("version", range(5))
def test_StopReplicaRequestTest_testTopicStatesNormalization(version: int) -> None:
    read = decode_stop_replica(encode_message(STOP, version), version)
    found = {(each.topic, one.partition): one for each in read.topics for one in each.partitions}
    assert len(found) == 6 and all(one.delete for one in found.values())
    sent = {(each.topic, one.partition): one.leader_epoch for each in STOP.topics for one in each.partitions}
    assert {key: one.leader_epoch for key, one in found.items()} == (sent if version >= 3 else dict.fromkeys(sent, -1))
