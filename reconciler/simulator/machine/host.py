"""What every part of a broker is given: its identity, its settings, and its only access to time, network and history.

When the broker is down, nothing that it had begun goes on: answers that come late are dropped, and timers do nothing.
An error in a part's event becomes a line of the machine's history and does not stop the kernel.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from layout.scheme import Scheme
from logstore import LogStoreError, Settings, check_fields
from reconciler.errors import ReconcilerError, UsageError
from reconciler.protocol import KIP516, Version
from reconciler.simulator.kernel import (
    Answer,
    Answered,
    Journal,
    Network,
    Request,
    Response,
    Server,
    Timer,
    Timers,
    broker_endpoint,
)
from reconciler.simulator.zookeeper import AuthorizerSettings


class Host:
    """One broker's life from a start to its end; the next start gets another.

    Attributes:
        alive: False from the end on.
        noticed: called after every event, to look at what it did to the disks.
        log_dirs: paths that the history shortens to their ends, because the folder of a run must not appear there.
    """

    def __init__(
        self, node_id: int, network: Network, timers: Timers, journal: Journal, settings: BrokerSettings
    ) -> None:
        """Make the host of a broker that starts now."""
        self.node_id, self.settings = node_id, settings
        self.network, self.timers, self.journal = network, timers, journal
        self.alive = True
        self.noticed: Callable[[], None] = lambda: None
        self.log_dirs: Sequence[str] = ()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return broker_endpoint(self.node_id)

    def say(self, text: str) -> None:
        """Add a line to the history."""
        for path in self.log_dirs:
            text = text.replace(path, short_path(path))
        self.journal.say(self.endpoint, text)

    def after(self, delay_ms: int, label: str, act: Callable[[], None]) -> Timer:
        """Call a function later, if the broker still lives then."""
        return self.timers.after(delay_ms, label, lambda: self.guarded(label, act))

    def call(self, receiver: str, request: Request, answered: Callable[[Response | None], None]) -> None:
        """Send a request; ``answered`` is called with the answer if the broker still lives then."""
        label = f"answer to {type(request).__name__}"
        self.network.call(
            self.endpoint, receiver, request, lambda response: self.guarded(label, lambda: answered(response))
        )

    def guarded(self, what: str, act: Callable[[], Any]) -> None:
        """Call a function; an error of a disk, a request or ZooKeeper goes to the history, and the broker goes on."""
        if not self.alive:
            return
        try:
            act()
        except (LogStoreError, ReconcilerError) as error:
            self.say(f"{what}: {error}")
        if self.alive:
            self.noticed()


def short_path(path: str) -> str:
    """The end of a log dir's path, which tells it from the broker's others: ``disk-1/data``."""
    return "/".join(path.rsplit("/", 2)[-2:])


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Settings of one broker; durations are in ms of true time.

    Names and defaults are those of Kafka 2.8, except where a simulation would become too slow.
    """

    min_insync_replicas: int = 1
    """A record is accepted only while at least this many replicas are in sync, unless a config says another number."""
    retention_ms: int = 7 * 86_400_000
    """The age at which a record is deleted, where no config says another."""
    replica_lag_ms: int = 10_000
    """A follower that has not caught up for so long, by the leader's clock, is no longer in sync; Kafka: 30 s."""
    fetch_wait_ms: int = 2_000
    """How long a fetch that finds nothing waits at the leader; Kafka: 500 ms."""
    fetch_records: int = 100
    """The most that one fetch is answered with."""
    backoff_ms: int = 1_000
    """Between an error and the next try, of a fetch or of a change to the in-sync set."""
    request_timeout_ms: int = 30_000
    """How long a record waits for its replicas until the producer gets a timeout."""
    tick_ms: int = 5_000
    """How often the broker checks its session, failed disks, lagging followers, and its high watermarks."""
    flush_ms: int = 60_000
    """How often all logs are flushed and the recovery points written."""
    flush_records: int | None = None
    """Flush a log when it has this many unflushed records; 1: before any is acknowledged. None: every ``flush_ms``."""
    purge_ms: int = 60_000
    """How often records that are too old, and staged replicas that are due, are deleted for ever."""
    purge_steps: int = 20
    """The most directories that one purge deletes."""
    rack: str | None = None
    """Kafka's ``broker.rack``: the placement of replicas keeps those of one partition on different racks."""
    cluster_id: str = "simulated"
    """Goes into the ``meta.properties`` of a log dir that the broker formats."""
    scheme: str = Scheme.FLAT
    """The scheme of a log dir that it formats, when it has no other log dir to take it from."""
    stop_replica_version: Version = KIP516
    """The form in which StopReplica requests travel. KIP-516's has topic IDs and no leader epochs, so a copy that comes
    late deletes what was assigned again since. Version 4 has leader epochs and no topic IDs, so it takes a topic for an
    earlier one of its name: only for a cluster whose controller does not delete at once (KIP516-10)."""
    directory_ids: bool = False
    """Give a log dir that it formats an ID of its own, without which no replica can be moved to it (KIP516-3)."""
    authorizer: AuthorizerSettings | None = None
    """Ask an authorizer before clients and administrators are obeyed (KIP37-6); None: everybody may do everything."""
    delays: Settings = field(default_factory=Settings)
    """How long what was staged is kept, by topic and namespace."""
    knows_namespaces: bool = True
    """What its registration says of it; False: it is of an older release (KIP-37)."""
    delete_topic_partition_enable: bool = False
    """``delete.topic.partition.enable``: a leader goes by the modes of its partitions. A cluster gives its brokers the
    value of its own ``fewer_partitions`` (KIP694-1)."""

    def __post_init__(self) -> None:
        numbers = (each.name for each in fields(self) if each.type in ("int", "int | None"))
        check_fields(self, UsageError, dict.fromkeys(numbers, (1, math.inf)))


class MachineClock:
    """A :class:`~logstore.Clock` over a machine's timers: as wrong as the machine's time, and it never waits."""

    def __init__(self, timers: Timers) -> None:
        """Take the time of day from these timers."""
        self._timers = timers

    def now_ms(self) -> int:
        """The machine's time of day."""
        return self._timers.now_ms()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Return at once: time passes only between events, so a wait within one would never end."""
        return event.is_set()


class WatchedNetwork:
    """A network that shows every answer that a broker gives over it, to clients and to followers.

    Attributes:
        on_answer: called with each request and its answer, as soon as the answer is on its way.
    """

    def __init__(self, network: Network) -> None:
        """Pass everything on to this network."""
        self._network = network
        self.on_answer: Callable[[Request, Response], None] = lambda request, response: None

    def serve(self, endpoint: str, server: Server | None) -> None:
        """As the network does."""
        self._network.serve(endpoint, None if server is None else self._watched(server))

    def call(self, sender: str, receiver: str, request: Request, answered: Answered) -> None:
        """As the network does."""
        self._network.call(sender, receiver, request, answered)

    def _watched(self, server: Server) -> Server:
        def serve(sender: str, request: Request, answer: Answer) -> None:
            def watched_answer(response: Response) -> None:
                answer(response)
                self.on_answer(request, response)

            server(sender, request, watched_answer)

        return serve
