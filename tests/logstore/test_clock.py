from __future__ import annotations

import threading
import time

from logstore import SystemClock
from logstore.clock import ManualClock, date_text
from tests.patience import PATIENCE_S


class Asked(threading.Event):
    """An event that says when somebody asks for it: from then on a waiter knows until when it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def is_set(self) -> bool:
        self.asked.set()
        return super().is_set()


def test_a_time_beyond_the_calendar_stays_a_number() -> None:
    assert date_text(1_700_000_000_000) == "2023-11-14 22:13:20 UTC"
    assert date_text(1 << 70) == f"{1 << 70} ms since 1970"


def test_the_systems_clock_gives_the_time_of_day_in_ms() -> None:
    assert abs(SystemClock().now_ms() - time.time() * 1000) < 10_000


def test_the_systems_clock_waits_until_an_event_is_set_or_the_time_is_over() -> None:
    event = threading.Event()
    assert not SystemClock().wait(event, 0.001)
    event.set()
    assert SystemClock().wait(event, 60)


def test_a_manual_clock_stands_still_until_it_is_moved_forwards_or_backwards() -> None:
    clock = ManualClock(1000)
    assert clock.now_ms() == clock.now_ms() == 1000
    clock.advance(5)
    assert clock.now_ms() == 1005
    clock.advance(-1005)
    assert clock.now_ms() == 0


def test_a_waiter_on_a_manual_clock_is_woken_when_its_time_has_come() -> None:
    clock, done, waited_for = ManualClock(0), threading.Event(), Asked()
    results: list[bool] = []

    def wait() -> None:
        results.append(clock.wait(waited_for, 3600))
        done.set()

    thread = threading.Thread(target=wait)
    thread.start()
    waited_for.asked.wait(PATIENCE_S)
    clock.advance(3_599_999)
    assert not done.wait(0.05)
    clock.advance(1)
    thread.join(PATIENCE_S)
    assert results == [False]


def test_a_clock_that_goes_backwards_makes_a_waiter_wait_longer() -> None:
    clock, event = ManualClock(10_000), Asked()
    thread = threading.Thread(target=clock.wait, args=(event, 1))
    thread.start()
    event.asked.wait(PATIENCE_S)
    clock.advance(-5000)
    clock.advance(5999)
    thread.join(0.05)
    assert thread.is_alive()
    event.set()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_an_event_that_is_set_ends_the_wait_at_once() -> None:
    event = threading.Event()
    event.set()
    assert ManualClock().wait(event, 10**9)


def test_waiting_for_nothing_is_over_at_once() -> None:
    assert not ManualClock().wait(threading.Event(), 0)


def test_many_threads_may_move_one_clock() -> None:
    clock = ManualClock(0)

    def push() -> None:
        for _ in range(1000):
            clock.advance(1)

    threads = [threading.Thread(target=push) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.now_ms() == 8000
