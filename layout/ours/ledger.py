"""``.logstore_ledger``: the append-only file of what is staged in a folder, one event with its checksum to a line.

A line is eight hexadecimal digits, the CRC-32 of the rest, a blank, and a JSON array in ASCII::

    ca904aed ["logstore-ledger",1]
    03c1b9aa ["staged","UXyU9i5ARn6W00ON2taeWA_0","orders","UXyU9i5ARn6W00ON2taeWA",0,"orders-0","STALE_ID", ...]
    d1d46cf0 ["mark",228]
    574fdd5b ["purging","UXyU9i5ARn6W00ON2taeWA_0"]

The fields of a *staged* line are the name of its directory and then those of :class:`StagedRecord`, in their order. The
newest valid line about a name counts. A line whose directory does not exist means that nothing happened, or that it is
over. A name is not used again, except for a stray whose record was taken back: so a line that cannot be read is never
one that would overrule another line about the same name by staging something else there.

Each sync is followed by a *mark*: the offset up to which the file was durable by then. A crash can only tear what was
written after the last mark's offset. A bad line behind it is *torn*: nothing was done after it, and it means nothing. A
bad line before it was durable once, and is *damaged*. Zeros at the end of the file are space that is kept for later
lines, and empty lines mean nothing. Used by ``logstore.staging.ledger``. Source: DESIGN §5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple
from zlib import crc32

from layout.errors import DamagedFileError, InvalidIdError
from layout.ids import TopicId
from layout.ours.staged_record import StagedRecord, check_record, is_surely_valid
from layout.topic import NAMESPACE_SEPARATOR, namespace_of

FORMAT: Final = "ledger"
SCHEMA_VERSION: Final = 1
"""Raised whenever an event or a field changes its meaning or goes."""

_HEADER, _MARK = "logstore-ledger", "mark"
_CHECKSUM = 9
"""Bytes before the JSON text of a line: the digits and a blank."""

_START = re.compile(rb'[0-9a-f]{8} \["')
"""How every line begins; where a bad line holds it once more, a line break was lost there."""

_quoted = json.encoder.encode_basestring_ascii
"""Encodes a text as JSON in ASCII, with its quotes."""

_VALUES = 12
"""Values of a staged line."""


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
    """

    event: LedgerEvent
    record: StagedRecord | None
    in_doubt: bool = False

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
    return _line([_HEADER, SCHEMA_VERSION])


def encode_mark(durable: int) -> bytes:
    """Write the line that follows a sync: the file was durable up to this offset."""
    return _line([_MARK, durable])


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


def parse_ledger(data: bytes) -> Ledger:
    """Read a ledger: every line that can be read, and where the others are.

    Raises:
        DamagedFileError: a later release wrote it, whose lines may mean something else.
    """
    used = data.rstrip(b"\0")
    pieces = used.split(b"\n")
    numbers, texts, bad = _checked(pieces)
    lines = list(zip(numbers, _values(texts), strict=True))
    durable = max((value[1] for _, value in lines if _is_mark(value)), default=0)
    ledger = Ledger(durable=durable, end=len(used))
    for line in _placed(pieces, bad):
        if line.offset + line.length < durable:
            ledger.damaged.append(line)
            lines += ((line.number, value) for value in _salvaged(pieces[line.number - 1]))
        else:
            ledger.torn.append(line)
    if ledger.damaged:
        lines.sort(key=lambda each: each[0])
    reader = _LineReader(ledger.entries)
    refused: dict[int, str] = {}
    for number, value in lines:
        problem = reader.take(number, value)
        if problem is not None:
            refused[number] = problem
    ledger.lines = reader.lines
    ledger.damaged = sorted([*ledger.damaged, *_placed(pieces, refused)])
    doubt_from = ledger.damaged[-1].number if ledger.damaged else 0
    for name, number in reader.newest.items() if doubt_from else ():
        ledger.entries[name].in_doubt = number < doubt_from
    return ledger


class _LineReader:
    """Takes lines in their order.

    Attributes:
        lines: number of lines about directories.
        newest: name of a directory → number of the newest valid line about it.
    """

    def __init__(self, entries: dict[str, LedgerEntry]) -> None:
        self._entries = entries
        self._topic_ids: dict[str, TopicId] = {}
        self.lines = 0
        self.newest: dict[str, int] = {}

    def take(self, number: int, value: Any) -> str | None:
        """Take one line; gives the reason why no release writes it.

        Raises:
            DamagedFileError: a later release wrote the ledger.
        """
        if not isinstance(value, list) or not value:
            return "it is no array"
        kind, name = value[0], value[1] if len(value) > 1 else None
        if kind == _HEADER:
            _check_version(value)
            return None
        if kind == _MARK and _is_mark(value):
            return None
        if not isinstance(name, str) or not name:
            return "it names no directory"
        if kind == _STAGED:
            try:
                self._entries[name] = LedgerEntry(LedgerEvent.STAGED, self._record(value))
            except (DamagedFileError, InvalidIdError) as error:
                return str(error)
        elif len(value) == 2 and kind in _OTHERS:
            self._entries[name] = LedgerEntry.after(self._entries.get(name), _OTHERS[kind])
        else:
            return f"it holds {kind!r:.40}, which is no event"
        self.newest[name] = number
        self.lines += 1
        return None

    def _record(self, value: list[Any]) -> StagedRecord:
        """Make the record of a staged line, and check its rules. Raises DamagedFileError, InvalidIdError."""
        if len(value) != _VALUES:
            raise DamagedFileError(FORMAT, f"{_VALUES} values were expected, not {len(value)}")
        _, _, topic, text, partition, path, verdict, evidence, staged_ms, due_ms, namespace, checkpoints = value
        topic_id = self._topic_ids.get(text) if type(text) is str else TopicId.ZERO
        if topic_id is None:
            topic_id = self._topic_ids[text] = TopicId.parse(text)
        record = StagedRecord(topic, partition, topic_id, path, verdict, evidence, staged_ms, due_ms, checkpoints)
        if type(text) is not str or not is_surely_valid(record):
            texts, numbers = (topic, text, path, verdict, evidence), (partition, staged_ms, due_ms)
            if {*map(type, texts)} != {str} or {*map(type, numbers)} != {int} or type(checkpoints) is not dict:
                raise DamagedFileError(FORMAT, "a value is of another type than expected")
            check_record(record)
        if namespace != (record.namespace if NAMESPACE_SEPARATOR in topic else ""):
            raise DamagedFileError(FORMAT, f"namespace is {namespace!r:.60}, the name's is {record.namespace!r:.60}")
        return record


_STAGED: Final = LedgerEvent.STAGED.value
_OTHERS: Final[Mapping[object, LedgerEvent]] = {
    event.value: event for event in LedgerEvent if event is not LedgerEvent.STAGED
}


def _line(values: list[object]) -> bytes:
    return _checked_line(json.dumps(values, separators=(",", ":")))


def _checked_line(values: str) -> bytes:
    text = values.encode("ascii")
    return b"%08x %b\n" % (crc32(text), text)


def _checked(pieces: list[bytes]) -> tuple[list[int], list[bytes], dict[int, str]]:
    """Check the checksum of each line: numbers and texts of the good ones, number → reason of the bad ones."""
    numbers, texts = list[int](), list[bytes]()
    bad: dict[int, str] = {}
    # The line break belongs to the last line: without it the next line would be written into this one.
    if pieces[-1]:
        bad[len(pieces)] = "its end is missing"
    for number, piece in enumerate(pieces[:-1], 1):
        text = piece[_CHECKSUM:]
        if piece[:_CHECKSUM] == b"%08x " % crc32(text):
            numbers.append(number)
            texts.append(text)
        elif piece:
            bad[number] = "it does not match its checksum"
    return numbers, texts, bad


def _is_mark(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and value[0] == _MARK and type(value[1]) is int


def _values(texts: list[bytes]) -> list[Any]:
    """Parse the texts of many lines at once, which takes half as long; a text that is no JSON gives None."""
    try:
        values = json.loads(b"[" + b",".join(texts) + b"]")
    except (ValueError, RecursionError):
        values = []
    return values if len(values) == len(texts) else [_value(text) for text in texts]


def _value(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _salvaged(piece: bytes) -> Iterator[Any]:
    """Find the lines in bytes that are no line as a whole, because line breaks between them were lost."""
    starts = [found.start() for found in _START.finditer(piece)]
    for place, start in enumerate(starts):
        for end in (*(each - 1 for each in starts[place + 1 :]), len(piece)):
            text = piece[start + _CHECKSUM : end]
            if b"%08x " % crc32(text) == piece[start : start + _CHECKSUM]:
                yield _value(text)
                break


def _placed(pieces: list[bytes], bad: Mapping[int, str]) -> list[BadLine]:
    """Find the offsets of some lines, by their numbers."""
    placed, offset = [], 0
    if bad:
        for number, piece in enumerate(pieces, 1):
            if number in bad:
                placed.append(BadLine(number, offset, len(piece), bad[number]))
            offset += len(piece) + 1
    return placed


def _check_version(header: list[Any]) -> None:
    if header[1:] != [SCHEMA_VERSION]:
        raise DamagedFileError(FORMAT, f"it says {header[1:]!r:.40}; this release reads schema version 1 only")
