"""A process that works on a store until it is killed, and says on its output what it begins and what it has done.

Each line is one JSON object: ``{"op": "stage", "partitions": [3], "now_ms": ..., "done": false}``. What it does is
drawn from a seed. Arguments: the seed, what the clock says, and the log dirs.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import DELETE_DELAY, STALE_DELAY, Settings
from logstore.clock import ManualClock
from logstore.fs import Disk
from logstore.staging import Staged
from logstore.store import LogStore, StoreOptions

TOPIC_ID = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")
SEGMENT = "00000000000000000000.log"
MINUTE_MS = 60_000
START_MS = 1_700_000_000_000
MOVED = "MOVED"
DELAY_MS = 20 * MINUTE_MS
SETTINGS = Settings({"": {STALE_DELAY: DELAY_MS, DELETE_DELAY: DELAY_MS}})
"""What is staged is due after twenty operations; each takes a minute."""


def at(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def content(number: int) -> bytes:
    """The segment of a partition, which no other has."""
    return b"the records of partition %d\n" % number


def opened(log_dirs: list[str], now_ms: int) -> LogStore:
    return LogStore.open(log_dirs, StoreOptions(ManualClock(now_ms), SETTINGS, Disk(), jobs=0))


class Worker:
    """Draws what to do next, and does it."""

    def __init__(self, store: LogStore, chance: random.Random, now_ms: int) -> None:
        self.store, self.chance, self.now_ms = store, chance, now_ms

    def say(self, op: str, partitions: list[int], done: bool) -> None:
        line = {"op": op, "partitions": partitions, "now_ms": self.now_ms, "done": done}
        os.write(1, (json.dumps(line) + "\n").encode())

    def work(self) -> None:
        """One operation, which takes a minute."""
        self.now_ms += MINUTE_MS
        clock = self.store.clock
        assert isinstance(clock, ManualClock)
        clock.advance(MINUTE_MS)
        live = sorted(replica.partition.partition for replica in self.store.replicas())
        staged = {
            each.partition.partition: each
            for each in self.store.staged()
            if each.partition is not None and each.record is not None and each.record.verdict != MOVED
        }
        choices: list[Callable[[], None]] = [self.purge]
        if len(live) < 30:
            choices += [lambda: self.create(self.chance.randrange(1 << 30))] * 2
        if live:
            choices += [lambda: self.move(self.chance.choice(live))] * 2
            choices += [lambda: self.stage(self.chance.sample(live, self.chance.randint(1, min(8, len(live)))))] * 3
        back = [each for number, each in staged.items() if number not in live and not each.is_due(self.now_ms)]
        if back:
            choices += [lambda: self.restore(self.chance.choice(back))] * 3
        self.chance.choice(choices)()

    def create(self, number: int) -> None:
        self.say("create", [number], False)
        fill(self.store, number, self.store.create(at(number), TOPIC_ID).path)
        self.say("create", [number], True)

    def stage(self, numbers: list[int]) -> None:
        self.say("stage", numbers, False)
        outcome = self.store.stage([at(number) for number in numbers], "STALE_ID", "drawn")
        assert not outcome.refused, outcome.refused
        self.say("stage", numbers, True)

    def restore(self, staged: Staged) -> None:
        assert staged.partition is not None
        number = staged.partition.partition
        self.say("restore", [number], False)
        self.store.restore(staged)
        self.say("restore", [number], True)

    def move(self, number: int) -> None:
        here = self.store.get(at(number)).log_dir
        target = next(log_dir for log_dir in self.store.log_dirs if log_dir.path != here)
        assert target.identity.directory_id is not None
        self.say("move", [number], False)
        self.store.move(at(number), target.identity.directory_id)
        self.say("move", [number], True)

    def purge(self) -> None:
        self.say("purge", [], False)
        report = self.store.purge()
        assert not any(part.error or part.failures for part in report.log_dirs), report
        self.say("purge", [], True)


def fill(store: LogStore, number: int, path: str) -> None:
    """Put a segment into a new replica, as a broker does."""
    with open(f"{store.get(at(number)).log_dir}/{path}/{SEGMENT}", "wb") as file:
        file.write(content(number))


def main(seed: int, now_ms: int, log_dirs: list[str]) -> None:
    os.write(1, b'{"op": "open"}\n')
    with opened(log_dirs, now_ms) as store:
        worker = Worker(store, random.Random(f"{seed} {now_ms}"), now_ms)
        while True:
            worker.work()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
