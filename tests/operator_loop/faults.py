"""Faults that are planted on the disks of one broker, each by the story that causes it on real ones."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from itertools import combinations

from layout import meta_properties, partition_metadata
from layout.directory_name import delete_name, future_name, stray_name
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.topic import TopicPartition
from logstore.log_dir import LogDir
from logstore.staging import Candidate, stage
from tests.operator_loop.bench import CLICKS, CLUSTER, NODE, OLD, ORDERS, UNIQUE, Bench

DAY_MS = 86_400_000
Plant = Callable[[Bench], None]


def _set_id(bench: Bench, name: str, data: bytes | None) -> None:
    path = bench.home_of(name) / name / partition_metadata.FILE_NAME
    path.unlink() if data is None else path.write_bytes(data)


def stale_id(bench: Bench) -> None:
    """The topic was re-created while the broker was down."""
    _set_id(bench, "orders-0", partition_metadata.encode(OLD))


def not_assigned(bench: Bench) -> None:
    """A reassignment took the replica away while the broker was down."""
    del bench.wanted["clicks-1"]


def unknown_topic(bench: Bench) -> None:
    """A topic was deleted while the broker was down."""
    bench.replica(1, "gone-0", OLD)


def stray(bench: Bench) -> None:
    """An earlier start set a replica of a deleted topic aside."""
    bench.replica(0, stray_name("gone", 1, UNIQUE), OLD)


def stray_without_id(bench: Bench) -> None:
    """Somebody deleted partition.metadata; the broker set the replica aside, and fetched it anew."""
    bench.replica(0, stray_name("orders", 1, UNIQUE), None)


def stray_without_id_behind(bench: Bench) -> None:
    """The same, and the broker is stopped for so long that the ISR has lost the replica."""
    bench.replica(0, stray_name("orders", 3, UNIQUE), None)
    bench.out_of_sync.add("orders-3")


def stray_without_id_of_deleted_topic(bench: Bench) -> None:
    """Somebody deleted partition.metadata; the broker set the replica aside, and then its topic was deleted."""
    bench.replica(0, stray_name("gone", 9, UNIQUE), None)


def stray_that_is_wanted(bench: Bench) -> None:
    """The broker set a replica aside that the cluster wants here."""
    home = bench.home_of("orders-2")
    (home / "orders-2").rename(home / stray_name("orders", 2, UNIQUE))
    bench.write_checkpoints()


def duplicate(bench: Bench) -> None:
    """A copy between the disks was left half way, under the replica's own name."""
    home = bench.home_of("orders-3")
    other = next(disk for disk in bench.disks if disk != home)
    shutil.copytree(home / "orders-3", other / "orders-3")
    bench.write_checkpoints()
    for file in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        path = other / file
        path.write_text(path.read_text().replace("orders 3 5", "orders 3 2"))


def duplicate_alike(bench: Bench) -> None:
    """A whole copy of a replica was left on the other disk, and nothing tells the two apart."""
    home = bench.home_of("clicks-4")
    other = next(disk for disk in bench.disks if disk != home)
    shutil.copytree(home / "clicks-4", other / "clicks-4")
    bench.write_checkpoints()


def damaged(bench: Bench) -> None:
    """A power cut left partition.metadata empty."""
    _set_id(bench, "orders-4", b"")


def no_id(bench: Bench) -> None:
    """The wrong cure: somebody deleted partition.metadata."""
    _set_id(bench, "orders-5", None)


def _of_older_topic(bench: Bench, topic: str, on_disk: int, in_metadata: int) -> None:
    """Plant a replica of a topic that was made anew while the broker was down, and whose file somebody deleted."""
    name = f"{topic}-0"
    bench.topics[topic] = TopicId(topic.ljust(16).encode())
    bench.wanted[name] = bench.topics[topic]
    path = bench.replica(0, name, None)
    bench.placed.pop(name, None)  # of the topic made anew, which the broker has yet to learn of
    (path / "leader-epoch-checkpoint").write_text(f"0\n1\n{on_disk} 0\n")
    (path / "00000000000000000000.log").write_bytes(topic.encode().ljust(1000, b"\0"))
    bench.never_live[topic] = bench.topics[topic]
    bench.out_of_sync.add(name)
    bench.epochs[name] = in_metadata
    bench.write_checkpoints()


def older_topic_above(bench: Bench) -> None:
    """A stale replica whose partition.metadata was deleted; it saw more leaders than the topic made anew."""
    _of_older_topic(bench, "older_a", 7, 1)


def older_topic_equal(bench: Bench) -> None:
    """A stale replica whose partition.metadata was deleted, as many leaders ago as the topic made anew had."""
    _of_older_topic(bench, "older_e", 0, 0)


def older_topic_below(bench: Bench) -> None:
    """A stale replica whose partition.metadata was deleted; the topic made anew saw more leaders."""
    _of_older_topic(bench, "older_b", 1, 5)


def older_topic_damaged(bench: Bench) -> None:
    """A stale replica whose partition.metadata somebody emptied."""
    _of_older_topic(bench, "older_d", 0, 0)
    _set_id(bench, "older_d-0", b"")


def damaged_with_later_epoch(bench: Bench) -> None:
    """A power cut left partition.metadata empty, and the leader epoch on the disk is above the metadata's."""
    _set_id(bench, "clicks-0", b"")
    (bench.home_of("clicks-0") / "clicks-0" / "leader-epoch-checkpoint").write_text("0\n1\n2 0\n")


def damaged_only_copy(bench: Bench) -> None:
    """The same, of a replica that nobody else has in sync."""
    _set_id(bench, "orders-1", b"")
    (bench.home_of("orders-1") / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\n2 0\n")
    bench.sole.add("orders-1")


def damaged_unwanted(bench: Bench) -> None:
    """A topic was deleted while the broker was down, and a power cut left partition.metadata empty."""
    path = bench.replica(1, "gone-7", OLD)
    (path / partition_metadata.FILE_NAME).write_bytes(b"")


def damaged_future(bench: Bench) -> None:
    """A power cut in a move between disks."""
    path = bench.replica(0, future_name("orders", 3, UNIQUE), ORDERS)
    (path / partition_metadata.FILE_NAME).write_bytes(b"")


def damaged_stray(bench: Bench) -> None:
    """A power cut damaged what an earlier start had set aside."""
    path = bench.replica(1, stray_name("gone", 8, UNIQUE), OLD)
    (path / partition_metadata.FILE_NAME).write_bytes(b"\0" * 43)


def checkpoint_entry(bench: Bench) -> None:
    """Somebody removed a directory by hand."""
    path = bench.disks[0] / "recovery-point-offset-checkpoint"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["0", str(int(lines[1]) + 1), *lines[2:], "removed 0 7"]) + "\n")


def damaged_checkpoint(bench: Bench) -> None:
    """A power cut left a checkpoint with half a line."""
    path = bench.disks[0] / "recovery-point-offset-checkpoint"
    path.write_text(path.read_text() + "orde")


def leftover(bench: Bench) -> None:
    """A write that did not finish."""
    path = bench.disks[0] / "replication-offset-checkpoint"
    shutil.copy(path, f"{path}.tmp")


def foreign_directory(bench: Bench) -> None:
    """Somebody made a backup in the log dir."""
    (bench.disks[1] / "backup of orders").mkdir()


def foreign_file(bench: Bench) -> None:
    """Somebody left notes in the log dir."""
    (bench.disks[1] / "notes.txt").write_text("see to this")


def renamed(bench: Bench) -> None:
    """The wrong cure: somebody renamed a directory."""
    home = bench.home_of("clicks-2")
    (home / "clicks-2").rename(home / "klicks-2")


def missing(bench: Bench) -> None:
    """The topic got a partition while the broker was down."""
    shutil.rmtree(bench.home_of("clicks-3") / "clicks-3")
    bench.placed.pop("clicks-3", None)  # a real broker has placed none here


def marked_delete(bench: Bench) -> None:
    """The broker stopped before it had deleted a replica."""
    bench.replica(0, delete_name("gone", 2, UNIQUE), OLD)


def future_abandoned(bench: Bench) -> None:
    """A move between disks of a topic that was deleted meanwhile."""
    bench.replica(0, future_name("gone", 3, UNIQUE), OLD)


def staged(bench: Bench) -> None:
    """Somebody staged a replica of a deleted topic, whose time has not come."""
    _stage(bench, "gone-5", time.time_ns() // 1_000_000)


def staged_due(bench: Bench) -> None:
    """Somebody staged a replica of a deleted topic long ago, and no purge ran."""
    _stage(bench, "gone-6", time.time_ns() // 1_000_000 - 8 * DAY_MS)


def _stage(bench: Bench, name: str, now_ms: int) -> None:
    bench.replica(1, name, OLD)
    replica = TopicPartition("gone", int(name.rpartition("-")[2]))
    with LogDir.open(str(bench.disks[1])) as log_dir:
        stage(log_dir, [Candidate(name, replica, OLD, "UNKNOWN_TOPIC", "deleted", 7 * DAY_MS)], now_ms)


def future(bench: Bench) -> None:
    """A move between the disks goes on."""
    home = bench.disks.index(bench.home_of("clicks-5"))
    bench.replica(1 - home, future_name("clicks", 5, UNIQUE), CLICKS)


def in_flight(bench: Bench) -> None:
    """The broker stopped while a reassignment was bringing it a replica."""
    bench.topics["arriving"] = TopicId(b"arriving".ljust(16))
    bench.wanted["arriving-0"] = bench.topics["arriving"]
    bench.replica(1, "arriving-0", bench.topics["arriving"])
    bench.moving.add("arriving-0")
    bench.write_checkpoints()


def disk_copied(bench: Bench) -> None:
    """The second disk was made as a copy of the first, directory.id and all."""
    shutil.copy(bench.disks[0] / meta_properties.FILE_NAME, bench.disks[1])


def disk_of_another_cluster(bench: Bench) -> None:
    """The second disk is that of the same node in another cluster."""
    _format(bench, "another-cluster")


def metadata_log_left(bench: Bench) -> None:
    """Somebody moved the metadata log to the first disk, and left the old one behind."""
    for number in range(2):
        bench.replica(number, "__cluster_metadata-0", TopicId.from_halves(0, 1))


def disk_not_mounted(bench: Bench) -> None:
    """The second disk is not mounted."""
    lies = bench.folder / "unmounted"
    bench.disks[1].rename(lies)
    bench.disks[1].mkdir()
    bench.mounts.append((lies, bench.disks[1]))


def disk_made_anew(bench: Bench) -> None:
    """The second disk broke, and a new one was formatted in its place."""
    shutil.rmtree(bench.disks[1])
    bench.disks[1].mkdir()
    _format(bench, CLUSTER)


def disk_unformatted(bench: Bench) -> None:
    """The second disk broke, and a new one is mounted in its place, with nothing on it."""
    shutil.rmtree(bench.disks[1])
    bench.disks[1].mkdir()


def another_disk_mounted(bench: Bench) -> None:
    """A disk that the broker never had is mounted in the place of the second one."""
    lies = bench.folder / "unmounted"
    bench.disks[1].rename(lies)
    bench.disks[1].mkdir()
    _format(bench, CLUSTER)
    bench.mounts.append((lies, bench.disks[1]))


def _format(bench: Bench, cluster: str) -> None:
    """Give the second disk a name that nobody registered."""
    identity = MetaProperties(1, cluster, NODE, DirectoryId.from_halves(99, 2))
    (bench.disks[1] / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))


def disk_not_given(bench: Bench) -> None:
    """The operator names one disk of two."""
    bench.given = [0]


def own_copy_alone(bench: Bench) -> None:
    """The operator lets the metadata be found, and it is the stopped broker's own."""
    bench.own_copy = True


def partial_metadata(bench: Bench) -> None:
    """The operator has a description of one topic, which says nothing of the other."""
    bench.partial = True


FAULTS: Mapping[str, Plant] = {
    plant.__name__: plant
    for plant in (
        *(stale_id, not_assigned, unknown_topic, stray, stray_without_id, stray_without_id_behind),
        *(stray_without_id_of_deleted_topic, stray_that_is_wanted, duplicate, damaged, duplicate_alike),
        *(no_id, checkpoint_entry, damaged_checkpoint, leftover, foreign_directory, foreign_file, renamed, missing),
        *(older_topic_above, older_topic_equal, older_topic_below, older_topic_damaged),
        *(damaged_with_later_epoch, damaged_only_copy, damaged_unwanted, damaged_future, damaged_stray),
        *(
            staged,
            staged_due,
            future,
            marked_delete,
            future_abandoned,
            in_flight,
            metadata_log_left,
            disk_made_anew,
            another_disk_mounted,
            disk_not_mounted,
            disk_not_given,
            own_copy_alone,
            partial_metadata,
        ),
    )
}
"""All faults by name."""

WHOSE_DISK: Mapping[str, tuple[Plant, frozenset[str]]] = {
    "disk_copied": (disk_copied, frozenset({"DUPLICATE_DIRECTORY_ID"})),
    "disk_of_another_cluster": (disk_of_another_cluster, frozenset({"NODE_IN_SEVERAL_CLUSTERS"})),
}
"""Faults where only a person knows whose disk it is, with the findings of the fleet that say so."""

OF_ONE_DISK = ("disk_made_anew", "another_disk_mounted", "disk_not_mounted")
"""What the second disk can be alone."""

PLAYED_ALONE: Mapping[str, Plant] = {"disk_unformatted": disk_unformatted}
"""Faults whose own steps leave too few of the eight for another one beside them."""

CONTRADICTIONS = frozenset({*combinations(OF_ONE_DISK, 2), ("damaged_only_copy", "disk_made_anew")})
"""Faults that cannot be together, or that leave nothing to heal: the only copy was on the disk that broke."""

NOT_PLANTABLE: Mapping[str, str] = {
    "OK": "it says that there is no fault",
    "INVENTORY_AGE": "the disks are read at the moment that they are judged; only an inventory can be of another time",
    "INVENTORY_UNREADABLE": "the disks themselves are read, and no inventory",
    "BROKER_NOT_REPORTED": "one broker's disks are given, and only inventories are expected of every broker",
    "TOPIC_ID_CHANGED": "the disks do not keep what an earlier audit found; its report has to be given beside them",
}
"""Verdicts and findings of the fleet that no fault on one broker's disks has, with the reason."""

assert ORDERS != CLICKS
