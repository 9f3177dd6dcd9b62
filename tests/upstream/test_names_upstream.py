"""Kafka's own tests about names, in the form of FACTS §10.2, §10.7 (TopicTest), §10.8 (SnapshotsTest) and §10.9.

Each test bears the upstream class and test. Rows that ask for more than a name are left to the part that acts.
"""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest

from layout.directory_name import DirectoryKind, delete_name, live_name, parse
from layout.errors import InvalidNameError
from layout.segment_name import (
    FileKind,
    MetadataSnapshotName,
    Transient,
    is_leftover,
    metadata_snapshot_name,
    parse_metadata_snapshot,
    segment_file_name,
)
from layout.segment_name import parse as parse_file
from layout.topic import check_topic_name, has_collision, has_collision_chars, unify_collision_chars
from reconciler.desired import Mode
from reconciler.preflight import KafkaRelease, start_with_directory
from reconciler.preflight.releases import StartAction

UNIQUE = "0123456789abcdef0123456789abcdef"

COVERED = {
    16: "test_LocalLogTest_testParseTopicPartitionName",
    17: "test_LocalLogTest_testParseTopicPartitionNameWithPeriodForDeletedTopic",
    18: "test_LocalLogTest_testParseTopicPartitionNameForEmptyName",
    20: "test_LocalLogTest_testParseTopicPartitionNameForMissingSeparator",
    21: "test_LocalLogTest_testParseTopicPartitionNameForMissingSeparator",
    22: "test_LocalLogTest_testParseTopicPartitionNameForMissingTopic",
    23: "test_LocalLogTest_testParseTopicPartitionNameForMissingTopic",
    24: "test_LocalLogTest_testParseTopicPartitionNameForMissingPartition",
    25: "test_LocalLogTest_testParseTopicPartitionNameForMissingPartition",
    26: "test_LocalLogTest_testParseTopicPartitionNameForInvalidPartition",
    27: "test_LocalLogTest_testParseTopicPartitionNameForInvalidPartition",
    28: "test_LocalLogTest_testParseTopicPartitionNameForExistingInvalidDir",
    29: "test_LocalLogTest_testParseTopicPartitionNameForExistingInvalidDir",
    30: "test_LocalLogTest_testLogDeleteDirName_short",
    31: "test_LocalLogTest_testLogDeleteDirName_long",
    32: "test_LocalLogTest_testOffsetFromFile",
    43: "test_LogManagerTest_testLoadLogsSkipRemoteIndexCache",
    52: "test_LogManagerTest_testCreateAndDeleteOverlyLongTopic",
    167: "test_TopicTest_shouldAcceptValidTopicNames",
    168: "test_TopicTest_shouldThrowOnInvalidTopicNames",
    169: "test_TopicTest_shouldRecognizeInvalidCharactersInTopicNames",
    170: "test_TopicTest_testTopicHasCollisionChars",
    171: "test_TopicTest_testUnifyCollisionChars",
    172: "test_TopicTest_testTopicHasCollision",
    203: "test_SnapshotsTest_testValidSnapshotFilename",
    204: "test_SnapshotsTest_testValidPartialSnapshotFilename",
    205: "test_SnapshotsTest_testValidDeletedSnapshotFilename",
    206: "test_SnapshotsTest_testInvalidSnapshotFilenames",
    248: "test_LogLoaderTest_testOpenDeletesObsoleteFiles",
    249: "test_LogLoaderTest_testBogusIndexSegmentsAreRemoved",
    250: "test_LogLoaderTest_testLoadingLogKeepsLargestStrayProducerStateSnapshot",
}
"""Row number to test. Of 43, 52 and 248 to 250 it is the names that are tested here; the rest of them is a broker's."""

LEFT = {
    19: "there is no null among our arguments; the type checker holds that",
    33: "renames a directory: the engine",
    34: "renames a directory: the engine",
    207: "deletes a file: the engine",
    **dict.fromkeys(range(251, 257), "the clean shutdown file at load time: a broker's own recovery"),
    **dict.fromkeys(range(257, 262), "completes a split of segments: a broker's own recovery"),
}
"""Row number to the reason why nothing here tests it."""

SECTIONS = ("10.2 ", "10.9 ")
CLASSES = ("TopicTest", "SnapshotsTest")


@pytest.mark.shared
def test_no_row_of_these_sections_is_forgotten(shared: Path) -> None:
    rows = json.loads((shared / "kafka" / "upstream-tests.json").read_text(encoding="utf-8"))
    ours = [row for row in rows if row["section"].startswith(SECTIONS) or row["testClass"] in CLASSES]
    assert {row["n"] for row in ours} == ({*COVERED, *LEFT} - {43, 52})
    assert not COVERED.keys() & LEFT.keys()
    for row in rows:
        if row["n"] in COVERED:
            test = COVERED[row["n"]]
            upstream = row["test"].split(" ")[0]
            assert test.startswith(f"test_{row['testClass']}_{upstream}")
            assert callable(globals()[test])


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


def test_LogLoaderTest_testOpenDeletesObsoleteFiles() -> None:
    for kind in (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX):
        name = segment_file_name(0, kind) + ".deleted"
        assert is_leftover(name)
        assert (parse_file(name).kind, parse_file(name).transient) == (kind, Transient.DELETED)


def test_LogLoaderTest_testBogusIndexSegmentsAreRemoved() -> None:
    files = [parse_file(segment_file_name(0, FileKind.LOG))]
    files += [parse_file(segment_file_name(5, kind)) for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)]
    segments = {file.offset for file in files if file.kind is FileKind.LOG}
    bogus = {file.text for file in files if file.kind is not FileKind.LOG and file.offset not in segments}
    assert bogus == {f"{5:020d}.index", f"{5:020d}.timeindex"}


def test_LogLoaderTest_testLoadingLogKeepsLargestStrayProducerStateSnapshot() -> None:
    names = [segment_file_name(offset, FileKind.PRODUCER_SNAPSHOT) for offset in (1, 2, 4, 3)]
    assert [parse_file(name).offset for name in sorted(names)] == [1, 2, 3, 4]
