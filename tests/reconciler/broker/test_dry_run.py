"""A dry run answers as the broker then does, predicts every change and makes none."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.namespaces import carry_out, plan_create
from reconciler.broker import ActionResult, Broker, KnownEpochs, dry_run_request
from reconciler.plan import ActionKind
from reconciler.protocol import ControlRequest, StopPartition, StopReplicaRequest, StopTopic
from tests.logstore.engine import contents
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    OTHERS,
    UNSPECIFIED,
    A,
    B,
    Sim,
    leader_and_isr,
    state,
    stop_replica,
    topic,
)

NAMES, PARTITIONS = ("a", "b", "c"), (0, 1)
IDS = {name: tuple(TopicId(f"{name}{number}".encode() * 8) for number in range(3)) for name in NAMES}
AT = st.tuples(st.sampled_from(NAMES), st.sampled_from(PARTITIONS))
DAMAGED = b"version: 0\ntopic_id: ???"
HELD = st.sampled_from([0, 1, 2, None, DAMAGED])
ON_DISK = st.dictionaries(AT, st.tuples(HELD, st.sampled_from([0, 1])))
STAGED = st.dictionaries(AT, st.sampled_from([0, 1, 2]), max_size=3)


@st.composite
def requests(draw: st.DrawFn) -> ControlRequest:
    if draw(st.integers(0, 3)) == 0:
        stopped = draw(st.dictionaries(AT, st.booleans(), min_size=1))
        topics = tuple(
            StopTopic(
                name,
                draw(st.sampled_from([None, *IDS[name]])),
                tuple(StopPartition(number, -1, delete) for (each, number), delete in stopped.items() if each == name),
            )
            for name in dict.fromkeys(each for each, _ in stopped)
        )
        return StopReplicaRequest(9, 1, topics)
    kind = draw(st.sampled_from([FULL, FULL, INCREMENTAL, UNSPECIFIED]))
    named = draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0, 1, 2, None]), max_size=3))
    topics = []
    for name, which in named.items():
        # Sometimes a topic has the ID of another that lies here: it was renamed.
        owner = draw(st.sampled_from([name, name, name, "c"])) if "c" not in named else name
        here = draw(st.dictionaries(st.sampled_from(PARTITIONS), st.booleans(), min_size=1))
        states = [state(number, replicas=(1, *OTHERS) if mine else OTHERS) for number, mine in here.items()]
        topics.append(topic(name, None if which is None else IDS[owner][which], *states))
    ids = [each.topic_id for each in topics if each.topic_id is not None]
    return leader_and_isr(kind, *topics if len(ids) == len(set(ids)) else topics[:1])


def prepared(folder: Path, on_disk: dict, staged: dict, with_duplicate: bool) -> Sim:
    sim = Sim(folder)
    for (name, number), which in staged.items():
        sim.put(f"{name}-{number}", IDS[name][which])
    broker = sim.start()
    broker.handle(leader_and_isr(FULL))
    sim.stop()
    for (name, number), (which, disk) in on_disk.items():
        path = sim.put(f"{name}-{number}", IDS[name][which] if isinstance(which, int) else None, disk=disk)
        if isinstance(which, bytes):
            (path / "partition.metadata").write_bytes(which)
    if with_duplicate and on_disk:
        (name, number), (which, disk) = next(iter(on_disk.items()))
        sim.put(f"{name}-{number}", IDS[name][0], disk=1 - disk)
    return sim


def done(found: list[ActionResult]) -> list[ActionResult]:
    return [each for each in found if each.answer is None]


@settings(max_examples=150)
@given(ON_DISK, STAGED, st.booleans(), requests())
def test_a_dry_run_predicts_the_answer_and_the_changes(
    on_disk: dict, staged: dict, with_duplicate: bool, request: ControlRequest
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sim = prepared(Path(folder), on_disk, staged, with_duplicate)
        try:
            broker: Broker = sim.start()
            before = [contents(path) for path in sim.paths]
            answered, predicted = dry_run_request(broker.store, request, 1)
            assert [contents(path) for path in sim.paths] == before
            response, results = broker.handle_with_results(request)
            assert response == answered
            assert done(results) == done(predicted)
            assert [(each.action, each.answer) for each in results] == [
                (each.action, each.answer) for each in predicted
            ]
            for kind in {each.action.kind for each in done(results)}:
                event(kind.value)
        finally:
            sim.stop()


def test_a_namespace_that_was_never_created_is_foreseen(tmp_path: Path) -> None:
    sim = Sim(tmp_path, scheme="namespaced")
    broker = sim.start()
    request = leader_and_isr(FULL, topic("org:orders", A, 0))
    answered, predicted = dry_run_request(broker.store, request, 1)
    assert ([error.error for each in answered.topics for error in each.partitions], done(predicted)) == ([17], [])
    assert broker.handle(request) == answered
    carry_out(broker.store, plan_create(broker.store, "org"))
    answered, predicted = dry_run_request(broker.store, request, 1)
    assert [(each.action.kind, each.location) for each in predicted] == [(ActionKind.CREATE, "org/orders-0")]
    sim.stop()


def test_a_name_that_a_stranger_has_taken_is_foreseen(sim: Sim) -> None:
    for path in sim.paths:
        (path / "orders-0").write_text("a file")
    broker = sim.start()
    request = leader_and_isr(FULL, topic("orders", A, 0))
    answered, predicted = dry_run_request(broker.store, request, 1)
    assert (broker.handle(request), done(predicted)) == (answered, [])
    assert answered.topics[0].partitions[0].error != 0


@pytest.mark.parametrize("request_of", [lambda **more: leader_and_isr(FULL, **more), stop_replica])
def test_a_stale_epoch_changes_nothing_and_is_answered_for_the_whole(sim: Sim, request_of) -> None:
    sim.put("orders-0", B)
    broker = sim.start()
    assert dry_run_request(broker.store, request_of(broker_epoch=3), 1, KnownEpochs(broker_epoch=4))[0].error == 77
    assert dry_run_request(broker.store, request_of(controller_epoch=-1), 1)[0].error == 11
    assert broker.store.find(TopicPartition("orders", 0)) is not None


def test_a_real_brokers_disks_show_where_replicas_would_lie(tmp_path: Path) -> None:
    sim = Sim(tmp_path, disks=1)
    sim.put("orders-0", A)
    properties = sim.paths[0] / "meta.properties"
    properties.write_text("".join(line for line in properties.open() if not line.startswith("logstore.")))
    broker = sim.start()
    answered, predicted = dry_run_request(broker.store, leader_and_isr(FULL), 1)
    assert [each.location for each in predicted] == [f"../disk1.deleting/{A}_0"]
    assert (answered.error, (sim.paths[0] / "orders-0").is_dir()) == (0, True)
    sim.stop()
