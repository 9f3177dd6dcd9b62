"""The purging thread: that it wakes when it should, sleeps otherwise, survives failures, and stops at once."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import ClassVar

import pytest

from logstore import ChangeFailedError
from logstore.clock import ManualClock
from logstore.purge import Purger
from logstore.purge.background import RETRY_MS
from tests.patience import PATIENCE_S


class Calls:
    """Stands for the purge: notes when it was called, and gives the prepared answers."""

    def __init__(self, clock: ManualClock, *answers: int | Exception | None) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.at: queue.Queue[int] = queue.Queue()

    def __call__(self, cancel: threading.Event) -> int | None:
        self.at.put(self.clock.now_ms())
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def next(self) -> int:
        return self.at.get(timeout=PATIENCE_S)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture
def purging(clock: ManualClock) -> Callable[..., tuple[Purger, Calls]]:
    def made(*answers: int | Exception | None) -> tuple[Purger, Calls]:
        calls = Calls(clock, *answers)
        return Purger(calls, clock), calls

    return made


def test_it_purges_at_once_and_again_at_the_next_due_time_and_not_before(purging, clock: ManualClock) -> None:
    purger, calls = purging(clock.now_ms() + 5000)
    with purger:
        assert calls.next() == 1_000_000
        clock.advance(4999)
        assert calls.at.empty()
        clock.advance(1)
        assert calls.next() == 1_005_000


def test_what_is_staged_meanwhile_wakes_it(purging, clock: ManualClock) -> None:
    purger, calls = purging(None)
    with purger:
        calls.next()
        purger.wake()
        assert calls.next() == clock.now_ms()


def test_what_stays_due_is_not_tried_again_and_again(purging, clock: ManualClock) -> None:
    purger, calls = purging(0, None)
    with purger:
        assert calls.next() == 1_000_000
        clock.advance(RETRY_MS - 1)
        assert calls.at.empty()
        clock.advance(1)
        assert calls.next() == 1_000_000 + RETRY_MS


@pytest.mark.parametrize("error", [ChangeFailedError("the disk is busy, so nothing goes"), OSError(5, "I/O error")])
def test_a_failure_is_logged_and_tried_again(purging, clock, caplog, error: Exception) -> None:
    purger, calls = purging(error, None)
    with caplog.at_level(logging.ERROR), purger:
        calls.next()
        purger.wake()
        calls.next()
    assert str(error) in caplog.text


def test_stopping_cancels_what_is_under_way_and_waits_for_its_end(clock: ManualClock) -> None:
    started, ended = threading.Event(), threading.Event()

    def slow(cancel: threading.Event) -> int | None:
        started.set()
        assert cancel.wait(PATIENCE_S)
        ended.set()
        return 0

    purger = Purger(slow, clock)
    purger.start()
    purger.start()
    assert started.wait(PATIENCE_S)
    purger.stop()
    assert ended.is_set()
    purger.stop()


def test_one_that_was_stopped_can_be_started_again(purging) -> None:
    purger, calls = purging(None, None)
    for _ in range(2):
        with purger:
            calls.next()


def test_a_long_sleep_is_cut_into_naps_because_the_clock_may_jump() -> None:
    class Napping(ManualClock):
        naps: ClassVar[list[float]] = []

        def wait(self, event: threading.Event, seconds: float) -> bool:
            self.naps.append(seconds)
            self.advance(int(seconds * 1000))
            return event.is_set()

    clock, calls, done = Napping(1_000_000), list[int](), threading.Event()

    def purge(cancel: threading.Event) -> int | None:
        calls.append(clock.now_ms())
        if len(calls) == 2:
            done.set()
            cancel.wait(PATIENCE_S)
        return clock.now_ms() + 150_000

    with Purger(purge, clock):
        assert done.wait(PATIENCE_S)
        assert (calls, clock.naps) == ([1_000_000, 1_150_000], [60, 60, 30])


def test_after_a_failure_it_tries_again_by_itself_and_not_at_once(purging, clock: ManualClock) -> None:
    purger, calls = purging(OSError(5, "I/O error"), None)
    with purger:
        assert calls.next() == 1_000_000
        clock.advance(RETRY_MS - 1)
        assert calls.at.empty()
        clock.advance(1)
        assert calls.next() == 1_000_000 + RETRY_MS
