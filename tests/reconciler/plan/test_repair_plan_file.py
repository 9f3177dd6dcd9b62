"""A plan of repairs reads back as it was written, and every path, sum or field that could do harm is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from layout.ours import MISSING, sum_of
from reconciler.errors import RefusedError
from reconciler.plan import (
    FILE_REPAIRS,
    REPAIRS,
    Action,
    ActionKind,
    KeptCopy,
    LeftAlone,
    Plan,
    PlannedLogDir,
    action_fields,
    encode_plan,
    parse_plan,
)
from reconciler.plan.file import sealed
from tests.reconciler.plan.plan_broker import sealed_again

ID = "UXyU9i5ARn6W00ON2taeWA"
SUM = sum_of(b"x")
WRITE = Action(
    *(ActionKind.WRITE_PARTITION_METADATA, "/d/1", "t-0/partition.metadata", "t", 0, None, ID, "NO_ID", "why"),
    inode=17,
    expects=MISSING,
    writes=SUM,
)
STAGE = Action(
    *(ActionKind.STAGE_DUPLICATE, "/d/1", "u-0", "u", 0, ID, None, "DUPLICATE", "why"),
    inode=18,
    expects=SUM,
    keeps=KeptCopy("/d/2", "u-0", 9, ID),
)
DROP = Action(
    *(ActionKind.DROP_CHECKPOINT_ENTRIES, "/d/1", "cleaner-offset-checkpoint", "", -1, None, None),
    *("CHECKPOINT_ENTRY", "why"),
    expects=SUM,
    writes=SUM,
    drops=("gone 3", "x -1"),
)
PLAN = sealed(
    Plan(
        *(1000, "h", "u", 5, {}),
        (PlannedLogDir("/d/1", "C", 1, ID, None), PlannedLogDir("/d/2", None, None, None, "/d/2.deleting")),
        ({"source": "kraft"},),
        (WRITE, STAGE, DROP),
        (LeftAlone("/d/1", "v-0", "DAMAGED", "not certain"),),
    )
)


def refused(change: Callable[[dict[str, Any]], Any], *, reseal: bool = True) -> str:
    """Why a plan is refused whose JSON was changed, by somebody who knows how to compute a fingerprint."""
    fields = json.loads(encode_plan(PLAN))
    change(fields)
    with pytest.raises(RefusedError) as raised:
        parse_plan(json.dumps(sealed_again(fields) if reseal else fields).encode())
    return str(raised.value)


def test_a_plan_reads_back_as_it_was_written() -> None:
    assert parse_plan(encode_plan(PLAN)) == replace(PLAN, left_alone=())
    assert PLAN.actions[2].dropped == {("gone", 3), ("x", -1)}


def test_an_action_on_a_file_of_the_log_dir_names_no_replica() -> None:
    assert not action_fields(DROP).keys() & {"topic", "partition", "topic_id", "inode", "fingerprint", "keeps"}
    assert action_fields(WRITE).keys() >= {"topic", "partition", "wanted_topic_id"}


def test_a_plan_that_was_changed_has_another_fingerprint() -> None:
    assert "something in it was changed" in refused(lambda fields: fields.update(created_ms=1001), reseal=False)
    assert "its fingerprint does not fit" in refused(lambda f: f["actions"][0].update(writes=MISSING), reseal=False)


@pytest.mark.parametrize(
    ("number", "path"),
    [
        (0, "../t-0/partition.metadata"),
        (0, "/etc/partition.metadata"),
        (0, "t-0/../../x/partition.metadata"),
        (0, "partition.metadata"),
        (0, "t-0/00000000000000000000.log"),
        (0, "meta.properties"),
        (0, "recovery-point-offset-checkpoint"),
        (1, "../1"),
        (1, ".."),
        (1, "/d/1/u-0"),
        (2, "meta.properties"),
        (2, "t-0/leader-epoch-checkpoint"),
        (2, "../cleaner-offset-checkpoint"),
    ],
)
def test_a_path_that_a_repair_has_no_business_with_is_refused(number: int, path: str) -> None:
    assert "is no place for" in refused(lambda fields: fields["actions"][number].update(name=path))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f["actions"][0].update(log_dir="/d/3"), "is none of the plan's"),
        (lambda f: f["actions"][1]["keeps"].update(log_dir="/d/3"), "no replica in one of the plan's log dirs"),
        (lambda f: f["actions"][1]["keeps"].update(name="../x"), "no replica in one of the plan's log dirs"),
        (lambda f: f["actions"][1].pop("keeps"), "keeps: expected an object"),
        (lambda f: f["log_dirs"][0].update(path="d/1"), "path: expected an absolute path"),
        (lambda f: f["log_dirs"][0].update(path="/d/../etc"), "path: expected an absolute path"),
        (lambda f: f["log_dirs"][0].update(node_id="one"), "node_id"),
        (lambda f: f["actions"][0].update(kind="format_disk"), "kind is 'format_disk'"),
        (lambda f: f["actions"][0].update(kind=["format_disk"]), "kind is ['format_disk']"),
        (lambda f: f["actions"][0].update(wanted_topic_id="A" * 22), "expected a topic ID"),
        (lambda f: f["actions"][0].update(wanted_topic_id="!"), "topic_id"),
        (lambda f: f["actions"][0].update(expects="anything"), "expects and writes"),
        (lambda f: f["actions"][0].pop("inode"), "inode: missing"),
        (lambda f: f["actions"][0].update(partition=-1), "partition: expected an integer from 0 to"),
        (lambda f: f["actions"][2].update(drops=["no partition"]), "expected a topic and a partition"),
        (lambda f: f["actions"][2].update(drops="gone 3"), "drops: expected a list"),
        (lambda f: f["actions"].append(f["actions"][0]), "stands there twice"),
        (lambda f: f["log_dirs"].append(f["log_dirs"][0]), "stands there twice"),
        (lambda f: f.update(actions={}), "actions: expected an array, found an object"),
        (lambda f: f.update(schema_version=2), "schema version 1 only"),
    ],
)
def test_what_breaks_a_rule_is_refused(change: Callable[[dict[str, Any]], Any], said: str) -> None:
    assert said in refused(change)


def test_all_reasons_come_at_once() -> None:
    def change(fields: dict[str, Any]) -> None:
        for action in fields["actions"]:
            action["log_dir"] = "/elsewhere"

    reasons = refused(change)
    assert all(f"action {number}:" in reasons for number in (1, 2, 3))


@pytest.mark.parametrize(
    "change",
    [
        {"drops": ["orders 0"], "lost": ["x"], "keeps": {"log_dir": "/etc"}, "expects": 7, "writes": []},
        {"data": "cm0gLXJmIC8=", "content": "anything"},
    ],
)
def test_a_field_that_an_action_has_no_use_for_is_not_believed(change: dict[str, Any]) -> None:
    stage = replace(STAGE, kind=ActionKind.STAGE, keeps=None, expects=None)
    document = json.loads(encode_plan(sealed(replace(PLAN, actions=(stage,)))))
    document["actions"][0].update(change)
    (read,) = parse_plan(json.dumps(sealed_again(document)).encode()).actions
    assert replace(read, fingerprint="") == stage


def test_a_plan_of_repairs_that_breaks_a_rule_is_not_written() -> None:
    with pytest.raises(RefusedError, match="is no place for"):
        encode_plan(sealed(replace(PLAN, actions=(replace(WRITE, name="../x"),))))


def test_every_repair_but_that_of_a_duplicate_changes_one_file() -> None:
    assert {ActionKind.STAGE_DUPLICATE} == REPAIRS - FILE_REPAIRS
    assert PLAN.repairs_only
    assert not replace(PLAN, actions=()).repairs_only
    assert not replace(PLAN, actions=(WRITE, replace(STAGE, kind=ActionKind.STAGE))).repairs_only


@pytest.mark.parametrize("path", ["meta.properties", "t-0/meta.properties.tmp", "../meta.properties.tmp", "t-0"])
def test_nothing_but_what_a_broker_leaves_behind_is_removed_as_that(path: str) -> None:
    leftover = replace(DROP, kind=ActionKind.REMOVE_LEFTOVER, name="meta.properties.tmp", drops=(), writes=MISSING)
    assert parse_plan(encode_plan(sealed(replace(PLAN, actions=(leftover,))))).actions[0].name == leftover.name
    with pytest.raises(RefusedError, match="is no place for"):
        encode_plan(sealed(replace(PLAN, actions=(replace(leftover, name=path),))))
