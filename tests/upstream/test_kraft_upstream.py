"""Kafka's own test cases of the metadata log, as far as they are about reading it (FACTS §10.8).

A test is named by the row's number and the name of the upstream test; ``rows.txt`` says of each row where it is held.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import DirectoryId, TopicId
from layout.segment_name import MetadataSnapshotName, metadata_snapshot_name
from layout.topic import METADATA_DIR
from reconciler.errors import MetadataError, UsageError
from reconciler.protocol import METADATA_RECORDS, MalformedMessageError
from reconciler.sources.kraft import (
    Batch,
    BrokenBatchError,
    RecordDecoder,
    control_record,
    list_files,
    read_batches,
    read_frame,
)
from reconciler.sources.kraft import encoding as kraft_encoding
from reconciler.sources.kraft.files import SnapshotFile
from reconciler.sources.kraft.records import read_control_type
from reconciler.sources.kraft.replay import Replay, read, read_snapshot
from tests.reconciler.preflight.disks import ask, kraft_log_dir
from tools.writers import (
    feature_level_record,
    kraft_writer,
    log_batch,
    no_op_record,
    partition_record,
    topic_record,
)
from tools.writers.kraft_writer import control_batch, snapshot_bytes

BAR = TopicId.parse("cxBT72dK4si8Ied1iP4wBA")
VERSION_1 = control_record("KRaftVersionRecord", kRaftVersion=1)
VOTERS = control_record(
    "VotersRecord",
    voters=[
        {"voterId": n, "voterDirectoryId": bytes(16), "endpoints": [], "kRaftVersionFeature": {}} for n in (1, 2, 3)
    ],
)
HEADER, FOOTER = control_record("SnapshotHeaderRecord"), control_record("SnapshotFooterRecord")


def _batches(content: bytes) -> list[Batch]:
    return list(read_batches(io.BytesIO(content), len(content), hashlib.sha256()))


def _control_types(content: bytes) -> list[list[int]]:
    """The types of the control records, for each control batch."""
    return [
        [read_control_type(r.key or b"") for r in batch.records()] for batch in _batches(content) if batch.is_control
    ]


def _refused(value: str) -> str:
    with pytest.raises(MalformedMessageError) as error:
        RecordDecoder().decode(read_frame(bytes.fromhex(value)), bytes.fromhex(value))
    return str(error.value)


def _folder(log_dir: Path, snapshots: list[tuple[int, int]], logs: dict[int, bytes]) -> Path:
    """A metadata directory; the snapshot (offset, epoch) holds one topic, named after it."""
    folder = log_dir / METADATA_DIR
    folder.mkdir(exist_ok=True)
    for offset, epoch in snapshots:
        content = snapshot_bytes([topic_record(f"snapshot-{offset}-{epoch}", BAR)], epoch=epoch)
        (folder / metadata_snapshot_name(offset, epoch)).write_bytes(content)
    for base_offset, content in logs.items():
        (folder / f"{base_offset:020d}.log").write_bytes(content)
    return folder


def _read(folder: Path) -> Replay:
    return read(str(folder), hashlib.sha256())


def _topics(replay: Replay) -> list[str]:
    return [found.name for found in replay.image.topics.values()]


def _ten_records(base_offset: int = 0, epoch: int = 1) -> bytes:
    return log_batch([no_op_record()] * 10, base_offset, epoch=epoch)


def test_186_testCreateAssignmentMap(tmp_path: Path) -> None:
    ids = [DirectoryId.from_halves(7, number) for number in (1, 2, 3, 4)]

    def directories(folder: Path, replicas: list[int], given: list[DirectoryId]) -> dict[int, bytes]:
        folder.mkdir()
        records = [topic_record("bar", BAR), partition_record(BAR, 0, replicas, directories=given)]
        image = _read(_folder(folder, [], {0: log_batch(records, 0, epoch=1)})).image
        found = image.topics[BAR.to_bytes()].partitions[0]
        return dict(zip(found.replicas, found.directories, strict=True))

    by_replica = directories(tmp_path / "4", [1, 2, 3, 4], ids)
    assert by_replica == {number: one.to_bytes() for number, one in zip((1, 2, 3, 4), ids, strict=True)}
    with pytest.raises(MetadataError, match="bar-0 has 2 replicas and 3 directories"):
        directories(tmp_path / "2", [1, 2], ids[:3])


def test_188_testSerde() -> None:
    topic_id = TopicId.random(os.urandom)
    value = topic_record("foo", topic_id)
    # Frame version, type and version; the length and bytes of the name; the ID; no tagged fields.
    assert len(value) == 3 + 4 + 16 + 1
    fields = RecordDecoder().decode(read_frame(value), value)
    assert fields == {"name": "foo", "topicId": topic_id.to_bytes()}
    assert (
        kraft_encoding.record("TopicRecord", 0, name=fields["name"], topicId=str(TopicId(fields["topicId"]))) == value
    )


def test_189_testDeserializeWithUnhandledFrameVersion() -> None:
    assert "frame version 15" in _refused("0f" + "00" * 15)


def test_190_testParsingMalformedFrameVersionVarint() -> None:
    assert "frame version cannot be read" in _refused("808080808080" + "00" * 8)


def test_191_testParsingMalformedMessageTypeVarint() -> None:
    assert "record type cannot be read" in _refused("01808080808080")


def test_192_testParsingMalformedMessageVersionVarint() -> None:
    assert "record version cannot be read" in _refused("01088080808080")


def test_193_testParsingVersionTooLarge() -> None:
    assert "is above 32767" in _refused("0108ffffff7f80")


def test_194_testParsingUnsupportedApiKey() -> None:
    """Kafka refuses; here a type that is not known is counted and skipped, and the answer says so."""
    assert read_frame(bytes.fromhex("01ff7f0080")).type not in METADATA_RECORDS


def test_195_testParsingMalformedMessage() -> None:
    assert "RegisterBrokerRecord version 0 cannot be read" in _refused("01000080")


def test_196_testParsingRecordWithGarbageAtEnd() -> None:
    value = kraft_writer.register_broker_record(1, 2, version=0)
    assert "1 bytes of garbage" in _refused(value.hex() + "00")


def test_197_testHeaderFooter() -> None:
    content = snapshot_bytes([topic_record("bar", BAR)], epoch=0)
    first, second, third = _batches(content)
    assert [batch.base_offset for batch in (first, second, third)] == [0, 1, 2]
    decoder = RecordDecoder()
    assert decoder.decode_control(3, first.records()[0].value) == {"version": 0, "lastContainedLogTimestamp": 0}
    value = second.records()[0].value
    assert read_frame(value)[:2] == (2, 0)
    assert decoder.decode(read_frame(value), value) == {"name": "bar", "topicId": BAR.to_bytes()}
    assert decoder.decode_control(4, third.records()[0].value) == {"version": 0}
    assert _control_types(content) == [[3], [4]]


def test_201_testMissingDirectory(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or directory"):
        _read(tmp_path / "non" / "existent" / "directory")


def test_202_testReadFromConfigurationFile(tmp_path: Path) -> None:
    path = tmp_path / "bootstrap.checkpoint"
    records = [feature_level_record("metadata.version", 7), no_op_record(), no_op_record()]
    path.write_bytes(snapshot_bytes(records, epoch=0))
    data = [batch for batch in _batches(path.read_bytes()) if not batch.is_control]
    values = [record.value for batch in data for record in batch.records()]
    feature, *others = [(read_frame(value).type, RecordDecoder().decode(read_frame(value), value)) for value in values]
    assert feature == (12, {"name": "metadata.version", "featureLevel": 7})
    assert others == [(20, {}), (20, {})]
    replay = read_snapshot(SnapshotFile(MetadataSnapshotName(epoch=0, offset=3), str(path)), hashlib.sha256())
    assert (replay.image.features, replay.image.unknown_types) == ({"metadata.version": 7}, {})


def test_209_testBatchWriteReadSnapshot() -> None:
    value = bytes(range(256))
    found = _batches(b"".join(log_batch([value] * 3, 3 * number) for number in range(10)))
    records = [record for batch in found for record in batch.records()]
    assert (len(found), len(records)) == (10, 30)
    assert {(record.key, record.value) for record in records} == {(None, value)}


def test_214_testEmptyRecords() -> None:
    assert _batches(b"") == []


def test_215_testCrcValidation(tmp_path: Path) -> None:
    """It is always checked: there is no way to read on."""
    content = log_batch([topic_record("bar", BAR)], 0)
    assert len(_batches(content)) == 1
    crc = int.from_bytes(content[17:21], "big")
    damaged = content[:17] + (crc + 1).to_bytes(4, "big") + content[21:]
    with pytest.raises(BrokenBatchError, match="CRC-32C"):
        _batches(damaged)
    replay = _read(_folder(tmp_path, [(0, 0)], {0: damaged}))
    assert _topics(replay) == ["snapshot-0-0"]
    assert "CRC-32C" in replay.problems[0]


def test_216_testControlRecordIterationWithKraftVersion0() -> None:
    assert _control_types(snapshot_bytes([no_op_record()])) == [[3], [4]]


def test_217_testControlRecordIterationWithKraftVersion1() -> None:
    content = snapshot_bytes([no_op_record()], extra_controls=[VERSION_1, VOTERS])
    assert _control_types(content) == [[3, 5, 6], [4]]
    voters = RecordDecoder().decode_control(6, _batches(content)[0].records()[2].value)["voters"]
    assert [voter["voterId"] for voter in voters] == [1, 2, 3]


def test_218_testWithAllSupportedControlRecords() -> None:
    controls = [control_record("LeaderChangeMessage", leaderId=1), HEADER, FOOTER, VERSION_1, VOTERS]
    content = b"".join(control_batch([control], offset) for offset, control in enumerate(controls))
    assert _control_types(content) == [[2], [3], [4], [5], [6]]
    decoder = RecordDecoder()
    for batch in _batches(content):
        for record in batch.records():
            assert decoder.decode_control(read_control_type(record.key or b""), record.value)["version"] == 0


def test_220_testKBuilderRaftVersion1WithVoterSet() -> None:
    assert _control_types(snapshot_bytes([], extra_controls=[VERSION_1, VOTERS])) == [[3, 5, 6], [4]]


def test_221_testBuilderKRaftVersion1WithoutVoterSet() -> None:
    assert _control_types(snapshot_bytes([], extra_controls=[VERSION_1])) == [[3, 5], [4]]


def test_222_testTopicId(tmp_path: Path) -> None:
    expected = TopicId.parse("AAAAAAAAAAAAAAAAAAAAAQ")
    folder = Path(kraft_writer.write_metadata_dir(tmp_path / "new", log=[[no_op_record()]]))
    assert partition_metadata.parse((folder / partition_metadata.FILE_NAME).read_bytes()).topic_id == expected
    # A metadata log under another ID lets no broker start.
    path = kraft_log_dir(tmp_path / "1")
    assert ask(path).starts
    (path / METADATA_DIR / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(BAR))
    assert not ask(path).starts


def test_223_testStartupWithInvalidSnapshotState_a(tmp_path: Path) -> None:
    with pytest.raises(MetadataError, match="begins at offset 100, and no snapshot"):
        _read(_folder(tmp_path, [], {100: _ten_records(100)}))


def test_224_testStartupWithInvalidSnapshotState_b(tmp_path: Path) -> None:
    """Kafka does not open this; what the snapshot says was true at its offset, so the state ends there."""
    replay = _read(_folder(tmp_path, [(50, 1)], {100: _ten_records(100)}))
    assert (_topics(replay), replay.last_offset, replay.log_played) == (["snapshot-50-1"], 49, False)
    assert "begins at offset 100, after the snapshot's end" in replay.problems[0]


def test_225_testStartupWithInvalidSnapshotState_c(tmp_path: Path) -> None:
    replay = _read(_folder(tmp_path, [(100, 1)], {100: _ten_records(100)}))
    assert (_topics(replay), replay.last_offset, replay.problems) == (["snapshot-100-1"], 109, [])


def test_226_testStartupWithInvalidSnapshotState_d(tmp_path: Path) -> None:
    replay = _read(_folder(tmp_path, [(100, 1), (500, 1)], {200: _ten_records(200)}))
    assert (_topics(replay), replay.last_offset, replay.log_played) == (["snapshot-500-1"], 499, False)


def test_227_testSnapshotDeletionWithInvalidSnapshotState(tmp_path: Path) -> None:
    folder = _folder(tmp_path, [(100, 1)], {100: _ten_records(100)})
    name = metadata_snapshot_name(100, 1)
    deleted = (folder / name).rename(folder / f"{name}.deleted")
    with pytest.raises(MetadataError, match="begins at offset 100, and no snapshot"):
        _read(folder)
    assert deleted.exists()


def test_228_testCleanupPartialSnapshots(tmp_path: Path) -> None:
    """A broker removes the partial ones; here they are passed over, and stay."""
    folder = _folder(tmp_path, [(1, 1)], {0: _ten_records()})
    for number in range(3):
        (folder / f"{number:020d}-{number:010d}-77.checkpoint.part").write_bytes(b"half")
    assert [each.name for each in list_files(str(folder)).snapshots] == [MetadataSnapshotName(1, 1)]
    replay = _read(folder)
    assert (_topics(replay), replay.last_offset, replay.problems) == (["snapshot-1-1"], 9, [])
    assert len(list(folder.glob("*.part"))) == 3


def test_229_testCleanupOlderSnapshots(tmp_path: Path) -> None:
    """A broker removes the older ones; here the latest counts, and they stay."""
    ids = [(1, 0), (2, 1), (10, 1), (30, 1)]
    folder = _folder(tmp_path, ids, {0: _ten_records()})
    assert max(each.name for each in list_files(str(folder)).snapshots) == MetadataSnapshotName(1, 30)
    replay = _read(folder)
    assert (_topics(replay), replay.next_offset, replay.log_played) == (["snapshot-30-1"], 30, False)
    assert sorted(os.listdir(folder)) == sorted([f"{0:020d}.log", *(metadata_snapshot_name(*each) for each in ids)])


def test_230_testCreateReplicatedLogTruncatesFully(tmp_path: Path) -> None:
    replay = _read(_folder(tmp_path, [(11, 2)], {0: _ten_records()}))
    assert (replay.next_offset, replay.epoch, replay.log_played) == (11, 2, False)


def test_231_testDoesntTruncateFully(tmp_path: Path) -> None:
    """The first half, a snapshot (10, 0) over records of epoch 1, cannot come to be, and is refused as it stands."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with pytest.raises(MetadataError, match="contradicts the snapshot"):
        _read(_folder(first, [(10, 0)], {0: _ten_records()}))
    replay = _read(_folder(second, [(10, 1)], {0: _ten_records() + _ten_records(10)}))
    assert (_topics(replay), replay.last_offset, replay.log_played) == (["snapshot-10-1"], 19, True)


def test_239_testReadMissingSnapshot(tmp_path: Path) -> None:
    assert list_files(str(_folder(tmp_path, [], {0: _ten_records()}))).snapshots == []
