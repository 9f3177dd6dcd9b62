"""Every whole line of a damaged checkpoint stays, and no half line becomes an offset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout import checkpoint
from layout.checkpoint_salvage import pruned, rebuilt, salvage
from layout.errors import DamagedFileError

FILE = checkpoint.RECOVERY_POINT_CHECKPOINT


@pytest.mark.parametrize(
    ("data", "entries", "lost"),
    [
        (b"0\n2\norders 0 5\norders 1 7\n", {("orders", 0): 5, ("orders", 1): 7}, 0),
        (b"0\n9\norders 0 5\n", {("orders", 0): 5}, 0),
        (b"0\n2\norders 0 5\n\0\0\0\0\norders 1 7\n", {("orders", 0): 5, ("orders", 1): 7}, 1),
        (b"0\n2\norders 0 5\norders 1 1234", {("orders", 0): 5}, 1),
        (b"\0\0\0\0\0\0", {}, 1),
        (b"orders 0 5\n", {("orders", 0): 5}, 0),
        (b"0\n1\norders 0 99999999999999999999\n", {}, 1),
        (b"0\n1\norders -1 5\nx 0 -1\n", {}, 2),
        (b"0\n1\norders\xff 0 5\nx\x1b 0 5\n", {}, 2),
        (b"0\n1\norders 0 5\norders 0 6\n", {("orders", 0): 6}, 0),
        (b"", {}, 0),
    ],
)
def test_whole_lines_stay_and_the_rest_is_told(data: bytes, entries: dict[tuple[str, int], int], lost: int) -> None:
    found = salvage(data)
    assert (found.entries, len(found.lost)) == (entries, lost)
    assert checkpoint.parse_offsets(rebuilt(data, ()), FILE) == entries


def test_another_version_is_told_apart_from_damage() -> None:
    assert [salvage(data).version for data in (b"0\n0\n", b"7\n1\na 0 1\n", b"\0\n1\n", b"")] == [0, 7, None, None]


def test_what_is_lost_is_shown_without_steering_a_terminal_and_not_at_full_length() -> None:
    (line,) = salvage(b"\x1b[2J" + b"x" * 1000).lost
    assert line.isprintable() and len(line) < 200


def test_entries_can_be_left_out_of_sound_and_of_damaged_files() -> None:
    assert pruned(b"0\n2\na 0 1\nb 0 2\n", FILE, {("a", 0)}) == b"0\n1\nb 0 2\n"
    assert rebuilt(b"0\n3\na 0 1\nb 0 2\n", {("a", 0)}) == b"0\n1\nb 0 2\n"
    with pytest.raises(DamagedFileError):
        pruned(b"0\n3\na 0 1\n", FILE, ())


@given(st.binary())
def test_any_bytes_give_a_file_that_a_broker_reads(data: bytes) -> None:
    assert checkpoint.parse_offsets(rebuilt(data, ()), FILE) == salvage(data).entries


@given(st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), st.integers(0, 1 << 40)), st.data())
def test_a_file_that_was_cut_anywhere_keeps_only_true_entries(entries: dict[tuple[str, int], int], data) -> None:
    written = checkpoint.encode_offsets(entries)
    cut = data.draw(st.integers(0, len(written)))
    assert salvage(written[:cut]).entries.items() <= entries.items()
