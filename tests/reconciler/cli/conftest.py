"""A small cluster on disk for the tests of the command line: two brokers, one log dir each, and its saved metadata."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from layout import meta_properties, partition_metadata
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from reconciler.cli import logstore
from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.sources import parquet
from reconciler.text import size
from tests.patience import PATIENCE_S

CLUSTER = "cluster-of-the-tests"
ORDERS, OLD_ORDERS = TopicId(bytes(range(16))), TopicId(bytes(range(100, 116)))
REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Cluster:
    """``orders`` has two partitions on brokers 1 and 2; broker 2 still holds partition 1 under the old topic ID."""

    folder: Path

    @property
    def metadata(self) -> str:
        return str(self.folder / "metadata")

    def log_dir(self, node: int) -> Path:
        return self.folder / "disks" / f"broker-{node}"

    @property
    def log_dirs(self) -> list[str]:
        return [str(self.log_dir(1)), str(self.log_dir(2))]


def make_log_dir(folder: Path, node: int, replicas: Mapping[str, TopicId | None], cluster: str = CLUSTER) -> Path:
    """A log dir with an identity and partition dirs of 1000 bytes each."""
    folder.mkdir(parents=True)
    identity = MetaProperties(1, cluster, node, DirectoryId.from_halves(77, node))
    (folder / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))
    for name, topic_id in replicas.items():
        (folder / name).mkdir()
        (folder / name / "00000000000000000000.log").write_bytes(bytes(1000))
        if topic_id is not None:
            (folder / name / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(topic_id))
    return long_written(folder)


def long_written(folder: Path) -> Path:
    """Give everything below a folder the time of an hour ago, so that metadata of now may judge it."""
    then = time.time() - 3600
    for path in folder.rglob("*"):
        os.utime(path, (then, then))
    return folder


def save_metadata(folder: Path, cluster: str | None = CLUSTER) -> Path:
    """The desired state of the small cluster, as of a minute ago, in the form that loads quickest."""
    folder.mkdir()
    builder, as_of_ms = DesiredBuilder(), time.time_ns() // 1_000_000 - 60_000
    for partition in range(2):
        builder.partition("orders", str(ORDERS), partition, [1, 2], isr=[1, 2], leader=1)
    parquet.save_state(
        builder.build(MetadataIdentity("kraft", "a test", cluster, offset=42, timestamp_ms=as_of_ms)), str(folder)
    )
    return folder


def shown_space(*replicas: Path) -> list[str]:
    """The space that replicas take on the disk, as a table shows it, in words."""
    return size(sum(512 * os.stat(file).st_blocks for replica in replicas for file in replica.iterdir())).split()


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path)
    make_log_dir(made.log_dir(1), 1, {"orders-0": ORDERS, "orders-1": ORDERS})
    make_log_dir(made.log_dir(2), 2, {"orders-0": ORDERS, "orders-1": OLD_ORDERS})
    save_metadata(tmp_path / "metadata")
    return made


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs a command line in this process: ``run("scan", path)``."""
    return lambda *args: CliRunner().invoke(logstore, [str(arg) for arg in args])


@pytest.fixture
def start() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command line in a process of its own, for what only a process shows: pipes, signals, imports."""

    def started(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "reconciler.cli", *map(str, args)]
        return subprocess.run(
            command,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env=dict(os.environ),
            check=False,
            **options,
        )  # type: ignore[call-overload, no-any-return]

    return started


@pytest.fixture
def every_signal_heard() -> Iterator[None]:
    """Undo what tests inherit that run under nohup, or in the background of a script: signals that are nothing."""
    former = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    former[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in former.items():
        signal.signal(number, handler)
