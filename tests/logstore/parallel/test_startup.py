"""What makes a process start sooner: exports that are imported when asked for, no pandas, a collector that rests."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from logstore.parallel import lazy_exports, paused_gc


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


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("module", ["pandas", "numpy"])
def test_arrow_turns_lists_into_columns_without_importing_it(module: str) -> None:
    pytest.importorskip(module, reason=f"{module} is not installed, so nothing could import it")
    work = f"import sys, pyarrow as pa; pa.array(['a', None]).to_pylist(); print('{module}' in sys.modules)"
    assert run(work) == "True"
    assert run(f"from logstore.parallel.startup import do_without_pandas as f; f(); f(); {work}") == "False"


@pytest.mark.parametrize("module", ["pandas", "numpy"])
def test_an_import_fails_as_if_it_were_not_installed(module: str) -> None:
    ask = f"\ntry:\n    import {module}\nexcept ImportError as error:\n    print(error.name)"
    assert run(f"from logstore.parallel.startup import do_without_pandas as f; f(){ask}") == module


def test_an_export_is_imported_when_it_is_asked_for() -> None:
    code = "import sys, logstore as l; x = 'logstore.clock'; print(x in sys.modules); l.Clock; print(x in sys.modules)"
    assert run(code) == "False\nTrue"


def test_a_name_that_is_not_exported_is_refused_as_by_any_module() -> None:
    exported = lazy_exports("logstore", {"errors": ("LogStoreError",)})
    with pytest.raises(AttributeError, match="module 'logstore' has no attribute 'NoSuchName'"):
        exported("NoSuchName")
