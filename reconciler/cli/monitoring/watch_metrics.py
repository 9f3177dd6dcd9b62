"""The metrics of a watch: taken in the thread that polls it, and handed to the threads of the endpoint as a whole."""

from __future__ import annotations

import time
from collections.abc import Sequence

from logstore.watch import Watch
from reconciler.metrics import Readings, begin_watch, read_changes, read_metadata, read_watch
from reconciler.verdicts import UNWANTED
from reconciler.watch import VerdictChange, VerdictWatch, WatchedMetadata

WEIGHED_AT_ONCE = 200
"""Unwanted replicas whose files are added up between two batches of changes; the others follow."""


class WatchMetrics:
    """How a watch stands, brought up to date after each batch of changes."""

    def __init__(self, watch: Watch, verdicts: VerdictWatch, metadata: WatchedMetadata) -> None:
        """Take a watch that was started, what judges its rows, and the metadata that these are judged by."""
        self._watch, self._verdicts, self._metadata = watch, verdicts, metadata
        self._counted = Readings("watch")
        begin_watch(self._counted, time.time())
        self._weights: dict[tuple[str, str], int] = {}
        self._is_stale = True
        self._shown, self._identities = self._counted, tuple(state.identity for state in metadata.states)

    def take(self, changes: Sequence[VerdictChange], *, is_first: bool = False) -> None:
        """Take in a batch of changes; those of the first batch are how things stood when the watch began."""
        if not is_first:
            read_changes(self._counted, changes)
        identities = tuple(state.identity for state in self._metadata.states)
        self._is_stale |= bool(changes) or identities != self._identities
        # While changes come thick and fast, the metrics wait for a batch that is empty.
        if self._is_stale and (is_first or not changes):
            self._identities = identities
            self._read()

    def _read(self) -> None:
        standing = list(self._verdicts.standing())
        unwanted = [(each.log_dir, each.key) for each in standing if each.verdict in UNWANTED]
        places = [(log_dir, key) for log_dir, key in unwanted if log_dir is not None and key is not None]
        unknown = [place for place in places if place not in self._weights]
        self._weights = {place: self._weights[place] for place in places if place in self._weights}
        for log_dir, key in unknown[:WEIGHED_AT_ONCE]:
            sizes = self._watch.log_dirs[log_dir].sizes_of(key)
            self._weights[log_dir, key] = 0 if sizes is None else sizes[1]
        shown = Readings("watch", {family: dict(values) for family, values in self._counted.samples.items()})
        read_watch(shown, self._watch.log_dirs, standing, self._weights)
        self._shown, self._is_stale = shown, len(unknown) > WEIGHED_AT_ONCE

    def current(self) -> Readings:
        """Return the readings of the last batch, with the age that the metadata has now; in whichever thread."""
        readings = Readings("watch", dict(self._shown.samples))
        for identity in self._identities:
            read_metadata(readings, identity, time.time_ns() // 1_000_000)
        return readings
