"""Checksums: CRC-32C as its standard gives it, over files, parts of files, and what is being written."""

from __future__ import annotations

import io
from pathlib import Path

from logstore.fs import SummedWriter, crc32c_of, crc32c_of_file

CHECK = "e3069283"
"""CRC-32C of the nine digits 1 to 9, the check value in every catalogue of CRCs."""


def test_the_check_value_of_the_standard() -> None:
    assert crc32c_of(b"123456789") == CHECK


def test_a_file_or_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"123456789and more")
    assert crc32c_of_file(str(path), 9) == CHECK
    assert crc32c_of_file(str(path)) == crc32c_of(b"123456789and more")
    path.write_bytes(b"123456789" * 300_000)
    assert crc32c_of_file(str(path)) == crc32c_of(b"123456789" * 300_000)


def test_what_is_written_in_pieces_has_the_checksum_of_the_whole() -> None:
    out = io.BytesIO()
    writer = SummedWriter(out)
    for piece in (b"1234", memoryview(b"5678"), b"", b"9"):
        writer.write(piece)
    writer.flush()
    assert (out.getvalue(), writer.length, writer.crc32c) == (b"123456789", 9, CHECK)
