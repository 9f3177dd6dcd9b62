"""Kafka's own tests about names, in the form of FACTS §10.2, §10.7 (TopicTest), §10.8 (SnapshotsTest) and §10.9.

Each test bears the upstream class and test; ``rows.txt`` says of each row where it is held.
"""

from __future__ import annotations

import os
import random
import string
from pathlib import Path

import pytest

from layout.directory_name import DirectoryKind, delete_name, live_name, parse
from layout.errors import InvalidNameError
from layout.segment_files import removed_at_load
from layout.segment_name import (
    FileKind,
    MetadataSnapshotName,
    metadata_snapshot_name,
    parse_metadata_snapshot,
    segment_file_name,
)
from layout.segment_name import parse as parse_file
from layout.topic import check_topic_name, has_collision, has_collision_chars, unify_collision_chars
from logstore.scan import scan
from reconciler.desired import Mode
from reconciler.preflight import KafkaRelease, start_with_directory
from reconciler.preflight.releases import StartAction
from tests.reconciler.preflight.disks import ask, kraft_log_dir, of_rule

UNIQUE = "0123456789abcdef0123456789abcdef"


def is_rejected(name: str) -> bool:
    return parse(name).kind is DirectoryKind.FOREIGN


def test_LocalLogTest_testParseTopicPartitionName() -> None:
    assert parse("test_topic-143")[1:4] == (DirectoryKind.LIVE, "test_topic", 143)
    assert live_name("test_topic", 143) == "test_topic-143"


def test_LocalLogTest_testParseTopicPartitionNameWithPeriodForDeletedTopic() -> None:
    read = parse(delete_name("foo.bar-testtopic", 42, UNIQUE))
    assert read[1:4] == (DirectoryKind.DELETE, "foo.bar-testtopic", 42)


def test_LocalLogTest_testParseTopicPartitionNameForEmptyName() -> None:
    assert is_rejected("")


@pytest.mark.parametrize("name", ["test_topic1999", "test_topic1999.-delete"])
def test_LocalLogTest_testParseTopicPartitionNameForMissingSeparator(name: str) -> None:
    assert is_rejected(name)


@pytest.mark.parametrize("name", ["-1999", f"-1999.{UNIQUE}-delete"])
def test_LocalLogTest_testParseTopicPartitionNameForMissingTopic(name: str) -> None:
    assert is_rejected(name)


@pytest.mark.parametrize("name", ["test_topic-", "test_topic-.-delete"])
def test_LocalLogTest_testParseTopicPartitionNameForMissingPartition(name: str) -> None:
    assert is_rejected(name)


@pytest.mark.parametrize("name", ["test_topic-1999a", "test_topic1999a.-delete"])
def test_LocalLogTest_testParseTopicPartitionNameForInvalidPartition(name: str) -> None:
    assert is_rejected(name)


@pytest.mark.parametrize("name", ["non_kafka_dir", "non_kafka_dir-delete"])
def test_LocalLogTest_testParseTopicPartitionNameForExistingInvalidDir(name: str) -> None:
    assert is_rejected(name)


def test_LocalLogTest_testLogDeleteDirName_short() -> None:
    name = delete_name("foo", 3, UNIQUE)
    assert name == f"foo-3.{UNIQUE}-delete"
    assert len(name) <= 255
    assert parse(name).kind is DirectoryKind.DELETE


def test_LocalLogTest_testLogDeleteDirName_long() -> None:
    name = delete_name("n" + "o" * 248, 5, UNIQUE)
    assert name == "n" + "o" * 212 + f"-5.{UNIQUE}-delete"
    assert len(name) == 255


@pytest.mark.parametrize("kind", [FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX])
def test_LocalLogTest_testOffsetFromFile(kind: FileKind) -> None:
    name = segment_file_name(23423423, kind)
    assert name == f"00000000000023423423{kind.value}"
    assert parse_file(name).offset == 23423423


def test_LogManagerTest_testLoadLogsSkipRemoteIndexCache() -> None:
    answer = start_with_directory("remote-log-index-cache", KafkaRelease(3, 9), Mode.KRAFT)
    assert (answer.action, answer.starts) == (StartAction.IGNORED, True)


def test_LogManagerTest_testCreateAndDeleteOverlyLongTopic() -> None:
    topic = "x" * 253
    assert len(live_name(topic, 0)) == 255
    assert len(delete_name(topic, 0, UNIQUE)) == 255


def test_TopicTest_shouldAcceptValidTopicNames() -> None:
    letters = random.Random(0).choices(string.ascii_letters + string.digits, k=249)
    for name in ("valid", "TOPIC", "nAmEs", "ar6", "VaL1d", "_0-9_.", "...", "".join(letters)):
        check_topic_name(name)


@pytest.mark.parametrize("name", ["", "foo bar", "..", "foo:bar", "foo=bar", ".", "a" * 250])
def test_TopicTest_shouldThrowOnInvalidTopicNames(name: str) -> None:
    with pytest.raises(InvalidNameError):
        check_topic_name(name)


@pytest.mark.parametrize("character", "/\\,\0:\"';*? \t\r\n=")
def test_TopicTest_shouldRecognizeInvalidCharactersInTopicNames(character: str) -> None:
    with pytest.raises(InvalidNameError, match="a character other than"):
        check_topic_name(f"Is{character}illegal")


def test_TopicTest_testTopicHasCollisionChars() -> None:
    for name in ("start", "end", "middle", "many"):
        assert not has_collision_chars(name)
    for name in (".start", "end.", "mid.dle", ".ma.ny.", "_start", "end_", "mid_dle", "_ma_ny."):
        assert has_collision_chars(name)


def test_TopicTest_testUnifyCollisionChars() -> None:
    unified = [unify_collision_chars(name) for name in ("topic", ".topic", "_topic", "_.topic")]
    assert unified == ["topic", "_topic", "_topic", "__topic"]


def test_TopicTest_testTopicHasCollision() -> None:
    dots = [".topic", "to.pic", "topic.", "topic"]
    underscores = ["_topic", "to_pic", "topic_", "topic"]
    for one, other in zip(dots, underscores, strict=True):
        assert has_collision(one, one)
        assert has_collision(one, other)
    for one, other in zip(dots, reversed(underscores), strict=True):
        assert not has_collision(one, other)


SNAPSHOT_IDS = [(0, 0), (100, 3), (2**63 - 1, 2**31 - 1)]


@pytest.mark.parametrize(("offset", "epoch"), SNAPSHOT_IDS)
def test_SnapshotsTest_testValidSnapshotFilename(offset: int, epoch: int) -> None:
    assert parse_metadata_snapshot(metadata_snapshot_name(offset, epoch)) == MetadataSnapshotName(epoch, offset)


@pytest.mark.parametrize(("offset", "epoch"), SNAPSHOT_IDS)
def test_SnapshotsTest_testValidPartialSnapshotFilename(offset: int, epoch: int) -> None:
    # A temporary file has a random part between the ID and its suffix (FACTS §7.2).
    name = metadata_snapshot_name(offset, epoch).replace(".checkpoint", "-8273645182736451827.checkpoint.part")
    assert parse_metadata_snapshot(name) == MetadataSnapshotName(epoch, offset, partial=True)


@pytest.mark.parametrize(("offset", "epoch"), SNAPSHOT_IDS)
def test_SnapshotsTest_testValidDeletedSnapshotFilename(offset: int, epoch: int) -> None:
    name = metadata_snapshot_name(offset, epoch) + ".deleted"
    assert parse_metadata_snapshot(name) == MetadataSnapshotName(epoch, offset, deleted=True)


ZEROS = "0" * 20


@pytest.mark.parametrize(
    "name",
    [
        *(f"{ZEROS}.log", f"{ZEROS}.snapshot", f"{ZEROS}.index", f"{ZEROS}.timeindex"),
        *("leader-epoch-checkpoint", "partition.metadata"),
    ],
)
def test_SnapshotsTest_testInvalidSnapshotFilenames(name: str) -> None:
    assert parse_metadata_snapshot(name) is None


def loaded(replica: Path) -> list[str]:
    """The names that are left in a partition dir when a broker has loaded it."""
    names = os.listdir(replica)
    return sorted(set(names) - set(removed_at_load(names)))


def test_LogLoaderTest_testOpenDeletesObsoleteFiles(tmp_path: Path) -> None:
    replica = kraft_log_dir(tmp_path, ["orders-0"]) / "orders-0"
    before = sorted(os.listdir(replica))
    for offset in (3, 7):
        for kind in (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX):
            (replica / (segment_file_name(offset, kind) + ".deleted")).write_bytes(b"")
    assert loaded(replica) == before
    (row,) = [row for row in scan(str(tmp_path)).rows.to_pylist() if row["name"] == "orders-0"]
    assert row["segments"] == 1
    (note,) = of_rule(ask(tmp_path), "leftovers")
    assert "6 .deleted" in note.problem


def test_LogLoaderTest_testBogusIndexSegmentsAreRemoved(tmp_path: Path) -> None:
    (tmp_path / segment_file_name(0, FileKind.LOG)).write_bytes(b"")
    for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX):
        (tmp_path / segment_file_name(5, kind)).write_bytes(b"")
    assert loaded(tmp_path) == [f"{0:020d}.log"]
    (tmp_path / segment_file_name(5, FileKind.LOG)).write_bytes(b"")
    assert loaded(tmp_path) == [f"{0:020d}.log", f"{5:020d}.index", f"{5:020d}.log", f"{5:020d}.timeindex"]


def test_LogLoaderTest_testLoadingLogKeepsLargestStrayProducerStateSnapshot(tmp_path: Path) -> None:
    for offset in (0, 1, 2, 4):
        (tmp_path / segment_file_name(offset, FileKind.LOG)).write_bytes(b"")
    for offset in (1, 2, 4, 3):
        (tmp_path / segment_file_name(offset, FileKind.PRODUCER_SNAPSHOT)).write_bytes(b"")
    left = [parse_file(name) for name in loaded(tmp_path)]
    assert [file.offset for file in left if file.kind is FileKind.PRODUCER_SNAPSHOT] == [1, 2, 4]
