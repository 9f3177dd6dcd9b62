"""``.logstore_ledger``: the append-only file of what is staged in a folder, one event with its checksum to a line.

A line is eight hexadecimal digits, the CRC-32 of the rest, a blank, and a JSON array in ASCII::

    ca904aed ["logstore-ledger",1]
    03c1b9aa ["staged","UXyU9i5ARn6W00ON2taeWA_0","orders","UXyU9i5ARn6W00ON2taeWA",0,"orders-0","STALE_ID", ...]
    d1d46cf0 ["mark",228]
    574fdd5b ["purging","UXyU9i5ARn6W00ON2taeWA_0"]

The fields of a *staged* line are the name of its directory and then those of :class:`StagedRecord`, in their order. The
newest valid line about a name counts. A line whose directory does not exist means that nothing happened, or that it is
over. A name is not used again, except for a stray whose record was taken back: so a line that cannot be read is never
one that would overrule another line about the same name by staging something else there. A second *staged* line
gives the same replica, which stays where it is, the name that its topic has by now.

Each sync is followed by a *mark*: the offset up to which the file was durable by then. A crash can only tear what was
written after the last mark's offset. A bad line behind it is *torn*: nothing was done after it, and it means nothing. A
bad line before it was durable once, and is *damaged*. Zeros at the end of the file are space that is kept for later
lines, and empty lines mean nothing. ``ledger_reader`` reads them. Source: DESIGN §5.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple
from zlib import crc32

from layout.ours.staged_record import StagedRecord, check_record
from layout.topic import NAMESPACE_SEPARATOR, namespace_of

FORMAT: Final = "ledger"
SCHEMA_VERSION: Final = 1
"""Raised whenever an event or a field changes its meaning or goes."""

HEADER: Final = "logstore-ledger"
MARK: Final = "mark"
"""Kinds of the lines that speak of no directory."""

CHECKSUM_BYTES: Final = 9
"""Bytes before the JSON text of a line: the digits and a blank."""

_quoted = json.encoder.encode_basestring_ascii
"""Encodes a text as JSON in ASCII, with its quotes."""


class LedgerEvent(StrEnum):
    """What a line says of a directory."""

    STAGED = "staged"
    """It may be renamed into this folder at any time from now on, or was; it is whole."""
    RESTORED = "restored"
    """It was renamed back, durably."""
    PURGING = "purging"
    """A purge may have begun to empty it: it can only be purged."""
    PURGED = "purged"
    """It was removed; where a crash has brought it back, it is as if it were still *purging*."""
    KEPT = "kept"
    """The purge ended before it touched the directory, which is *staged* as before."""


@dataclass(slots=True)
class LedgerEntry:
    """What the newest valid line about one directory says.

    Attributes:
        event: of the newest valid line.
        record: from its *staged* line; None: that cannot be read.
        in_doubt: a damaged line follows, which may have said that a purge has begun.
        is_regular: it is staged and not in doubt, and the names of the directory and its former path are those that a
            flat log dir gives to its record's topic ID, topic and partition; False: all of this may be so.
    """

    event: LedgerEvent
    record: StagedRecord | None
    in_doubt: bool = False
    is_regular: bool = field(default=False, compare=False)

    @classmethod
    def after(cls, former: LedgerEntry | None, event: LedgerEvent) -> LedgerEntry:
        """Give the entry of a directory after an event other than *staged*.

        Args:
            former: its entry before; None: there was none.
            event: that a line tells.
        """
        record = None if former is None else former.record
        return cls(LedgerEvent.STAGED if event is LedgerEvent.KEPT else event, record)

    @property
    def may_be_partly_purged(self) -> bool:
        """Whether a purge may have begun to empty the directory."""
        return self.event is LedgerEvent.PURGING or self.event is LedgerEvent.PURGED


class BadLine(NamedTuple):
    """Bytes between two line breaks that are no line.

    Attributes:
        number: of the line in the file, from 1 on.
        offset: of its first byte.
        length: in bytes, without the line break.
        reason: what is wrong with it, one clause.
    """

    number: int
    offset: int
    length: int
    reason: str


@dataclass(slots=True)
class Ledger:
    """What a ledger says.

    Attributes:
        entries: name of a directory → what the newest valid line says of it.
        torn: what a crash has left of lines that were never durable; they mean nothing.
        damaged: lines that were durable once and cannot be read any more.
        durable: offset up to which the file was synced, by the newest mark.
        end: offset at which the next line goes.
        lines: number of valid lines about directories.
    """

    entries: dict[str, LedgerEntry] = field(default_factory=dict)
    torn: list[BadLine] = field(default_factory=list)
    damaged: list[BadLine] = field(default_factory=list)
    durable: int = 0
    end: int = 0
    lines: int = 0

    def lines_of(self, names: Collection[str]) -> int:
        """Count the lines that speak of these directories, as far as a compacted ledger would keep them."""
        return sum(1 + self.entries[name].may_be_partly_purged for name in names if name in self.entries)


def encode_header() -> bytes:
    """Write the first line of a ledger."""
    return _line([HEADER, SCHEMA_VERSION])


def encode_mark(durable: int) -> bytes:
    """Write the line that follows a sync: the file was durable up to this offset."""
    return _line([MARK, durable])


def encode_staged(directory: str, record: StagedRecord) -> bytes:
    """Write the line that a replica is staged.

    Args:
        directory: its name in the folder of the ledger.
        record: what it was.

    Raises:
        DamagedFileError: the record breaks a rule, so that no reader would believe the line.
    """
    check_record(record)
    topic, partition, topic_id, path, verdict, evidence, staged_ms, due_ms, checkpoints = record
    namespace = namespace_of(topic) if NAMESPACE_SEPARATOR in topic else ""
    offsets = json.dumps(dict(checkpoints), separators=(",", ":")) if checkpoints else "{}"
    # As json.dumps writes it, in a third of its time.
    return _checked_line(
        f'["staged",{_quoted(directory)},{_quoted(topic)},"{topic_id}",{partition},{_quoted(path)},{_quoted(verdict)},'
        f"{_quoted(evidence)},{staged_ms},{due_ms},{_quoted(namespace)},{offsets}]"
    )


def encode_event(event: LedgerEvent, directory: str) -> bytes:
    """Write the line of any other event than *staged*."""
    if event is LedgerEvent.STAGED:
        raise ValueError("a staged line holds a record")
    return _checked_line(f'["{event}",{_quoted(directory)}]')


def encode_compacted(ledger: Ledger, kept: Collection[str], data: bytes) -> bytes:
    """Write a new ledger with only the entries of some directories.

    What was damaged stays as it was, in front of all that it may concern, so that every reader reports it again.

    Args:
        ledger: what the present ledger says.
        kept: names of the directories that are still there.
        data: the bytes of the present ledger.
    """
    damaged = [data[bad.offset : bad.offset + bad.length] for bad in ledger.damaged]
    parts = [encode_header()]
    names = [name for name in ledger.entries if name in kept]
    parts += _entry_lines(ledger.entries, [name for name in names if ledger.entries[name].in_doubt])
    parts += [each + b"\n" for each in damaged]
    parts += _entry_lines(ledger.entries, [name for name in names if not ledger.entries[name].in_doubt])
    return b"".join([*parts, encode_mark(sum(map(len, parts)))])


def _entry_lines(entries: Mapping[str, LedgerEntry], names: Iterable[str]) -> list[bytes]:
    lines = []
    for name in names:
        entry = entries[name]
        if entry.record is not None:
            lines.append(encode_staged(name, entry.record))
        elif entry.event is LedgerEvent.STAGED:
            lines.append(encode_event(LedgerEvent.KEPT, name))
        if entry.event is not LedgerEvent.STAGED:
            lines.append(encode_event(entry.event, name))
    return lines


def is_worth_compacting(ledger: Ledger, kept: Collection[str], least: int) -> bool:
    """Whether the lines that mean nothing any more outweigh the others, and are not too few to bother.

    Args:
        ledger: what it says.
        kept: names of the directories that are still there.
        least: number of such lines from which a new file pays.
    """
    live = ledger.lines_of(kept)
    dead = ledger.lines - live
    return dead >= least and dead > live


def _line(values: list[object]) -> bytes:
    return _checked_line(json.dumps(values, separators=(",", ":")))


def _checked_line(values: str) -> bytes:
    text = values.encode("ascii")
    return b"%08x %b\n" % (crc32(text), text)
