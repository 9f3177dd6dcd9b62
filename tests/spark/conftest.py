"""One Spark session for all tests of Spark, because a JVM takes longer to start than most of them to run."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIRECTORY_IDS = ("s33AdXtkR8Gf_xRO-R_dpA", "AtgGav8yQjiaJ3rTXE7VCA")
TOPIC_ID = "UXyU9i5ARn6W00ON2taeWA"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores of this machine."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    from reconciler.audit.spark import open_session

    with open_session("local[2]", memory="1g") as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_stays_frozen() -> Iterator[None]:
    """What a task freezes in its worker would never be freed in the process of the tests: modules complain at exit."""
    yield
    gc.unfreeze()


@pytest.fixture
def two_disks(tmp_path: Path) -> list[str]:
    """A broker's two log dirs: orders-0 lies on both, with leader epochs 3 and 4, and orders-1 on the second."""
    disks = [tmp_path / "disks" / "one", tmp_path / "disks" / "two"]
    for number, disk in enumerate(disks):
        disk.mkdir(parents=True)
        identity = f"version=1\ncluster.id=C\nnode.id=1\ndirectory.id={DIRECTORY_IDS[number]}\n"
        (disk / "meta.properties").write_text(identity)
        _replica(disk / "orders-0", epoch=3 + number)
    _replica(disks[1] / "orders-1", epoch=1)
    return [str(disk) for disk in disks]


def _replica(path: Path, epoch: int) -> None:
    path.mkdir()
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    (path / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")
    (path / "00000000000000000000.log").write_bytes(b"x" * 100)
