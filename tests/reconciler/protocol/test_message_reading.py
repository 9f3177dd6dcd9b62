"""Read by a table: wrong lengths, numbers at their limits, unknown tagged fields."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from reconciler.protocol import KIP516, decode_leader_and_isr, decode_stop_replica, encode_message, tables
from reconciler.protocol.reading import MAX_WEIGHT, Budget, read_string, read_varint, reader, skip_tags
from reconciler.protocol.schema import INTS, Field, MalformedMessageError, Struct
from tests.reconciler.protocol.control_requests import FULL, A, leader_and_isr, stop_replica, topic


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x00", 0),
        (b"\x7f", 127),
        (b"\x80\x01", 128),
        (b"\xff\xff\xff\xff\x0f", 2**32 - 1),
        (b"\x80\x80\x00", 0),  # longer than it need be, as Kafka's reader takes it
    ],
)
def test_a_varint_reads(data: bytes, value: int) -> None:
    assert read_varint(data + b"more", 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x80\x01", b"\xff" * 9])
def test_a_varint_of_more_than_32_bits_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessageError, match="more than 32 bits"):
        read_varint(data, 0)


@pytest.mark.parametrize(
    ("data", "flexible", "value"),
    [(b"\0\x02ab", False, "ab"), (b"\x03ab", True, "ab"), (b"\xff\xff", False, None), (b"\0", True, None)],
)
def test_a_string_reads_and_may_be_null(data: bytes, flexible: bool, value: str | None) -> None:
    assert read_string(data, 0, flexible) == (value, len(data))


@pytest.mark.parametrize(
    ("data", "flexible", "said"),
    [
        (b"\0\x03ab", False, "longer than what is left"),
        (b"\x04ab", True, "longer than"),
        (b"\x02\xff", True, "no UTF-8"),
    ],
)
def test_a_string_that_is_none_is_refused(data: bytes, flexible: bool, said: str) -> None:
    with pytest.raises(MalformedMessageError, match=said):
        read_string(data, 0, flexible)


def test_tags_that_nobody_knows_are_passed_over() -> None:
    # FACTS §5: every struct of a flexible version may carry them
    data = encode_message(stop_replica("a", 5, epoch=3), 4)
    assert data.endswith(b"\0\0\0")
    with_tags = data[:-1] + b"\x02" + b"\x07\x03abc" + b"\x88\x01\x00"
    assert decode_stop_replica(with_tags, 4) == decode_stop_replica(data, 4)
    assert skip_tags(b"\x01\x05\x02xy!", 0) == 5


@pytest.mark.parametrize("tags", [b"\x01\x07\x09abc", b"\x01\x07", b"\xff\xff\xff\xff\x0f"])
def test_tags_that_are_longer_than_the_message_are_refused(tags: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        decode_stop_replica(encode_message(stop_replica(), 4)[:-1] + tags, 4)


def test_a_known_tag_of_another_size_is_refused() -> None:
    data = encode_message(leader_and_isr(FULL), KIP516)
    assert data.endswith(b"\x01\x00\x01\x02")
    for tail in (b"\x01\x00\x02\x02\x02", b"\x01\x00\x00"):
        with pytest.raises(MalformedMessageError):
            decode_leader_and_isr(data[:-4] + tail, KIP516)


@pytest.mark.parametrize(("version", "count"), [(0, b"\xff\xff\xff\xff"), (4, b"\0"), (7, b"\0")])
def test_a_list_that_is_null_is_refused(version: int, count: bytes) -> None:
    data = encode_message(leader_and_isr(tables.RequestType.UNSPECIFIED), version)
    place = {0: 8, 4: 16, 7: 18}[version]
    with pytest.raises(MalformedMessageError, match="is null"):
        decode_leader_and_isr(data[:place] + count + data[place + len(count) :], version)


@pytest.mark.parametrize("count", [500, 10_000_000, 2**31 - 1])
def test_ten_million_partitions_that_are_not_there_cost_nothing(count: int) -> None:
    # A count that the bytes at hand cannot hold is refused before anything is made of it.
    lying = struct.pack(">iiqi", 1, 1, 1, 1) + b"\0\x01a" + struct.pack(">i", count) + bytes(1000)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessageError, match=f"it has {count} elements, more than there is room for"):
            decode_leader_and_isr(lying, 2)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_what_one_message_may_hold_is_bounded_even_where_the_bytes_are_there() -> None:
    many = MAX_WEIGHT // 8 + 1
    lying = struct.pack(">iiqi", 1, 1, 1, many) + bytes(6 * many)
    with pytest.raises(MalformedMessageError, match=f"more than one message may: a weight of {MAX_WEIGHT}"):
        decode_leader_and_isr(lying, 2)
    budget = Budget()
    budget.spend(MAX_WEIGHT)
    with pytest.raises(MalformedMessageError):
        budget.spend(1)


def test_lists_that_are_alike_are_one_object() -> None:
    read = decode_leader_and_isr(encode_message(leader_and_isr(FULL, topic("a", A, 0, 1)), 7), 7)
    one, other = read.topics[0].partitions
    assert one.replicas is other.replicas is one.isr


def test_a_field_that_a_version_lacks_has_its_default_in_its_place() -> None:
    table = Struct(
        "t",
        (
            Field("a", "int8"),
            Field("b", "int16", 2, default=-7),
            Field("c", "bool"),
            Field("d", INTS, 1, 1, default=(9,)),
            Field("e", "int64", 0, 0),
        ),
        lambda *values: values,
        tuple,
    )
    raw = b"\x05\x01" + struct.pack(">q", 6)
    assert reader(table, 0, False)(raw, 0, Budget()) == ((5, -7, True, (9,), 6), 10)
    assert reader(table, 1, False)(b"\x05\x00\0\0\0\x01\0\0\0\x02", 0, Budget()) == ((5, -7, False, (2,), 0), 10)
    assert reader(table, 2, True)(b"\x05\0\x03\x02\x00", 0, Budget()) == ((5, 3, True, (9,), 0), 5)
