"""Scenes of topics that are deleted, re-created and renamed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from reconciler.protocol import StopReplicaRequest
from reconciler.simulator.drills.controller.bench import AT, BROKERS, ControllerBench, expect
from reconciler.simulator.zookeeper import delete_path, topic_path
from reconciler.sources.zookeeper import encode_topic

_RETRIED_MS = 70_000
"""By then everything that failed once was tried again: the longest pause is a minute."""


def deleted(random: Random) -> None:
    """A topic with an ID is deleted at once; its replicas are asked for by the ID until they are gone."""
    bench = ControllerBench(random)
    topic_id, brokers = bench.topic_id(), random.sample(BROKERS, 3)
    bench.create_topic({0: brokers}, topic_id)
    failing = random.sample(brokers, random.randint(0, 2))
    for each in failing:
        bench.brokers[each].undeletable.add(AT)
    silent = bench.brokers[random.choice(brokers)]
    silent.silent = random.random() < 0.3
    bench.controller.delete_topics([AT.topic])
    expect("whether a deleted topic has a node", bench.exists(topic_path(AT.topic)), wanted=False)
    bench.settle(random.choice((0, 500, 3_000)))
    if random.random() < 0.5:
        bench.create_topic({0: brokers}, bench.topic_id())
    silent.silent = False
    bench.settle(40_000 if random.random() < 0.5 else 2_000)
    for each in failing:
        bench.brokers[each].undeletable.clear()
    bench.settle(_RETRIED_MS)
    for each in brokers:
        asked = bench.brokers[each].deletions(AT)
        expect(f"the IDs in the requests to broker {each} to delete the topic", set(asked), {topic_id})
    bench.expect_held()


def marked(random: Random) -> None:
    """A topic without an ID goes with its mark, and only when no replica is left, also under the next controller."""
    bench = ControllerBench(random, topic_ids=False)
    brokers = random.sample(BROKERS, random.randint(2, 3))
    bench.create_topic({0: brokers, 1: brokers[::-1]}, None)
    failing = random.sample(brokers, random.randint(0, 2))
    for each in failing:
        bench.brokers[each].undeletable.add(AT)
    steps = ("", f"delete topic {AT.topic}", f"delete topic {AT.topic}", f"unmark {AT.topic}", "send StopReplica")
    bench.crash_at = random.choice(steps)
    bench.admin.create(delete_path(AT.topic))
    bench.settle(3_000)
    left = [each for each in brokers if bench.brokers[each].held]
    if left:
        found = [bench.exists(path) for path in (topic_path(AT.topic), delete_path(AT.topic))]
        expect(f"whether topic and mark are there while brokers {left} have replicas", found, [True, True])
    for each in failing:
        bench.brokers[each].undeletable.clear()
    bench.settle(_RETRIED_MS)
    found = [bench.exists(path) for path in (topic_path(AT.topic), delete_path(AT.topic))]
    expect("whether topic and mark are there at the end", found, [False, False])
    bench.expect_held()


def fewer(random: Random) -> None:
    """A partition of a topic that stays is there until each replica is deleted, and a FULL request names it so long."""
    bench = ControllerBench(random)
    brokers, at = random.sample(BROKERS, 2), replace(AT, partition=1)
    bench.create_topic({0: brokers, 1: brokers}, bench.topic_id())
    broker = bench.brokers[random.choice(brokers)]
    broker.undeletable.add(at)
    for each in brokers:
        bench.brokers[each].leaving.add(at)
    work = bench.controller.work
    if work is not None:
        work.deletions.begin_partitions([at])
    bench.settle(random.choice((500, 2_000)))
    if random.random() < 0.7:
        bench.bounce(broker.node_id)
        bench.settle(random.choice((500, 2_000)))
    expect("the brokers of a partition that cannot be deleted", bench.assigned(at), tuple(brokers))
    expect("whether its broker has it", at in {each for each, _ in broker.held}, wanted=True)
    broker.undeletable.clear()
    bench.settle(_RETRIED_MS)
    expect("the brokers of a deleted partition", bench.assigned(at), ())
    bench.expect_held()


def recreated(random: Random) -> None:
    """A topic that was deleted and created again is another topic, whatever the controller knows of the former."""
    bench = ControllerBench(random)
    former, topic_id, brokers = bench.topic_id(), bench.topic_id(), random.sample(BROKERS, 3)
    bench.create_topic({0: brokers[:2]}, former)
    bench.admin.delete(topic_path(AT.topic), recursive=True)
    bench.admin.create(topic_path(AT.topic), encode_topic(topic_id, {0: brokers[1:]}))
    before = bench.admin.get(topic_path(AT.topic)).data
    if random.random() < 0.6:
        # The controller has not looked yet, and writes nothing of the former topic.
        bench.controller.reassign({AT: (brokers[0], brokers[2])})
        expect("the node of a re-created topic", bench.admin.get(topic_path(AT.topic)).data, before)
    bench.settle(2_000)
    bench.expect_held()
    expect("the leader of the re-created topic", bench.state().leader, brokers[1])
    for each in brokers[:2]:
        expect(f"the ID in broker {each}'s deletion", set(bench.brokers[each].deletions(AT)), {former})


def renamed(random: Random) -> None:
    """A topic that has another name and its ID keeps its replicas."""
    bench = ControllerBench(random)
    topic_id, brokers = bench.topic_id(), random.sample(BROKERS, 2)
    bench.create_topic({0: brokers}, topic_id)
    bench.admin.delete(topic_path(AT.topic), recursive=True)
    bench.create_topic({0: brokers}, topic_id, "invoices")
    bench.settle(2_000)
    for each in brokers:
        stops = [stop for stop in bench.brokers[each].of(StopReplicaRequest) if stop.topics[0].partitions[0].delete]
        expect(f"how often broker {each} is to delete a replica of a renamed topic", len(stops), 0)
    bench.expect_held()
