"""Every fault, and pairs of faults, are cured by what the tool prints: no command fails or is repeated."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from tests.operator_loop.bench import Bench
from tests.operator_loop.faults import FAULTS
from tests.operator_loop.operator_loop import Operator

PAIRS = list(combinations(FAULTS, 2))
SAMPLE = sorted(Random(3).sample(PAIRS, 20))


def healed(folder: Path, *faults: str) -> None:
    bench = Bench(folder)
    bench.build()
    for name in faults:
        FAULTS[name](bench)
    bench.write_metadata()
    operator = Operator(bench)
    operator.heal()
    protocol = "\n".join(["", *operator.done])
    assert operator.failed == [], protocol
    assert operator.left() == [], protocol


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which the operator stands, where plans are kept."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "broker-2"


def test_a_healthy_broker_needs_nothing(here: Path) -> None:
    bench = Bench(here)
    bench.build()
    bench.write_metadata()
    operator = Operator(bench)
    operator.heal()
    assert (operator.done, operator.failed, operator.left()) == ([], [], [])


@pytest.mark.parametrize("fault", list(FAULTS))
def test_each_fault_is_cured_by_what_is_printed(here: Path, fault: str) -> None:
    healed(here, fault)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "pair" in metafunc.fixturenames:
        pairs = PAIRS if metafunc.config.getoption("--whole", default=False) else SAMPLE
        metafunc.parametrize("pair", pairs, ids=["+".join(pair) for pair in pairs])


def test_two_faults_at_a_time_are_cured_as_well(here: Path, pair: tuple[str, str]) -> None:
    healed(here, *pair)
