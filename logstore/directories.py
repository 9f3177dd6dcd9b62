"""Looks into all the directories of a log dir, by as many processes as asked for and as many threads as pay.

One listing, then unit after unit of directories (``workers`` spreads them, ``pace`` chooses between one thread and
many). Workers look and hand back columns; this process imports Arrow meanwhile, and makes batches of them as they come.
When directories vanished meanwhile, the log dir is listed once more, and what is new is looked at: so a directory that
a live broker renamed is seen under its new name. What one directory holds is told by ``replica_dir``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from layout.scheme import Scheme
from logstore.columns import Columns, Row, joined
from logstore.entries import Listing, Place, list_log_dir
from logstore.pace import Pace
from logstore.replica_dir import Glance, look_at_many
from logstore.workers import MOST_UNITS, processors, spread

if TYPE_CHECKING:
    import pyarrow as pa

PAYS_TO_FORK = 8192
"""Directories below which a second process costs more than it saves."""

_UNIT = 2048
"""Directories that one process takes at a time."""

_PIECE = 64
"""Directories that one thread takes at a time, and that are looked at together while they are all usual."""

_FEWEST_WAITS = 8
"""Waits for the disk during one piece from which on threads pay. Warm there are none, cold there are hundreds."""


def look_everywhere(
    log_dir: str, scheme: Scheme | None, glance: Glance, jobs: int | None
) -> tuple[list[pa.RecordBatch], list[Row]]:
    """Look into every directory of a log dir: the rows of directories, in batches, and those of everything else.

    Args:
        log_dir: its path, without a slash at the end.
        scheme: how it is laid out when it is ours; None for a real broker's.
        glance: what to look for.
        jobs: processes that look, while this one makes batches; 0: none, this one looks too; None: as many as pay. A
            unit of directories or less does not pay for any.

    Raises:
        OSError: the log dir itself cannot be listed.
    """
    listing = list_log_dir(log_dir, scheme)
    batches = _look_into(log_dir, listing.places, glance, jobs)
    if sum(batch.num_rows for batch in batches) == sum(len(place.names) for place in listing.places):
        return batches, listing.rows
    again = list_log_dir(log_dir, scheme)
    return [*batches, *_look_into(log_dir, _new_places(listing, again), glance, 0)], again.rows


def _new_places(before: Listing, after: Listing) -> list[Place]:
    """The places of a second listing, with only what the first had not."""
    seen = {(place.prefix, name) for place in before.places for name in place.names}
    for place in after.places:
        pairs = zip(place.names, place.inodes, strict=True)
        new = [(name, inode) for name, inode in pairs if (place.prefix, name) not in seen]
        place.names, place.inodes = [name for name, _ in new], [inode for _, inode in new]
    return after.places


def _enter(log_dir: str, places: Iterable[Place]) -> None:
    """Go into the log dir, in a process that does nothing else: shorter paths save look-ups of the folders above.

    What lies beside a log dir keeps its whole path: for a log dir that was reached by a link, ``..`` is another folder.
    """
    try:
        os.chdir(log_dir)
    except OSError:
        return
    for place in places:
        if not place.prefix.startswith("../"):
            place.path = place.prefix


def _look_into(log_dir: str, places: Sequence[Place], glance: Glance, jobs: int | None) -> list[pa.RecordBatch]:
    """Look into all directories of some places; batches in their order."""
    total = sum(len(place.names) for place in places)
    size = max(_UNIT, -(-2 * total // MOST_UNITS))
    units = [(place, first) for place in places for first in range(0, len(place.names), size)]

    def looked_at(numbers: Iterable[int]) -> Iterator[tuple[int, list[Columns]]]:
        with Pace[tuple[Place, list[str], list[int]], Columns](lambda piece: look_at_many(glance, *piece)) as pace:
            for number in numbers:
                place, first = units[number]
                names, inodes = place.names[first : first + size], place.inodes[first : first + size]
                starts = range(0, len(names), _PIECE)
                lot = [(place, names[start : start + _PIECE], inodes[start : start + _PIECE]) for start in starts]
                yield number, pace.map(lot, _FEWEST_WAITS)

    def batch(pieces: list[Columns]) -> pa.RecordBatch:
        # Imported here, because Arrow takes as long as a look into twenty thousand directories: by now workers look.
        from logstore.row_batches import columns_to_batch

        return columns_to_batch(joined(pieces))

    if jobs is None:
        jobs = processors() if total >= PAYS_TO_FORK else 0
    if not 1 < len(units) <= MOST_UNITS:
        jobs = 0
    return spread(looked_at, len(units), jobs, batch, lambda: _enter(log_dir, places))
