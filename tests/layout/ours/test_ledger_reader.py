"""The fast path of reading a ledger, for lines as staging writes nearly all of them, and its blocks."""

from __future__ import annotations

import json
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.directory_name import live_name, parse_staged, staged_name
from layout.errors import DamagedFileError
from layout.ids import TopicId
from layout.ours import (
    LedgerEvent,
    StagedRecord,
    check_record,
    encode_event,
    encode_mark,
    encode_staged,
    ledger_reader,
    parse_ledger,
)
from tests.layout.ours.test_ledger import ledger_of, line
from tests.layout.ours.test_staged_record import RECORDS

TOPIC_ID = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")
WHY = ("STALE_ID", "the topic was re-created", 1_700_000_000_000, 1_700_604_800_000)


def regular(partition: int) -> tuple[str, StagedRecord]:
    """Name and record of a replica as staging writes nearly all of them."""
    record = StagedRecord("orders", partition, TOPIC_ID, live_name("orders", partition), *WHY)
    return staged_name(TOPIC_ID, partition), record


def staged_but(place: int, value: object) -> bytes:
    """A line of a regular replica with another value in one place."""
    values = json.loads(encode_staged(*regular(1))[9:])
    values[place] = value
    return line(*values)


def parsed_after_one_of_its_topic(bad: bytes) -> tuple[set[str], list[str]]:
    """The names and the reasons of damaged lines, where the line before was read by the fast path."""
    data = ledger_of(encode_staged(*regular(0)), bad)
    found = parse_ledger(data + encode_mark(len(data)))
    return set(found.entries), [each.reason for each in found.damaged]


def test_what_staging_writes_is_regular_until_anything_else_is_said() -> None:
    lines = [encode_staged(*regular(number)) for number in range(3)]
    entries = parse_ledger(ledger_of(*lines)).entries
    assert {name: entry.record for name, entry in entries.items()} == dict(map(regular, range(3)))
    assert all(entry.is_regular for entry in entries.values())
    for event in set(LedgerEvent) - {LedgerEvent.STAGED}:
        after = parse_ledger(ledger_of(*lines, encode_event(event, regular(0)[0]))).entries
        assert [entry.is_regular for entry in after.values()] == [False, True, True]


@pytest.mark.parametrize(
    "value",
    [
        *((place, value) for place in (2, 3, 5, 6, 7) for value in (1, None, ["orders"], {}, "")),
        *((place, value) for place in (4, 8, 9) for value in (True, 1.0, "1", None, -1, 1 << 63)),
        *((11, value) for value in ([], 0, "", None, False, {"other": 1})),
        (5, "../orders-1"),
        (5, "orders-1\0"),
        (9, WHY[2] - 1),
        (10, "tenant"),
    ],
)
def test_a_value_that_no_release_writes_is_as_bad_on_the_fast_path(value: tuple[int, object]) -> None:
    names, reasons = parsed_after_one_of_its_topic(staged_but(*value))
    if value == (7, ""):
        assert (len(names), reasons) == (2, []), "evidence may be empty"
    else:
        assert (len(names), len(reasons)) == (1, 1)


def test_a_namespace_that_is_left_out_is_bad_on_the_fast_path_too() -> None:
    values = json.loads(encode_staged(*regular(1))[9:])
    values[2], values[5] = "tenant:orders", "tenant:orders-1"
    names, (reason,) = parsed_after_one_of_its_topic(line(*values))
    assert len(names) == 1
    assert "namespace is ''" in reason


def test_all_that_stands_before_the_last_bad_line_is_in_doubt_whatever_is_wrong_with_the_others() -> None:
    lines = [line("restored", ""), encode_staged(*regular(0)), b"damaged\n", encode_staged(*regular(1))]
    data = ledger_of(*lines)
    found = parse_ledger(data + encode_mark(len(data)))
    assert [each.number for each in found.damaged] == [2, 4]
    assert [(entry.in_doubt, entry.is_regular) for entry in found.entries.values()] == [(True, False), (False, True)]


def test_an_empty_line_is_nothing_bad() -> None:
    data = ledger_of(encode_staged(*regular(0)), b"\n\n", encode_staged(*regular(1)))
    found = parse_ledger(data + encode_mark(len(data)))
    assert (len(found.entries), found.damaged, found.torn) == (2, [], [])


def test_values_nested_without_end_are_bad_and_cost_that_line_alone() -> None:
    text = b"[" * 100_000 + b"]" * 100_000
    names, (reason,) = parsed_after_one_of_its_topic(b"%08x %b\n" % (crc32(text), text))
    assert (len(names), reason) == (1, "it is no array")


@pytest.mark.parametrize("topic", ["orders\0", ""])
def test_a_topic_that_no_path_can_hold_is_bad_though_its_path_is_made_of_it(topic: str) -> None:
    values = json.loads(encode_staged(*regular(1))[9:])
    values[2], values[5] = topic, f"{topic}-1"
    names, reasons = parsed_after_one_of_its_topic(line(*values))
    assert (len(names), len(reasons)) == (1, 1)


@pytest.mark.parametrize("kind", [["purging"], {"purging": 1}, None, 3])
def test_an_event_that_is_no_text_is_bad(kind: object) -> None:
    names, (reason,) = parsed_after_one_of_its_topic(line(kind, regular(0)[0]))
    assert len(names) == 1
    assert "is no event" in reason


def test_a_mark_with_a_value_more_is_bad_and_says_nothing_of_what_was_durable() -> None:
    values = json.loads(encode_mark(1 << 40)[9:])
    names, reasons = parsed_after_one_of_its_topic(line(*values, 1))
    assert (len(names), len(reasons)) == (1, 1)


@given(st.lists(RECORDS, min_size=1, max_size=4))
def test_a_regular_entry_keeps_every_rule_that_the_slow_path_checks(records: list[StagedRecord]) -> None:
    lines = [encode_staged(f"{each.topic_id}_{each.partition}", each) for each in records]
    for name, entry in parse_ledger(ledger_of(*lines, *lines)).entries.items():
        if entry.is_regular and entry.record is not None:
            check_record(entry.record)
            read = parse_staged(name)
            assert (read.topic_id, read.partition) == (entry.record.topic_id, entry.record.partition)
            assert entry.record.path == f"{entry.record.topic}-{entry.record.partition}"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("UXyU9i5ARn6W00ON2taeWA_1.2", {}),
        ("UXyU9i5ARn6W00ON2taeWA_2", {}),
        (None, {"path": "elsewhere-1"}),
        (None, {"topic": "tenant/orders", "path": "tenant/orders-1"}),
        (None, {"topic": "__cluster_metadata", "path": "__cluster_metadata-1"}),
        (None, {"evidence": "caf\u00e9"}),
        (None, {"checkpoints": {"recovery-point-offset-checkpoint": 3}}),
    ],
)
def test_what_wants_a_closer_look_is_read_and_not_regular(name: str | None, changes: dict[str, object]) -> None:
    own, record = regular(1)
    changed = record._replace(**changes)  # type: ignore[arg-type]
    entries = parse_ledger(ledger_of(encode_staged(*regular(0)), encode_staged(name or own, changed))).entries
    entry = entries[name or own]
    assert (entry.record, entry.is_regular) == (changed, False)


def test_a_topic_id_in_a_text_that_is_not_canonical_is_never_regular() -> None:
    name, record = regular(1)
    other = "UXyU9i5ARn6W00ON2taeWB"
    values = json.loads(encode_staged(name, record)[9:])
    values[1], values[3] = f"{other}_1", other
    entry = parse_ledger(ledger_of(encode_staged(*regular(0)), line(*values))).entries[f"{other}_1"]
    assert (entry.record, entry.is_regular) == (record, False)


@given(bad=st.sets(st.integers(0, 59)), block=st.integers(1, 1000), zeros=st.integers(0, 5000))
def test_it_makes_no_difference_where_a_block_ends_and_how_much_space_follows(
    bad: set[int], block: int, zeros: int
) -> None:
    lines = [b"damaged\n" if number in bad else encode_staged(*regular(number)) for number in range(60)]
    data = ledger_of(*lines)
    data += encode_mark(len(data))
    whole = parse_ledger(data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ledger_reader, "_BLOCK", block)
        assert parse_ledger(data + bytes(zeros)) == whole
    assert len(whole.entries) == 60 - len(bad)
    assert [each.number for each in whole.damaged] == [number + 2 for number in sorted(bad)]


@pytest.mark.parametrize("version", [(2,), (1, 2), ()])
def test_a_later_release_is_refused_wherever_its_header_stands(version: tuple[int, ...]) -> None:
    with pytest.raises(DamagedFileError, match="schema version 1 only"):
        parse_ledger(ledger_of(encode_staged(*regular(0)), line("logstore-ledger", *version)))
