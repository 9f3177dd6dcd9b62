"""A command that does not use Spark does without pandas, and Arrow works all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_arrow_turns_lists_into_columns_without_importing_pandas() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed, so nothing could import it")
    work = "import sys, pyarrow as pa; pa.array(['a', None]); print('pandas' in sys.modules)"
    assert run(work) == "True"
    assert run(f"from reconciler.cli.no_pandas import do_without_pandas as f; f(); f(); {work}") == "False"


def test_whoever_asks_for_pandas_is_told_that_it_is_not_there() -> None:
    ask = "\ntry:\n    import pandas\nexcept ImportError as error:\n    print(error.name)"
    assert run(f"from reconciler.cli.no_pandas import do_without_pandas as f; f(){ask}") == "pandas"
