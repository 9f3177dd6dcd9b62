"""A cluster of real brokers in one folder: started, used, broken on purpose, and stopped.

In KRaft the controller is a process of its own, so any broker may be down while topics change. In ZooKeeper mode one
of the brokers is the controller, and a topic whose broker is down is deleted by :meth:`Cluster.recreate_topic` alone.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tools.real_broker import znodes
from tools.real_broker.client import SECONDS, Client, Topic, until, view_of
from tools.real_broker.errors import CommandError, RealBrokerError
from tools.real_broker.fetch import class_path
from tools.real_broker.reassign import Reassignment, as_json
from tools.real_broker.releases import Mode, Release, find_release
from tools.real_broker.servers import Broker, Controller, Server, ZooKeeper, free_ports
from tools.real_broker.watchdog import Watchdog

MOST_BROKERS = 9
MOST_LOG_DIRS = 9


def random_cluster_id() -> str:
    """A cluster ID as Kafka makes them: 16 random bytes, base64 for URLs without the padding, no dash in front."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


class Cluster:
    """One to nine brokers with their disks; a context manager that starts and stops them.

    Attributes:
        folder: all that it writes: ``broker-1/disk1`` and so on, logs, settings.
        cluster_id: 22 characters, as we set it (in ZooKeeper mode too).
        brokers: from 1 on; ``brokers[1].log_dirs`` are its disks.
        metadata: the ZooKeeper or the KRaft controller; ``metadata.data`` is its folder.
    """

    def __init__(
        self,
        release: str | Release,
        folder: Path,
        *,
        mode: str | None = None,
        brokers: int = 1,
        log_dirs: int = 1,
        cluster_id: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Fetch the release if need be and write all settings; nothing runs yet.

        The folder must be empty or not be there. Without a mode it is the release's default. The settings are for every
        broker, on top of the usual; ``brokers[n].settings`` can be changed between two starts.

        Raises:
            RealBrokerError: for an unknown release or mode, a folder in use, or when it cannot be fetched.
        """
        self.release = release if isinstance(release, Release) else find_release(release)
        self.mode = self.release.mode(mode)
        if not 1 <= brokers <= MOST_BROKERS or not 1 <= log_dirs <= MOST_LOG_DIRS:
            raise RealBrokerError(
                f"{brokers} brokers with {log_dirs} log dirs each were asked for; take 1 to {MOST_BROKERS} of either"
            )
        self.folder = folder.resolve()
        if self.folder.exists() and any(self.folder.iterdir()):
            raise RealBrokerError(f"the folder {self.folder} is not empty; name one that is empty or not there yet")
        class_path(self.release)
        self.cluster_id = cluster_id or random_cluster_id()
        ports = free_ports(brokers + 1)
        self._watchdog = Watchdog()
        kind = ZooKeeper if self.mode is Mode.ZOOKEEPER else Controller
        self.metadata: ZooKeeper | Controller = kind(self.release, self.folder / kind.kind, ports[0], self._watchdog)
        self.brokers: dict[int, Broker] = {}
        for number in range(1, brokers + 1):
            self.brokers[number] = Broker(
                self.release,
                self.mode,
                number,
                self.folder / f"broker-{number}",
                port=ports[number],
                metadata_port=ports[0],
                watchdog=self._watchdog,
                log_dirs=log_dirs,
                brokers=brokers,
            )
            self.brokers[number].write_settings(settings)
        self.client = Client(self.bootstrap)
        self._started = False

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers: hosts and ports, separated by commas."""
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def zookeeper(self) -> str:
        """The address of ZooKeeper.

        Raises:
            RealBrokerError: in KRaft.
        """
        if self.mode is not Mode.ZOOKEEPER:
            raise RealBrokerError(f"this cluster of Kafka {self.release.version} runs without ZooKeeper, in KRaft")
        return self.metadata.address

    @property
    def log_dirs(self) -> list[Path]:
        """All disks of all brokers."""
        return [path for broker in self.brokers.values() for path in broker.log_dirs]

    @property
    def servers(self) -> list[Server]:
        """The brokers, then what keeps their metadata: in the order of a clean stop."""
        return [*self.brokers.values(), self.metadata]

    def __enter__(self) -> Cluster:
        """Start it."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop it for good: cleanly, or at once when something went wrong."""
        try:
            if kind is None:
                self.stop()
        finally:
            self.close()

    def start(self) -> None:
        """Start what does not run, and wait until all brokers are ready.

        Raises:
            StartError: if one is not, with the tail of its log.
            CommandError: if a log dir could not be formatted.
        """
        self._start_metadata()
        down = [broker for broker in self.brokers.values() if not broker.running]
        for broker in down:
            self._sign_off(broker)
            broker.launch()
        for broker in down:
            broker.wait_until_ready()
        self._wait_for(set(self.brokers))

    def stop(self) -> None:
        """Stop everything cleanly, the brokers at once, each after it handed its leaders over; disks stay.

        Raises:
            CommandError: if one had to be killed.
        """
        for broker in self.brokers.values():
            broker.ask_to_stop()
        for server in self.servers:
            server.stop()

    def close(self) -> None:
        """Kill what still runs, and the watchdog; the end of this object."""
        for server in self.servers:
            server.kill()
        self._watchdog.close()

    def start_broker(self, number: int) -> Broker:
        """Start one broker and wait until it is ready.

        Raises:
            StartError: with the tail of its log.
        """
        broker = self.brokers[number]
        self._sign_off(broker)
        broker.launch()
        broker.wait_until_ready()
        self._wait_for(self._running())
        return broker

    def stop_broker(self, number: int) -> None:
        """Stop one broker cleanly (SIGTERM), and wait until the others know.

        The last one that runs can hand its leaders to nobody; it stops cleanly all the same.

        Raises:
            CommandError: if it had to be killed.
        """
        self.brokers[number].stop()
        self._wait_for(self._running())

    def kill_broker(self, number: int) -> None:
        """Kill one broker (SIGKILL), and wait until the others know, which takes seconds in KRaft."""
        self.brokers[number].kill()
        self._sign_off(self.brokers[number])
        self._wait_for(self._running())

    def restart_broker(self, number: int) -> Broker:
        """Stop one broker cleanly and start it again."""
        self.stop_broker(number)
        return self.start_broker(number)

    def forget_topic(self, name: str) -> None:
        """Take a topic out of ZooKeeper by hand and have a new controller elected, see ``znodes``.

        Raises:
            RealBrokerError: in KRaft, which needs nothing of the kind.
            NotInTimeError: if no new controller is elected, or it knows the topic still.
        """
        znodes.forget_topic(self.zookeeper, name)
        self._wait_for(self._running())
        until(f"the brokers have forgotten {name}", lambda: name not in self.client.topic_names())

    def recreate_topic(self, name: str, assignment: Sequence[Sequence[int]]) -> Topic:
        """Delete a topic and create it anew, with another ID, though some of its brokers may be down.

        Those that are down keep their replicas of the old one and meet the new one when they are started. In ZooKeeper
        mode the deletion then hangs, after the live brokers have done it; see :meth:`forget_topic`.

        Raises:
            CommandError: if the cluster refuses.
            NotInTimeError: if a live broker does not delete its replica.
        """
        old = self.client.describe_topic(name)
        everywhere = {broker for part in old.partitions.values() for broker in part.replicas}
        hangs = self.mode is Mode.ZOOKEEPER and not everywhere <= self._running()
        self.client.delete_topic(name, wait=not hangs)
        for broker in everywhere & self._running():
            until(
                f"broker {broker} has deleted its replicas of {name}",
                partial(self._has_no_replica, broker, old),
            )
        if hangs:
            self.forget_topic(name)
        return self.client.create_topic(name, assignment)

    def reassign(
        self,
        topic: str,
        replicas: Mapping[int, Sequence[int]],
        log_dirs: Mapping[int, Sequence[Path | str]] | None = None,
        *,
        wait: bool = True,
        throttle: int | None = None,
    ) -> Reassignment:
        """Move partitions to other brokers, or to other disks of the same ones.

        ``replicas`` has the brokers of each partition from now on; ``log_dirs``, for a partition, one disk for each
        broker, or ``any``. Without ``wait`` the caller may ``wait``, ``verify`` or ``cancel``. The throttle is bytes
        each second.

        Raises:
            CommandError: if Kafka's command refuses.
            NotInTimeError: if it is not done in time.
        """
        places = {number: [str(path) for path in paths] for number, paths in (log_dirs or {}).items()}
        for broker in {broker for brokers in replicas.values() for broker in brokers}:
            if broker not in self.brokers:
                raise CommandError(f"there is no broker {broker} in this cluster; it has {sorted(self.brokers)}")
        move = Reassignment(self.release, self.bootstrap, self.metadata.folder, as_json(topic, replicas, places))
        move.execute(throttle)
        if wait:
            move.wait(SECONDS)
        return move

    def _has_no_replica(self, broker: int, topic: Topic) -> bool:
        return all(self.brokers[broker].replica(topic.name, number) is None for number in topic.partitions)

    def _running(self) -> set[int]:
        return {number for number, broker in self.brokers.items() if broker.running}

    def _wait_for(self, brokers: set[int]) -> None:
        """Wait until each of these brokers says that it and the others are the live ones, and knows every topic."""
        # A controller on ZooKeeper tells a broker of the live ones first, and of the topics a moment later.
        topics = znodes.topic_nodes(self.zookeeper) if self.mode is Mode.ZOOKEEPER and brokers else set()

        def settled(address: str) -> bool:
            view = view_of(address)
            return view is not None and view.brokers == brokers and view.topics >= topics

        for number in sorted(brokers):
            address = self.brokers[number].address
            until(f"broker {number} knows that the live brokers are {sorted(brokers)}", partial(settled, address))

    def _sign_off(self, broker: Broker) -> None:
        if self.mode is Mode.ZOOKEEPER:
            znodes.sign_off(self.zookeeper, broker.node_id)

    def _start_metadata(self) -> None:
        if self.metadata.running:
            return
        first, self._started = not self._started, True
        if first and isinstance(self.metadata, Controller):
            self.metadata.format(self.cluster_id)
        self.metadata.launch()
        if first and self.mode is Mode.KRAFT:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda broker: broker.format(self.cluster_id), self.brokers.values()))
        self.metadata.wait_until_ready()
        if first and self.mode is Mode.ZOOKEEPER:
            znodes.set_cluster_id(self.zookeeper, self.cluster_id)
