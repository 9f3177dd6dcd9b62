"""A scene of the thread that purges what is due: it wakes when the first of the log dirs has something due."""

from __future__ import annotations

import os
import threading
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import DELETE_DELAY, ManualClock
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import Bench
from reconciler.simulator.drills.scenes.scene import AT, made, restarted

_OTHER: Final = TopicPartition("clicks", 0)
_BETWEEN_MS: Final = (1_000, 59_000)
"""Between what becomes due first and what does later, both of them within a delay."""

_MARGIN_MS: Final = 1
"""What a sleep in seconds may be rounded by."""


class _PurgerClock(ManualClock):
    """A clock that the sleep of the purger moves, and that looks then at what should have gone before.

    Attributes:
        due_ms: path of each staged directory → when it is due.
        late: what was there though it was due.
        is_over: set when the last one should have gone.
    """

    def __init__(self, now_ms: int) -> None:
        super().__init__(now_ms)
        self.due_ms, self.late = dict[str, int](), list[str]()
        self.is_over = threading.Event()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Move the clock on, and look; at the end wait to be woken."""
        if self.now_ms() > max(self.due_ms.values()) + _MARGIN_MS:
            self.is_over.set()
            return event.wait()
        self.advance(max(int(seconds * 1000), 1))
        due = [path for path, due_ms in self.due_ms.items() if due_ms < self.now_ms() - _MARGIN_MS]
        self.late += filter(os.path.exists, due)
        return event.is_set()


def purger(bench: Bench, random: Random) -> None:
    """Let a purger sleep until all that is staged is due, on two disks."""
    made(bench, TopicId(random.randbytes(16)), random)
    made(bench, TopicId(random.randbytes(16)), random, _OTHER)
    clock = _PurgerClock(bench.clock.now_ms())
    bench.clock = clock
    restarted(bench, crash=False)
    staged = [AT, _OTHER]
    random.shuffle(staged)
    for at in staged:
        clock.advance(random.randrange(*_BETWEEN_MS))
        bench.store.stage([at], "STALE_ID", "a drill", setting=DELETE_DELAY)
    for each in bench.store.staged():
        if each.record is not None:
            clock.due_ms[os.path.normpath(f"{each.log_dir}/{each.location}")] = each.record.due_ms
    bench.store.start_purger()
    is_over = clock.is_over.wait(60)
    bench.store.close()
    left = [path for path in clock.due_ms if os.path.exists(path)]
    if not is_over or clock.late or left:
        raise BrokenInvariantError(f"the purger left {left}, came late to {clock.late}, and slept in time: {is_over}")
    bench.open()
