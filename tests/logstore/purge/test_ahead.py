"""A process that looks ahead: its results come in order, it is held back, and it is not needed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.purge.ahead import done_ahead
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
@given(units=st.integers(0, 60))
def test_results_come_in_the_order_of_their_units(units: int) -> None:
    assert list(done_ahead(lambda unit: unit * unit, range(units))) == [unit * unit for unit in range(units)]


def test_results_larger_than_a_pipe_come_whole() -> None:
    assert list(done_ahead(lambda unit: bytes([unit]) * 3_000_000, range(4))) == [
        bytes([unit]) * 3_000_000 for unit in range(4)
    ]


def test_another_process_works_and_asks_for_the_units() -> None:
    def units() -> Iterator[int]:
        while True:
            yield os.getpid()

    with closing(done_ahead(lambda asks: (asks, os.getpid()), units())) as results:
        asks, works = next(results)
    assert asks == works != os.getpid()


def test_that_process_waits_until_its_results_are_taken(tmp_path: Path) -> None:
    def work(unit: int) -> bytes:
        (tmp_path / str(unit)).touch()
        return bytes(5_000_000)

    with closing(done_ahead(work, range(50))) as results:
        next(results)
        time.sleep(0.5)
        assert len(list(tmp_path.iterdir())) <= 3


def test_where_it_dies_there_are_the_results_that_it_had_told() -> None:
    def work(unit: int) -> int:
        if unit == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return unit

    assert list(done_ahead(work, range(8))) == [0, 1, 2]


def test_a_death_is_noticed_though_other_threads_start_processes_too() -> None:
    def work(unit: int) -> int:
        time.sleep(0.05 * (unit == 0))  # so that both are started when one dies
        os.kill(os.getpid(), signal.SIGKILL)
        return unit

    def ask(dies: bool) -> list[int]:
        with closing(done_ahead(work if dies else (lambda unit: unit), range(3))) as results:
            found = list(islice(results, 3))
            both.wait(SECONDS)  # the process of the other still waits to be ended
            return found

    both = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, dies) for dies in (True, False)]
        assert [each.result(SECONDS) for each in asked] == [[], [0, 1, 2]]


def test_work_that_fails_ends_the_results(capfd: pytest.CaptureFixture[str]) -> None:
    assert list(done_ahead(lambda unit: 1 // unit, [1, 0, 1])) == [1]
    assert capfd.readouterr().err == ""


def test_where_no_process_can_be_started_each_result_is_found_out_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    assert list(done_ahead(lambda unit: (unit, os.getpid()), range(3))) == [(unit, os.getpid()) for unit in range(3)]


def test_where_forking_is_not_safe_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logstore.purge.ahead.can_fork", lambda: False)
    assert list(done_ahead(lambda _: os.getpid(), range(1))) == [os.getpid()]


def test_results_that_nobody_takes_hold_nobody_up() -> None:
    with closing(done_ahead(lambda unit: bytes(5_000_000), range(1000))) as results:
        assert next(results) == bytes(5_000_000)


def test_it_ends_when_the_process_that_asked_is_killed() -> None:
    read, write = os.pipe()
    asking = os.fork()
    if asking == 0:
        with suppress(BaseException):
            process, _ = next(done_ahead(lambda _: (os.getpid(), bytes(5_000_000)), range(1000)))
            os.write(write, str(process).encode())
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
