"""The first bytes of any file, without ever waiting."""

from __future__ import annotations

import os
from pathlib import Path

from reconciler.sources.first_bytes import first_bytes


def test_the_beginning_of_a_file_that_can_be_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abcdef")
    os.mkfifo(tmp_path / "fifo")
    assert first_bytes(str(tmp_path / "file"), 4) == b"abcd"
    for other in ("fifo", "absent", "."):
        assert first_bytes(str(tmp_path / other), 4) == b""
