"""The settings files of Kafka and ZooKeeper as texts: small, quick, and on the loopback interface alone. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tools.real_broker.releases import Mode, Release

HOST = "127.0.0.1"
CONTROLLER_ID = 1000
"""The node ID of the controller in KRaft; brokers count from 1."""

SESSION_MS = 4000
"""After so long a broker that was killed counts as gone in KRaft."""

ZOOKEEPER_SESSION_MS = 120_000
"""Longer than a broker is kept waiting on a busy machine, which ends at once when its session does while it starts.

Nobody waits for the end of the session of a broker that was killed: see ``znodes.sign_off``.
"""

QUOTA_WINDOW_S = 60
"""A throttle holds on average over eleven of these; Kafka's own of one second are over before a slow test looks."""


def as_text(settings: Mapping[str, object]) -> str:
    """A properties file, one setting to a line."""
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def broker_settings(
    mode: Mode, node_id: int, port: int, log_dirs: Sequence[str], *, metadata_port: int, brokers: int
) -> dict[str, object]:
    """The settings of one of so many brokers; internal topics get as many replicas.

    ZooKeeper or the controller listens at the metadata port.
    """
    common: dict[str, object] = {
        "log.dirs": ",".join(log_dirs),
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "auto.create.topics.enable": "false",
        # A new controller elects preferred leaders after five seconds, and nobody asked for what that changes.
        "auto.leader.rebalance.enable": "false",
        "controlled.shutdown.retry.backoff.ms": 200,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
        "num.io.threads": 4,
        "num.network.threads": 2,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": brokers,
        "alter.log.dirs.replication.quota.window.size.seconds": QUOTA_WINDOW_S,
        "replica.fetch.wait.max.ms": 100,
        "replication.quota.window.size.seconds": QUOTA_WINDOW_S,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": brokers,
    }
    if mode is Mode.ZOOKEEPER:
        return {
            "broker.id": node_id,
            "listeners": f"PLAINTEXT://{HOST}:{port}",
            "zookeeper.connect": f"{HOST}:{metadata_port}",
            "zookeeper.session.timeout.ms": ZOOKEEPER_SESSION_MS,
            **common,
        }
    return {
        "process.roles": "broker",
        "node.id": node_id,
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "broker.heartbeat.interval.ms": 250,
        "broker.session.timeout.ms": SESSION_MS,
        # Of itself it gives up after a minute, and a machine that has other work to do may need longer.
        "initial.broker.registration.timeout.ms": 600_000,
        **_quorum(metadata_port),
        **common,
    }


def controller_settings(port: int, folder: str) -> dict[str, object]:
    """The settings of the one controller, which is no broker, so that it stays when brokers go."""
    return {
        "process.roles": "controller",
        "node.id": CONTROLLER_ID,
        "listeners": f"CONTROLLER://{HOST}:{port}",
        "log.dirs": folder,
        "broker.session.timeout.ms": SESSION_MS,
        **_quorum(port),
    }


def _quorum(port: int) -> dict[str, object]:
    return {
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{CONTROLLER_ID}@{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }


def zookeeper_settings(port: int, folder: str) -> dict[str, object]:
    """The settings of ZooKeeper."""
    return {
        "dataDir": folder,
        "clientPort": port,
        "clientPortAddress": HOST,
        "maxSessionTimeout": ZOOKEEPER_SESSION_MS,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
    }


def logging_settings(release: Release, level: str = "INFO") -> dict[str, object]:
    """Log lines on standard output, in the language of the release's logging library."""
    pattern = "[%d] %p %m (%c)%n"
    if release.logging_option == "log4j.configuration":
        return {
            "log4j.rootLogger": f"{level}, console",
            "log4j.appender.console": "org.apache.log4j.ConsoleAppender",
            "log4j.appender.console.layout": "org.apache.log4j.PatternLayout",
            "log4j.appender.console.layout.ConversionPattern": pattern,
        }
    return {
        "appender.console.type": "Console",
        "appender.console.name": "console",
        "appender.console.layout.type": "PatternLayout",
        "appender.console.layout.pattern": pattern,
        "rootLogger.level": level,
        "rootLogger.appenderRef.console.ref": "console",
    }
