"""One stopped broker with two disks, its healthy content, and the metadata of the cluster's controllers.

Broker 2 of three, in KRaft mode: 6 partitions of ``orders`` and 6 of ``clicks``, each in sync on all three brokers. The
metadata is written when all faults are planted, so that nothing on the disks is younger than it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from layout import meta_properties, partition_metadata
from layout.directory_name import live_name
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from reconciler.desired import Completeness, DesiredBuilder, MetadataIdentity
from reconciler.sources import parquet

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
NODE = 2
ORDERS, CLICKS = TopicId(bytes(range(1, 17))), TopicId(bytes(range(21, 37)))
OLD = TopicId(bytes(range(101, 117)))
PARTITIONS = 6
UNIQUE = "0123456789abcdef0123456789abcdef"


FORMAT = f"""#!/bin/sh
# Does what Kafka's own tool does with log dirs that have no meta.properties.
test "$1 $2 $3 $5" = "format --ignore-formatted --cluster-id --config" || exit 2
for log_dir in $(sed -n 's/^log.dirs=//p' "$6" | tr , ' '); do
  test -e "$log_dir/meta.properties" || printf 'version=1\\ncluster.id=%s\\nnode.id={NODE}\\ndirectory.id=%s\\n' \
    "$4" {DirectoryId.from_halves(99, 2)} >"$log_dir/meta.properties"
done
"""


@dataclass
class Bench:
    """The broker's disks, and what the cluster wants there."""

    folder: Path
    wanted: dict[str, TopicId] = field(default_factory=dict)
    """Name of each replica that broker 2 should have → its topic ID."""
    topics: dict[str, TopicId] = field(default_factory=lambda: {"orders": ORDERS, "clicks": CLICKS})
    given: list[int] = field(default_factory=lambda: [0, 1])
    """The disks that the operator names at first."""
    own_copy: bool = False
    """Whether the operator has only the metadata in the broker's own log dirs at first."""
    partial: bool = False
    """Whether the operator has only metadata of one topic at first, which say nothing of the others."""
    out_of_sync: set[str] = field(default_factory=set)
    """Replicas of broker 2 that the others have left behind."""
    sole: set[str] = field(default_factory=set)
    """Replicas of broker 2 that nobody else has in sync, and so nobody leads while it is down."""
    moving: set[str] = field(default_factory=set)
    """Replicas that a reassignment brings to broker 2, and that it has not caught up with."""
    epochs: dict[str, int] = field(default_factory=dict)
    """Leader epoch of partitions in the metadata; of the others, 0."""
    never_live: dict[str, TopicId] = field(default_factory=dict)
    """Data that must never be live under a topic ID, by a word in its first segment."""
    registered: list[str] = field(
        default_factory=lambda: [str(DirectoryId.from_halves(77, disk)) for disk in (1, 2)], init=False
    )
    """What the broker told the controllers of its disks at its last start."""
    places: bool = True
    """Whether the metadata places each replica in a log dir, as that of 3.7 and newer does."""
    placed: dict[str, str] = field(default_factory=dict, init=False)
    """Name of each replica → ``directory.id`` of its log dir, as broker 2 told it to the controllers."""
    mounts: list[tuple[Path, Path]] = field(default_factory=list)
    """Disks that are not mounted: where each lies meanwhile, and its mount point."""

    @property
    def disks(self) -> list[Path]:
        return [self.folder / name for name in ("disk-1", "disk-2")]

    @property
    def metadata(self) -> Path:
        return self.folder / "controller"

    @property
    def source(self) -> str:
        """The controllers' metadata, as ``--metadata`` takes it."""
        return str(self.metadata)

    @property
    def first_source(self) -> str:
        """The metadata that the operator names at first."""
        if self.own_copy:
            return str(self.disks[0] / "remote-log-index-cache")
        return str(self.folder / "partial") if self.partial else self.source

    @property
    def config(self) -> str:
        """The broker's settings, in a file."""
        return str(self.folder / "server.properties")

    release = "3.9"
    """The release of the broker, which anybody knows who stands before it."""

    def learn(self) -> None:
        """From now on, the operator names every disk and the controllers' metadata."""
        self.given, self.own_copy, self.partial = [0, 1], False, False

    def build(self) -> None:
        """Lay out the healthy broker."""
        for number, disk in enumerate(self.disks):
            disk.mkdir(parents=True, exist_ok=True)
            identity = MetaProperties(1, CLUSTER, NODE, DirectoryId.from_halves(77, number + 1))
            (disk / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))
        for topic, topic_id in self.topics.items():
            for partition in range(PARTITIONS):
                name = live_name(topic, partition)
                self.wanted[name] = topic_id
                self.replica(partition % 2, name, topic_id)
        self.write_checkpoints()
        Path(self.config).write_text(f"log.dirs={','.join(map(str, self.disks))}\n")

    def replica(self, disk: int, name: str, topic_id: TopicId | None) -> Path:
        """Make a replica's directory, with a segment and its topic ID."""
        path = self.disks[disk] / name
        path.mkdir()
        if name in self.wanted:
            self.placed.setdefault(name, self.registered[disk])
        (path / "00000000000000000000.log").write_bytes(bytes(1000))
        (path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        if topic_id is not None:
            (path / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(topic_id))
        return path

    def falsely_live(self) -> list[str]:
        """List data that is live under a topic ID that it never belonged to."""
        found = []
        for segment in (path for disk in self.disks for path in disk.glob("*/*.log")):
            word = segment.read_bytes()[:8].decode(errors="replace").strip("\0")
            data = segment.with_name(partition_metadata.FILE_NAME)
            written = str(self.never_live.get(word, "")) and data.is_file() and data.read_text()
            if written and str(self.never_live[word]) in written:
                found.append(str(segment))
        return found

    def write_checkpoints(self) -> None:
        """Write the offset checkpoints of both disks, for the live replicas that they hold."""
        for disk in self.disks:
            entries = [
                f"{name.rpartition('-')[0]} {name.rpartition('-')[2]} 5"
                for name in sorted(os.listdir(disk))
                if name in self.wanted
            ]
            for file in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
                (disk / file).write_text("".join(f"{line}\n" for line in ["0", str(len(entries)), *entries]))

    def home_of(self, name: str) -> Path:
        """Find the disk with a live replica."""
        return next(disk for disk in self.disks if (disk / name).is_dir())

    def write_metadata(self) -> None:
        """Write what the controllers say at this moment, of disks that have lain there for an hour."""
        for path in (path for disk in self.disks for path in disk.glob("*/**/*")):
            then = path.lstat().st_mtime - 3600
            os.utime(path, (then, then), follow_symlinks=False)
        identity = MetadataIdentity("kraft", "written", CLUSTER, offset=42, timestamp_ms=time.time_ns() // 1_000_000)
        self.metadata.mkdir(exist_ok=True)
        parquet.save_state(self._said(self.topics).build(identity), str(self.metadata))
        if self.own_copy:
            own = replace(identity, location="the broker's own copy", keeper=NODE)
            (self.disks[0] / "remote-log-index-cache").mkdir()
            state = self._said(self.topics).build(own)
            parquet.save_state(state, str(self.disks[0] / "remote-log-index-cache"))
        if self.partial:
            described = replace(identity, completeness=Completeness.INCREMENTAL)
            (self.folder / "partial").mkdir()
            parquet.save_state(self._said(["clicks"]).build(described), str(self.folder / "partial"))

    def _said(self, topics: Iterable[str]) -> DesiredBuilder:
        """Collect what the controllers say of some topics, and of the brokers."""
        builder = DesiredBuilder()
        for topic in topics:
            topic_id = str(self.topics[topic])
            builder.topic(topic, topic_id)
            for partition in range(PARTITIONS):
                name = live_name(topic, partition)
                nodes = [1, NODE, 3] if name in self.wanted else [1, 3]
                behind = self.out_of_sync | self.moving
                isr = [NODE] if name in self.sole else [each for each in nodes if each != NODE or name not in behind]
                builder.partition(
                    topic,
                    topic_id,
                    partition,
                    nodes,
                    isr=isr,
                    adding=[NODE] if name in self.moving else [],
                    directories=[self._placed(name, node) for node in nodes] if self.places else [],
                    leader=-1 if name in self.sole else 1,
                    leader_epoch=self.epochs.get(name, 0),
                )
        for node in (1, NODE, 3):
            builder.broker(node, 100 + node, node == NODE, self._log_dirs(node))
        return builder

    def _log_dirs(self, node: int) -> list[str]:
        """List the log dirs that a broker registered."""
        return self.registered if node == NODE else [str(DirectoryId.from_halves(100 + node, disk)) for disk in (1, 2)]

    def _placed(self, name: str, node: int) -> str | None:
        """Find the log dir in which the controllers know a replica; None: its broker has yet to choose one."""
        return self.placed.get(name) if node == NODE else self._log_dirs(node)[0]

    def start(self) -> None:
        """Do what a broker in KRaft mode does at its start.

        It makes what is missing anew, in the log dir where it is placed or in that with the fewest replicas; registers
        its log dirs; and tells in which of them each replica is.
        """
        ids = [str(self._identity(disk).directory_id) for disk in self.disks]
        for name, topic_id in self.wanted.items():
            if not any((disk / name).is_dir() for disk in self.disks):
                home = self.placed.get(name)
                fewest = min((0, 1), key=lambda disk: len(os.listdir(self.disks[disk])))
                self.replica(ids.index(home) if home in ids else fewest, name, topic_id)
        placed = {name: ids[self.disks.index(self.home_of(name))] for name in self.wanted}
        if (self.registered, self.placed) != (ids, placed):
            self.registered, self.placed = ids, placed
            self.write_metadata()

    @staticmethod
    def _identity(disk: Path) -> MetaProperties:
        return meta_properties.parse((disk / meta_properties.FILE_NAME).read_bytes())

    def stop(self) -> None:
        """Stop the broker, which leaves the disks as they are."""

    def mount(self) -> bool:
        """Mount what is not mounted, and say whether there was something."""
        found = bool(self.mounts)
        for lies, belongs in self.mounts:
            shutil.rmtree(belongs)
            lies.rename(belongs)
        self.mounts.clear()
        return found
