"""Reads a ledger: what its lines say of each directory, and which bytes are no line.

One without bad lines is gone through once, a block at a time. Where a line is bad, it is gone through again, with what
can be saved of the bad lines, and what is said before the last of them is in doubt. The lines are explained in
:mod:`layout.ours.ledger`. Source: DESIGN §5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from zlib import crc32

from layout.errors import DamagedFileError, InvalidIdError
from layout.ids import TopicId
from layout.ours.ledger import (
    CHECKSUM_BYTES,
    FORMAT,
    HEADER,
    MARK,
    SCHEMA_VERSION,
    BadLine,
    Ledger,
    LedgerEntry,
    LedgerEvent,
)
from layout.ours.staged_record import StagedRecord, check_record, is_surely_valid
from layout.topic import METADATA_TOPIC, NAMESPACE_SEPARATOR

_START = re.compile(rb'[0-9a-f]{8} \["')
"""How every line begins; where a bad line holds it once more, a line break was lost there."""

_BLOCK = 1 << 18
"""Bytes of lines that are parsed at once: that takes half as long as one by one, and they stay in the cache."""

_ZEROS = bytes(1 << 9)
"""Compared with the end of a ledger, which a store keeps a hundred times as much space behind."""

_VALUES = 12
"""Values of a staged line."""

_IS_STAGED: Final = LedgerEvent.STAGED
"""Looking a member of an enum up takes as long as making an entry."""

_STAGED: Final = LedgerEvent.STAGED.value
_OTHERS: Final[Mapping[object, LedgerEvent]] = {
    event.value: event for event in LedgerEvent if event is not LedgerEvent.STAGED
}


def parse_ledger(data: bytes) -> Ledger:
    """Read a ledger: every line that can be read, and where the others are.

    Raises:
        DamagedFileError: a later release wrote it, whose lines may mean something else.
    """
    end = _end_of(data)
    reader, bad = _LineReader(), dict[int, str]()
    refused = reader.read(_checked_lines(data, end, bad))
    ledger = Ledger(durable=reader.durable, end=end)
    if bad or refused:
        pieces = data[:end].split(b"\n")
        for line in _placed(pieces, bad):
            is_damaged = line.offset + line.length < ledger.durable
            (ledger.damaged if is_damaged else ledger.torn).append(line)
    if ledger.damaged or refused:
        salvaged = [(line.number, value) for line in ledger.damaged for value in _salvaged(pieces[line.number - 1])]
        lines = sorted([*_checked_lines(data, end, {}), *salvaged], key=lambda each: each[0])
        reader = _LineReader()
        refused = reader.read(lines)
        ledger.damaged = sorted([*ledger.damaged, *_placed(pieces, refused)])
        doubt_from = ledger.damaged[-1].number
        after = {value[1] for number, value in lines if number >= doubt_from and number not in refused}
        for name, entry in reader.entries.items():
            entry.in_doubt = name not in after
            entry.is_regular = entry.is_regular and not entry.in_doubt
    ledger.entries, ledger.lines = reader.entries, reader.lines
    return ledger


class _TopicIds(dict[str, TopicId]):
    """Topic IDs by their canonical texts, each read when it is first asked for; KeyError: any other text."""

    def __missing__(self, text: str) -> TopicId:
        try:
            topic_id = TopicId.parse(text)
        except InvalidIdError as error:
            raise KeyError(text) from error
        if str(topic_id) != text:
            raise KeyError(text)
        self[text] = topic_id
        return topic_id


class _LineReader:
    """Reads lines in their order.

    Attributes:
        entries: name of a directory → what the newest valid line says of it.
        lines: number of lines about directories.
        durable: the largest offset of a mark.
    """

    def __init__(self) -> None:
        self.entries: dict[str, LedgerEntry] = {}
        self.lines = self.durable = 0
        self._topic_ids = _TopicIds()

    def read(self, lines: Iterable[tuple[int, Any]]) -> dict[int, str]:
        """Read lines, each with its number; gives number → reason of those that no release writes.

        Raises:
            DamagedFileError: a later release wrote the ledger.
        """
        refused: dict[int, str] = {}
        entries, fast_entry = self.entries, self._fast_entry
        for number, value in lines:
            entry = fast_entry(value)
            if entry is not None:
                entries[value[1]] = entry
                self.lines += 1
            elif (problem := self._take(value)) is not None:
                refused[number] = problem
        return refused

    def _take(self, value: Any) -> str | None:
        """Take one line; gives the reason why no release writes it.

        Raises:
            DamagedFileError: a later release wrote the ledger.
        """
        if not isinstance(value, list) or not value:
            return "it is no array"
        kind, name = value[0], value[1] if len(value) > 1 else None
        if kind == HEADER:
            _check_version(value)
            return None
        if kind == MARK and len(value) == 2 and type(name) is int:
            self.durable = max(self.durable, name)
            return None
        if not isinstance(name, str) or not name:
            return "it names no directory"
        if kind == _STAGED:
            try:
                record = self._record(value)
                self.entries[name] = LedgerEntry(LedgerEvent.STAGED, record)
            except (DamagedFileError, InvalidIdError) as error:
                return str(error)
        elif len(value) == 2 and isinstance(kind, str) and kind in _OTHERS:
            self.entries[name] = LedgerEntry.after(self.entries.get(name), _OTHERS[kind])
        else:
            return f"it holds {kind!r:.40}, which is no event"
        self.lines += 1
        return None

    def _fast_entry(self, value: Any) -> LedgerEntry | None:
        """Make the entry of a staged line that is valid and regular, as nearly all are; None: the slow path decides."""
        try:
            kind, name, topic, text, partition, path, verdict, evidence, staged, due, namespace, checkpoints = value
            if (
                kind == _STAGED
                and type(partition) is type(staged) is type(due) is int
                and 0 <= partition < 1 << 31
                and 0 <= staged <= due < 1 << 63
                and name == f"{text}_{partition}"
                and path == f"{topic}-{partition}"
                and (topic + verdict + evidence).isascii()
                and topic
                and verdict
                and evidence
                and "/" not in topic
                and NAMESPACE_SEPARATOR not in topic
                and "\0" not in topic
                and topic != METADATA_TOPIC
                and namespace == ""
                and checkpoints == {}
            ):
                topic_id = self._topic_ids[text]
                record = StagedRecord(topic, partition, topic_id, path, verdict, evidence, staged, due, checkpoints)
                return LedgerEntry(_IS_STAGED, record, False, True)
        except (AttributeError, KeyError, TypeError, ValueError):
            pass  # a value of another type, or more or fewer of them
        return None

    @staticmethod
    def _record(value: list[Any]) -> StagedRecord:
        """Make the record of a staged line, and check its rules. Raises DamagedFileError, InvalidIdError."""
        if len(value) != _VALUES:
            raise DamagedFileError(FORMAT, f"{_VALUES} values were expected, not {len(value)}")
        _, _, topic, text, partition, path, verdict, evidence, staged_ms, due_ms, namespace, checkpoints = value
        topic_id = TopicId.parse(text) if type(text) is str else TopicId.ZERO
        record = StagedRecord(topic, partition, topic_id, path, verdict, evidence, staged_ms, due_ms, checkpoints)
        if type(text) is not str or not is_surely_valid(record):
            texts, numbers = (topic, text, path, verdict, evidence), (partition, staged_ms, due_ms)
            if {*map(type, texts)} != {str} or {*map(type, numbers)} != {int} or type(checkpoints) is not dict:
                raise DamagedFileError(FORMAT, "a value is of another type than expected")
            check_record(record)
        if namespace != (record.namespace if NAMESPACE_SEPARATOR in topic else ""):
            raise DamagedFileError(FORMAT, f"namespace is {namespace!r:.60}, the name's is {record.namespace!r:.60}")
        return record


def _end_of(data: bytes) -> int:
    """Find the end of the lines, behind which there are only zeros."""
    end = len(data)
    while data.endswith(_ZEROS, 0, end):
        end -= len(_ZEROS)
    start = max(0, end - len(_ZEROS))
    return start + len(data[start:end].rstrip(b"\0"))


def _checked_lines(data: bytes, end: int, bad: dict[int, str]) -> Iterator[tuple[int, Any]]:
    """Give number and values of each line whose checksum is right; the others go to ``bad``, with the reason."""
    start = last = 0
    while start < end:
        stop = data.find(b"\n", start + _BLOCK, end) + 1 or end
        *pieces, rest = data[start:stop].split(b"\n")
        numbers, texts = list[int](), list[bytes]()
        for number, piece in enumerate(pieces, last + 1):
            text = piece[CHECKSUM_BYTES:]
            if piece[:CHECKSUM_BYTES] == b"%08x " % crc32(text):
                numbers.append(number)
                texts.append(text)
            elif piece:
                bad[number] = "it does not match its checksum"
        start, last = stop, last + len(pieces)
        if rest:  # the line break belongs to the last line: without it the next one would be written into this one
            bad[last + 1] = "its end is missing"
        yield from zip(numbers, _values(texts), strict=True)


def _values(texts: list[bytes]) -> list[Any]:
    """Parse the texts of many lines at once; a text that is no JSON gives None."""
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
            text = piece[start + CHECKSUM_BYTES : end]
            if b"%08x " % crc32(text) == piece[start : start + CHECKSUM_BYTES]:
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
