"""Read record batches of magic 2, as they stand in a log segment or a snapshot (FACTS §7.4).

A batch is a 61-byte header with a CRC-32C, and records in envelopes, which a codec may compress. A file is read once,
front to back, one batch at a time: never more than one batch is in memory, and no length is trusted beyond the end of
the file.
"""

from __future__ import annotations

import errno
import io
import os
import re
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple, Protocol

import google_crc32c

from reconciler.protocol import UNREADABLE, MalformedMessageError, read_long_zigzag, read_zigzag

MAX_BATCH_BYTES = 64 << 20
"""The largest batch, packed or unpacked; a controller's own limit is 8 MiB."""

_PREFIX = struct.Struct(">qi")  # base offset, length of the rest
_REST = struct.Struct(">ibIhiqqqhii")  # leader epoch to record count
_CHECKED_FROM = 9  # the CRC covers what comes after it, from the attributes on
_MIN_RECORD = 7
_COMPRESSION, _CONTROL = 0x07, 0x20
_CODECS = {2: "snappy", 3: "lz4", 4: "zstd"}
_WINDOW = 1 << 20
_ZEROS = bytes(_WINDOW)

_MOST_TIMES, _ALWAYS_UNPACKED = 32, 1 << 20
"""A batch may unpack to this many times its bytes, or to a MiB: no more work than the file's own size explains."""

_MAGIC_AT = 16
_LIKE_A_BATCH = re.compile(rb"\x02(?=.{26}\xff{14})", re.DOTALL)
"""Matches from the magic byte to the producer fields, which are all -1 in metadata."""


class Digest(Protocol):
    """Takes all bytes that are read, for example ``hashlib.sha256()``."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""


class BrokenBatchError(MalformedMessageError):
    """There is no whole, sound batch at this position: the file is torn, padded or corrupt from here on.

    Attributes:
        position: in the file, in bytes.
    """

    def __init__(self, position: int, problem: str) -> None:
        """Build the message of the problem, one clause, and its position."""
        super().__init__(f"{problem} at byte {position}")
        self.position = position


class RawRecord(NamedTuple):
    """The key and the value of one record, not yet decoded."""

    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch whose CRC is good; the records are still packed.

    Attributes:
        base_offset: offset of its first record.
        epoch: leader epoch in which it was written.
        last_offset_delta: last offset minus ``base_offset``.
        max_timestamp_ms: time of its newest record, ms since 1970.
        attributes: codec in bits 0 to 2, control batch in bit 5.
        count: the number of records that it claims.
        payload: the records' envelopes, compressed as the codec says.
        position: in the file, in bytes.
    """

    base_offset: int
    epoch: int
    last_offset_delta: int
    max_timestamp_ms: int
    attributes: int
    count: int
    payload: bytes
    position: int

    @property
    def is_control(self) -> bool:
        """Whether it holds control records."""
        return bool(self.attributes & _CONTROL)

    @property
    def next_offset(self) -> int:
        """The offset after its last record."""
        return self.base_offset + self.last_offset_delta + 1

    def records(self) -> list[RawRecord]:
        """Unpack the records; the i-th has the offset ``base_offset + i``.

        Raises:
            MalformedMessageError: an unknown codec, or records that do not fill the batch exactly.
        """
        data = _decompress(self.payload, self.attributes & _COMPRESSION)
        if self.count < 0 or self.count != self.last_offset_delta + 1:
            raise MalformedMessageError(f"a batch of {self.count} records over {self.last_offset_delta + 1} offsets")
        if self.count * _MIN_RECORD > len(data):
            raise MalformedMessageError(f"a batch that claims {self.count} records in {len(data)} bytes")
        try:
            return _envelopes(data, self.count)
        except UNREADABLE as error:
            raise MalformedMessageError(f"a record's envelope cannot be read: {error}") from error


def read_batches(file: BinaryIO, size: int, digest: Digest | None = None) -> Iterator[Batch]:
    """Read batch after batch from the start of a file, up to ``size`` bytes.

    Args:
        file: open at its start; a file that grows meanwhile is read up to ``size``.
        size: bytes of the file when reading began.
        digest: takes every byte that is read; None: nothing does.

    Raises:
        BrokenBatchError: the next bytes are no whole, sound batch; reading cannot go on.
    """
    position = 0
    while position < size:
        header = _take(file, min(_PREFIX.size + _REST.size, size - position), digest)
        batch = _batch(header, file, position, size, digest)
        yield batch
        position += _PREFIX.size + _REST.size + len(batch.payload)


def find_batch(file: BinaryIO, start: int, size: int, first_offset: int) -> int | None:
    """Look for a sound batch behind a broken one, to distinguish damage in the middle from a torn end.

    Args:
        file: at any position.
        start: first byte of the search.
        size: bytes of the file.
        first_offset: an older batch, with a smaller base offset, does not count.

    Returns:
        The position of the first one, or None.
    """
    window_start = start
    while (window_start := _next_data(file, window_start)) < size:
        file.seek(window_start)
        window = file.read(min(_WINDOW + _REST.size + _PREFIX.size, size - window_start))
        if window.startswith(_ZEROS):  # preallocated, and no hole on this file system
            window_start += _WINDOW
            continue
        for hit in _LIKE_A_BATCH.finditer(window):
            position = window_start + hit.start() - _MAGIC_AT
            if position >= start and _is_batch_at(file, position, size, first_offset):
                return position
        window_start += _WINDOW
    return None


def _next_data(file: BinaryIO, position: int) -> int:
    """Skip a hole of a sparse file, as preallocation leaves it: the magic of a batch is no zero, so it is not in it."""
    try:
        descriptor = file.fileno()
    except io.UnsupportedOperation:  # it is in memory
        return position
    here = os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        return os.lseek(descriptor, position, os.SEEK_DATA)
    except OSError as error:
        return sys.maxsize if error.errno == errno.ENXIO else position  # there is only a hole left
    finally:
        os.lseek(descriptor, here, os.SEEK_SET)  # the file's buffer counts on it


def _is_batch_at(file: BinaryIO, position: int, size: int, first_offset: int) -> bool:
    file.seek(position)
    header = file.read(_PREFIX.size + _REST.size)
    try:
        return _batch(header, file, position, size).base_offset >= first_offset
    except BrokenBatchError:
        return False


def _take(file: BinaryIO, count: int, digest: Digest | None) -> bytes:
    """Read up to ``count`` bytes; fewer where the file became shorter meanwhile."""
    data = file.read(count)
    if digest is not None:
        digest.update(data)
    return data


def _batch(header: bytes, file: BinaryIO, position: int, size: int, digest: Digest | None = None) -> Batch:
    """Check one batch whose header was read, and read the rest of it."""
    if not any(header):
        raise BrokenBatchError(position, "zero padding")
    if len(header) < _PREFIX.size + _REST.size:
        found = "1 byte" if len(header) == 1 else f"{len(header)} bytes"
        raise BrokenBatchError(position, f"only {found} of a batch's header")
    base_offset, length = _PREFIX.unpack_from(header)
    epoch, magic, crc, attributes, last_delta, _, newest, *_, count = _REST.unpack_from(header, _PREFIX.size)
    payload_size = length - _REST.size
    if magic != 2:
        raise BrokenBatchError(position, f"a batch of magic {magic}, only 2 is known")
    if payload_size < 0 or payload_size > MAX_BATCH_BYTES:
        raise BrokenBatchError(position, f"a batch that claims {length} bytes")
    if payload_size > size - position - len(header):
        left = size - position - _PREFIX.size
        raise BrokenBatchError(position, f"a batch that claims {length} bytes behind its length, where {left} are left")
    payload = _take(file, payload_size, digest)
    if len(payload) < payload_size:
        raise BrokenBatchError(position, f"a batch cut from {payload_size} to {len(payload)} bytes")
    found = google_crc32c.extend(google_crc32c.value(header[_PREFIX.size + _CHECKED_FROM :]), payload)
    if found != crc:
        raise BrokenBatchError(position, f"a batch whose CRC-32C is {found:08x} and not {crc:08x}")
    if base_offset < 0 or last_delta < 0 or epoch < 0:
        raise BrokenBatchError(position, f"a batch of offset {base_offset}+{last_delta} in epoch {epoch}")
    return Batch(base_offset, epoch, last_delta, newest, attributes, count, payload, position)


def _decompress(payload: bytes, codec: int) -> bytes:
    """Decompress a payload into at most :data:`MAX_BATCH_BYTES`, and no more than its own size explains."""
    if codec == 0:
        return payload
    if codec != 1:
        raise MalformedMessageError(
            f"a batch compressed with {_CODECS.get(codec, f'codec {codec}')}, only gzip can be read"
        )
    unpacker = zlib.decompressobj(wbits=31)
    most = min(MAX_BATCH_BYTES, max(_ALWAYS_UNPACKED, _MOST_TIMES * len(payload)))
    try:
        data = unpacker.decompress(payload, most)
    except zlib.error as error:
        raise MalformedMessageError(f"a gzip batch that cannot be unpacked: {error}") from error
    if not unpacker.eof or unpacker.unused_data:
        raise MalformedMessageError(f"a gzip batch that does not end with its stream, or unpacks to over {most} bytes")
    return data


def _envelopes(data: bytes, count: int) -> list[RawRecord]:
    """Read the records from their envelopes, which must fill the bytes exactly."""
    records = []
    at = 0
    for index in range(count):
        size, at = read_zigzag(data, at)
        end = at + size
        if size < _MIN_RECORD - 1 or end > len(data):
            raise MalformedMessageError(f"record {index} claims {size} bytes of {len(data) - at}")
        time_delta, at = read_long_zigzag(data, at + 1)
        offset_delta, at = read_zigzag(data, at)
        if time_delta != 0 or offset_delta != index:
            raise MalformedMessageError(
                f"record {index} has offset delta {offset_delta} and timestamp delta {time_delta}"
            )
        key, at = _blob(data, at, end)
        value, at = _blob(data, at, end)
        headers, at = read_zigzag(data, at)
        if headers != 0 or at != end or value is None:
            raise MalformedMessageError(f"record {index} has no value, headers, or {end - at} bytes over")
        records.append(RawRecord(key, value))
    if at != len(data):
        raise MalformedMessageError(f"{len(data) - at} bytes after the last record")
    return records


def _blob(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Read a key or a value; a negative length is null."""
    length, at = read_zigzag(data, at)
    if length < 0:
        return None, at
    if length > end - at:
        raise MalformedMessageError(f"a key or value claims {length} bytes of {end - at}")
    return data[at : at + length], at + length
