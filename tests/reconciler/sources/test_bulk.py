"""The garbage collector rests during a bulk load, and is afterwards as it was; first bytes never wait."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from reconciler.sources.bulk import first_bytes, paused_gc


def test_the_collector_rests_inside_and_runs_again_afterwards() -> None:
    with paused_gc():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_runs_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="broken"), paused_gc():
        raise ValueError("broken")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_beginning_of_a_file_that_can_be_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abcdef")
    os.mkfifo(tmp_path / "fifo")
    assert first_bytes(str(tmp_path / "file"), 4) == b"abcd"
    for other in ("fifo", "absent", "."):
        assert first_bytes(str(tmp_path / other), 4) == b""
