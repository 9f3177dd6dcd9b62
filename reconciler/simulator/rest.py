"""Brings a cluster to rest after a history, and asks whether everything ended as it is meant to.

What went wrong is put right: disks come back, machines are switched on, nobody commands anything any more. Then the
cluster has a while. What must be so then::

    brokers    each has exactly the replicas that the controller wants, under the right topic IDs
    staging    nothing is staged beyond its due time, by its machine's clock, and its next purge
    deletion   no disk holds data of a topic that was deleted, except what is staged and not due
    audit      the audit says the same of every disk as the znodes do, verdict by verdict
    replicas   the replicas in sync of a partition hold the same records
    records    where acknowledged means synced, and no disk was lost, every acknowledged record is there

Source: DESIGN §4, §5; KIP516-5, KIP516-6, KIP516-10; KIP694-4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.scan import scan_all
from reconciler.simulator.expected import differences
from reconciler.simulator.promises import BrokenPromiseError, Promises

if TYPE_CHECKING:
    from reconciler.simulator.cluster import Cluster
    from reconciler.simulator.member import Member

WITHIN_MS = 900_000
"""Simulated time in which a cluster must come to rest once nothing goes wrong any more."""

_LOOK_MS = 1_000
_RESTART_MS = 30_000
"""After so long brokers with replicas that are offline are restarted, as an operator does: a replica that could not be
made, or whose disk failed, stays offline until its broker starts again (FACTS §4.2)."""


def come_to_rest(cluster: Cluster, promises: Promises) -> None:
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
        unrest = list(_unrest(cluster))
        if not unrest and world.now_ms >= quiet_ms:
            return
        if world.now_ms >= end_ms:
            raise BrokenPromiseError(f"after {WITHIN_MS // 1000} quiet seconds: {'; '.join(unrest[:5])}")
        if world.now_ms >= restart_ms:
            restart_ms = world.now_ms + _RESTART_MS
            _restart_where_replicas_are_offline(cluster)
        next_ms = world.now_ms + _LOOK_MS
        while world.now_ms < next_ms:
            if world.run(1, for_ms=next_ms - world.now_ms):
                promises.look()


def _restart_where_replicas_are_offline(cluster: Cluster) -> None:
    active = cluster.active
    if active is None:
        return
    away = {replica.broker for replica in active.controller.context.offline}
    for node_id, member in cluster.members.items():
        if member.running and (node_id in away or member.broker.store.offline):
            member.shut_down()
        member.start()


def check_rest(cluster: Cluster, *, durable: bool = False) -> None:
    """Hold the disks of a cluster that came to rest against what it is meant to be.

    Args:
        cluster: at rest.
        durable: acknowledged means synced, and no disk was lost.

    Raises:
        BrokenPromiseError: with everything that is not as it must be.
    """
    wrong = [sentence for member in cluster.members.values() for sentence in _of_member(cluster, member)]
    wrong += _of_replicas(cluster)
    if durable:
        wrong += _lost(cluster)
    if wrong:
        raise BrokenPromiseError("at rest: " + "; ".join(wrong[:8]))


def _unrest(cluster: Cluster) -> Iterator[str]:
    """What is not at rest yet, a sentence each."""
    for member in cluster.members.values():
        if not member.running or member.node_id not in cluster.truth.brokers():
            yield f"{member.name} is not registered"
        if member.running:
            yield from _surplus(cluster, member)
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


def _surplus(cluster: Cluster, member: Member) -> Iterator[str]:
    wanted = cluster.truth.on(member.node_id)
    live = {replica.partition for replica in member.broker.store.replicas()}
    for partition in sorted(live - wanted.keys()):
        yield f"{member.name} still has {partition}"


def _of_member(cluster: Cluster, member: Member) -> Iterator[str]:
    wanted, store = cluster.truth.on(member.node_id), member.broker.store
    live = {replica.partition: replica for replica in store.replicas()}
    for partition, replica in wanted.items():
        found = live.get(partition)
        if found is None:
            yield f"{member.name} lacks {partition}"
        elif found.topic_id != replica.topic_id:
            yield f"{member.name} has {partition} under {found.topic_id}, and not under {replica.topic_id}"
    for partition in sorted(live.keys() - wanted.keys()):
        yield f"{member.name} has {partition}, which nobody wants there"
    now_ms = cluster.world.clock_of(member.name)
    late_ms = now_ms - 2 * cluster.settings.broker.purge_ms
    for staged in store.staged():
        if staged.record is None:
            yield f"{member.name} has {staged.location}, which has no record"
        elif staged.record.due_ms < late_ms:
            yield f"{member.name} has {staged.location}, which was due at {staged.record.due_ms}, and it is {now_ms}"
    rows = [row for seen in scan_all(member.disks.log_dirs, sizes=False, jobs=1) for row in seen.rows.to_pylist()]
    yield from differences(rows, cluster.zookeeper, cluster.truth, now_ms)
    yield from (f"{member.name}: {row['name']} is left over" for row in rows if row["kind"] in ("leftover", "foreign"))


def _of_replicas(cluster: Cluster) -> Iterator[str]:
    for partition, replicas in cluster.truth.wanted().items():
        logs = {}
        for replica in replicas:
            hosted = cluster.members[replica.node_id].broker.replicas.get(partition)
            if hosted is not None:
                logs[replica.node_id] = [record.value for record in hosted.log.read(0, hosted.log.end)]
        leader = logs.get(replicas[0].leader)
        for node_id, values in logs.items():
            if leader is not None and node_id in replicas[0].isr and values[: len(leader)] != leader[: len(values)]:
                yield f"{partition} holds other records on broker {node_id} than on its leader {replicas[0].leader}"


def _lost(cluster: Cluster) -> Iterator[str]:
    for record in cluster.producer.acknowledged:
        replicas = cluster.truth.wanted().get(record.partition, ())
        if not replicas or replicas[0].topic_id != record.topic_id or replicas[0].leader < 0:
            continue
        hosted = cluster.members[replicas[0].leader].broker.replicas.get(record.partition)
        read = () if hosted is None else hosted.log.read(record.offset, record.offset + 1)
        if [each.value for each in read] != [record.value]:
            found = read[0].value if read else "nothing"
            yield f"{record.partition} was acknowledged {record.value!r} at offset {record.offset}, and has {found!r}"
