"""A running broker and the commands that change disks exclude each other; layouts of our own are not for its disks."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from layout import partition_metadata
from layout.ids import TopicId
from logstore.log_dir import LockHolder, find_lock_holder
from reconciler.cli import logstore
from reconciler.protocol.json_messages import encode_json
from tests.patience import PATIENCE_S
from tests.reconciler.protocol.control_requests import stop_replica
from tools.machine import ROOT
from tools.real_broker.client import Record, until
from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import StartError
from tools.real_broker.releases import Mode
from tools.real_broker.servers import Broker

pytestmark = pytest.mark.broker

TOPIC, NOBODYS = "locked", "nobodys"
PARTITIONS = 4


@pytest.fixture(scope="module")
def broker(each_cluster: Cluster) -> Broker:
    """The broker that is stopped and started; the other one stays up."""
    return each_cluster.brokers[2]


@pytest.fixture(scope="module")
def records(each_cluster: Cluster) -> list[Record]:
    """What lies on its disks: a topic of which it has the only replicas."""
    each_cluster.client.create_topic(TOPIC, [[2]] * PARTITIONS)
    return each_cluster.client.produce(TOPIC, 2000, size=1000)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(logstore, [str(argument) for argument in arguments])


def metadata(cluster: Cluster) -> str:
    return f"zk:{cluster.zookeeper}" if cluster.mode is Mode.ZOOKEEPER else f"kraft:{cluster.metadata.data}"


def layout_commands(broker: Broker) -> list[list[object]]:
    """Every command that lays out log dirs anew, and what it would be asked."""
    return [
        ["convert", *broker.log_dirs, "--to", "by-topic-id"],
        ["convert", *broker.log_dirs, "--to", "namespaced", "--dry-run"],
        ["convert", *broker.log_dirs, "--to", "flat"],
        ["namespace", "create", "org:apache", *broker.log_dirs],
        ["namespace", "delete", "org", *broker.log_dirs, "--recursive"],
        ["namespace", "move", TOPIC, *broker.log_dirs, "--to", "org:apache"],
        ["namespace", "rename", TOPIC, f"{TOPIC}-anew", *broker.log_dirs],
    ]


def names(broker: Broker) -> list[str]:
    """Everything in its log dirs, and the staging roots beside them, by name."""
    above = broker.log_dirs[0].parent
    return sorted(str(path.relative_to(above)) for path in above.glob("disk*/**/*"))


def sums(broker: Broker) -> dict[str, str]:
    """Every file of its log dirs, with what is in it.

    But for ``.lock``, which releases since 3.8 remove, and which comes back with 0 bytes when anybody takes the lock.
    """
    above = broker.log_dirs[0].parent
    files = [path for path in above.glob("disk*/**/*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(above)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@contextmanager
def plans(cluster: Cluster, broker: Broker, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Two plans that are made while the broker runs: to stage a replica of nobody's topic, and to write a topic ID.

    It is staged in the log dir itself, where a purge needs the broker's locks: beside it, a broker may start meanwhile.
    The replica and the file are put back as they were at the end, lest a broker of KRaft sets replicas aside.
    """
    replica = broker.replica(TOPIC, 0)
    assert replica is not None
    copy, file = replica.with_name(f"{NOBODYS}-0"), replica / "partition.metadata"
    shutil.copytree(replica, copy)
    (copy / file.name).write_bytes(partition_metadata.encode(TopicId.random(os.urandom)))
    for path in copy.iterdir():  # a replica that the metadata has long had the time to know
        os.utime(path, (1_600_000_000, 1_600_000_000))
    # Release 2.8 has not written it yet.
    lost = file.read_bytes() if file.exists() else None
    file.unlink(missing_ok=True)
    staging, repair = folder / "plan.json", folder / "repair.json"
    try:
        asked = [*broker.log_dirs, "--metadata", metadata(cluster)]
        staged = ["plan", "--topic", NOBODYS, "--allow", "sole-copy", "--staging", "in-place", "-o", staging]
        for command in (staged, ["repair", "-o", repair]):
            made = run(*command, *asked)
            assert made.exit_code == 1, made.output
        yield staging, repair
    finally:
        shutil.rmtree(copy, ignore_errors=True)
        if lost is not None and not file.exists():
            file.write_bytes(lost)


@contextmanager
def slow_purge(broker: Broker, location: str) -> Iterator[subprocess.Popen[str]]:
    """A purge, by the command itself, that takes longer than a broker's start; it holds all locks."""
    command = [ROOT / ".venv/bin/logstore", "purge", *broker.log_dirs, "--location", location, "--before-due"]
    with subprocess.Popen(
        [*map(str, command), "--unlinks", "1", "--rate", "1k"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def is_locked(broker: Broker) -> bool:
    return all(find_lock_holder(str(disk)) for disk in broker.log_dirs)


def assert_refused(broker: Broker, command: list[object]) -> None:
    """The command says which process is in its way."""
    refused = run(*command)
    assert refused.exit_code == 3, (command, refused.output)
    assert f"is in use by {LockHolder(broker.pid, 'java')}: stop the broker" in refused.stderr, command


def replicas_and_notes(broker: Broker) -> dict[str, str]:
    """What a broker may write to by its lock alone, without what the purge deletes and what it notes of that.

    KRaft's own log is left out: a broker fetches into it before it takes the locks of its log dirs.
    """
    not_by_lock = ("-stray/", "/.logstore_", "/__cluster_metadata-0/")
    return {file: text for file, text in sums(broker).items() if not any(part in file for part in not_by_lock)}


def test_no_command_changes_the_disks_of_a_broker_that_runs(
    each_cluster: Cluster, broker: Broker, records: list[Record], tmp_path: Path
) -> None:
    with plans(each_cluster, broker, tmp_path) as (staging, repair):
        request = tmp_path / "request.json"
        request.write_bytes(encode_json(stop_replica(TOPIC, 0), 4))
        before = names(broker)
        commands: list[list[object]] = [
            ["apply", staging],
            ["repair", "--apply", repair],
            ["reconcile", request, *broker.log_dirs, "--allow", "cluster"],
            ["restore", *broker.log_dirs, "--topic", TOPIC],
            *layout_commands(broker),
        ]
        for command in commands:
            assert_refused(broker, command)
            assert names(broker) == before, command
    assert each_cluster.client.consume(TOPIC) == records


def test_no_layout_of_ours_is_given_to_a_real_brokers_disks(
    each_cluster: Cluster, broker: Broker, records: list[Record]
) -> None:
    each_cluster.stop_broker(2)
    before = sums(broker)
    for command in [*layout_commands(broker), ["namespace", "list", *broker.log_dirs]]:
        refused = run(*command)
        assert refused.exit_code == 3, (command, refused.output)
        assert "real broker" in refused.stderr, (command, refused.stderr)
        assert sums(broker) == before, command
    each_cluster.start_broker(2)
    assert each_cluster.client.consume(TOPIC) == records


def test_a_broker_does_not_start_while_a_command_is_at_work_and_does_afterwards(
    each_cluster: Cluster, broker: Broker, records: list[Record], tmp_path: Path
) -> None:
    with plans(each_cluster, broker, tmp_path) as (staging, repair):
        assert is_locked(broker)
        each_cluster.stop_broker(2)
        assert not is_locked(broker)
        # The same that was refused while it ran.
        for command in (["repair", "--apply", repair], ["apply", staging]):
            done = run(*command)
            assert done.exit_code == 0, (command, done.output)
        (staged,) = run("staged", *broker.log_dirs, "--format", "ndjson").stdout.splitlines()
        before = replicas_and_notes(broker)
        logged = broker.log.stat().st_size
        with slow_purge(broker, json.loads(staged)["location"]) as purge:
            until("the purge holds the locks", lambda: is_locked(broker))
            with pytest.raises(StartError):
                each_cluster.start_broker(2)
            assert f"Failed to acquire lock on file .lock in {broker.log_dirs[0]}" in broker.log.read_text()[logged:]
            assert purge.poll() is None
            assert replicas_and_notes(broker) == before
            purge.send_signal(signal.SIGINT)
            said, _ = purge.communicate(timeout=PATIENCE_S)
        assert (purge.returncode, "interrupted before all that is due was purged" in said) == (130, True), said
        ended = run("purge", *broker.log_dirs, "--location", json.loads(staged)["location"], "--before-due")
        assert ended.exit_code == 0, ended.output  # a broker before 3.6.1 does not start beside what is left of it
        each_cluster.start_broker(2)
        assert is_locked(broker)
        # One for each disk that was repaired: 2.8 writes topic IDs late, so they may be missing on both.
        backups = [found for disk in broker.log_dirs for found in sorted(disk.glob(".logstore_repair.*.json"))]
        assert_refused(broker, ["repair", "--undo", backups[0]])
        assert all(backup.exists() for backup in backups)
        assert each_cluster.client.consume(TOPIC) == records
