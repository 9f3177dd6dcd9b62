"""A store on disks to which every fault happens, from one seed; prints what was left."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from random import Random

from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import LogStoreError, Settings
from logstore.clock import ManualClock
from logstore.fs.crash_disk import MachineDisks
from logstore.log_dir import LogDir
from logstore.store import LogStore, StoreOptions
from reconciler.simulator.machine import faults_while_running, faults_while_stopped
from tests.crash.images import digest, read_tree
from tests.reconciler.simulator.machine.disk_folders import fresh_folders

ORDERS_ID = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")


class PowerCut(BaseException):
    """The power is gone."""


class BusyDisks:
    """Three disks, a store that is opened again and again, and the power."""

    def __init__(self, root: str, seed: int) -> None:
        self.random, self.clock, self.left = Random(seed), ManualClock(), -1
        self.disks = MachineDisks(root, 3, self.passes)
        self.history: list[str] = []

    def passes(self) -> None:
        if self.left == 0:
            raise PowerCut
        self.left -= 1

    def run(self, times: int) -> list[str]:
        for _ in range(times):
            self.left = self.random.choice((-1, self.random.randrange(60), self.random.randrange(400)))
            store = None
            try:
                store = self.opened()
                self.work(store)
            except PowerCut:
                self.history.append("power cut")
            except LogStoreError as error:
                self.history.append(type(error).__name__)
            self.left = -1
            for log_dir in store.log_dirs if store else ():
                log_dir.abandon()
            self.disks.crash(self.random)
            self.happen(faults_while_stopped(self.disks), 0.2)
            self.history.append(digest(read_tree(self.disks.root)).hex())
        return self.history

    def opened(self) -> LogStore:
        for number, path in enumerate(self.disks.log_dirs):
            if self.disks.is_empty(number):
                own_id = DirectoryId.from_halves(1, 1000 + self.disks.serial(number))
                LogDir.format(path, MetaProperties(1, "C", 1, own_id, Scheme.FLAT), disk=self.disks.disk).close()
        options = StoreOptions(clock=self.clock, settings=Settings(), disk=self.disks.disk, jobs=0)
        return LogStore.open(self.disks.log_dirs, options)

    def work(self, store: LogStore) -> None:
        for _ in range(30):
            self.clock.advance(self.random.randrange(3_600_000))
            partition = TopicPartition("orders", self.random.randrange(12))
            try:
                if store.find(partition) is None:
                    store.create(partition, ORDERS_ID)
                elif self.random.random() < 0.5:
                    store.stage([partition], "STALE_ID", "another ID")
                else:
                    store.write_offsets("recovery-point-offset-checkpoint", {partition: self.random.randrange(100)})
                store.purge_step()
            except LogStoreError as error:
                self.history.append(type(error).__name__)
            self.happen(faults_while_running(self.disks), 0.1)

    def happen(self, offered: dict, chance: float) -> None:  # type: ignore[type-arg]
        for kind in sorted(offered):
            if self.random.random() < chance:
                self.history.append(offered[kind](self.random))
                return


def busy(seed: int, times: int) -> list[str]:
    with contextmanager(fresh_folders)() as fresh:
        made = BusyDisks(fresh(), seed)
        history = made.run(times)
        made.disks.close()
        return history


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.stdout.write("\n".join(busy(int(sys.argv[1]), int(sys.argv[2]))))
