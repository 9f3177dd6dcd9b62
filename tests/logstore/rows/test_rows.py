from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logstore.rows import VARYING, Columns, Row, by_column, concat_columns, plain_row, utf8


def test_bytes_that_are_not_utf8_are_escapes_in_text_that_arrow_can_hold() -> None:
    name = b"caf\xc3\xa9\xff-0".decode("utf-8", "surrogateescape")
    assert utf8(name) == "café\\xff-0"
    assert utf8("plain") == "plain"


def test_a_plain_row_has_a_value_for_each_column_and_each_in_its_place() -> None:
    row = plain_row(
        "a-0", "live", topic="a", partition=0, metadata_state="ok", problem="odd", inode=7, end_offset=42
    )  # fmt: skip
    assert {name: value for name, value in zip(VARYING, row, strict=True) if value is not None} == {
        "name": "a-0", "kind": "live", "topic": "a", "partition": 0, "metadata_state": "ok", "problem": "odd",
        "inode": 7, "end_offset": 42,
    }  # fmt: skip


@given(pieces=st.lists(st.lists(st.tuples(st.text(max_size=3), st.integers()), max_size=4), min_size=1, max_size=5))
def test_columns_of_pieces_joined_are_the_columns_of_all_their_rows(pieces: list[list[tuple[str, int]]]) -> None:
    rows: list[list[Row]] = [[plain_row(name, "live", inode=inode) for name, inode in piece] for piece in pieces]
    found: Columns = concat_columns([by_column(piece) for piece in rows])
    together = [row for piece in rows for row in piece]
    assert len(found) == len(VARYING)
    assert list(zip(*found, strict=True)) == together
