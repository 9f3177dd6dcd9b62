"""Doubt: why a verdict may claim more than its two sides can know, because one of them is too old.

No metadata condemns what is younger than it. A replica that came to the disk, or was written to, after the metadata's
last record may be wanted by records that came later. The same holds the other way round: a replica that newer metadata
wants and an older scan did not find may have come to the disk since. The verdict stays, because files lose their times
when they are copied, and copies are audited too; the doubt stands beside it, and no plan acts on it by itself.

Each case of the table (``table.py``) says which doubt it is open to: cases that condemn by what the metadata says, and
cases about what the scan did not find. Cases that are OK, or that the disk alone decides, are open to none. Whether the
doubt holds is a condition over three times, which Python, DuckDB and Spark evaluate alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

CLOCK_SKEW_MS = 2_000
"""By how much the clocks that wrote a metadata log and a broker's disk may differ: what changed so shortly before the
metadata's last record may in truth have come after it. Clocks that are kept by NTP differ by far less."""

CLOCK_TOLERANCE_MS = 60_000
"""By how much clocks may differ that are all right, and by how much a source may answer after a command begins."""

LATEST = 2**63 - 1
"""A time after every other, for a scan whose time is not known."""


class Doubt(StrEnum):
    """Why a verdict is in doubt."""

    CHANGED_SINCE_METADATA = "CHANGED_SINCE_METADATA"
    """It was written to after the last record of the metadata that condemns it, or less than CLOCK_SKEW_MS before."""
    SCANNED_BEFORE_METADATA = "SCANNED_BEFORE_METADATA"
    """It was not found by a scan that is older than the metadata that wants it."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one joined row, in ms since 1970; a time that is not known never gives rise to a doubt."""

    modified_ms: int = -1
    """When the newest file of the directory was written; -1: not known, or nothing lies on the disk."""
    as_of_ms: int = -1
    """The time of the newest record of the metadata that speaks for the broker; -1: none, or not known."""
    scanned_ms: int = LATEST
    """When the first of the broker's log dirs was scanned."""


DOUBTS: Mapping[Doubt, Callable[[Any], Any]] = {
    Doubt.CHANGED_SINCE_METADATA: lambda times: (
        (times.as_of_ms > 0) & (times.modified_ms > 0) & (times.modified_ms > times.as_of_ms - CLOCK_SKEW_MS)
    ),
    Doubt.SCANNED_BEFORE_METADATA: lambda times: times.as_of_ms > times.scanned_ms,
}
"""The condition for each doubt, over the columns of :class:`Times`; complete."""


def doubt_of(open_to: Doubt | None, times: Times) -> Doubt | None:
    """Return the doubt that a verdict is in.

    Args:
        open_to: the doubt that its case is open to (:attr:`reconciler.verdicts.Case.doubt`).
        times: of its row.
    """
    return open_to if open_to is not None and DOUBTS[open_to](times) else None
