"""The throttle, on a clock that moves by itself with every wait."""

from __future__ import annotations

import threading

import pytest

from logstore import ChangeRefusedError
from logstore.clock import ManualClock
from logstore.purge import Throttle


class Impatient(ManualClock):
    """Waiting makes the time pass at once, and is noted."""

    def __init__(self) -> None:
        super().__init__(1_000_000)
        self.waited: list[float] = []

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.waited.append(seconds)
        if event.is_set():
            return True
        self.advance(round(seconds * 1000))
        return False


GO_ON = threading.Event()


def test_bytes_pass_at_their_rate_on_average() -> None:
    clock = Impatient()
    throttle = Throttle(clock, bytes_per_s=1000)
    assert all(throttle.take(500, 1, GO_ON) for _ in range(20))
    assert clock.now_ms() - 1_000_000 == 10_000


def test_unlinks_pass_at_their_rate_whatever_their_bytes() -> None:
    clock = Impatient()
    throttle = Throttle(clock, unlinks_per_s=4, bytes_per_s=10**12)
    for _ in range(8):
        throttle.take(1, 1, GO_ON)
    assert clock.now_ms() - 1_000_000 == 2000


def test_what_is_larger_than_a_second_allows_passes_and_is_paid_for() -> None:
    clock = Impatient()
    assert Throttle(clock, bytes_per_s=100).take(1000, 1, GO_ON)
    assert clock.waited == [10.0]


def test_a_pause_saves_up_one_second_and_no_more() -> None:
    clock = Impatient()
    throttle = Throttle(clock, bytes_per_s=100)
    clock.advance(3_600_000)
    throttle.take(100, 1, GO_ON)
    assert clock.waited == []
    throttle.take(100, 1, GO_ON)
    assert clock.waited == [1.0]


def test_a_clock_that_goes_backwards_gives_nothing_away() -> None:
    clock = Impatient()
    throttle = Throttle(clock, bytes_per_s=100)
    clock.advance(-3_600_000)
    throttle.take(200, 1, GO_ON)
    assert clock.waited == [2.0]


def test_without_rates_nothing_waits() -> None:
    clock = Impatient()
    assert Throttle(clock).take(10**15, 10**9, GO_ON)
    assert clock.waited == []


def test_a_cancelled_purge_takes_nothing_and_ends_a_wait() -> None:
    clock, cancel = Impatient(), threading.Event()
    throttle = Throttle(clock, bytes_per_s=1)
    cancel.set()
    assert not throttle.take(1, 1, cancel)
    assert clock.waited == []

    class Cancelling(Impatient):
        def wait(self, event: threading.Event, seconds: float) -> bool:
            event.set()
            return super().wait(event, seconds)

    cancel = threading.Event()
    assert not Throttle(Cancelling(), bytes_per_s=1).take(5, 1, cancel)


@pytest.mark.parametrize("rates", [{"bytes_per_s": 0}, {"unlinks_per_s": -1}])
def test_a_rate_at_which_nothing_would_happen_is_refused(rates: dict[str, float]) -> None:
    with pytest.raises(ChangeRefusedError, match="never come to an end"):
        Throttle(ManualClock(), **rates)
