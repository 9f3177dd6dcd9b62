"""Roles follow the store, and the checkpoints are written at intervals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, parse_offsets
from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.machine.partition import HostedPartition
from tests.reconciler.simulator.machine.brokers import ORDERS, A, Brokers

OTHER = TopicPartition("other", 0)
OTHER_ID = TopicId.from_halves(5, 5)


def checkpoint(brokers: Brokers, node_id: int, file: str) -> dict[tuple[str, int], int]:
    return parse_offsets(Path(brokers.disks[node_id].log_dirs[0], file).read_bytes(), file)


def test_a_role_that_is_older_than_the_one_it_has_is_not_taken(brokers: Brokers) -> None:
    brokers.lead(1, 3)
    partition = brokers.partition(2)
    brokers.lead(3, 2)
    assert brokers.partition(2) is partition
    assert (partition.leader, partition.leader_epoch) == (1, 3)


def test_what_is_staged_by_somebody_else_is_dropped_and_waiting_requests_are_answered(brokers: Brokers) -> None:
    brokers.lead(1)
    ended: list[HostedPartition] = []
    replicas, partition = brokers.of[1].replicas, brokers.partition(1)
    replicas.ended = ended.append
    brokers.of[1].store.stage([ORDERS], "STALE_ID", "a test")
    replicas.follow_the_store()
    assert replicas.get(ORDERS) is None
    assert ended == [partition]
    assert partition.dropped


def test_a_replica_that_is_what_it_was_keeps_its_role(brokers: Brokers) -> None:
    brokers.lead(1)
    partition = brokers.partition(1)
    brokers.of[1].replicas.follow_the_store()
    assert brokers.partition(1) is partition


def test_high_watermarks_are_written_on_every_tick_and_recovery_points_with_a_flush(brokers: Brokers) -> None:
    brokers.lead(1)
    brokers.produce(1, "a", "b")
    brokers.run(6_000)
    assert checkpoint(brokers, 1, HIGH_WATERMARK_CHECKPOINT) == {("orders", 0): 2}
    assert not Path(brokers.disks[1].log_dirs[0], RECOVERY_POINT_CHECKPOINT).exists()
    brokers.run(60_000)
    assert checkpoint(brokers, 1, RECOVERY_POINT_CHECKPOINT) == {("orders", 0): 2}
    assert checkpoint(brokers, 2, HIGH_WATERMARK_CHECKPOINT) == {("orders", 0): 2}


def test_a_disk_that_fails_holds_up_no_other(make_brokers: Callable[..., Brokers]) -> None:
    brokers = make_brokers(count=1, disks=2)
    brokers.lead(1, to=(1,), replicas=(1,), isr=(1,))
    brokers.lead(1, at=OTHER, topic_id=OTHER_ID, to=(1,), replicas=(1,), isr=(1,))
    brokers.produce(1, "a")
    replicas = brokers.of[1].replicas
    log_dirs = {partition.at: partition.log.log_dir for partition in replicas}
    assert len(set(log_dirs.values())) == 2
    brokers.disks[1].fail(brokers.disks[1].log_dirs.index(log_dirs[OTHER]), Random(1))
    other = replicas.get(OTHER)
    assert other is not None
    other.high_watermark = 1
    replicas.write_high_watermarks()
    assert Path(log_dirs[ORDERS], HIGH_WATERMARK_CHECKPOINT).exists()
    assert brokers.said("replication-offset-checkpoint:")


def test_a_role_is_taken_with_the_high_watermark_of_the_checkpoint(brokers: Brokers) -> None:
    brokers.lead(1)
    brokers.produce(1, "a", "b")
    brokers.run(8_000)
    brokers.of[2].shut_down()
    brokers.of[2].start()
    brokers.lead(3, 1, to=(2,))
    assert brokers.partition(2).high_watermark == 2
    assert brokers.partition(2).topic_id == A
