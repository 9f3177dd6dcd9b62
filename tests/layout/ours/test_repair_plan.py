"""A plan reads back as it was written, and every path, sum or field that could do harm is refused with all reasons."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from layout import meta_properties
from layout.errors import DamagedFileError
from layout.ours import (
    BROKER_TEMPORARY,
    CHECKPOINT_REPAIRS,
    LEFTOVERS,
    MISSING,
    TOPIC_ID_REPAIRS,
    KeptCopy,
    LeftAlone,
    PlannedLogDir,
    RepairAction,
    RepairKind,
    RepairPlan,
    encode_repair_plan,
    is_absolute,
    is_repair_plan,
    parse_repair_plan,
    sealed_repair_plan,
    sum_of,
)
from layout.ours.repair_plan import is_sum

ID = "UXyU9i5ARn6W00ON2taeWA"
SUM = sum_of(b"x")
WRITE = RepairAction(
    RepairKind.WRITE_PARTITION_METADATA, "/d/1", "t-0/partition.metadata", "why", MISSING, SUM, "t", 0, ID, 17
)
STAGE = RepairAction(
    RepairKind.STAGE_DUPLICATE, "/d/1", "u-0", "why", SUM, MISSING, "u", 0, ID, 18, keeps=KeptCopy("/d/2", "u-0", 9, ID)
)
DROP = RepairAction(
    RepairKind.DROP_CHECKPOINT_ENTRIES, "/d/1", "cleaner-offset-checkpoint", "why", SUM, SUM, drops=("gone 3", "x -1")
)
PLAN = sealed_repair_plan(
    RepairPlan(
        1000,
        (PlannedLogDir("/d/1", "C", 1, ID), PlannedLogDir("/d/2", None, None, None)),
        ({"source": "kraft"},),
        (WRITE, STAGE, DROP),
        (LeftAlone("/d/1", "v-0", "not certain"),),
    )
)


def refused(change: Callable[[dict[str, Any]], Any], *, reseal: bool = True) -> str:
    """Why a plan is refused whose JSON was changed, by somebody who knows how to compute a fingerprint."""
    fields = json.loads(encode_repair_plan(PLAN))
    change(fields)
    if reseal:
        del fields["fingerprint"]
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        fields["fingerprint"] = sum_of(text.encode())
    with pytest.raises(DamagedFileError) as raised:
        parse_repair_plan(json.dumps(fields).encode())
    return str(raised.value)


def test_a_plan_reads_back_as_it_was_written() -> None:
    assert parse_repair_plan(encode_repair_plan(PLAN)) == PLAN
    assert PLAN.actions[2].dropped == {("gone", 3), ("x", -1)}


def test_a_plan_that_was_changed_has_another_fingerprint() -> None:
    assert "fingerprint" in refused(lambda fields: fields.update(created_ms=1001), reseal=False)
    assert sealed_repair_plan(replace(PLAN, created_ms=1001)).fingerprint != PLAN.fingerprint


@pytest.mark.parametrize(
    ("number", "path"),
    [
        (0, "../t-0/partition.metadata"),
        (0, "/etc/partition.metadata"),
        (0, "t-0/../../x/partition.metadata"),
        (0, "partition.metadata"),
        (0, "t-0/00000000000000000000.log"),
        (0, "meta.properties"),
        (1, "../1"),
        (1, ".."),
        (1, "/d/1/u-0"),
        (2, "meta.properties"),
        (2, "t-0/leader-epoch-checkpoint"),
        (2, "../cleaner-offset-checkpoint"),
    ],
)
def test_a_path_that_a_repair_has_no_business_with_is_refused(number: int, path: str) -> None:
    assert "is no place for" in refused(lambda fields: fields["actions"][number].update(path=path))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f["actions"][0].update(log_dir="/d/3"), "is none of the plan's"),
        (lambda f: f["actions"][1]["keeps"].update(log_dir="/d/3"), "no replica in one of the plan's log dirs"),
        (lambda f: f["actions"][1]["keeps"].update(path="../x"), "no replica in one of the plan's log dirs"),
        (lambda f: f["actions"][1].pop("keeps"), "keeps: expected an object"),
        (lambda f: f["log_dirs"][0].update(path="d/1"), "path: expected an absolute path"),
        (lambda f: f["log_dirs"][0].update(path="/d/../etc"), "path: expected an absolute path"),
        (lambda f: f["log_dirs"][0].update(node_id="one"), "node_id"),
        (lambda f: f["actions"][0].update(kind="format_disk"), "kind is 'format_disk'"),
        (lambda f: f["actions"][0].update(kind=["format_disk"]), "kind is ['format_disk']"),
        (lambda f: f["actions"][0].update(topic_id="A" * 22), "expected a topic ID"),
        (lambda f: f["actions"][0].update(topic_id="!"), "topic_id"),
        (lambda f: f["actions"][0].update(expects="anything"), "expects and writes"),
        (lambda f: f["actions"][0].pop("inode"), "inode: missing"),
        (lambda f: f["actions"][0].update(partition=-1), "partition: expected an integer from 0 to"),
        (lambda f: f["actions"][2].update(drops=["no partition"]), "expected a topic and a partition"),
        (lambda f: f["actions"][2].update(drops="gone 3"), "drops: expected a list"),
        (lambda f: f["actions"].append(f["actions"][0]), "is named twice"),
        (lambda f: f["log_dirs"].append(f["log_dirs"][0]), "is named twice"),
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


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b"{" * 5000])
def test_what_is_no_plan_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedFileError):
        parse_repair_plan(data)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"actions":[{"kind":"remove_leftover"}]}', True),
        (b'{"actions":[{"kind":"stage"}]}', False),
        (b'{"actions":[]}', False),
        (b'{"actions":[1]}', False),
        (b'{"actions":[{"kind":["stage"]}]}', False),
        (b"{", False),
    ],
)
def test_a_plan_is_told_by_the_kinds_of_its_actions(data: bytes, told: bool) -> None:
    assert is_repair_plan(data) is told


def test_a_plan_that_breaks_a_rule_is_not_written() -> None:
    with pytest.raises(DamagedFileError):
        encode_repair_plan(sealed_repair_plan(replace(PLAN, actions=(replace(WRITE, path="../x"),))))


@pytest.mark.parametrize(("path", "right"), [("/d", True), ("d", False), ("/d/../e", False), ("/", False)])
def test_a_log_dir_is_an_absolute_path_without_detours(path: str, right: bool) -> None:
    assert is_absolute(path) is right


def test_a_file_that_is_missing_has_a_sum_of_its_own() -> None:
    assert (sum_of(None), sum_of(b"")) == (MISSING, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    assert is_sum(MISSING) and is_sum(sum_of(b"x"))
    assert not is_sum("0" * 63) and not is_sum("G" * 64)


def test_every_kind_that_changes_bytes_writes_a_topic_id_or_a_checkpoint() -> None:
    others = frozenset(RepairKind) - TOPIC_ID_REPAIRS - CHECKPOINT_REPAIRS
    assert others == {RepairKind.REMOVE_LEFTOVER, RepairKind.STAGE_DUPLICATE}
    assert not TOPIC_ID_REPAIRS & CHECKPOINT_REPAIRS


def test_only_temporary_files_of_the_log_dirs_root_are_removable() -> None:
    assert f"{meta_properties.FILE_NAME}.tmp" in LEFTOVERS
    assert len(LEFTOVERS) == 5
    assert all(name.endswith(BROKER_TEMPORARY) and "/" not in name for name in LEFTOVERS)
