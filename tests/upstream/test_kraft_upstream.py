"""Kafka's own test cases of the metadata log, as far as they are about reading it (FACTS §10.8).

A test is named by the row's number and the name of the upstream test. The last test holds the two lists together: every
row of the section has a test here, or stands in ``LEFT_OUT`` with the reason.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from layout.segment_name import MetadataSnapshotName, metadata_snapshot_name
from layout.topic import METADATA_DIR
from reconciler.errors import MetadataError, UsageError
from reconciler.protocol import METADATA_RECORDS, MalformedMessageError
from reconciler.sources.kraft import Batch, BrokenBatchError, RecordDecoder, list_files, read_batches, read_frame
from reconciler.sources.kraft.files import SnapshotFile
from reconciler.sources.kraft.records import read_control_type
from reconciler.sources.kraft.replay import Replay, read, read_snapshot
from tools.writers import feature_level_record, kraft_writer, log_batch, no_op_record, topic_record
from tools.writers.kraft_encoding import control_record
from tools.writers.kraft_writer import control_batch, snapshot_bytes

_NAMES = "names of files: layout.segment_name"
_QUORUM = "quorum-state: layout.quorum_state"
_WRITING = "writes, truncates or deletes, and nothing here changes a metadata directory"
_FORMATTING = "what a controller starts with when no file says it; nothing on disk to read"

LEFT_OUT = {
    **dict.fromkeys((198, 199, 200), _FORMATTING),
    **dict.fromkeys(range(203, 207), _NAMES),
    **dict.fromkeys((207, 208, 210, 211, 212, 213, 219), _WRITING),
    **dict.fromkeys(range(232, 239), _WRITING),
    **dict.fromkeys((240, 241), _WRITING),
    **dict.fromkeys(range(242, 248), _QUORUM),
}

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


def test_188_testSerde() -> None:
    value = topic_record("foo", BAR)
    assert RecordDecoder().decode(read_frame(value), value) == {"name": "foo", "topicId": BAR.to_bytes()}


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
    path.write_bytes(
        snapshot_bytes([feature_level_record("metadata.version", 7), no_op_record(), no_op_record()], epoch=0)
    )
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


def test_215_testCrcValidation() -> None:
    content = log_batch([no_op_record()], 0)
    crc = int.from_bytes(content[17:21], "big")
    with pytest.raises(BrokenBatchError, match="CRC-32C"):
        _batches(content[:17] + (crc + 1).to_bytes(4, "big") + content[21:])


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
    folder = Path(kraft_writer.write_metadata_dir(tmp_path, log=[[no_op_record()]]))
    metadata = partition_metadata.parse((folder / partition_metadata.FILE_NAME).read_bytes())
    assert str(metadata.topic_id) == "AAAAAAAAAAAAAAAAAAAAAQ"


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
    folder = _folder(tmp_path, [(1, 1)], {0: _ten_records()})
    for number in range(3):
        (folder / f"{number:020d}-{number:010d}-77.checkpoint.part").write_bytes(b"half")
    replay = _read(folder)
    assert (_topics(replay), replay.last_offset, replay.problems) == (["snapshot-1-1"], 9, [])


def test_229_testCleanupOlderSnapshots(tmp_path: Path) -> None:
    replay = _read(_folder(tmp_path, [(1, 0), (2, 1), (10, 1), (30, 1)], {0: _ten_records()}))
    assert (_topics(replay), replay.last_offset) == (["snapshot-30-1"], 29)


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


@pytest.mark.shared
def test_every_row_has_a_test_or_a_reason(shared: Path) -> None:
    rows = json.loads((shared / "kafka" / "upstream-tests.json").read_text())
    section = {row["n"]: row["test"] for row in rows if row["section"].startswith("10.8")}
    names = {
        number: f"test_{number}_{re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_')}" for number, name in section.items()
    }
    here = {number for number, name in names.items() if name in globals()}
    assert here | set(LEFT_OUT) == set(section)
    assert not here & set(LEFT_OUT)
