"""Shared by the tests of crashes: a place in memory, the drivers with their count, and the sum at the end of a run."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from logstore.log_dir import ledger
from tests.crash.engine_histories import SPACE
from tests.crash.histories import Driver, History, Tried, crash_after_failures, crash_everywhere, fail_everywhere

_MEMORY = "/dev/shm"
_CRASHES, _FAILURES = "states after a crash", "failures"
_COUNTED = (_CRASHES, _FAILURES, "kills", "power cuts on ext4")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``drawn_seed`` once for each of ``--crash-seeds``."""
    if "drawn_seed" in metafunc.fixturenames:
        first, _, end = metafunc.config.getoption("--crash-seeds").rpartition(":")
        metafunc.parametrize("drawn_seed", range(int(first or 0), int(end)))


@pytest.fixture
def scratch() -> Iterator[str]:
    """An empty directory, in memory where that is possible."""
    folder = tempfile.mkdtemp(prefix="logstore-crash-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of restarts log thousands of warnings, and none of them helps to find the wrong one."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def small_ledgers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep so little space that it is used up and added to, and that an image of a disk is small."""
    monkeypatch.setattr(ledger, "RESERVED_BYTES", SPACE)
    monkeypatch.setattr(ledger, "PURGE_BYTES", SPACE // 4)


def _driver(drive: Callable[..., Tried], counted_as: str) -> Any:
    """``name(history)``: drive a history, and count its cases in the sum at the end."""

    def made(scratch: str, record_property: Callable[[str, object], None]) -> Driver:
        def run(history: History, **options: Any) -> Tried:
            tried = drive(history, scratch, **options)
            record_property(counted_as, tried.cases)
            return tried

        return run

    return pytest.fixture(made)


crash = _driver(crash_everywhere, _CRASHES)
crash_after_failure = _driver(crash_after_failures, _CRASHES)
fail = _driver(fail_everywhere, _FAILURES)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many cases were tried, in all histories together."""
    sums: Counter[str] = Counter()
    histories: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, number in getattr(report, "user_properties", ()):
            if name in _COUNTED:
                sums[name] += number
                histories[name] += 1
    for name, number in sums.items():
        terminalreporter.write_line(f"tried {number:,} {name} in {histories[name]} histories")
