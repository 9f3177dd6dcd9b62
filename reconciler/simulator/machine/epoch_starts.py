"""Which leader epoch began at which offset of a log: by it a follower finds out where its log left its leader's.

Kafka keeps it in ``leader-epoch-checkpoint``; here it is in memory, and is made again from the records. A leader also
notes the epoch in which it wrote nothing yet. Source: FACTS §2.5; KIP-101 and KIP-279, which it amends.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.simulator.kernel import Record

UNDEFINED = -1
"""No epoch, and the offset that goes with it."""


class EpochStarts:
    """Leader epochs and their first offsets, both rising."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        """Make them from the records of a log."""
        self._starts: list[tuple[int, int]] = []
        for record in records:
            self.assign(record.leader_epoch, record.offset)

    @property
    def last(self) -> int:
        """The newest epoch; -1: there is none."""
        return self._starts[-1][0] if self._starts else UNDEFINED

    @property
    def last_start(self) -> int:
        """Where the newest epoch began; -1: there is none."""
        return self._starts[-1][1] if self._starts else UNDEFINED

    def assign(self, epoch: int, start: int) -> None:
        """Note that an epoch begins at an offset, unless that epoch or a newer one is known."""
        if epoch > self.last:
            # An epoch that wrote nothing has no records here, and gives way to the one that begins where it did.
            while self._starts and self._starts[-1][1] >= start:
                self._starts.pop()
            self._starts.append((epoch, start))

    def cut(self, end: int) -> None:
        """Forget the epochs that began at an offset or after it."""
        while self._starts and self._starts[-1][1] >= end:
            self._starts.pop()

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The greatest epoch here that is not above the one asked for, and the offset after its last record.

        Args:
            epoch: that is asked for.
            log_end: the offset after the log's last record.

        Returns:
            (-1, -1) where the epoch is newer than all that are known, or nothing is known; the epoch itself with the
            start of the first one where all that are known are newer.
        """
        if not self._starts or epoch > self.last or epoch < 0:
            return UNDEFINED, UNDEFINED
        found, end = epoch, log_end
        for each, start in reversed(self._starts):
            if each <= epoch:
                return each, end
            end = start
        return found, end
