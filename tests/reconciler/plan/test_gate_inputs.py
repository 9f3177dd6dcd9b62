"""The inputs of the gates, gathered from real log dirs and metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout.ids import DirectoryId
from reconciler.desired import BrokerKey, MetadataIdentity
from reconciler.plan import (
    INTERNAL_TOPICS,
    Gate,
    GatesShutError,
    PlanChoice,
    Policy,
    is_internal_topic,
    led_elsewhere,
)
from reconciler.plan.gate_inputs import EarlierRuns, UsedMetadata, went_back
from reconciler.verdicts import CLOCK_SKEW_MS, CLOCK_TOLERANCE_MS
from tests.reconciler.plan.plan_broker import (
    CLICKS,
    CLUSTER,
    GONE,
    HOUR_MS,
    NOW_MS,
    OLD,
    ORDERS,
    PlanBroker,
    written_at,
)

LOOSE = Policy(Policy.cautious().oldest_ms, 0.3, 1.0, None)
"""Every gate but those of share and count, which small brokers would shut."""


@pytest.fixture
def broker(tmp_path: Path) -> PlanBroker:
    made = PlanBroker(tmp_path)
    made.in_order(4)
    return made


def shut(broker: PlanBroker, policy: Policy = LOOSE, **more: object) -> list[Gate]:
    """The gates that are shut, in order."""
    try:
        broker.plan(PlanChoice(policy), **more)  # type: ignore[arg-type]
    except GatesShutError as error:
        return [refusal.gate for refusal in error.refusals]
    return []


def test_a_broker_in_order_shuts_no_gate(broker: PlanBroker) -> None:
    assert shut(broker, Policy.cautious()) == []


def test_metadata_that_names_no_cluster_shuts_the_gate_of_clusters(broker: PlanBroker) -> None:
    assert shut(broker, states=[broker.state(cluster_id=None)]) == [Gate.CLUSTER]


def test_a_log_dir_of_another_cluster_shuts_it_too(broker: PlanBroker) -> None:
    properties = broker.log_dirs[1] / "meta.properties"
    properties.write_text(properties.read_text().replace(f"cluster.id={CLUSTER}", "cluster.id=c2"))
    assert shut(broker) == [Gate.CLUSTER]


def test_a_broker_that_the_metadata_does_not_know_shuts_the_gate_of_brokers(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path)
    broker.wanted("orders", ORDERS, 0, nodes=(2, 3))
    broker.replica("orders-0", ORDERS)
    assert shut(broker) == [Gate.BROKER]


def test_a_registered_broker_without_replicas_is_known(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path)
    broker.wanted("orders", ORDERS, 0, nodes=(2, 3))
    for node in (1, 2, 3):
        broker.builder.broker(node, None, False, ())
    broker.replica("orders-0", ORDERS)
    assert shut(broker) == []


def test_a_request_to_another_broker_shuts_it_too(broker: PlanBroker) -> None:
    assert shut(broker, states=[broker.state(scope=frozenset({2}))]) == [Gate.BROKER]


def test_metadata_without_topics_shuts_the_gate_of_empty_metadata_alone(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path)
    broker.replica("orders-0", ORDERS)
    assert shut(broker) == [Gate.EMPTY]


def test_metadata_that_shrank_since_the_last_run_shuts_a_gate(broker: PlanBroker) -> None:
    assert shut(broker, memory=EarlierRuns({CLUSTER: (2, 8)})) == [Gate.SHRUNK]
    assert shut(broker, memory=EarlierRuns({CLUSTER: (1, 12)})) == [Gate.SHRUNK]
    assert shut(broker, memory=EarlierRuns({CLUSTER: (1, 8), "another": (100, 100)})) == []


def test_a_replica_of_another_topic_id_than_the_one_in_sync_is_no_copy_of_it(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0, isr=(1,))
    broker.replica("orders-0", OLD)
    assert shut(broker) == []


def test_a_copy_in_sync_elsewhere_is_enough(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0, nodes=(2, 3), isr=(2,))
    broker.replica("orders-0", ORDERS)
    assert shut(broker) == []


def test_a_left_over_replica_of_a_partition_with_nothing_in_sync_shuts_it(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0, nodes=(2, 3), isr=())
    broker.replica("orders-0", ORDERS)
    assert shut(broker) == [Gate.SOLE_COPY]


def test_a_partition_that_the_topic_does_not_have_any_more_is_no_sole_copy(broker: PlanBroker) -> None:
    broker.replica("clicks-99", CLICKS)
    assert shut(broker) == []


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        *(("__offsets", True), ("ns:__x", True), ("_schemas", True), ("connect-offsets", True), ("a-changelog", True)),
        *(("a__b", False), ("_x", False), ("connect", False), ("schemas", False)),
    ],
)
def test_internal_topics_are_those_of_kafka_and_of_the_programs_around_it(topic: str, expected: bool) -> None:
    assert is_internal_topic(topic) is expected
    assert is_internal_topic(topic, ("a*", *INTERNAL_TOPICS)) is (expected or topic == "a__b")


def test_share_and_count_are_of_each_broker_by_itself(broker: PlanBroker) -> None:
    broker.replica("gone-0", GONE)
    assert shut(broker, Policy(None, None, 0.2, 1)) == []
    assert shut(broker, Policy(None, None, 0.19, 0)) == [Gate.SHARE, Gate.COUNT]


def test_a_share_says_in_how_many_of_the_registered_log_dirs_it_was_counted(broker: PlanBroker) -> None:
    broker.replica("gone-0", GONE)
    elsewhere = DirectoryId.from_halves(77, 3)
    broker.builder.broker(1, None, False, [str(each) for each in (*broker.directory_ids, elsewhere)])
    with pytest.raises(GatesShutError) as shut_gates:
        broker.plan(PlanChoice(Policy(None, None, 0.1, None)))
    assert [each.gate for each in shut_gates.value.refusals] == [Gate.SHARE]
    assert "1 of 5 replicas" in str(shut_gates.value) and ", counted in 2 of its 3 log dirs, look" in str(
        shut_gates.value
    )


@pytest.mark.parametrize(
    ("before_ms", "gates"),
    [(CLOCK_SKEW_MS, []), (CLOCK_SKEW_MS - 500, [Gate.NEWER]), (0, [Gate.NEWER]), (-500, [Gate.NEWER])],
)
def test_a_replica_that_changed_so_shortly_before_the_metadata_that_clocks_do_not_tell_shuts_a_gate(
    broker: PlanBroker, before_ms: int, gates: list[Gate]
) -> None:
    as_of_ms = broker.clock.now_ms() - HOUR_MS
    written_at(broker.replica("orders-0", OLD), as_of_ms - before_ms)
    broker.wanted("orders", ORDERS, 0, nodes=(2, 3))
    assert shut(broker, states=[broker.state(timestamp_ms=as_of_ms)]) == gates


def test_the_refusal_of_what_changed_just_before_the_metadata_says_by_how_much_clocks_may_differ(
    broker: PlanBroker,
) -> None:
    as_of_ms = broker.clock.now_ms() - HOUR_MS
    written_at(broker.replica("orders-0", OLD), as_of_ms - 1000)
    broker.wanted("orders", ORDERS, 0, nodes=(2, 3))
    with pytest.raises(GatesShutError) as shut_gates:
        broker.plan(PlanChoice(LOOSE), states=[broker.state(timestamp_ms=as_of_ms)])
    (refusal,) = shut_gates.value.refusals
    assert "(made 2023-11-14 21:13:19 UTC, less than 2 s before, by which clocks may differ)" in refusal.reason


def test_a_replica_is_led_elsewhere_by_a_live_broker_in_sync_and_by_no_other(broker: PlanBroker) -> None:
    own, other = BrokerKey(CLUSTER, 1), BrokerKey(CLUSTER, 2)
    broker.wanted("orders", ORDERS, 0, isr=(2,))
    broker.wanted("orders", ORDERS, 1, isr=(2,), leader=-1)
    broker.wanted("orders", ORDERS, 2)
    asked = [(key, "orders", partition) for key in (own, other) for partition in range(3)]
    assert led_elsewhere({CLUSTER: broker.state()}, asked) == {(own, "orders", 0), (other, "orders", 2)}
    assert led_elsewhere({}, asked) == frozenset()


@pytest.mark.parametrize("is_live", [False, True])
def test_a_log_dir_with_strays_alone_holds_nothing_that_would_be_another_brokers(
    broker: PlanBroker, is_live: bool
) -> None:
    placed = (str(broker.directory_ids[1]), None)
    broker.wanted("orders", ORDERS, 0, directories=placed)
    for number in range(2):
        (broker.log_dirs[1] / f"clicks-{2 * number + 1}").rename(broker.log_dirs[0] / f"clicks-{2 * number + 1}")
    broker.stray("gone-0", GONE, disk=1)
    if is_live:
        broker.replica("gone-1", GONE, disk=1)
    try:
        broker.plan(PlanChoice(LOOSE, strays=True))
    except GatesShutError as error:
        assert [refusal.gate for refusal in error.refusals] == [Gate.LOG_DIR] and is_live
    else:
        assert not is_live


@pytest.mark.parametrize(("older_ms", "is_said"), [(0, False), (CLOCK_TOLERANCE_MS, False), (60_001, True)])
def test_metadata_went_back_where_its_time_is_older_than_clocks_may_differ(older_ms: int, is_said: bool) -> None:
    used = [UsedMetadata("describe", None, None, NOW_MS, NOW_MS)]
    identity = MetadataIdentity("describe", "/metadata", timestamp_ms=NOW_MS - older_ms)
    assert (went_back(identity, used) is not None) is is_said


@pytest.mark.parametrize(
    ("epoch", "offset", "said"), [(3, 400, ""), (2, 401, "its epoch is 2"), (3, 399, "its offset is 399")]
)
def test_metadata_went_back_where_its_epoch_or_its_offset_is_smaller(epoch: int, offset: int, said: str) -> None:
    used = [UsedMetadata("kraft", 3, 400, NOW_MS, NOW_MS)]
    found = went_back(MetadataIdentity("kraft", "/m", epoch=epoch, offset=offset, timestamp_ms=NOW_MS), used)
    assert (found or "").partition(",")[0] == said


def test_a_copy_of_a_log_dir_is_no_log_dir_of_the_broker(broker: PlanBroker) -> None:
    first, second = (path / "meta.properties" for path in broker.log_dirs)
    second.write_bytes(first.read_bytes())
    broker.replica("gone-0", GONE, disk=1)
    with pytest.raises(GatesShutError, match=f"is that of {broker.paths[0]}, so one of them is a copy") as error:
        broker.plan(PlanChoice(LOOSE))
    assert [refusal.gate for refusal in error.value.refusals] == [Gate.LOG_DIR]


def test_a_copy_is_told_where_nothing_of_it_would_be_staged(broker: PlanBroker) -> None:
    first, second = (path / "meta.properties" for path in broker.log_dirs)
    second.write_bytes(first.read_bytes())
    broker.replica("gone-0", GONE)
    assert shut(broker) == [Gate.LOG_DIR]


def test_a_copy_is_told_where_a_plan_only_brings_something_back(broker: PlanBroker) -> None:
    first, second = (path / "meta.properties" for path in broker.log_dirs)
    second.write_bytes(first.read_bytes())
    broker.wanted("back", ORDERS, 0)
    broker.stray("back-0", ORDERS)
    assert shut(broker) == [Gate.LOG_DIR]


@pytest.mark.parametrize(
    ("placed", "gone", "expected"),
    [(13, 8, [Gate.LOG_DIR]), (12, 8, [])],
)
def test_a_disk_with_few_of_its_own_replicas_may_be_another_brokers(
    broker: PlanBroker, placed: int, gone: int, expected: list[Gate]
) -> None:
    """Six of what lies there belong there, as partitions of ``__consumer_offsets`` do on many brokers' disks."""
    here = str(broker.directory_ids[1])
    broker.wanted("orders", ORDERS, *range(placed), directories=(here, None))
    for partition in range(6):
        broker.replica(f"orders-{partition}", disk=1)
    for partition in range(gone):
        broker.replica(f"gone-{partition}", GONE, disk=1)
    assert shut(broker) == expected


def test_of_a_few_replicas_most_may_be_stale_on_a_brokers_own_disk(broker: PlanBroker) -> None:
    here = str(broker.directory_ids[1])
    broker.wanted("orders", ORDERS, *range(9), directories=(here, None))
    broker.replica("orders-0", disk=1)
    for partition in range(3):
        broker.replica(f"gone-{partition}", GONE, disk=1)
    assert shut(broker) == []
