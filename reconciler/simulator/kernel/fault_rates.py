"""How often what goes wrong, by kind; read from ``loss=0.01,crash=0.002``."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Self

from reconciler.errors import UsageError

_NUMBER = re.compile(r"[0-9]{0,3}(\.[0-9]{1,12})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class FaultRates:
    """A rate for each kind of fault, from 0, never, to 1, always. All are 0 unless given."""

    loss: float = 0.0
    """Of requests: it never arrives."""
    answer_loss: float = 0.0
    """Of answers: the request was handled, and the asker never hears of it."""
    delay: float = 0.0
    """Of requests and answers: late by up to ten seconds; what was sent after it waits behind it."""
    double: float = 0.0
    """Of requests: it arrives twice, and is handled twice."""
    reorder: float = 0.0
    """Of requests: it arrives late, others pass it, and it outlives the crash of the one who gets it."""
    refuse: float = 0.0
    """Of requests: the connection is refused at once."""

    crash: float = 0.0
    """Of each machine, each time that faults are drawn, as all that follow: it stops, and what was not synced is in
    doubt."""
    power_cut: float = 0.0
    """It stops in the middle of what it does: between two changes of a disk, two messages, or two timers."""
    restart: float = 0.0
    """A machine that stopped starts again."""
    session: float = 0.0
    """Its ZooKeeper session expires."""
    partition: float = 0.0
    """For a while nothing gets through between it and another machine."""
    clock_jump: float = 0.0
    """Its time of day jumps, forwards or backwards."""
    clock_skew: float = 0.0
    """Of machines, once, when the machine is first seen: its time of day is wrong from the beginning."""

    disk_offline: float = 0.0
    """One of its disks fails, at once or in the middle of its next changes."""
    disk_back: float = 0.0
    """A disk that failed is back, with what lay on it."""
    disk_full: float = 0.0
    """One of its disks is full."""
    disk_space: float = 0.0
    """A disk that was full has room again."""
    disk_replaced: float = 0.0
    """A disk that failed, or whose machine is stopped, is replaced by an empty one."""
    disk_swapped: float = 0.0
    """Two disks of a stopped machine change places: each is mounted as the other."""

    @classmethod
    def none(cls) -> Self:
        """Nothing goes wrong."""
        return cls()

    @classmethod
    def default(cls) -> Self:
        """A bad day: every kind happens within some hundreds of simulated seconds, and the cluster gets on."""
        return cls(
            loss=0.01, answer_loss=0.01, delay=0.02, double=0.01, reorder=0.02, refuse=0.005,
            crash=0.006, power_cut=0.012, restart=0.25, session=0.004, partition=0.006, clock_jump=0.003,
            clock_skew=0.3, disk_offline=0.006, disk_back=0.15, disk_full=0.006, disk_space=0.2,
            disk_replaced=0.01, disk_swapped=0.01,
        )  # fmt: skip

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``kind=rate``, by commas; ``none`` or ``default`` may come first, and what follows is on top of it.

        Raises:
            UsageError: a kind that there is not, or twice, or a rate that is no number from 0 to 1; lists the kinds.
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
        """The rate of a kind, by its name; 0 for a name that is none."""
        return float(getattr(self, kind)) if kind in KINDS else 0.0

    def __str__(self) -> str:
        """As :meth:`parse` reads it."""
        given = [f"{kind}={self.of(kind):.12f}".rstrip("0") for kind in KINDS if self.of(kind)]
        return ",".join(f"{each}0" if each.endswith(".") else each for each in given) or "none"


KINDS = tuple(each.name for each in fields(FaultRates))
"""Every kind of fault, in the order in which they are drawn."""

_LISTED = f"one of {', '.join(KINDS)}"
