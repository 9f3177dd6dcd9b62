"""What the moves of a drill need: the bench, chance, what is kept, and the change that each of them gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from logstore import DELETE_DELAY, STALE_DELAY, LogStore
from reconciler.simulator.drills.bench import Bench
from reconciler.simulator.drills.kept_replicas import Kept

_DEFAULT_MS: Final = {STALE_DELAY: 4 * 3_600_000, DELETE_DELAY: 60_000}


@dataclass(slots=True)
class Change:
    """One change of the store.

    Attributes:
        name: for the history.
        act: makes it.
        kept: the replicas that it changes; their last state is the one after it.
        refused: what it raises without having changed anything; empty: it succeeds.
        whole: all of the replicas are changed or none.
        loose: each of them may be in any of its states afterwards.
        done: called when it is done, or found to be.
    """

    name: str
    act: Callable[[], object]
    kept: list[Kept] = field(default_factory=list)
    refused: tuple[type[Exception], ...] = ()
    whole: bool = False
    loose: bool = False
    done: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Game:
    """What the moves of a drill need: the bench, chance, what is kept, the delays, and what went wrong."""

    bench: Bench
    random: Random
    delays: dict[str, dict[str, int]]
    kept: list[Kept] = field(default_factory=list)
    numbers: int = 0
    troubled: bool = False

    @property
    def store(self) -> LogStore:
        """The store of this moment."""
        return self.bench.store

    @property
    def is_made_twice(self) -> bool:
        """Whether an empty replica lies on two disks: one failed while it was made, so that another one got it."""
        empty = {each.states[-1].at for each in self.kept if not each.is_made}
        return any(each.partition in empty for each in self.store.duplicates)

    def number(self) -> int:
        """Give the next replica its number."""
        self.numbers += 1
        return self.numbers

    def delay_ms(self, topic: str, setting: str) -> int:
        """Give the delay in force for a topic, the nearest of its own, its tiers' and the default."""
        scopes = [topic]
        while ":" in scopes[-1].rstrip(":"):
            scopes.append(f"{scopes[-1].rstrip(':').rpartition(':')[0]}:")
        for scope in (*scopes, ""):
            if setting in self.delays.get(scope, {}):
                return self.delays[scope][setting]
        return _DEFAULT_MS[setting]
