"""Reads a log dir's four offset checkpoints: how far each replica reaches, and entries that no replica answers for.

A checkpoint that is missing or has 0 bytes is normal. One that does not parse is reported, with what a broker makes of
it, and counts as empty. A broker that runs writes them anew every 5 or 60 s, and meanwhile they name replicas that are
no longer there; so while somebody holds the log dir's lock, no entry is said to lack its replica. The files' format is
left to ``layout``.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from layout import checkpoint
from layout.errors import BrokerEffect, DamagedFileError
from logstore.errors import UnreadableFileError
from logstore.fs import read_small_file
from logstore.log_dir.lock_holder import find_lock_holder
from logstore.rows import Kind, MetadataState, Row, plain_row

CHECKPOINT_LIMIT = 1 << 27
"""Bytes: 300,000 entries with topics of the longest name take 80 MB."""


@dataclass(slots=True)
class OffsetCheckpoints:
    """What the four files say."""

    entries: dict[str, dict[tuple[str, int], int]] = field(default_factory=dict)
    """File → (topic, partition) → offset; only files that hold entries."""
    damaged: list[Row] = field(default_factory=list)
    """A row for each file that cannot be used."""
    in_use: bool = False
    """Somebody held the log dir's lock, so the entries lag behind what lies there."""

    @property
    def recovery_points(self) -> dict[tuple[str, int], int]:
        """(topic, partition) → recovery point, a lower bound of the log end offset."""
        return self.entries.get(checkpoint.RECOVERY_POINT_CHECKPOINT, {})

    def orphans(self, held: Container[tuple[str, int]]) -> Iterator[Row]:
        """A row for each entry whose (topic, partition) is not among those that are held, file by file.

        None while the log dir is in use.
        """
        if self.in_use:
            return
        for file, entries in self.entries.items():
            for (topic, partition), offset in entries.items():
                if (topic, partition) not in held:
                    problem = f"{file} names a partition that has no directory here"
                    yield plain_row(
                        file,
                        Kind.CHECKPOINT_ENTRY,
                        topic=topic,
                        partition=partition,
                        problem=problem,
                        end_offset=offset,
                    )


def read_offset_checkpoints(log_dir: str) -> OffsetCheckpoints:
    """Read the four files of a log dir. Never raises."""
    # Asked first: what a broker writes at its end is right, so a stop in between accuses nobody either.
    found = OffsetCheckpoints(in_use=find_lock_holder(log_dir, search=False) is not None)
    for file in checkpoint.OFFSET_CHECKPOINTS:
        try:
            data = read_small_file(f"{log_dir}/{file}", CHECKPOINT_LIMIT)
            entries = checkpoint.parse_offsets(data, file) if data else {}
        except UnreadableFileError as error:
            problem = f"{file} {error}; {BrokerEffect.LOG_DIR_OFFLINE}"
            found.damaged.append(_damaged_row(file, MetadataState.UNREADABLE, problem))
        except DamagedFileError as error:
            forgiven = error.effect is BrokerEffect.NONE
            effect = checkpoint.AFTER_A_BAD_NUMBER[file] if forgiven else str(error.effect)
            found.damaged.append(_damaged_row(file, MetadataState.MALFORMED, f"{error}; {effect}"))
        else:
            if entries:
                found.entries[file] = entries
    return found


def _damaged_row(file: str, state: MetadataState, problem: str) -> Row:
    return plain_row(file, Kind.CHECKPOINT_ENTRY, metadata_state=state, problem=problem)
