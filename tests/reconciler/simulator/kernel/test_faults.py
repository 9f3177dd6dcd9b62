"""The text of rates, and faults: drawn at their rates, only where they may happen, each a line of the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from random import Random

import pytest

from reconciler.errors import UsageError
from reconciler.simulator.kernel import START_MS, Fault, FaultRates, World
from reconciler.simulator.kernel.faults import FAULT_INTERVAL_MS, KINDS
from tests.reconciler.simulator.kernel.busy_world import busy


def test_what_is_not_given_never_happens() -> None:
    rates = FaultRates.parse("loss=0.01, crash=.002,restart=1")
    assert (rates.loss, rates.crash, rates.restart, rates.double) == (0.01, 0.002, 1.0, 0.0)


def test_a_list_may_be_on_top_of_the_default() -> None:
    rates = FaultRates.parse("default,crash=0")
    assert rates.crash == 0
    assert rates.loss == FaultRates.default().loss > 0
    assert FaultRates.parse("default") == FaultRates.default()


@pytest.mark.parametrize("text", ["none", "", " , "])
def test_nothing_goes_wrong_where_none_is_asked_for(text: str) -> None:
    assert FaultRates.parse(text) == FaultRates.none() == FaultRates()


def test_the_default_lets_everything_happen() -> None:
    assert [kind for kind in KINDS if not 0 < FaultRates.default().of(kind) < 1] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fire=0.1", "'fire=0.1' is no fault and its rate: write KIND=RATE, where KIND is one of loss, answer_loss,"),
        ("loss", "'loss' is no fault and its rate"),
        ("loss=0.1,none", "'none' is no fault and its rate"),
        ("loss=0.1,loss=0.2", "loss is given twice"),
        ("loss=1.5", "loss=1.5 is no rate: write a number from 0 to 1, for example loss=0.01"),
        ("loss=-1", "loss=-1 is no rate"),
        ("loss=nan", "loss=nan is no rate"),
        ("loss=", "loss= is no rate"),
        ("loss=1e-3", "loss=1e-3 is no rate"),
        ("loss=٠", "is no rate"),
    ],
)
def test_what_is_no_rate_is_refused_with_what_would_be_one(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        FaultRates.parse(text)
    assert words in str(caught.value)


@pytest.mark.parametrize("rates", [FaultRates.none(), FaultRates.default(), FaultRates(loss=1.0, crash=1e-7)])
def test_rates_as_text_are_read_as_the_same_rates(rates: FaultRates) -> None:
    assert FaultRates.parse(str(rates)) == rates


def test_every_field_is_a_kind_and_nothing_else_has_a_rate() -> None:
    assert tuple(each.name for each in fields(FaultRates)) == KINDS
    assert FaultRates.default().of("parse") == 0.0


class Machine:
    """Offers the faults that it was given, and keeps those that happened."""

    def __init__(self, world: World, name: str, *kinds: str, running: bool = True) -> None:
        self.world, self.name, self.running, self.kinds = world, name, running, kinds
        self.happened: list[str] = []
        world.add_target(self)

    def crash(self) -> None:
        self.running = False
        self.happened.append("crash")

    def faults(self) -> Mapping[str, Fault]:
        return {kind: self._does(kind) for kind in self.kinds}

    def _does(self, kind: str) -> Fault:
        def act(random: Random) -> str:
            self.happened.append(kind)
            return f"done {random.randrange(10)}"

        return act


def test_what_a_machine_offers_happens_each_time_where_the_rate_is_one() -> None:
    world = World(1, FaultRates(session=1.0, disk_full=1.0))
    machine = Machine(world, "broker-1", "session", "disk_back")
    world.run(for_ms=3 * FAULT_INTERVAL_MS)
    assert machine.happened == ["session"] * 3
    assert world.faults.counts == {"session": 3}
    assert [line.split("  ")[0] for line in world.history.lines] == [
        f"+00000{second}.000s broker-1" for second in (1, 2, 3)
    ]
    assert "  session: done " in world.history.lines[0]


def test_where_nothing_goes_wrong_nothing_is_drawn() -> None:
    world = World(1)
    Machine(world, "broker-1", *KINDS)
    assert not world.step()


def test_faults_are_drawn_as_often_as_asked_for() -> None:
    world = World(1, FaultRates(session=1.0), fault_interval_ms=100)
    machine = Machine(world, "broker-1", "session")
    world.run(for_ms=1000)
    assert machine.happened == ["session"] * 10


def test_rates_are_kept_to_over_a_long_time() -> None:
    world = World(1, FaultRates(session=0.1))
    machine = Machine(world, "broker-1", "session")
    world.run(2000)
    assert 150 < len(machine.happened) < 250


def test_what_happens_to_messages_changes_nothing_of_what_happens_to_machines() -> None:
    def happened(messages: int) -> list[str]:
        world = World(3, FaultRates(clock_jump=0.3, loss=0.5))
        Machine(world, "broker-1")
        for _ in range(20):
            for _ in range(messages):
                world.faults.happens("loss")
            world.run(for_ms=FAULT_INTERVAL_MS)
        return [line for line in world.history.lines if "clock_jump" in line]

    assert len(happened(0)) > 2
    assert happened(0) == happened(3)


def test_a_machine_that_is_running_crashes_and_one_that_is_not_does_not() -> None:
    world = World(1, FaultRates(crash=1.0, power_cut=1.0))
    up, down = Machine(world, "broker-1"), Machine(world, "broker-2", running=False)
    world.run(for_ms=FAULT_INTERVAL_MS)
    assert (up.happened, down.happened) == (["crash"], [])
    assert (world.life_of("broker-1"), world.life_of("broker-2")) == (1, 0)
    assert world.history.lines == ["+000001.000s broker-1  crashes"]


def test_a_power_cut_waits_for_what_the_machine_does_next() -> None:
    world = World(1, FaultRates(power_cut=1.0))
    machine = Machine(world, "broker-1")
    world.run(for_ms=FAULT_INTERVAL_MS)
    assert machine.running
    assert "power_cut: its power will be cut after" in world.history.lines[0]
    for _ in range(100):
        world.guarded(lambda: world.passes("broker-1"))
    assert machine.happened == ["crash"]


def test_clocks_jump_and_machines_are_cut_off() -> None:
    world = World(2, FaultRates(clock_jump=0.5, partition=0.5))
    Machine(world, "broker-1")
    Machine(world, "broker-2")
    world.run(20)
    assert world.faults.counts.keys() == {"clock_jump", "partition"}
    assert any("its clock jumps by" in line for line in world.history.lines)
    assert any("is cut off from broker-" in line for line in world.history.lines)


def test_the_draws_end_when_the_world_is_calm() -> None:
    world = World(1, FaultRates(session=1.0))
    machine = Machine(world, "broker-1", "session")
    world.run(for_ms=2 * FAULT_INTERVAL_MS)
    world.calm()
    world.run()
    assert machine.happened == ["session"] * 2
    assert world.now_ms == START_MS + 3 * FAULT_INTERVAL_MS
    assert world.history.lines[-1].endswith("world  is calm from here on")


def test_what_is_wrong_is_put_right_in_an_order_that_makes_sense() -> None:
    class Broken(Machine):
        def faults(self) -> Mapping[str, Fault]:
            offered = dict(super().faults())
            return {kind: act for kind, act in offered.items() if self.happened.count(kind) < 2}

    world = World(1)
    machine = Broken(world, "broker-1", "restart", "disk_space", "session", "disk_back", running=False)
    world.faults.put_right()
    assert machine.happened == ["disk_back", "disk_back", "disk_space", "disk_space", "restart", "restart"]


def test_what_cannot_be_put_right_is_given_up() -> None:
    world = World(1)
    machine = Machine(world, "broker-1", "disk_back")
    world.faults.put_right()
    assert 1 < len(machine.happened) < 1000


def test_a_fault_that_ends_in_a_power_cut_crashes_that_machine_and_the_others_go_on() -> None:
    class Starting(Machine):
        def _does(self, kind: str) -> Fault:
            def act(random: Random) -> str:
                self.running = True
                self.world.passes(self.name)
                return "started"

            return act

    world = World(1, FaultRates(restart=1.0, session=1.0))
    first, second = Starting(world, "broker-1", "restart", running=False), Machine(world, "broker-2", "session")
    world.stop_after("broker-1", 0)
    world.run(for_ms=FAULT_INTERVAL_MS)
    assert (first.happened, second.happened) == (["crash"], ["session"])


def test_a_power_cut_in_the_middle_of_a_start_crashes_a_machine_that_does_not_run_yet() -> None:
    world = World(1)
    machine = Machine(world, "broker-1", running=False)
    world.stop_after("broker-1", 0)
    world.guarded(lambda: world.passes("broker-1"))
    assert machine.happened == ["crash"]


def test_everything_happens_on_a_bad_day() -> None:
    seen: set[str] = set()
    for seed in range(6):
        world, talkers = busy(seed, FaultRates.default(), 8000)
        seen |= world.faults.counts.keys()
        assert sum(talker.starts for talker in talkers) > len(talkers)
    assert {"crash", "power_cut", "restart", "session", "partition", "clock_jump"} <= seen
