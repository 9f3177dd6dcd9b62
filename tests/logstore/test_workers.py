from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.workers import MOST_UNITS, processors, spread


def _square(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    for number in numbers:
        yield number, str(number * number).encode()


@settings(max_examples=25)
@given(units=st.integers(0, 300), jobs=st.integers(1, 4))
def test_results_come_in_order_whoever_worked(units: int, jobs: int) -> None:
    assert spread(_square, units, jobs) == [str(n * n).encode() for n in range(units)]


def test_results_larger_than_a_pipe_come_back_whole() -> None:
    def large(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            yield number, bytes([number]) * 1_000_000

    assert spread(large, 6, 3) == [bytes([n]) * 1_000_000 for n in range(6)]


def test_the_share_of_a_worker_that_died_is_done_again() -> None:
    parent = os.getpid()

    def dying(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            if os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)
            yield number, b"%d" % number

    assert spread(dying, 50, 3) == [b"%d" % n for n in range(50)]


def test_what_a_worker_raises_comes_out_and_no_child_is_left() -> None:
    def failing(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            if number == 7:
                raise ValueError("seven")
            yield number, b""

    with pytest.raises(ValueError, match="seven"):
        spread(failing, 20, 3)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_no_descriptor_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    spread(_square, 10, 4)
    assert len(os.listdir("/proc/self/fd")) == before


def test_more_units_than_a_pipe_holds_are_refused_and_the_most_are_not() -> None:
    with pytest.raises(ValueError, match="make them larger"):
        spread(_square, MOST_UNITS + 1, 2)
    assert len(spread(_square, MOST_UNITS, 2)) == MOST_UNITS


def test_without_fork_this_process_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "elsewhere")
    monkeypatch.delattr(os, "fork")
    assert spread(_square, 3, 4) == [b"0", b"1", b"4"]
    assert processors() == 1


def test_each_forked_process_enters_first_and_this_one_never_does() -> None:
    entered: list[int] = []

    def told(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            yield number, b"%d %d" % (len(entered), os.getpid() == parent)

    parent = os.getpid()
    assert set(spread(told, 30, 2, lambda: entered.append(1))) == {b"1 0"}
    assert entered == []
