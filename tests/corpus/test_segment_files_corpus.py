"""The indexes and producer snapshots that real brokers wrote."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from layout import segment_name
from layout.segment_files import (
    parse_offset_index,
    parse_producer_snapshot,
    parse_time_index,
    parse_transaction_index,
)
from layout.segment_name import FileKind
from logstore.fs import crc32c_of

pytestmark = pytest.mark.corpus


def test_every_index_and_producer_snapshot_of_the_corpus_reads(corpus: Path) -> None:
    read, filled = Counter[FileKind](), Counter[FileKind]()
    for path in corpus.rglob("*"):
        name = segment_name.parse(path.name)
        if name.offset is None or not path.is_file():
            continue
        data = path.read_bytes()
        found: object
        if name.kind is FileKind.OFFSET_INDEX:
            found = parse_offset_index(data, name.offset).entries
        elif name.kind is FileKind.TIME_INDEX:
            found = parse_time_index(data, name.offset).entries
        elif name.kind is FileKind.TRANSACTION_INDEX:
            found = parse_transaction_index(data, name.offset)
        elif name.kind is FileKind.PRODUCER_SNAPSHOT:
            found = parse_producer_snapshot(data, crc32c_of)
        else:
            continue
        read[name.kind] += 1
        filled[name.kind] += bool(found)
    assert read[FileKind.OFFSET_INDEX] > 2000 and filled[FileKind.OFFSET_INDEX] > 100
    assert read[FileKind.TIME_INDEX] > 2000 and filled[FileKind.TIME_INDEX] > 200
    assert read[FileKind.PRODUCER_SNAPSHOT] > 400 and filled[FileKind.PRODUCER_SNAPSHOT] > 40
    assert read[FileKind.TRANSACTION_INDEX] == 1
