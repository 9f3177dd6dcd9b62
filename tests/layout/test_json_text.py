"""One JSON object per file, and every reason at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import BrokerEffect, DamagedFileError
from layout.ids import DirectoryId, TopicId
from layout.json_text import FieldReader, is_int, parse_object


def test_an_object_comes_back_as_a_dict() -> None:
    assert parse_object(b'{"a": 1, "b": [true, null]}', "x") == {"a": 1, "b": [True, None]}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not JSON"),
        (b"[]", "not list"),
        (b"null", "not NoneType"),
        (b"{} {}", "not JSON"),
        (b'{"a": 1, "a": 2}', "'a'"),
        (b'{"a": {"b": 1, "b": 1}}', "'b'"),
        (b'{"a": \xff}', "not UTF-8 at byte 6"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"a": ' + b"[" * 100_000, "nested too deep"),
        (b"{" + b",".join(b'"k%d": 0' % (n // 2) for n in range(400)) + b"}", "given twice"),
    ],
)
def test_anything_but_one_object_is_damage(data: bytes, problem: str) -> None:
    with pytest.raises(DamagedFileError, match=problem) as raised:
        parse_object(data, "some.json", BrokerEffect.STARTUP_ABORTS)
    assert raised.value.file == "some.json"
    assert raised.value.effect is BrokerEffect.STARTUP_ABORTS


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,0a\\u', max_size=40).map(str.encode))
def test_any_bytes_give_an_object_or_our_own_error(data: bytes) -> None:
    try:
        fields = parse_object(data, "x")
    except DamagedFileError:
        return
    assert isinstance(fields, dict)


@pytest.mark.parametrize("value", [True, 1.0, "1", None, 2**31, -(2**31) - 1])
def test_booleans_floats_and_wide_numbers_are_no_int32(value: object) -> None:
    assert not is_int(value, 32)


def test_the_bounds_of_a_width_belong_to_it() -> None:
    assert is_int(2**31 - 1, 32) and is_int(-(2**31), 32)
    assert is_int(2**63 - 1, 64) and not is_int(2**63, 64)


def test_fields_of_the_right_type_come_back_as_they_are() -> None:
    zero = "AAAAAAAAAAAAAAAAAAAAAA"
    reader = FieldReader({"n": -3, "t": "", "i": zero}, "x")
    assert reader.integer("n", 32) == -3
    assert reader.text("t", may_be_empty=True) == ""
    assert reader.id("i", TopicId) == TopicId.ZERO
    reader.check()


@pytest.mark.parametrize(
    ("text", "held"), [(r"\ud83d\ude00", True), (r"\udce9", True), (r"\ud83d", False), (r"\ude00", False)]
)
def test_half_a_surrogate_pair_is_no_text_unless_it_spells_a_byte(text: str, held: bool) -> None:
    reader = FieldReader(parse_object(f'{{"t": "{text}"}}'.encode(), "x"), "x")
    found = reader.text("t")
    if held:
        reader.check()
        assert found.encode("utf-8", "surrogateescape")
    else:
        with pytest.raises(DamagedFileError, match="expected text"):
            reader.check()


def test_all_reasons_come_in_one_error_in_the_order_of_reading() -> None:
    reader = FieldReader({"a": True, "b": "", "c": "short", "d": 5, "e": -1}, "x.json", BrokerEffect.LOG_DIR_OFFLINE)
    reader.integer("a", 32)
    reader.text("b")
    reader.id("c", DirectoryId)
    reader.id("d", DirectoryId)
    reader.integer("e", 64, least=0)
    reader.integer("f", 16)
    reader.note("and one of the caller's")
    with pytest.raises(DamagedFileError) as raised:
        reader.check()
    assert [reason.split(" ")[0] for reason in raised.value.problem.split("; ")] == [
        "a",
        "b",
        "c:",
        "d",
        "e",
        "f",
        "and",
    ]
    assert "f is missing, expected an int16" in raised.value.problem
    assert "e is -1, expected an int64 from 0 on" in raised.value.problem
    assert raised.value.effect is BrokerEffect.LOG_DIR_OFFLINE
