"""Typed fields of JSON: accepted values, and a reason with its place for every wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.protocol import INT64, JsonFields
from reconciler.protocol.json_fields import shown


def fields(**values: Any) -> JsonFields:
    return JsonFields(values, "a[0]", [])


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
    assert fields(x=2**31).integer("x", bound=INT64) == 2**31
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
    assert JsonFields.of([], "", reasons) is None
    assert reasons == ["the document: expected an object, found []"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (True, "true"), (1, "1"), (1.0, "1.0"), ("x", '"x"'), ({"a": 1}, "an object"), ([1, 2], "[1,2]")],
)
def test_a_value_is_shown_as_json(value: object, text: str) -> None:
    assert shown(value) == text


def test_a_long_value_is_cut() -> None:
    assert len(shown("x" * 1000)) <= 42
