"""Drills what is asked of a request that a person sends: its gates, and whether a newer one was carried out before.

A history sends its requests by a controller, which no gate holds. Here a request, what it would change and the journals
of earlier ones are drawn, and each gate of requests is judged by a rule of its own below. The gates that plans have too
are drilled with those (``judgement``). Source: DESIGN §4, §6.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.ours import RunJournal
from reconciler.broker import ActionResult, HandSentRequest, last_carried_out, shut_gates
from reconciler.plan import Action, ActionKind, History, Policy
from reconciler.protocol import LeaderAndIsrRequest, PartitionState, RequestType, TopicState
from reconciler.simulator.checks import BrokenInvariantError

_STEPS_PER_REQUEST: Final = 40
"""Steps of a drill for each request of a person."""

_NODE_ID: Final = 1
_TOPICS: Final = ("orders", "clicks", "org:hits", "__consumer_offsets", "org:__transaction_state")
_INTERNAL: Final = _TOPICS[3:]
_ID: Final = TopicId(b"\7" * 16)
_VERDICTS: Final = ("UNKNOWN_TOPIC", "NOT_ASSIGNED", "STALE_ID", "MISSING")
_LOG_DIRS: Final = ("/d1", "/d2")
_JUDGED: Final = ("cluster", "epoch", "create", "sole-copy", "no-id", "internal")
"""The gates that are judged here; the others are drilled with plans."""

_OVERRIDE: Final = re.compile(r"\(override: --allow ([a-z-]+)\)\Z")
_NO_NUMBERS: Final = Policy(None, None, None, None)


def drill_by_hand(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill requests by hand as a seed says; ``reach`` counts what they come to.

    Raises:
        BrokenInvariantError: a gate is shut or open and should not be, or an older request is not refused.
    """
    random = Random(f"{seed}/drill by hand")
    for _ in range(steps // _STEPS_PER_REQUEST):
        _gates(random, reach)
        _earlier(random, reach)


@dataclass(frozen=True, slots=True)
class _Change:
    """What a dry run would do with one replica, as plain values."""

    kind: ActionKind
    topic: str
    partition: int
    has_id: bool
    verdict: str
    log_dir: str

    def result(self) -> ActionResult:
        topic_id, name = str(_ID) if self.has_id else None, f"{self.topic.rpartition(':')[2]}-{self.partition}"
        action = Action(
            self.kind, self.log_dir, name, self.topic, self.partition, topic_id, None, self.verdict, "a drill"
        )
        return ActionResult(action, self.log_dir, name)


def _gates(random: Random, reach: Callable[[str], None]) -> None:
    named = random.sample(_TOPICS, random.randint(1, len(_TOPICS)))
    topics = tuple(
        TopicState(topic, _ID if topic == "orders" else None, tuple(_state(random, each) for each in (0, 1)))
        for topic in named
    )
    states = {(topic.topic, each.partition): each for topic in topics for each in topic.partitions}
    request = LeaderAndIsrRequest(7, 3, topics, 5, random.choice(tuple(RequestType)))
    changes = [_change(random) for _ in range(random.choice((0, 1, 1, 2)))]
    sent = HandSentRequest(
        request,
        *("r.json", _NODE_ID, "broker 1", 100),
        [each.result() for each in changes],
        *({}, frozenset(each for each in _LOG_DIRS if random.random() < 0.3), 0),
        cluster=random.choice((None, "C", "C", "D")),
        own_cluster=random.choice((None, "C", "C", "C")),
        older=random.choice(((), (), ("orders-0 (epoch 3, and 5 here)",))),
    )
    allowed = [each for each in _JUDGED if random.random() < 0.15]
    wanted = {each for each in _shut(sent, changes, states) if each not in allowed}
    said = shut_gates(sent, _NO_NUMBERS, allowed)
    found = {match[1] for each in said if (match := _OVERRIDE.search(each)) and match[1] in _JUDGED}
    if found != wanted:
        raise BrokenInvariantError(f"of {sent}, {sorted(found)} are shut, and {sorted(wanted)} should be: {said}")
    for each in wanted:
        reach(f"drill_by_hand {each}")


def _state(random: Random, number: int) -> PartitionState:
    replicas = tuple(random.sample((1, 2, 3, 4), random.randint(1, 3)))
    isr = tuple(random.sample((1, 2, 3, 4), random.randint(0, 2)))  # a controller's are among the replicas
    return PartitionState(number, 3, -1, 4, isr, 0, replicas, is_new=random.random() < 0.5)


def _change(random: Random) -> _Change:
    kind = random.choice((ActionKind.STAGE, ActionKind.STAGE, ActionKind.CREATE, ActionKind.RESTORE))
    values = random.choice(_TOPICS), random.randrange(2), random.random() < 0.5
    return _Change(kind, *values, random.choice(_VERDICTS), random.choice(_LOG_DIRS))


def _shut(
    sent: HandSentRequest, changes: Sequence[_Change], states: dict[tuple[str, int], PartitionState]
) -> Iterator[str]:
    """The gates that are to be shut, by what each of them is for."""
    if sent.cluster is None or sent.cluster != sent.own_cluster:
        yield "cluster"
    for each in changes:
        state = states.get((each.topic, each.partition))
        if each.kind is ActionKind.CREATE:
            is_taken_to_be_here = state is not None and not state.is_new and each.verdict == "MISSING"
            if each.log_dir in sent.foreign or is_taken_to_be_here:
                yield "create"
        elif each.kind is ActionKind.STAGE:
            yield from _shut_to_staging(each, state)
            if sent.older:
                yield "epoch"


def _shut_to_staging(change: _Change, state: PartitionState | None) -> Iterator[str]:
    """The gates that are to be shut because of one replica that would be staged."""
    if change.topic in _INTERNAL:
        yield "internal"
    if change.verdict == "UNKNOWN_TOPIC" and not change.has_id:
        yield "no-id"
    if change.verdict == "NOT_ASSIGNED" and state is not None:
        elsewhere = [broker for broker in state.replicas if broker in state.isr and broker != _NODE_ID]
        if not elsewhere:
            yield "sole-copy"


def _earlier(random: Random, reach: Callable[[str], None]) -> None:
    """Requests were carried out before, in whatever order; the next one is older than one of them or not."""
    journals, epochs = list[tuple[str, RunJournal]](), list[tuple[int, int]]()
    for number in range(random.randint(0, 4)):
        controller, broker = random.randint(0, 5), random.choice((-1, 1, 2, 3))
        source = {"controller_epoch": str(controller), "broker_epoch": str(broker)}
        if random.random() < 0.2:
            source = {"epoch": "9", "topics": "1", "replicas": "1"}  # a plan's
        else:
            epochs.append((controller, broker))
        plan = f"{random.getrandbits(64):016x}"
        journal = RunJournal(plan, "h", "u", 1_000 + number, 2_000, (source,), ())
        journals.append((random.choice(_LOG_DIRS), journal))
    random.shuffle(journals)
    controller, broker, given = random.randint(0, 6), random.choice((-1, 1, 2, 3)), random.choice((-1, -1, 2))
    request = LeaderAndIsrRequest(7, controller, (), broker)
    carried_out = last_carried_out(History(journals))
    # A request that names no epoch of its broker is not compared by one.
    is_older = any(controller < each for each, _ in epochs)
    is_older = is_older or (broker != -1 and broker < max([given, *(each for _, each in epochs)]))
    if (carried_out.refusal(request, given) is not None) is not is_older:
        raise BrokenInvariantError(
            f"a request of epochs {controller} and {broker} is {'not ' * is_older}refused after {epochs}, given {given}"
        )
    newest = max((each for each, _ in epochs), default=-1), max((each for _, each in epochs), default=-1)
    if carried_out.is_before(request) is not (not epochs or newest < (controller, broker)):
        raise BrokenInvariantError(f"whether a request of epochs {controller} and {broker} is newer than {epochs}")
    reach(f"drill_by_hand {'older' if is_older else 'newer'}")
