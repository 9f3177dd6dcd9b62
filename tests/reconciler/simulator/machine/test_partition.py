"""One partition by itself: the high watermark, who joins the in-sync set, and who lags."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore import KafkaError
from logstore.store import LogStore
from reconciler.protocol import PartitionState
from reconciler.simulator.kernel import Record
from reconciler.simulator.machine.partition import HostedPartition
from reconciler.simulator.machine.replica_log import ReplicaLog
from tests.logstore.engine import formatted, opened
from tests.reconciler.simulator.machine.brokers import ORDERS, A

NOW = 1_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LogStore]:
    with opened(formatted(tmp_path / "data")) as store:
        yield store


@pytest.fixture
def partition(store: LogStore) -> HostedPartition:
    """Broker 1 leads at epoch 4, with 2 and 3 in sync; two records are there from before."""
    log = ReplicaLog(store.log_dirs[0], store.create(ORDERS, A))
    log.append([Record(0, 1, A, "a"), Record(1, 1, A, "b")])
    found = HostedPartition(ORDERS, A, log)
    found.take_role(role(), 1, NOW)
    return found


def role(leader: int = 1, epoch: int = 4, isr: tuple[int, ...] = (1, 2, 3)) -> PartitionState:
    return PartitionState(0, 1, leader, epoch, isr, 7, (1, 2, 3))


def fetched(partition: HostedPartition, broker: int, offset: int, now_ms: int = NOW) -> bool:
    partition.note_fetch(broker, offset, 1, now_ms)
    return partition.advance()


def test_the_high_watermark_waits_for_all_that_are_in_sync(partition: HostedPartition) -> None:
    assert partition.high_watermark == 0
    assert not fetched(partition, 2, 2)
    assert fetched(partition, 3, 1)
    assert partition.high_watermark == 1
    assert fetched(partition, 3, 2)
    assert partition.high_watermark == 2


def test_the_high_watermark_never_falls(partition: HostedPartition) -> None:
    fetched(partition, 2, 2)
    fetched(partition, 3, 2)
    assert not fetched(partition, 3, 0)
    assert partition.high_watermark == 2


def test_a_leader_alone_in_sync_commits_at_once(partition: HostedPartition) -> None:
    partition.take_role(role(epoch=5, isr=(1,)), 1, NOW)
    assert partition.high_watermark == 2


def test_while_a_set_is_proposed_the_larger_one_counts(partition: HostedPartition) -> None:
    partition.take_role(role(epoch=5, isr=(1, 2)), 1, NOW)
    partition.proposed = (1, 2, 3)
    assert not fetched(partition, 2, 2)
    partition.agree((1, 2), 8)
    assert partition.advance()
    assert (partition.isr, partition.proposed, partition.partition_epoch) == ((1, 2), None, 8)


def test_a_follower_joins_when_it_has_what_is_committed_and_the_start_of_the_epoch(partition: HostedPartition) -> None:
    partition.take_role(role(epoch=5, isr=(1, 2)), 1, NOW)
    partition.note_fetch(3, 1, 1, NOW)
    assert not partition.joins(3)
    partition.note_fetch(3, 2, 1, NOW)
    assert partition.joins(3)
    assert not partition.joins(2)
    partition.proposed = (1, 2, 3)
    assert not partition.joins(3)


def test_a_follower_lags_when_it_has_not_had_everything_for_too_long(partition: HostedPartition) -> None:
    fetched(partition, 2, 2, NOW + 900)
    assert partition.lagging(NOW + 1_000, 1_000) == []
    assert partition.lagging(NOW + 1_001, 1_000) == [3]
    partition.write("c")
    assert partition.lagging(NOW + 2_000, 1_000) == [2, 3]
    partition.proposed = (1,)
    assert partition.lagging(NOW + 2_000, 1_000) == []


def test_a_follower_that_has_what_there_was_when_it_fetched_last_caught_up_then(partition: HostedPartition) -> None:
    partition.note_fetch(2, 1, 1, NOW + 100)
    partition.write("c")
    partition.note_fetch(2, 2, 1, NOW + 500)
    assert partition.followers[2].caught_up_ms == NOW + 100


def test_a_fetch_from_before_the_followers_last_restart_counts_for_nothing(partition: HostedPartition) -> None:
    assert partition.note_fetch(2, 0, 9, NOW)
    assert not partition.note_fetch(2, 2, 8, NOW)
    assert partition.followers[2].position == 0


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (-1, KafkaError.NONE),
        (4, KafkaError.NONE),
        (3, KafkaError.FENCED_LEADER_EPOCH),
        (5, KafkaError.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_who_believes_in_another_epoch_is_told_so(partition: HostedPartition, epoch: int, error: KafkaError) -> None:
    assert partition.check(epoch) is error


def test_only_a_leader_may_be_asked(partition: HostedPartition) -> None:
    partition.take_role(role(leader=2, epoch=5), 1, NOW)
    assert partition.check(5) is KafkaError.NOT_LEADER_OR_FOLLOWER
    assert partition.check(4) is KafkaError.FENCED_LEADER_EPOCH
    partition.drop()
    assert partition.check(5) is KafkaError.NOT_LEADER_OR_FOLLOWER


def test_each_role_has_a_number_and_a_follower_begins_by_asking_where_the_logs_part(partition: HostedPartition) -> None:
    before = partition.role
    assert not partition.diverged
    partition.take_role(role(leader=2, epoch=5), 1, NOW)
    assert partition.role > before
    assert partition.diverged
    assert partition.followers == {}
    assert not partition.advance()


def test_a_record_that_is_written_has_the_leaders_epoch_and_topic_id(partition: HostedPartition) -> None:
    assert partition.write("c") == 2
    assert partition.log.read(2, 3) == (Record(2, 4, A, "c"),)
