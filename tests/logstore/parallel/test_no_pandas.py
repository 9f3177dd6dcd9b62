"""A process that does not use Spark does without pandas and NumPy, and Arrow works all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("module", ["pandas", "numpy"])
def test_arrow_turns_lists_into_columns_without_importing_it(module: str) -> None:
    pytest.importorskip(module, reason=f"{module} is not installed, so nothing could import it")
    work = f"import sys, pyarrow as pa; pa.array(['a', None]).to_pylist(); print('{module}' in sys.modules)"
    assert run(work) == "True"
    assert run(f"from logstore.parallel.no_pandas import do_without_pandas as f; f(); f(); {work}") == "False"


@pytest.mark.parametrize("module", ["pandas", "numpy"])
def test_whoever_asks_for_it_is_told_that_it_is_not_there(module: str) -> None:
    ask = f"\ntry:\n    import {module}\nexcept ImportError as error:\n    print(error.name)"
    assert run(f"from logstore.parallel.no_pandas import do_without_pandas as f; f(){ask}") == module
