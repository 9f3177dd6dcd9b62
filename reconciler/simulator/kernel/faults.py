"""Lets things go wrong: now and then every machine is asked what may happen to it, and the rates decide.

A cluster wires a machine in by making it a :class:`FaultTarget`, and handing that to ``World.add_target``::

    class BrokerTarget:
        name = "broker-1"

        def crash(self) -> None:                   # its memory and its unsynced bytes are gone
            broker.crash()
            disks.crash(world.random)

        def faults(self) -> Mapping[str, Fault]:   # what may happen now, by the name of its rate
            if not broker.running:
                return {"restart": start, **disk_faults.while_stopped(disks)}
            return {"session": expire, **disk_faults.while_running(disks)}

        running = property(lambda self: broker.running)

What needs nothing but the kernel happens to every target by itself: ``crash`` and ``power_cut`` while it is running,
``partition``, ``clock_jump``. Each fault is a line of the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Protocol, TypeAlias

from reconciler.simulator.kernel.fault_rates import KINDS, FaultRates

if TYPE_CHECKING:
    from reconciler.simulator.kernel.world import World

FAULT_INTERVAL_MS = 1000
"""Simulated time between two draws, unless a world is told another."""

_REMEDIES = ("disk_back", "disk_space", "restart")
"""Kinds that put something right again, in the order that makes sense."""

_STEPS = 60
"""A power cut comes within so many things that a machine does: about as many as staging a replica takes."""

Fault: TypeAlias = Callable[[Random], str]
"""Does it, with what chance it needs, and says in words what was done."""


class MachineStopped(BaseException):
    """A machine has lost its power, in the middle of what it does. It is no error, and only the kernel catches it."""

    def __init__(self, machine: str) -> None:
        """Name the machine."""
        super().__init__(machine)
        self.machine = machine


class FaultTarget(Protocol):
    """A machine that things can happen to."""

    @property
    def name(self) -> str:
        """Of the machine."""

    @property
    def running(self) -> bool:
        """Whether a crash may be drawn for it."""

    def crash(self) -> None:
        """It lost its power: the kernel has dropped its timers and its connections already. Does not raise.

        It may come in the middle of a start, and so before the machine counts as running.
        """

    def faults(self) -> Mapping[str, Fault]:
        """What else may happen to it now: a field of :class:`FaultRates` → what lets it happen."""


class Faults:
    """Draws what goes wrong.

    Attributes:
        rates: how often; all 0 after :meth:`calm`.
        targets: the machines, in the order in which they were added.
        counts: how often what happened, by kind.
    """

    def __init__(self, world: World, rates: FaultRates, interval_ms: int) -> None:
        """Made by ``World``; draws nothing before there is a target."""
        self.rates, self.targets, self.counts = rates, list[FaultTarget](), dict[str, int]()
        self._world, self._random, self._interval_ms = world, world.randomness("faults"), interval_ms

    def add(self, target: FaultTarget) -> None:
        """Let faults happen to one more machine; the first one starts the draws, where there is something to draw."""
        self.targets.append(target)
        if len(self.targets) == 1 and self.rates != FaultRates.none():
            self._again()

    def calm(self) -> None:
        """Draw nothing any more."""
        self.rates = FaultRates.none()

    def put_right(self) -> None:
        """Offer every machine what puts it right: its disks back, then room on them, then a start; in that order."""
        for kind in _REMEDIES:
            for target in self.targets:
                for _ in range(100):  # a machine may have several disks; what cannot be put right ends this too
                    fault = target.faults().get(kind)
                    if fault is None:
                        break
                    self._happen(target, kind, fault)

    def happens(self, kind: str) -> bool:
        """Whether something of that kind goes wrong with one message; draws also where the rate is 0."""
        return self._random.random() < self.rates.of(kind)

    def crashed(self, machine: str) -> None:
        """Pass on that a machine has lost its power."""
        for target in self.targets:
            if target.name == machine:
                self._world.history.say(machine, "crashes")
                target.crash()

    def _again(self) -> None:
        self._world.add(self._interval_ms, "", "draw faults", self._draw)

    def _draw(self) -> None:
        if self.rates == FaultRates.none():
            return
        self._again()
        for target in self.targets:
            for kind in KINDS:
                rate = self.rates.of(kind)
                # Always drawn, so that one kind's rate does not change what is drawn for the others.
                if self._random.random() < rate:
                    fault = self._of_every_machine(target).get(kind) or target.faults().get(kind)
                    if fault is not None:
                        self._happen(target, kind, fault)

    def _happen(self, target: FaultTarget, kind: str, fault: Fault) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1

        def act() -> None:
            said = fault(self._random)
            if said:
                self._world.history.say(target.name, f"{kind}: {said}")

        self._world.guarded(act)

    def _of_every_machine(self, target: FaultTarget) -> dict[str, Fault]:
        name = target.name
        found: dict[str, Fault] = {
            "clock_jump": lambda random: self._world.jump_somewhere(name, random),
            "partition": lambda random: self._cut_off(name, random),
        }
        if target.running:
            found["crash"] = lambda random: self._crash(name)
            found["power_cut"] = lambda random: self._stop_soon(name, random)
        return found

    def _crash(self, name: str) -> str:
        self._world.crash(name)
        return ""

    def _stop_soon(self, name: str, random: Random) -> str:
        steps = random.randrange(_STEPS)
        self._world.stop_after(name, steps)
        return f"its power will be cut after {steps} more steps"

    def _cut_off(self, name: str, random: Random) -> str:
        others = [target.name for target in self.targets if target.name != name]
        chosen = [other for other in others if random.random() < 0.5]
        for_ms = random.randint(500, 20_000)
        self._world.network.cut(name, chosen, for_ms)
        return f"is cut off from {', '.join(chosen) or 'nobody'} for {for_ms} ms"
