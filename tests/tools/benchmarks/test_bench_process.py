"""Measuring whole processes: what is measured keeps its bytecode, and a failure ends the benchmark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.benchmarks.process import run_process


def test_what_is_measured_keeps_its_bytecode_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "module.py").write_text("")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import module"
    measured = run_process("it", [sys.executable, "-c", program])
    assert list((tmp_path / "__pycache__").iterdir())
    assert measured.wall > 0
    assert measured.peak > 1 << 20


def test_a_process_that_fails_ends_the_benchmark_with_its_command() -> None:
    with pytest.raises(SystemExit, match=r"it ended with 3: .*Exit\(3\)"):
        run_process("it", [sys.executable, "-c", "raise SystemExit(3)"])
