"""One contract for both stores that requests are handled over: a store on disks, and the store of a dry run."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import InconsistentTopicIdError, KafkaError, NameTakenError, UnknownReplicaError
from logstore.store import LogStore, Replica
from reconciler.broker.dry_run import DryRunStore
from reconciler.broker.replica_store import ReplicaStore
from tests.reconciler.protocol.control_requests import A, B, Sim

ORDERS, BARE, NEW = TopicPartition("orders", 0), TopicPartition("bare", 0), TopicPartition("new", 3)
REASON = ("STALE_ID", "why")
METHODS = [name for name, each in vars(ReplicaStore).items() if not name.startswith("_") and callable(each)]


@pytest.fixture(params=["store", "dry run"])
def store(request: pytest.FixtureRequest, sim: Sim) -> ReplicaStore:
    """Two replicas, one of them without an ID, as each implementation has them."""
    sim.put("orders-0", A)
    sim.put("bare-0", None, disk=1)
    opened = sim.start().store
    return opened if request.param == "store" else DryRunStore(opened)


def live(store: ReplicaStore) -> dict[str, str | None]:
    return {f"{topic}-{number}": entry.topic_id for (topic, number), entry in store.entries().items()}


@pytest.mark.parametrize("name", METHODS)
def test_both_take_the_same_arguments(name: str) -> None:
    def parameters(kind: type) -> list[tuple[str, object]]:
        return [(each.name, each.kind) for each in inspect.signature(getattr(kind, name)).parameters.values()]

    assert parameters(LogStore) == parameters(DryRunStore) == parameters(ReplicaStore)


def test_what_is_staged_is_not_live_any_more_and_comes_back(store: ReplicaStore) -> None:
    outcome = store.stage_each({ORDERS: REASON, NEW: REASON})
    assert [each.partition for each in outcome.staged] == [ORDERS]
    assert [each.candidate.partition for each in outcome.refused] == [NEW]
    assert (live(store), store.topic_of(A)) == ({"bare-0": None}, None)
    (staged,) = store.staged()
    assert (staged.partition, staged.topic_id, staged.record and staged.record.verdict) == (ORDERS, A, "STALE_ID")
    assert store.restore(staged).partition == ORDERS
    assert (live(store), store.staged(), store.topic_of(A)) == ({"bare-0": None, "orders-0": str(A)}, [], "orders")


def test_a_staged_replica_does_not_come_back_over_a_live_one(store: ReplicaStore) -> None:
    (staged,) = store.stage_each({ORDERS: REASON}).staged
    assert isinstance(store.create_many({ORDERS: B})[ORDERS], Replica)
    with pytest.raises(NameTakenError):
        store.restore(staged)
    assert (live(store)["orders-0"], len(store.staged())) == (str(B), 1)


def test_new_replicas_are_made_where_nothing_is_live(store: ReplicaStore) -> None:
    wanted: dict[TopicPartition, TopicId | None] = {ORDERS: B, NEW: B, TopicPartition("a/b", 0): B}
    made = store.create_many(wanted)
    assert {str(at): isinstance(each, Replica) for at, each in made.items()} == {
        "orders-0": False, "new-3": True, "a/b-0": False
    }  # fmt: skip
    assert live(store) == {"orders-0": str(A), "bare-0": None, "new-3": str(B)}


def test_an_id_is_written_once_and_never_over_another(store: ReplicaStore) -> None:
    for _ in range(2):
        found = store.assign_topic_ids(dict.fromkeys((BARE, ORDERS, NEW), B))
        given = found.pop(BARE)
        assert isinstance(given, Replica)
        assert given.topic_id == B
        assert {at: type(each) for at, each in found.items()} == {
            ORDERS: InconsistentTopicIdError,
            NEW: UnknownReplicaError,
        }
    assert live(store) == {"orders-0": str(A), "bare-0": str(B)}


@pytest.mark.parametrize(
    ("at", "topic_id", "expected"),
    [
        (ORDERS, A, KafkaError.NONE),
        (ORDERS, B, KafkaError.INCONSISTENT_TOPIC_ID),
        (NEW, A, KafkaError.UNKNOWN_TOPIC_ID),
        (NEW, None, KafkaError.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_requests_are_fenced_alike(
    store: ReplicaStore, at: TopicPartition, topic_id: TopicId | None, expected: KafkaError
) -> None:
    fence: Callable[..., KafkaError] = store.fence
    assert fence(at, topic_id) is expected


def test_good_disks_have_no_offline_log_dir_and_no_duplicate(store: ReplicaStore) -> None:
    assert (dict(store.offline), list(store.duplicates)) == ({}, [])
