"""What every test may ask for: the shared folder, golden vectors, the corpus; and a reproducible hypothesis profile."""

from __future__ import annotations

import gc
import json
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.object_store import ObjectStore, object_store
from tools.real_broker.fixtures.archive import unpack

settings.register_profile("reproducible", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("reproducible")

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("LOGSTORE_SHARED") or REPOSITORY.parent / "shared")
NO_SHARED = f"no shared folder at {SHARED}; set LOGSTORE_SHARED to where it is"


@cache
def _golden_vectors() -> list[dict[str, Any]]:
    """All golden vectors in the order of files and lines; none without the shared folder."""
    files = sorted((SHARED / "kafka" / "golden").glob("*.json"))
    return [vector for file in files for vector in json.loads(file.read_text(encoding="utf-8"))]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--whole``, ``--crash-seeds`` and ``--crash-depth``."""
    parser.addoption("--whole", action="store_true", help="every pair of faults in the operator loops, not a sample")
    parser.addoption("--crash-seeds", default="3", metavar="[FIRST:]END", help="seeds of the drawn crash histories [3]")
    parser.addoption("--crash-depth", default=1, type=int, metavar="N", help="crashes one after the other in them [1]")


def pytest_configure() -> None:
    """Heed Ctrl-C, which a shell lets a job in the background ignore, and all that the job starts with it.

    Read no settings of this machine, neither here nor in the commands that tests start: an empty file is named.
    """
    os.environ["LOGSTORE_SETTINGS"] = os.devnull
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``vector`` once for each golden vector of the kinds in its ``shared(kinds=...)`` marker."""
    if "vector" not in metafunc.fixturenames:
        return
    kinds = next(marker.kwargs["kinds"] for marker in metafunc.definition.iter_markers("shared") if marker.kwargs)
    vectors = [vector for vector in _golden_vectors() if vector["kind"] in kinds]
    if vectors:
        metafunc.parametrize("vector", vectors, ids=[f"{n}-{vector['kind']}" for n, vector in enumerate(vectors)])
    else:
        metafunc.parametrize("vector", [pytest.param(None, marks=pytest.mark.skip(reason=NO_SHARED))])


def pytest_collection_finish() -> None:
    """Leave what was collected, half a million objects that stay to the end, out of every later search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let the end of the process find everything again, since libraries tell of what is still there then."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of facts, golden vectors and corpus: ``LOGSTORE_SHARED``, else ``../shared`` beside the repository."""
    if not (SHARED / "kafka" / "golden").is_dir():
        pytest.skip(NO_SHARED)
    return SHARED


@pytest.fixture(scope="session")
def golden_vectors(shared: Path) -> list[dict[str, Any]]:
    """All golden vectors: ``kind``, ``input`` and ``output``, as upstream's own classes gave them."""
    return _golden_vectors()


@pytest.fixture(scope="session")
def corpus(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log dirs that real brokers wrote, unpacked for this session; one folder for each place they came from."""
    archive = shared / "corpus" / "kafka-log-dirs.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no corpus at {archive}")
    folder = tmp_path_factory.mktemp("corpus")
    unpack(archive, folder)
    return folder


@pytest.fixture(scope="session")
def _object_store() -> Iterator[ObjectStore]:
    with object_store() as store:
        yield store


@pytest.fixture
def s3(_object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """An object store with one empty bucket, which the environment names."""
    for name, value in _object_store.environment().items():
        monkeypatch.setenv(name, value)
    _object_store.empty()
    return _object_store
