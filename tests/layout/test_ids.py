"""Topic IDs and directory IDs. KIP516-1."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import InvalidIdError
from layout.ids import DirectoryId, KafkaId, TopicId

RAW = st.binary(min_size=16, max_size=16)


@given(RAW)
def test_an_id_survives_text_hex_halves_and_bytes(raw: bytes) -> None:
    topic_id = TopicId(raw)
    assert topic_id.to_bytes() == raw
    assert TopicId.parse(str(topic_id)) == topic_id
    assert TopicId.from_hex(topic_id.hex) == topic_id
    assert TopicId.from_halves(*topic_id.halves) == topic_id


@given(RAW)
def test_the_text_has_22_characters_and_may_be_padded(raw: bytes) -> None:
    text = str(TopicId(raw))
    assert len(text) == 22
    assert TopicId.parse(text + "==") == TopicId(raw)


@given(RAW, st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"))
def test_the_unused_bits_of_the_last_character_do_not_count(raw: bytes, last: str) -> None:
    # 22 characters hold 132 bits: the last one gives 2 bits, so 16 texts name each ID.
    topic_id = TopicId.parse(str(TopicId(raw))[:21] + last)
    assert topic_id.to_bytes()[:15] == raw[:15]
    assert str(topic_id)[21] in "AQgw"


@pytest.mark.parametrize(
    "text",
    [
        *("", "A" * 20, "A" * 21, "A" * 23, "A" * 24, "A" * 25, "A" * 22 + "=", "A" * 22 + "===", "A" * 21 + "="),
        *("A" * 21 + "+", "A" * 21 + "/", " " + "A" * 22, "A" * 22 + " ", "A" * 22 + "\n", "A" * 21 + "é"),
        *("=" * 22, "A" * 21 + "\ud800", "A" * 21 + "\uff21", "00000000-0000-0000-0000-000000000000"),
    ],
)
def test_other_texts_are_no_id(text: str) -> None:
    with pytest.raises(InvalidIdError):
        TopicId.parse(text)


@pytest.mark.parametrize("text", ["", "0" * 31, "0" * 33, "0" * 31 + "A", "0" * 31 + "g", "0x" + "0" * 30])
def test_hex_is_32_lower_case_digits(text: str) -> None:
    with pytest.raises(InvalidIdError):
        TopicId.from_hex(text)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_an_id_has_16_bytes(size: int) -> None:
    with pytest.raises(InvalidIdError, match=str(size)):
        KafkaId(bytes(size))


def test_ids_order_by_signed_halves() -> None:
    # (-1, 0) has the greatest bytes and the smallest value.
    halves = [(-1, 0), (0, -1), (0, 0), (0, 1), (1, -1), (1, 0)]
    assert [topic_id.halves for topic_id in sorted(TopicId.from_halves(*pair) for pair in reversed(halves))] == halves


def test_a_topic_id_never_equals_a_directory_id() -> None:
    assert TopicId(bytes(16)) != DirectoryId(bytes(16))
    assert len({TopicId(bytes(16)), TopicId(bytes(16)), DirectoryId(bytes(16))}) == 2


@pytest.mark.parametrize(
    ("halves", "java_hash"), [((0, 0), 0), ((0, 2**31), -(2**31)), ((-1, 0), 0), ((1 << 32, 1), 0)]
)
def test_the_java_hash_folds_both_halves_into_32_signed_bits(halves: tuple[int, int], java_hash: int) -> None:
    # (-1, 0) differs in all 64 bits, so its two words of 32 ones cancel out; so do bit 32 and bit 0 of (1 << 32, 1).
    assert TopicId.from_halves(*halves).java_hash == java_hash


def test_only_the_zero_id_is_zero() -> None:
    assert TopicId.ZERO.is_zero
    assert not TopicId.METADATA.is_zero


def test_the_representation_names_the_class() -> None:
    assert repr(TopicId.METADATA) == "TopicId('AAAAAAAAAAAAAAAAAAAAAQ')"


@pytest.mark.parametrize(
    ("halves", "reserved"),
    [((0, 0), True), ((0, 99), True), ((0, 100), False), ((0, -1), True), ((1, 0), False), ((-1, 5), False)],
)
def test_reserved_directory_ids_are_found_by_a_signed_comparison(halves: tuple[int, int], reserved: bool) -> None:
    assert DirectoryId.from_halves(*halves).is_reserved is reserved


def test_a_random_topic_id_is_a_version_4_uuid() -> None:
    raw = TopicId.random(random.Random(1).randbytes).to_bytes()
    assert raw[6] >> 4 == 4
    assert raw[8] >> 6 == 0b10


def test_a_random_topic_id_whose_text_begins_with_a_dash_is_drawn_again() -> None:
    # The first character shows the first 6 bits; 62 prints as "-", so a first byte of 0xF8 leads to it.
    drawn = iter([b"\xf8" + bytes(15), b"\x01" * 16])
    assert not str(TopicId.random(lambda size: next(drawn))).startswith("-")
    assert not list(drawn)


def test_a_random_directory_id_is_neither_reserved_nor_taken_nor_begins_with_a_dash() -> None:
    taken, good = DirectoryId(b"\x02" * 16), DirectoryId(b"\x03" * 16)
    drawn = iter([bytes(16), taken.to_bytes(), b"\xf8" + bytes(15), good.to_bytes()])
    assert DirectoryId.random(lambda size: next(drawn), [taken]) == good


def test_a_directory_that_is_not_registered_is_offline_unless_none_is() -> None:
    one, other = DirectoryId(b"\x01" * 16), DirectoryId(b"\x02" * 16)
    assert one.is_online([one])
    assert not one.is_online([other])
    assert one.is_online([])
    assert not DirectoryId.LOST.is_online([])
    assert DirectoryId.UNASSIGNED.is_online([other]) and DirectoryId.MIGRATING.is_online([other])


@pytest.mark.parametrize("raw", ["x" * 16, "UXyU9i5ARn6W00ON2taeWA", 5, None, [0] * 16, b"x" * 15])
def test_what_is_not_16_bytes_is_no_id(raw: object) -> None:
    with pytest.raises(InvalidIdError, match="an ID has 16 bytes"):
        TopicId(raw)


@pytest.mark.parametrize("text", [5, None, b"UXyU9i5ARn6W00ON2taeWA"])
def test_what_is_no_text_is_no_id(text: object) -> None:
    for parse in (TopicId.parse, TopicId.from_hex, DirectoryId.parse):
        with pytest.raises(InvalidIdError, match="is no"):
            parse(text)


@pytest.mark.parametrize("half", [1 << 63, -(1 << 63) - 1, "0", None])
def test_a_half_is_a_signed_64_bit_number(half: object) -> None:
    with pytest.raises(InvalidIdError, match="is no half of an ID"):
        TopicId.from_halves(0, half)
