"""The servers of a cluster: a broker, a KRaft controller, a ZooKeeper; each with its folder, its port and its log.

Owns what each writes before it starts (settings, and the formatting of KRaft's log dirs by Kafka's own StorageTool),
and how to tell that it is ready. A server keeps its port for its whole life.
"""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.real_broker import settings as texts
from tools.real_broker.client import view_of
from tools.real_broker.errors import StartError
from tools.real_broker.java import JavaServer, run_command
from tools.real_broker.releases import Mode, Release
from tools.real_broker.watchdog import Watchdog

SECONDS_TO_START = 600
PAUSE = 0.1
"""Seconds between two looks at something that is waited for."""

_PORTS = range(20000, 32000)
"""Below the ports that Linux gives to outgoing connections, which could otherwise take that of a stopped server."""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface on which nothing listens."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((texts.HOST, port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


def answers(port: int) -> bool:
    """Whether something listens on a port of the loopback interface."""
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((texts.HOST, port)) == 0


def gives_sessions(port: int) -> bool:
    """Whether a ZooKeeper on a port of the loopback interface is at work, by its command ``srvr``.

    ZooKeeper listens for a moment before it has read its own data, and forgets clients that ask for a session in that
    moment: they wait until they time out. So this question, which costs no session, is asked first, and again after a
    second.
    """
    with contextlib.suppress(OSError), socket.create_connection((texts.HOST, port), timeout=1) as asking:
        asking.sendall(b"srvr")
        with asking.makefile("rb") as answer:
            return b"\nMode: " in answer.read()
    return False


class Server(JavaServer):
    """The common part of the three kinds of servers; ``name`` is unique in a cluster."""

    kind = ""
    main_class = "kafka.Kafka"

    def __init__(self, release: Release, name: str, folder: Path, port: int, watchdog: Watchdog) -> None:
        """Make its folder; nothing runs yet. Its log has what it wrote, over all its starts."""
        self.name, self.folder, self.port = name, folder, port
        folder.mkdir(parents=True)
        logging = folder / "logging.properties"
        super().__init__(
            release,
            self.kind,
            self.main_class,
            settings=folder / f"{name}.properties",
            log=folder / f"{name}.log",
            logging=logging,
            watchdog=watchdog,
        )
        logging.write_text(texts.as_text(texts.logging_settings(release)), encoding="utf-8")
        self.quiet = folder / "quiet.properties"
        """Logging settings for commands: warnings alone, so that what a command says stands out."""
        self.quiet.write_text(texts.as_text(texts.logging_settings(release, "WARN")), encoding="utf-8")

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{texts.HOST}:{self.port}"

    def pause(self) -> None:
        """Freeze it (SIGSTOP) until :meth:`resume`."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self.send(signal.SIGCONT)

    def wait_until_ready(self, seconds: float = SECONDS_TO_START) -> None:
        """Wait until it does its work.

        Raises:
            StartError: if it ended meanwhile, or was not ready in time; with the tail of its log.
        """
        self._wait("listen", seconds, lambda: answers(self.port))

    def _wait(self, what: str, seconds: float, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running:
                raise StartError(f"{self.name} ended before it could {what}; its log {self.log} ends:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise StartError(
                    f"{self.name} did not {what} within {seconds:g} s; its log {self.log} ends:\n{self.tail()}"
                )
            time.sleep(PAUSE)


class ZooKeeper(Server):
    """A ZooKeeper from the jars that the release's broker depends on; ``data`` holds its snapshots and its log."""

    kind = "zookeeper"
    main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

    def __init__(self, release: Release, folder: Path, port: int, watchdog: Watchdog) -> None:
        """Make its folder and write its settings."""
        super().__init__(release, "zookeeper", folder, port, watchdog)
        self.data = folder / "data"
        self._settings.write_text(texts.as_text(texts.zookeeper_settings(port, str(self.data))), encoding="utf-8")

    def wait_until_ready(self, seconds: float = SECONDS_TO_START) -> None:
        """Wait until it listens, then until it gives sessions to clients."""
        super().wait_until_ready(seconds)
        self._wait("give sessions", seconds, lambda: gives_sessions(self.port))


class KafkaServer(Server):
    """A node of Kafka; in KRaft its log dirs are formatted before its first start."""

    def format(self, cluster_id: str) -> None:
        """Have Kafka's StorageTool format the log dirs that are not yet (KRaft).

        Raises:
            CommandError: if it refused.
        """
        arguments = ["format", "--ignore-formatted", f"--cluster-id={cluster_id}", "-c", str(self._settings)]
        run_command(self._release, "storage", "kafka.tools.StorageTool", arguments, self.quiet)


class Controller(KafkaServer):
    """The KRaft controller, which is no broker; ``data`` holds ``__cluster_metadata-0``."""

    kind = "controller"

    def __init__(self, release: Release, folder: Path, port: int, watchdog: Watchdog) -> None:
        """Make its folder and write its settings."""
        super().__init__(release, "controller", folder, port, watchdog)
        self.data = folder / "data"
        self._settings.write_text(texts.as_text(texts.controller_settings(port, str(self.data))), encoding="utf-8")


class Broker(KafkaServer):
    """One broker with its log dirs."""

    kind = "broker"

    def __init__(
        self,
        release: Release,
        mode: Mode,
        node_id: int,
        folder: Path,
        *,
        port: int,
        metadata_port: int,
        watchdog: Watchdog,
        log_dirs: int,
        brokers: int,
    ) -> None:
        """Make its folder; the settings are written by each start, so that they may be changed between two.

        ``log_dirs`` and ``brokers`` are numbers; the metadata port is that of the ZooKeeper or controller.
        """
        super().__init__(release, f"broker-{node_id}", folder, port, watchdog)
        self.node_id = node_id
        self.log_dirs = [folder / f"disk{number}" for number in range(1, log_dirs + 1)]
        """Its disks, in the order of ``log.dirs``."""
        self.settings: dict[str, object] = {}
        """What is set on top of the usual; takes effect at the next start."""
        disks = [str(path) for path in self.log_dirs]
        self._usual = texts.broker_settings(mode, node_id, port, disks, metadata_port=metadata_port, brokers=brokers)

    def write_settings(self, more: Mapping[str, object] | None = None) -> None:
        """Write the settings file, with what is in ``settings``."""
        self.settings |= more or {}
        self._settings.write_text(texts.as_text(self._usual | self.settings), encoding="utf-8")

    def launch(self) -> None:
        """Write the settings, start the process, and return at once."""
        self.write_settings()
        super().launch()

    def wait_until_ready(self, seconds: float = SECONDS_TO_START) -> None:
        """Wait until it is registered, and says so itself when asked for the cluster's brokers."""
        super().wait_until_ready(seconds)

        def registered() -> bool:
            view = view_of(self.address)
            return view is not None and self.node_id in view.brokers

        self._wait("register", seconds, registered)

    def replica(self, topic: str, partition: int) -> Path | None:
        """The partition dir of a live replica on its disks; None: there is none."""
        found = [path for disk in self.log_dirs if (path := disk / f"{topic}-{partition}").is_dir()]
        return found[0] if found else None
