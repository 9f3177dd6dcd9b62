"""Record batches: the header, the CRC, the codec, the envelopes, and batches behind a broken one."""

from __future__ import annotations

import builtins
import gzip
import hashlib
import io
import os
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.protocol import MalformedMessageError
from reconciler.sources.kraft import Batch, BrokenBatchError, batches, read_batches
from reconciler.sources.kraft import encoding as kraft_encoding
from reconciler.sources.kraft.batches import find_batch
from tools.writers import kraft_writer

ONE = kraft_writer.log_batch([b"first", b"second"], 40, epoch=3, timestamp_ms=1_700_000_000_000)
NEXT = kraft_writer.log_batch([b"third"], 42, epoch=4, timestamp_ms=1_700_000_000_001)
HEADER = 61


class Counted(io.BufferedReader):
    """Counts the bytes that are read from a file."""

    bytes = 0

    def __init__(self, file: io.BufferedReader) -> None:
        super().__init__(file.raw)

    def read(self, size: int | None = -1, /) -> builtins.bytes:
        found = super().read(size)
        self.bytes += len(found)
        return found


def _read(data: bytes) -> list[Batch]:
    return list(read_batches(io.BytesIO(data), len(data), hashlib.sha256()))


def _resealed(batch: bytes) -> bytes:
    """The same batch with the CRC that its bytes should have, so that only the change itself is wrong."""
    return batch[:17] + struct.pack(">I", google_crc32c.value(batch[21:])) + batch[21:]


def _changed(batch: bytes, at: int, new: bytes) -> bytes:
    return batch[:at] + new + batch[at + len(new) :]


def test_batches_come_one_after_the_other() -> None:
    first, second = _read(ONE + NEXT)
    assert (first.base_offset, first.next_offset, first.epoch, first.position) == (40, 42, 3, 0)
    assert (second.base_offset, second.next_offset, second.epoch, second.position) == (42, 43, 4, len(ONE))
    assert second.max_timestamp_ms == 1_700_000_000_001
    assert not first.is_control
    assert [record.value for batch in (first, second) for record in batch.records()] == [b"first", b"second", b"third"]
    assert {record.key for record in first.records()} == {None}


def test_a_control_batch_has_keys() -> None:
    (batch,) = _read(kraft_writer.leader_change_batch(0))
    assert batch.is_control
    assert [record.key for record in batch.records()] == [bytes.fromhex("00000002")]


def test_an_empty_file_has_no_batches() -> None:
    assert _read(b"") == []


def test_every_byte_that_is_read_goes_into_the_digest() -> None:
    digest = hashlib.sha256()
    data = ONE + NEXT
    assert len(list(read_batches(io.BytesIO(data), len(data), digest))) == 2
    assert digest.digest() == hashlib.sha256(data).digest()


@pytest.mark.parametrize("kept", [1, 11, 12, 60, 61, len(NEXT) - 1])
def test_a_torn_batch_is_broken_where_it_begins(kept: int) -> None:
    reader = read_batches(io.BytesIO(ONE + NEXT[:kept]), len(ONE) + kept, hashlib.sha256())
    assert next(reader).base_offset == 40
    with pytest.raises(BrokenBatchError) as broken:
        next(reader)
    assert broken.value.position == len(ONE)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (bytes(200), "zero padding"),
        (bytes(5), "zero padding"),
        (_changed(ONE, 8, struct.pack(">i", 2**31 - 1)), "claims 2147483647 bytes"),
        (
            _changed(ONE, 8, struct.pack(">i", 1 << 20)),
            f"claims 1048576 bytes behind its length, where {len(ONE) - 12} are",
        ),
        (_changed(ONE, 8, struct.pack(">i", -1)), "claims -1 bytes"),
        (_changed(ONE, 16, b"\x01"), "magic 1"),
        (_changed(ONE, 17, b"\0\0\0\0"), "CRC-32C"),
        (_changed(ONE, len(ONE) - 3, b"\xee"), "CRC-32C"),
        (_changed(ONE, 0, b"\xff"), "a batch of offset -"),
        (_changed(ONE, 12, b"\xff"), "epoch -"),
    ],
)
def test_what_is_no_sound_batch_says_why(data: bytes, said: str) -> None:
    with pytest.raises(BrokenBatchError, match=said):
        _read(data)


def test_a_claimed_length_is_not_read_when_the_file_cannot_hold_it() -> None:
    class Watched(io.BytesIO):
        asked = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.asked = max(self.asked, size or 0)
            return super().read(size)

    file = Watched(_changed(ONE, 8, struct.pack(">i", 50 << 20)))
    with pytest.raises(BrokenBatchError):
        list(read_batches(file, len(ONE), hashlib.sha256()))
    assert file.asked == HEADER


def test_a_file_that_shrinks_while_it_is_read_is_torn() -> None:
    with pytest.raises(BrokenBatchError, match="cut from"):
        list(read_batches(io.BytesIO(ONE[:-4]), len(ONE), hashlib.sha256()))


def test_a_gzip_batch_unpacks() -> None:
    packed = kraft_encoding.batch(
        [(None, b"first")], base_offset=0, epoch=1, timestamp_ms=0, attributes=1, compress=gzip.compress
    )
    assert [record.value for record in _read(packed)[0].records()] == [b"first"]


@pytest.mark.parametrize(("codec", "name"), [(2, "snappy"), (3, "lz4"), (4, "zstd"), (5, "codec 5")])
def test_another_codec_is_named(codec: int, name: str) -> None:
    packed = kraft_encoding.batch([(None, b"x")], base_offset=0, epoch=1, timestamp_ms=0, attributes=codec)
    with pytest.raises(MalformedMessageError, match=name):
        _read(packed)[0].records()


def test_a_gzip_batch_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_BYTES", 10_000)
    bomb = kraft_encoding.batch(
        [(None, bytes(20_000))], base_offset=0, epoch=1, timestamp_ms=0, attributes=1, compress=gzip.compress
    )
    with pytest.raises(MalformedMessageError, match="over 10000 bytes"):
        _read(bomb)[0].records()


@pytest.mark.parametrize("compress", [lambda raw: raw, zlib.compress, lambda raw: gzip.compress(raw) + b"more"])
def test_a_gzip_batch_that_is_not_one_is_refused(compress: object) -> None:
    packed = kraft_encoding.batch(
        [(None, b"x")],
        base_offset=0,
        epoch=1,
        timestamp_ms=0,
        attributes=1,
        compress=compress,  # type: ignore[arg-type]
    )
    with pytest.raises(MalformedMessageError, match="gzip"):
        _read(packed)[0].records()


@pytest.mark.parametrize(
    ("at", "new", "said"),
    [
        (57, struct.pack(">i", 3), "3 records over 2 offsets"),
        (57, struct.pack(">i", -1), "-1 records"),
        (61, b"\x7f", "claims"),
        (61, b"\x02", "claims 1 bytes"),
        (63, b"\x02", "timestamp delta 1"),
        (64, b"\x02", "offset delta 1"),
        (65, b"\x02", "claims 51 bytes"),
        (66, b"\x01", "no value, headers, or"),
        (72, b"\x02", "no value, headers, or"),
    ],
)
def test_records_that_do_not_fill_their_batch_are_refused(at: int, new: bytes, said: str) -> None:
    (batch,) = _read(_resealed(_changed(ONE, at, new)))
    with pytest.raises(MalformedMessageError, match=said):
        batch.records()


def test_a_batch_cannot_claim_more_records_than_its_bytes_hold() -> None:
    many = _resealed(_changed(_changed(ONE, 57, struct.pack(">i", 2**31 - 1)), 23, struct.pack(">i", 2**31 - 2)))
    (batch,) = _read(many)
    with pytest.raises(MalformedMessageError, match="claims 2147483647 records"):
        batch.records()


def test_bytes_after_the_last_record_are_refused() -> None:
    longer = _changed(ONE, 8, struct.pack(">i", len(ONE) - 12 + 2)) + b"\0\0"
    (batch,) = _read(_resealed(longer))
    with pytest.raises(MalformedMessageError, match="2 bytes after the last record"):
        batch.records()


def test_a_sound_batch_is_found_behind_a_broken_one() -> None:
    data = _changed(ONE, 70, b"\xee") + NEXT
    assert find_batch(io.BytesIO(data), 1, len(data), 40) == len(ONE)


def test_a_sound_batch_is_found_behind_many_bytes_of_anything() -> None:
    padding = b"\x02\xff\x00" * 700_000
    data = padding + NEXT
    assert find_batch(io.BytesIO(data), 0, len(data), 0) == len(padding)


@pytest.mark.parametrize("shift", range(-70, 10, 7))
def test_a_batch_that_lies_over_the_edge_of_a_window_is_found(shift: int) -> None:
    data = bytes((1 << 20) + shift) + NEXT
    assert find_batch(io.BytesIO(data), 0, len(data), 0) == (1 << 20) + shift


def test_a_hole_is_not_read_and_a_batch_behind_it_is_found(tmp_path: Path) -> None:
    path, far = tmp_path / "log", 1 << 40
    path.write_bytes(ONE)
    os.truncate(path, far)
    with path.open("rb") as plain:
        counted = Counted(plain)
        assert find_batch(counted, len(ONE), far, 0) is None
        assert counted.bytes < 4 << 20
    with path.open("r+b") as file:
        file.seek(far)
        file.write(NEXT)
    with path.open("rb") as plain:
        counted = Counted(plain)
        assert find_batch(counted, len(ONE), far + len(NEXT), 0) == far
        assert counted.bytes < 4 << 20


def test_what_was_buffered_before_a_hole_does_not_change_what_is_read_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(ONE + bytes(300) + NEXT + bytes(20_000) + NEXT)
    with path.open("rb") as file:
        assert file.read(61) == ONE[:61]
        assert find_batch(file, len(ONE), path.stat().st_size, 0) == len(ONE) + 300
        assert find_batch(file, len(ONE) + 301, path.stat().st_size, 0) == len(ONE) + 300 + len(NEXT) + 20_000


def test_zeros_that_are_no_hole_are_not_searched_byte_by_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    class Searched:
        windows = 0

        def finditer(self, window: bytes) -> Iterator[re.Match[bytes]]:
            self.windows += 1
            return pattern.finditer(window)

    pattern, searched = batches._LIKE_A_BATCH, Searched()
    monkeypatch.setattr(batches, "_LIKE_A_BATCH", searched)
    data = bytes(20 << 20) + NEXT
    assert find_batch(io.BytesIO(data), 0, len(data), 0) == 20 << 20
    assert searched.windows == 1


def test_a_gzip_batch_unpacks_to_no_more_than_its_own_size_explains() -> None:
    bomb = kraft_encoding.batch(
        [(None, bytes(2 << 20))], base_offset=0, epoch=1, timestamp_ms=0, attributes=1, compress=gzip.compress
    )
    assert len(bomb) < 10_000
    with pytest.raises(MalformedMessageError, match="over 1048576 bytes"):
        _read(bomb)[0].records()


def test_nothing_is_found_where_there_is_only_an_older_a_broken_or_a_torn_batch() -> None:
    assert find_batch(io.BytesIO(NEXT), 0, len(NEXT), 43) is None
    assert find_batch(io.BytesIO(NEXT), 1, len(NEXT), 0) is None
    broken = _changed(NEXT, len(NEXT) - 2, b"\xee")
    assert find_batch(io.BytesIO(broken), 0, len(broken), 0) is None
    assert find_batch(io.BytesIO(NEXT[:-1]), 0, len(NEXT) - 1, 0) is None


@given(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=20), st.integers(0, 2**62))
def test_records_come_back(values: list[bytes], base_offset: int) -> None:
    (batch,) = _read(kraft_writer.log_batch(values, base_offset))
    assert batch.base_offset == base_offset
    assert [record.value for record in batch.records()] == values


@given(st.binary(max_size=200), st.integers(0, len(ONE) - 1))
def test_any_bytes_are_batches_or_broken(noise: bytes, at: int) -> None:
    for data in (noise, _changed(ONE, at, noise), _resealed(_changed(ONE, at, noise)[: len(ONE)])):
        try:
            for batch in _read(data):
                assert len(batch.records()) == batch.count
        except MalformedMessageError:
            continue
