"""Frames, bodies and control keys; the bytes are those of FACTS §7.5."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler.protocol import METADATA_RECORDS, Array, Field, Kind, MalformedMessageError, Struct
from reconciler.sources.kraft import RecordDecoder, read_frame
from reconciler.sources.kraft import encoding as kraft_encoding
from reconciler.sources.kraft.records import Frame, read_control_type

BAR = TopicId.parse("cxBT72dK4si8Ied1iP4wBA").to_bytes()

SAMPLES = {
    "01020004626172731053ef674ae2c8bc21e77588fe300400": {"name": "bar", "topicId": BAR},
    "010900731053ef674ae2c8bc21e77588fe300400": {"topicId": BAR},
    "010c00116d657461646174612e76657273696f6e001500": {"name": "metadata.version", "featureLevel": 21},
    "01140000": {},
    "01170000": {"name": None},
    "01180000": {},
    "01190000": {"reason": None},
    "01010000000001000000000000000a00": {"brokerId": 1, "brokerEpoch": 10},
}


def _decode(value: bytes) -> dict[str, Any]:
    return RecordDecoder().decode(read_frame(value), value)


@pytest.mark.parametrize(("sample", "fields"), SAMPLES.items())
def test_a_sample_decodes(sample: str, fields: dict[str, Any]) -> None:
    assert _decode(bytes.fromhex(sample)) == fields


def test_the_change_of_a_partition_says_only_what_changes() -> None:
    sample = "01050000000000731053ef674ae2c8bc21e77588fe300402000d04000000010000000200000003010400000002"
    fields = _decode(bytes.fromhex(sample))
    assert (fields["isr"], fields["leader"], fields["partitionId"]) == ((1, 2, 3), 2, 0)
    assert (fields["replicas"], fields["directories"], fields["leaderRecoveryState"]) == (None, None, -1)


def test_a_version_above_the_highest_reads_as_the_highest() -> None:
    assert _decode(bytes.fromhex("01140500")) == {}
    assert _decode(bytes.fromhex("01020104626172731053ef674ae2c8bc21e77588fe300400")) == {"name": "bar", "topicId": BAR}


def test_numbers_of_a_frame_may_take_more_than_one_byte() -> None:
    assert read_frame(bytes.fromhex("01ff7f0000")) == Frame(16383, 0, 4)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "frame version cannot be read"),
        ("00", "frame version 0"),
        ("0f000000", "frame version 15"),
        ("0108ffffff7f", "record version 268435455 is above 32767"),
        ("0114", "record version cannot be read"),
        ("011400", "NoOpRecord version 0 cannot be read"),
        ("0114000009", "1 bytes of garbage"),
        ("01020000", "TopicRecord version 0 cannot be read"),
    ],
)
def test_a_value_that_is_no_record_says_why(value: str, said: str) -> None:
    with pytest.raises(MalformedMessageError, match=said):
        _decode(bytes.fromhex(value))


def test_the_layout_of_a_leader_change_goes_by_its_own_version() -> None:
    directory = "b37dc0757b6447c19fff144ef91fdda4"
    plain = bytes.fromhex("0000000000010200000001000100")
    with_directories = bytes.fromhex("0001000000010200000001" + directory + "000100")
    decoder = RecordDecoder()
    assert decoder.decode_control(2, plain)["voters"] == ({"voterId": 1, "voterDirectoryId": bytes(16)},)
    assert decoder.decode_control(2, with_directories)["voters"] == (
        {"voterId": 1, "voterDirectoryId": bytes.fromhex(directory)},
    )


def test_a_control_key_has_a_version_and_a_type() -> None:
    assert read_control_type(bytes.fromhex("00000003")) == 3
    assert read_control_type(bytes.fromhex("0001000600")) == 6
    for key in ("", "000000", "ffff0003"):
        with pytest.raises(MalformedMessageError, match="control record"):
            read_control_type(bytes.fromhex(key))


def _values(kind: Kind) -> st.SearchStrategy[Any]:
    """Values of a type in the form that a decoder gives."""
    if isinstance(kind, Struct):
        return st.fixed_dictionaries({field.name: _field_values(field) for field in kind.fields})
    if isinstance(kind, Array):
        return st.lists(_values(kind.item), max_size=3).map(tuple)
    bits = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
    if kind in bits:
        return st.integers(-(2 ** (bits[kind] - 1)), 2 ** (bits[kind] - 1) - 1)
    return {
        "uint16": st.integers(0, 65535),
        "float64": st.floats(allow_nan=False),
        "bool": st.booleans(),
        "uuid": st.binary(min_size=16, max_size=16),
        "string": st.text(max_size=200),
        "bytes": st.binary(max_size=200),
    }[kind]


def _field_values(field: Field) -> st.SearchStrategy[Any]:
    return st.none() | _values(field.kind) if field.nullable else _values(field.kind)


@given(st.data())
def test_every_record_of_every_version_comes_back(data: st.DataObject) -> None:
    message = data.draw(st.sampled_from(sorted(METADATA_RECORDS.values(), key=lambda message: message.key)))
    version = data.draw(st.integers(0, message.versions[-1]))
    fields = {
        field.name: data.draw(_field_values(field)) if field.first <= version else field.default
        for field in message.body.fields
    }
    value = kraft_encoding.record(message.name, version, **fields)
    assert read_frame(value)[:2] == (message.key, version)
    assert _decode(value) == fields


@given(st.binary(max_size=300), st.sampled_from(sorted(METADATA_RECORDS)), st.integers(0, 3))
def test_any_bytes_decode_or_say_that_they_do_not(body: bytes, number: int, version: int) -> None:
    value = bytes((1, number, version)) + body
    try:
        fields = _decode(value)
    except MalformedMessageError:
        return
    assert set(fields) == {field.name for field in METADATA_RECORDS[number].body.fields}
