"""The time index of a segment."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import BrokerEffect, DamagedFileError
from layout.segment_files import TimeIndex, TimeIndexEntry, parse_time_index
from tests.layout.segment_files.segment_writers import time_index


@st.composite
def entries(draw: st.DrawFn) -> list[TimeIndexEntry]:
    """Entries from base offset 100 on; two of them may name the same record."""
    timestamps = sorted(draw(st.sets(st.integers(0, 2**63 - 1), max_size=9)))
    offsets = sorted(draw(st.lists(st.integers(0, 2**31 - 1), min_size=len(timestamps), max_size=len(timestamps))))
    found = [TimeIndexEntry(time, 100 + offset) for time, offset in zip(timestamps, offsets, strict=True)]
    return [] if found == [(0, 100)] else found


@given(entries(), st.integers(0, 9))
def test_what_was_written_is_read_and_preallocated_space_is_counted_apart(
    written: list[TimeIndexEntry], free: int
) -> None:
    found = parse_time_index(time_index(written, 100, preallocated=12 * free), 100)
    assert found == TimeIndex(tuple(written), 12 * free)


@given(st.binary(max_size=96))
def test_any_bytes_are_read_or_are_damage_that_says_so(data: bytes) -> None:
    try:
        found = parse_time_index(data, 0)
    except DamagedFileError as error:
        assert (error.file, error.effect) == ("time index", BrokerEffect.NONE)
    else:
        assert time_index(found.entries, 0, found.preallocated) == data


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (bytes(13), "13 bytes are no multiple of 12"),
        (struct.pack(">qiqi", 7, 1, 7, 2), "entry 1 has timestamp 7 at offset 102"),
        (struct.pack(">qiqi", 7, 2, 8, 1), "entry 1 has timestamp 8 at offset 101"),
        (struct.pack(">qi", -1, 1), "entry 0 has timestamp -1"),
        (struct.pack(">qi", 1, -1), "entry 0 has timestamp 1 at offset 99"),
    ],
)
def test_damage_is_named_with_the_entry(data: bytes, problem: str) -> None:
    with pytest.raises(DamagedFileError, match=problem):
        parse_time_index(data, 100)
