"""Time, lives and power cuts; and that a seed gives one history, in whatever process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from reconciler.simulator.kernel import START_MS, Fault, FaultRates, Timers, World
from reconciler.simulator.kernel.faults import MachineStopped
from tests.reconciler.simulator.kernel.busy_world import busy

REPOSITORY = Path(__file__).resolve().parents[4]


class Machine:
    name = "broker-1"
    running = True
    crashes = 0

    def crash(self) -> None:
        self.running = False
        self.crashes += 1

    def faults(self) -> Mapping[str, Fault]:
        return {}


def test_timers_fire_at_their_time_and_at_once_means_after_what_is_due() -> None:
    world, fired = World(1), list[str]()
    timers: Timers = world.timers("broker-1")

    def first() -> None:
        fired.append("first")
        timers.after(0, "at once", lambda: fired.append("at once"))

    timers.after(10, "first", first)
    timers.after(10, "second", lambda: fired.append("second"))
    timers.after(5, "early", lambda: fired.append("early"))
    timers.after(7, "cancelled", lambda: fired.append("cancelled")).cancel()
    assert world.run() == 4
    assert fired == ["early", "first", "second", "at once"]
    assert world.now_ms == START_MS + 10
    assert [label for _, _, label in world.history.trace] == fired


def test_a_world_in_which_nothing_will_happen_stands_still() -> None:
    world = World(1)
    assert not world.step()
    assert world.events == 0


def test_a_run_for_a_while_stops_there_even_if_nothing_happens_then() -> None:
    world, fired = World(1), list[int]()
    for delay_ms in (1, 5, 9):
        world.timers("broker-1").after(delay_ms, "x", lambda delay_ms=delay_ms: fired.append(delay_ms))  # type: ignore[misc]
    assert world.run(for_ms=6) == 2
    assert (fired, world.now_ms) == ([1, 5], START_MS + 6)
    assert world.run(1, for_ms=100) == 1
    assert world.now_ms == START_MS + 9


def test_a_crash_ends_the_timers_of_that_life_and_no_others() -> None:
    world, fired = World(1), list[str]()
    world.timers("broker-1").after(5, "old", lambda: fired.append("old"))
    world.timers("broker-2").after(5, "other", lambda: fired.append("other"))
    world.crash("broker-1")
    world.timers("broker-1").after(5, "new", lambda: fired.append("new"))
    world.run()
    assert fired == ["other", "new"]
    assert (world.life_of("broker-1"), world.life_of("broker-2")) == (1, 0)


def test_a_power_cut_comes_in_the_middle_of_an_event_and_nothing_is_done_after_it() -> None:
    world, machine, done = World(1), Machine(), list[str]()
    world.add_target(machine)
    timers: Timers = world.timers("broker-1")

    def act() -> None:
        try:
            timers.after(1, "first", lambda: done.append("first"))
            done.append("between")
            timers.after(1, "second", lambda: done.append("second"))
            done.append("never")
        finally:
            with pytest.raises(MachineStopped):
                timers.after(1, "undo", lambda: done.append("undone"))

    timers.after(1, "act", act)
    world.stop_after("broker-1", 1)
    world.run()
    assert done == ["between"]
    assert (machine.crashes, world.life_of("broker-1")) == (1, 1)
    timers.after(1, "in the next life", lambda: done.append("next"))
    world.run()
    assert done == ["between", "next"]


def test_a_power_cut_outside_of_an_event_crashes_the_machine_too() -> None:
    world, machine = World(1), Machine()
    world.add_target(machine)
    world.stop_after("broker-1", 0)
    world.guarded(lambda: world.passes("broker-1"))
    assert machine.crashes == 1
    world.passes("broker-1")


def test_the_event_that_a_power_cut_ends_is_over_before_the_target_crashes() -> None:
    world, order = World(1), list[str]()

    def at_work() -> Iterator[None]:
        try:
            yield
        finally:
            order.append("over")

    class CrashedMachine(Machine):
        def crash(self) -> None:
            order.append("crashed")

    def act() -> None:
        for _ in at_work():
            world.passes("broker-1")

    world.add_target(CrashedMachine())
    world.stop_after("broker-1", 0)
    world.guarded(act)
    assert order == ["over", "crashed"]


def test_a_clock_that_jumps_changes_the_time_of_day_and_no_timer() -> None:
    world, fired = World(1), list[int]()
    timers: Timers = world.timers("broker-1")
    timers.after(100, "x", lambda: fired.append(timers.now_ms()))
    world.jump("broker-1", -3_600_000)
    assert timers.now_ms() == START_MS - 3_600_000
    assert world.timers("broker-2").now_ms() == START_MS
    world.run()
    assert fired == [START_MS + 100 - 3_600_000]
    assert world.now_ms == START_MS + 100


def test_clocks_are_wrong_from_the_beginning_where_they_should_be_and_stay_so() -> None:
    world = World(1, FaultRates(clock_skew=1.0))
    clocks = [world.timers(f"broker-{number}").now_ms() - START_MS for number in range(5)]
    assert len(set(clocks)) == 5
    assert all(abs(skew_ms) <= 300_000 for skew_ms in clocks)
    world.crash("broker-0")
    assert world.timers("broker-0").now_ms() - START_MS == clocks[0]
    assert World(1).timers("broker-0").now_ms() == START_MS


def test_one_seed_gives_one_history_and_another_seed_another() -> None:
    first, second, other = (busy(seed, FaultRates.default(), 2000)[0] for seed in (7, 7, 8))
    assert first.history.lines == second.history.lines
    assert first.history.trace == second.history.trace
    assert first.history.digest != other.history.digest


def test_one_seed_gives_one_history_in_every_process_whatever_its_hash_seed() -> None:
    def summary(hash_seed: str) -> str:
        run = subprocess.run(
            [sys.executable, "-m", "tests.reconciler.simulator.kernel.busy_world", "11"],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        return run.stdout

    here = busy(11, FaultRates.default(), 3000)[0].history
    assert summary("1") == summary("2") == f"{here.digest} {here.trace_digest} {len(here.lines)}"


def test_what_is_drawn_for_one_purpose_hangs_on_the_seed_and_the_purpose_alone() -> None:
    world = World(3)
    world.random.random()
    assert world.randomness("disks").random() == World(3).randomness("disks").random()
    assert world.randomness("disks").random() != world.randomness("network").random()


def test_nothing_goes_wrong_any_more_in_a_world_that_is_calm() -> None:
    world, talkers = busy(5, FaultRates.default(), 4000)
    world.calm()
    world.faults.put_right()
    crashes = [world.life_of(talker.name) for talker in talkers]
    assert all(talker.running for talker in talkers)
    world.run(for_ms=60_000)
    for talker in talkers:
        talker.answers.clear()
    world.run(for_ms=60_000)
    assert [world.life_of(talker.name) for talker in talkers] == crashes
    assert all(len(talker.answers) > 600 and None not in talker.answers for talker in talkers)
    world.stop_after("broker-1", 5)
    world.calm()
    world.run(for_ms=1000)
    assert [world.life_of(talker.name) for talker in talkers] == crashes
