"""Kafka's own test cases of a log manager and its lock, as far as a store does the same (FACTS §10.1 to §10.3).

``COVERED`` maps the number of a row to the test that stands for it; ``OTHERWISE`` says of a row where a store goes
another way, and why. The rows that are about formats are in ``test_text_files_upstream``.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.ids import DirectoryId, TopicId
from layout.topic import TopicPartition
from logstore import DELETE_DELAY, InconsistentTopicIdError, KafkaError, LogDirInUseError, NotALogDirError, Settings
from logstore.clock import ManualClock
from logstore.fs import Directory, Disk
from logstore.log_dir import LogDir
from logstore.log_dir.lock import Lock
from logstore.purge import PurgeRules, purge
from logstore.staging import Placement, stage
from logstore.store import LogStore
from tests.logstore.engine import NOW_MS, DiskThat, candidate, fill, formatted, identity, opened, read_offsets

COVERED = {
    1: "test_PartitionMetadataFileTest_testSetRecordWithDifferentTopicId",
    8: "test_UnifiedLogTest_testLogRecoversTopicId",
    11: "test_UnifiedLogTest_testTopicIdTransfersAfterDirectoryRename",
    33: "test_LocalLogTest_testLogDirRenameToNewDir",
    35: "test_LogManagerTest_testCreateLog",
    36: "test_LogManagerTest_testCreateLogOnTargetedLogDirectory",
    37: "test_LogManagerTest_testCreateLogWithTargetedLogDirectorySetAsUnassigned",
    38: "test_LogManagerTest_testCreateLogWithTargetedLogDirectorySetAsUnknownWithoutAnyOfflineDirectories",
    40: "test_LogManagerTest_testCreateLogWithLogDirFallback",
    41: "test_LogManagerTest_testGetNonExistentLog",
    42: "test_LogManagerTest_testLeastLoadedAssignment",
    44: "test_LogManagerTest_testLoadLogRenameLogThatShouldBeStray",
    45: "test_LogManagerTest_testTwoLogManagersUsingSameDirFails",
    46: "test_LogManagerTest_testLock",
    47: "test_LogManagerTest_testCheckpointRecoveryPoints",
    48: "test_LogManagerTest_testCheckpointForOnlyAffectedLogs",
    49: "test_LogManagerTest_testRecoveryDirectoryMappingWithTrailingSlash",
    50: "test_LogManagerTest_testRecoveryDirectoryMappingWithRelativeDirectory",
    51: "test_LogManagerTest_testFileReferencesAfterAsyncDelete",
    52: "test_LogManagerTest_testCreateAndDeleteOverlyLongTopic",
    56: "test_LogManagerTest_testShutdownWithZeroFileDeleteDelayMs",
    68: "test_FileLockTest_testLock",
    69: "test_FileLockTest_testTryLock",
    70: "test_FileLockTest_testUnlock",
}

OTHERWISE = {
    39: "a path that is none is refused: what lay there is not known, and must not be taken for gone",
    71: "the lock's file stays, as releases up to 3.7 leave it",
}

KAFKA = TopicPartition("kafka", 0)
A, B = TopicId.from_halves(1, 2), TopicId.from_halves(3, 4)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [formatted(tmp_path / name, number) for number, name in enumerate("abc")]


def where(paths: list[Path]) -> list[str]:
    return [path.name for path in paths if (path / "kafka-0").is_dir()]


def test_PartitionMetadataFileTest_testSetRecordWithDifferentTopicId(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(KAFKA, None)
        store.assign_topic_id(KAFKA, A)
        with pytest.raises(InconsistentTopicIdError) as refused:
            store.assign_topic_id(KAFKA, B)
    assert refused.value.kafka_error == KafkaError.INCONSISTENT_TOPIC_ID


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


def test_LocalLogTest_testLogDirRenameToNewDir(paths: list[Path]) -> None:
    names = {path.name for path in fill(paths[0] / "kafka-0").iterdir()}
    with opened(*paths) as store:
        (staged,) = store.stage([KAFKA], "x", "").staged
    assert where(paths) == []
    assert names == set(os.listdir(paths[0] / staged.location))


def test_LogManagerTest_testCreateLog(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(KAFKA, A)
    assert where(paths) == ["a"]


def test_LogManagerTest_testCreateLogOnTargetedLogDirectory(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(KAFKA, A, directory_id=identity(1).directory_id)
        assert store.offline == {}
    assert where(paths) == ["b"]


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
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=1\ncluster.id=C\nnode.id=1\n")
    fill(tmp_path / "data" / "test-stray-topic-0")
    at = TopicPartition("test-stray-topic", 0)
    with LogDir.open(str(tmp_path / "data")) as log_dir:
        stage(log_dir, [candidate("test-stray-topic-0", at)], NOW_MS, placement=Placement.IN_PLACE)
    (found,) = (tmp_path / "data").glob("test-stray-topic*")
    assert found.name.endswith("-stray")


def test_LogManagerTest_testTwoLogManagersUsingSameDirFails(paths: list[Path]) -> None:
    with opened(*paths), pytest.raises(LogDirInUseError):
        opened(paths[0])


def test_LogManagerTest_testLock(paths: list[Path]) -> None:
    with opened(*paths), Directory.open(str(paths[0])) as root, pytest.raises(LogDirInUseError):
        Lock.take(root, Disk())
    with Directory.open(str(paths[0])) as root:
        Lock.take(root, Disk()).release()


def test_LogManagerTest_testCheckpointRecoveryPoints(paths: list[Path]) -> None:
    both = {TopicPartition("test-a", 1): 50, TopicPartition("test-b", 1): 50}
    with opened(paths[0]) as store:
        for at in both:
            store.create(at, A)
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, both)
    assert read_offsets(paths[0]) == {("test-a", 1): 50, ("test-b", 1): 50}


def test_LogManagerTest_testCheckpointForOnlyAffectedLogs(paths: list[Path]) -> None:
    here = [TopicPartition("test-a", number) for number in range(3)]
    with opened(*paths[:2]) as store:
        for at in here:
            store.create(at, A, directory_id=identity(0).directory_id)
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, dict.fromkeys(here, 7))
    assert read_offsets(paths[0]) == {("test-a", number): 7 for number in range(3)}
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
    fill(paths[0] / "kafka-0")
    with opened(*paths, clock=clock) as store:
        store.stage([KAFKA], "x", "", setting=DELETE_DELAY)
        clock.advance(59_999)
        assert purge(store.log_dirs, PurgeRules(clock.now_ms()), look_at_processes=False).directories == 0
        clock.advance(1)
        assert purge(store.log_dirs, PurgeRules(clock.now_ms()), look_at_processes=False).directories == 1
        assert store.staged() == []


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


def test_what_goes_another_way_goes_it(paths: list[Path]) -> None:
    with pytest.raises(NotALogDirError):
        opened(paths[0], Path("\0"))
    opened(paths[0]).close()
    assert (paths[0] / ".lock").exists()


@pytest.mark.shared
def test_each_row_is_what_its_test_says_and_no_row_is_in_both_lists(shared: Path) -> None:
    rows = json.loads((shared / "kafka" / "upstream-tests.json").read_text(encoding="utf-8"))
    named = {row["n"]: f"test_{row['testClass']}_{row['test']}" for row in rows}
    assert not COVERED.keys() & OTHERWISE.keys()
    assert OTHERWISE.keys() <= named.keys()
    for number, name in COVERED.items():
        assert name == named[number]
        assert callable(globals().get(name)), name
