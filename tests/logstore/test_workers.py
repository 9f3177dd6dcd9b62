from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.workers import MOST_UNITS, processors, spread


def _square(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    for number in numbers:
        yield number, str(number * number).encode()


@settings(max_examples=25)
@given(units=st.integers(0, 300), jobs=st.integers(0, 4))
def test_results_come_in_order_whoever_worked(units: int, jobs: int) -> None:
    assert spread(_square, units, jobs, bytes) == [str(n * n).encode() for n in range(units)]


def test_results_larger_than_a_pipe_come_back_whole() -> None:
    def large(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            yield number, bytes([number]) * 1_000_000

    assert spread(large, 6, 3, bytes) == [bytes([n]) * 1_000_000 for n in range(6)]


def test_text_that_is_not_utf8_comes_back_as_it_was() -> None:
    odd = ["caf\udce9-0", "café", None, 1 << 60]
    assert spread(lambda numbers: ((number, [odd]) for number in numbers), 2, 1, tuple) == [(odd,), (odd,)]


@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_so_many_other_processes_work_and_this_one_takes_what_they_hand_back(jobs: int) -> None:
    def working(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        for number in numbers:
            time.sleep(0.01)  # so that each gets some of the units
            yield number, os.getpid()

    workers = spread(working, 40, jobs, lambda worker: (worker, os.getpid()))
    assert {taker for _, taker in workers} == {os.getpid()}
    assert len({worker for worker, _ in workers} - {os.getpid()}) == jobs
    assert (os.getpid() in {worker for worker, _ in workers}) == (jobs == 0)


def _comes(pipe: int) -> bool:
    """Whether something comes out of a pipe before a machine that is merely slow would bring it."""
    return bool(select.select([pipe], [], [], 30)[0])


def test_a_result_is_taken_while_its_worker_is_at_the_next() -> None:
    taken, tell = os.pipe()

    def waiting(numbers: Iterable[int]) -> Iterator[tuple[int, bool]]:
        for number in numbers:
            yield number, number == 0 or _comes(taken)

    def take(result: bool) -> bool:
        os.write(tell, b"x")
        return result

    assert spread(waiting, 2, 1, take) == [True, True]
    os.close(taken)
    os.close(tell)


def test_a_worker_does_not_wait_for_this_process_to_take_what_it_found() -> None:
    done, tell = os.pipe()

    def large(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            if number == 9:
                os.write(tell, b"x")
            yield number, bytes(1_000_000)

    waited = list[bool]()

    def take(result: bytes) -> int:
        waited.append(bool(waited) or _comes(done))
        return len(result)

    assert spread(large, 10, 1, take) == [1_000_000] * 10
    assert waited[0]
    os.close(done)
    os.close(tell)


def test_the_share_of_a_worker_that_died_is_done_again() -> None:
    parent = os.getpid()

    def dying(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            if os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)
            yield number, b"%d" % number

    assert spread(dying, 50, 3, bytes) == [b"%d" % n for n in range(50)]


@pytest.mark.parametrize("length", [1, 3_000_000])
def test_what_a_worker_handed_back_before_it_died_is_kept_and_what_it_handed_back_in_part_is_not(length: int) -> None:
    parent = os.getpid()

    def dying(numbers: Iterable[int]) -> Iterator[tuple[int, tuple[int, bytes]]]:
        for number in numbers:
            if number == 3 and os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)
            yield number, (os.getpid(), bytes([number]) * length)

    found = spread(dying, 6, 1, tuple)
    assert [result for _, result in found] == [bytes([n]) * length for n in range(6)]
    assert {worker for worker, _ in found[3:]} == {parent}
    if length == 1:
        assert parent not in {worker for worker, _ in found[:3]}


@pytest.mark.parametrize("starting", [0, 1])
def test_where_no_process_can_be_started_there_is_one_fewer(starting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fork, forked, before = os.fork, list[int](), len(os.listdir("/proc/self/fd"))

    def failing() -> int:
        if len(forked) >= starting:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        forked.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", failing)
    assert spread(_square, 20, 3, bytes) == [str(n * n).encode() for n in range(20)]
    assert len(forked) == starting
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_a_worker_raises_comes_out_and_no_child_is_left() -> None:
    def failing(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            if number == 7:
                raise ValueError("seven")
            yield number, b""

    with pytest.raises(ValueError, match="seven"):
        spread(failing, 20, 3, bytes)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_what_taking_raises_comes_out_at_once_and_nothing_is_left() -> None:
    def endless(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        yield next(iter(numbers)), b"first"
        time.sleep(1000)

    def take(result: bytes) -> Any:
        raise KeyboardInterrupt(result)

    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(KeyboardInterrupt, match="first"):
        spread(endless, 20, 3, take)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_descriptor_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    spread(_square, 10, 4, bytes)
    assert len(os.listdir("/proc/self/fd")) == before


def test_more_units_than_a_pipe_holds_are_refused_and_the_most_are_not() -> None:
    with pytest.raises(ValueError, match="make them larger"):
        spread(_square, MOST_UNITS + 1, 2, bytes)
    assert len(spread(_square, MOST_UNITS, 2, bytes)) == MOST_UNITS
    assert len(spread(_square, MOST_UNITS + 1, 0, bytes)) == MOST_UNITS + 1


def test_without_fork_this_process_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "elsewhere")
    monkeypatch.delattr(os, "fork")
    assert spread(_square, 3, 4, bytes) == [b"0", b"1", b"4"]
    assert processors() == 1


def test_each_forked_process_enters_first_and_this_one_never_does() -> None:
    entered: list[int] = []

    def told(numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            yield number, b"%d %d" % (len(entered), os.getpid() == parent)

    parent = os.getpid()
    assert set(spread(told, 30, 2, bytes, lambda: entered.append(1))) == {b"1 0"}
    assert entered == []
