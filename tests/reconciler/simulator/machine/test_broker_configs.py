"""The configs that a running broker goes by: along the tiers, at once after a change, and after a restart.

# KIP37-5
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layout.topic import TopicPartition
from logstore import DELETE_DELAY, STALE_DELAY, KafkaError, Settings
from reconciler.simulator.kernel import ProduceRequest
from reconciler.simulator.machine.configs import BrokerConfigs
from reconciler.simulator.zookeeper import config_change, configs_path, topic_path
from reconciler.sources.zookeeper import encode_config, encode_topic
from tests.reconciler.simulator.machine.brokers import A, Brokers

LOCAL = TopicPartition("org:apache:orders", 0)


def configure(brokers: Brokers, name: str, *, notify: bool = True, **configs: str) -> None:
    """Write configs, with ``_`` for ``.`` in their names, and the notification, which another tool may leave out."""
    path, data = configs_path(name), encode_config({key.replace("_", "."): value for key, value in configs.items()})
    if brokers.session.find(path) is None:
        brokers.session.create(path, data, parents=True)
    else:
        brokers.session.set(path, data)
    if notify:
        brokers.session.multi([config_change(name)])
    brokers.run(10)


@pytest.fixture
def one(make_brokers: Callable[..., Brokers]) -> Brokers:
    """One broker that leads partition 0 of org:apache:orders."""
    brokers = make_brokers(count=1, scheme="namespaced", delays=Settings({"": {DELETE_DELAY: 7_000}}))
    brokers.session.create(topic_path(LOCAL.topic), encode_topic(A, {0: [1]}), parents=True)
    brokers.run(10)
    brokers.lead(1, at=LOCAL, to=(1,), isr=(1,))
    return brokers


def configs_of(brokers: Brokers) -> BrokerConfigs:
    return brokers.of[1].configs


def delays(brokers: Brokers) -> tuple[int, int]:
    settings = brokers.of[1].store.settings
    return settings.of(LOCAL.topic, DELETE_DELAY), settings.of(LOCAL.topic, STALE_DELAY)


def test_a_change_is_in_force_at_once_and_after_a_restart(one: Brokers) -> None:
    assert delays(one) == (7_000, 4 * 3_600_000)
    configure(one, "org", file_delete_delay_ms="1h", delete_stale_topic_delay_ms="5000")
    assert delays(one) == (3_600_000, 5_000)
    configure(one, "org:apache", file_delete_delay_ms="2h")
    assert delays(one) == (7_200_000, 5_000)
    configure(one, LOCAL.topic, file_delete_delay_ms="3000")
    assert delays(one) == (3_000, 5_000)
    configure(one, "org", notify=False, delete_stale_topic_delay_ms="6000")
    assert delays(one) == (3_000, 5_000), "without a notification nobody looks"
    one.crash(1)
    one.of[1].start()
    one.run()
    assert delays(one) == (3_000, 6_000)
    configure(one, LOCAL.topic)
    assert delays(one) == (7_200_000, 6_000)


def test_what_is_staged_from_then_on_is_due_by_the_new_delay(one: Brokers) -> None:
    configure(one, "org:apache", file_delete_delay_ms="2h")
    now_ms = one.of[1].store.clock.now_ms()
    one.of[1].store.stage([LOCAL], "DELETED", "", setting=DELETE_DELAY)
    (staged,) = one.of[1].store.staged()
    assert staged.due_ms is not None and staged.due_ms - now_ms == 7_200_000
    configure(one, "org:apache", file_delete_delay_ms="1s")
    assert one.of[1].store.staged()[0].due_ms == staged.due_ms


def test_the_configs_of_what_is_deleted_hold_until_its_last_replica_here_is_staged(one: Brokers) -> None:
    configure(one, "org:apache", file_delete_delay_ms="2h")
    configure(one, LOCAL.topic, delete_stale_topic_delay_ms="9000")
    for path in (topic_path("org:apache"), configs_path("org:apache")):
        one.session.delete(path, recursive=True)
    one.session.multi([config_change("org:apache")])
    one.run(10)
    assert delays(one) == (7_200_000, 9_000)
    one.of[1].store.stage([LOCAL], "DELETED", "", setting=DELETE_DELAY)
    one.session.multi([config_change("org:apache")])
    one.run(10)
    assert delays(one) == (7_000, 4 * 3_600_000)


def test_the_configs_of_a_topic_are_read_when_its_first_replica_comes(one: Brokers) -> None:
    one.session.create(topic_path("clicks"), encode_topic(A, {0: [1]}))
    configure(one, "clicks", notify=False, min_insync_replicas="2")
    assert configs_of(one).min_insync_replicas("clicks") == 1
    one.lead(1, at=TopicPartition("clicks", 0), topic_id=None, to=(1,), isr=(1,))
    assert configs_of(one).min_insync_replicas("clicks") == 2


def test_too_few_in_sync_by_the_namespace_take_no_record_until_it_asks_for_fewer(one: Brokers) -> None:
    def produced(value: str) -> object:
        answer = one.ask(1, ProduceRequest(LOCAL, A, value))
        return answer.offset if answer.error is KafkaError.NONE else answer.error

    assert produced("a") == 0
    configure(one, "org", min_insync_replicas="2")
    assert produced("b") is KafkaError.NOT_ENOUGH_REPLICAS
    configure(one, "org:apache", min_insync_replicas="1")
    assert produced("c") == 1


@pytest.mark.parametrize(
    ("configs", "wanted"),
    [
        ({}, 7 * 86_400_000),
        ({"retention_ms": "5"}, 5),
        ({"retention_ms": "-1"}, None),
        ({"retention_ms": "5", "cleanup_policy": "compact"}, None),
        ({"retention_ms": "5", "cleanup_policy": "compact, delete"}, 5),
        ({"retention_ms": "-2"}, 7 * 86_400_000),
        ({"retention_ms": "soon"}, 7 * 86_400_000),
    ],
)
def test_records_are_kept_as_long_as_the_nearest_config_says(
    one: Brokers, configs: dict[str, str], wanted: int | None
) -> None:
    configure(one, "org", **configs)
    assert configs_of(one).retention_ms(LOCAL.topic) == wanted


@pytest.mark.parametrize("value", ["0", "x", "", "-1", "1.5"])
def test_a_number_that_another_tool_wrote_and_nobody_can_read_counts_as_not_given(one: Brokers, value: str) -> None:
    configure(one, "org", min_insync_replicas="3")
    configure(one, "org:apache", min_insync_replicas=value, file_delete_delay_ms="never")
    assert configs_of(one).min_insync_replicas(LOCAL.topic) == 1
    assert delays(one)[0] == 7_000
