"""A disk of 20,000 partition dirs under a broker that runs: audited right, and the broker notices nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from layout import partition_metadata
from layout.ids import TopicId
from logstore.log_dir import find_lock_holder
from tools.machine import ROOT
from tools.real_broker.client import Record, until
from tools.real_broker.cluster import Cluster
from tools.real_broker.releases import EACH_WAY

pytestmark = pytest.mark.broker

TOPIC = "many"
LED, BEYOND, FORMER = 400, 1_600, 18_000
"""Partitions that the broker leads; directories of partitions that its topic has not; those of a topic that is gone."""


@contextmanager
def kept_busy(cluster: Cluster) -> Iterator[list[Record]]:
    """Somebody writes all the while; the records come into the list once the broker has acknowledged them."""
    written: list[Record] = []
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            written.extend(cluster.client.produce(TOPIC, 50, partition=0))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        until("the first records are written", lambda: len(written) > 0)
        yield written
    finally:
        over.set()
        writer.join()


def plant(folder: Path, topic: str, numbers: range, topic_id: TopicId) -> None:
    """Partition dirs as a broker makes them, without records."""
    for number in numbers:
        directory = f"{folder}/{topic}-{number}"
        os.mkdir(directory)
        for file, content in (
            ("partition.metadata", partition_metadata.encode(topic_id)),
            ("leader-epoch-checkpoint", b"0\n0\n"),
            ("00000000000000000000.log", b""),
        ):
            with open(f"{directory}/{file}", "wb") as opened:
                opened.write(content)


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the directories of a topic that is gone; to make them takes longer than all else here."""
    folder = tmp_path_factory.mktemp("former")
    plant(folder, "former", range(FORMER), TopicId.random(os.urandom))
    yield folder
    shutil.rmtree(folder)  # not left to whoever keeps the folders of old tests


@contextmanager
def moved_to(disk: Path, folder: Path) -> Iterator[None]:
    """All directories of a folder lie on a disk meanwhile."""
    names = os.listdir(folder)
    for name in names:
        os.rename(f"{folder}/{name}", f"{disk}/{name}")
    try:
        yield
    finally:
        for name in names:
            os.rename(f"{disk}/{name}", f"{folder}/{name}")


@pytest.mark.parametrize(("release", "mode"), EACH_WAY)
def test_twenty_thousand_partition_dirs_are_audited_while_their_broker_serves(
    start_cluster: Callable[..., Cluster], former: Path, release: str, mode: str
) -> None:
    cluster = start_cluster(release, mode=mode, brokers=1, log_dirs=2)
    broker = cluster.brokers[1]
    topic = cluster.client.create_topic(TOPIC, [[1]] * LED)
    assert topic.topic_id is not None
    until("all its partitions are there", lambda: broker.replica(TOPIC, LED - 1))
    disk = broker.log_dirs[1]
    # A broker that runs lists no directories, so it does not meet these.
    plant(disk, TOPIC, range(LED, LED + BEYOND), TopicId.parse(topic.topic_id))
    pid, logged = broker.pid, broker.log.stat().st_size
    command = [ROOT / ".venv/bin/logstore", "audit", *broker.log_dirs, "--metadata", f"kafka:{cluster.bootstrap}"]
    with moved_to(disk, former), kept_busy(cluster) as written:
        before = len(written)
        audited = subprocess.run([*map(str, command), "--format", "json"], capture_output=True, check=False)
        until("records are still taken", lambda: len(written) > before)
    assert audited.returncode == 1, audited.stderr.decode()
    document = orjson.loads(audited.stdout)
    totals = document["totals"]
    # A broker of 2.8 writes topic IDs late. The metadata log of one of KRaft is no replica that is counted.
    in_order = totals.pop("OK", 0) + (totals.pop("NO_ID", 0) if release == "2.8" else 0)
    assert in_order == LED
    assert totals == {"NOT_ASSIGNED": BEYOND, "UNKNOWN_TOPIC": FORMER}
    rows = [row for row in document["findings"] if row["verdict"] != "NO_ID"]
    found = Counter((row["verdict"], row["broker"], row["topic"], row["log_dir"]) for row in rows)
    assert found == {
        ("NOT_ASSIGNED", 1, TOPIC, str(disk)): BEYOND,
        ("UNKNOWN_TOPIC", 1, "former", str(disk)): FORMER,
    }
    assert cluster.client.consume(TOPIC, [0]) == sorted(written)
    holder = find_lock_holder(str(disk))
    assert holder is not None and holder.pid == broker.pid == pid
    assert "] ERROR " not in broker.log.read_text()[logged:]
