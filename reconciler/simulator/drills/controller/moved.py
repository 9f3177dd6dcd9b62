"""Scenes of partitions that are reassigned to other brokers."""

from __future__ import annotations

from random import Random

from logstore import KafkaError
from reconciler.simulator.drills.controller.bench import AT, BROKERS, ControllerBench, expect

_RETRIED_MS = 70_000


def reassigned(random: Random) -> None:
    """Old replicas are dropped when the whole target is in sync, and not before; the next controller goes on."""
    bench = ControllerBench(random)
    old, new = _drawn(random)
    bench.create_topic({0: old}, bench.topic_id())
    expect("the answer to a reassignment", bench.controller.reassign({AT: tuple(new)}), {AT: KafkaError.NONE})
    bench.settle()
    if random.random() < 0.4:
        bench.succeed()
    joined = list(old)
    for each in random.sample(new, len(new)):
        expect("the brokers of a partition on its way", sorted(bench.assigned()), sorted({*old, *new}))
        bench.expect_held()
        joined.append(each)
        bench.alter_isr(joined)
    expect("the brokers of a reassigned partition", bench.assigned(), tuple(new))
    if random.random() < 0.4:
        bench.succeed()
    bench.expect_held()
    state = bench.state()
    expect("the in-sync set of a reassigned partition", sorted(state.isr), sorted(new))
    expect("whether a replica that stays leads", state.leader in new, wanted=True)


def dropped(random: Random) -> None:
    """A replica that was dropped and could not be deleted is asked for again, unless it is assigned again."""
    bench = ControllerBench(random)
    brokers = random.sample(BROKERS, random.randint(2, 3))
    bench.create_topic({0: brokers}, bench.topic_id())
    which = random.choice(brokers)
    broker, left = bench.brokers[which], tuple(each for each in brokers if each != which)
    broker.undeletable.add(AT)
    bench.controller.reassign({AT: left})
    bench.settle(random.choice((500, 4_000)))
    again = random.random() < 0.5
    if again:
        asked = len(broker.deletions(AT))
        bench.controller.reassign({AT: (*left, which)})
        bench.settle()
    broker.undeletable.clear()
    bench.settle(_RETRIED_MS)
    if again:
        expect("how often a replica was to be deleted that is assigned again", len(broker.deletions(AT)), asked)
        bench.alter_isr((*bench.state().isr, which))
    bench.expect_held()


def cancelled(random: Random) -> None:
    """A reassignment that is cancelled drops what it added, except where only that is in sync."""
    bench = ControllerBench(random)
    first, second, third = random.sample(BROKERS, 3)
    bench.create_topic({0: [first]}, bench.topic_id())
    bench.controller.reassign({AT: (second, third)})
    bench.settle()
    alone = random.random() < 0.6
    if alone:
        bench.alter_isr((first, second))
        bench.kill(first)
        bench.settle()
        expect("who is in sync", bench.state().isr, (second,))
    before = bench.dump()
    answer = bench.controller.reassign({AT: None})[AT]
    bench.settle()
    if alone:
        expect("the answer to what would drop every replica in sync", answer, KafkaError.INVALID_REPLICA_ASSIGNMENT)
        expect("ZooKeeper after a refusal", bench.dump(), before)
        return
    expect("the answer to a cancellation", answer, KafkaError.NONE)
    expect("the brokers after a cancellation", bench.assigned(), (first,))
    bench.expect_held()


def _drawn(random: Random) -> tuple[list[int], list[int]]:
    """Draw the brokers of a partition, and two others to which it is to move."""
    brokers = random.sample(BROKERS, 4)
    count = random.randint(1, 2)
    return brokers[:count], brokers[2:]
