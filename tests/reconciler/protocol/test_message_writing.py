"""Write by a table: numbers at their limits, and values that do not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler.protocol import UnsupportedVersionError, encode_message
from reconciler.protocol.reading import read_string, read_varint
from reconciler.protocol.schema import INTS, Field, Struct
from reconciler.protocol.writing import tree_of, write_string, write_struct, write_varint
from tests.reconciler.protocol.control_requests import FULL, A, leader_and_isr, state, topic


@given(st.integers(0, 2**32 - 1))
def test_a_varint_reads_as_it_was_written(number: int) -> None:
    data = write_varint(number)
    assert read_varint(data, 0) == (number, len(data))


@given(st.text(max_size=300), st.booleans())
def test_a_string_reads_as_it_was_written(text: str, flexible: bool) -> None:
    data = write_string(text, flexible)
    assert read_string(data, 0, flexible) == (text, len(data))


@pytest.mark.parametrize("text", ["x" * 32768, "\ud800"])
def test_a_string_that_no_message_can_hold_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedVersionError):
        write_string(text, True)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_a_number_that_does_not_fit_is_refused(number: int) -> None:
    request = leader_and_isr(FULL, topic("a", A, replace(state(0), leader=number)))
    with pytest.raises(UnsupportedVersionError, match=f"leader = {number} does not fit its field"):
        encode_message(request, 7)
    lists = leader_and_isr(FULL, topic("a", A, replace(state(0), isr=(number,))))
    with pytest.raises(UnsupportedVersionError, match="does not fit"):
        encode_message(lists, 7)


TABLE = Struct(
    "t",
    (
        Field("id", "uuid"),
        Field("tagged", "int8", tag=3),
        Field("list", INTS, tag=1, default=()),
        Field("late", "int16", 2, ignorable=True),
        Field("strict", "bool", 2, default=False),
    ),
    lambda *values: values,
    tuple,
)


def test_tags_are_written_in_their_order_and_only_where_they_say_something() -> None:
    zero = bytes(16)
    assert write_struct(TABLE, (None, 0, (), 0, False), 1, True) == zero + b"\0"
    both = write_struct(TABLE, (A, 5, (1,), 0, False), 1, True)
    assert both == A.to_bytes() + b"\x02" + b"\x01\x05\x02\0\0\0\x01" + b"\x03\x01\x05"


def test_only_what_may_be_dropped_is_dropped() -> None:
    assert write_struct(TABLE, (None, 0, (), 7, False), 1, True) == bytes(17)
    with pytest.raises(UnsupportedVersionError, match="version 1 of t has no strict, and cannot say that it is True"):
        write_struct(TABLE, (None, 0, (), 0, True), 1, True)


def test_a_tree_has_the_fields_of_the_version() -> None:
    assert tree_of(TABLE, (None, 0, (4,), 7, False), 1) == {"id": str(TopicId.ZERO), "tagged": 0, "list": [4]}
    assert list(tree_of(TABLE, (A, 0, (), 7, True), 2)) == ["id", "tagged", "list", "late", "strict"]
