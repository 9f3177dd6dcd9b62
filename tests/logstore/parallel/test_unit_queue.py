from __future__ import annotations

import os
from typing import Any

import pytest

from logstore.parallel.unit_queue import UnitQueue
from tests.logstore.children import child, ended_well


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
    taken, tell = os.pipe()

    def work() -> bool:
        for number, unit in queue.taken():
            os.write(tell, b"%08d" % unit)
            if number != unit:
                return False
        return True

    pids = [child(work) for _ in range(3)]
    for unit in range(5000):
        queue.put(unit)
    queue.finish()
    found = b""
    os.close(tell)
    while data := os.read(taken, 1 << 16):
        found += data
    os.close(taken)
    assert all(map(ended_well, pids))
    assert sorted(int(found[at : at + 8]) for at in range(0, len(found), 8)) == list(range(5000))


def test_whoever_takes_out_waits_until_there_are_no_more(queue: UnitQueue) -> None:
    told, tell = os.pipe()

    def work() -> bool:
        units = queue.taken()
        first = next(units)
        os.write(tell, b"x")
        return [first, *units] == [(0, "a"), (1, "b")]

    pid = child(work)
    queue.put("a")
    assert os.read(told, 1) == b"x"
    queue.put("b")
    queue.finish()
    assert ended_well(pid)
    os.close(told)
    os.close(tell)


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
