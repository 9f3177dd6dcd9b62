"""``<20 digits>.snapshot``: what a partition knew of its producers before an offset, to find duplicates after a start.

::

    0001 cdf166da 00000002                  int16 version, uint32 CRC-32C of all that follows, int32 number of producers
    00000000000003e8 0002 00000009          int64 producer ID, int16 epoch, int32 last sequence
    0000000000000032 00000003               int64 last offset, int32 offset delta of the last batch
    0000018bcfe56800 00000007               int64 timestamp in ms, int32 epoch of the transaction coordinator
    000000000000002a                        int64 first offset of the transaction that is open

A broker removes a snapshot that does not read and tries an older one. Source: FACTS §2.10.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from layout.errors import DamagedFileError

_FILE = "producer snapshot"
_HEADER = Struct(">hIi")
_PRODUCER = Struct(">qhiqiqiq")
_SUMMED_FROM = 6
_NONE = -1


class ProducerState(NamedTuple):
    """What is known of one producer.

    Attributes:
        producer_id: of the producer.
        epoch: of the producer.
        last_sequence: the sequence number of its last record; None: no batch of it is known.
        last_offset: the offset of its last record; None: no batch of it is known.
        offset_delta: its last batch has this many records and one more.
        timestamp_ms: of the last batch, or of the control record that came later; in ms since 1970.
        coordinator_epoch: of the transaction coordinator that wrote the last control record; None: there was none.
        transaction_first_offset: where the transaction that is open began; None: none is open.
    """

    producer_id: int
    epoch: int
    last_sequence: int | None
    last_offset: int | None
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int | None
    transaction_first_offset: int | None


def parse_producer_snapshot(data: bytes, crc32c: Callable[[bytes], str]) -> list[ProducerState]:
    """Read a producer snapshot. Bytes behind the last producer count for the checksum alone.

    Args:
        data: the whole file.
        crc32c: gives the CRC-32C of bytes in eight hex digits; the standard library has none.

    Raises:
        DamagedFileError: the version is not 1, the checksum does not fit, or the file is too short for its producers.
    """
    if len(data) < _HEADER.size:
        raise DamagedFileError(_FILE, f"{len(data)} bytes are fewer than the {_HEADER.size} of its header")
    version, expected, number = _HEADER.unpack_from(data)
    if version != 1:
        raise DamagedFileError(_FILE, f"version {version} is not known, expected 1")
    found = crc32c(data[_SUMMED_FROM:])
    if found != f"{expected:08x}":
        raise DamagedFileError(_FILE, f"its CRC-32C is {found}, and {expected:08x} is noted")
    end = _HEADER.size + number * _PRODUCER.size
    if number < 0 or end > len(data):
        raise DamagedFileError(_FILE, f"{len(data)} bytes do not hold the {number} producers that its header counts")
    states = []
    for producer_id, epoch, sequence, offset, delta, timestamp, coordinator, began in _PRODUCER.iter_unpack(
        data[_HEADER.size : end]
    ):
        last = _known(sequence), _known(offset), delta
        states.append(ProducerState(producer_id, epoch, *last, timestamp, _known(coordinator), _known(began)))
    return states


def _known(number: int) -> int | None:
    return None if number == _NONE else number
