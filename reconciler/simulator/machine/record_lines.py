"""The bytes of a replica's records: a line of text for each, with a checksum, so that what a crash tore is known.

::

    5d0c3a2e 0 1 UXyU9i5ARn6W00ON2taeWA order 17
    checksum, offset, leader epoch, topic ID or -, value

The checksum is a CRC-32 of what follows it. The topic ID is there so that a record of a topic that was deleted can
be told from one of a topic that was made again under its name.
"""

from __future__ import annotations

import zlib

from layout.errors import LayoutError
from layout.ids import TopicId
from reconciler.simulator.kernel import Record

_NO_ID = "-"


def encode_record(record: Record) -> bytes:
    """One record as a line.

    Raises:
        ValueError: the value holds a line break, which would end the record too early.
    """
    if "\n" in record.value:
        raise ValueError(f"{record.value!r:.60} holds a line break, and a record is one line: leave it out")
    topic_id = _NO_ID if record.topic_id is None else str(record.topic_id)
    text = f"{record.offset} {record.leader_epoch} {topic_id} {record.value}".encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def decode_records(data: bytes) -> tuple[list[Record], list[int]]:
    """Read records from the first offset on, as far as they are whole and follow upon each other.

    Returns:
        The records, and for each the position after its line; what lies behind the last of these is torn.
    """
    records: list[Record] = []
    ends: list[int] = []
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        record = _decode_line(data[position:end])
        if record is None or record.offset != len(records):
            break
        position = end + 1
        records.append(record)
        ends.append(position)
    return records, ends


def _decode_line(line: bytes) -> Record | None:
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    try:
        offset, epoch, topic_id, value = text.decode().split(" ", 3)
        return Record(int(offset), int(epoch), None if topic_id == _NO_ID else TopicId.parse(topic_id), value)
    except (ValueError, LayoutError):
        return None
