"""A real broker with replicas that nobody wants, planted the way they come about, and put back before each test.

Two brokers, two disks each. While broker 2 was down, of its topics ``again`` was deleted and created anew, ``moved``
was given to broker 1, and ``gone`` was deleted; ``orders`` goes on. Each change is made through the commands of
``logstore``; what comes of it is seen in the answers, the disks and the log of the broker.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from reconciler.cli import logstore
from reconciler.verdicts import CLOCK_SKEW_MS
from tools.real_broker.client import Record, Topic, until
from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import StartError

RECORDS = 300
FIRST_SEGMENT = "00000000000000000000.log"
SICK = 2
"""The broker that was down."""

STALE = {
    "again-0": "STALE_ID",
    "again-1": "STALE_ID",
    "moved-0": "NOT_ASSIGNED",
    "gone-0": "UNKNOWN_TOPIC",
}
"""What nobody wants on its disks, and the verdict on it."""

WANTED = ("again", "moved", "orders")


class SickBroker:
    """Broker 2 of a cluster, stopped, with stale replicas on its disks.

    Attributes:
        cluster: it, and a healthy broker 1 that runs.
        broker: this one.
        way: release and mode, as ``3.9-zk``.
        source: where the metadata of the cluster is, as ``--metadata`` takes it.
        records: what was written to each topic that is wanted.
        old: what was written to ``again`` before it was created anew.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Plant the faults; the cluster runs, and has none of these topics."""
        self.cluster, self.broker = cluster, cluster.brokers[SICK]
        self.way = f"{cluster.release.name}-{cluster.mode}"
        is_zookeeper = cluster.mode == "zk"
        self.source = f"zk:{cluster.zookeeper}" if is_zookeeper else f"kraft:{cluster.metadata.data}"
        client = cluster.client
        # Release 2.8 stores the topic ID of a replica when it first leads, so all but some of orders lead on broker 2.
        self.first = client.create_topic("again", [[2, 1], [2, 1]])
        for name, assignment in (("moved", [[2, 1]]), ("gone", [[2]]), ("orders", [[1, 2], [2, 1]] * 6)):
            client.create_topic(name, assignment)
        self.records: dict[str, list[Record]] = {name: client.produce(name, RECORDS) for name in WANTED}
        client.produce("gone", RECORDS)
        self.old = client.consume("again")
        # The first consumer makes the brokers create the topic of offsets, a moment later.
        until("the topic of offsets is there", lambda: client.find_topic("__consumer_offsets"))
        until("all replicas are in sync", lambda: not client.under_replicated())
        cluster.stop_broker(SICK)
        stopped = time.time()
        self.new = cluster.recreate_topic("again", [[1, 2], [1, 2]])
        # As many records again in each partition, so that only their bytes tell the old ones from the new ones.
        self.records["again"] = [
            record
            for number in self.new.partitions
            for record in client.produce("again", sum(each.partition == number for each in self.old), number)
        ]
        cluster.reassign("moved", {0: [1]})
        client.delete_topic("gone", wait=not is_zookeeper)
        if is_zookeeper:
            cluster.forget_topic("gone")
        # What was written less than the margin before the metadata's time may be newer than the metadata.
        late = stopped + 2 * CLOCK_SKEW_MS / 1000
        until("the metadata is later than the last write of the broker", lambda: time.time() > late)
        self._started_at = 0
        self._kept, self._plan = self.broker.folder / "kept", self.broker.folder / "plan.json"
        for disk in self.disks:
            shutil.copytree(disk, self._kept / disk.name)

    @property
    def disks(self) -> list[Path]:
        """Its log dirs."""
        return self.broker.log_dirs

    @property
    def staging_roots(self) -> list[Path]:
        """The directories beside its log dirs where replicas are staged."""
        return [disk.with_name(f"{disk.name}.deleting") for disk in self.disks]

    def put_back(self) -> None:
        """Stop it, and make its disks what they were."""
        if self.broker.running:
            self.cluster.stop_broker(SICK)
        if not self.cluster.brokers[1].running:
            self.cluster.start_broker(1)
        for disk in (*self.disks, *self.staging_roots):
            shutil.rmtree(disk, ignore_errors=True)
        for disk in self.disks:
            shutil.copytree(self._kept / disk.name, disk)

    def run(self, command: str, *arguments: object, codes: tuple[int, ...] = (0,)) -> Result:
        """A command of ``logstore``, which must end with one of these codes."""
        result = CliRunner().invoke(logstore, [command, *map(str, arguments)])
        assert result.exit_code in codes, result.output
        return result

    def verdicts(self) -> dict[str, str]:
        """The verdict of an audit on each directory of its disks that is not as it should be."""
        result = self.run("audit", *self.disks, "--metadata", self.source, "--format", "json", codes=(0, 1))
        return {each["name"]: each["verdict"] for each in json.loads(result.stdout)["findings"]}

    def starts(self) -> Mapping[str, Any]:
        """What ``logstore preflight`` says of the next start."""
        mode = "zookeeper" if self.cluster.mode == "zk" else "kraft"
        asked = ("--kafka", self.cluster.release.version, "--mode", mode, "--metadata", self.source)
        result = self.run("preflight", *self.disks, *asked, "--format", "json", codes=(0, 1))
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    def plan(self, *options: str, codes: tuple[int, ...] = (1,)) -> Result:
        """Plan, and keep the plan for :meth:`apply`."""
        # A broker of 2.8 that only follows writes no topic ID, so that the deleted topic is known by its name alone.
        without_id = ("--allow", "no-id") if self.cluster.release.version.startswith("2.8") else ()
        asked = (*self.disks, "--metadata", self.source, *without_id, *options)
        return self.run("plan", *asked, "-o", self._plan, codes=codes)

    def planned(self) -> list[dict[str, Any]]:
        """What the plan would stage."""
        actions = json.loads(self._plan.read_bytes())["actions"]
        return [each for each in actions if each["kind"] == "stage"]

    def apply(self) -> dict[str, Any]:
        """Apply the plan, and give the outcome."""
        outcome: dict[str, Any] = json.loads(self.run("apply", self._plan, "--format", "json").stdout)
        return outcome

    def cure(self, *options: str) -> dict[str, Any]:
        """Plan and apply, and give the outcome of the latter."""
        self.plan(*options)
        return self.apply()

    def staged(self) -> dict[str, dict[str, Any]]:
        """What ``logstore staged`` lists, by the name that it would come back to."""
        lines = self.run("staged", *self.disks, "--format", "ndjson").stdout.splitlines()
        return {each["returns_to"] or each["location"]: each for each in map(json.loads, lines)}

    def start(self) -> None:
        """Start it; it must come up."""
        self._started_at = self._log_end()
        self.cluster.start_broker(SICK)

    def fails_to_start(self) -> None:
        """Start it, which it must refuse."""
        self._started_at = self._log_end()
        self.broker.launch()
        try:
            self.broker.wait_until_ready()
        except StartError:
            assert not self.broker.running
            return
        raise AssertionError("the broker has started")

    def log(self) -> str:
        """What it has written into its log since the last start."""
        with self.broker.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(self._started_at)
            return log.read()

    def _log_end(self) -> int:
        return self.broker.log.stat().st_size if self.broker.log.exists() else 0

    def until_in_sync(self) -> None:
        """Wait until the cluster has no partition that is under-replicated."""
        until("no partition is under-replicated", lambda: not self.cluster.client.under_replicated())

    def served(self) -> dict[str, list[Record]]:
        """What the two brokers give to a consumer."""
        return {name: self.cluster.client.consume(name) for name in WANTED}

    def served_alone(self, *topics: str) -> dict[str, list[Record]]:
        """What it gives to a consumer while the other broker is down, which is started again then."""
        self.cluster.stop_broker(1)
        until("it leads", lambda: all(self._led_here(self.cluster.client.find_topic(name)) for name in topics))
        found = {name: self.cluster.client.consume(name) for name in topics}
        self.cluster.start_broker(1)
        self.until_in_sync()
        return found

    def _led_here(self, topic: Topic | None) -> bool:
        return topic is not None and {part.leader for part in topic.partitions.values()} == {SICK}

    def old_records_lie_under_the_name(self) -> bool:
        """Whether the segments of ``again`` are still, to the byte, those of the topic that was deleted."""
        now = {path.name: (path / FIRST_SEGMENT).read_bytes() for path in map(self._replica, self.first.partitions)}
        then = {path.parent.name: path.read_bytes() for path in self._kept.glob(f"*/again-*/{FIRST_SEGMENT}")}
        return now == then

    def _replica(self, number: int) -> Path:
        path = self.broker.replica("again", number)
        assert path is not None
        return path

    def replicas(self) -> dict[str, Path]:
        """The directories of its disks that look like replicas, by name, but for those of Kafka's own topics."""
        found = (path for disk in self.disks for path in disk.iterdir() if path.is_dir())
        return {path.name: path for path in found if not path.name.startswith("__")}

    def strays(self) -> set[str]:
        """What is set aside as ``-stray``: the names without what makes them unique."""
        names = (re.fullmatch(r"(.+)\.[0-9a-f]{32}-stray", name) for name in self.replicas())
        return {name[1] for name in names if name}


def allocated(*folders: Path) -> int:
    """The bytes that the folders and all that is below them take on the disk."""
    paths = (path for folder in folders if folder.exists() for path in (folder, *folder.rglob("*")))
    return sum(path.lstat().st_blocks * 512 for path in paths)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
