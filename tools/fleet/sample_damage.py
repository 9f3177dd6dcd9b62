"""The damage of the sample fleet, by the stories that cause it in real fleets.

Each story is a function that changes the plan and writes down what an audit must find because of it. A story uses
partitions that no other story has touched, so that each finding has one cause. Stories that take whole log dirs or
brokers come first.
"""

from __future__ import annotations

from collections.abc import Callable

from layout import checkpoint, partition_metadata
from layout.directory_name import delete_name, future_name, live_name, staged_name, stray_name
from layout.ids import TopicId
from layout.ours import StagedRecord, encode_header, encode_staged
from layout.scheme import LEDGER_FILE, STAGING_DIR, sibling_staging_root
from reconciler.verdicts import Verdict
from tools.fleet import sample_cluster
from tools.fleet.sample_cluster import BROKERS, DELETED, LONG_TOPIC, RECREATED
from tools.fleet.sample_plan import PlantedFleet, SamplePlan, log_dir

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS


def unmounted_disk(plan: SamplePlan) -> None:
    """Broker 9 started before its second disk was mounted: the log dir is an empty folder, not an empty disk."""
    plan.unmounted.append(log_dir(9, 1))
    plan.find(Verdict.ABSENT, 9, ".", disk=1)
    plan.fleet.append(PlantedFleet("LOG_DIR_NOT_SEEN", str(plan.cluster.directory_ids[9][1])))
    for partition, node in plan.cluster.wanted():
        if node == 9 and partition.disk_on(9) == 1:
            del plan.replicas[plan.path(partition, 9)]
            plan.find(Verdict.ABSENT, 9, live_name(partition.topic, partition.index))


def disk_of_another_cluster(plan: SamplePlan) -> None:
    """A clone of broker 12's disk went to the test cluster and was later plugged into broker 12's second slot."""
    test_cluster = str(TopicId.random(plan.rng.randbytes))
    plan.foreign_disks[log_dir(12, 1)] = test_cluster
    plan.fleet.append(PlantedFleet("OTHER_CLUSTER", test_cluster))
    plan.fleet.append(PlantedFleet("NODE_IN_SEVERAL_CLUSTERS", "broker 12"))
    plan.fleet.append(PlantedFleet("DUPLICATE_DIRECTORY_ID", str(plan.cluster.directory_ids[12][0])))
    topic_id = TopicId.random(plan.rng.randbytes)
    for partition in range(3):
        name = live_name("load-test", partition)
        plan.place(f"{log_dir(12, 1)}/{name}", topic_id, partition)
        plan.find(Verdict.NOT_COMPARED, 12, name, disk=1)


def topic_recreated_while_broker_was_down(plan: SamplePlan) -> None:
    """Broker 7 was down while `clicks` was deleted and created again: it has the old data, and none of the new."""
    old_names = set()
    for partition, node in plan.cluster.wanted():
        if partition.topic == RECREATED and node == 7:
            del plan.replicas[plan.path(partition, 7)]
    for partition in plan.cluster.old_partitions:
        if partition.topic == RECREATED and 7 in partition.replicas:
            old_names.add(name := live_name(RECREATED, partition.index))
            plan.place(plan.path(partition, 7), partition.topic_id, partition.index)
            plan.find(Verdict.STALE_ID, 7, name, disk=partition.disk_on(7))
    for partition, node in plan.cluster.wanted():
        if partition.topic == RECREATED and node == 7 and live_name(RECREATED, partition.index) not in old_names:
            plan.find(Verdict.MISSING, 7, live_name(RECREATED, partition.index))
    plan.fleet.append(PlantedFleet("TOPIC_UNDER_SEVERAL_IDS", RECREATED))


def topic_deleted_while_brokers_were_down(plan: SamplePlan) -> None:
    """Brokers 3 and 10 were down while `legacy-exports` was deleted; nobody knows it any more."""
    for partition in plan.cluster.old_partitions:
        for node in partition.replicas:
            if partition.topic == DELETED and node in (3, 10):
                name = live_name(DELETED, partition.index)
                plan.place(plan.path(partition, node), partition.topic_id, partition.index)
                plan.find(Verdict.UNKNOWN_TOPIC, node, name, disk=partition.disk_on(node))


def cancelled_reassignment(plan: SamplePlan) -> None:
    """A reassignment was cancelled while its target was down: complete copies lie where nobody wants them."""
    for topic in ("shipments", "shipments", "page-views"):
        partition, _, _ = plan.pick(topic)
        node = next(n for n in (4, 8, 2) if n not in partition.replicas)
        name = live_name(topic, partition.index)
        plan.place(f"{log_dir(node, 0)}/{name}", partition.topic_id, partition.index)
        plan.find(Verdict.NOT_ASSIGNED, node, name, disk=0)


def reassignment_in_progress(plan: SamplePlan) -> None:
    """Two partitions of `orders` are on their way; one has arrived on its new broker, the other has not begun."""
    for arrived in (True, False):
        partition, outgoing, _ = plan.pick("orders")
        name = live_name("orders", partition.index)
        incoming = next(n for n in range(BROKERS, 0, -1) if n not in partition.replicas)
        moved = sample_cluster.begin_reassignment(plan.cluster, partition, incoming)
        plan.find(Verdict.IN_FLIGHT, outgoing, name, disk=moved.disk_on(outgoing))
        if arrived:
            plan.place(plan.path(moved, incoming), partition.topic_id, partition.index)
        plan.find(Verdict.IN_FLIGHT, incoming, name, disk=0 if arrived else None)


def damaged_partition_metadata(plan: SamplePlan) -> None:
    """Power loss and hand editing: empty, NULs, cut short, the zero ID, another partition's; one was alone in sync."""
    other = partition_metadata.encode_json(plan.cluster.topic_ids["search_index"], "search_index", 99)
    contents = {
        "emails": b"",
        "users": bytes(43),
        "inventory": b"version: 0\ntopic_id: 8ZkQ",
        "sessions": f"version: 0\ntopic_id: {TopicId.ZERO}".encode(),
        "search_index": other,
    }
    for topic, content in contents.items():
        partition, node, path = plan.pick(topic)
        plan.damage(path, content)
        plan.find(Verdict.DAMAGED, node, live_name(topic, partition.index), disk=partition.disk_on(node))
        if topic == "emails":
            sample_cluster.shrink_isr(plan.cluster, partition, node)
            plan.fleet.append(PlantedFleet("ONLY_IN_SYNC_COPY", topic))


def crash_after_creation(plan: SamplePlan) -> None:
    """A broker crashed right after it had made the directories, before `partition.metadata` was there (FACTS §2.1)."""
    for topic in ("audit-log", "__consumer_offsets"):
        partition, node, path = plan.pick(topic)
        plan.damage(path, None)
        plan.find(Verdict.NO_ID, node, live_name(topic, partition.index), disk=partition.disk_on(node))


def strangers(plan: SamplePlan) -> None:
    """A mount point's `lost+found`, a backup made on the spot, a note, and a `deleting` that stops a real broker."""
    for node, disk, path in ((2, 1, "lost+found"), (4, 0, "backup"), (5, 0, STAGING_DIR)):
        plan.folders.append(f"{log_dir(node, disk)}/{path}")
        plan.find(Verdict.FOREIGN, node, path, disk=disk)
    plan.files[f"{log_dir(10, 0)}/restore-notes.txt"] = b"disk swapped on Tuesday, see ticket\n"
    plan.find(Verdict.FOREIGN, 10, "restore-notes.txt", disk=0)


def staged_replicas(plan: SamplePlan) -> None:
    """Broker 6's leftovers of two reassignments were staged: one is due for a purge, two are not yet."""
    home = log_dir(6, 0)
    staging = sibling_staging_root(home)
    ledger = encode_header()
    for topic, age_ms in (("payments", 2 * WEEK_MS), ("payments", 2 * DAY_MS), ("metrics.cpu", DAY_MS)):
        partition = plan.unwanted_on(topic, 6)
        name = staged_name(partition.topic_id, partition.index)
        staged_ms = plan.now_ms - age_ms
        record = StagedRecord(
            topic=topic,
            partition=partition.index,
            topic_id=partition.topic_id,
            path=live_name(topic, partition.index),
            verdict=Verdict.NOT_ASSIGNED.value,
            evidence="this broker is not among the partition's replicas",
            staged_ms=staged_ms,
            due_ms=staged_ms + WEEK_MS,
            checkpoints={checkpoint.RECOVERY_POINT_CHECKPOINT: 150},
        )
        plan.place(f"{staging}/{name}", partition.topic_id, partition.index)
        ledger += encode_staged(name, record)
        verdict = Verdict.STAGED_DUE if age_ms > WEEK_MS else Verdict.STAGED
        plan.find(verdict, 6, f"../{staging.rpartition('/')[2]}/{name}", disk=0)
    plan.files[f"{staging}/{LEDGER_FILE}"] = ledger


def deletion_interrupted(plan: SamplePlan) -> None:
    """Brokers 8 and 11 stopped within the minute that Kafka waits before it removes a deleted topic's directories."""
    topic_id = TopicId.random(plan.rng.randbytes)
    for node in (8, 11):
        for partition in range(2):
            name = delete_name("tmp-export", partition, plan.unique())
            plan.place(f"{log_dir(node, 1)}/{name}", topic_id, partition)
            plan.find(Verdict.MARKED_DELETE, node, name, disk=1)


def strays(plan: SamplePlan) -> None:
    """Broker 2 made strays of an interrupted rebalance's copies; broker 10 of a replica that it should have kept."""
    for topic in ("page-views", "page-views", "inventory", LONG_TOPIC):
        partition = plan.unwanted_on(topic, 2)
        name = stray_name(topic, partition.index, plan.unique())
        plan.place(f"{log_dir(2, 1)}/{name}", partition.topic_id, partition.index)
        plan.find(Verdict.STRAY, 2, name, disk=1)
    partition, node, path = plan.pick("users", 10)
    del plan.replicas[path]
    name = stray_name("users", partition.index, plan.unique())
    plan.place(f"{log_dir(node, partition.disk_on(node))}/{name}", partition.topic_id, partition.index)
    plan.find(Verdict.STRAY, node, name, disk=partition.disk_on(node))
    plan.find(Verdict.MISSING, node, live_name("users", partition.index))


def moves_between_disks(plan: SamplePlan) -> None:
    """Broker 5 is moving a replica from disk to disk; on broker 6 such a move was forgotten when the replica left."""
    partition, node, _ = plan.pick("sessions", 5)
    name = future_name("sessions", partition.index, plan.unique())
    other = 1 - partition.disk_on(node)
    plan.place(f"{log_dir(node, other)}/{name}", partition.topic_id, partition.index)
    plan.find(Verdict.FUTURE, node, name, disk=other)
    partition = plan.unwanted_on("shipments", 6)
    name = future_name("shipments", partition.index, plan.unique())
    plan.place(f"{log_dir(6, 1)}/{name}", partition.topic_id, partition.index)
    plan.find(Verdict.FUTURE_ABANDONED, 6, name, disk=1)


def crash_between_two_renames(plan: SamplePlan) -> None:
    """Broker 8 crashed at the end of a move between disks: the replica is live in both, and it will not start."""
    partition, node, _ = plan.pick("page-views", 8)
    name = live_name("page-views", partition.index)
    other = 1 - partition.disk_on(node)
    plan.place(f"{log_dir(node, other)}/{name}", partition.topic_id, partition.index)
    for disk in (0, 1):
        plan.find(Verdict.DUPLICATE, node, name, disk=disk)


def directory_renamed_by_hand(plan: SamplePlan) -> None:
    """Somebody renamed a replica on broker 11; its topic ID still says whose data it is."""
    partition, node, path = plan.pick("payments", 11)
    disk = partition.disk_on(node)
    name = live_name("payments_old", partition.index)
    del plan.replicas[path]
    plan.place(f"{log_dir(node, disk)}/{name}", partition.topic_id, partition.index)
    plan.find(Verdict.RENAMED, node, name, disk=disk)
    plan.find(Verdict.MISSING, node, live_name("payments", partition.index))


def directories_removed_by_hand(plan: SamplePlan) -> None:
    """Two partition dirs on broker 4 were removed while it was down; its checkpoints still speak of one of them."""
    for number, topic in enumerate(("orders", "__transaction_state")):
        partition, node, path = plan.pick(topic, 4)
        name, disk = live_name(topic, partition.index), partition.disk_on(4)
        del plan.replicas[path]
        plan.find(Verdict.MISSING, node, name)
        if number == 0:
            for file in (checkpoint.RECOVERY_POINT_CHECKPOINT, checkpoint.HIGH_WATERMARK_CHECKPOINT):
                plan.forgotten.append((log_dir(node, disk), file, topic, partition.index))
                plan.find(Verdict.CHECKPOINT_ENTRY, node, name, disk=disk)


def crash_while_a_checkpoint_was_written(plan: SamplePlan) -> None:
    """Broker 1 crashed between writing a checkpoint's new content and renaming it into place."""
    name = f"{checkpoint.RECOVERY_POINT_CHECKPOINT}.tmp"
    plan.files[f"{log_dir(1, 1)}/{name}"] = b"0\n31\norders 4 1"
    plan.find(Verdict.LEFTOVER, 1, name, disk=1)


STORIES: tuple[Callable[[SamplePlan], None], ...] = (
    unmounted_disk,
    disk_of_another_cluster,
    topic_recreated_while_broker_was_down,
    topic_deleted_while_brokers_were_down,
    cancelled_reassignment,
    reassignment_in_progress,
    damaged_partition_metadata,
    crash_after_creation,
    strangers,
    staged_replicas,
    deletion_interrupted,
    strays,
    moves_between_disks,
    crash_between_two_renames,
    directory_renamed_by_hand,
    directories_removed_by_hand,
    crash_while_a_checkpoint_was_written,
)
"""In the order in which they happen."""
