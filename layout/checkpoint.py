"""Checkpoints: read, write and salvage the offset checkpoints of a log dir and the leader epochs of a partition dir.

    0               version
    2               number of entries
    foo 1 5         an offset checkpoint: topic, partition, offset
    bar 2 10        (a leader epoch checkpoint: leader epoch, start offset)

Zero bytes are normal on a fresh broker and mean no entries.

What a broker does with damage depends on its kind (FACTS §1.6, §2.3). Malformed lines, a wrong version or count, and
bytes that are not UTF-8 are I/O errors: they take the log dir offline, in every file. A number that does not parse
inside an entry, and a negative count, are not I/O errors and pass unchanged through the handler that would take the log
dir offline. At load, a broker answers them with a warning and an empty map when they stand in the recovery point or the
log start offset checkpoint; in the two others it meets them after the load and goes on, but the log cleaner ends, or
replicas are not served (seen on 3.9.2 and 4.3.1). In a leader epoch checkpoint they end the startup. Releases
before :data:`NUMBERS_PASS_SINCE` take such a number for a malformed line, which is an I/O error.

A damaged offset checkpoint is salvaged line by line. A broker writes one line for each entry, each with its line end.
Damage leaves zeros, halves of lines, a count that no longer fits, or bytes of another file; the lines between are
whole. Losing an entry does no harm: without it a broker recovers a log from its beginning, takes its first segment for
the log start, and learns the high watermark anew (FACTS §2.4). A half line could give a wrong offset, so a last line
without its line end does not count.
Source: FACTS §2.3-2.5; KAFKA sources of 3.0.0 and 3.1.0.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from layout.errors import BrokerEffect, DamagedFileError, InvalidNameError, NumberFormatError, excerpt
from layout.java_text import java_lines, java_split, parse_java_int

RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
"""First offset that is not known to be flushed, of every current and future log."""
LOG_START_CHECKPOINT: Final = "log-start-offset-checkpoint"
"""Log start offset, where it is not simply the first segment's base offset."""
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
"""High watermark of the online partitions."""
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
"""First dirty offset of compacted logs."""
OFFSET_CHECKPOINTS: Final = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)
"""The four files of a log dir that hold an offset for each partition."""
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
"""The first offset of each leader epoch of one replica."""

_FORGIVEN: Final = "a broker warns and ignores it"
AFTER_A_BAD_NUMBER: Final = {
    RECOVERY_POINT_CHECKPOINT: _FORGIVEN,
    LOG_START_CHECKPOINT: _FORGIVEN,
    HIGH_WATERMARK_CHECKPOINT: "a broker starts, and fails on what it is to lead or to follow, also in other log dirs",
    CLEANER_CHECKPOINT: "a broker starts, its log cleaner ends at once, and no topic is compacted from then on",
}
"""File → consequence of damage that takes no log dir offline and ends no startup (seen on 3.9.2 and 4.3.1)."""

NUMBERS_PASS_SINCE: Final = (3, 1)
"""The first release, major and minor, whose reader lets an error in a number through as it is."""

_VERSION = 0
_AS_WRITTEN = re.compile(rb"0\n([0-9]{1,9})\n((?:[!-~]+ [0-9]{1,9} [0-9]{1,18}\n)*)")
_WHITE_SPACE = re.compile(r"\s+", re.ASCII)


def parse_offsets(data: bytes, file: str) -> dict[tuple[str, int], int]:
    """Read an offset checkpoint: (topic, partition) → offset. Of several entries for one key, the last counts.

    Partitions are int32 and offsets int64; negative ones parse, as they do in a broker.

    Args:
        data: the whole file.
        file: which of :data:`OFFSET_CHECKPOINTS` it is; decides what a broker does with a bad number.

    Raises:
        DamagedFileError: see the module's docstring; ``effect`` is what a broker does.
    """
    plain = _as_written(data)
    if plain is not None:
        return plain
    entries = {}
    for topic, partition, offset in _entries(data, file, fields=3):
        entries[topic, _number(partition, 32, file)] = _number(offset, 64, file)
    return entries


def _as_written(data: bytes) -> dict[tuple[str, int], int] | None:
    """Read a file that is exactly as a broker writes it; None: it is not, and takes the slow path.

    A broker with 100,000 replicas has three such files; the fast path takes a tenth of the time.
    """
    match = _AS_WRITTEN.fullmatch(data) if data.isascii() else None
    if match is None:
        return None
    fields = match[2].decode("ascii").split()
    if len(fields) != 3 * int(match[1]):
        return None
    keys = zip(fields[0::3], map(int, fields[1::3]), strict=True)
    return dict(zip(keys, map(int, fields[2::3]), strict=True))


def parse_leader_epochs(data: bytes) -> list[tuple[int, int]]:
    """Read a leader epoch checkpoint: (leader epoch, start offset) pairs in the order of the file.

    Raises:
        DamagedFileError: see the module's docstring; ``effect`` is what a broker does.
    """
    file = LEADER_EPOCH_CHECKPOINT
    return [(_number(epoch, 32, file), _number(offset, 64, file)) for epoch, offset in _entries(data, file, fields=2)]


def encode_offsets(entries: Mapping[tuple[str, int], int]) -> bytes:
    """Write an offset checkpoint in the mapping's order.

    Raises:
        InvalidNameError: a topic is empty or has white space in it, so no reader could split the line again.
    """
    for topic, _ in entries:
        if not topic or _WHITE_SPACE.search(topic):
            raise InvalidNameError(f"{topic!r:.60} cannot stand in a checkpoint: it is empty or has white space")
    return _encode(f"{topic} {partition} {offset}" for (topic, partition), offset in entries.items())


def encode_leader_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    """Write a leader epoch checkpoint from (leader epoch, start offset) pairs, in their order."""
    return _encode(f"{epoch} {offset}" for epoch, offset in entries)


def _encode(lines: Iterable[str]) -> bytes:
    written = list(lines)
    return "".join(f"{line}\n" for line in (_VERSION, len(written), *written)).encode("utf-8")


def _entries(data: bytes, file: str, fields: int) -> list[list[str]]:
    """Check version and count, and split the entries; the claimed count is only compared, never used to allocate."""
    try:
        lines = java_lines(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DamagedFileError(file, f"not UTF-8 at byte {error.start}", BrokerEffect.LOG_DIR_OFFLINE) from error
    if lines and (version := _header_number(lines[0], "version", file)) != _VERSION:
        raise DamagedFileError(file, f"version {version}, expected {_VERSION}", BrokerEffect.LOG_DIR_OFFLINE)
    if len(lines) < 2:
        return []
    count = _header_number(lines[1], "number of entries", file)
    if count < 0:
        raise DamagedFileError(file, f"the number of entries is {count}", _effect_of_bad_number(file))
    entries = []
    for number, line in enumerate(lines[2:], start=3):
        parts = java_split(_WHITE_SPACE, line)
        if len(parts) != fields:
            problem = f"line {number} is {excerpt(line)}, expected {fields} fields"
            raise DamagedFileError(file, problem, BrokerEffect.LOG_DIR_OFFLINE)
        entries.append(parts)
    if len(entries) != count:
        problem = f"the number of entries is said to be {count}, and is {len(entries)}"
        raise DamagedFileError(file, problem, BrokerEffect.LOG_DIR_OFFLINE)
    return entries


def _header_number(text: str, what: str, file: str) -> int:
    try:
        return parse_java_int(text)
    except NumberFormatError as error:
        raise DamagedFileError(file, f"{what}: {error}", BrokerEffect.LOG_DIR_OFFLINE) from error


def _number(text: str, bits: int, file: str) -> int:
    try:
        return parse_java_int(text, bits)
    except NumberFormatError as error:
        raise DamagedFileError(file, str(error), _effect_of_bad_number(file)) from error


def _effect_of_bad_number(file: str) -> BrokerEffect:
    return BrokerEffect.NONE if file in OFFSET_CHECKPOINTS else BrokerEffect.STARTUP_ABORTS


_LINE_END = re.compile(rb"\r\n|\r|\n")
_SALVAGEABLE_ENTRY = re.compile(r"([^\s]+) ([+-]?[0-9]+) ([+-]?[0-9]+)")
_MOST_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The readable part of a damaged offset checkpoint.

    Attributes:
        entries: (topic, partition) → offset, in the order of the file.
        lost: the lines that do not parse, as escapes, each cut to a length that can be shown.
        version: from the first line; None: it cannot be read. Any other than 0 is another format, not damage.
    """

    entries: dict[tuple[str, int], int]
    lost: tuple[str, ...]
    version: int | None


def salvage(data: bytes) -> Salvaged:
    """Read the entries of a damaged offset checkpoint that parse. Never raises."""
    lines = _LINE_END.split(data)
    cut = lines.pop()
    entries: dict[tuple[str, int], int] = {}
    lost: list[str] = []
    for number, line in enumerate(lines):
        entry = _salvaged_entry(line)
        if entry is not None:
            entries[entry[0], entry[1]] = entry[2]
        elif number > 1 or _integer_or_none(line) is None:
            lost.append(_escaped(line))
    if cut:
        lost.append(_escaped(cut))
    return Salvaged(entries, tuple(lost), _integer_or_none(lines[0]) if lines else None)


def rebuilt(data: bytes, dropped: Collection[tuple[str, int]]) -> bytes:
    """Encode the salvaged entries of a damaged file, without some of them: a repair writes this in its place."""
    return _without(salvage(data).entries, dropped)


def pruned(data: bytes, file: str, dropped: Collection[tuple[str, int]]) -> bytes:
    """Encode a file that parses, without some of its entries.

    Raises:
        DamagedFileError: the file does not parse.
    """
    return _without(parse_offsets(data, file), dropped)


def _without(entries: dict[tuple[str, int], int], dropped: Collection[tuple[str, int]]) -> bytes:
    return encode_offsets({key: offset for key, offset in entries.items() if key not in dropped})


def _salvaged_entry(line: bytes) -> tuple[str, int, int] | None:
    try:
        text = line.decode("utf-8")
        match = _SALVAGEABLE_ENTRY.fullmatch(text)
        if match is None or not text.isprintable():
            return None
        partition, offset = parse_java_int(match[2]), parse_java_int(match[3], 64)
    except (UnicodeDecodeError, NumberFormatError):
        return None
    return (match[1], partition, offset) if partition >= 0 and offset >= 0 else None


def _integer_or_none(line: bytes) -> int | None:
    try:
        return parse_java_int(line.decode("ascii"))
    except (UnicodeDecodeError, NumberFormatError):
        return None


def _escaped(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
