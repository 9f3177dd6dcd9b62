"""One queue of events for all machines; taking an event is the only way in which anything happens.

A machine has a name, which is its endpoint on the network too (``broker-3``, ``client-1``). It lives until it crashes,
and what it had asked for in that life is dropped: its timers never fire, its requests are never answered. Whoever had
asked it hears, after a while, that the connection is lost. The next start is another life.

A crash may also come in the middle of an event. :meth:`World.stop_after` counts down what the machine does, a message,
a timer, or whatever else calls :meth:`World.passes`, such as a change of a disk, and then raises
:class:`MachineStopped` through all that runs there. It is no ``Exception``, so nothing takes it for an error to be
handled; and it is raised again by all that the machine tries after it, so nothing can be undone or finished either.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from reconciler.simulator.kernel.events import Event, EventQueue, History
from reconciler.simulator.kernel.faults import FAULT_INTERVAL_MS, FaultRates, Faults, FaultTarget, MachineStopped
from reconciler.simulator.kernel.network import SimulatedNetwork

START_MS = 1_700_000_000_000
"""The true time of day at the beginning, in ms since 1970."""

_SKEW_MS = 5 * 60_000
_JUMP_MS = 6 * 3_600_000
"""A jump is up to this far; the default delay of a stale topic is 4 hours, so a jump may make it due."""


class World:
    """Everything that a run is made of, from one seed.

    Attributes:
        seed: gives the whole history.
        random: for whoever is not the network or the faults: workloads, crash states of disks.
        history: what happened.
        network: between all machines.
        faults: what goes wrong, and how often.
        now_ms: the true time, in ms since 1970.
        events: how many happened.
    """

    def __init__(
        self, seed: int, rates: FaultRates | None = None, *, fault_interval_ms: int = FAULT_INTERVAL_MS
    ) -> None:
        """Begin, with nothing to happen.

        Args:
            seed: any whole number.
            rates: None: nothing goes wrong.
            fault_interval_ms: between two draws of what happens to machines.
        """
        self.seed, self.now_ms, self.events = seed, START_MS, 0
        self.random = self.randomness("world")
        self.history = History(lambda: self.now_ms - START_MS)
        self._queue = EventQueue()
        self._lives: dict[str, int] = {}
        self._clocks: dict[str, int] = {}
        self._steps_left: dict[str, int] = {}
        self.faults = Faults(self, rates or FaultRates.none(), fault_interval_ms)
        self.network = SimulatedNetwork(self)

    def randomness(self, purpose: str) -> Random:
        """A generator of its own for one purpose: what it gives hangs on the seed and the word alone."""
        return Random(f"{self.seed}/{purpose}")

    def timers(self, machine: str) -> MachineTimers:
        """Time as one machine sees it; as often asked for as it starts."""
        if machine not in self._clocks:
            skew = self.randomness(f"clock of {machine}")
            wrong = skew.random() < self.faults.rates.clock_skew
            self._clocks[machine] = skew.randint(-_SKEW_MS, _SKEW_MS) if wrong else 0
        return MachineTimers(self, machine)

    def step(self) -> bool:
        """Let the next event happen; False: nothing will happen any more."""
        taken = self._queue.take(self._lives)
        if taken is None:
            return False
        event, act = taken
        self.now_ms, self.events = event.due_ms, self.events + 1
        self.history.happened(event.machine, event.label)
        self.guarded(act)
        return True

    def run(self, steps: int | None = None, *, for_ms: int | None = None) -> int:
        """Let events happen: so many at most, and those of so long by the true time; gives how many.

        With neither it goes on until nothing will happen any more, which with faults or regular timers is never.
        """
        done, end_ms = 0, None if for_ms is None else self.now_ms + for_ms
        while steps is None or done < steps:
            if end_ms is not None and (next_ms := self._queue.next_ms(self._lives)) is not None and next_ms > end_ms:
                break
            if not self.step():
                break
            done += 1
        if end_ms is not None and (steps is None or done < steps):
            self.now_ms = max(self.now_ms, end_ms)
        return done

    def guarded(self, act: Callable[[], None]) -> None:
        """Do something outside of any event, for example start a machine; where a power cut ends it, crash that."""
        try:
            act()
        except MachineStopped as stopped:
            machine = stopped.machine
        else:
            return
        # Only now is all gone that the act had open: what its frames held on to was let go with the exception.
        self.crash(machine)

    def crash(self, machine: str) -> None:
        """End a machine's life: its timers, what it serves, its requests; then tell its fault target, if it has one."""
        self._steps_left.pop(machine, None)
        self._lives[machine] = self._lives.get(machine, 0) + 1
        self.network.crashed(machine)
        self.faults.crashed(machine)

    def life_of(self, machine: str) -> int:
        """How often it crashed."""
        return self._lives.get(machine, 0)

    def stop_after(self, machine: str, steps: int) -> None:
        """Have a machine lose its power after so many more of the things that it does; 0: before the next one."""
        self._steps_left[machine] = steps

    def passes(self, machine: str) -> None:
        """Count one thing that a machine does.

        Raises:
            MachineStopped: it has lost its power; so it does not do it.
        """
        left = self._steps_left.get(machine)
        if left is not None:
            if left <= 0:
                raise MachineStopped(machine)
            self._steps_left[machine] = left - 1

    def jump(self, machine: str, by_ms: int) -> None:
        """Set a machine's time of day forwards or, with a negative number, backwards; its timers do not care."""
        self._clocks[machine] = self._clocks.get(machine, 0) + by_ms

    def jump_somewhere(self, machine: str, random: Random) -> str:
        """Let a clock jump, or put it right; says which."""
        by_ms = random.choice([-self._clocks.get(machine, 0), random.randint(-_JUMP_MS, _JUMP_MS)])
        self.jump(machine, by_ms)
        return f"its clock jumps by {by_ms / 1000:+.3f}s"

    def clock_of(self, machine: str) -> int:
        """The time of day that a machine believes in, in ms since 1970."""
        return self.now_ms + self._clocks.get(machine, 0)

    def calm(self) -> None:
        """From now on nothing goes wrong any more; what is wrong already stays, except that machines can talk again."""
        self.faults.calm()
        self.network.heal()
        self._steps_left.clear()
        self.history.say("world", "is calm from here on")

    def add_target(self, target: FaultTarget) -> None:
        """Let faults happen to a machine."""
        self.faults.add(target)

    def add(
        self, delay_ms: int, machine: str, label: str, act: Callable[[], None], *, outlives_crash: bool = False
    ) -> Event:
        """Enter an event: of a machine's present life, or of nobody's where the machine is empty."""
        life = -1 if outlives_crash or not machine else self._lives.get(machine, 0)
        return self._queue.add(Event(self.now_ms + max(delay_ms, 0), machine, life, label, act))


class MachineTimers:
    """Time as one machine sees it, in the life it lives when it asks: :class:`~reconciler.simulator.kernel.Timers`."""

    def __init__(self, world: World, machine: str) -> None:
        """Made by :meth:`World.timers`."""
        self._world, self._machine = world, machine

    def now_ms(self) -> int:
        """The machine's time of day, which may be wrong and may jump."""
        return self._world.clock_of(self._machine)

    def after(self, delay_ms: int, label: str, act: Callable[[], None]) -> Event:
        """Have something happen, that much later by the true time; unless the machine crashes first."""
        self._world.passes(self._machine)
        return self._world.add(delay_ms, self._machine, label, act)
