"""The loop of a watch: turn changes of rows, of metadata and of time into changes of verdicts.

The loop decides in which order these are polled, and which metadata counts for the clusters of the log dirs. The
command line prints the verdicts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from logstore.watch import Watch
from reconciler.desired import by_cluster
from reconciler.errors import ReconcilerError
from reconciler.watch.metadata import WatchedMetadata
from reconciler.watch.settling import SETTLE_S, Settling
from reconciler.watch.verdicts import VerdictChange, VerdictWatch

TICK_S = 1.0
"""Seconds between two checks of metadata files and due times when nothing else happens."""


def machine_ms() -> int:
    """Return the machine's time of day, in ms since 1970."""
    return time.time_ns() // 1_000_000


def verdict_changes(
    watch: Watch,
    metadata: WatchedMetadata,
    *,
    now_ms: Callable[[], int] = machine_ms,
    tick_s: float = TICK_S,
    settle_s: float = SETTLE_S,
    clock: Callable[[], float] = time.monotonic,
    verdicts: VerdictWatch | None = None,
) -> Iterator[list[VerdictChange]]:
    """Yield batches of changed verdicts until the watch is stopped.

    The first batch has all verdicts other than OK; then a batch follows at each tick or sooner. A batch may be empty,
    so that the caller can do other work.

    Args:
        watch: started, and polled by no other code.
        metadata: the desired states to judge by.
        now_ms: returns the time that due times are compared with, in ms since 1970.
        tick_s: the longest time between two batches while nothing happens.
        settle_s: seconds for which a verdict is held that may only mean that the metadata has not caught up.
        clock: returns seconds that never go back; the same as that of the metadata.
        verdicts: that judges, for a caller who asks it how things stand between two batches; None: one of its own.

    Raises:
        RefusedError: at the start only: the metadata is of another cluster, or of several clusters that could be meant.
    """
    verdicts = verdicts or VerdictWatch(watch.log_dirs, now_ms)
    clusters = _clusters(watch)
    yield [change for batch in verdicts.start(by_cluster(metadata.states, clusters)) for change in batch]
    settling = Settling(clock, settle_s)
    while not watch.is_stopped:
        changes = watch.poll(tick_s)
        for batch in verdicts.rows_changed(changes) if changes else ():
            yield settling.take(batch, clock())
        if settling.is_waiting:
            metadata.ask()
        before, clusters = clusters, _clusters(watch)
        is_new = metadata.poll(partial(by_cluster, clusters=clusters))
        if is_new or clusters != before:
            try:
                for batch in verdicts.metadata_changed(by_cluster(metadata.states, clusters)):
                    yield settling.take(batch, float("-inf"))
            except ReconcilerError as error:
                metadata.refuse(error)
        yield from verdicts.time_passed()
        yield settling.settled(metadata.read_at)


def _clusters(watch: Watch) -> frozenset[str]:
    identities = (disk.state.identity for disk in watch.log_dirs.values())
    return frozenset(identity.cluster_id for identity in identities if identity is not None and identity.cluster_id)
