"""One partition: its high watermark, and its in-sync set, which changes by one request at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logstore import KafkaError
from logstore.store import LogStore
from reconciler.protocol import PartitionState
from reconciler.simulator.kernel import AlterIsrRequest, Record
from reconciler.simulator.machine.partition import HostedPartition
from reconciler.simulator.machine.replica_log import ReplicaLog
from reconciler.simulator.zookeeper import kafka_paths
from tests.logstore.engine import formatted, opened
from tests.reconciler.simulator.machine.brokers import NOTHING, ORDERS, A, Brokers

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


def test_a_leader_knows_how_many_records_each_replica_lacks(partition: HostedPartition) -> None:  # KIP4-1
    assert partition.lags() == {1: 0, 2: -1, 3: -1}
    for value in "abc":
        partition.write(value, NOW)
    partition.note_fetch(2, 1, 5, 0)
    partition.note_fetch(3, 3, 5, 0)
    assert partition.lags() == {1: 0, 2: 4, 3: 2}
    partition.drop()
    assert partition.lags() == {}


def test_a_follower_lags_when_it_has_not_had_everything_for_too_long(partition: HostedPartition) -> None:
    fetched(partition, 2, 2, NOW + 900)
    assert partition.lagging(NOW + 1_000, 1_000) == []
    assert partition.lagging(NOW + 1_001, 1_000) == [3]
    partition.write("c", NOW)
    assert partition.lagging(NOW + 2_000, 1_000) == [2, 3]
    partition.proposed = (1,)
    assert partition.lagging(NOW + 2_000, 1_000) == []


def test_a_follower_that_has_what_there_was_when_it_fetched_last_caught_up_then(partition: HostedPartition) -> None:
    partition.note_fetch(2, 1, 1, NOW + 100)
    partition.write("c", NOW)
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
def test_a_sender_with_another_epoch_gets_an_error(partition: HostedPartition, epoch: int, error: KafkaError) -> None:
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
    assert partition.write("c", NOW) == 2
    assert partition.log.read(2, 3) == (Record(2, 4, A, "c", NOW),)


QUICK = {"replica_lag_ms": 1_000, "tick_ms": 500, "backoff_ms": 200}


@pytest.fixture
def brokers(make_brokers: Callable[..., Brokers]) -> Brokers:
    return make_brokers(**QUICK)


def test_a_follower_that_lags_is_left_out_and_its_record_is_acknowledged_then(brokers: Brokers) -> None:
    brokers.lead(1)
    brokers.run()
    brokers.crash(3)
    assert brokers.produce(1, "a", wait_ms=10_000) == [0]
    assert brokers.partition(1).isr == (1, 2)
    epoch = brokers.of[1].broker.broker_epoch
    assert brokers.controller.asked == [AlterIsrRequest(1, epoch, ORDERS, A, 0, 0, (1, 2))]


def test_a_follower_that_has_all_there_is_never_lags(brokers: Brokers) -> None:
    brokers.lead(1)
    brokers.produce(1, "a")
    brokers.run()
    brokers.crash(3)
    brokers.run(10_000)
    assert brokers.controller.asked == []
    assert brokers.partition(1).isr == (1, 2, 3)


def test_a_follower_that_caught_up_is_taken_in(brokers: Brokers) -> None:
    brokers.lead(1, to=(1,), isr=(1,))
    brokers.produce(1, "a", "b")
    brokers.lead(1, to=(2, 3), isr=(1,))
    brokers.run()
    assert sorted(brokers.partition(1).isr) == [1, 2, 3]
    assert [len(each.isr) for each in brokers.controller.asked] == [2, 3]
    assert [each.partition_epoch for each in brokers.controller.asked] == [0, 1]
    assert brokers.values(3) == ["a", "b"]


def test_until_it_is_agreed_nothing_is_committed_without_either_set(brokers: Brokers) -> None:
    brokers.controller.refuses = [KafkaError.UNKNOWN_SERVER_ERROR] * 1_000
    brokers.lead(1)
    brokers.run()
    brokers.crash(3)
    assert brokers.produce(1, "a", wait_ms=5_000) == [NOTHING]
    assert len(brokers.controller.asked) > 3
    assert len(set(brokers.controller.asked)) == 1
    brokers.controller.refuses = []
    brokers.run()
    assert brokers.partition(1).high_watermark == 1


@pytest.mark.parametrize("error", [KafkaError.FENCED_LEADER_EPOCH, KafkaError.INVALID_UPDATE_VERSION])
def test_what_is_refused_for_good_waits_for_the_controller(brokers: Brokers, error: KafkaError) -> None:
    brokers.controller.refuses = [error]
    brokers.lead(1)
    brokers.run()
    brokers.crash(3)
    brokers.produce(1, "a", wait_ms=5_000)
    assert len(brokers.controller.asked) == 1
    brokers.lead(1, 1, to=(1, 2), isr=(1, 2))
    brokers.run()
    assert brokers.partition(1).high_watermark == 1


def test_without_a_controller_it_tries_again(brokers: Brokers) -> None:
    brokers.session.delete(kafka_paths.CONTROLLER)
    brokers.lead(1, isr=(1,))
    brokers.run(3_000)
    assert brokers.partition(1).isr == (1,)
    assert brokers.partition(1).proposed is not None
    brokers.session.create(kafka_paths.CONTROLLER, b'{"version":1,"brokerid":1,"timestamp":"0"}')
    brokers.run(3_000)
    assert sorted(brokers.partition(1).isr) == [1, 2, 3]


def test_a_clock_that_jumps_makes_a_follower_lag(brokers: Brokers) -> None:
    brokers.lead(1)
    brokers.run()
    brokers.world.network.cut("broker-1", ["broker-2"], 60_000)
    brokers.produce(1, "a", wait_ms=100)
    brokers.world.jump("broker-1", 3_600_000)
    brokers.run(600)
    assert brokers.partition(1).isr == (1, 3)
