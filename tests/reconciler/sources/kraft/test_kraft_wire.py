"""Primitives and structs from bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.sources.kraft import Array, Field, Struct, Type, WireError
from reconciler.sources.kraft.wire import UNREADABLE, struct_reader, unsigned_varint, varint, varlong
from tools.writers import kraft_encoding


@given(st.integers(0, 2**32 - 1))
def test_an_unsigned_varint_comes_back(value: int) -> None:
    encoded = kraft_encoding.unsigned_varint(value)
    assert unsigned_varint(encoded + b"\x7f", 0) == (value, len(encoded))


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_varint_comes_back(value: int) -> None:
    encoded = kraft_encoding.varint(value)
    assert varint(encoded, 0) == (value, len(encoded))


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_varlong_comes_back(value: int) -> None:
    encoded = kraft_encoding.varint(value)
    assert varlong(encoded, 0) == (value, len(encoded))


def test_a_fifth_byte_with_its_top_bit_set_is_an_error() -> None:
    with pytest.raises(WireError, match="more than 5 bytes"):
        unsigned_varint(b"\x80\x80\x80\x80\x80\x01", 0)


def test_a_tenth_byte_with_its_top_bit_set_is_an_error() -> None:
    with pytest.raises(WireError, match="more than 10 bytes"):
        varlong(b"\x80" * 10 + b"\x01", 0)


def test_a_varint_that_the_bytes_cut_off_is_unreadable() -> None:
    with pytest.raises(UNREADABLE):
        unsigned_varint(b"\x80\x80", 0)


def test_a_count_beyond_the_bytes_at_hand_is_an_error_before_anything_is_made() -> None:
    # A count of 2^32 - 2 with nothing behind it.
    claims = b"\xff\xff\xff\xff\x0f"
    for kind in (Array(Type.INT32), Array(Type.STRING), Type.BYTES, Type.STRING):
        with pytest.raises(WireError, match="a length of"):
            struct_reader((Field("it", kind),), 0)(claims + b"\0", 0)


def test_null_is_an_error_where_the_field_cannot_be_null() -> None:
    with pytest.raises(WireError, match="null"):
        struct_reader((Field("name", Type.STRING),), 0)(b"\0\0", 0)
    assert struct_reader((Field("name", Type.STRING, nullable=True),), 0)(b"\0\0", 0) == ({"name": None}, 2)


@pytest.mark.parametrize("item", [Type.INT32, Type.STRING])
def test_a_list_can_be_null_empty_or_full(item: Type) -> None:
    reader = struct_reader((Field("list", Array(item), nullable=True),), 0)
    assert reader(b"\0\0", 0) == ({"list": None}, 2)
    assert reader(b"\x01\0", 0) == ({"list": ()}, 2)


def test_text_that_is_no_utf_8_is_unreadable() -> None:
    with pytest.raises(UNREADABLE):
        struct_reader((Field("name", Type.STRING),), 0)(b"\x02\xff\0", 0)


def test_a_field_of_a_later_version_has_its_default() -> None:
    fields = (Field("old", Type.INT8), Field("new", Type.INT16, since=1, default=-1))
    assert struct_reader(fields, 0)(b"\x05\0", 0) == ({"old": 5, "new": -1}, 2)
    assert struct_reader(fields, 1)(b"\x05\0\x07\0", 0) == ({"old": 5, "new": 7}, 4)


def test_an_unknown_tagged_field_is_stepped_over() -> None:
    reader = struct_reader((Field("known", Type.INT8, tag=1),), 0)
    # Two tagged fields: tag 0 with two bytes, which nobody knows, then tag 1 with the value 9.
    assert reader(b"\x02\x00\x02\xaa\xbb\x01\x01\x09", 0) == ({"known": 9}, 8)


def test_a_tagged_field_whose_size_is_not_that_of_its_value_is_an_error() -> None:
    reader = struct_reader((Field("known", Type.INT8, tag=1),), 0)
    with pytest.raises(WireError, match="has 2 bytes, but its value takes 1"):
        reader(b"\x01\x01\x02\x09\x00", 0)
    with pytest.raises(WireError, match="claims 5 bytes of 1"):
        reader(b"\x01\x01\x05\x09", 0)


def test_structs_nest_and_each_ends_with_its_own_tagged_fields() -> None:
    inner = Struct((Field("port", Type.UINT16), Field("name", Type.STRING)))
    reader = struct_reader((Field("list", Array(inner)), Field("one", inner)), 0)
    encoded = bytes.fromhex("022384026100000102620000")
    expected = {"list": ({"port": 9092, "name": "a"},), "one": {"port": 1, "name": "b"}}
    assert reader(encoded, 0) == (expected, len(encoded))


def test_equal_lists_are_kept_once() -> None:
    reader = struct_reader((Field("replicas", Array(Type.INT32)),), 0)
    encoded = bytes.fromhex("03000000010000000200")
    first, second = reader(encoded, 0)[0], reader(encoded, 0)[0]
    assert first["replicas"] == (1, 2)
    assert first["replicas"] is second["replicas"]
