"""What a simulated broker is told; names and defaults are those of Kafka 2.8, except where a simulation would crawl."""

from __future__ import annotations

from dataclasses import dataclass, field

from layout.scheme import Scheme
from logstore import Settings
from reconciler.protocol import KIP516, Version


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Settings of one broker; durations are in ms of true time."""

    min_insync_replicas: int = 1
    """A record is taken only while so many replicas are in sync."""
    replica_lag_ms: int = 10_000
    """A follower that has not caught up for so long, by the leader's clock, is no longer in sync; Kafka: 30 s."""
    fetch_wait_ms: int = 2_000
    """How long a fetch that finds nothing waits at the leader; Kafka: 500 ms."""
    fetch_records: int = 100
    """The most that one fetch is answered with."""
    backoff_ms: int = 1_000
    """Between an error and the next try, of a fetch or of a change to the in-sync set."""
    request_timeout_ms: int = 30_000
    """How long a record waits for its replicas until the producer is told that nobody knows."""
    tick_ms: int = 5_000
    """How often the broker looks after its session, its disks, who lags, and its high watermarks."""
    flush_ms: int = 60_000
    """How often all logs are flushed and the recovery points written."""
    flush_records: int | None = None
    """Flush a log when so many of its records are not; 1: before any is acknowledged. None: only now and then."""
    purge_ms: int = 60_000
    """How often what is staged and due is deleted for ever."""
    purge_steps: int = 20
    """The most directories that one such round deletes."""
    cluster_id: str = "simulated"
    """Goes into the ``meta.properties`` of a log dir that the broker formats."""
    scheme: str = Scheme.FLAT
    """How it lays out a log dir that it formats, where it has no other."""
    stop_replica_version: Version = KIP516
    """The form in which StopReplica requests travel. KIP-516's has topic IDs and no leader epochs, so a copy that comes
    late deletes what was assigned again since. Version 4 has leader epochs and no topic IDs, so it takes a topic for an
    earlier one of its name: only for a cluster whose controller does not delete at once (KIP516-10)."""
    delays: Settings = field(default_factory=Settings)
    """How long what was staged is kept, by topic and namespace."""
