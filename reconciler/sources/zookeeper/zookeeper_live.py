"""A live ZooKeeper as a metadata source: ``zk:HOST:PORT[,HOST:PORT…][/chroot]``, through kazoo.

Owns addresses, the connection and what can go wrong with it. ``zookeeper_reading`` reads the nodes as of one moment,
and ``zookeeper_state`` makes of them the same state as of a snapshot file. Nothing is written to ZooKeeper, no watch
is left, and what cannot be read whole is refused. A node that only some may read needs a snapshot file instead: no
credentials are taken here. Source: DESIGN §7; FACTS §8; KIP516-11; KIP37-4.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from logstore.parallel import paused_gc
from reconciler.desired import DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.zookeeper.jute import Znode
from reconciler.sources.zookeeper.zookeeper_reading import read
from reconciler.sources.zookeeper.zookeeper_state import assemble

CONNECT_TIMEOUT_S = 15.0
"""Seconds in which one of the servers must answer as a ZooKeeper; there is no option for it."""

_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", re.ASCII)


def load(address: str) -> DesiredState:
    """Read the desired state from a live ZooKeeper; its age is the time of the reading.

    Args:
        address: ``HOST[:PORT][,HOST[:PORT]…][/chroot]``; the port of a host without one is 2181.

    Raises:
        UsageError: no such address or chroot, no cluster there, or kazoo is not installed.
        MetadataError: no server answers, the connection broke, a node may not be read, or the cluster kept changing.
    """
    hosts, chroot = split_address(address)
    now_ms = time.time_ns() // 1_000_000
    with _session(hosts, chroot, address) as client, paused_gc():
        reading = read(client, address)
    identity = MetadataIdentity(
        "zookeeper", address, offset=reading.zxid, timestamp_ms=now_ms, digest=content_digest(reading.nodes)
    )
    return assemble(reading.nodes, identity)


def split_address(address: str) -> tuple[str, str]:
    """The servers, with commas between, and the chroot, ``""`` for none.

    Raises:
        UsageError: it has not the form ``HOST:PORT[,HOST:PORT…][/chroot]``.
    """
    hosts, _, below = address.partition("/")
    matches = [_HOST.fullmatch(host) for host in hosts.split(",")]
    tiers = below.removesuffix("/").split("/") if below else []
    is_bad_port = any(match and match[1] and not 0 < int(match[1]) < 1 << 16 for match in matches)
    if None in matches or is_bad_port or any(tier in ("", ".", "..") for tier in tiers):
        raise UsageError(f"{address!r:.200} is no address of ZooKeeper: zk:HOST:PORT[,HOST:PORT…][/chroot] is expected")
    return hosts, "".join(f"/{tier}" for tier in tiers)


def content_digest(nodes: Mapping[str, Znode]) -> str:
    """SHA-256, hex, over path, creating zxid, version and data of every node, in the order of the paths."""
    digest = hashlib.sha256()
    for path, node in sorted(nodes.items()):
        digest.update(f"{path}\0{node.czxid} {node.version} {len(node.data)}\0".encode("utf-8", "surrogatepass"))
        digest.update(node.data)
    return digest.hexdigest()


@contextmanager
def _session(hosts: str, chroot: str, address: str) -> Iterator[Any]:
    """A connected client whose root is the chroot; its errors become ours, and it is closed on every way out."""
    try:
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError
    except ImportError as error:
        raise UsageError(
            "a live ZooKeeper is read through kazoo, which is not installed: pip install 'kafka-logstore[zookeeper]'"
        ) from error
    heard = _Heard()
    client = KazooClient(hosts=hosts, timeout=CONNECT_TIMEOUT_S, logger=heard.logger)
    try:
        client.start(CONNECT_TIMEOUT_S)
        if chroot:
            found = client.exists_async(chroot).get(timeout=CONNECT_TIMEOUT_S)
            if found is None:
                raise UsageError(f"{address}: ZooKeeper has no node {chroot}: name the chroot of zookeeper.connect")
            client.chroot = chroot
        yield client
    except KazooTimeoutError as error:
        raise MetadataError(
            f"{address}: no ZooKeeper answered within {CONNECT_TIMEOUT_S:.0f} s{heard.last_words}: check host and port,"
            " and that the server runs"
        ) from error
    except KazooException as error:
        raise MetadataError(
            f"{address}: the connection to ZooKeeper failed before everything was read ({type(error).__name__})"
            f"{heard.last_words}: try again"
        ) from error
    finally:
        client.stop()
        client.close()


class _Heard(logging.Handler):
    """Keeps the last warning of a client, for the message, and away from standard error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.logger = logging.Logger("reconciler.zookeeper")
        self.logger.addHandler(self)
        self._text = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        # That it gave up is what the message says; why is in the warning before.
        if not text.startswith("Failed connecting"):
            self._text = text

    @property
    def last_words(self) -> str:
        return f" ({self._text:.200})" if self._text else ""
