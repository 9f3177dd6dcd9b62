"""The case table rendered for an engine, with a toy engine that evaluates on one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.rows import Kind, MetadataState
from reconciler.audit.case_sql import case_number, evidence, is_finding, is_worth_a_look, verdict
from reconciler.verdicts import CASES, JoinedRow, Verdict, plainly_in_order
from reconciler.verdicts import case_number as case_number_in_python
from reconciler.verdicts import fill_evidence as evidence_in_python

Env = dict[str, Any]


class Deferred:
    """An expression of the toy engine: it knows only ``==``, ``&`` and ``|``, and cannot be used as a truth value."""

    def __init__(self, run: Callable[[Env], Any]) -> None:
        self.run = run

    def __eq__(self, other: object) -> Any:
        return Deferred(lambda env: self.run(env) == (other.run(env) if isinstance(other, Deferred) else other))

    def __and__(self, other: Deferred) -> Deferred:
        return Deferred(lambda env: self.run(env) and other.run(env))

    def __or__(self, other: Deferred) -> Deferred:
        return Deferred(lambda env: self.run(env) or other.run(env))

    def __bool__(self) -> bool:
        raise AssertionError("a condition took an expression for a truth value")

    __hash__ = None  # type: ignore[assignment]


class Toy:
    """A dialect over :class:`Deferred`."""

    def column(self, name: str) -> Any:
        return Deferred(lambda env: env[name])

    def literal(self, value: str | int | bool) -> Any:
        return Deferred(lambda _: value)

    def choose(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        def run(env: Env) -> Any:
            return next((value.run(env) for condition, value in branches if condition.run(env)), otherwise.run(env))

        return Deferred(run)

    def concat(self, parts: Sequence[Any]) -> Any:
        return Deferred(lambda env: "".join(str(part.run(env)) for part in parts))


ids = st.sampled_from(["", "A", "B"])
names = st.sampled_from(["", "t", "u"])
joined_rows = st.builds(
    JoinedRow,
    on_disk=st.just(True),
    kind=st.sampled_from([kind.value for kind in Kind]),
    state=st.sampled_from(["", *(state.value for state in MetadataState)]),
    topic=names,
    disk_topic_id=ids,
    problem=st.sampled_from(["", "torn"]),
    due=st.booleans(),
    copies=st.integers(0, 2),
    judged=st.booleans(),
    complete=st.booleans(),
    wanted=st.booleans(),
    wanted_topic_id=ids,
    moving=st.booleans(),
    name_known=st.booleans(),
    name_topic_id=ids,
    id_topic=names,
    home_seen=st.booleans(),
)


@given(joined_rows)
def test_a_rendered_table_gives_what_the_table_in_python_gives(row: JoinedRow) -> None:
    env = asdict(row)
    number = case_number(Toy()).run(env)
    assert number == case_number_in_python(row)
    assert verdict(Toy()).run({**env, "case_no": number}) == CASES[number].verdict
    assert evidence(Toy()).run({**env, "case_no": number}) == evidence_in_python(CASES[number].evidence, row)


def test_a_row_that_no_case_holds_for_is_minus_one() -> None:
    assert case_number(Toy()).run(asdict(JoinedRow())) == -1


@given(joined_rows)
def test_a_row_is_a_finding_unless_its_case_says_ok(row: JoinedRow) -> None:
    expected = CASES[case_number_in_python(row)].verdict is not Verdict.OK
    assert is_finding(Toy()).run(asdict(row)) == expected


@given(joined_rows)
def test_a_row_is_worth_a_look_unless_it_is_plainly_in_order(row: JoinedRow) -> None:
    assert is_worth_a_look(Toy()).run(asdict(row)) == (not plainly_in_order(row))


def test_a_live_replica_as_it_is_wanted_is_not_worth_a_look() -> None:
    row = JoinedRow(True, "live", "ok", "t", "A", copies=1, wanted=True, wanted_topic_id="A")
    assert not is_worth_a_look(Toy()).run(asdict(row))


def test_a_replica_that_is_wanted_and_nowhere_is_a_finding() -> None:
    assert is_finding(Toy()).run(asdict(JoinedRow(topic="t", wanted=True, judged=True)))


def test_the_toy_engine_notices_a_condition_that_is_no_expression() -> None:
    with pytest.raises(AssertionError, match="truth value"):
        bool(Toy().column("due"))
