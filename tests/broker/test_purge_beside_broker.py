"""A purge beside a running broker: what is staged beside its log dirs goes, and the broker notices nothing of it."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from layout import partition_metadata
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.log_dir import LogDir
from logstore.staging import Candidate, Placement, stage
from reconciler.cli import logstore
from tests.broker.test_locks_real_broker import metadata
from tests.patience import PATIENCE_S
from tools.real_broker.client import Record
from tools.real_broker.cluster import Cluster
from tools.real_broker.servers import Broker

pytestmark = pytest.mark.broker

QUIET, BUSY = "quiet-beside", "busy-beside"
NOBODYS = "nobodys-beside"
STALE = 40
"""Staged replicas on each disk; a purge of one file a moment takes as long as some batches of records."""
LONG_AGO_MS = 1_000_000


def run(*arguments: object) -> Result:
    return CliRunner().invoke(logstore, [str(argument) for argument in arguments])


def stage_stale(broker: Broker, template: Path) -> None:
    """Stage copies of a replica, under topic IDs that nobody knows, beside each of the stopped broker's log dirs."""
    for disk in broker.log_dirs:
        candidates = []
        for number in range(STALE):
            topic_id = TopicId.random(os.urandom)
            copy = disk / f"{NOBODYS}-{number}"
            shutil.copytree(template, copy)
            (copy / "partition.metadata").write_bytes(partition_metadata.encode(topic_id))
            at = TopicPartition(NOBODYS, number)
            candidates.append(Candidate(copy.name, at, topic_id, "UNKNOWN_TOPIC", "nobody knows it", 0))
        with LogDir.open(str(disk)) as log_dir:
            assert len(stage(log_dir, candidates, LONG_AGO_MS, placement=Placement.SIBLING).staged) == STALE


def staged_names(broker: Broker) -> list[str]:
    return [path.name for disk in broker.log_dirs for path in Path(f"{disk}.deleting").iterdir() if path.is_dir()]


def identities(broker: Broker) -> dict[str, tuple[int, ...]]:
    """What tells of any touch of the files of a topic that nobody writes to, and of those that no broker changes."""
    files = [
        path
        for disk in broker.log_dirs
        for path in (*disk.glob(f"{QUIET}-*/*"), disk / "meta.properties", disk / ".lock")
        if path.is_file()
    ]
    seen = {str(path): path.stat() for path in files}
    return {path: (at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns) for path, at in seen.items()}


def test_a_purge_beside_a_producing_broker_frees_what_is_staged_and_touches_nothing_of_the_brokers(
    each_cluster: Cluster,
) -> None:
    client, broker = each_cluster.client, each_cluster.brokers[2]
    for topic in (QUIET, BUSY):
        client.create_topic(topic, [[2]] * 4)
    quiet = client.produce(QUIET, 500)
    busy = client.produce(BUSY, 500)
    template = broker.replica(QUIET, 0)
    assert template is not None
    each_cluster.stop_broker(2)
    stage_stale(broker, template)
    each_cluster.start_broker(2)
    client.consume(QUIET)
    assert len(staged_names(broker)) == 2 * STALE
    before, pid, logged = identities(broker), broker.pid, broker.log.stat().st_size
    listed = {name for disk in broker.log_dirs for name in os.listdir(disk)}

    over, more = threading.Event(), list[Record]()

    def keep_producing() -> None:
        while not over.is_set():
            more.extend(client.produce(BUSY, 200))

    producing = threading.Thread(target=keep_producing)
    producing.start()
    try:
        planned = run("purge", *broker.log_dirs, "--dry-run")
        asked = run("purge", *broker.log_dirs, "--dry-run", "--metadata", metadata(each_cluster))
        done = run("purge", *broker.log_dirs, "--unlinks", "400")
        again = run("purge", *broker.log_dirs)
    finally:
        over.set()
        producing.join(PATIENCE_S)
    assert (planned.exit_code, done.exit_code, again.exit_code) == (0, 0, 0), done.output
    assert planned.stdout == done.stdout
    assert (asked.exit_code, asked.stdout) == (0, planned.stdout), asked.output
    assert f"is in use by process {pid} (java)" in planned.stderr
    assert done.stdout.count("purge ../") == 2 * STALE
    assert staged_names(broker) == []

    assert broker.pid == pid
    assert identities(broker) == before
    assert {name for disk in broker.log_dirs for name in os.listdir(disk)} - listed == set()
    said = broker.log.read_bytes()[logged:].decode(errors="replace")
    assert not [line for line in said.splitlines() if "ERROR" in line or "FATAL" in line], said
    assert more and client.consume(BUSY) == sorted([*busy, *more])
    assert client.consume(QUIET) == quiet
    each_cluster.restart_broker(2)
    assert client.consume(QUIET) == quiet
