"""The story of a real cluster whose second broker is down while its topics change, audited at each of its stages.

Owns what happens to the cluster, and how ``logstore audit`` is asked; the tests say what it had to find. A story is
lived once for each release and mode; what was seen is kept, and the cluster may go.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from click.testing import CliRunner

from reconciler.cli import logstore
from tools.real_broker.client import until
from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import RealBrokerError
from tools.real_broker.java import run_command
from tools.real_broker.reassign import Reassignment, as_json
from tools.real_broker.releases import Mode
from tools.real_broker.servers import ZooKeeper
from tools.real_broker.znodes import topic_nodes

HEALTHY, BROKER_DOWN, BROKER_BACK, STOPPED = "healthy", "broker down", "broker back", "stopped"
OWN = "own"
"""The source that is the cluster's own metadata: KRaft's or ZooKeeper's."""
FOUND_BY_ITSELF = "found by itself"
"""No source is named, and the newest copy of the metadata in the log dirs is taken."""

PARTITION_METADATA = "partition.metadata"
SLOW = 1_000
"""Bytes a second, at which a move of 3 MB takes longer than a story."""

LOOKS = 5
"""How often a stage is looked at before its disks count as never at rest."""

SETTINGS = {"log.segment.delete.delay.ms": 600_000}
"""What a broker deletes stays as a ``-delete`` directory until the story is over."""

StartCluster = Callable[..., Cluster]
Finding = tuple[str, int, str]
"""Verdict, broker, and partition, as ``orders-0``."""


@dataclass(frozen=True)
class Audit:
    """What one run of ``logstore audit`` said."""

    code: int
    document: dict[str, Any]
    said: str
    """Its standard error."""

    def findings(self) -> list[Finding]:
        """All of them but those about topics that Kafka itself makes, in order."""
        found = self.document["findings"]
        rows = [(row["verdict"], row["broker"], f"{row['topic']}-{row['partition']}") for row in found]
        return sorted(row for row in rows if not row[2].startswith("__"))

    def evidence(self, verdict: str, name: str) -> str:
        """Why one replica was given its verdict."""
        (found,) = (
            row["evidence"]
            for row in self.document["findings"]
            if (row["verdict"], f"{row['topic']}-{row['partition']}") == (verdict, name)
        )
        return str(found)

    def fleet(self) -> list[tuple[str, str]]:
        """Kind and subject of what only several brokers together tell."""
        return sorted((finding["kind"], finding["subject"]) for finding in self.document["fleet"])


@dataclass
class Story:
    """What was seen in one cluster."""

    release: str
    mode: str
    audits: dict[str, dict[str, Audit]] = field(default_factory=dict)
    """By stage, then by source."""
    without_id: dict[str, set[tuple[int, str]]] = field(default_factory=dict)
    """By stage, the live replicas in which ``partition.metadata`` is not: broker and directory."""
    first_ids: dict[str, str] = field(default_factory=dict)
    """The topic IDs at the beginning, as the brokers tell them."""
    later_ids: dict[str, str] = field(default_factory=dict)
    """Those of the topics that came later, of the same names or not."""
    listed: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By stage, the rows of ``logstore scan``."""
    directories: dict[str, set[str]] = field(default_factory=dict)
    """By stage, the partition dirs of any kind, as the file system lists them."""


_stories: dict[tuple[str, str], Story | Exception] = {}


def story_of(start: StartCluster, release: str, mode: str) -> Story:
    """The story of a release and mode, lived at the first question.

    Args:
        start: the fixture ``start_cluster``.
        release: as ``tools.real_broker`` names it.
        mode: who keeps the metadata.

    Raises:
        RealBrokerError, AssertionError: what cut it short, at each question again.
    """
    key = (release, mode)
    if key not in _stories:
        cluster = start(release, mode=mode, brokers=2, log_dirs=2, settings=SETTINGS)
        teller = _Teller(cluster, Story(release, mode))
        try:
            teller.live()
            _stories[key] = teller.story
        except (RealBrokerError, AssertionError) as error:
            _stories[key] = error
    known = _stories[key]
    if isinstance(known, Exception):
        raise known
    return known


ALONE = {"leaving": [[1]], "between-disks": [[1]]}
"""Topics of one replica, which are long enough to be caught on their way."""

ASSIGNMENTS = {
    "kept": [[1, 2], [2, 1]],
    # Release 2.8 stores the topic ID of what it leads when it stops: so the broker that goes down leads what is judged.
    **{
        name: [[2, 1]]
        for name in ("recreated", "recreated-elsewhere", "shrunk", "deleted", "without-id", "damaged", "twice")
    },
    **ALONE,
}


class _Teller:
    """Lives a story."""

    def __init__(self, cluster: Cluster, story: Story) -> None:
        self.cluster, self.story = cluster, story
        self.client, self.up, self.down = cluster.client, cluster.brokers[1], cluster.brokers[2]

    def live(self) -> None:
        """From a new cluster to one that is stopped."""
        self._grow()
        self._look(HEALTHY)
        self._begin_moves()
        self.cluster.stop_broker(2)
        self._change_topics()
        self._damage()
        self._look(BROKER_DOWN, "describe-all", "describe")
        self._heal()
        self._take_back("leaving", 2)
        until("it has one replica", partial(self._is_on, "leaving", 1))
        self._move("between-disks", 1, self.other).cancel()
        self.cluster.start_broker(2)
        for name in ("kept", "without-id", "damaged", "twice", "late"):
            self.client.wait_until_in_sync(name)
        self._look(BROKER_BACK)
        self._stop()
        self._look(STOPPED)

    def _grow(self) -> None:
        for name, assignment in ASSIGNMENTS.items():
            self.story.first_ids[name] = str(self.client.create_topic(name, assignment).topic_id)
        for name, assignment in ASSIGNMENTS.items():
            for partition in range(len(assignment)):
                self.client.produce(name, 600 if name in ALONE else 20, partition=partition, size=5000)
        for name in ASSIGNMENTS:
            self.client.wait_until_in_sync(name)

    def _begin_moves(self) -> None:
        """One replica goes to the other disk, one to the broker that will be down; neither arrives."""
        (self.other,) = (disk for disk in self.up.log_dirs if not (disk / "between-disks-0").exists())
        self._move("between-disks", 1, self.other).execute(SLOW)
        self._move("leaving", 2).execute(SLOW)
        until("the copy has begun", lambda: list(self.other.glob("between-disks-0.*-future")))
        until("the new replica is there", lambda: self.down.replica("leaving", 0))

    def _move(self, topic: str, broker: int, disk: Path | str = "any") -> Reassignment:
        # All reassignments of a cluster share one file, so that of this one is written again before each use.
        text = as_json(topic, {0: [broker]}, {0: [str(disk)]})
        return Reassignment(self.cluster.release, self.cluster.bootstrap, self.cluster.metadata.folder, text)

    def _take_back(self, topic: str, broker: int) -> None:
        """Cancel a move without a word to the broker, which is down, about its throttle."""
        made, file = self.cluster.release, self.cluster.folder / "taken-back.json"
        file.write_text(as_json(topic, {0: [broker]}, {}))
        asked = ["--bootstrap-server", self.up.address, "--reassignment-json-file", str(file)]
        run_command(made, "reassign", made.reassign, [*asked, "--cancel", "--preserve-throttles"], self.up.quiet)

    def _is_on(self, topic: str, broker: int) -> bool:
        return self.client.describe_topic(topic).partitions[0].replicas == (broker,)

    def _change_topics(self) -> None:
        changed = {"recreated": [[1, 2]], "recreated-elsewhere": [[1]]}
        for name, assignment in changed.items():
            self.story.later_ids[name] = str(self.cluster.recreate_topic(name, assignment).topic_id)
        # Not waited for by the command, which would take away the throttles of the others when this one is done.
        self._move("shrunk", 1).execute()
        until("it has one replica", partial(self._is_on, "shrunk", 1))
        is_zookeeper = self.cluster.mode is Mode.ZOOKEEPER
        self.client.delete_topic("deleted", wait=not is_zookeeper)
        until("the broker that is up has deleted it", lambda: self.up.replica("deleted", 0) is None)
        if is_zookeeper:
            self.cluster.forget_topic("deleted")
        self.story.later_ids["late"] = str(self.client.create_topic("late", [[1, 2]]).topic_id)

    def _damage(self) -> None:
        """What nobody asked for, on the disks of the broker that is down."""
        self._replica("without-id").joinpath(PARTITION_METADATA).unlink()
        damaged = self._replica("damaged") / PARTITION_METADATA
        self.sound = damaged.read_bytes()
        damaged.write_bytes(b"")
        twice = self._replica("twice")
        (other,) = (disk for disk in self.down.log_dirs if disk != twice.parent)
        self.second = other / twice.name
        shutil.copytree(twice, self.second)

    def _heal(self) -> None:
        """Take back what would keep a broker from starting; the file that was lost stays lost."""
        (self._replica("damaged") / PARTITION_METADATA).write_bytes(self.sound)
        shutil.rmtree(self.second)

    def _replica(self, topic: str) -> Path:
        replica = self.down.replica(topic, 0)
        assert replica is not None, f"{topic}-0 is on no disk of broker 2"
        return replica

    def _stop(self) -> None:
        self.cluster.stop()
        if isinstance(self.cluster.metadata, ZooKeeper):
            # ZooKeeper writes a snapshot when it starts, before it answers anybody, and none when it stops.
            self.cluster.metadata.launch()
            self.cluster.metadata.wait_until_ready()
            topic_nodes(self.cluster.zookeeper)
            self.cluster.metadata.stop()

    def _look(self, stage: str, *described: str) -> None:
        """Ask every source, and again if a broker wrote a topic ID meanwhile: all were to see the same disks."""
        for _ in range(LOOKS):
            self.story.without_id[stage] = self._without_id()
            self._look_once(stage, *described)
            if self._without_id() == self.story.without_id[stage]:
                return
        raise AssertionError(f"{stage}: brokers wrote topic IDs during each of {LOOKS} looks at their disks")

    def _look_once(self, stage: str, *described: str) -> None:
        self.story.directories[stage] = {
            str(path) for disk in self.cluster.log_dirs for path in disk.iterdir() if path.is_dir()
        }
        self.story.listed[stage] = scanned(self.cluster.log_dirs)
        text = self.cluster.folder / "topics.txt"
        if described:
            text.write_text(self._described())
        for source, spec in [*self._sources(stage), *((scheme, f"{scheme}:{text}") for scheme in described)]:
            options = [] if spec is None else ["--metadata", spec]
            self.story.audits.setdefault(stage, {})[source] = audit(self.cluster.log_dirs, *options)

    def _sources(self, stage: str) -> Iterator[tuple[str, str | None]]:
        if self.cluster.mode is Mode.ZOOKEEPER:
            files = f"zk-snapshot:{self.cluster.metadata.data}"
            yield OWN, files if stage == STOPPED else f"zk:{self.cluster.zookeeper}"
        else:
            yield OWN, f"kraft:{self.cluster.metadata.data}"
            yield FOUND_BY_ITSELF, None
        if stage != STOPPED:
            yield "kafka", f"kafka:{self.cluster.bootstrap}"

    def _without_id(self) -> set[tuple[int, str]]:
        return {
            (broker.node_id, path.name)
            for broker in self.cluster.brokers.values()
            for disk in broker.log_dirs
            for path in disk.glob("[a-z]*-[0-9]")
            if not (path / PARTITION_METADATA).exists()
        }

    def _described(self) -> str:
        """What ``kafka-topics --describe`` of this release prints, without the lines of its log."""
        made = self.cluster.release
        package = "org.apache.kafka.tools" if made.tools else "kafka.admin"
        silent = self.cluster.folder / "silent.properties"
        level = "rootLogger.level" if made.logging_option.startswith("log4j2") else "log4j.rootLogger"
        silent.write_text(f"{level}=OFF\n")
        asked = ["--bootstrap-server", self.cluster.bootstrap, "--describe"]
        return run_command(made, "TopicCommand", f"{package}.TopicCommand", asked, silent)


def audit(log_dirs: Sequence[Path], *options: str) -> Audit:
    """Run ``logstore audit`` on log dirs.

    Raises:
        AssertionError: it was refused, or failed.
    """
    asked = ["audit", *map(str, log_dirs), "--no-sizes", "--format", "json", *options]
    ran = CliRunner().invoke(logstore, asked)
    assert ran.exit_code in (0, 1), f"logstore {' '.join(asked)}: exit code {ran.exit_code}: {ran.stderr}"
    return Audit(ran.exit_code, orjson.loads(ran.stdout), ran.stderr)


def scanned(log_dirs: Sequence[Path]) -> list[dict[str, Any]]:
    """The rows of ``logstore scan`` on log dirs.

    Raises:
        AssertionError: it was refused, or failed.
    """
    ran = CliRunner().invoke(logstore, ["scan", *map(str, log_dirs), "--format", "ndjson"])
    assert ran.exit_code == 0, f"logstore scan: exit code {ran.exit_code}: {ran.stderr}"
    return [orjson.loads(line) for line in ran.stdout.splitlines()]
