"""The ledger of a staging folder: what its lines say, what a crash or a bad disk costs, and when it is compacted."""

from __future__ import annotations

import json
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import DamagedFileError
from layout.ours import (
    BadLine,
    Ledger,
    LedgerEntry,
    LedgerEvent,
    StagedRecord,
    encode_compacted,
    encode_event,
    encode_header,
    encode_mark,
    encode_staged,
    is_worth_compacting,
    parse_ledger,
)
from tests.layout.ours.test_staged_record import RECORD, RECORDS

A, B, C = (f"{RECORD.topic_id}_{number}" for number in range(3))
STAGED, RESTORED, PURGING, PURGED, KEPT = LedgerEvent
NAMES = st.sampled_from([A, B, C, "orders-0.0123456789abcdef0123456789abcdef-stray", "caf\udce9-0"])


def ledger_of(*lines: bytes) -> bytes:
    return b"".join([encode_header(), *lines])


def line(*values: object) -> bytes:
    """A line with a sound checksum, whatever it says."""
    text = json.dumps(values).encode("ascii")
    return b"%08x %b\n" % (crc32(text), text)


def staged_but(place: int, value: object) -> bytes:
    """A staged line with another value in one place."""
    values = json.loads(encode_staged(A, RECORD)[9:])
    values[place] = value
    return line(*values)


OTHER_TYPES = [
    *((place, value) for place in (2, 3, 5, 6, 7) for value in (1, None, ["orders"], {})),
    *((place, value) for place in (4, 8, 9) for value in (True, 1.0, "1", None)),
    *((11, value) for value in ([], 0, "", None, False)),
]
"""Place among the values of a staged line, and what JSON may hold there instead."""


STAGED_A, STAGED_B, STAGED_C = (encode_staged(name, RECORD) for name in (A, B, C))


@given(st.dictionaries(st.text(min_size=1), RECORDS, max_size=4))
def test_a_staged_line_survives_a_round_trip(records: dict[str, StagedRecord]) -> None:
    data = ledger_of(*(encode_staged(name, record) for name, record in records.items()))
    assert data.isascii()
    found = parse_ledger(data)
    assert found.entries == {name: LedgerEntry(STAGED, record) for name, record in records.items()}
    assert (found.torn, found.damaged, found.end, found.lines) == ([], [], len(data), len(records))


def test_a_name_that_is_not_utf_8_survives_too() -> None:
    record = RECORD._replace(path=b"caf\xe9-0".decode("utf-8", "surrogateescape"))
    data = ledger_of(encode_staged("caf\udce9-0", record))
    assert parse_ledger(data).entries == {"caf\udce9-0": LedgerEntry(STAGED, record)}


def test_a_line_is_a_checksum_and_a_json_array() -> None:
    assert encode_header() == b'ca904aed ["logstore-ledger",1]\n'
    assert encode_event(PURGING, A).partition(b" ")[2] == b'["purging","UXyU9i5ARn6W00ON2taeWA_0"]\n'
    assert json.loads(STAGED_A.partition(b" ")[2]) == [
        *("staged", A, "org:apache:orders", "UXyU9i5ARn6W00ON2taeWA", 3, "org/apache/orders-3", "STALE_ID"),
        *("the cluster knows orders under another ID", 1_700_000_000_000, 1_700_014_400_000, "org:apache"),
        {"recovery-point-offset-checkpoint": 42, "cleaner-offset-checkpoint": -1},
    ]


def test_no_record_is_written_that_no_reader_would_believe() -> None:
    with pytest.raises(DamagedFileError, match="due_ms"):
        encode_staged(A, RECORD._replace(due_ms=0))
    with pytest.raises(ValueError, match="holds a record"):
        encode_event(STAGED, A)


@given(st.lists(st.tuples(st.sampled_from(LedgerEvent), NAMES), max_size=12))
def test_the_newest_line_about_a_name_counts(events: list[tuple[LedgerEvent, str]]) -> None:
    expected: dict[str, LedgerEntry] = {}
    for event, name in events:
        former = expected.get(name)
        record = RECORD if event is STAGED else None if former is None else former.record
        expected[name] = LedgerEntry(STAGED if event is KEPT else event, record)
    data = ledger_of(*(encode_staged(name, RECORD) if event is STAGED else encode_event(event, name)
                       for event, name in events))  # fmt: skip
    assert parse_ledger(data).entries == expected


def test_what_was_purged_or_may_have_been_is_never_whole() -> None:
    whole = {event: not LedgerEntry(event, RECORD).may_be_partly_purged for event in LedgerEvent}
    assert whole == {STAGED: True, RESTORED: True, PURGING: False, PURGED: False, KEPT: True}
    begun = LedgerEntry(PURGING, RECORD)
    assert LedgerEntry.after(begun, PURGED).may_be_partly_purged
    assert LedgerEntry.after(begun, KEPT) == LedgerEntry(STAGED, RECORD), "the purge ended before it touched it"
    assert LedgerEntry.after(None, PURGING) == LedgerEntry(PURGING, None)


@given(st.integers(0, 4000))
def test_the_space_that_is_kept_means_nothing(kept: int) -> None:
    data = ledger_of(STAGED_A)
    assert parse_ledger(data + bytes(kept)) == parse_ledger(data)


def test_an_empty_file_and_one_of_zeros_say_nothing() -> None:
    for data in (b"", bytes(100)):
        assert parse_ledger(data) == Ledger()


@given(cut=st.integers(0, len(STAGED_B) - 1), kept=st.sampled_from([0, 500]))
def test_a_torn_last_line_costs_nothing_else(cut: int, kept: int) -> None:
    whole = ledger_of(STAGED_A, encode_mark(len(ledger_of(STAGED_A))))
    found = parse_ledger(whole + STAGED_B[:cut] + bytes(kept))
    assert found.entries == {A: LedgerEntry(STAGED, RECORD)}
    assert found.damaged == []
    assert found.torn == ([BadLine(4, len(whole), cut, "its end is missing")] if cut else [])
    assert found.end == len(whole) + cut


@given(first=st.integers(0, 3000), length=st.integers(1, 600))
def test_what_a_crash_leaves_of_an_append_is_torn_and_whole_lines_of_it_are_read(first: int, length: int) -> None:
    durable = ledger_of(STAGED_A)
    appended = encode_mark(len(durable)) + STAGED_B + STAGED_C
    first = min(first, len(appended) - 1)
    torn = appended[:first] + bytes(length) + appended[first + length :]
    found = parse_ledger(durable + torn[: len(appended)])
    assert found.entries.keys() >= {A}
    assert set(found.entries) <= {A, B, C}
    mark_is_whole = first >= len(encode_mark(len(durable)))
    if mark_is_whole:
        assert found.damaged == []
    assert not found.entries[A].in_doubt or not mark_is_whole


@given(st.integers(0, len(STAGED_B) - 1), st.integers(1, 255))
def test_a_bad_line_in_the_middle_is_damaged_and_costs_that_line_alone(place: int, flipped: int) -> None:
    before, after = ledger_of(STAGED_A), STAGED_C
    bad = bytearray(STAGED_B)
    bad[place] ^= flipped
    whole = before + bytes(bad) + after
    found = parse_ledger(whole + encode_mark(len(whole)))
    assert found.entries.keys() - {B} == {A, C}
    assert B not in found.entries or found.entries[B].record == RECORD
    assert found.torn == []
    assert found.damaged
    assert all(each.number in {3, 4} for each in found.damaged)
    assert (found.entries[A].in_doubt, found.entries[C].in_doubt) == (True, False)


def test_a_lost_line_break_costs_neither_of_two_lines() -> None:
    whole = ledger_of(STAGED_A[:-1] + b"\0" + STAGED_B, STAGED_C)
    found = parse_ledger(whole + encode_mark(len(whole)))
    assert set(found.entries) == {A, B, C}
    assert [each.number for each in found.damaged] == [2]


def test_the_furthest_mark_says_what_was_durable() -> None:
    data = ledger_of(STAGED_A)
    data += encode_mark(len(data)) + b"damaged\n" + STAGED_B
    found = parse_ledger(data + encode_mark(len(data)))
    assert (found.durable, len(found.damaged), found.torn) == (len(data), 1, [])


def test_lines_without_a_break_between_them_are_older_than_the_next_line() -> None:
    whole = ledger_of(STAGED_A[:-1] + b"\0" + encode_event(PURGING, A), encode_event(KEPT, A))
    found = parse_ledger(whole + encode_mark(len(whole)))
    assert found.entries == {A: LedgerEntry(STAGED, RECORD)}


def test_a_zeroed_part_costs_the_lines_in_it_alone() -> None:
    whole = ledger_of(STAGED_A, bytes(len(STAGED_B)), STAGED_C)
    found = parse_ledger(whole + encode_mark(len(whole)))
    assert set(found.entries) == {A, C}
    assert len(found.damaged) == 1


def test_a_lost_header_is_told_and_costs_nothing_else() -> None:
    data = b"x" + ledger_of(STAGED_A)
    found = parse_ledger(data + encode_mark(len(data)))
    assert set(found.entries) == {A}
    assert [(each.number, each.offset) for each in found.damaged] == [(1, 0)]


def test_after_a_damaged_line_it_is_in_doubt_whether_a_purge_has_begun() -> None:
    damaged = bytearray(encode_event(PURGING, A))
    damaged[3] ^= 1
    for later, doubt in ((b"", True), (encode_event(PURGING, A), False)):
        data = ledger_of(STAGED_A, bytes(damaged), later)
        assert parse_ledger(data + encode_mark(len(data))).entries[A].in_doubt is doubt


def test_between_two_damaged_lines_nothing_is_certain_either() -> None:
    data = ledger_of(b"damaged\n", STAGED_A, b"damaged\n", STAGED_B)
    entries = parse_ledger(data + encode_mark(len(data))).entries
    assert (entries[A].in_doubt, entries[B].in_doubt) == (True, False)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (line("staged", A), "12 values were expected, not 2"),
        (line("staged", A, *json.loads(STAGED_A[9:])[2:10], "other", {}), "namespace is 'other'"),
        *((staged_but(place, value), "another type") for place, value in OTHER_TYPES),
        (staged_but(8, 1_700_014_400_001), "lies before staged_ms"),
        (line("staged", A, "orders", "short", *json.loads(STAGED_A[9:])[4:]), "short"),
        (line("staged", A, *json.loads(STAGED_A[9:])[2:5], "../up", *json.loads(STAGED_A[9:])[6:]), "path"),
        (line("finished", A), "'finished', which is no event"),
        (line("purging", A, 1), "'purging', which is no event"),
        (line("purging"), "names no directory"),
        (line("purging", ""), "names no directory"),
        (line(), "no array"),
        (b"%08x nonsense\n" % crc32(b"nonsense"), "no array"),
    ],
)
def test_a_line_that_says_what_no_release_writes_is_bad_whatever_its_checksum(bad: bytes, reason: str) -> None:
    whole = ledger_of(STAGED_B, bad)
    found = parse_ledger(whole + encode_mark(len(whole)))
    assert set(found.entries) == {B}
    (told,) = found.damaged
    assert reason in told.reason
    assert (told.number, told.offset, told.length) == (3, len(ledger_of(STAGED_B)), len(bad) - 1)


def test_a_ledger_of_a_later_release_is_refused_whole() -> None:
    with pytest.raises(DamagedFileError, match=r"ledger: it says \[2\]; this release reads schema version 1 only"):
        parse_ledger(line("logstore-ledger", 2) + STAGED_A)


def compacted(data: bytes, *kept: str) -> bytes:
    return encode_compacted(parse_ledger(data), kept, data)


def test_compaction_keeps_what_is_said_of_the_directories_that_are_there() -> None:
    data = ledger_of(STAGED_A, STAGED_B, STAGED_C, encode_event(PURGING, A), encode_event(RESTORED, C))
    new = compacted(data, A, B)
    found = parse_ledger(new)
    assert found.entries == {A: LedgerEntry(PURGING, RECORD), B: LedgerEntry(STAGED, RECORD)}
    assert (found.lines, found.damaged, found.torn, found.end) == (3, [], [], len(new))
    assert compacted(new, A, B) == new


@given(
    st.lists(st.tuples(st.sampled_from(LedgerEvent), NAMES, st.booleans()), max_size=12),
    st.sets(NAMES),
)
def test_compaction_changes_nothing_about_what_is_kept_and_keeps_the_damage(
    events: list[tuple[LedgerEvent, str, bool]], kept: set[str]
) -> None:
    lines = []
    for event, name, is_bad in events:
        text = bytearray(encode_staged(name, RECORD) if event is STAGED else encode_event(event, name))
        if is_bad:
            text[2] = ord("x")
        lines.append(bytes(text))
    data = ledger_of(*lines)
    data += encode_mark(len(data))
    before, after = parse_ledger(data), parse_ledger(compacted(data, *kept))
    assert after.entries == {name: entry for name, entry in before.entries.items() if name in kept}
    assert [each.length for each in after.damaged] == [each.length for each in before.damaged]


def test_it_is_compacted_when_what_means_nothing_outweighs_the_rest_and_is_not_little() -> None:
    gone = [encode_staged(f"{A}.{number}", RECORD) for number in range(2, 6)]
    ledger = parse_ledger(ledger_of(STAGED_A, STAGED_B, STAGED_C, *gone))
    assert is_worth_compacting(ledger, [A, B, C], least=4)
    assert not is_worth_compacting(ledger, [A, B, C], least=5)
    assert not is_worth_compacting(ledger, [A, B, C, f"{A}.2"], least=1)
    assert not is_worth_compacting(Ledger(), [], least=1)


def test_both_lines_about_what_is_purged_mean_something_while_it_is_there() -> None:
    lines = [STAGED_A, encode_event(PURGING, A), STAGED_B, encode_event(PURGING, B), STAGED_C]
    ledger = parse_ledger(ledger_of(*lines))
    assert (ledger.lines_of([A, B]), ledger.lines_of([C])) == (4, 1)
    assert not is_worth_compacting(ledger, [A, B], least=1)
    assert is_worth_compacting(ledger, [C], least=1)
