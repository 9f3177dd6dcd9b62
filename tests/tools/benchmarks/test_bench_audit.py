"""The audit benchmark's own arithmetic: options, medians, and when a target or an answer counts as missed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tools.benchmarks import audit as bench_audit
from tools.benchmarks.answer import Answer
from tools.benchmarks.audit import MANY_ROWS, ContenderResult


def result(job: float, peak: int = 100, answer: Answer | None = None) -> ContenderResult:
    return ContenderResult(wall=job, job=job, session=0.0, peak=peak, answer=answer)


@pytest.mark.parametrize(("text", "rows"), [("1M", 1_000_000), ("30m", 30_000_000), ("5K", 5000), ("150", 150)])
def test_a_number_of_replicas_may_have_a_unit(text: str, rows: int) -> None:
    assert bench_audit.rows_of(text) == rows


@pytest.mark.parametrize("text", ["M", "1G", "", "0", "-1M", "1.5M"])
def test_anything_else_is_no_number_of_replicas(text: str) -> None:
    with pytest.raises(ValueError):
        bench_audit.rows_of(text)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--rows", "many"], "--rows"),
        (["--peers", "duckdb,excel"], "there is no 'excel'"),
        (["--runs", "0"], "--runs"),
        (["--folder", "/no/such/folder"], "is no directory"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        bench_audit.main(arguments)
    assert error.value.code == 2
    assert reason in capsys.readouterr().err


def test_a_difference_between_answers_is_a_miss_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    same = Answer({"OK": (2, 20)}, 0, job=1.0)
    assert bench_audit._report("t", {"duckdb": result(1, answer=same), "polars": result(1, answer=same)})
    for other in (
        replace(same, totals={"OK": (1, 20)}),
        replace(same, log_dirs={"broker 1 /data OK": (2, 20, 20)}),
        replace(same, fleet={"ONLY_KNOWN_COPY": ["orders"]}),
    ):
        assert not bench_audit._report("t", {"duckdb": result(1, answer=same), "polars": result(1, answer=other)})
        assert "polars differ from duckdb" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("job", "peak", "rows", "met"),
    [
        (1.0, 130, MANY_ROWS, True),
        (1.01, 100, MANY_ROWS, False),
        (1.0, 131, MANY_ROWS, False),
        (1.15, 130, MANY_ROWS - 1, True),
        (1.16, 100, MANY_ROWS - 1, False),
    ],
)
def test_time_and_memory_both_have_to_stay_near_the_hand_written_query(
    job: float, peak: int, rows: int, met: bool
) -> None:
    assert bench_audit._targets({"embedded": result(job, peak), "duckdb": result(1.0, 100)}, rows) is met


@pytest.mark.parametrize(
    ("spark", "embedded", "rows", "met"),
    [
        (10.0, 2.0, MANY_ROWS, True),
        (10.1, 2.1, MANY_ROWS, False),
        (10.0, 1.9, MANY_ROWS, False),
        (10.0, 1.9, MANY_ROWS - 1, True),
    ],
)
def test_spark_takes_no_longer_than_the_query_by_hand_and_at_scale_not_much_longer_than_one_machine(
    spark: float, embedded: float, rows: int, met: bool
) -> None:
    found = {"spark": result(spark), "embedded": result(embedded), "spark-by-hand": result(10.0)}
    assert bench_audit._targets(found, rows) is met


@pytest.mark.parametrize("peer", ["embedded", "spark"])
@pytest.mark.parametrize(("job", "met"), [(1.3, True), (1.31, False)])
def test_a_fleet_of_another_shape_may_take_a_third_more(
    peer: str, job: float, met: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    even, found = ({peer: result(time), "floor": result(time / 4)} for time in (1.0, job))
    assert bench_audit._skew_targets("topic", even, found) is met
    assert "floor, topic / even, time: 1.3" in capsys.readouterr().out
    assert bench_audit._skew_targets("topic", {}, found)


def test_a_floor_has_another_answer_and_no_target(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"embedded": result(9.0, answer=Answer({"OK": (2, 20)}, 0)), "floor": result(1.0, 50, Answer({}, 0))}
    assert bench_audit._report("t", found) and bench_audit._targets(found, MANY_ROWS)
    assert "embedded / floor, time: 9.00, peak memory: 2.00; a floor is no target" in capsys.readouterr().out


def test_a_target_without_its_contenders_is_not_judged() -> None:
    assert bench_audit._targets({"polars": result(1.0)}, MANY_ROWS)
    assert bench_audit._tree_targets({"polars": result(1.0)})


@pytest.mark.parametrize(("slower", "met"), [(12.5, True), (12.6, False)])
def test_growth_may_exceed_the_fleets_own_by_a_quarter(slower: float, met: bool) -> None:
    sizes = {1000: {"embedded": result(1.0)}, 10_000: {"embedded": result(slower)}}
    assert bench_audit._growth(sizes) is met
