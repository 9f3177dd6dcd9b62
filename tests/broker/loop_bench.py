"""A real broker that was healthy when it stopped, for the faults of the operator loop: six partitions of two topics.

It is the broker of ``cure_bench`` after its cure, with the replicas that nobody wants kept elsewhere, so that each of
them can be planted by itself.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from layout import partition_metadata
from layout.ids import TopicId
from reconciler.verdicts import CLOCK_SKEW_MS
from tests.broker.cure_bench import RECORDS, SICK, STALE, SickBroker
from tests.operator_loop.bench import PARTITIONS, Bench

CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")


class HealthyBroker(Bench):
    """Broker 2 of a cluster, stopped, with its disks as they were when it was in sync.

    Attributes:
        sick: the cluster, its records, and the replicas that nobody wants.
        fetched: names of the replicas that the last start had to make anew.
        registers_anew: whether the cluster may know another disk of it, so that it has to start with its own once.
        taken_back: what a fault changed outside of the disks, and has to be undone.
    """

    def __init__(self, sick: SickBroker) -> None:
        """Cure the broker, let it join, and keep its disks."""
        super().__init__(sick.broker.folder)
        self.release = sick.cluster.release.version
        self.sick = sick
        self._kept, self._stale = self.folder / "healthy", self.folder / "unwanted"
        self.fetched: set[str] = set()
        self.taken_back: list[Callable[[], None]] = []
        self.registers_anew = False
        self._offsets: dict[str, dict[str, int]] = {file: {} for file in CHECKPOINTS}
        sick.put_back()
        for disk in self.disks:
            self._read_offsets(disk)
        for name in STALE:
            sick.replicas()[name].rename(_made(self._stale) / name)
        sick.start()
        # Release 2.8 stores the topic ID of a replica that it leads.
        sick.cluster.client.create_topic("clicks", [[SICK, 1]] * PARTITIONS)
        sick.records["clicks"] = sick.cluster.client.produce("clicks", RECORDS)
        sick.until_in_sync()
        sick.cluster.stop_broker(SICK)
        self._write_topic_ids()
        for disk in self.disks:
            self._read_offsets(disk)
            shutil.copytree(disk, self._kept / disk.name)
        self._healthy = {name: _topic_id(path) for name, path in self._replicas(self._kept).items()}
        self.put_back()

    @property
    def disks(self) -> list[Path]:
        """Its log dirs."""
        return self.sick.disks

    @property
    def source(self) -> str:
        """The cluster's own metadata, as ``--metadata`` takes it."""
        return self.sick.source

    @property
    def config(self) -> str:
        """The file with the settings that it is started with."""
        return str(self.folder / f"{self.sick.broker.name}.properties")

    @property
    def first_source(self) -> str:
        """The metadata that the operator names at first."""
        return f"kraft:{self.disks[0] / '__cluster_metadata-0'}" if self.own_copy else self.source

    @property
    def in_kraft(self) -> bool:
        """Whether controllers keep the metadata, which knows log dirs by their IDs."""
        return self.sick.way.endswith("-kraft")

    def put_back(self) -> None:
        """Stop it, undo what faults did outside of its disks, and make these what they were."""
        if self.registers_anew:
            self.registers_anew = False
            self.put_back()
            self.start()
        self.sick.put_back()
        while self.taken_back:
            self.taken_back.pop()()
        for disk in self.disks:
            for left in disk.parent.glob(f"{disk.name}.*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            shutil.rmtree(disk)
            shutil.copytree(self._kept / disk.name, disk)
        shutil.rmtree(self.folder / "unmounted", ignore_errors=True)
        self.learn()
        self.mounts.clear()
        self.wanted, self.fetched = dict(self._healthy), set()
        self.topics = {name.rpartition("-")[0]: topic_id for name, topic_id in self._healthy.items()}

    def replica(self, disk: int, name: str, topic_id: TopicId | None) -> Path:
        """Plant a replica that a broker wrote: that of the same partition, or of a topic that was deleted."""
        path, partition = self.disks[disk] / name, name.partition(".")[0]
        replicas = self._replicas(self._kept)
        shutil.copytree(replicas.get(partition, self._stale / "gone-0"), path)
        if topic_id is None:
            (path / partition_metadata.FILE_NAME).unlink(missing_ok=True)
        else:
            (path / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(topic_id))
        # It has lain there for a while: what changed less than the margin ago no metadata condemns.
        written = path.stat().st_mtime - 2 * CLOCK_SKEW_MS / 1000
        for each in (path / partition_metadata.FILE_NAME, path):
            if each.exists():
                os.utime(each, (written, written))
        return path

    def unwanted(self, name: str) -> None:
        """Plant a replica that nobody wants, in the place of a live one of its name."""
        disk = next((each for each in self.disks if (each / name).is_dir()), self.disks[0])
        shutil.rmtree(disk / name, ignore_errors=True)
        shutil.copytree(self._stale / name, disk / name)
        self.write_checkpoints()

    def write_checkpoints(self) -> None:
        """Write the offset checkpoints of both disks, for the live replicas that they hold."""
        for disk in self.disks:
            names = sorted(each.name for each in disk.iterdir())
            for file, offsets in self._offsets.items():
                entries = [f"{n.rpartition('-')[0]} {n.rpartition('-')[2]} {offsets[n]}" for n in names if n in offsets]
                (disk / file).write_text("".join(f"{line}\n" for line in ["0", str(len(entries)), *entries]))

    def write_metadata(self) -> None:
        """The cluster has written it."""

    def start(self) -> None:
        """Start the broker; it must come up."""
        live = {name for disk in self.disks for name in self.wanted if (disk / name).is_dir()}
        self.fetched = set(self.wanted) - live
        self.sick.start()

    def stop(self) -> None:
        """Stop the broker."""
        self.sick.cluster.stop_broker(SICK)

    def unlike_the_leader(self) -> list[str]:
        """List the replicas whose segments differ from those of the leader, which runs."""
        (here, there) = (self._segments(self.sick.cluster.brokers[number].log_dirs) for number in (SICK, 1))
        return [name for name in sorted(self.wanted) if here.get(name) != there[name]]

    def has_yet_to_write(self, finding: str) -> bool:
        """Whether it is about a replica that a broker of 2.8 fetched, whose topic ID it writes once it leads."""
        return self.sick.way == "2.8-zk" and any(re.match(f"NO_ID .*/{name}: ", finding) for name in self.fetched)

    def _write_topic_ids(self) -> None:
        """Write what a broker of 2.8 did not, since it follows only; the others have them."""
        plan = self.folder / "topic-ids.json"
        self.sick.run("repair", *self.disks, "--metadata", self.source, "-o", plan, codes=(0, 1))
        self.sick.run("repair", "--apply", plan)
        for left in (left for disk in self.disks for left in disk.glob(".logstore_repair.*")):
            left.unlink()

    def _read_offsets(self, disk: Path) -> None:
        for file, offsets in self._offsets.items():
            for line in (disk / file).read_text().splitlines()[2:]:
                topic, partition, offset = line.rsplit(" ", 2)
                offsets[f"{topic}-{partition}"] = int(offset)

    def _replicas(self, folder: Path) -> dict[str, Path]:
        found = (path for disk in self.disks for path in (folder / disk.name).iterdir())
        return {path.name: path for path in found if path.is_dir() and not path.name.startswith("__cluster_metadata")}

    @staticmethod
    def _segments(disks: list[Path]) -> dict[str, bytes]:
        found = (path for disk in disks for path in disk.iterdir() if path.is_dir())
        return {path.name: b"".join(log.read_bytes() for log in sorted(path.glob("*.log"))) for path in found}


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _topic_id(replica: Path) -> TopicId:
    return partition_metadata.parse((replica / partition_metadata.FILE_NAME).read_bytes()).topic_id
