"""The in-sync set shrinks and grows, through the controller and one request at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore import KafkaError
from reconciler.simulator.kernel import AlterIsrRequest
from reconciler.simulator.zookeeper import kafka_paths
from tests.reconciler.simulator.machine.brokers import NOTHING, ORDERS, A, Brokers

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
