"""One queue of events for all machines; taking an event is the only way in which anything happens.

A machine has a name, which is its endpoint on the network too (``broker-3``, ``client-1``). It lives until it crashes.
A crash drops everything it had asked for in that life: its timers never fire, its requests are never answered. Machines
that had sent it a request learn after a while that the connection is lost. The next start is another life.

A crash may also come in the middle of an event. :meth:`World.stop_after` counts down the machine's actions (a message,
a timer, a change of a disk, anything that calls :meth:`World.passes`) and then raises :class:`MachineStopped` through
the code that runs there. It is no ``Exception``, so nothing handles it as an error. Every later action of the machine
raises it again, so nothing can be undone or finished either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from reconciler.simulator.kernel.events import Event, EventQueue, History
from reconciler.simulator.kernel.faults import FAULT_INTERVAL_MS, FaultRates, Faults, FaultTarget, MachineStopped
from reconciler.simulator.kernel.network import SimulatedNetwork

START_MS = 1_700_000_000_000
"""The true time of day at the beginning, in ms since 1970."""

_SKEW_MS = 5 * 60_000
_JUMP_MS = 6 * 3_600_000
"""The longest jump of a clock; the default delay of a stale topic is 4 hours, so a jump may make it due."""


class World:
    """The parts of a run, all made from one seed.

    Attributes:
        random: for everything but the network and the faults: workloads, crash states of disks.
        now_ms: the true time, in ms since 1970.
        events: how many happened.
    """

    def __init__(
        self, seed: int, rates: FaultRates | None = None, *, fault_interval_ms: int = FAULT_INTERVAL_MS
    ) -> None:
        """Start with an empty queue; without rates no fault happens. Faults of machines are drawn at each interval."""
        self.seed, self.now_ms, self.events = seed, START_MS, 0
        self.random = self.randomness("world")
        self.history = History(lambda: self.now_ms - START_MS)
        self._queue = EventQueue()
        self._lives: dict[str, int] = {}
        self._clocks: dict[str, int] = {}
        self._steps_left: dict[str, int] = {}
        self.faults = Faults(self, rates or FaultRates.none(), fault_interval_ms)
        self.network = SimulatedNetwork(self, self.faults.happens)

    def randomness(self, purpose: str) -> Random:
        """Return a random generator for one purpose; its numbers depend on the seed and the word alone."""
        return Random(f"{self.seed}/{purpose}")

    def timers(self, machine: str) -> MachineTimers:
        """Return the clock and timers of one machine; called at each of its starts."""
        if machine not in self._clocks:
            skew = self.randomness(f"clock of {machine}")
            wrong = skew.random() < self.faults.rates.clock_skew
            self._clocks[machine] = skew.randint(-_SKEW_MS, _SKEW_MS) if wrong else 0
            self.history.reach("fault clock_skew", int(wrong))
        return MachineTimers(self, machine)

    def step(self) -> bool:
        """Let the next event happen; False: no event is left."""
        taken = self._queue.take(self._lives)
        if taken is None:
            return False
        event, act = taken
        self.now_ms, self.events = event.due_ms, self.events + 1
        self.history.happened(event.machine, event.label)
        self.guarded(act)
        return True

    def run(self, steps: int | None = None, *, for_ms: int | None = None) -> int:
        """Let events happen, at most so many, for at most so long in true time, and return how many did.

        With neither limit it goes on until no event is left, which with faults or regular timers is never.
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
        """Call a function outside of any event, such as a machine's start; crash the machine whose power fails."""
        try:
            act()
        except MachineStopped as stopped:
            machine = stopped.machine
        else:
            return
        # Only now is everything closed that the function had open: its frames went with the exception.
        self.crash(machine)

    def crash(self, machine: str) -> None:
        """End a machine's life: its timers, its server, its requests; then crash its fault target, if it has one."""
        self._steps_left.pop(machine, None)
        self._lives[machine] = self._lives.get(machine, 0) + 1
        self.network.crashed(machine)
        self.faults.crashed(machine)

    def life_of(self, machine: str) -> int:
        """Return how often a machine crashed."""
        return self._lives.get(machine, 0)

    def stop_after(self, machine: str, steps: int) -> None:
        """Cut a machine's power after a number of further actions; 0: before the next one."""
        self._steps_left[machine] = steps

    def passes(self, machine: str) -> None:
        """Count one action of a machine.

        Raises:
            MachineStopped: the machine has lost its power and does not act.
        """
        left = self._steps_left.get(machine)
        if left is not None:
            if left <= 0:
                raise MachineStopped(machine)
            self._steps_left[machine] = left - 1

    def jump(self, machine: str, by_ms: int) -> None:
        """Move a machine's time of day forwards or, with a negative number, backwards; its timers do not change."""
        self._clocks[machine] = self._clocks.get(machine, 0) + by_ms

    def jump_somewhere(self, machine: str, random: Random) -> str:
        """Let a clock jump, or put it right, and say how far it jumps."""
        by_ms = random.choice([-self._clocks.get(machine, 0), random.randint(-_JUMP_MS, _JUMP_MS)])
        self.jump(machine, by_ms)
        return f"its clock jumps by {by_ms / 1000:+.3f}s"

    def clock_of(self, machine: str) -> int:
        """Return a machine's time of day, right or wrong, in ms since 1970."""
        return self.now_ms + self._clocks.get(machine, 0)

    def cut(self, machine: str, others: Iterable[str], for_ms: int) -> None:
        """Let nothing through between a machine and some others for a while."""
        self.network.cut(machine, others, for_ms)

    def calm(self) -> None:
        """End all faults: present damage stays, except that machines can talk to each other again."""
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
        """Queue an event of a machine's present life; an empty machine makes it an event that no crash removes."""
        life = -1 if outlives_crash or not machine else self._lives.get(machine, 0)
        return self._queue.add(Event(self.now_ms + max(delay_ms, 0), machine, life, label, act))


class MachineTimers:
    """The clock and timers of one machine: :class:`~reconciler.simulator.kernel.Timers`; a timer ends with its life."""

    def __init__(self, world: World, machine: str) -> None:
        """Belong to a machine; made by :meth:`World.timers`."""
        self._world, self._machine = world, machine

    def now_ms(self) -> int:
        """The machine's time of day, which may be wrong and may jump."""
        return self._world.clock_of(self._machine)

    def after(self, delay_ms: int, label: str, act: Callable[[], None]) -> Event:
        """Call a function after a delay in true time, unless the machine crashes first."""
        self._world.passes(self._machine)
        return self._world.add(delay_ms, self._machine, label, act)
