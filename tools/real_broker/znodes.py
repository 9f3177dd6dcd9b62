"""Takes a topic out of ZooKeeper by hand, as people do when its deletion hangs at a broker that is down.

In ZooKeeper mode a topic is deleted only when every broker with a replica of it has answered. Who removes its nodes
and lets a new controller be elected has the cluster forget it at once, and may create the topic anew, with another
topic ID; the broker that was down comes back with a replica under the old ID (FACTS §4.2 rule b, §8).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from reconciler.sources.zookeeper import encode_cluster_id
from tools.real_broker.client import SECONDS, until
from tools.real_broker.errors import NotInTimeError

SECONDS_AN_ATTEMPT = 10
"""After so long without an answer a session is asked for anew; also the session's own length."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A ``kazoo.client.KazooClient`` that is connected, and stopped at the end.

    Raises:
        NotInTimeError: if no attempt at a session was answered.
    """
    from kazoo.client import KazooClient
    from kazoo.handlers.threading import KazooTimeoutError

    quiet = logging.Logger("real-broker", logging.ERROR)
    client = KazooClient(hosts=address, timeout=SECONDS_AN_ATTEMPT, logger=quiet)
    try:
        client.start(SECONDS)
    except KazooTimeoutError as error:
        raise NotInTimeError(f"ZooKeeper at {address} gave no session within {SECONDS} s: look into its log") from error
    try:
        yield client
    finally:
        client.stop()
        client.close()


def set_cluster_id(address: str, cluster_id: str) -> None:
    """Write the cluster's ID before the first broker makes one up."""
    with connected(address) as client:
        client.create("/cluster/id", encode_cluster_id(cluster_id), makepath=True)


def topic_nodes(address: str) -> set[str]:
    """The topics that have a node and are not on their way out."""
    with connected(address) as client:
        found, going = (
            set(client.get_children(path)) if client.exists(path) else set()
            for path in ("/brokers/topics", "/admin/delete_topics")
        )
    return found - going


def sign_off(address: str, broker: int) -> None:
    """Remove what is left of a broker that was killed, as the end of its session would do some time later.

    A start before that would end at its old node.
    """
    from kazoo.exceptions import NoNodeError

    with connected(address) as client:
        with suppress(NoNodeError):
            client.delete(f"/brokers/ids/{broker}")
        with suppress(NoNodeError):
            controller, found = client.get("/controller")
            if json.loads(controller)["brokerid"] == broker:
                client.delete("/controller", version=found.version)


def forget_topic(address: str, topic: str) -> None:
    """Remove the nodes of a topic, then have a new controller elected, which reads the topics anew.

    Raises:
        NotInTimeError: if no broker becomes the controller.
    """
    with connected(address) as client:
        for path in (f"/brokers/topics/{topic}", f"/config/topics/{topic}", f"/admin/delete_topics/{topic}"):
            if client.exists(path) is not None:
                client.delete(path, recursive=True)
        elect_controller(client)


def elect_controller(client: Any) -> None:
    """Have a new controller elected and wait until it has taken the next epoch.

    Raises:
        NotInTimeError: if no broker becomes the controller.
    """
    from kazoo.exceptions import NoNodeError

    before = int(client.get("/controller_epoch")[0])
    with suppress(NoNodeError):
        client.delete("/controller")
    until(
        "a new controller is elected",
        lambda: client.exists("/controller") is not None and int(client.get("/controller_epoch")[0]) > before,
    )
