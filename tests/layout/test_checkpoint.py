"""Offset checkpoints and leader epoch checkpoints, and what is salvaged of damaged ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout import checkpoint
from layout.checkpoint import (
    AFTER_A_BAD_NUMBER,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    OFFSET_CHECKPOINTS,
    RECOVERY_POINT_CHECKPOINT,
    encode_leader_epochs,
    encode_offsets,
    parse_leader_epochs,
    parse_offsets,
    pruned,
    rebuilt,
    salvage,
)
from layout.errors import BrokerEffect, DamagedFileError, InvalidNameError

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TOPIC = st.text(alphabet="abcXYZ019._-:é", min_size=1, max_size=12)


@given(st.dictionaries(st.tuples(TOPIC, INT32), INT64, max_size=6))
def test_offsets_survive_a_round_trip_in_order(entries: dict[tuple[str, int], int]) -> None:
    read = parse_offsets(encode_offsets(entries), RECOVERY_POINT_CHECKPOINT)
    assert list(read.items()) == list(entries.items())


@given(st.lists(st.tuples(INT32, INT64), max_size=6))
def test_leader_epochs_survive_a_round_trip_in_order(entries: list[tuple[int, int]]) -> None:
    assert parse_leader_epochs(encode_leader_epochs(entries)) == entries


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["foo", "foo-1", "a:b", "~", "\x7f"]),
            st.sampled_from(["0", "007", "+1", "-1", "999999999", "2147483648", "x"]),
            st.sampled_from(["5", "-1", "999999999999999999", "9223372036854775808", ""]),
        ),
        max_size=4,
    ),
    st.integers(-1, 5),
)
def test_how_a_file_spells_its_line_ends_changes_nothing(lines: list[tuple[str, str, str]], count: int) -> None:
    data = "".join(f"{line}\n" for line in ("0", str(count), *(" ".join(fields) for fields in lines))).encode()

    def read(text: bytes) -> object:
        try:
            return parse_offsets(text, CLEANER_CHECKPOINT)
        except DamagedFileError as error:
            return str(error), error.effect

    assert read(data) == read(data.replace(b"\n", b"\r\n"))


def test_the_frame_is_a_version_a_count_and_one_line_for_each_entry() -> None:
    assert encode_offsets({("foo", 1): 5, ("bar", 2): 10}) == b"0\n2\nfoo 1 5\nbar 2 10\n"
    assert encode_leader_epochs([]) == b"0\n0\n"


@pytest.mark.parametrize("topic", ["", "a b", "a\n", "\t"])
def test_a_topic_that_no_reader_could_take_apart_is_not_written(topic: str) -> None:
    with pytest.raises(InvalidNameError):
        encode_offsets({(topic, 0): 1})


@pytest.mark.parametrize("data", [b"", b"0", b"0\n", b"0\r\n", b"0\n0", b"0\n0\n", b"+0\n-0\n"])
def test_a_file_without_entries_is_empty_and_no_damage(data: bytes) -> None:
    assert parse_offsets(data, HIGH_WATERMARK_CHECKPOINT) == {}
    assert parse_leader_epochs(data) == []


@pytest.mark.parametrize(
    "line", [b"foo 1 5", b"foo\t1  5", b"foo 1 5 \t", b"foo +1 005", "foo ١ ٥".encode(), b"foo \x0b\x0c1 5"]
)
def test_white_space_signs_and_leading_zeros_do_not_matter(line: bytes) -> None:
    assert parse_offsets(b"0\n1\n" + line, CLEANER_CHECKPOINT) == {("foo", 1): 5}
    assert parse_offsets(b"0\r\n1\r\n" + line + b"\r\n", CLEANER_CHECKPOINT) == {("foo", 1): 5}


def test_of_a_partition_given_twice_the_last_entry_counts() -> None:
    assert parse_offsets(b"0\n2\nfoo 1 5\nfoo 1 4\n", CLEANER_CHECKPOINT) == {("foo", 1): 4}


@pytest.mark.parametrize("file", [*OFFSET_CHECKPOINTS, LEADER_EPOCH_CHECKPOINT])
@pytest.mark.parametrize(
    "data",
    [
        b"1\n0\n",
        b"-1\n0\n",
        b"x\n",
        b" 0\n",
        b"\n",
        b"0\nx\n",
        b"0\n 0\n",
        b"0\n\n",
        b"0\n2147483648\n",
        b"0\n2\n1 1 1\n",
        b"0\n0\n\n",
        b"0\n1\n\n",
        b"0\n1\n1\n",
        b"0\n1\n1 1 1 1\n",
        b"0\n1\n\xff 1 1\n",
        b"0\n2147483647\n",
    ],
)
def test_a_broken_frame_takes_the_log_dir_offline(file: str, data: bytes) -> None:
    with pytest.raises(DamagedFileError) as raised:
        if file == LEADER_EPOCH_CHECKPOINT:
            parse_leader_epochs(data)
        else:
            parse_offsets(data, file)
    assert raised.value.file == file
    assert raised.value.effect is BrokerEffect.LOG_DIR_OFFLINE


@pytest.mark.parametrize("data", [b"0\n-1\n", b"0\n1\nfoo x 1\n", b"0\n1\nfoo 1 9223372036854775808\n"])
@pytest.mark.parametrize("file", OFFSET_CHECKPOINTS)
def test_a_bad_number_in_an_offset_checkpoint_ends_no_startup(data: bytes, file: str) -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse_offsets(data, file)
    assert raised.value.effect is BrokerEffect.NONE
    assert AFTER_A_BAD_NUMBER[file].startswith("a broker")


@pytest.mark.parametrize("data", [b"0\n-1\n", b"0\n1\nx 1\n", b"0\n1\n2147483648 0\n", b"0\n1\n 1\n"])
def test_a_bad_number_in_a_leader_epoch_checkpoint_ends_the_startup(data: bytes) -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse_leader_epochs(data)
    assert raised.value.effect is BrokerEffect.STARTUP_ABORTS


def test_leading_white_space_makes_an_empty_first_field() -> None:
    with pytest.raises(DamagedFileError, match="expected 3 fields"):
        parse_offsets(b"0\n1\n foo 1 5\n", CLEANER_CHECKPOINT)
    # With a field too few after it, Java's split takes the empty one for the topic.
    assert parse_offsets(b"0\n1\n 1 5\n", CLEANER_CHECKPOINT) == {("", 1): 5}


@given(st.binary(max_size=40) | st.lists(st.sampled_from([b"0", b"1", b" ", b"\n", b"foo", b"-1"])).map(b"".join))
def test_any_bytes_give_entries_or_our_own_error(data: bytes) -> None:
    try:
        read = parse_offsets(data, LOG_START_CHECKPOINT)
    except DamagedFileError:
        return
    assert all(-(2**63) <= offset < 2**63 for offset in read.values())


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
def test_whole_lines_stay_and_the_others_are_lost(data: bytes, entries: dict[tuple[str, int], int], lost: int) -> None:
    found = salvage(data)
    assert (found.entries, len(found.lost)) == (entries, lost)
    assert checkpoint.parse_offsets(rebuilt(data, ()), FILE) == entries


def test_another_version_is_not_taken_for_damage() -> None:
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
