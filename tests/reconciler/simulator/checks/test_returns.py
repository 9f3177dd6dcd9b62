"""What comes live is restored where it lies staged, with its checkpoint entries, and has a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.topic import TopicPartition
from logstore.namespaces import rename_topic
from logstore.staging import Staged
from reconciler.simulator.checks.returns import former_names, lost_offsets, shared_directories, wrongly_made
from reconciler.simulator.cluster import Cluster, Member

AT = TopicPartition("orders", 0)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(seed=5) as made:
        made.create_topic("orders", assignment={0: [1]})
        yield made


def staged(member: Member) -> Staged:
    return member.broker.store.stage([AT], "NOT_ASSIGNED", "nobody wants it").staged[0]


def test_a_replica_that_is_made_beside_the_same_one_that_is_staged_is_told(cluster: Cluster) -> None:
    member = cluster.members[1]
    store = member.broker.store
    lies = staged(member)
    before = store.entries()
    store.create(AT, cluster.oracle.topic_id("orders"))
    assert list(wrongly_made(member, before, store.entries(), [])) == [
        f"broker-1 made orders-0 empty, and it lies whole in {lies.location}"
    ]
    assert lies.record is not None
    assert not list(wrongly_made(member, before, store.entries(), [lies.record])), "another copy of it came back"
    assert not list(wrongly_made(member, store.entries(), store.entries(), []))


def test_a_replica_that_is_restored_must_have_its_checkpoint_entries(cluster: Cluster) -> None:
    member = cluster.members[1]
    store = member.broker.store
    store.write_offsets(RECOVERY_POINT_CHECKPOINT, {AT: 7})
    lies = staged(member)
    assert lies.record is not None and lies.record.checkpoints[RECOVERY_POINT_CHECKPOINT] == 7
    back = store.restore(lies)
    assert not list(lost_offsets(member, store.entries(), [lies.record]))
    log_dir = next(each for each in store.log_dirs if each.path == back.log_dir)
    log_dir.checkpoints.take_out([AT])
    log_dir.checkpoints.write(log_dir.disk)
    told = list(lost_offsets(member, store.entries(), [lies.record]))
    assert len(told) == 1 and RECOVERY_POINT_CHECKPOINT in told[0]


def test_a_checkpoint_that_keeps_the_former_name_of_a_replica_is_told(cluster: Cluster) -> None:
    member = cluster.members[1]
    store = member.broker.store
    store.write_offsets(RECOVERY_POINT_CHECKPOINT, {AT: 7})
    before = dict(store.entries())
    rename_topic(store, "orders", "clicks")
    assert not list(former_names(member, before, store.entries()))
    for log_dir in store.log_dirs:
        file = Path(log_dir.path, RECOVERY_POINT_CHECKPOINT)
        if file.exists():
            file.write_bytes(file.read_bytes().replace(b"clicks", b"orders"))
    said = f"broker-1 renamed orders-0 to clicks, and {RECOVERY_POINT_CHECKPOINT} has its former name"
    assert list(former_names(member, before, store.entries())) == [said]


def test_two_replicas_in_one_directory_are_told(cluster: Cluster) -> None:
    member = cluster.members[1]
    live = dict(member.broker.store.entries())
    assert not list(shared_directories(member, live))
    live["clicks", 0] = live["orders", 0]
    assert list(shared_directories(member, live)) == ["broker-1 has 2 replicas in orders-0"]
