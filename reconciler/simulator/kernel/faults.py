"""Faults and their rates: now and then every machine is asked which faults may happen to it, and the rates decide.

A cluster makes each machine a :class:`FaultTarget` and hands it to ``World.add_target``::

    class BrokerTarget:
        name = "broker-1"

        def crash(self) -> None:                   # its memory and its unsynced bytes are gone
            broker.crash()
            disks.crash(world.random)

        def faults(self) -> Mapping[str, Fault]:   # what may happen now, by the name of its rate
            if not broker.running:
                return {"restart": start, **faults_while_stopped(disks)}
            return {"session": expire, **faults_while_running(disks)}

        running = property(lambda self: broker.running)

Faults that need nothing but the kernel happen to every target: ``crash`` and ``power_cut`` while it is running,
``partition``, ``clock_jump``. Each fault is a line of the history. Rates are read from ``loss=0.01,crash=0.002``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Protocol, Self, TypeAlias

from logstore import check_fields
from reconciler.errors import UsageError
from reconciler.simulator.kernel.ports import Journal, Schedule

_NUMBER = re.compile(r"[0-9]{0,3}(\.[0-9]{1,12})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class FaultRates:
    """A rate for each kind of fault, from 0, never, to 1, always. All are 0 unless given.

    Raises:
        UsageError: a rate is no number from 0 to 1.
    """

    loss: float = 0.0
    """Of requests: the request never arrives."""
    answer_loss: float = 0.0
    """Of answers: the request was handled, and its sender never gets the answer."""
    delay: float = 0.0
    """Of requests and answers: late by up to ten seconds; later messages wait behind it."""
    double: float = 0.0
    """Of requests: the request arrives twice, and is handled twice."""
    reorder: float = 0.0
    """Of requests: the request arrives late, others pass it, and it outlives a crash of its receiver."""
    refuse: float = 0.0
    """Of requests: the connection is refused at once."""

    crash: float = 0.0
    """Of each machine, each time that faults are drawn, as for all rates below: the machine stops, and data that was
    not synced is in doubt."""
    power_cut: float = 0.0
    """The machine stops in the middle of its work: between two changes of a disk, two messages, or two timers."""
    restart: float = 0.0
    """A stopped machine starts again."""
    session: float = 0.0
    """The machine's ZooKeeper session expires."""
    partition: float = 0.0
    """For a while nothing gets through between the machine and another one."""
    clock_jump: float = 0.0
    """The machine's time of day jumps, forwards or backwards."""
    clock_skew: float = 0.0
    """Of machines, drawn once at their first start: the time of day is wrong from the beginning."""

    disk_offline: float = 0.0
    """One of the machine's disks fails, at once or in the middle of its next changes."""
    disk_back: float = 0.0
    """A failed disk is back, with its data."""
    disk_full: float = 0.0
    """One of the machine's disks is full."""
    disk_space: float = 0.0
    """A full disk has room again."""
    disk_replaced: float = 0.0
    """A disk that failed, or whose machine is stopped, is replaced by an empty one."""
    disk_swapped: float = 0.0
    """Two disks of a stopped machine change places: each is mounted as the other."""

    def __post_init__(self) -> None:
        check_fields(self, UsageError, dict.fromkeys((each.name for each in fields(self)), (0.0, 1.0)))

    @classmethod
    def none(cls) -> Self:
        """Return rates of 0: no fault happens."""
        return cls()

    @classmethod
    def default(cls) -> Self:
        """Return the rates of a bad day: every kind happens within some hundreds of seconds, and the cluster copes."""
        return cls(
            loss=0.01, answer_loss=0.01, delay=0.02, double=0.01, reorder=0.02, refuse=0.005,
            crash=0.006, power_cut=0.012, restart=0.25, session=0.004, partition=0.006, clock_jump=0.003,
            clock_skew=0.3, disk_offline=0.006, disk_back=0.15, disk_full=0.006, disk_space=0.2,
            disk_replaced=0.01, disk_swapped=0.01,
        )  # fmt: skip

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``kind=rate`` pairs, separated by commas.

        ``none`` or ``default`` may come first; the rates after it replace its own.

        Raises:
            UsageError: an unknown kind, a kind given twice, or a rate that is no number from 0 to 1; lists the kinds.
        """
        parts = [part.strip() for part in text.split(",") if part.strip()]
        rates, given = cls.none(), dict[str, float]()
        if parts and parts[0] in ("none", "default"):
            rates = cls.none() if parts.pop(0) == "none" else cls.default()
        for part in parts:
            name, equals, number = (each.strip() for each in part.partition("="))
            if name not in KINDS or not equals:
                raise UsageError(f"{part!r:.60} is no fault and its rate: write KIND=RATE, where KIND is {_LISTED}")
            if name in given:
                raise UsageError(f"{name} is given twice: give each kind of fault one rate")
            if not number or not _NUMBER.fullmatch(number) or float(number) > 1:
                raise UsageError(f"{name}={number:.40} is no rate: write a number from 0 to 1, for example {name}=0.01")
            given[name] = float(number)
        return replace(rates, **given)

    def of(self, kind: str) -> float:
        """Return the rate of a kind by its name; 0 for an unknown name."""
        return float(getattr(self, kind)) if kind in KINDS else 0.0

    def __str__(self) -> str:
        """Return the text that :meth:`parse` reads."""
        given = [f"{kind}={self.of(kind):.12f}".rstrip("0") for kind in KINDS if self.of(kind)]
        return ",".join(f"{each}0" if each.endswith(".") else each for each in given) or "none"


KINDS = tuple(each.name for each in fields(FaultRates))
"""Every kind of fault, in the order in which they are drawn."""

_LISTED = f"one of {', '.join(KINDS)}"


FAULT_INTERVAL_MS = 1000
"""Simulated time between two draws, unless a world is given another interval."""

_REMEDIES = ("disk_back", "disk_space", "restart")
"""Kinds that put something right again, in the order that makes sense."""

_STEPS = 60
"""A power cut comes within this many actions of a machine: about as many as staging a replica takes."""

Fault: TypeAlias = Callable[[Random], str]
"""Carries out a fault with a random generator, and returns in words what was done."""


class MachineStopped(BaseException):
    """A machine has lost its power in the middle of its work. This is no error, and only the kernel catches it."""

    def __init__(self, machine: str) -> None:
        """Name the machine that stopped."""
        super().__init__(machine)
        self.machine = machine


class FaultTarget(Protocol):
    """A machine to which faults can happen."""

    @property
    def name(self) -> str:
        """The machine's name."""

    @property
    def running(self) -> bool:
        """Whether a crash may be drawn for it."""

    def crash(self) -> None:
        """Lose power: the kernel has dropped the machine's timers and connections already. Does not raise.

        A crash may come in the middle of a start, and so before the machine counts as running.
        """

    def faults(self) -> Mapping[str, Fault]:
        """Return the other faults that may happen now, by the name of their field in :class:`FaultRates`."""


class FaultActions(Schedule, Protocol):
    """What the faults need of the world: time, events, and the ways to disturb a machine."""

    @property
    def history(self) -> Journal:
        """The history, in which each fault is a line."""

    def guarded(self, act: Callable[[], None]) -> None:
        """Call a function; crash the machine whose power cut ends it."""

    def crash(self, machine: str) -> None:
        """End a machine's life."""

    def stop_after(self, machine: str, steps: int) -> None:
        """Cut a machine's power after a number of further actions."""

    def jump_somewhere(self, machine: str, random: Random) -> str:
        """Let a machine's clock jump, and say how far."""

    def cut(self, machine: str, others: Iterable[str], for_ms: int) -> None:
        """Let nothing through between a machine and some others for a while."""


class Faults:
    """Draws which faults happen.

    Those of messages and those of machines have generators of their own, and each draw for the machines has another:
    so a history in which less is said draws the same for the machines.

    Attributes:
        rates: of each kind; all 0 after :meth:`calm`.
        targets: the machines, in the order in which they were added.
        counts: how often each kind happened.
    """

    def __init__(self, world: FaultActions, rates: FaultRates, interval_ms: int) -> None:
        """Draw nothing before there is a target."""
        self.rates, self.targets, self.counts = rates, list[FaultTarget](), dict[str, int]()
        self._world, self._interval_ms, self._draws = world, interval_ms, 0
        self._of_messages = world.randomness("faults of messages")
        self._random = world.randomness("faults")

    def add(self, target: FaultTarget) -> None:
        """Let faults happen to one more machine; the first machine starts the draws unless all rates are 0."""
        self.targets.append(target)
        if len(self.targets) == 1 and self.rates != FaultRates.none():
            self._again()

    def calm(self) -> None:
        """Draw no more faults."""
        self.rates = FaultRates.none()

    def put_right(self) -> None:
        """Put every machine right: first its disks back, then room on them, then a start."""
        for kind in _REMEDIES:
            for target in self.targets:
                for _ in range(100):  # a machine may have several disks; the bound covers what cannot be put right
                    fault = target.faults().get(kind)
                    if fault is None:
                        break
                    self._happen(target, kind, fault)

    def happens(self, kind: str) -> bool:
        """Draw whether a fault of a kind happens to one message; draws also where the rate is 0."""
        drawn = self._of_messages.random() < self.rates.of(kind)
        if drawn:
            self._world.history.reach(f"fault {kind}")
        return drawn

    def crashed(self, machine: str) -> None:
        """Tell the target of a machine that it has lost its power."""
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
        self._draws += 1
        self._random = self._world.randomness(f"faults {self._draws}")
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
        self._world.history.reach(f"fault {kind}")

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
        self._world.cut(name, chosen, for_ms)
        return f"is cut off from {', '.join(chosen) or 'nobody'} for {for_ms} ms"
