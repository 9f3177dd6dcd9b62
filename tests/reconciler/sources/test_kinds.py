"""The table of metadata sources: every kind can be used, and only the kind in use is imported."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from reconciler.errors import MetadataError, UsageError
from reconciler.sources.kinds import SOURCES, SourceKind

REPOSITORY = Path(__file__).parents[3]

each_source = pytest.mark.parametrize("source", SOURCES, ids=[source.scheme for source in SOURCES])
each_path = pytest.mark.parametrize(
    "source", [each for each in SOURCES if each.is_path], ids=[each.scheme for each in SOURCES if each.is_path]
)


@each_source
def test_every_kind_has_a_module_that_says_what_it_is(source: SourceKind) -> None:
    module = import_module(f"reconciler.sources.{source.module}")
    assert inspect.getdoc(module)
    assert hasattr(module, source.recogniser) is source.is_path


@each_path
def test_a_folder_with_nothing_in_it_is_of_no_kind_and_cannot_be_read(source: SourceKind, tmp_path: Path) -> None:
    assert source.recognises(str(tmp_path)) is False
    with pytest.raises((MetadataError, UsageError)):
        source.load([str(tmp_path)], str(tmp_path))


def test_an_address_is_recognised_nowhere(tmp_path: Path) -> None:
    live = [source for source in SOURCES if not source.is_path]
    assert [source.scheme for source in live] == ["zk", "kafka", "kafka-all"]
    assert not any(source.recognises(str(tmp_path)) for source in live)


def test_schemes_are_unique() -> None:
    assert len({source.scheme for source in SOURCES}) == len(SOURCES)


def test_reading_one_kind_imports_no_other() -> None:
    program = (
        "import sys; from reconciler.sources import load\n"
        "try: load('parquet:/nowhere')\n"
        "except Exception as error: print(type(error).__name__)\n"
        "print(*sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('reconciler.sources.')))"
    )
    said = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    assert said.stdout.split("\n")[:2] == ["UsageError", "kinds locate parquet"]
