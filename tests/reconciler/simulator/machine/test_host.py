"""Timers and answers of a host end with it, errors go to the history, and the clock is the machine's."""

from __future__ import annotations

import threading

from logstore import OfflineLogDirError
from reconciler.simulator.kernel import START_MS, MetadataRequest, MetadataResponse, World
from reconciler.simulator.machine import BrokerSettings
from reconciler.simulator.machine.host import Host, MachineClock


def host_in(world: World) -> Host:
    return Host(1, world.network, world.timers("broker-1"), world.history, BrokerSettings())


def test_timers_and_answers_come_while_it_lives() -> None:
    world, happened = World(1), list[object]()
    host = host_in(world)
    world.network.serve("broker-2", lambda sender, request, answer: answer(MetadataResponse((), (), 1)))
    host.after(10, "soon", lambda: happened.append("timer"))
    host.call("broker-2", MetadataRequest(), happened.append)
    world.run(for_ms=100)
    assert happened == [MetadataResponse((), (), 1), "timer"] or happened == ["timer", MetadataResponse((), (), 1)]


def test_nothing_that_was_begun_goes_on_after_its_end() -> None:
    world, happened = World(1), list[object]()
    host = host_in(world)
    world.network.serve("broker-2", lambda sender, request, answer: answer(MetadataResponse((), (), 1)))
    host.after(10, "soon", lambda: happened.append("timer"))
    host.call("broker-2", MetadataRequest(), happened.append)
    host.alive = False
    world.run(for_ms=100)
    assert happened == []


def test_an_error_of_a_disk_is_said_and_the_disks_are_looked_at() -> None:
    world, looked = World(1), list[bool]()
    host = host_in(world)
    host.noticed = lambda: looked.append(True)

    def fails() -> None:
        raise OfflineLogDirError("the disk is gone")

    host.guarded("flush", fails)
    assert looked == [True]
    assert world.history.lines[-1].endswith("broker-1  flush: the disk is gone")


def test_the_history_knows_nothing_of_the_folder_of_a_run() -> None:
    world = World(1)
    host = host_in(world)
    host.log_dirs = ["/run/17/machine-1/disk-1/data", "/run/17/machine-1/disk-2/data"]
    host.say("/run/17/machine-1/disk-2/data: orders-0 cannot be staged")
    assert world.history.lines[-1].endswith("broker-1  disk-2/data: orders-0 cannot be staged")


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
