"""The file that says what a change of many steps is about to do. KIP37-3, KIP516-12."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import DamagedFileError
from layout.ours import (
    Intent,
    IntentStep,
    MakeDirectory,
    RemoveDirectory,
    Rename,
    RenameEntries,
    Rewrite,
    Stage,
    encode_intent,
    inverse_steps,
    parse_intent,
    step_bytes,
    step_text,
)
from layout.ours.intent import VERBS, inverse_step

STEPS: tuple[IntentStep, ...] = (
    MakeDirectory(0, "org", tier=True),
    Rename(0, "orders-0", "org/orders-0"),
    Rewrite(1, "org/orders-0/partition.metadata", "old", "new"),
    RenameEntries(1, "orders", "org:orders"),
    RemoveDirectory(1, "51", tier=False),
    Stage(0, "org/a-0", "org:a", 0, "UXyU9i5ARn6W00ON2taeWA", "NAMESPACE_DELETED", "because", 5, 10),
)
INTENT = Intent("0" * 32, "move-topic", "move topic orders", ("s33AdXtkR8Gf_xRO-R_dpA", "/disk2"), STEPS)


def fields(**changed: object) -> bytes:
    """The file with some of its fields changed."""
    return json.dumps({**json.loads(encode_intent(INTENT)), **changed}).encode()


def test_an_intent_survives_a_round_trip() -> None:
    undone = dataclasses.replace(INTENT, steps=tuple(inverse_steps(STEPS)))
    assert parse_intent(encode_intent(INTENT)) == INTENT
    assert parse_intent(encode_intent(undone)) == undone
    given_up = dataclasses.replace(INTENT.only(()), given_up=True)
    assert parse_intent(encode_intent(given_up)) == given_up
    assert b"given_up" not in encode_intent(INTENT), "a file of a change that takes place is as it was"
    assert {type(step) for step in (*STEPS, *undone.steps)} == set(VERBS.values())


def test_the_inverse_of_the_inverse_is_the_step_itself() -> None:
    assert [inverse_step(inverse_step(step)) for step in STEPS] == list(STEPS)
    assert inverse_steps(inverse_steps(STEPS)) == list(STEPS)
    assert inverse_step(STEPS[1]) == Rename(0, "org/orders-0", "orders-0")


def test_the_last_step_is_undone_first() -> None:
    assert inverse_steps(STEPS[:2]) == [Rename(0, "org/orders-0", "orders-0"), RemoveDirectory(0, "org", tier=True)]


@given(st.binary(max_size=50))
def test_bytes_of_any_kind_can_stand_in_a_step(data: bytes) -> None:
    step = Rewrite(0, "meta.properties", step_text(data), "")
    read = parse_intent(encode_intent(dataclasses.replace(INTENT, steps=(step,)))).steps[0]
    assert isinstance(read, Rewrite)
    assert step_bytes(read.old) == data


def test_the_steps_of_one_log_dir_can_be_selected() -> None:
    assert INTENT.of(1) == STEPS[2:5]
    assert INTENT.only([0]).steps == (*STEPS[:2], STEPS[5])
    assert INTENT.only(()).log_dirs == INTENT.log_dirs


@pytest.mark.parametrize(
    "step",
    [
        [],
        "rename",
        ["destroy", 0, "a"],
        [["rename"], 0, "a", "b"],
        ["rename", 0, "a"],
        ["rename", 2, "a", "b"],
        ["rename", -1, "a", "b"],
        ["rename", True, "a", "b"],
        ["rename", 0, "a", "../b"],
        ["rename", 0, "/etc", "b"],
        ["make-directory", 0, "a//b", True],
        ["make-directory", 0, "a", 1],
        ["rewrite", 0, "a/..", "x", "y"],
        ["stage", 0, "a-0", "a", 0, "no ID", "V", "because", 1, 2],
    ],
)
def test_what_is_no_step_is_refused_whole(step: object) -> None:
    with pytest.raises(DamagedFileError, match="is no step"):
        parse_intent(fields(steps=[step]))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"schema_version": 2}, "schema version 1 only"),
        ({"id": "zz"}, "32 digits"),
        ({"log_dirs": []}, "log_dirs"),
        ({"log_dirs": [1]}, "log_dirs"),
        ({"steps": {}}, "steps"),
        ({"sentence": ""}, "sentence"),
        ({"given_up": 1}, "true or false"),
    ],
)
def test_every_field_is_held_to_its_form(changed: dict[str, object], reason: str) -> None:
    with pytest.raises(DamagedFileError, match=reason):
        parse_intent(fields(**changed))


def test_bytes_that_are_no_json_are_refused() -> None:
    with pytest.raises(DamagedFileError):
        parse_intent(encode_intent(INTENT)[:-20])
