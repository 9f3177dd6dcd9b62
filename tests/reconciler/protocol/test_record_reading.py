"""Primitives and structs of records from bytes: dicts by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.protocol import (
    UNREADABLE,
    Array,
    Budget,
    Field,
    MalformedMessageError,
    read_long_zigzag,
    read_varint,
    read_zigzag,
    reader,
    write_zigzag,
)
from reconciler.protocol.schema import Kind, Primitive, dict_struct


def read(fields: tuple[Field, ...], data: bytes, version: int = 0) -> tuple[dict[str, Any], int]:
    """The dict of some fields, and the offset behind it."""
    return reader(dict_struct("it", *fields), version, True)(data, 0, Budget())


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_signed_varint_comes_back(value: int) -> None:
    encoded = write_zigzag(value)
    assert read_zigzag(encoded + b"\x7f", 0) == (value, len(encoded))


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_signed_varint_of_64_bits_comes_back(value: int) -> None:
    encoded = write_zigzag(value)
    assert read_long_zigzag(encoded, 0) == (value, len(encoded))


def test_a_tenth_byte_with_its_top_bit_set_is_an_error() -> None:
    with pytest.raises(MalformedMessageError, match="more than 64 bits"):
        read_long_zigzag(b"\x80" * 10 + b"\x01", 0)


def test_a_varint_that_the_bytes_cut_off_is_unreadable() -> None:
    with pytest.raises(UNREADABLE):
        read_varint(b"\x80\x80", 0)


@pytest.mark.parametrize("kind", [Array("int32"), Array("string"), "bytes", "string"])
def test_a_count_beyond_the_bytes_at_hand_is_an_error_before_anything_is_made(kind: Kind) -> None:
    # A count of 2^32 - 2 with nothing behind it.
    with pytest.raises(MalformedMessageError, match=r"more than there is room for|longer than what is left"):
        read((Field("it", kind),), b"\xff\xff\xff\xff\x0f" + b"\0")


def test_null_is_an_error_where_the_field_cannot_be_null() -> None:
    with pytest.raises(MalformedMessageError, match="null"):
        read((Field("name", "string"),), b"\0\0")
    assert read((Field("name", "string", nullable=True),), b"\0\0") == ({"name": None}, 2)


@pytest.mark.parametrize("item", ["int32", "string"])
def test_a_list_can_be_null_empty_or_full(item: Primitive) -> None:
    fields = (Field("list", Array(item), nullable=True),)
    assert read(fields, b"\0\0") == ({"list": None}, 2)
    assert read(fields, b"\x01\0") == ({"list": ()}, 2)


def test_text_that_is_no_utf_8_is_unreadable() -> None:
    with pytest.raises(UNREADABLE):
        read((Field("name", "string"),), b"\x02\xff\0")


def test_a_field_of_a_later_version_has_its_default() -> None:
    fields = (Field("old", "int8"), Field("new", "int16", first=1, default=-1))
    assert read(fields, b"\x05\0") == ({"old": 5, "new": -1}, 2)
    assert read(fields, b"\x05\0\x07\0", 1) == ({"old": 5, "new": 7}, 4)


def test_an_unknown_tagged_field_is_stepped_over() -> None:
    # Two tagged fields: tag 0 with two bytes, which nobody knows, then tag 1 with the value 9.
    known = (Field("known", "int8", tag=1), Field("not sent", "int8", tag=2, default=-1))
    assert read(known, b"\x02\x00\x02\xaa\xbb\x01\x01\x09") == ({"known": 9, "not sent": -1}, 8)


def test_a_tagged_field_whose_size_is_not_that_of_its_value_is_an_error() -> None:
    known = (Field("known", "int8", tag=1),)
    with pytest.raises(MalformedMessageError, match="has 2 bytes, and its known takes 1"):
        read(known, b"\x01\x01\x02\x09\x00")
    with pytest.raises(MalformedMessageError, match="tag 1 at byte 3 is longer than what is left"):
        read(known, b"\x01\x01\x05\x09")


def test_structs_nest_and_each_ends_with_its_own_tagged_fields() -> None:
    inner = dict_struct("inner", Field("port", "uint16"), Field("name", "string"))
    encoded = bytes.fromhex("022384026100000102620000")
    expected = {"list": ({"port": 9092, "name": "a"},), "one": {"port": 1, "name": "b"}}
    assert read((Field("list", Array(inner)), Field("one", inner)), encoded) == (expected, len(encoded))


def test_equal_lists_are_kept_once_and_lists_of_another_kind_are_no_equals() -> None:
    fields = dict_struct("it", Field("replicas", Array("int32")), Field("directories", Array("uuid")))
    encoded = b"\x05" + bytes(16) + b"\x02" + bytes(16) + b"\0"
    budget, read_it = Budget(), reader(fields, 0, True)
    first, second = read_it(encoded, 0, budget)[0], read_it(encoded, 0, budget)[0]
    assert first == {"replicas": (0, 0, 0, 0), "directories": (bytes(16),)}
    assert first["replicas"] is second["replicas"]
    assert first["directories"] is second["directories"]
