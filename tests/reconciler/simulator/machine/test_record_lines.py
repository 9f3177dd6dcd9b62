"""Lines of records: written, read again, and recognised where a crash tore them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.simulator.kernel import Record
from reconciler.simulator.machine import decode_records
from reconciler.simulator.machine.record_lines import encode_record
from tests.reconciler.simulator.machine.brokers import A, B

RECORDS = [Record(0, 0, A, "order 17"), Record(1, 0, None, ""), Record(2, 4, B, "größer  ")]
LINES = [encode_record(record) for record in RECORDS]


def test_records_come_back_as_they_were() -> None:
    records, ends = decode_records(b"".join(LINES))
    assert records == RECORDS
    assert ends == [len(LINES[0]), len(LINES[0] + LINES[1]), len(b"".join(LINES))]


def test_a_line_can_be_read_by_a_person() -> None:
    assert LINES[0].decode().split(" ", 1)[1] == f"0 0 {A} order 17\n"


@pytest.mark.parametrize("cut", range(1, len(LINES[2])))
def test_what_was_cut_short_is_left_out(cut: int) -> None:
    assert decode_records(b"".join(LINES)[:-cut])[0] == RECORDS[:2]


@pytest.mark.parametrize("place", range(len(LINES[1])))
def test_nothing_counts_behind_a_byte_that_was_lost(place: int) -> None:
    damaged = LINES[1][:place] + b"\0" + LINES[1][place + 1 :]
    assert decode_records(LINES[0] + damaged + LINES[2])[0] == RECORDS[:1]


def test_a_whole_record_that_stands_in_the_wrong_place_is_none() -> None:
    assert decode_records(LINES[0] + LINES[2]) == ([RECORDS[0]], [len(LINES[0])])


def test_a_line_whose_checksum_is_right_but_which_says_nothing_is_none() -> None:
    for text in (b"0 0", b"x 0 - v", b"0 0 not-an-id v", b"\xff 0 - v"):
        import zlib

        assert decode_records(b"%08x %b\n" % (zlib.crc32(text), text)) == ([], [])


def test_a_value_with_a_line_break_is_refused() -> None:
    with pytest.raises(ValueError, match="line break"):
        encode_record(Record(0, 0, A, "two\nlines"))


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange_to_be_read(data: bytes) -> None:
    records, ends = decode_records(LINES[0] + data)
    assert records[0] == RECORDS[0]
    assert len(ends) == len(records)
