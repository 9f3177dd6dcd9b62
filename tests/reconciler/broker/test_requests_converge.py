"""For any disks and any order of requests of one metadata, a broker ends with the replicas that the metadata wants."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler.broker import Broker
from reconciler.protocol import LeaderAndIsrRequest, RequestType, TopicState
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    OTHERS,
    Sim,
    answer,
    leader_and_isr,
    state,
    topic,
)

NAMES, PARTITIONS = ("a", "b", "c"), (0, 1)
IDS = {name: tuple(TopicId(f"{name}{number}".encode() * 8) for number in range(3)) for name in NAMES}
"""Each topic may have had several IDs; no two topics ever have the same."""

AT = st.tuples(st.sampled_from(NAMES), st.sampled_from(PARTITIONS))
ON_DISK = st.dictionaries(AT, st.tuples(st.sampled_from([0, 1, 2, None]), st.sampled_from([0, 1])))
STAGED = st.dictionaries(AT, st.sampled_from([0, 1, 2]), max_size=2)
WANTED = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.sampled_from([0, 1, 2]), st.sets(st.sampled_from(PARTITIONS)))
)


def metadata(wanted: dict[str, tuple[int, set[int]]], epoch: int) -> list[TopicState]:
    """Every topic with all its partitions; partitions that are not wanted here are on other brokers."""
    return [
        topic(
            name,
            IDS[name][number],
            *(state(each, epoch, replicas=(1, *OTHERS) if each in here else OTHERS) for each in PARTITIONS),
        )
        for name, (number, here) in wanted.items()
    ]


def some_of(topics: list[TopicState], draw: st.DataObject) -> LeaderAndIsrRequest:
    """An INCREMENTAL request for some partitions of the same metadata."""
    chosen = []
    for each in topics:
        kept = tuple(one for one in each.partitions if draw.draw(st.booleans()))
        if kept:
            chosen.append(replace(each, partitions=kept))
    return leader_and_isr(INCREMENTAL, *chosen)


def prepared(folder: Path, on_disk: dict, staged: dict) -> Sim:
    """A broker with replicas of all kinds of topic IDs, live and staged."""
    sim = Sim(folder)
    for (name, number), which in staged.items():
        sim.put(f"{name}-{number}", IDS[name][which], data=b"old")
    answer(sim.start(), leader_and_isr(FULL))
    sim.stop()
    for (name, number), (which, disk) in on_disk.items():
        sim.put(f"{name}-{number}", None if which is None else IDS[name][which], disk=disk)
    return sim


@settings(max_examples=60)
@given(ON_DISK, STAGED, WANTED, st.data())
def test_full_and_incremental_requests_in_any_order_come_to_the_same(
    on_disk: dict, staged: dict, wanted: dict, data: st.DataObject
) -> None:
    # KIP516-5
    expected = {f"{name}-{each}": IDS[name][number] for name, (number, here) in wanted.items() for each in here}
    topics = metadata(wanted, 3)
    requests = [leader_and_isr(FULL, *topics), some_of(topics, data), some_of(topics, data)]
    order = data.draw(st.permutations(requests))
    before = {f"{name}-{number}" for name, number in (*on_disk, *staged)}
    with tempfile.TemporaryDirectory() as folder:
        sim = prepared(Path(folder), on_disk, staged)
        try:
            broker: Broker = sim.start()
            for each in order:
                answers = answer(broker, each)
                assert set(answers.values()) <= {0, 3, 11}
                if data.draw(st.booleans()):
                    broker = sim.start()
            assert sim.live() == expected
            # A replica that is no longer live is in the staging directory; nothing is gone.
            assert before <= set(sim.staged()) | set(sim.live())
            lying = sum(1 for path in sim.paths for _ in path.rglob("*.log"))
            assert lying == len(on_disk) + len(staged)
            for each in requests:
                assert set(answer(broker, each).values()) <= {3, 11, 0}
            assert sim.live() == expected
        finally:
            sim.stop()


@settings(max_examples=25)
@given(ON_DISK, WANTED, st.sampled_from([RequestType.UNSPECIFIED, INCREMENTAL]))
def test_only_a_full_request_ever_takes_away_what_it_does_not_name(
    on_disk: dict, wanted: dict, kind: RequestType
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sim = prepared(Path(folder), on_disk, {})
        try:
            broker = sim.start()
            before = sim.live()
            answer(broker, leader_and_isr(kind, *metadata(wanted, 3)))
            for name, topic_id in before.items():
                if name[0] not in wanted:
                    assert sim.live()[name] == topic_id
            if kind is RequestType.UNSPECIFIED:
                assert sim.staged() == {}
                assert before.keys() <= sim.live().keys()
        finally:
            sim.stop()
