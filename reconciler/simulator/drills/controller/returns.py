"""Scenes of brokers that come back, and of their failed disks."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, RequestType
from reconciler.simulator.drills.controller.bench import AT, BROKERS, HOSTS, ControllerBench, expect
from reconciler.simulator.zookeeper import LOG_DIR_EVENTS, topic_path
from reconciler.sources.zookeeper import encode_log_dir_event, encode_topic


def returned(random: Random) -> None:
    """A broker that comes back gets one FULL request with all its partitions, and so loses what it is not to have."""
    bench = ControllerBench(random)
    which, *others = random.sample(BROKERS, 3)
    broker, has_one = bench.brokers[which], random.random() < 0.6
    bench.create_topic({0: [others[0], which], 1: [which, others[1]]} if has_one else {0: others}, bench.topic_id())
    bench.create_topic({0: [which, others[0]]}, bench.topic_id(), "gone")
    bench.kill(which)
    bench.settle()
    bench.controller.delete_topics(["gone"])
    bench.settle()
    broker.received.clear()
    if random.random() < 0.5:
        bench.succeed()
    bench.register(which)
    if random.random() < 0.5:
        # It is registered before it listens.
        broker.listen(is_up=False)
        bench.settle(random.choice((50, 1_000)))
        broker.listen()
    bench.settle(5_000)
    sent = broker.of(LeaderAndIsrRequest)
    expect(
        "the type of the first request to a broker that came back", [each.type for each in sent[:1]], [RequestType.FULL]
    )
    expect("how many of them are FULL", sum(each.type is RequestType.FULL for each in sent), 1)
    bench.expect_held()


def unreadable(random: Random) -> None:
    """While the node of a topic cannot be read, no FULL request is sent, and nobody loses a replica."""
    bench = ControllerBench(random)
    brokers = random.sample(BROKERS, 2)
    bench.create_topic({0: brokers}, bench.topic_id())
    bench.create_topic({0: brokers[::-1]}, bench.topic_id(), "torn")
    held = {each: set(bench.brokers[each].held) for each in brokers}
    bench.admin.set(topic_path("torn"), random.choice((b"{torn", b"[1]")))
    bench.settle()
    bench.succeed()
    if random.random() < 0.5:
        bench.bounce(random.choice(brokers))
        bench.settle()
    for each in brokers:
        expect(f"what broker {each} holds", bench.brokers[each].held, held[each])


def restarted(random: Random) -> None:
    """A broker that was restarted unseen is out of sync, and an answer of its earlier life changes nothing."""
    bench = ControllerBench(random)
    brokers = random.sample(BROKERS, 3)
    bench.create_topic({0: brokers, 1: brokers}, bench.topic_id())
    which = random.choice(brokers)
    broker, epoch = bench.brokers[which], bench.state().leader_epoch
    without = random.random() < 0.4
    if without:
        for host, each in bench.controllers.items():
            each.stop()
            bench.sessions[host].expire()
        bench.bounce(which)
        bench.start_controller(HOSTS[0])
    else:
        # A request is answered after the restart, while others wait behind it.
        broker.late_ms = random.choice((0, 200, 400, 400))
        bench.admin.create(topic_path("late"), encode_topic(bench.topic_id(), {0: brokers}))
        bench.settle(20)
        bench.bounce(which)
    bench.settle(5_000)
    left = [each for each in brokers if each != which]
    state = bench.state()
    expect("who is in sync after a restart", list(state.isr), left)
    expect("who leads after a restart", state.leader, left[0])
    expect("whether there is a new leader epoch", state.leader_epoch > epoch, wanted=True)
    bench.alter_isr((*state.isr, which))
    bench.expect_held()


def failed(random: Random) -> None:
    """A failed disk is asked about; its replicas are out of sync, and join no set before they are back."""
    bench = ControllerBench(random)
    brokers = random.sample(BROKERS, 3)
    bench.create_topic({0: brokers, 1: brokers}, bench.topic_id())
    which, other = random.choice(brokers), replace(AT, partition=1)
    broker, left = bench.brokers[which], [each for each in brokers if each != which]
    broker.failed.add(AT)
    broker.received.clear()
    bench.admin.create(f"{LOG_DIR_EVENTS}/log_dir_event_", encode_log_dir_event(which), sequence=True)
    bench.settle()
    expect("who is in sync beside a failed disk", list(bench.state().isr), left)
    expect("who leads beside a failed disk", bench.state().leader, left[0])
    expect("who is in sync on the other disks", list(bench.state(other).isr), brokers)
    refused = bench.ask(bench.isr_request((*left, which)))
    expect("the answer to a set with a replica on a failed disk", refused, KafkaError.INVALID_REQUEST)
    broker.failed.clear()
    broker.silent = random.random() < 0.6
    bench.bounce(which)
    bench.settle()
    # Nobody has said that the disk failed since the restart.
    bench.alter_isr((*bench.state().isr, which))
    broker.silent = False
