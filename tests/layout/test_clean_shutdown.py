"""The mark of a clean shutdown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.clean_shutdown import combined_epoch, encode, parse_broker_epoch


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_broker_epoch_survives_a_round_trip(epoch: int) -> None:
    assert parse_broker_epoch(encode(epoch)) == epoch


def test_the_file_is_one_json_object_without_a_line_end() -> None:
    assert encode(10) == b'{"version":0,"brokerEpoch":10}'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"{}",
        b"[]",
        b"{",
        b"\xff",
        b'{"version":0}',
        b'{"brokerEpoch":"10"}',
        b'{"brokerEpoch":true}',
        b'{"brokerEpoch":9223372036854775808}',
    ],
)
def test_an_empty_file_and_any_damage_mean_no_epoch(data: bytes) -> None:
    assert parse_broker_epoch(data) is None


@pytest.mark.parametrize(
    ("epochs", "combined"), [([], None), ([3], 3), ([3, 3], 3), ([3, 4], None), ([3, None], None), ([None], None)]
)
def test_the_epoch_counts_only_when_every_log_dir_says_the_same(epochs: list[int | None], combined: int | None) -> None:
    assert combined_epoch(epochs) == combined


@given(st.binary(max_size=40))
def test_no_bytes_raise_anything(data: bytes) -> None:
    epoch = parse_broker_epoch(data)
    assert epoch is None or -(2**63) <= epoch < 2**63
