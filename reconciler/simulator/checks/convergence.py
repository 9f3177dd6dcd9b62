"""Brings a cluster to rest after a history, and checks its final state.

First the faults are repaired: disks come back, machines are switched on, no more commands are given. Then the cluster
has some time. After that, this must hold::

    brokers    each has exactly the replicas that the controller wants, under the right topic IDs, on its disks and in
               memory, and no leftovers but copies whose original was on a disk that was replaced
    staging    nothing is staged beyond its due time, by its machine's clock, and the purge after that
    requests   another controller's FULL requests change nothing
    files      a broker has few files open on each disk, and checkpoints have entries of what lies there alone
    configs    each broker's store goes by the delays that are in force in ZooKeeper
    audit      the audit gives every disk the verdicts that follow from the znodes
    replicas   the in-sync ones hold the same records on their disks, all of their own topic ID, and serve these
    records    if acknowledged means synced, and no disk was lost, every acknowledged record can be read
    deletion   when all delays are over too, no disk holds anything of a deleted topic but such copies

Source: DESIGN §4, §5; KIP516-3, KIP516-5, KIP516-6, KIP516-10; KIP694-4.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from layout.errors import DamagedFileError
from layout.ours import MOVE_RECORD, parse_move_record
from layout.topic import TopicPartition
from logstore import DEFAULTS, parse_duration
from logstore.journal import log_dir_key
from logstore.log_dir import read_offset_checkpoints
from reconciler.simulator.checks.expected_verdicts import audit_differences, scanned_rows
from reconciler.simulator.checks.invariants import BrokenInvariantError, Invariants
from reconciler.simulator.cluster import Cluster, Member, identity_of
from reconciler.simulator.kernel import Record
from reconciler.simulator.machine import records_in
from reconciler.text import moment

WITHIN_MS = 900_000
"""The simulated time in which a cluster must come to rest once there are no more faults."""

_LOOK_MS = 1_000
_SETTLED_MS = 10_000
"""How long no work must be left: a broker that has just registered still waits for its first requests."""

_RESTART_MS = 30_000
"""How often brokers with offline replicas are restarted, as an operator does: a replica that could not be
made, or whose disk failed, stays offline until its broker starts again (FACTS §4.2)."""

_WAIT_MS = 3_600_000
"""How far all clocks are set forward while a deletion waits for its delay."""

_CHANGES = ("create", "stage", "stage_copy", "restore", "write_topic_id")
"""Operations of a store that a request may cause."""

_OPEN_FILES = 24
"""The most files that a broker at rest has open on one disk, however many replicas it has."""

_LEFTOVER_KINDS = ("leftover", "foreign", "delete", "stray", "future")
"""Kinds of rows that no log dir has at rest; the last three are unfinished replicas, or names that Kafka gives."""


def converge(cluster: Cluster, invariants: Invariants) -> None:
    """Repair all faults, and wait until no work is left.

    Raises:
        BrokenInvariantError: an invariant does not hold on the way, or the cluster does not come to rest.
    """
    world = cluster.world
    _put_right(cluster)
    restart_ms = world.now_ms + _RESTART_MS
    settings = cluster.settings.broker
    # A broker notices a disk that failed under it at its next flush, and purges what is due after its start.
    quiet_ms = world.now_ms + max(3 * settings.purge_ms, settings.flush_ms + _SETTLED_MS)
    settled_ms, end_ms = max(_SETTLED_MS, 2 * settings.purge_ms + _LOOK_MS), world.now_ms + WITHIN_MS
    while True:
        unfinished = list(_unfinished(cluster))
        if not unfinished and world.now_ms >= quiet_ms:
            return
        if unfinished and world.now_ms >= end_ms:
            raise BrokenInvariantError(f"after {WITHIN_MS // 1000} quiet seconds: {'; '.join(unfinished[:5])}")
        quiet_ms = max(quiet_ms, world.now_ms + settled_ms if unfinished else 0)
        if world.now_ms >= restart_ms:
            restart_ms = world.now_ms + _RESTART_MS
            _restart_where_replicas_are_offline(cluster)
            if cluster.oracle.leaving():
                # All clocks: a delay noted by a clock that was hours fast ends only when the others get there.
                for member in cluster.members.values():
                    world.jump(member.name, _WAIT_MS)
                quiet_ms = max(quiet_ms, world.now_ms + 3 * cluster.settings.broker.purge_ms)
        _run_and_check(cluster, invariants, _LOOK_MS)


def _put_right(cluster: Cluster) -> None:
    """End the faults, repair what they did, and switch every machine on."""
    cluster.world.calm()
    for member in cluster.members.values():
        member.disks.disarm()
    cluster.world.faults.put_right()
    for member in cluster.members.values():
        if member.running and member.broker.store.offline:
            member.shut_down()  # a disk that is back can be used only once it is opened again
        member.start()


def _run_and_check(cluster: Cluster, invariants: Invariants, milliseconds: int) -> None:
    """Let events happen for a time, and check each."""
    end_ms = cluster.world.now_ms + milliseconds
    while cluster.world.now_ms < end_ms:
        if cluster.world.run(1, for_ms=end_ms - cluster.world.now_ms):
            invariants.look()


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

    On a full disk, a replica that a FULL request does not name cannot be staged. The answer has no field for that, and
    only the next FULL request tries again, after the broker's next start.
    """
    said = f" {member.name}  disk_full: "
    return any(said in line for line in cluster.world.history.lines)


def check_converged(cluster: Cluster, *, durable: bool = False) -> None:
    """Check the disks of a cluster at rest against its wanted state.

    ``durable``: acknowledged means synced, and no disk was lost.

    Raises:
        BrokenInvariantError: with everything that is wrong.
    """
    rows_of = {member.name: scanned_rows(member) for member in cluster.members.values()}
    wrong = [
        sentence
        for member in cluster.members.values()
        for sentence in _wrong_on_member(cluster, member, rows_of[member.name])
    ]
    wrong += [sentence for member in cluster.members.values() for sentence in _wrong_in_staging(cluster, member)]
    wrong += [sentence for member in cluster.members.values() for sentence in _wrong_in_settings(cluster, member)]
    wrong += [sentence for member in cluster.members.values() for sentence in _stray_entries(cluster, member)]
    wrong += audit_differences(cluster, rows_of)
    wrong += _too_many_files(cluster)
    wrong += _wrong_in_replicas(cluster)
    if durable:
        wrong += _lost_records(cluster)
    if wrong:
        raise BrokenInvariantError("at rest: " + "; ".join(wrong[:8]))


def check_full_changes_nothing(cluster: Cluster, invariants: Invariants) -> None:
    """Let another controller take over a cluster at rest: its FULL requests must find nothing to do (KIP516-5).

    Raises:
        BrokenInvariantError: a broker staged, restored, made or changed a replica, or the cluster is no longer at rest.
    """
    world, active = cluster.world, cluster.active
    session = None if active is None else active.broker.session
    if session is None:
        raise BrokenInvariantError("there is no controller at rest")
    before = _changes(cluster)
    session.expire()
    end_ms, settled_ms = world.now_ms + WITHIN_MS, world.now_ms + _SETTLED_MS
    while world.now_ms < settled_ms:
        unfinished = list(_unfinished(cluster))
        settled_ms = max(settled_ms, world.now_ms + _SETTLED_MS if unfinished else 0)
        if unfinished and world.now_ms >= end_ms:
            raise BrokenInvariantError(f"after another controller took over: {'; '.join(unfinished[:5])}")
        _run_and_check(cluster, invariants, _LOOK_MS)
    after = _changes(cluster)
    if after != before:
        done = ", ".join(f"{what} {after[what] - before[what]}" for what in after if after[what] != before[what])
        raise BrokenInvariantError(f"FULL requests to a cluster at rest changed its disks: {done}")


def _changes(cluster: Cluster) -> dict[str, int]:
    """How often brokers changed which replicas they have."""
    return {what: cluster.world.history.reached.get(f"operation {what}", 0) for what in _CHANGES}


def let_delays_pass(cluster: Cluster, invariants: Invariants) -> None:
    """Set the clocks of a cluster at rest to when everything staged is due, and check that it is purged.

    Raises:
        BrokenInvariantError: something staged is not purged, or a disk holds a topic ID that the metadata lacks.
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
            raise BrokenInvariantError(
                f"{WITHIN_MS // 1000} seconds after all was due: {', '.join(left[:5])} is staged"
            )
        for name, times in due.items():
            world.jump(name, max(0, max(times, default=0) - world.clock_of(name)))
        _run_and_check(cluster, invariants, cluster.settings.broker.purge_ms)
    known = {str(topic_id) for topic_id in cluster.oracle.known().values()}
    wrong = [
        f"{member.name} has {row['name']}, of topic ID {row['topic_id']}, which nobody knows"
        for member in cluster.members.values()
        for row in scanned_rows(member)
        if row["topic_id"] is not None and row["topic_id"] not in known and not _waits_for_lost_disk(member, row)
    ]
    if wrong:
        raise BrokenInvariantError("after all delays: " + "; ".join(wrong[:8]))


def _unfinished(cluster: Cluster) -> Iterator[str]:
    """The work that is not done yet, a sentence each."""
    for member in cluster.members.values():
        if not member.running or member.node_id not in cluster.oracle.brokers():
            yield f"{member.name} is not registered"
        if member.running:
            yield from _unwanted_replicas(cluster, member)
    active = cluster.active
    if active is None or active.controller.work is None:
        yield "there is no controller"
        return
    channels = active.controller.work.core.channels
    yield from (f"{replica} is offline" for replica in sorted(active.controller.context.offline))
    for node_id in cluster.members:
        if channels.waiting(node_id):
            yield f"{channels.waiting(node_id)} requests to broker {node_id} are not answered"
    yield from (f"{topic} is on its way out" for topic in cluster.oracle.leaving())
    for partition, replicas in cluster.oracle.wanted().items():
        if any(replica.moving for replica in replicas):
            yield f"{partition} is on its way to other brokers"
        elif {replica.node_id for replica in replicas} != set(replicas[0].isr):
            yield f"{partition} has {list(replicas[0].isr)} in sync, of {[each.node_id for each in replicas]}"


def _unwanted_replicas(cluster: Cluster, member: Member) -> Iterator[str]:
    wanted = cluster.oracle.on(member.node_id)
    live = {replica.partition for replica in member.broker.store.replicas()}
    for partition in sorted(live - wanted.keys()):
        yield f"{member.name} still has {partition}"


def _wrong_on_member(cluster: Cluster, member: Member, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    wanted = cluster.oracle.on(member.node_id)
    live: dict[TopicPartition, str | None] = {}
    for row in rows:
        if row["kind"] in _LEFTOVER_KINDS and not (
            _is_half_removed(cluster, member, row) or _waits_for_lost_disk(member, row)
        ):
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


def _stray_entries(cluster: Cluster, member: Member) -> Iterator[str]:
    """Entries of checkpoints whose partition does not lie in their log dir; a full disk may have kept them."""
    entries, offline = member.broker.store.entries(), member.broker.store.offline
    for path in () if _was_full(cluster, member) else member.disks.log_dirs:
        held = {key for key, entry in entries.items() if entry.log_dir == path}
        found = {} if path in offline else read_offset_checkpoints(path).entries
        for file, known in found.items():
            for topic, number in sorted(known.keys() - held):
                yield f"{member.name}: {file} has an entry of {topic}-{number}, which is not there"


def _is_half_removed(cluster: Cluster, member: Member, row: Mapping[str, Any]) -> bool:
    """Whether a directory is an empty tier whose removal a power cut ended, on a machine that lost another disk since.

    The steps of a change stand on one of its disks, and whatever opens them next goes on. Where that disk is replaced,
    nothing says any more that a tier on the others was being removed, which may have lost its marker by then.
    """
    was_replaced = any(f" {member.name}  disk_replaced: " in line for line in cluster.world.history.lines)
    return was_replaced and row["kind"] == "foreign" and not os.listdir(f"{row['log_dir']}/{row['name']}")


def _waits_for_lost_disk(member: Member, row: Mapping[str, Any]) -> bool:
    """Whether a directory is the copy of a move from a disk that the machine has no more.

    Whether the original was staged, so that the copy is all there is, only that disk says. So the copy waits for it,
    for ever where the disk was replaced: nothing but a person may end that (KIP516-3).
    """
    if row["kind"] != "future":
        return False
    try:
        with open(f"{row['log_dir']}/{row['name']}/{MOVE_RECORD}", "rb") as file:
            record = parse_move_record(file.read())
    except (FileNotFoundError, DamagedFileError):
        return False
    return record.source_log_dir not in {log_dir_key(each) for each in member.broker.store.log_dirs}


def _too_many_files(cluster: Cluster) -> Iterator[str]:
    paths = [each for each in (_path_of(number) for number in os.listdir("/proc/self/fd")) if each is not None]
    for member in cluster.members.values():
        for log_dir in member.disks.log_dirs:
            count = sum(path.startswith(log_dir) for path in paths)
            if count > _OPEN_FILES:
                yield f"{member.name} has {count} files open in {log_dir}"


def _path_of(descriptor: str) -> str | None:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:
        return None  # the listing's own


def _wrong_in_staging(cluster: Cluster, member: Member) -> Iterator[str]:
    now_ms = cluster.world.clock_of(member.name)
    late_ms = now_ms - 2 * cluster.settings.broker.purge_ms
    for staged in member.broker.store.staged():
        if staged.record is None:
            yield f"{member.name} has {staged.location}, which has no record"
        elif staged.record.due_ms < late_ms:
            due = moment(staged.record.due_ms)
            yield f"{member.name} has {staged.location}, which was due at {due}, and it is {moment(now_ms)}"


def _wrong_in_settings(cluster: Cluster, member: Member) -> Iterator[str]:
    """Delays by which a broker does not go, though they are in force for a topic that it has (KIP37-5)."""
    static = cluster.settings.broker.delays
    for topic in sorted({partition.topic for partition in cluster.oracle.on(member.node_id)}):
        for name in DEFAULTS:
            given = cluster.oracle.config(topic, name)
            wanted = static.of(topic, name) if given is None else parse_duration(given)
            found = member.broker.store.settings.of(topic, name)
            if found != wanted:
                yield f"{member.name} goes by a {name} of {found} for {topic}, and not by {wanted}"


def _wrong_in_replicas(cluster: Cluster) -> Iterator[str]:
    """Compare the records of each partition's replicas, read anew from the disks, with those in memory."""
    for partition, replicas in cluster.oracle.wanted().items():
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
            if leader is None or hosted is None or replica.node_id not in replica.isr:
                continue
            # Each broker deletes old records by its own clock, so one may have more of them than another.
            start = max(hosted.log.start, _start_of(cluster, replica.leader, partition))
            kept, led = ([record for record in each if record.offset >= start] for each in (log, leader))
            if kept != led:
                parting = _first_difference(kept, led)
                yield f"{where} holds other records than on its leader {replica.leader}: {parting}"


def _start_of(cluster: Cluster, leader: int, partition: TopicPartition) -> int:
    """The first offset that a leader did not delete."""
    hosted = cluster.members[leader].broker.replicas.get(partition)
    return 0 if hosted is None else hosted.log.start


def _first_difference(log: Sequence[Record], leader: Sequence[Record]) -> str:
    """Describe where two logs begin to differ."""
    for one, other in zip(log, leader, strict=False):
        if one != other:
            return f"{one.value!r} and not {other.value!r} at offset {one.offset}"
    ends = [each[-1].offset + 1 if each else "nothing" for each in (log, leader)]
    return f"it ends at {ends[0]} and not at {ends[1]}"


def _records_on_disk(member: Member, partition: TopicPartition) -> list[Record] | None:
    """The records of a live replica on its disk; None: there is no such replica."""
    entry = member.broker.store.entries().get((partition.topic, partition.partition))
    if entry is None:
        return None
    try:
        return records_in(f"{entry.log_dir}/{entry.path}")
    except FileNotFoundError:
        return []


def _lost_records(cluster: Cluster) -> Iterator[str]:
    wanted = {
        identity_of(at, replicas[0].topic_id): (at, replicas[0].leader)
        for at, replicas in cluster.oracle.wanted().items()
        if replicas
    }
    for record in cluster.producer.acknowledged:
        identity = identity_of(record.partition, record.topic_id)
        partition, leader = wanted.get(identity, (record.partition, -1))
        if identity in cluster.oracle.left or leader < 0:
            continue
        if cluster.oracle.config(partition.topic, "unclean.leader.election.enable") == "true":
            continue  # whoever allows unclean elections allows the loss of records
        hosted = cluster.members[leader].broker.replicas.get(partition)
        if hosted is not None and record.offset < hosted.log.start:
            continue  # deleted as old, which the invariants watch
        read = () if hosted is None else hosted.log.read(record.offset, record.offset + 1)
        if [each.value for each in read] != [record.value]:
            found = read[0].value if read else "nothing"
            yield f"{partition} was acknowledged {record.value!r} at offset {record.offset}, and has {found!r}"
