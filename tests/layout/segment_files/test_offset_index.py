"""The offset index of a segment."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import BrokerEffect, DamagedFileError
from layout.segment_files import OffsetIndex, OffsetIndexEntry, parse_offset_index
from tests.layout.segment_files.segment_writers import offset_index

INT32 = st.integers(0, 2**31 - 1)


@st.composite
def entries(draw: st.DrawFn) -> list[OffsetIndexEntry]:
    """Entries from base offset 100 on; the last of them is no preallocated space, which is zeros."""
    offsets = sorted(draw(st.sets(INT32, max_size=9)))
    positions = sorted(draw(st.sets(INT32, min_size=len(offsets), max_size=len(offsets))))
    found = [OffsetIndexEntry(100 + offset, place) for offset, place in zip(offsets, positions, strict=True)]
    return [] if found == [(100, 0)] else found


@given(entries(), st.integers(0, 9))
def test_what_was_written_is_read_and_preallocated_space_is_counted_apart(
    written: list[OffsetIndexEntry], free: int
) -> None:
    found = parse_offset_index(offset_index(written, 100, preallocated=8 * free), 100)
    assert found == OffsetIndex(tuple(written), 8 * free)


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_are_damage_that_says_so(data: bytes) -> None:
    try:
        found = parse_offset_index(data, 0)
    except DamagedFileError as error:
        assert (error.file, error.effect) == ("offset index", BrokerEffect.NONE)
    else:
        assert offset_index(found.entries, 0, found.preallocated) == data


def test_a_first_entry_of_zeros_counts_where_another_one_follows() -> None:
    first, second = OffsetIndexEntry(100, 0), OffsetIndexEntry(150, 4096)
    assert parse_offset_index(offset_index([first, second], 100), 100).entries == (first, second)
    assert parse_offset_index(offset_index([first], 100), 100).entries == ()


def test_an_entry_whose_last_bytes_are_zeros_is_whole() -> None:
    entry = OffsetIndexEntry(100 + (1 << 24), 1 << 24)
    found = parse_offset_index(offset_index([entry], 100, preallocated=800), 100)
    assert (found.entries, found.preallocated) == ((entry,), 800)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (bytes(7), "7 bytes are no multiple of 8"),
        (struct.pack(">iiii", 5, 10, 5, 20), "entry 1 has offset 105 at position 20"),
        (struct.pack(">iiii", 5, 10, 6, 10), "entry 1 has offset 106 at position 10"),
        (struct.pack(">ii", -1, 10), "entry 0 has offset 99"),
        (struct.pack(">ii", 1, -10), "entry 0 has offset 101 at position -10"),
        (struct.pack(">iiii", 0, 0, 0, 9), "entry 1 has offset 100 at position 9"),
    ],
)
def test_damage_is_named_with_the_entry(data: bytes, problem: str) -> None:
    with pytest.raises(DamagedFileError, match=problem):
        parse_offset_index(data, 100)
