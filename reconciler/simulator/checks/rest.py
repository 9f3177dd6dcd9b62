"""Brings a cluster to rest after a history, and asks whether everything ended as it is meant to.

What went wrong is put right: disks come back, machines are switched on, nobody commands anything any more. Then the
cluster has a while. What must be so then::

    brokers    each has exactly the replicas that the controller wants, under the right topic IDs, on its disks and in
               memory, and nothing is left over
    staging    nothing is staged beyond its due time, by its machine's clock, and its next purge
    audit      the audit says the same of every disk as the znodes do, verdict by verdict
    replicas   those in sync hold the same records on their disks, all of their own topic ID, and serve these
    records    where acknowledged means synced, and no disk was lost, every acknowledged record is there
    deletion   when all delays are over too, no disk holds anything of a topic that was deleted

Source: DESIGN §4, §5; KIP516-5, KIP516-6, KIP516-10; KIP694-4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from layout.topic import TopicPartition
from logstore.scan import scan_all
from reconciler.simulator.checks.expected import audit_differences
from reconciler.simulator.checks.promises import BrokenPromiseError, Invariants
from reconciler.simulator.kernel import Record
from reconciler.simulator.machine import SEGMENT_FILE, decode_records

if TYPE_CHECKING:
    from reconciler.simulator.cluster import Cluster, Member

WITHIN_MS = 900_000
"""Simulated time in which a cluster must come to rest once nothing goes wrong any more."""

_LOOK_MS = 1_000
_RESTART_MS = 30_000
"""After so long brokers with replicas that are offline are restarted, as an operator does: a replica that could not be
made, or whose disk failed, stays offline until its broker starts again (FACTS §4.2)."""

_WAIT_MS = 3_600_000
"""By so much all clocks go on, where what is to go waits for its time."""

_LEFTOVER_KINDS = ("leftover", "foreign", "delete", "stray", "future")
"""Kinds of rows that no log dir has at rest; the last three are drafts of replicas, and what Kafka makes."""


def converge(cluster: Cluster, promises: Invariants) -> None:
    """Put everything right, and wait until nothing is left to be done.

    Raises:
        BrokenPromiseError: a promise was broken on the way, or the cluster does not come to rest.
    """
    world = cluster.world
    world.calm()
    for member in cluster.members.values():
        member.disks.disarm()
    world.faults.put_right()
    for member in cluster.members.values():
        if member.running and member.broker.store.offline:
            member.shut_down()  # a disk that is back is used by those who open it again
        member.start()
    restart_ms = world.now_ms + _RESTART_MS
    quiet_ms, end_ms = world.now_ms + 3 * cluster.settings.broker.purge_ms, world.now_ms + WITHIN_MS
    while True:
        unrest = list(_unfinished(cluster))
        if not unrest and world.now_ms >= quiet_ms:
            return
        if unrest and world.now_ms >= end_ms:
            raise BrokenPromiseError(f"after {WITHIN_MS // 1000} quiet seconds: {'; '.join(unrest[:5])}")
        if world.now_ms >= restart_ms:
            restart_ms = world.now_ms + _RESTART_MS
            _restart_where_replicas_are_offline(cluster)
            if cluster.truth.leaving():
                _let_clocks_go_on(cluster)
                quiet_ms = max(quiet_ms, world.now_ms + 3 * cluster.settings.broker.purge_ms)
        _let_pass(cluster, promises, _LOOK_MS)


def _let_pass(cluster: Cluster, promises: Invariants, milliseconds: int) -> None:
    """Let events happen for so long, and look at each."""
    end_ms = cluster.world.now_ms + milliseconds
    while cluster.world.now_ms < end_ms:
        if cluster.world.run(1, for_ms=end_ms - cluster.world.now_ms):
            promises.look()


def _let_clocks_go_on(cluster: Cluster) -> None:
    """A delay that was noted by a clock that was hours ahead is over when the others have come that far."""
    for member in cluster.members.values():
        cluster.world.jump(member.name, _WAIT_MS)


def _restart_where_replicas_are_offline(cluster: Cluster) -> None:
    active = cluster.active
    if active is None:
        return
    away = {replica.broker for replica in active.controller.context.offline}
    for node_id, member in cluster.members.items():
        held_up = _was_full(cluster, member) and any(_unwanted_replicas(cluster, member)) if member.running else False
        if member.running and (node_id in away or member.broker.store.offline or held_up):
            member.shut_down()
        member.start()


def _was_full(cluster: Cluster, member: Member) -> bool:
    """Whether a disk of a machine was full at some time.

    What a FULL request does not name cannot be staged there then, the answer has no place to say so, and it is tried
    again by the next FULL request: when the broker starts again.
    """
    said = f" {member.name}  disk_full: "
    return any(said in line for line in cluster.world.history.lines)


def check_converged(cluster: Cluster, *, durable: bool = False) -> None:
    """Hold the disks of a cluster that came to rest against what it is meant to be.

    Args:
        cluster: at rest.
        durable: acknowledged means synced, and no disk was lost.

    Raises:
        BrokenPromiseError: with everything that is not as it must be.
    """
    wrong = [sentence for member in cluster.members.values() for sentence in _wrong_on_member(cluster, member)]
    wrong += [sentence for member in cluster.members.values() for sentence in _wrong_in_staging(cluster, member)]
    wrong += audit_differences(cluster)
    wrong += _wrong_in_replicas(cluster)
    if durable:
        wrong += _lost_records(cluster)
    if wrong:
        raise BrokenPromiseError("at rest: " + "; ".join(wrong[:8]))


def let_delays_pass(cluster: Cluster, promises: Invariants) -> None:
    """Set the clocks of a cluster at rest to when all that is staged is due; then nothing of deleted topics is left.

    Raises:
        BrokenPromiseError: something staged is not purged, or a disk has something of a topic that nobody knows.
    """
    world, end_ms = cluster.world, cluster.world.now_ms + WITHIN_MS
    while True:
        due = {
            member.name: [each.due_ms or 0 for each in member.broker.store.staged()]
            for member in cluster.members.values()
        }
        if not any(due.values()):
            break
        if world.now_ms >= end_ms:
            left = [each.location for member in cluster.members.values() for each in member.broker.store.staged()]
            raise BrokenPromiseError(f"{WITHIN_MS // 1000} seconds after all was due: {', '.join(left[:5])} is staged")
        for name, times in due.items():
            world.jump(name, max(0, max(times, default=0) - world.clock_of(name)))
        _let_pass(cluster, promises, cluster.settings.broker.purge_ms)
    known = {str(topic_id) for topic_id in cluster.truth.known().values()}
    wrong = [
        f"{member.name} has {row['name']}, of topic ID {row['topic_id']}, which nobody knows"
        for member in cluster.members.values()
        for seen in scan_all(member.disks.log_dirs, sizes=False, jobs=0)
        for row in seen.rows.to_pylist()
        if row["topic_id"] is not None and row["topic_id"] not in known
    ]
    if wrong:
        raise BrokenPromiseError("after all delays: " + "; ".join(wrong[:8]))


def check_audit(cluster: Cluster) -> None:
    """Audit all disks as they are now, whatever goes on.

    Raises:
        BrokenPromiseError: the audit says something else than the znodes do.
    """
    wrong = audit_differences(cluster)
    if wrong:
        raise BrokenPromiseError("the audit: " + "; ".join(wrong[:8]))


def _unfinished(cluster: Cluster) -> Iterator[str]:
    """What is not at rest yet, a sentence each."""
    for member in cluster.members.values():
        if not member.running or member.node_id not in cluster.truth.brokers():
            yield f"{member.name} is not registered"
        if member.running:
            yield from _unwanted_replicas(cluster, member)
    active = cluster.active
    if active is None or active.controller.work is None:
        yield "there is no controller"
        return
    channels = active.controller.work.core.channels
    for node_id in cluster.members:
        if channels.waiting(node_id):
            yield f"{channels.waiting(node_id)} requests to broker {node_id} are not answered"
    yield from (f"{topic} is on its way out" for topic in cluster.truth.leaving())
    for partition, replicas in cluster.truth.wanted().items():
        if any(replica.moving for replica in replicas):
            yield f"{partition} is on its way to other brokers"
        elif {replica.node_id for replica in replicas} != set(replicas[0].isr):
            yield f"{partition} has {list(replicas[0].isr)} in sync, of {[each.node_id for each in replicas]}"


def _unwanted_replicas(cluster: Cluster, member: Member) -> Iterator[str]:
    wanted = cluster.truth.on(member.node_id)
    live = {replica.partition for replica in member.broker.store.replicas()}
    for partition in sorted(live - wanted.keys()):
        yield f"{member.name} still has {partition}"


def _wrong_on_member(cluster: Cluster, member: Member) -> Iterator[str]:
    wanted = cluster.truth.on(member.node_id)
    rows = [row for seen in scan_all(member.disks.log_dirs, sizes=False, jobs=0) for row in seen.rows.to_pylist()]
    live: dict[TopicPartition, str | None] = {}
    for row in rows:
        if row["kind"] in _LEFTOVER_KINDS:
            yield f"{member.name}: {row['name']} is left over"
        elif row["kind"] == "live":
            live[TopicPartition(row["topic"], row["partition"])] = row["topic_id"]
    for partition, replica in wanted.items():
        if partition not in live:
            yield f"{member.name} lacks {partition}"
        elif live[partition] != (None if replica.topic_id is None else str(replica.topic_id)):
            yield f"{member.name} has {partition} under {live[partition]}, and not under {replica.topic_id}"
    for partition in sorted(live.keys() - wanted.keys()):
        yield f"{member.name} has {partition}, which nobody wants there"
    known = {replica.partition for replica in member.broker.store.replicas()}
    for partition in sorted(known ^ live.keys()):
        yield f"{member.name} has {partition} {'in memory' if partition in known else 'on its disk'} alone"


def _wrong_in_staging(cluster: Cluster, member: Member) -> Iterator[str]:
    now_ms = cluster.world.clock_of(member.name)
    late_ms = now_ms - 2 * cluster.settings.broker.purge_ms
    for staged in member.broker.store.staged():
        if staged.record is None:
            yield f"{member.name} has {staged.location}, which has no record"
        elif staged.record.due_ms < late_ms:
            yield f"{member.name} has {staged.location}, which was due at {staged.record.due_ms}, and it is {now_ms}"


def _wrong_in_replicas(cluster: Cluster) -> Iterator[str]:
    """What the disks of a partition's replicas hold, read anew, for what is in memory may be something else."""
    for partition, replicas in cluster.truth.wanted().items():
        logs = {replica.node_id: _records_on_disk(cluster.members[replica.node_id], partition) for replica in replicas}
        for replica in replicas:
            log = logs[replica.node_id]
            if log is None:
                continue
            where = f"{partition} on broker {replica.node_id}"
            for record in log:
                if record.topic_id != replica.topic_id:
                    yield f"{where} holds offset {record.offset} of topic ID {record.topic_id}: {record.value}"
            hosted = cluster.members[replica.node_id].broker.replicas.get(partition)
            if hosted is None:
                yield f"{where} is neither led nor followed"
            elif list(hosted.log.read(0, hosted.log.end)) != log:
                yield f"{where} serves {hosted.log.end} records, and other ones than the {len(log)} on its disk"
            leader = logs.get(replica.leader)
            if leader is not None and replica.node_id in replica.isr and log != leader:
                parting = _first_difference(log, leader)
                yield f"{where} holds other records than on its leader {replica.leader}: {parting}"


def _first_difference(log: Sequence[Record], leader: Sequence[Record]) -> str:
    """Where two logs part."""
    for one, other in zip(log, leader, strict=False):
        if one != other:
            return f"{one.value!r} and not {other.value!r} at offset {one.offset}"
    return f"it ends at {len(log)} and not at {len(leader)}"


def _records_on_disk(member: Member, partition: TopicPartition) -> list[Record] | None:
    """The records of a live replica as its disk has them; None: there is no such replica."""
    entry = member.broker.store.entries().get((partition.topic, partition.partition))
    if entry is None:
        return None
    try:
        with open(f"{entry.log_dir}/{entry.path}/{SEGMENT_FILE}", "rb") as file:
            return decode_records(file.read())[0]
    except FileNotFoundError:
        return []


def _lost_records(cluster: Cluster) -> Iterator[str]:
    for record in cluster.producer.acknowledged:
        if (record.partition, record.topic_id) in cluster.truth.left:
            continue
        replicas = cluster.truth.wanted().get(record.partition, ())
        if not replicas or replicas[0].topic_id != record.topic_id or replicas[0].leader < 0:
            continue
        hosted = cluster.members[replicas[0].leader].broker.replicas.get(record.partition)
        read = () if hosted is None else hosted.log.read(record.offset, record.offset + 1)
        if [each.value for each in read] != [record.value]:
            found = read[0].value if read else "nothing"
            yield f"{record.partition} was acknowledged {record.value!r} at offset {record.offset}, and has {found!r}"
