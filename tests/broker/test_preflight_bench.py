"""When the bench stops looking at a broker: what was foretold has come, or it is known not to come any more."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.broker import preflight_bench
from tests.broker.preflight_bench import Bench, Case, Outcome

RACE = "swapped too soon"


class Scripted:
    """A bench whose broker never does what was foretold, and ends or writes to its log at some look."""

    def __init__(self, log: str, ends_at: int) -> None:
        self.looks, self._log, self._ends_at = 0, log, ends_at

    @property
    def broker(self) -> SimpleNamespace:
        """It has ended after so many looks."""
        return SimpleNamespace(running=self.looks < self._ends_at)

    def preflight(self) -> dict[str, object]:
        """A disk that is to go offline, and never does."""
        return {"starts": True, "findings": [], "log_dirs": [{"log_dir": "/d", "would_be_online": False}]}

    def launch_and_wait(self) -> bool:
        """It serves."""
        return True

    def listing(self) -> dict[Path, frozenset[str]]:
        """Nothing is there."""
        return {}

    def offline(self) -> set[Path]:
        """One look at it."""
        self.looks += 1
        return set()

    def log_end(self) -> int:
        """Nothing is written yet."""
        return 0

    def log_since(self, place: int) -> str:
        """What it says from the second look on."""
        return self._log if self.looks > 1 else ""


def looked(monkeypatch: pytest.MonkeyPatch, case: Case, log: str = "", ends_at: int = 99, patience: float = 60) -> int:
    """How often the bench looked before it gave up; the outcome is never that what was foretold came."""
    monkeypatch.setattr(preflight_bench, "PATIENCE_S", patience)
    monkeypatch.setattr(preflight_bench, "PAUSE", 0.01)
    bench, outcome = Scripted(log, ends_at), Outcome()
    preflight_bench._start(cast(Bench, bench), case, outcome)
    assert not outcome.came_true and not outcome.agrees
    assert case.is_lost(outcome.log) == (case.race is not None and log != "")
    return bench.looks


def test_a_race_that_is_lost_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case((), lambda bench: None, race=RACE)
    assert looked(monkeypatch, case, f"ERROR it was {RACE}\n") == 2


def test_a_broker_that_has_ended_is_looked_at_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(monkeypatch, Case((), lambda bench: None), ends_at=3) == 4


def test_what_is_no_lost_race_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(monkeypatch, Case((), lambda bench: None), f"ERROR it was {RACE}\n", patience=0.3) > 5
