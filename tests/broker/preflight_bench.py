"""Puts damage on the disks of real brokers, asks ``logstore preflight``, starts them, and sees what they do.

A lab is one cluster whose brokers are benches: each has three disks and a topic of its own, of which it is the only
replica, and is put back to the same clean stop before each case. Several benches work at the same time.
"""

from __future__ import annotations

import fcntl
import json
import queue
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from click.testing import CliRunner

from reconciler.cli import logstore
from tests.patience import PATIENCE_S
from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import StartError
from tools.real_broker.servers import Broker

PARTITIONS = 6
RECORDS = 60
PAUSE = 0.2
HEX = "0123456789abcdef0123456789abcdef"
AT_ONCE = 3
"""Benches that work at the same time."""
TRIES = 3
"""How often a case is tried whose broker loses a race against itself."""

QUICK = {
    "log.segment.delete.delay.ms": 1000,
    "log.initial.task.delay.ms": 500,
    "zookeeper.session.timeout.ms": 3000,
}
"""So that what a broker deletes is gone within seconds; releases before 3.8 begin after 30 s all the same."""

_asking = threading.Lock()


@runtime_checkable
class Closing(Protocol):
    """Damage that lasts until ``close`` is called."""

    def close(self) -> None:
        """End it."""


class Bench:
    """One broker that is stopped, its disks, and the partitions of its topic."""

    def __init__(self, cluster: Cluster, broker: Broker, topic: str, topic_id: str | None) -> None:
        """The broker runs no longer, and was stopped cleanly."""
        self.cluster, self.broker, self.topic, self.topic_id = cluster, broker, topic, topic_id
        self._kept = broker.folder / "kept"
        self.mode = str(cluster.mode)
        self.extra: dict[str, object] = {}
        """Settings of the next start alone."""
        for disk in broker.log_dirs:
            shutil.copytree(disk, self._kept / disk.name, symlinks=True)

    @property
    def disks(self) -> list[Path]:
        """The log dirs, in the order of ``log.dirs``."""
        return self.broker.log_dirs

    @property
    def is_kraft(self) -> bool:
        """It takes its metadata from KRaft."""
        return self.mode == "kraft"

    def replicas(self, disk: int) -> list[Path]:
        """The partition dirs of its topic on one disk, by name."""
        return sorted(self.disks[disk].glob(f"{self.topic}-[0-9]"))

    def put_back(self) -> None:
        """Make the disks what they were after the clean stop."""
        self.extra = {}
        for disk in self.disks:
            remove(disk)
            shutil.copytree(self._kept / disk.name, disk, symlinks=True)

    def preflight(self) -> dict[str, Any]:
        """What the command says, as JSON, of the disks as they are and of the metadata of the moment."""
        metadata = f"kraft:{self.cluster.metadata.data}" if self.is_kraft else f"zk:{self.cluster.zookeeper}"
        mode = "kraft" if self.is_kraft else "zookeeper"
        if self.extra.get("zookeeper.metadata.migration.enable"):
            mode = "migration"
        arguments = ["preflight", *map(str, self.disks), "--metadata", metadata, "--mode", mode, "--format", "json"]
        with _asking:
            result = CliRunner().invoke(logstore, [*arguments, "--kafka", self.cluster.release.version])
        assert result.exit_code in (0, 1), result.output
        document: dict[str, Any] = json.loads(result.stdout)
        assert document["nothing_lost"] == (result.exit_code == 0)
        return document

    def listing(self) -> dict[Path, frozenset[str]]:
        """The names of the directories on each disk."""
        return {disk: _directories(disk) for disk in self.disks}

    def offline(self) -> set[Path]:
        """The disks that a running broker has let go of: it holds no lock on them."""
        return {disk for disk in self.disks if not is_locked(disk)}

    def log_since(self, place: int) -> str:
        """What the broker has written since."""
        with open(self.broker.log, encoding="utf-8", errors="replace") as log:
            log.seek(place)
            return log.read()

    def log_end(self) -> int:
        """Where its log ends now."""
        return self.broker.log.stat().st_size

    def launch_and_wait(self) -> bool:
        """Start it, and say whether it came so far as to serve; False: it ended by itself."""
        usual, self.broker.settings = self.broker.settings, self.broker.settings | self.extra
        self.broker.launch()
        self.broker.settings = usual
        try:
            self.broker.wait_until_ready(PATIENCE_S)
        except StartError:
            if self.broker.running:
                raise
            return False
        return True


@dataclass(frozen=True)
class Case:
    """One damage, or several that do not disturb each other."""

    rules: tuple[str, ...]
    """Which must be among the findings."""
    damage: Callable[[Bench], object]
    ways: tuple[str, ...] = ("2.8-zk", "4.3-kraft")
    """Releases with their modes; where no rule tells one from another, the oldest and the newest."""
    says: tuple[str, ...] = ()
    """Patterns that the broker's log must have, each somewhere."""
    then: Callable[[Bench], object] | None = None
    """What must come true while the broker runs."""
    killed: bool = False
    """The broker was killed while it wrote, and not stopped."""
    race: str | None = None
    """What a broker's log has once it lost a race against itself, which nobody foretells: the case is tried again."""

    def is_logged(self, log: str) -> bool:
        """Whether the broker has said all that it was to say."""
        return all(re.search(pattern, log) for pattern in self.says)

    def is_lost(self, log: str) -> bool:
        """Whether the broker has lost a race against itself, so that what was foretold does not come any more."""
        return self.race is not None and re.search(self.race, log) is not None


@dataclass
class Outcome:
    """What was said before, and what was seen then."""

    said: Mapping[str, Any] = field(default_factory=dict)
    started: bool = False
    offline: set[Path] = field(default_factory=set)
    deleted: set[tuple[Path, str]] = field(default_factory=set)
    strays: set[tuple[Path, str]] = field(default_factory=set)
    came_true: bool = True
    logged: bool = False
    log: str = ""
    error: BaseException | None = None

    @cached_property
    def rules(self) -> set[str]:
        """The rules that spoke."""
        return {each["rule"] for each in self.said["findings"]}

    def foretold(self, effect: str) -> set[tuple[Path, str]]:
        """Log dir and name of what was said to come to this."""
        found = (each for each in self.said["findings"] if each["effect"] == effect)
        return {(Path(each["log_dir"]), each["name"]) for each in found if each["log_dir"] is not None}

    @property
    def foretold_offline(self) -> set[Path]:
        """Which disks were said to go offline."""
        return {Path(each["log_dir"]) for each in self.said["log_dirs"] if not each["would_be_online"]}

    @property
    def agrees(self) -> bool:
        """Whether all that can be compared was said as it came."""
        if self.said["starts"] != self.started:
            return False
        if not self.started:
            return True
        gone = self.deleted == self.foretold("deleted") | self.replaced
        return gone and self.strays == self.foretold("renamed_to_stray") and self.offline == self.foretold_offline

    @property
    def replaced(self) -> set[tuple[Path, str]]:
        """The current replicas that were said to be replaced: a sentence names them."""
        sentences = (each["problem"] for each in self.said["findings"] if each["effect"] == "replaced")
        paths = [Path(found[1]) for each in sentences if (found := re.search(r"and (\S+) is deleted", each))]
        return {(path.parent, path.name) for path in paths}

    def __str__(self) -> str:
        if self.error is not None:
            return f"the case itself failed: {self.error!r}"
        findings = [
            f"{each['effect']} {each['rule']} {each['log_dir']}/{each['name']}" for each in self.said["findings"]
        ]
        lines = (line for line in self.log.splitlines() if re.search("ERROR|FATAL|WARN|xception", line))
        last = "\n".join(line[:300] for line in lines if not re.search("change state for|elect leader for", line))
        seen = f"offline={self.offline}, deleted={self.deleted}, strays={self.strays}"
        rest = f"as it was to come: {self.came_true}, logged: {self.logged}"
        said = "\n".join([f"said: starts={self.said['starts']}", *findings])
        return f"{said}\nseen: starts={self.started}, {seen}\n{rest}\nlog:\n{last[-6000:]}"


class Lab:
    """One cluster of benches."""

    def __init__(self, cluster: Cluster) -> None:
        """Make a topic for each broker, write to it, and stop the brokers cleanly; the metadata's keeper stays."""
        self.cluster = cluster
        self.way = f"{cluster.release.name}-{cluster.mode}"
        topics = {}
        for number in cluster.brokers:
            topic = cluster.client.create_topic(f"orders{number}", [[number]] * PARTITIONS)
            cluster.client.produce(topic.name, RECORDS)
            topics[number] = topic
        for broker in cluster.brokers.values():
            broker.ask_to_stop()
        self.benches: queue.SimpleQueue[Bench] = queue.SimpleQueue()
        for number, broker in cluster.brokers.items():
            broker.stop()
            broker.settings |= QUICK
            assert all((disk / ".kafka_cleanshutdown").exists() for disk in broker.log_dirs)
            self.benches.put(Bench(cluster, broker, topics[number].name, topics[number].topic_id))

    def run(self, cases: Mapping[str, Case]) -> dict[str, Outcome]:
        """Try all cases of this lab's release and mode, several at a time."""
        mine = {name: case for name, case in cases.items() if self.way in case.ways}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            tried = {name: pool.submit(self._try, case) for name, case in mine.items()}
        return {
            name: each.result() if each.exception() is None else Outcome(error=each.exception())
            for name, each in tried.items()
        }

    def _try(self, case: Case) -> Outcome:
        bench = self.benches.get()
        try:
            for _ in range(TRIES):
                outcome = Outcome()
                try:
                    bench.put_back()
                    _on(bench, case, outcome)
                finally:
                    bench.broker.kill()
                if not case.is_lost(outcome.log):
                    break
        finally:
            self.benches.put(bench)
        return outcome


def _on(bench: Bench, case: Case, outcome: Outcome) -> None:
    end_its_session(bench)
    if case.killed:
        assert bench.launch_and_wait()
        bench.cluster.client.produce(bench.topic, RECORDS)
        bench.broker.kill()
        end_its_session(bench)
    kept = case.damage(bench)
    try:
        _start(bench, case, outcome)
    finally:
        if isinstance(kept, Closing):
            kept.close()


def _start(bench: Bench, case: Case, outcome: Outcome) -> None:
    before, place = bench.listing(), bench.log_end()
    outcome.said = bench.preflight()
    outcome.started = bench.launch_and_wait()
    deadline = time.monotonic() + PATIENCE_S
    while outcome.started:
        is_over = not bench.broker.running
        outcome.offline = bench.offline()
        after = bench.listing()
        outcome.strays = set(_strays(before, after))
        gone = {(disk, name) for disk in before for name in before[disk] - after[disk]}
        outcome.deleted = gone - outcome.strays - set(_finished(gone, after))
        outcome.came_true = outcome.agrees and (case.then is None or bool(case.then(bench)))
        outcome.log = bench.log_since(place)
        is_over |= outcome.came_true and case.is_logged(outcome.log)
        if is_over or case.is_lost(outcome.log) or time.monotonic() > deadline:
            break
        time.sleep(PAUSE)
    outcome.log = bench.log_since(place)
    outcome.logged = case.is_logged(outcome.log)


def end_its_session(bench: Bench) -> None:
    """Let the cluster know that the broker was killed; KRaft's brokers wait for that themselves."""
    from tools.real_broker import znodes

    if not bench.is_kraft:
        znodes.sign_off(bench.cluster.zookeeper, bench.broker.node_id)


def _strays(before: Mapping[Path, Iterable[str]], after: Mapping[Path, Iterable[str]]) -> Iterable[tuple[Path, str]]:
    """Names for which a stray has come up."""
    for disk, names in after.items():
        for name in set(names) - set(before[disk]):
            if found := re.fullmatch(r"(\S+-\d+)\.[0-9a-f]{32}-stray", name):
                future = [each for each in before[disk] if each.startswith(f"{found[1]}.") and each.endswith("-future")]
                gone = [each for each in [found[1], *future] if each in before[disk]]
                yield disk, gone[0] if gone else name


def _finished(gone: Iterable[tuple[Path, str]], after: Mapping[Path, Iterable[str]]) -> Iterable[tuple[Path, str]]:
    """Future dirs that have become the current ones, with their records."""
    for disk, name in gone:
        if name.endswith("-future") and name.partition(".")[0] in after[disk]:
            records = (disk / name.partition(".")[0]).glob("*.log")
            if any(path.stat().st_size for path in records):
                yield disk, name


def _directories(disk: Path) -> frozenset[str]:
    with suppress(OSError):
        return frozenset(each.name for each in disk.iterdir() if each.is_dir())
    return frozenset()


def remove(path: Path) -> None:
    """Remove whatever is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def end_offset(address: str, topic: str, partition: int) -> int | None:
    """Where a partition ends, as its leader says; None: nobody serves it."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    asked = TopicPartition(topic, partition)
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    try:
        return int(admin.list_offsets({asked: OffsetSpec.latest()}, request_timeout=4)[asked].result().offset)
    except KafkaException:
        return None


def is_locked(disk: Path) -> bool:
    """Whether another process holds the lock of a log dir."""
    try:
        with open(disk / ".lock", "rb+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
