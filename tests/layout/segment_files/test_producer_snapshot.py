"""Snapshots of producers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import BrokerEffect, DamagedFileError
from layout.segment_files import ProducerState, parse_producer_snapshot
from logstore.fs import crc32c_of
from tests.layout.segment_files.segment_writers import producer_snapshot

FROM_0 = {bits: st.integers(0, 2 ** (bits - 1) - 1) for bits in (16, 32, 64)}
STATES = st.builds(
    ProducerState,
    FROM_0[64],
    FROM_0[16],
    st.none() | FROM_0[32],
    st.none() | FROM_0[64],
    FROM_0[32],
    FROM_0[64],
    st.none() | FROM_0[32],
    st.none() | FROM_0[64],
)
ONE = ProducerState(1000, 2, 9, 50, 3, 1_700_000_000_000, 7, 42)


@given(st.lists(STATES, max_size=5))
def test_what_was_written_is_read(written: list[ProducerState]) -> None:
    assert parse_producer_snapshot(producer_snapshot(written), crc32c_of) == written


@given(st.binary(max_size=120))
def test_any_bytes_are_damage_that_says_so(data: bytes) -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse_producer_snapshot(data, crc32c_of)
    assert (raised.value.file, raised.value.effect) == ("producer snapshot", BrokerEffect.NONE)


@given(st.integers(0, 8 * len(producer_snapshot([ONE])) - 1))
def test_no_bit_can_change_unseen(bit: int) -> None:
    data = bytearray(producer_snapshot([ONE]))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DamagedFileError):
        parse_producer_snapshot(bytes(data), crc32c_of)


def test_an_empty_snapshot_is_the_one_that_a_broker_writes() -> None:
    # FACTS §2.10
    assert producer_snapshot([]).hex() == "000148674bc700000000"
    assert parse_producer_snapshot(bytes.fromhex("000148674bc700000000"), crc32c_of) == []


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "0 bytes are fewer than the 10 of its header"),
        (producer_snapshot([ONE], version=2), "version 2 is not known"),
        (producer_snapshot([ONE])[:-1], "its CRC-32C is .* is noted"),
        (producer_snapshot([ONE], number=2), "56 bytes do not hold the 2 producers"),
        (producer_snapshot([ONE], number=-1), "the -1 producers"),
    ],
)
def test_damage_is_named(data: bytes, problem: str) -> None:
    with pytest.raises(DamagedFileError, match=problem):
        parse_producer_snapshot(data, crc32c_of)


def test_bytes_behind_the_last_producer_count_for_the_checksum_alone() -> None:
    longer = producer_snapshot([ONE, ONE], number=1)
    assert parse_producer_snapshot(longer, crc32c_of) == [ONE]
