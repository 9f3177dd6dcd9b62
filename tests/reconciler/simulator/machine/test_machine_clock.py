"""The engine's time is that of the machine."""

from __future__ import annotations

import threading

from reconciler.simulator.kernel import START_MS, World
from reconciler.simulator.machine.machine_clock import MachineClock


def test_it_shows_the_machines_time_also_where_that_is_wrong() -> None:
    world = World(1)
    clock = MachineClock(world.timers("broker-1"))
    assert clock.now_ms() == START_MS
    world.jump("broker-1", -5_000)
    assert clock.now_ms() == START_MS - 5_000


def test_nobody_waits_inside_of_an_event() -> None:
    clock, event = MachineClock(World(1).timers("broker-1")), threading.Event()
    assert not clock.wait(event, 3_600)
    event.set()
    assert clock.wait(event, 3_600)
