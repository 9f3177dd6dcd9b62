"""The index of a segment's aborted transactions."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import BrokerEffect, DamagedFileError
from layout.segment_files import AbortedTransaction, parse_transaction_index
from tests.layout.segment_files.segment_writers import transaction_index

INT64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def entries(draw: st.DrawFn) -> list[AbortedTransaction]:
    """Transactions that end behind offset 100, and began wherever they did."""
    ends = sorted(draw(st.sets(st.integers(100, 2**63 - 1), max_size=6)))
    return [AbortedTransaction(draw(INT64), draw(st.integers(0, end)), end, draw(INT64)) for end in ends]


@given(entries())
def test_what_was_written_is_read(written: list[AbortedTransaction]) -> None:
    assert parse_transaction_index(transaction_index(written), 100) == written


@given(st.binary(max_size=140) | st.binary(min_size=32, max_size=32).map(lambda numbers: bytes(2) + numbers))
def test_any_bytes_are_read_or_are_damage_that_says_so(data: bytes) -> None:
    try:
        found = parse_transaction_index(data, 0)
    except DamagedFileError as error:
        assert (error.file, error.effect) == ("transaction index", BrokerEffect.NONE)
    else:
        assert transaction_index(found) == data


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (bytes(33), "33 bytes are no multiple of 34"),
        (struct.pack(">hqqqq", 1, 1000, 110, 120, 105), "entry 0 has version 1, expected 0"),
        (transaction_index([AbortedTransaction(1, 110, 109, 105)]), "entry 0 ends at offset 109: it began at 110"),
        (transaction_index([AbortedTransaction(1, 90, 99, 105)]), "entry 0 ends at offset 99"),
        (transaction_index([AbortedTransaction(1, 101, 120, 101)] * 2), "what stands before it ends at 120"),
    ],
)
def test_damage_is_named_with_the_entry(data: bytes, problem: str) -> None:
    with pytest.raises(DamagedFileError, match=problem):
        parse_transaction_index(data, 100)
