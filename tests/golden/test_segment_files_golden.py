"""Golden vectors of the binary files beside a segment: bytes that Kafka's own classes wrote (FACTS §2.10, §2.11)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from layout.segment_files import (
    AbortedTransaction,
    OffsetIndexEntry,
    ProducerState,
    TimeIndexEntry,
    parse_offset_index,
    parse_producer_snapshot,
    parse_time_index,
    parse_transaction_index,
)
from logstore.fs import crc32c_of
from tests.layout.segment_files.segment_writers import (
    offset_index,
    producer_snapshot,
    time_index,
    transaction_index,
)

Vector = dict[str, Any]


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", text)]


def pairs(text: str) -> tuple[int, list[tuple[int, int]]]:
    """The base offset and the pairs of ``baseOffset 100; (1,2),(3,4)``."""
    base, *rest = numbers(text)
    return base, list(zip(rest[::2], rest[1::2], strict=True))


def state(text: str) -> ProducerState:
    """One producer of ``[{pid 1000, epoch 2, …},{…}]``; what is not said of it is not known."""
    said = dict(re.findall(r"(\w+) (-?\d+)", text))
    known = {name: int(value) for name, value in said.items() if value != "-1"}
    return ProducerState(
        known["pid"],
        known["epoch"],
        known.get("lastSeq"),
        known.get("lastOffset"),
        known.get("offsetDelta", 0),
        known["ts"],
        known.get("coordEpoch"),
        known.get("txnFirst"),
    )


@pytest.mark.shared(kinds=("producer.snapshot.bytes",))
def test_a_producer_snapshot_is_read_as_it_was_written(vector: Vector) -> None:
    states = [state(text) for text in re.findall(r"\{(.+?)\}", vector["input"])]
    assert len(states) == (2 if "pid" in vector["input"] else 0)
    assert parse_producer_snapshot(bytes.fromhex(vector["output"]), crc32c_of) == states
    assert producer_snapshot(states).hex() == vector["output"]


@pytest.mark.shared(kinds=("offset.index.bytes",))
def test_an_offset_index_is_read_as_it_was_written(vector: Vector) -> None:
    base, entries = pairs(vector["input"])
    found = parse_offset_index(bytes.fromhex(vector["output"]), base)
    assert (list(found.entries), found.preallocated) == ([OffsetIndexEntry(*entry) for entry in entries], 0)
    assert offset_index(found.entries, base).hex() == vector["output"]


@pytest.mark.shared(kinds=("time.index.bytes",))
def test_a_time_index_is_read_as_it_was_written(vector: Vector) -> None:
    base, entries = pairs(vector["input"])
    found = parse_time_index(bytes.fromhex(vector["output"]), base)
    assert (list(found.entries), found.preallocated) == ([TimeIndexEntry(*entry) for entry in entries], 0)
    assert time_index(found.entries, base).hex() == vector["output"]


@pytest.mark.shared(kinds=("txn.index.bytes",))
def test_a_transaction_index_is_read_as_it_was_written(vector: Vector) -> None:
    expected = [AbortedTransaction(*numbers(vector["input"]))]
    assert parse_transaction_index(bytes.fromhex(vector["output"]), 100) == expected
    assert transaction_index(expected).hex() == vector["output"]
