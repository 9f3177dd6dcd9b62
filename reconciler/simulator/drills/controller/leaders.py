"""Scenes of in-sync sets and elections, and of a controller that was replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from logstore import KafkaError
from reconciler.simulator.controller import Controller
from reconciler.simulator.drills.controller.bench import AT, BROKERS, ControllerBench, expect
from reconciler.simulator.zookeeper import CONTROLLER, state_path
from reconciler.sources.zookeeper import encode_state


def in_sync(random: Random) -> None:
    """A leader that knows the newest state changes its in-sync set; any other request is refused and writes nothing."""
    bench = ControllerBench(random)
    brokers = random.sample(BROKERS, 3)
    bench.create_topic({0: brokers}, bench.topic_id())
    stranger = next(each for each in BROKERS if each not in brokers)
    bench.alter_isr(brokers[:2])
    good = bench.isr_request(random.choice((brokers, brokers[:1])))
    wrong = [
        (replace(good, broker_epoch=good.broker_epoch - 1), KafkaError.STALE_BROKER_EPOCH),
        (replace(good, partition_epoch=good.partition_epoch - 1), KafkaError.INVALID_UPDATE_VERSION),
        (replace(good, leader_epoch=good.leader_epoch - 1), KafkaError.FENCED_LEADER_EPOCH),
        (replace(good, leader_epoch=good.leader_epoch + 1), KafkaError.UNKNOWN_LEADER_EPOCH),
        (replace(good, topic_id=bench.topic_id()), KafkaError.INCONSISTENT_TOPIC_ID),
        (replace(good, isr=(*brokers, stranger)), KafkaError.INVALID_REQUEST),
        (replace(good, isr=tuple(brokers[1:])), KafkaError.INVALID_REQUEST),
    ]
    before = bench.dump()
    for request, error in random.sample(wrong, len(wrong)):
        expect(f"the answer to {request}", bench.ask(request), error)
        expect("ZooKeeper after a refusal", bench.dump(), before)
    expect("the answer to a good request", bench.ask(good), KafkaError.NONE)
    expect("the set in force", bench.state().isr, good.isr)


def elected(random: Random) -> None:
    """The first live replica in sync leads; one out of sync only where that is allowed."""
    unclean = random.random() < 0.3
    bench = ControllerBench(random, unclean=unclean)
    brokers = random.sample(BROKERS, 3)
    bench.create_topic({0: brokers}, bench.topic_id())
    out = random.choice(brokers[1:])
    isr = [each for each in brokers if each != out]
    bench.alter_isr(isr)
    bench.kill(brokers[0])
    bench.settle()
    (second,) = isr[1:]
    expect("leader and set after the first one went", _led(bench), (second, (second,)))
    bench.register(brokers[0])
    bench.settle()
    answer = bench.controller.elect_preferred([AT])[AT]
    expect("the answer to a preferred leader out of sync", answer, KafkaError.PREFERRED_LEADER_NOT_AVAILABLE)
    expect("leader and set after it", _led(bench), (second, (second,)))
    bench.kill(second)
    bench.settle()
    wanted = (brokers[0], (brokers[0],)) if unclean else (-1, (second,))
    expect("leader and set without a replica in sync", _led(bench), wanted)
    bench.register(second)
    bench.settle()
    if not unclean:
        expect("leader and set when the last one in sync is back", _led(bench), (second, (second,)))


def stopping(random: Random) -> None:
    """A broker that is about to stop leads nothing that another in sync can lead, and gets no lead."""
    bench = ControllerBench(random)
    brokers = random.sample(BROKERS, 3)
    bench.create_topic({0: brokers}, bench.topic_id())
    first, second, third = brokers
    error, left = bench.controller.prepare_shutdown(second, bench.brokers[second].epoch)
    expect("the answer to a broker that is about to stop", (error, left), (KafkaError.NONE, []))
    bench.settle()
    expect("leader and set after it", _led(bench), (first, (first, third)))
    if random.random() < 0.5:
        bench.alter_isr((first,))
        _, left = bench.controller.prepare_shutdown(first, bench.brokers[first].epoch)
        expect("what a stopping broker still leads", left, [AT])
    else:
        _, left = bench.controller.prepare_shutdown(first, bench.brokers[first].epoch)
        expect("what a stopping broker still leads", left, [])
        bench.settle()
        expect("leader and set after both", _led(bench), (third, (third,)))


def fenced(random: Random) -> None:
    """A controller that was replaced and does not know it writes nothing, and resigns at its first write."""
    bench = ControllerBench(random)
    brokers = random.sample(BROKERS, 3)
    bench.create_topic({0: brokers[:2]}, bench.topic_id())
    former = bench.controller
    request = bench.isr_request(brokers[:1])
    if random.random() < 0.5:
        other = next(each for each in bench.controllers.values() if each is not former)
        bench.admin.delete(CONTROLLER)
        other.start(bench.sessions[other.node_id])
    else:
        # It is written by a controller of whose election no other trace is left.
        state = encode_state(brokers[1], request.leader_epoch + 1, brokers[:2], former.epoch + 1)
        bench.admin.set(state_path(AT), state)
    before = bench.dump()
    acts: list[Callable[[Controller], object]] = [lambda controller: bench.ask(request, controller)]
    if bench.state().leader == brokers[0]:
        acts += [
            lambda controller: controller.delete_topics([AT.topic]),
            lambda controller: controller.reassign({AT: (brokers[2],)}),
        ]
    random.choice(acts)(former)
    expect("ZooKeeper after a fenced controller wrote", bench.dump(), before)
    expect("whether a fenced controller is active", former.active, wanted=False)


def _led(bench: ControllerBench) -> tuple[int, tuple[int, ...]]:
    state = bench.state()
    return state.leader, state.isr
