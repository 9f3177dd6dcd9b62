"""One JSON object per file, and every reason at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import BrokerEffect, DamagedFileError
from layout.ids import DirectoryId, TopicId
from layout.json_text import FieldReader, is_int, parse_object, shown


def fields(**values: Any) -> FieldReader:
    return FieldReader(values, "a[0]", [])


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
    reader = FieldReader({"n": -3, "t": "", "i": zero})
    assert reader.integer("n") == -3
    assert reader.text("t", may_be_empty=True) == ""
    assert reader.id("i", TopicId) == TopicId.ZERO
    reader.check("x")


@pytest.mark.parametrize(
    ("text", "held"), [(r"\ud83d\ude00", True), (r"\udce9", True), (r"\ud83d", False), (r"\ude00", False)]
)
def test_half_a_surrogate_pair_is_no_text_unless_it_spells_a_byte(text: str, held: bool) -> None:
    reader = FieldReader(parse_object(f'{{"t": "{text}"}}'.encode(), "x"))
    found = reader.text("t")
    if held:
        reader.check("x")
        assert found.encode("utf-8", "surrogateescape")
    else:
        with pytest.raises(DamagedFileError, match="without halves of characters, found"):
            reader.check("x")


def test_all_reasons_come_in_one_error_in_the_order_of_reading() -> None:
    reader = FieldReader({"a": True, "b": "", "c": "short", "d": 5, "e": -1})
    reader.integer("a")
    reader.text("b")
    reader.id("c", DirectoryId)
    reader.id("d", DirectoryId)
    reader.id("absent", DirectoryId)
    reader.integer("e", bits=64, least=0)
    reader.integer("f", bits=16)
    reader.note("and one of the caller's")
    with pytest.raises(DamagedFileError) as raised:
        reader.check("x.json", BrokerEffect.LOG_DIR_OFFLINE)
    reasons = raised.value.problem.split("; ")
    assert [reason.split(" ")[0] for reason in reasons] == ["a:", "b:", "c:", "d:", "absent:", "e:", "f:", "and"]
    assert "d: expected an ID as a string, found 5" in reasons
    assert "e: expected an integer from 0 to 9223372036854775807, found -1" in reasons
    assert "f: missing" in reasons
    assert (raised.value.file, raised.value.effect) == ("x.json", BrokerEffect.LOG_DIR_OFFLINE)


def test_a_field_is_found_under_any_of_its_names() -> None:
    found = fields(zk_version=3, host="h")
    assert found.integer("partitionEpoch", "zkVersion", "zk_version") == 3
    assert found.text("hostName", "host") == "h"
    assert found.has("hostName", "host")
    assert found.raw("hostName", "host") == "h"
    assert found.reasons == []


def test_an_absent_field_is_a_reason_under_its_first_name() -> None:
    found = fields()
    assert found.integer("leader", "l") == 0
    assert found.text("topicName", "topic") == ""
    assert found.broker_ids("isr") == ()
    assert list(found.objects("topicStates", "topic_states")) == []
    assert found.reasons == ["a[0].leader: missing", "a[0].topicName: missing", "a[0].isr: missing",
                             "a[0].topicStates: missing"]  # fmt: skip


def test_a_field_with_a_default_may_be_absent() -> None:
    found = fields()
    assert found.integer("type", default=7) == 7
    assert found.boolean("isNew", default=True) is True
    assert found.broker_ids("addingReplicas", optional=True) == ()
    assert list(found.objects("liveLeaders", optional=True)) == []
    assert found.raw("type") is None
    assert found.reasons == []


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, [], {}, 2**64 - 1])
def test_what_is_no_integer_is_a_reason(value: object) -> None:
    found = fields(leader=value)
    assert found.integer("leader") == 0
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith("a[0].leader: expected an integer")


def test_an_integer_has_its_bounds() -> None:
    assert fields(x=2**31 - 1).integer("x") == 2**31 - 1
    assert fields(x=-(2**31)).integer("x") == -(2**31)
    assert fields(x=2**31).integer("x", bits=64) == 2**31
    outside = [fields(x=2**31), fields(x=-(2**31) - 1)]
    for found in outside:
        found.integer("x")
        assert found.reasons[0].startswith("a[0].x: expected an integer from -2147483648 to 2147483647")
    negative = fields(x=-1)
    negative.integer("x", least=0)
    assert negative.reasons == ["a[0].x: expected an integer from 0 to 2147483647, found -1"]


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_what_is_not_true_or_false_is_a_reason(value: object) -> None:
    found = fields(isNew=value)
    assert found.boolean("isNew", default=False) is False
    assert found.reasons[0].startswith("a[0].isNew: expected true or false")


@pytest.mark.parametrize("value", ["", 1, None, []])
def test_what_is_no_text_is_a_reason(value: object) -> None:
    found = fields(topicName=value)
    assert found.text("topicName") == ""
    assert found.reasons[0].startswith("a[0].topicName: expected a string")


def test_broker_ids_are_distinct_and_not_negative() -> None:
    assert fields(isr=[3, 1]).broker_ids("isr") == (3, 1)
    for value, place in [([1, -1], "isr[1]"), ([True], "isr[0]"), ([1, 1], "isr"), ({}, "isr"), ([2**31], "isr[0]")]:
        found = fields(isr=value)
        found.broker_ids("isr")
        assert found.reasons[0].startswith(f"a[0].{place}: expected")


def test_each_object_of_an_array_knows_its_place() -> None:
    found = fields(states=[{"x": 1}, 5, {"x": "y"}])
    assert [each.integer("x") for each in found.objects("topicStates", "states")] == [1, 0]
    assert found.reasons == [
        "a[0].states[1]: expected an object, found 5",
        'a[0].states[2].x: expected an integer, found "y"',
    ]


def test_a_child_that_is_no_object_is_a_reason() -> None:
    found = fields(request=[])
    assert found.child("request") is None
    assert found.child("absent") is None
    assert found.reasons[0] == "a[0].request: expected an object, found []"


def test_the_document_itself_must_be_an_object() -> None:
    reasons: list[str] = []
    assert FieldReader.of([], "", reasons) is None
    assert reasons == ["the document: expected an object, found []"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (True, "true"), (1, "1"), (1.0, "1.0"), ("x", '"x"'), ({"a": 1}, "an object"), ([1, 2], "[1,2]")],
)
def test_a_value_is_shown_as_json(value: object, text: str) -> None:
    assert shown(value) == text


def test_a_long_value_is_cut() -> None:
    assert len(shown("x" * 1000)) <= 42


def test_a_value_that_is_nested_too_deep_or_no_text_is_shown_too() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert shown(deep) == "an array that is nested too deep"
    assert shown("\ud83d") == '"\\ud83d"'
    assert len(shown("x" * 1000)) == 41
