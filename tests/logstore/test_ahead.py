"""Processes that look ahead: their results come in order, they are held back, and none of them is needed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.ahead import Ahead
from tests.logstore.engine import open_descriptors

SECONDS = 30


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = open_descriptors()
    yield
    assert open_descriptors() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@settings(max_examples=25)
@given(units=st.integers(0, 60), processes=st.integers(1, 4))
def test_results_come_in_the_order_of_their_units(units: int, processes: int) -> None:
    with Ahead(lambda unit: unit * unit, range(units), processes) as ahead:
        assert [ahead.next() for _ in range(units)] == [unit * unit for unit in range(units)]


def test_results_larger_than_a_pipe_come_whole() -> None:
    with Ahead(lambda unit: bytes([unit]) * 3_000_000, range(4), 2) as ahead:
        assert [ahead.next() for _ in range(4)] == [bytes([unit]) * 3_000_000 for unit in range(4)]


def test_each_process_does_its_share_and_this_one_does_nothing() -> None:
    with Ahead(lambda _: os.getpid(), range(9), 3) as ahead:
        pids = [ahead.next() for _ in range(9)]
    assert pids == pids[:3] * 3
    assert len({*pids, os.getpid()}) == 4


def test_a_process_waits_until_its_results_are_taken(tmp_path: Path) -> None:
    def work(unit: int) -> bytes:
        (tmp_path / str(unit)).touch()
        return bytes(5_000_000)

    with Ahead(work, range(50), 1) as ahead:
        ahead.next()
        time.sleep(0.5)
        assert len(list(tmp_path.iterdir())) <= 3


def test_the_units_of_a_process_that_died_have_no_result_and_others_do() -> None:
    def work(unit: int) -> int:
        if unit == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return unit

    with Ahead(work, range(8), 2) as ahead:
        assert [ahead.next() for _ in range(8)] == [0, 1, 2, None, 4, None, 6, None]


def test_a_death_is_noticed_though_other_threads_start_processes_too() -> None:
    def work(unit: int) -> int:
        time.sleep(0.05 * (unit == 0))  # so that all are started when the first dies
        os.kill(os.getpid(), signal.SIGKILL)
        return unit

    def ask(dies: bool) -> list[int | None]:
        with Ahead(work if dies else (lambda unit: unit), range(3), 2) as ahead:
            results = [ahead.next() for _ in range(3)]
            both.wait(SECONDS)  # the processes of the other still wait to be asked
            return results

    both = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, dies) for dies in (True, False)]
        assert [each.result(SECONDS) for each in asked] == [[None] * 3, [0, 1, 2]]


def test_work_that_fails_has_no_result(capfd: pytest.CaptureFixture[str]) -> None:
    with Ahead(lambda unit: 1 // unit, range(3), 1) as ahead:
        assert [ahead.next() for _ in range(3)] == [None] * 3
    assert capfd.readouterr().err == ""


def test_where_no_process_can_be_started_there_are_no_results(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    with Ahead(lambda unit: unit, range(3), 2) as ahead:
        assert [ahead.next() for _ in range(3)] == [None] * 3


def test_where_forking_is_not_safe_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logstore.ahead.can_fork", lambda: False)
    with Ahead(lambda unit: unit, range(3), 2) as ahead:
        assert ahead.next() is None


def test_results_that_nobody_takes_hold_nobody_up() -> None:
    with Ahead(lambda unit: bytes(5_000_000), range(1000), 2) as ahead:
        assert ahead.next() == bytes(5_000_000)


def test_a_process_ends_when_the_one_that_asked_is_killed() -> None:
    read, write = os.pipe()
    asking = os.fork()
    if asking == 0:
        with suppress(BaseException), Ahead(lambda _: (os.getpid(), bytes(5_000_000)), range(1000), 1) as ahead:
            result = ahead.next()
            assert result is not None
            os.write(write, str(result[0]).encode())
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)
    os.waitpid(asking, 0)
    os.close(write)
    looking = os.read(read, 20).decode()
    os.close(read)
    deadline = time.monotonic() + SECONDS
    while _is_alive(looking):
        assert time.monotonic() < deadline, "it goes on though nobody will ever ask"
        time.sleep(0.01)


def _is_alive(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
