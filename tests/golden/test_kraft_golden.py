"""Golden vectors of KRaft: bytes that real classes wrote, and what they made of bytes (FACTS §7).

Every vector of the kinds below is used; the last test counts them.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from layout.ids import TopicId
from reconciler.protocol import (
    CONTROL_RECORDS,
    METADATA_RECORDS,
    Array,
    Field,
    Kind,
    MalformedMessageError,
    Struct,
    UnsupportedVersionError,
    read_varint,
    read_zigzag,
    write_varint,
    write_zigzag,
)
from reconciler.sources.kraft import RecordDecoder, read_batches, read_frame
from reconciler.sources.kraft import encoding as kraft_encoding
from reconciler.sources.kraft.files import name_snapshot
from reconciler.sources.kraft.records import read_control_type
from reconciler.sources.kraft.replay import read_snapshot
from tools.writers import kraft_writer

pytestmark = pytest.mark.shared

FILES = (
    "metadata_records_snapshots_quorum.json",
    "dir_names_varints_record_edge_cases.json",
    "indexes_producer_snapshot_voters_placer.json",
)
KINDS = {
    "metadata.record": 27,
    "metadata.recordType": 24,
    "metadata.parse": 16,
    "BatchFileWriter.file": 2,
    "snapshot.file": 2,
    "leaderChange.batch": 1,
    "varint": 9,
    "crc32c": 2,
    "VotersRecord": 1,
    "controlRecord.key": 6,
}
CONTROL_NAMES = {
    "ABORT": 0, "COMMIT": 1, "LEADER_CHANGE": 2, "SNAPSHOT_HEADER": 3, "KRAFT_VERSION": 5, "KRAFT_VOTERS": 6,
}  # fmt: skip
LATER_THAN_THE_VECTORS = {28, 29}
"""Record types that came after the release from which the vectors were taken."""

BAR = TopicId.parse("cxBT72dK4si8Ied1iP4wBA")

Vector = dict[str, Any]


@pytest.fixture(scope="module")
def vectors(shared: Path) -> dict[str, list[Vector]]:
    """The vectors by kind."""
    found: dict[str, list[Vector]] = {}
    for name in FILES:
        for vector in json.loads((shared / "kafka" / "golden" / name).read_text()):
            found.setdefault(vector["kind"], []).append(vector)
    return found


def _plain(kind: Kind, value: Any) -> Any:
    """A value out of a vector's JSON, in the form that a decoder gives."""
    if value is None:
        return None
    if isinstance(kind, Struct):
        return _with_defaults(kind.fields, value)
    if isinstance(kind, Array):
        return tuple(_plain(kind.item, item) for item in value)
    return TopicId.parse(value).to_bytes() if kind == "uuid" else value


def _with_defaults(fields: tuple[Field, ...], values: dict[str, Any]) -> dict[str, Any]:
    assert set(values) <= {field.name for field in fields}
    return {f.name: _plain(f.kind, values[f.name]) if f.name in values else f.default for f in fields}


def _records(content: bytes) -> list[tuple[int, bytes | None, bytes]]:
    """(offset, key, value) of every record of a file, all batches checked."""
    batches = read_batches(io.BytesIO(content), len(content), hashlib.sha256())
    return [
        (offset, record.key, record.value)
        for batch in batches
        for offset, record in enumerate(batch.records(), batch.base_offset)
    ]


def _rewritten(content: bytes) -> bytes:
    """The same batches out of our own hands."""
    return b"".join(
        kraft_encoding.batch(
            [(record.key, record.value) for record in batch.records()],
            base_offset=batch.base_offset,
            epoch=batch.epoch,
            timestamp_ms=batch.max_timestamp_ms,
            attributes=batch.attributes,
        )
        for batch in read_batches(io.BytesIO(content), len(content), hashlib.sha256())
    )


def test_every_record_decodes_and_is_written_byte_for_byte(vectors: dict[str, list[Vector]]) -> None:
    for vector in vectors["metadata.record"]:
        given, output = vector["input"], vector["output"]
        if isinstance(output, dict):
            assert output["error"]["reason"] == "field-not-in-version"
            with pytest.raises(UnsupportedVersionError, match="has no directories"):
                kraft_encoding.record(given["type"], given["version"], directories=[str(BAR)])
            continue
        fields, value = json.loads(given["json"]), bytes.fromhex(output)
        frame = read_frame(value)
        message = METADATA_RECORDS[frame.type]
        assert (frame.type, frame.version, message.name) == (given["apiKey"], given["version"], given["type"])
        assert RecordDecoder().decode(frame, value) == _with_defaults(message.body.fields, fields)
        assert kraft_encoding.record(given["type"], given["version"], **fields) == value


def test_record_types_have_their_names_and_versions(vectors: dict[str, list[Vector]]) -> None:
    for vector in vectors["metadata.recordType"]:
        number, output = vector["input"], vector["output"]
        if "error" in output:
            assert number not in METADATA_RECORDS or number in LATER_THAN_THE_VECTORS
        else:
            message = METADATA_RECORDS[number]
            assert (message.name, 0, message.versions[-1]) == (output["class"], output["lowest"], output["highest"])


REASONS = {
    "frame-version-0": "frame version 0",
    "frame-version-unreadable": "frame version cannot be read",
    "value-above-32767": "is above 32767",
    "body-undecodable": "cannot be read",
    "trailing-bytes": "bytes of garbage",
}


def test_values_parse_or_are_refused_for_the_same_reason(vectors: dict[str, list[Vector]]) -> None:
    for vector in vectors["metadata.parse"]:
        value, output = bytes.fromhex(vector["input"]), vector["output"]
        if isinstance(output, str):
            frame = read_frame(value)
            RecordDecoder().decode(frame, value)
            message = METADATA_RECORDS[frame.type]
            shown = output.partition("(")[2]
            assert shown.startswith(f"{message.name}(")
            # The classes show the layout by which they read, and that is the highest they know.
            assert f") at version {frame.version}" in shown or f") at version {message.versions[-1]}" in shown
        elif output["error"]["reason"] == "unknown-record-type":
            # Kafka refuses such a record; here it is counted and skipped.
            assert read_frame(value).type not in METADATA_RECORDS
        else:
            with pytest.raises(MalformedMessageError, match=REASONS[output["error"]["reason"]]):
                RecordDecoder().decode(read_frame(value), value)


def test_batch_files_read_as_what_was_written_and_are_written_byte_for_byte(vectors: dict[str, list[Vector]]) -> None:
    feature = {"name": "metadata.version", "featureLevel": 21}
    expected = {
        "TopicRecord(bar,cxBT72dK4si8Ied1iP4wBA)": [(2, {"name": "bar", "topicId": BAR.to_bytes()})],
        "FeatureLevelRecord(metadata.version,21), NoOpRecord": [(12, feature), (20, {})],
    }
    for vector in vectors["BatchFileWriter.file"]:
        content = bytes.fromhex(vector["output"])
        assert _rewritten(content) == content
        records = _records(content)
        assert [offset for offset, _, _ in records] == list(range(len(records)))
        (_, header_key, header), *data, (_, footer_key, footer) = records
        assert (read_control_type(header_key or b""), read_control_type(footer_key or b"")) == (3, 4)
        decoder = RecordDecoder()
        assert decoder.decode_control(3, header) == {"version": 0, "lastContainedLogTimestamp": 0}
        assert decoder.decode_control(4, footer) == {"version": 0}
        frames = [(read_frame(value), value) for _, key, value in data if key is None]
        decoded = [(frame.type, decoder.decode(frame, value)) for frame, value in frames]
        assert decoded == expected[vector["input"]]


def test_snapshots_read_as_what_was_written_and_are_written_byte_for_byte(
    vectors: dict[str, list[Vector]], tmp_path: Path
) -> None:
    for vector in vectors["snapshot.file"]:
        name, version = vector["input"].split()[0], vector["input"].split()[1]
        content = bytes.fromhex(vector["output"]["hex"])
        assert _rewritten(content) == content
        (tmp_path / name).write_bytes(content)
        replay = read_snapshot(name_snapshot(str(tmp_path / name)), hashlib.sha256())
        topic = replay.image.topics[BAR.to_bytes()]
        partition = topic.partitions[0]
        assert (topic.name, partition.replicas, partition.isr) == ("bar", (1, 2, 3), (1, 2))
        assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 5, 7)
        # The header's time; the batches were written later.
        assert (replay.last_offset, replay.epoch, replay.timestamp_ms) == (99, 3, 1_700_000_000_000)
        kraft_version = [value for _, key, value in _records(content) if key == bytes.fromhex("00000005")]
        assert len(kraft_version) == (version == "kraft.version=1")


def test_a_leader_change_is_written_byte_for_byte(vectors: dict[str, list[Vector]]) -> None:
    (vector,) = vectors["leaderChange.batch"]
    assert vector["input"] == "baseOffset=42 ts=1700000000000 epoch=5 leader=1 voters=[1,2] granting=[1]"
    content = bytes.fromhex(vector["output"])
    written = kraft_writer.leader_change_batch(
        42, epoch=5, timestamp_ms=1_700_000_000_000, leader=1, voters=[1, 2], granting=[1]
    )
    assert written == content
    ((offset, key, value),) = _records(content)
    fields = RecordDecoder().decode_control(read_control_type(key or b""), value)
    assert (offset, fields["leaderId"]) == (42, 1)
    assert [voter["voterId"] for voter in fields["voters"]] == [1, 2]
    assert [voter["voterId"] for voter in fields["grantingVoters"]] == [1]


def test_varints_read_and_are_written_in_both_forms(vectors: dict[str, list[Vector]]) -> None:
    for vector in vectors["varint"]:
        number = vector["input"]
        unsigned, zigzag = (bytes.fromhex(vector["output"][form]) for form in ("unsigned", "zigzag"))
        assert read_varint(unsigned, 0) == (number & 0xFFFF_FFFF, len(unsigned))
        assert read_zigzag(zigzag, 0) == (number, len(zigzag))
        assert (write_varint(number & 0xFFFF_FFFF), write_zigzag(number)) == (unsigned, zigzag)


def test_the_checksum_is_crc_32c(vectors: dict[str, list[Vector]]) -> None:
    for vector in vectors["crc32c"]:
        assert f"{google_crc32c.value(vector['input'].encode()):08x}" == vector["output"]


def test_voters_decode_and_are_written_byte_for_byte(vectors: dict[str, list[Vector]]) -> None:
    (vector,) = vectors["VotersRecord"]
    fields, value = json.loads(vector["input"]["json"]), bytes.fromhex(vector["output"])
    decoded = RecordDecoder().decode_control(6, value)
    assert decoded == _with_defaults(CONTROL_RECORDS[6].body.fields, fields)
    assert kraft_encoding.control_record("VotersRecord", **fields) == (bytes.fromhex("00000006"), value)


def test_control_keys_name_their_type(vectors: dict[str, list[Vector]]) -> None:
    for vector in vectors["controlRecord.key"]:
        assert read_control_type(bytes.fromhex(vector["output"])) == CONTROL_NAMES[vector["input"]]


def test_no_vector_is_left_out(vectors: dict[str, list[Vector]]) -> None:
    counted = Counter({kind: len(found) for kind, found in vectors.items()})
    assert {kind: counted[kind] for kind in KINDS} == KINDS
