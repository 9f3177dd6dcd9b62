"""How far a metadata log is surely committed: no file says it, but what the log holds proves it for most records.

A leader appends a record first, and it is committed once a majority of the voters has it. Until then another leader may
take it back. These are the proofs::

    snapshot     it holds committed records only
    one voter    the leader is its own majority, so what it wrote is committed
    check        a leader of 3.7 or later resigns when it has not heard from a majority for 1.5 times
                 quorum.fetch.timeout.ms (2 s), so what is older than the newest record of the same epoch by a minute
                 was committed, or that newest record would not be there

A committed record commits all records before it. The voters stand in the LeaderChange record that opens an epoch, in a
VotersRecord of kraft.version 1, and in ``quorum-state`` of kraft.version 0. Before 3.7 a leader that is cut off goes on
writing, so there only the first two hold. Source: FACTS §7.1, §7.4; KIP-595, KAFKA-15489.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from layout import quorum_state
from layout.errors import DamagedFileError
from reconciler.errors import MetadataError
from reconciler.sources.kraft.batches import Batch
from reconciler.sources.kraft.files import open_file

LEADER_CHANGE: Final = 2
VOTERS: Final = 6
"""Types of the control records that name the voters."""

PROVEN_AFTER_MS: Final = 60_000
"""By how much a record must be older than the newest of its epoch; a leader without a majority has long resigned."""

CHECKS_QUORUM_SINCE: Final = 15
"""The metadata.version of 3.7-IV0; every node of such a cluster runs 3.7 or later."""

_MAX_QUORUM_STATE_BYTES: Final = 1 << 20


@dataclass(slots=True)
class CommitTracker:
    """Follows a log batch by batch.

    Attributes:
        next_offset: all records before this offset are surely committed.
        voters: node IDs of the voters; None: nothing has named them.
    """

    next_offset: int = 0
    voters: frozenset[int] | None = None
    _epoch: int = -1
    _unproven: deque[tuple[int, int]] = field(default_factory=deque)
    """Time and next offset of the batches of the epoch that are not proven yet."""

    def see_control(self, number: int, fields: dict[str, Any]) -> None:
        """Note the voters that a control record names."""
        if number in (LEADER_CHANGE, VOTERS):
            self.voters = frozenset(voter["voterId"] for voter in fields["voters"])

    def see_batch(self, batch: Batch, metadata_version: int) -> None:
        """Note one more batch of the log, after its records were played."""
        if self.voters is not None and len(self.voters) == 1:
            self.next_offset = batch.next_offset
            return
        if batch.epoch != self._epoch:
            self._epoch = batch.epoch
            self._unproven.clear()
        while metadata_version >= CHECKS_QUORUM_SINCE and self._unproven:
            then_ms, next_offset = self._unproven[0]
            if then_ms <= 0 or then_ms > batch.max_timestamp_ms - PROVEN_AFTER_MS:
                break
            self.next_offset = next_offset
            self._unproven.popleft()
        self._unproven.append((batch.max_timestamp_ms, batch.next_offset))


def voters_beside(folder: str) -> frozenset[int] | None:
    """Return the voters in ``quorum-state`` of a metadata directory; None: it does not name them."""
    path = os.path.join(folder, quorum_state.FILE_NAME)
    try:
        with open_file(path) as (file, _):
            return frozenset(quorum_state.parse(file.read(_MAX_QUORUM_STATE_BYTES)).voters) or None
    except (MetadataError, DamagedFileError):
        return None
