"""The loop of a watch: changes of rows, of metadata and of time, put together into changes of verdicts.

Owns the order in which these are asked, and which metadata speaks for the clusters whose log dirs are there. Where the
verdicts go is left to the command line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from logstore.watch import Watch
from reconciler.desired import by_cluster
from reconciler.errors import ReconcilerError
from reconciler.watch.metadata import WatchedMetadata
from reconciler.watch.verdicts import VerdictChange, VerdictWatch

TICK_S = 1.0
"""Seconds after which metadata files and due times are looked at, when nothing else happens."""


def machine_ms() -> int:
    """The machine's time of day, in ms since 1970."""
    return time.time_ns() // 1_000_000


def verdict_changes(
    watch: Watch, metadata: WatchedMetadata, *, now_ms: Callable[[], int] = machine_ms, tick_s: float = TICK_S
) -> Iterator[list[VerdictChange]]:
    """Batches of changed verdicts until the watch is stopped: first all that are not OK, then one each tick or sooner.

    A batch may be empty, so that the caller can look after other things.

    Args:
        watch: was started, and is polled by nobody else.
        metadata: what to judge by.
        now_ms: the time against which due times are held, ms since 1970.
        tick_s: the longest time between two batches while nothing happens.

    Raises:
        RefusedError: at the start only: the metadata is of another cluster, or of more than one that could be meant.
    """
    verdicts = VerdictWatch(watch.log_dirs, now_ms)
    clusters = _clusters(watch)
    yield [change for batch in verdicts.start(by_cluster(metadata.states, clusters)) for change in batch]
    while not watch.is_stopped:
        changes = watch.poll(tick_s)
        if changes:
            yield from verdicts.rows_changed(changes)
        before, clusters = clusters, _clusters(watch)
        is_new = metadata.poll(partial(by_cluster, clusters=clusters))
        if is_new or clusters != before:
            try:
                yield from verdicts.metadata_changed(by_cluster(metadata.states, clusters))
            except ReconcilerError as error:
                metadata.refuse(error)
        yield from verdicts.time_passed()
        yield []


def _clusters(watch: Watch) -> frozenset[str]:
    identities = (disk.state.identity for disk in watch.log_dirs.values())
    return frozenset(identity.cluster_id for identity in identities if identity is not None and identity.cluster_id)
