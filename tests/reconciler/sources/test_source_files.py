"""Files of sources: the first bytes without ever waiting, whole files, and paths that are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.errors import MetadataError, UsageError
from reconciler.sources import files
from reconciler.sources.files import first_bytes, read_file


def test_the_beginning_of_a_file_that_can_be_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abcdef")
    os.mkfifo(tmp_path / "fifo")
    assert first_bytes(str(tmp_path / "file"), 4) == b"abcd"
    for other in ("fifo", "absent", "."):
        assert first_bytes(str(tmp_path / other), 4) == b""


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_file(f"{tmp_path}/absent")
    with pytest.raises(UsageError, match="is not a file"):
        read_file(str(tmp_path))


def test_a_file_that_is_too_long_is_refused_by_its_size_alone(tmp_path: Path) -> None:
    path = tmp_path / "long"
    with open(path, "wb") as file:
        os.truncate(file.fileno(), files.MAX_FILE_BYTES + 1)
    with pytest.raises(MetadataError, match=f"longer than {files.MAX_FILE_BYTES} bytes"):
        read_file(str(path))
