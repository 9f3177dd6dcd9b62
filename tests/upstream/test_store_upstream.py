"""Kafka's own test cases of a log, a log manager and its lock, as far as a store does the same (FACTS §10.1 to §10.6).

The rows that are about formats are in ``test_text_files_upstream``; ``rows.txt`` says of each row where it is held.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from layout import checkpoint, clean_shutdown, partition_metadata
from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.scheme import UNCLEAN_FILE, Scheme
from layout.topic import TopicPartition
from logstore import (
    DELETE_DELAY,
    InconsistentTopicIdError,
    KafkaError,
    LogDirInUseError,
    LogStoreError,
    NotALogDirError,
    Settings,
)
from logstore.clock import ManualClock
from logstore.fs import Directory, Disk
from logstore.log_dir import LogDir
from logstore.log_dir.lock import Lock
from logstore.namespaces import convert
from logstore.purge import PurgeRules, purge
from logstore.scan import scan
from logstore.staging import Placement, stage
from logstore.store import LogStore
from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.simulator.kernel import Record
from reconciler.simulator.machine.replica_log import ReplicaLog
from reconciler.verdicts import Verdict, compare
from tests.logstore.engine import (
    NOW_MS,
    ORDERS_ID,
    DiskThat,
    candidate,
    fill,
    formatted,
    identity,
    opened,
    read_offsets,
)

KAFKA = TopicPartition("kafka", 0)
A, B = TopicId.from_halves(1, 2), TopicId.from_halves(3, 4)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [formatted(tmp_path / name, number) for number, name in enumerate("abc")]


def where(paths: list[Path]) -> list[str]:
    return [path.name for path in paths if (path / "kafka-0").is_dir()]


def id_in(replica: Path) -> TopicId | None:
    """The topic ID that a partition dir holds."""
    return partition_metadata.parse((replica / partition_metadata.FILE_NAME).read_bytes()).topic_id


def log_of(store: LogStore, at: TopicPartition) -> ReplicaLog:
    replica = store.get(at)
    return ReplicaLog(next(each for each in store.log_dirs if each.path == replica.log_dir), replica)


def flushed(store: LogStore, at: TopicPartition, count: int) -> int:
    """Append records, flush, and return the recovery point."""
    log = log_of(store, at)
    log.append([Record(offset, 0, A, f"{at} {offset}") for offset in range(count)])
    assert log.recovery_point == 0
    log.flush()
    return log.recovery_point


def test_PartitionMetadataFileTest_testSetRecordWithDifferentTopicId(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(KAFKA, None)
        store.assign_topic_id(KAFKA, A)
        with pytest.raises(InconsistentTopicIdError) as refused:
            store.assign_topic_id(KAFKA, B)
    assert refused.value.kafka_error == KafkaError.INCONSISTENT_TOPIC_ID


def test_PartitionMetadataFileTest_testSetRecordWithSameTopicId(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(KAFKA, None)
        for topic_id in (A, A, TopicId.parse(str(A))):
            assert store.assign_topic_id(KAFKA, topic_id).topic_id == A
    assert id_in(paths[0] / "kafka-0") == A


def test_PartitionMetadataFileTest_testMaybeFlushWithNoTopicIdPresent(paths: list[Path]) -> None:
    fill(paths[1] / "empty-0", metadata=b"")
    with opened(*paths) as store:
        store.create(KAFKA, None)
    assert where(paths) == ["a"]
    assert not (paths[0] / "kafka-0" / partition_metadata.FILE_NAME).exists()
    assert (paths[1] / "empty-0" / partition_metadata.FILE_NAME).read_bytes() == b""


def test_UnifiedLogTest_testLogFlushesPartitionMetadataOnAppend(paths: list[Path]) -> None:
    with opened(paths[0]) as store:
        store.create(KAFKA, None)
        store.assign_topic_id(KAFKA, A)
        log_of(store, KAFKA).append([Record(0, 0, A, "the first")])
        assert id_in(paths[0] / "kafka-0") == A


def test_UnifiedLogTest_testLogFlushesPartitionMetadataOnClose(paths: list[Path]) -> None:
    with opened(paths[0]) as store:
        store.create(KAFKA, None)
        store.assign_topic_id(KAFKA, A)
    with opened(paths[0]):
        assert id_in(paths[0] / "kafka-0") == A


def test_UnifiedLogTest_testLogFailsWhenInconsistentTopicIdSet(paths: list[Path]) -> None:
    fill(paths[0] / "kafka-0", partition_metadata.encode(A))
    with opened(*paths) as store:
        assert store.fence(KAFKA, B) == KafkaError.INCONSISTENT_TOPIC_ID
        with pytest.raises(InconsistentTopicIdError) as refused:
            store.assign_topic_id(KAFKA, B)
    assert refused.value.kafka_error == KafkaError.INCONSISTENT_TOPIC_ID
    assert id_in(paths[0] / "kafka-0") == A


def test_UnifiedLogTest_testLogRecoversTopicId(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(KAFKA, None)
        store.assign_topic_id(KAFKA, A)
    with opened(*paths) as store:
        assert store.get(KAFKA).topic_id == A


def test_UnifiedLogTest_testTopicIdTransfersAfterDirectoryRename(paths: list[Path]) -> None:
    with opened(*paths) as store:
        made = store.create(KAFKA, A)
        (staged,) = store.stage([KAFKA], "x", "").staged
        assert not (Path(made.log_dir) / made.path / "partition.metadata").exists()
        assert (Path(staged.log_dir) / staged.location / "partition.metadata").exists()
        assert store.staged()[0].topic_id == A


def test_UnifiedLogTest_testTopicIdFlushesBeforeDirectoryRename(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(KAFKA, None)
        store.assign_topic_id(KAFKA, A)
        (staged,) = store.stage([KAFKA], "x", "").staged
    assert where(paths) == []
    assert id_in(paths[0] / staged.location) == A


def test_UnifiedLogTest_testWriteLeaderEpochCheckpointAfterDirectoryRename(paths: list[Path]) -> None:
    epochs = checkpoint.encode_leader_epochs([(5, 0)])
    with opened(*paths) as store:
        store.create(KAFKA, A)
        log = log_of(store, KAFKA)
        log.append([Record(0, 5, A, "before")])
        (paths[0] / "kafka-0" / checkpoint.LEADER_EPOCH_CHECKPOINT).write_bytes(epochs)
        (staged,) = store.stage([KAFKA], "x", "").staged
        with pytest.raises(LogStoreError):
            log.append([Record(1, 10, A, "after")])
    assert where(paths) == []
    assert (paths[0] / staged.location / checkpoint.LEADER_EPOCH_CHECKPOINT).read_bytes() == epochs
    assert log.epochs.last == 5


def test_LocalLogTest_testLogDirRenameToNewDir(paths: list[Path]) -> None:
    second = fill(paths[0] / "kafka-0") / f"{5:020d}.log"
    second.write_bytes(b"the second segment")
    names = {path.name for path in second.parent.iterdir()}
    with opened(*paths) as store:
        (staged,) = store.stage([KAFKA], "x", "").staged
    assert where(paths) == []
    assert names == set(os.listdir(paths[0] / staged.location))


def test_LocalLogTest_testLogDirRenameToExistingDir(paths: list[Path]) -> None:
    names = set(os.listdir(fill(paths[1] / "kafka-0")))
    with opened(*paths) as store:
        replica = store.get(KAFKA)
        assert store.move(KAFKA, identity(1).directory_id) == replica
        assert store.staged() == []
    assert (where(paths), set(os.listdir(paths[1] / "kafka-0"))) == (["b"], names)


def test_LogManagerTest_testCreateLog(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(KAFKA, A)
    assert where(paths) == ["a"]


def test_LogManagerTest_testCreateLogOnTargetedLogDirectory(tmp_path: Path) -> None:
    ids = {1: identity(1).directory_id, 3: identity(3).directory_id}
    five = [tmp_path / f"{number}" for number in range(5)]
    for number, path in enumerate(five):
        LogDir.format(str(path), MetaProperties(1, "C", 1, ids.get(number), "flat")).close()
    with opened(*five) as store:
        store.create(KAFKA, A, directory_id=ids[1])
        assert (len(store.log_dirs), store.offline) == (5, {})
    assert where(five) == ["1"]


def test_LogManagerTest_testCreateLogWithTargetedLogDirectorySetAsUnassigned(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(TopicPartition("first", 0), A)
        store.create(KAFKA, A, directory_id=DirectoryId.UNASSIGNED)
    assert where(paths) == ["b"]


def test_LogManagerTest_testCreateLogWithTargetedLogDirectorySetAsUnknownWithoutAnyOfflineDirectories(
    paths: list[Path],
) -> None:
    with opened(*paths) as store:
        store.create(TopicPartition("first", 0), A)
        store.create(KAFKA, A, directory_id=DirectoryId.LOST)
    assert where(paths) == ["b"]


def test_LogManagerTest_testCreateLogWithInvalidLogDir(paths: list[Path]) -> None:
    with pytest.raises(NotALogDirError):
        opened(paths[0], Path("\0"))
    with opened(paths[0]) as store:
        store.create(KAFKA, A)
    assert where(paths) == ["a"]


def test_LogManagerTest_testCreateLogWithLogDirFallback(paths: list[Path]) -> None:
    class TwoBroken(DiskThat):
        def mkdir(self, parent: int, name: str) -> None:
            if not os.readlink(f"/proc/self/fd/{parent}").startswith(str(paths[2])):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().mkdir(parent, name)

    with opened(*paths, disk=TwoBroken()) as store:
        store.create(KAFKA, A)
        assert sorted(store.offline) == [str(path) for path in paths[:2]]
    assert where(paths) == ["c"]


def test_LogManagerTest_testGetNonExistentLog(paths: list[Path]) -> None:
    with opened(*paths) as store:
        assert store.find(KAFKA) is None
    assert where(paths) == []


def test_LogManagerTest_testLeastLoadedAssignment(paths: list[Path]) -> None:
    with opened(*paths) as store:
        for partition in range(20):
            store.create(TopicPartition("test", partition), A)
            counts = [len(list(path.glob("test-*"))) for path in paths]
            assert max(counts) - min(counts) <= 1


def test_LogManagerTest_testLoadLogRenameLogThatShouldBeStray(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text("version=1\ncluster.id=C\nnode.id=1\n")
    fill(data / "test-stray-topic-0")
    builder = DesiredBuilder()
    builder.topic("another", str(A))
    metadata = {"C": builder.build(MetadataIdentity("kraft", "a test", "C"))}
    judged = compare(metadata, scan(str(data), sizes=False).rows.to_pylist(), NOW_MS)
    of_the_log = [each for each in judged if each.observed and each.observed["name"] == "test-stray-topic-0"]
    assert [each.verdict for each in of_the_log] == [Verdict.UNKNOWN_TOPIC]
    at = TopicPartition("test-stray-topic", 0)
    with LogDir.open(str(data)) as log_dir:
        stage(log_dir, [candidate("test-stray-topic-0", at)], NOW_MS, placement=Placement.IN_PLACE)
    (found,) = data.glob("test-stray-topic*")
    assert re.fullmatch(r"test-stray-topic-0\.[0-9a-f]{32}-stray", found.name)
    assert id_in(found) == ORDERS_ID


def test_LogManagerTest_testTwoLogManagersUsingSameDirFails(paths: list[Path]) -> None:
    with opened(*paths), pytest.raises(LogDirInUseError):
        opened(paths[0])


def test_LogManagerTest_testLock(paths: list[Path]) -> None:
    with opened(*paths):
        for path in paths:
            with Directory.open(str(path)) as root, pytest.raises(LogDirInUseError):
                Lock.take(root, Disk())
    for path in paths:
        assert (path / ".lock").read_bytes() == b""
        with Directory.open(str(path)) as root:
            Lock.take(root, Disk()).release()


def test_LogManagerTest_testCheckpointRecoveryPoints(paths: list[Path]) -> None:
    both = [TopicPartition("test-a", 1), TopicPartition("test-b", 1)]
    with opened(paths[0]) as store:
        for at in both:
            store.create(at, A)
        points = {at: flushed(store, at, 50) for at in both}
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, points)
    assert points == dict.fromkeys(both, 50)
    assert read_offsets(paths[0]) == {("test-a", 1): 50, ("test-b", 1): 50}


def test_LogManagerTest_testCheckpointForOnlyAffectedLogs(paths: list[Path]) -> None:
    here = [*(TopicPartition("test-a", number) for number in range(3))]
    here += [TopicPartition("test-b", number) for number in range(2)]
    with opened(*paths[:2]) as store:
        for at in here:
            store.create(at, A, directory_id=identity(0).directory_id)
        store.create(KAFKA, A, directory_id=identity(1).directory_id)
        points = {at: flushed(store, at, 50 + number) for number, at in enumerate(here)}
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, points)
    assert list(points.values()) == [50, 51, 52, 53, 54]
    assert read_offsets(paths[0]) == {(at.topic, at.partition): point for at, point in points.items()}
    assert not (paths[1] / RECOVERY_POINT_CHECKPOINT).exists()


def checkpoints_work(given: str, path: Path) -> None:
    with LogStore.open([given]) as store:
        store.create(KAFKA, A)
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, {KAFKA: 3})
    assert read_offsets(path) == {("kafka", 0): 3}


def test_LogManagerTest_testRecoveryDirectoryMappingWithTrailingSlash(paths: list[Path]) -> None:
    checkpoints_work(f"{paths[0]}/", paths[0])


def test_LogManagerTest_testRecoveryDirectoryMappingWithRelativeDirectory(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(paths[0].parent)
    checkpoints_work("a", paths[0])


def test_LogManagerTest_testFileReferencesAfterAsyncDelete(paths: list[Path]) -> None:
    clock = ManualClock(NOW_MS)
    names = set(os.listdir(fill(paths[0] / "kafka-0")))
    with opened(*paths, clock=clock) as store:
        (staged,) = store.stage([KAFKA], "x", "", setting=DELETE_DELAY).staged
        assert set(os.listdir(paths[0] / staged.location)) == names
        for wait in (30_000, 29_999):
            clock.advance(wait)
            assert purge(store.log_dirs, PurgeRules(clock.now_ms()), look_at_processes=False).directories == 0
            assert [each.location for each in store.staged()] == [staged.location]
        clock.advance(1)
        assert purge(store.log_dirs, PurgeRules(clock.now_ms()), look_at_processes=False).directories == 1
        assert store.staged() == []
    assert not (paths[0] / staged.location).exists()


def test_LogManagerTest_testCreateAndDeleteOverlyLongTopic(paths: list[Path]) -> None:
    # The longest name that Kafka's own rules allow; the row has 253 characters, which no client could create.
    longest = TopicPartition("x" * 249, 0)
    with opened(*paths) as store:
        store.create(longest, A)
        assert len(store.stage([longest], "x", "", setting=DELETE_DELAY).staged) == 1


def test_LogManagerTest_testShutdownWithZeroFileDeleteDelayMs(paths: list[Path]) -> None:
    with opened(*paths, settings=Settings({"": {DELETE_DELAY: 0}})) as store:
        store.create(KAFKA, A)
        store.stage([KAFKA], "x", "", setting=DELETE_DELAY)
        assert purge(store.log_dirs, PurgeRules(NOW_MS), look_at_processes=False).directories == 1


def test_FileLockTest_testLock(tmp_path: Path) -> None:
    with Directory.open(str(tmp_path)) as root:
        lock = Lock.take(root, Disk())
        for _ in range(2):
            with pytest.raises(LogDirInUseError):
                Lock.take(root, Disk())
        lock.release()


def test_FileLockTest_testTryLock(tmp_path: Path) -> None:
    with Directory.open(str(tmp_path)) as one, Directory.open(str(tmp_path)) as other:
        lock = Lock.take(one, Disk())
        with pytest.raises(LogDirInUseError):
            Lock.take(other, Disk())
        lock.release()


def test_FileLockTest_testUnlock(tmp_path: Path) -> None:
    with Directory.open(str(tmp_path)) as root:
        for _ in range(3):
            Lock.take(root, Disk()).release()


def test_FileLockTest_testDestroy(tmp_path: Path) -> None:
    with Directory.open(str(tmp_path)) as root:
        lock = Lock.take(root, Disk())
        for _ in range(2):
            lock.release()
    assert (tmp_path / ".lock").exists()


def marked(paths: Iterable[Path]) -> list[str]:
    """The log dirs that say that their last use did not end."""
    return [path.name for path in paths if (path / UNCLEAN_FILE).exists()]


def with_a_log_in_each(paths: list[Path]) -> LogStore:
    store = opened(*paths)
    for number in range(len(paths)):
        store.create(TopicPartition(f"log-{number}", 0), A, directory_id=identity(number).directory_id)
    assert marked(paths) == [path.name for path in paths]
    return store


def test_LogManagerTest_testCleanShutdownFileWithBrokerEpoch(paths: list[Path]) -> None:
    with_a_log_in_each(paths[:2]).close()
    assert marked(paths) == []
    with opened(*paths[:2]) as store:
        assert not any(log_dir.was_unclean for log_dir in store.log_dirs)
    # Of Kafka's own file the epoch is read, and combined.
    files = [clean_shutdown.encode(3)] * 2
    assert clean_shutdown.combined_epoch(map(clean_shutdown.parse_broker_epoch, files)) == 3


def test_LogManagerTest_testHandlingExceptionsDuringShutdown(paths: list[Path]) -> None:
    store = with_a_log_in_each(paths[:2])
    store.log_dirs[0].go_offline("it failed")
    store.close()
    assert marked(paths) == ["a"]
    with opened(*paths[:2]) as store:
        assert [log_dir.was_unclean for log_dir in store.log_dirs] == [True, False]
    assert clean_shutdown.combined_epoch([None, clean_shutdown.parse_broker_epoch(clean_shutdown.encode(3))]) is None


def test_LogManagerTest_testCleanShutdownFileWhenShutdownCalledBeforeStartupComplete(paths: list[Path]) -> None:
    with_a_log_in_each(paths[:2]).abandon()
    kept = (paths[1] / "meta.properties").rename(paths[1] / "kept")
    with pytest.raises(NotALogDirError):
        opened(*paths[:2])
    kept.rename(paths[1] / "meta.properties")
    assert marked(paths) == ["a", "b"]


def test_OffsetCheckpointFileWithFailureHandlerTest_testWriteIfDirExistsShouldNotThrowWhenDirNotExists(
    paths: list[Path],
) -> None:
    with opened(paths[0]) as store:
        store.create(KAFKA, A)
        away = paths[0].rename(paths[0].parent / "away")
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, {KAFKA: 3})
    assert not paths[0].exists()
    assert read_offsets(away) == {("kafka", 0): 3}


def test_MetaPropertiesEnsembleTest_testCopierWriteLogDirChanges(tmp_path: Path) -> None:
    for name, text in (("new0", "oTM53yT_SbSfzlvkh_PfVA"), ("new1", "FcUhIv2mTzmLqGkVEabyag")):
        found = MetaProperties(1, "fooClusterId", 2, DirectoryId.parse(text), "flat")
        LogDir.format(str(tmp_path / name), found).close()
    for name, text in (("new0", "oTM53yT_SbSfzlvkh_PfVA"), ("new1", "FcUhIv2mTzmLqGkVEabyag")):
        comment, date, *lines = (tmp_path / name / "meta.properties").read_text().splitlines()
        assert comment == date[:1] == "#"
        assert sorted(lines) == [
            "cluster.id=fooClusterId", f"directory.id={text}", "logstore.scheme=flat", "node.id=2", "version=1",
        ]  # fmt: skip


def test_MetaPropertiesEnsembleTest_testCopierWriteChanged(paths: list[Path]) -> None:
    before = [(path / "meta.properties").read_bytes() for path in paths[:2]]
    with opened(paths[0]) as store:
        convert(store, Scheme.BY_TOPIC_ID)
    changed = before[0].replace(b"logstore.scheme=flat", b"logstore.scheme=by-topic-id")
    assert changed != before[0]
    assert [(path / "meta.properties").read_bytes() for path in paths[:2]] == [changed, before[1]]
