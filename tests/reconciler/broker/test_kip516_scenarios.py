"""The scenarios of KIP-516, *Immediate delete scenarios*, end to end: brokers, real directories, bytes on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.clock import ManualClock
from logstore.purge import PurgeRules, purge
from logstore.staging import list_staged
from reconciler.broker import Broker
from reconciler.protocol import (
    KIP516,
    LeaderAndIsrRequest,
    RequestType,
    TopicState,
    Version,
    decode_leader_and_isr,
    decode_request,
    encode_message,
)
from reconciler.protocol.messages import encode_request
from tests.logstore.engine import HOUR_MS, NOW_MS, formatted, opened
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    A,
    B,
    leader_and_isr,
    state,
    stop_replica,
    topic,
)

A_P0 = TopicPartition("A", 0)


class Node:
    """One broker of a small cluster, and its log dir."""

    def __init__(self, folder: Path, node_id: int, clock: ManualClock) -> None:
        self.path = formatted(folder / f"broker{node_id}", node_id, node_id=node_id)
        self.store = opened(self.path, clock=clock)
        self.broker = Broker(self.store)

    def receive(self, request: LeaderAndIsrRequest) -> list[int]:
        """Handle a request that came over a connection."""
        _, read = decode_request(encode_request(request, 7))
        response = self.broker.handle(read)
        return [error.error for each in response.topics for error in each.partitions]

    def names(self) -> dict[str, list[str]]:
        """The live and staged replicas in the log dir."""
        staged = self.path / "deleting"
        return {
            "live": sorted(each.name for each in self.path.glob("*-*") if each.is_dir()),
            "staged": sorted(each.name for each in staged.iterdir() if each.is_dir()),
        }


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def nodes(tmp_path: Path, clock: ManualClock) -> Iterator[list[Node]]:
    made = [Node(tmp_path, node_id, clock) for node_id in (1, 2)]
    yield made
    for node in made:
        node.store.close()


def on_both(topic_id: TopicId) -> TopicState:
    """Partition 0 of topic A on brokers 1 and 2, led by 1."""
    return topic("A", topic_id, state(0, leader=1, replicas=(1, 2)))


def test_stale_reads(nodes: list[Node]) -> None:
    # KIP516-8
    b1, b2 = nodes
    # 1. B1 is a leader for A_p0_id0; B2 follows.
    for node in nodes:
        assert node.receive(leader_and_isr(FULL, on_both(A))) == [0]
    (b1.path / "A-0" / "00000000000000000000.log").write_bytes(b"read me not")
    # 2. and 3. A id0 is deleted, and A id1 is created.
    # 4. B1 has received neither a LeaderAndIsr nor a StopReplica; 5. B2 has, and starts fetching from B1.
    assert b2.receive(leader_and_isr(INCREMENTAL, on_both(B))) == [0]
    fetched_for = b2.store.get(A_P0).topic_id
    assert fetched_for == B
    assert b1.broker.fence(A_P0, fetched_for) is KafkaError.INCONSISTENT_TOPIC_ID
    # A reader of the old topic is refused by the follower, and one that knows no IDs goes on as before.
    assert b2.broker.fence(A_P0, A) is KafkaError.INCONSISTENT_TOPIC_ID
    assert b1.broker.fence(A_P0) is KafkaError.NONE
    # When B1 hears of it too, the fetch goes through, and finds nothing of the old data.
    assert b1.receive(leader_and_isr(INCREMENTAL, on_both(B))) == [0]
    assert b1.broker.fence(A_P0, fetched_for) is KafkaError.NONE
    assert not list((b1.path / "A-0").glob("*.log"))
    # KIP516-8: an ID that no replica here has
    assert b1.broker.fence(TopicPartition("C", 0), A) is KafkaError.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("kind", [FULL, INCREMENTAL])
def test_stale_state(nodes: list[Node], clock: ManualClock, kind: RequestType) -> None:
    # KIP516-5, KIP516-6
    b1 = nodes[0]
    # 1. B1 is a replica for A_p0_id0.
    b1.receive(leader_and_isr(FULL, on_both(A)))
    (b1.path / "A-0" / "00000000000000000000.log").write_bytes(b"id0")
    # 2. A id0 is deleted, and 3. B1 receives no StopReplica; 4. A id1 is created.
    # 5. B1 receives a LeaderAndIsr with A_p0_id1.
    assert b1.receive(leader_and_isr(kind, on_both(B))) == [0]
    assert b1.names() == {"live": ["A-0"], "staged": [f"{A}_0"]}
    assert b1.store.get(A_P0).topic_id == B
    assert (b1.path / "deleting" / f"{A}_0" / "00000000000000000000.log").read_bytes() == b"id0"
    (staged,) = list_staged(b1.store.log_dirs[0])
    assert staged.due_ms == NOW_MS + 4 * HOUR_MS
    clock.advance(4 * HOUR_MS)
    purge(b1.store.log_dirs, PurgeRules(clock.now_ms()))
    assert b1.names() == {"live": ["A-0"], "staged": []}


def test_a_controller_that_gave_up_on_a_delete_is_helped_by_its_next_full_request(nodes: list[Node]) -> None:
    # KIP516-10, the broker's part: "any stale partitions will be reconciled ... upon the initial LeaderAndIsrRequest"
    b1 = nodes[0]
    b1.receive(leader_and_isr(FULL, topic("A", A, 0), topic("B", B, 0)))
    assert b1.receive(leader_and_isr(FULL, topic("B", B, state(0, 1)), controller_epoch=2)) == [0]
    assert b1.names() == {"live": ["B-0"], "staged": [f"{A}_0"]}
    # An old controller that is still at it is not heard.
    assert b1.broker.handle(leader_and_isr(FULL, topic("A", A, 0), controller_epoch=1)).error == 11
    assert b1.broker.handle(stop_replica("B", controller_epoch=1)).error == 11
    assert b1.names()["live"] == ["B-0"]


@pytest.mark.parametrize("version", [5, 6, 7, KIP516])
def test_every_form_that_has_a_type_does_the_same(nodes: list[Node], version: Version) -> None:
    # KIP516-4
    b1 = nodes[0]
    b1.receive(leader_and_isr(FULL, on_both(A)))
    sent = encode_message(leader_and_isr(FULL, on_both(B)), version)
    response = b1.broker.handle(decode_leader_and_isr(sent, version))
    assert response.topics[0].topic_id == B
    assert b1.names() == {"live": ["A-0"], "staged": [f"{A}_0"]}


@pytest.mark.parametrize("version", range(5))
def test_no_form_without_a_type_stages_anything(nodes: list[Node], version: int) -> None:
    # KIP516-5: "treated in a way that allows for backwards compatibility"
    b1 = nodes[0]
    b1.receive(leader_and_isr(FULL, topic("A", A, 0), topic("B", B, 0)))
    old = decode_leader_and_isr(encode_message(leader_and_isr(RequestType(0), on_both(B)), version), version)
    assert [error.error for each in b1.broker.handle(old).topics for error in each.partitions] == [11]
    assert b1.names() == {"live": ["A-0", "B-0"], "staged": []}
