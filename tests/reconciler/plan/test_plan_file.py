"""The file of a plan: lines may be taken out of it, and nothing else may be changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.errors import RefusedError
from reconciler.plan import Plan, PlanChoice, Policy, encode_plan, parse_plan
from tests.reconciler.plan.plan_broker import CLICKS, GONE, HOUR_MS, OLD, ORDERS, PlanBroker, edited, without


@pytest.fixture
def broker(tmp_path: Path) -> PlanBroker:
    made = PlanBroker(tmp_path)
    made.wanted("orders", ORDERS, 0)
    made.replica("orders-0", OLD)
    made.replica("clicks-0", CLICKS)
    made.replica("gone-0", GONE)
    return made


@pytest.fixture
def plan(broker: PlanBroker) -> Plan:
    return broker.plan()


def test_it_is_json_with_one_action_to_a_line(plan: Plan) -> None:
    data = encode_plan(plan)
    document = json.loads(data)
    assert [action["name"] for action in document["actions"]] == ["clicks-0", "gone-0", "orders-0"]
    assert [action["bytes"] for action in document["actions"]] == [143] * 3
    on_disk = sum(action["disk_bytes"] for action in document["actions"])
    assert document["totals"] == {"stage": {"actions": 3, "bytes": on_disk}}
    assert [json.loads(line.strip().rstrip(",")) for line in data.decode().splitlines() if '{"kind"' in line] == (
        document["actions"]
    )


@pytest.mark.parametrize("gone", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_any_lines_may_be_taken_out(plan: Plan, gone: tuple[int, ...]) -> None:
    read = parse_plan(without(plan, *gone))
    assert read.actions == tuple(each for number, each in enumerate(plan.actions) if number not in gone)
    assert read.log_dirs == plan.log_dirs


def test_the_same_plan_as_other_json_is_the_same_plan(plan: Plan) -> None:
    assert parse_plan(json.dumps(json.loads(encode_plan(plan)), indent=7).encode()).actions == plan.actions


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "orders-9"), ("inode", 1), ("topic_id", str(ORDERS)), ("bytes", 0), ("kind", "create"),
        ("verdict", "OK"), ("undo", "rm -rf /"), ("partition", 7), ("more", 1),
    ],
)  # fmt: skip
def test_an_action_that_was_changed_is_refused(plan: Plan, field: str, value: object) -> None:
    with pytest.raises(RefusedError, match="action 1: it was changed, or comes from another plan"):
        parse_plan(edited(plan, **{field: value}))


def test_a_line_of_another_plan_is_refused(broker: PlanBroker, plan: Plan) -> None:
    broker.clock.advance(HOUR_MS)
    other = json.loads(encode_plan(broker.plan(PlanChoice(Policy.kip516()))))
    document = json.loads(encode_plan(plan))
    document["actions"][1] = other["actions"][1]
    with pytest.raises(RefusedError, match="action 2: it was changed, or comes from another plan"):
        parse_plan(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("field", "value"), [("host", "another"), ("created_ms", 1), ("delay_ms", 0), ("log_dirs", []), ("metadata", [])]
)
def test_a_head_that_was_changed_is_refused(plan: Plan, field: str, value: object) -> None:
    document = json.loads(encode_plan(plan)) | {field: value}
    with pytest.raises(RefusedError, match="something in it was changed"):
        parse_plan(json.dumps(document).encode())


def test_a_line_that_stands_there_twice_is_refused(plan: Plan) -> None:
    document = json.loads(encode_plan(plan))
    document["actions"].append(document["actions"][0])
    with pytest.raises(RefusedError, match="stands there twice"):
        parse_plan(json.dumps(document).encode())


def test_nonsense_is_refused_with_all_its_reasons(plan: Plan) -> None:
    nonsense = {"kind": "explode", "log_dir": "/elsewhere", "name": "../../etc", "partition": -1, "topic_id": "x"}
    with pytest.raises(RefusedError) as caught:
        parse_plan(edited(plan, **nonsense), "plan.json")
    number = "partition: expected an integer from 0 to 2147483647, found -1"
    for reason in ("plan.json", "explode", "/elsewhere", "../../etc", number, "topic_id", "make a new plan"):
        assert reason in str(caught.value)


def test_no_more_than_twenty_reasons_are_listed(plan: Plan) -> None:
    document = json.loads(encode_plan(plan))
    document["actions"] = [{"kind": [number]} for number in range(50)]
    with pytest.raises(RefusedError, match="and 80 more"):
        parse_plan(json.dumps(document).encode())


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"null", b"\xff", b"[" * 10**5, b'{"actions": 1}', b'{"schema_version": 2}', b"{" * 10**5],
)
def test_what_is_no_plan_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(RefusedError, match="make a new plan"):
        parse_plan(data)
