"""What can be done to the disks of a bench, and what can be waited for while its broker runs.

A damage takes the bench of a stopped broker and changes its disks, most often disk 1, so that the metadata log on
disk 0 stays as it is. What is asked of a running broker gives True or False.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from layout import meta_properties, partition_metadata
from layout.ids import TopicId
from layout.scheme import MARKER_FILE
from reconciler.sources import load
from tests.broker.preflight_bench import HEX, Bench, end_offset, remove
from tests.patience import PATIENCE_S
from tools.real_broker.client import until

OTHER_ID = TopicId(bytes(range(100, 116)))
METADATA_LOG = "__cluster_metadata-0"
SEGMENT = "00000000000000000000.log"

Damage = Callable[[Bench], object]


def in_log_dir(file: str, data: bytes, disk: int = 1) -> Damage:
    """Write a file into a log dir."""

    def damage(bench: Bench) -> None:
        (bench.disks[disk] / file).write_bytes(data)

    return damage


def in_replica(file: str, data: bytes, disk: int = 1) -> Damage:
    """Write a file into the first partition dir of a disk."""

    def damage(bench: Bench) -> None:
        (bench.replicas(disk)[0] / file).write_bytes(data)

    return damage


def without_file(file: str, disk: int = 1) -> Damage:
    """Remove a file from the first partition dir of a disk."""

    def damage(bench: Bench) -> None:
        (bench.replicas(disk)[0] / file).unlink(missing_ok=True)

    return damage


def directory(name: str, disk: int = 1) -> Damage:
    """Make an empty directory in a log dir."""

    def damage(bench: Bench) -> None:
        (bench.disks[disk] / name).mkdir()

    return damage


def with_topic_id(topic_id: TopicId, disk: int = 1) -> Damage:
    """Give the first replica of a disk another topic ID."""
    return in_replica(partition_metadata.FILE_NAME, partition_metadata.encode(topic_id), disk)


def all_of(*damages: Damage) -> Damage:
    """Several at once."""

    def damage(bench: Bench) -> None:
        for each in damages:
            each(bench)

    return damage


def copied(ending: str, disk: int = 1, to: int | None = None) -> Damage:
    """Copy the first replica of a disk, as it is, under its name with an ending, to the same disk or another."""

    def damage(bench: Bench) -> None:
        replica = bench.replicas(disk)[0]
        shutil.copytree(replica, bench.disks[disk if to is None else to] / f"{replica.name}{ending}")

    return damage


def renamed(ending: str, disk: int = 1) -> Damage:
    """Rename the first replica of a disk."""

    def damage(bench: Bench) -> None:
        replica = bench.replicas(disk)[0]
        replica.rename(replica.with_name(f"{replica.name}{ending}"))

    return damage


def a_plain_file(disk: int) -> Damage:
    """Put a file where a log dir should be."""

    def damage(bench: Bench) -> None:
        remove(bench.disks[disk])
        bench.disks[disk].write_bytes(b"")

    return damage


def without_log_dir(bench: Bench) -> None:
    """A disk that is not mounted."""
    remove(bench.disks[2])


def linked_log_dir(bench: Bench) -> None:
    """One log dir under two names."""
    remove(bench.disks[2])
    bench.disks[2].symlink_to(bench.disks[1])


def in_identity(change: Callable[[bytes], bytes], disk: int = 1) -> Damage:
    """Change the bytes of ``meta.properties``."""

    def damage(bench: Bench) -> None:
        path = bench.disks[disk] / meta_properties.FILE_NAME
        path.write_bytes(change(path.read_bytes()))

    return damage


def same_directory_id(bench: Bench) -> None:
    """Two disks with one directory ID, as a copied disk has them."""
    shutil.copy(bench.disks[1] / meta_properties.FILE_NAME, bench.disks[2] / meta_properties.FILE_NAME)


def metadata_log_too(bench: Bench) -> None:
    """The metadata log on another disk as well."""
    shutil.copytree(bench.disks[0] / METADATA_LOG, bench.disks[1] / METADATA_LOG)


_HOLD = """
import fcntl, sys
with open(sys.argv[1], "ab") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


class Holder:
    """Another process that has the lock of a log dir."""

    def __init__(self, bench: Bench) -> None:
        """Start it and wait until it has the lock."""
        command = [sys.executable, "-c", _HOLD, str(bench.disks[1] / ".lock")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def close(self) -> None:
        """Let go."""
        self._process.communicate()


def linked_replica(bench: Bench) -> None:
    """A partition dir that lies elsewhere, with a link to it."""
    replica = bench.replicas(1)[0]
    replica.rename(bench.broker.folder / "elsewhere")
    replica.symlink_to(bench.broker.folder / "elsewhere")


def linked_file(bench: Bench) -> None:
    """A segment that lies elsewhere, with a link to it."""
    segment = bench.replicas(1)[0] / SEGMENT
    segment.rename(bench.broker.folder / "a-segment")
    segment.symlink_to(bench.broker.folder / "a-segment")


def without_segments(bench: Bench) -> None:
    """A replica of which only the small files are left."""
    for path in bench.replicas(1)[0].glob("0*"):
        path.unlink()


def much(bench: Bench) -> None:
    """What a broker deletes, makes anew, completes or goes on with, all at once."""
    copied(f".{HEX}-delete", 0)(bench)
    copied(f".{HEX}-future", 0, 1)(bench)
    without_segments(bench)
    (bench.replicas(2)[0] / "00000000000000000007.log.deleted").write_bytes(b"")
    shutil.rmtree(bench.replicas(2)[1])


def unwanted(bench: Bench) -> None:
    """A replica of a topic that nobody knows, with a topic ID of its own."""
    copy = bench.disks[1] / "gone-0"
    shutil.copytree(bench.replicas(1)[0], copy)
    (copy / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(OTHER_ID))


def without_replica(bench: Bench) -> None:
    """A replica that is gone, and was the only one."""
    shutil.rmtree(bench.replicas(1)[0])


def metadata_log(change: Callable[[Path], object]) -> Damage:
    """Change the metadata log of the broker."""

    def damage(bench: Bench) -> None:
        change(bench.disks[0] / METADATA_LOG)

    return damage


def late_start(folder: Path) -> None:
    """Let the metadata log begin at an offset that no snapshot reaches."""
    for path in folder.glob("0*"):
        path.rename(folder / path.name.replace("0" * 20, f"{100:020}", 1))


def future_in_its_place(bench: Bench) -> None:
    """A future replica in the log dir that the controller has assigned, and the current one in another."""
    replica = bench.replicas(1)[0]
    shutil.copytree(replica, bench.disks[2] / replica.name)
    replica.rename(replica.with_name(f"{replica.name}.{HEX}-future"))


def future_elsewhere(number: int) -> Damage:
    """A future replica without its current one, in another log dir than the controller has assigned."""

    def damage(bench: Bench) -> None:
        replica = bench.replicas(1)[number]
        shutil.move(replica, bench.disks[2] / f"{replica.name}.{HEX}-future")

    return damage


def fenced(bench: Bench) -> None:
    """A broker that has been away for so long that the controller counts none of its replicas as in the ISR."""
    address = f"kraft:{bench.cluster.metadata.data}"

    def is_fenced() -> bool:
        (state,) = load(address)
        return any(row["node_id"] == bench.broker.node_id and row["fenced"] for row in state.brokers.to_pylist())

    until(f"the controller has fenced broker {bench.broker.node_id}", is_fenced, PATIENCE_S)


def is_there(disk: int, name: str) -> Callable[[Bench], bool]:
    """Whether a directory is there, ``{}`` standing for the name of the topic."""
    return lambda bench: (bench.disks[disk] / name.format(bench.topic)).is_dir()


def all_replicas_again(bench: Bench) -> bool:
    """Whether every partition has a live partition dir on some disk."""
    found = {path.name for disk in range(3) for path in bench.replicas(disk)}
    return found == {f"{bench.topic}-{partition}" for partition in range(6)}


def is_served(bench: Bench, disk: int = 1) -> bool:
    """Whether clients can ask for the records of the first replica of a disk, and there are some."""
    topic, _, partition = bench.replicas(disk)[0].name.rpartition("-")
    return bool(end_offset(bench.broker.address, topic, int(partition)))


def is_not_served(bench: Bench) -> bool:
    """Whether the other disks are served, and the first replica of this one is not."""
    return is_served(bench, 2) and not is_served(bench)


def laid_out_in_tiers(bench: Bench) -> None:
    """A log dir that says it is ours, with a tier whose name looks like a partition's, and a replica in it."""
    for disk in bench.disks:
        path = disk / meta_properties.FILE_NAME
        path.write_bytes(path.read_bytes() + f"{meta_properties.SCHEME_KEY}=namespaced\n".encode())
    tier = bench.disks[1] / "team-7"
    tier.mkdir()
    (tier / MARKER_FILE).touch()
    shutil.copytree(bench.replicas(1)[0], tier / "inner-0")


def migrating(bench: Bench) -> None:
    """A broker that is to migrate to KRaft, and a disk of its that fails."""
    bench.extra |= {
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": "1000@127.0.0.1:1",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }


def log_dir_again(bench: Bench) -> bool:
    """Whether the log dir was formatted anew and the replicas were made anew."""
    return (bench.disks[2] / meta_properties.FILE_NAME).is_file() and all_replicas_again(bench)


def topic_id_again(bench: Bench) -> bool:
    """Whether every replica has the topic's own ID."""
    replicas = [path for disk in range(3) for path in bench.replicas(disk)]
    files = [path / partition_metadata.FILE_NAME for path in replicas]
    return all(file.is_file() and str(bench.topic_id) in file.read_text() for file in files)


def has_segment(bench: Bench) -> bool:
    """Whether every replica has a segment."""
    return all(any(path.glob("*.log")) for disk in range(3) for path in bench.replicas(disk))


def all_is_well(bench: Bench) -> bool:
    """Whether everything is live again, and nothing unfinished is left."""
    unfinished = [path for disk in bench.disks for path in disk.glob("*/*.deleted")]
    return all_replicas_again(bench) and has_segment(bench) and not unfinished


def metadata_log_again(bench: Bench) -> bool:
    """Whether the metadata log was fetched anew."""
    return any((bench.disks[0] / METADATA_LOG).glob("*.log"))
