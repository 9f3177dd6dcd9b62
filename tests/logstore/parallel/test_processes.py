from __future__ import annotations

import gc
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.parallel import can_fork, paused_gc, processes, processors, spread
from logstore.parallel.processes import UnitQueue
from logstore.tunables import PIPE_BYTES
from tests.logstore.children import child, ended_well
from tests.patience import PATIENCE_S

Numbered = Iterable[tuple[int, int]]


def _square(units: Numbered) -> Iterator[tuple[int, bytes]]:
    for number, unit in units:
        yield number, str(unit * unit).encode()


def _taken(number: int, result: Any) -> Any:
    return result


@settings(max_examples=25)
@given(units=st.integers(0, 300), jobs=st.integers(0, 4))
def test_results_come_in_order_whichever_process_worked(units: int, jobs: int) -> None:
    assert spread(_square, range(units), jobs, _taken) == [str(n * n).encode() for n in range(units)]


def test_results_larger_than_a_pipe_come_back_whole() -> None:
    def large(units: Numbered) -> Iterator[tuple[int, bytes]]:
        for number, _ in units:
            yield number, bytes([number]) * (PIPE_BYTES + 1)

    assert spread(large, range(6), 3, _taken) == [bytes([n]) * (PIPE_BYTES + 1) for n in range(6)]


def test_text_that_is_not_utf8_comes_back_as_it_was() -> None:
    odd = ["caf\udce9-0", "café", None, 1 << 60]
    assert spread(lambda units: ((number, [unit]) for number, unit in units), [odd, [odd]], 1, _taken) == [
        [odd],
        [[odd]],
    ]


@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_so_many_other_processes_work_and_this_one_takes_what_they_hand_back(tmp_path: Path, jobs: int) -> None:
    def working(units: Numbered) -> Iterator[tuple[int, int]]:
        for number, _ in units:
            (tmp_path / str(os.getpid())).touch()
            while len(os.listdir(tmp_path)) < jobs:  # nobody goes on before each has got a unit
                time.sleep(0.01)
            yield number, os.getpid()

    workers = spread(working, range(40), jobs, lambda _, worker: (worker, os.getpid()))
    assert {taker for _, taker in workers} == {os.getpid()}
    assert len({worker for worker, _ in workers} - {os.getpid()}) == jobs
    assert (os.getpid() in {worker for worker, _ in workers}) == (jobs == 0)


def test_two_pools_at_once_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=PATIENCE_S)

    class Meeting(UnitQueue):
        def __init__(self) -> None:
            super().__init__()
            both.wait()  # no child is forked before the queues of both are open

    monkeypatch.setattr(processes, "UnitQueue", Meeting)
    results: dict[int, list[bytes]] = {}

    def units(pool: int) -> Iterator[int]:
        both.wait()  # and no queue is finished before the children of both are forked
        yield from range(pool, pool + 5)

    def work(pool: int) -> None:
        results[pool] = spread(_square, units(pool), 2, _taken)

    threads = [threading.Thread(target=work, args=(pool,), daemon=True) for pool in (0, 10)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE_S)
    assert results == {pool: [str(n * n).encode() for n in range(pool, pool + 5)] for pool in (0, 10)}


def _comes(pipe: int) -> bool:
    """Whether something comes out of a pipe before a machine that is merely slow would bring it."""
    return bool(select.select([pipe], [], [], PATIENCE_S)[0])


def test_a_result_is_taken_while_its_worker_is_at_the_next() -> None:
    taken, send = os.pipe()

    def waiting(units: Numbered) -> Iterator[tuple[int, bool]]:
        for number, _ in units:
            yield number, number == 0 or _comes(taken)

    def take(number: int, result: bool) -> bool:
        os.write(send, b"x")
        return result

    assert spread(waiting, range(2), 1, take) == [True, True]
    os.close(taken)
    os.close(send)


def test_a_worker_does_not_wait_for_this_process_to_take_what_it_found() -> None:
    done, send = os.pipe()

    def large(units: Numbered) -> Iterator[tuple[int, bytes]]:
        for number, _ in units:
            if number == 9:
                os.write(send, b"x")
            yield number, bytes(1_000_000)

    waited = list[bool]()

    def take(number: int, result: bytes) -> int:
        waited.append(bool(waited) or _comes(done))
        return len(result)

    assert spread(large, range(10), 1, take) == [1_000_000] * 10
    assert waited[0]
    os.close(done)
    os.close(send)


def test_the_share_of_a_worker_that_died_is_done_again() -> None:
    parent = os.getpid()

    def dying(units: Numbered) -> Iterator[tuple[int, bytes]]:
        for number, _ in units:
            if os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)
            yield number, b"%d" % number

    assert spread(dying, range(50), 3, _taken) == [b"%d" % n for n in range(50)]


@pytest.mark.parametrize("length", [1, 3_000_000])
def test_what_a_worker_handed_back_before_it_died_is_kept_and_what_it_handed_back_in_part_is_not(length: int) -> None:
    parent = os.getpid()

    def dying(units: Numbered) -> Iterator[tuple[int, tuple[int, bytes]]]:
        for number, _ in units:
            if number == 3 and os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)
            yield number, (os.getpid(), bytes([number]) * length)

    found = spread(dying, range(6), 1, _taken)
    assert [result for _, result in found] == [bytes([n]) * length for n in range(6)]
    assert {worker for worker, _ in found[3:]} == {parent}
    if length == 1:
        assert parent not in {worker for worker, _ in found[:3]}


def test_what_a_worker_had_done_before_its_work_failed_is_handed_back() -> None:
    parent = os.getpid()

    def failing(units: Numbered) -> Iterator[tuple[int, tuple[int, bytes]]]:
        for number, _ in units:
            if number == 3 and os.getpid() != parent:
                raise OSError("no more")
            yield number, (os.getpid(), bytes(3_000_000))

    found = spread(failing, range(6), 1, _taken)
    assert parent not in {worker for worker, _ in found[:3]}
    assert {worker for worker, _ in found[3:]} == {parent}


@pytest.mark.parametrize("starting", [0, 1])
def test_where_no_process_can_be_started_there_is_one_fewer(starting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fork, forked, before = os.fork, list[int](), len(os.listdir("/proc/self/fd"))

    def failing() -> int:
        if len(forked) >= starting:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        forked.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", failing)
    assert spread(_square, range(20), 3, _taken) == [str(n * n).encode() for n in range(20)]
    assert len(forked) == starting
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_a_worker_raises_comes_out_and_no_child_is_left(nobody_is_left: Callable[[], bool]) -> None:
    def failing(units: Numbered) -> Iterator[tuple[int, bytes]]:
        for number, _ in units:
            if number == 7:
                raise ValueError("seven")
            yield number, b""

    with pytest.raises(ValueError, match="seven"):
        spread(failing, range(20), 3, _taken)
    assert nobody_is_left()


def test_what_taking_raises_comes_out_at_once_and_nothing_is_left(nobody_is_left: Callable[[], bool]) -> None:
    def endless(units: Numbered) -> Iterator[tuple[int, bytes]]:
        yield next(iter(units))[0], b"first"
        time.sleep(1000)

    def take(number: int, result: bytes) -> Any:
        raise KeyboardInterrupt(result)

    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(KeyboardInterrupt, match="first"):
        spread(endless, range(20), 3, take)
    assert nobody_is_left()
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_descriptor_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    spread(_square, range(10), 4, _taken)
    assert len(os.listdir("/proc/self/fd")) == before


def test_units_are_asked_for_while_workers_are_at_the_first() -> None:
    began, send = os.pipe()

    def working(units: Numbered) -> Iterator[tuple[int, int]]:
        for number, _ in units:
            os.write(send, b"x")
            yield number, os.getpid()

    def found_out() -> Iterator[int]:
        yield 1
        assert _comes(began)
        yield from range(2, 10)

    workers = spread(working, found_out(), 1, _taken)
    assert len(workers) == 9
    assert os.getpid() not in workers
    os.close(began)
    os.close(send)


@pytest.mark.parametrize("jobs", [0, 2])
def test_what_asking_for_units_raises_comes_out_and_nothing_is_left(
    jobs: int, nobody_is_left: Callable[[], bool]
) -> None:
    def lost() -> Iterator[int]:
        yield 1
        raise OSError(5, "Input/output error")

    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="Input"):
        spread(_square, lost(), jobs, _taken)
    assert nobody_is_left()
    assert len(os.listdir("/proc/self/fd")) == before


def test_units_for_which_there_is_no_room_are_done_by_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite

    def full(file: int, data: Any, offset: int) -> int:
        if offset > 100:
            raise OSError(28, "No space left on device")
        return pwrite(file, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    workers = spread(lambda units: ((number, os.getpid()) for number, _ in units), range(100), 2, _taken)
    assert len(workers) == 100
    assert {worker == os.getpid() for worker in workers} == {True, False}


def test_without_fork_this_process_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "elsewhere")
    monkeypatch.delattr(os, "fork")
    assert spread(_square, range(3), 4, _taken) == [b"0", b"1", b"4"]
    assert not can_fork()
    assert processors() == 1


def test_each_forked_process_enters_first_and_this_one_never_does() -> None:
    entered: list[int] = []

    def answered(units: Numbered) -> Iterator[tuple[int, bytes]]:
        for number, _ in units:
            yield number, b"%d %d" % (len(entered), os.getpid() == parent)

    parent = os.getpid()
    assert set(spread(answered, range(30), 2, _taken, lambda: entered.append(1))) == {b"1 0"}
    assert entered == []


def test_what_this_process_dropped_is_not_ended_by_another_one(tmp_path: Path) -> None:
    class Dropped:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            (tmp_path / str(os.getpid())).touch()

    def searching(units: Numbered) -> Iterator[tuple[int, int]]:
        for number, _ in units:
            yield number, gc.collect()

    gc.collect()
    with paused_gc():
        Dropped()
        spread(searching, range(4), 2, _taken)
    gc.collect()
    assert os.listdir(tmp_path) == [str(os.getpid())]


@pytest.fixture(params=["in memory", "where no file can be in memory"])
def queue(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param != "in memory":
        monkeypatch.delattr(os, "memfd_create")
    with UnitQueue() as opened:
        yield opened


def test_a_forked_process_takes_out_what_was_put_in_with_its_number(queue: UnitQueue) -> None:
    units = ["caf\udce9", ("a", None, [1 << 70]), b"x" * 3_000_000]
    pid = child(lambda: list(queue.taken()) == list(enumerate(units)))
    for unit in units:
        queue.put(unit)
    queue.finish()
    assert ended_well(pid)


def test_each_unit_is_taken_by_one_process(queue: UnitQueue) -> None:
    taken, send = os.pipe()

    def work() -> bool:
        for number, unit in queue.taken():
            os.write(send, b"%08d" % unit)
            if number != unit:
                return False
        return True

    pids = [child(work) for _ in range(3)]
    for unit in range(5000):
        queue.put(unit)
    queue.finish()
    found = b""
    os.close(send)
    while data := os.read(taken, 1 << 16):
        found += data
    os.close(taken)
    assert all(map(ended_well, pids))
    assert sorted(int(found[at : at + 8]) for at in range(0, len(found), 8)) == list(range(5000))


def test_a_process_that_takes_out_waits_until_there_are_no_more(queue: UnitQueue) -> None:
    received, send = os.pipe()

    def work() -> bool:
        units = queue.taken()
        first = next(units)
        os.write(send, b"x")
        return [first, *units] == [(0, "a"), (1, "b")]

    pid = child(work)
    queue.put("a")
    assert os.read(received, 1) == b"x"
    queue.put("b")
    queue.finish()
    assert ended_well(pid)
    os.close(received)
    os.close(send)


def test_putting_in_fails_when_nobody_is_left_to_take_out(queue: UnitQueue) -> None:
    pid = child(lambda: next(queue.taken()) == (0, "a"))
    queue.put("a")
    assert ended_well(pid)
    with pytest.raises(BrokenPipeError):
        queue.put("b")


def test_a_write_that_takes_a_part_is_gone_on_with(queue: UnitQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: pwrite(file, bytes(data[:7]), at))
    pid = child(lambda: list(queue.taken()) == [(0, "a" * 50), (1, "b" * 50)])
    queue.put("a" * 50)
    queue.put("b" * 50)
    queue.finish()
    assert ended_well(pid)


def test_nothing_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with UnitQueue() as queue:
        queue.finish()
        queue.finish()
    assert len(os.listdir("/proc/self/fd")) == before
