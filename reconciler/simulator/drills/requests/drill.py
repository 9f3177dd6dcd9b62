"""Drills a broker beside each history by requests that are old, late, doubled, cut short, or come while a disk is away.

The controller of a history seldom sends what a broker has to refuse, and never what another controller might. Here all
that a request may hold is drawn, and what the broker answers and does is compared with what the rules say
(``request_oracle``). Source: FACTS §4.2, §4.5; KIP516-5 to -8.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import DELETE_DELAY, STALE_DELAY, KafkaError, Settings
from logstore.fs.crash_disk import memory_folder
from reconciler.broker import Broker
from reconciler.protocol import (
    LeaderAndIsrRequest,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopTopic,
    TopicState,
)
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import Bench, FaultKind, PowerCut
from reconciler.simulator.drills.game import Game
from reconciler.simulator.drills.kept_replicas import Kept, State, Where
from reconciler.simulator.drills.looking import settle
from reconciler.simulator.drills.made import NODE_ID
from reconciler.simulator.drills.moves import fill_rest
from reconciler.simulator.drills.requests.oracle import Expected, Known, new_topic_id

_NAMES: Final = ("orders", "clicks", "payments", "audit")
_PARTITIONS: Final = 3
_BROKER_EPOCH: Final = 40
_OTHERS: Final = (1, 2, 3)
_DELAYS: Final = {"": {STALE_DELAY: 300_000, DELETE_DELAY: 60_000}, "orders": {STALE_DELAY: 5_000}}
_TYPES: Final = (RequestType.FULL, RequestType.INCREMENTAL, RequestType.INCREMENTAL, RequestType.UNSPECIFIED)
_HEALTHY, _AWAY, _RESTARTED = 0.75, 0.12, 0.08

_Request = LeaderAndIsrRequest | StopReplicaRequest


def drill_requests(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Send a broker so many requests as a seed says; ``reach`` counts what it comes to.

    Raises:
        BrokenInvariantError: an answer, or what became of a replica, is not what the rules say.
    """
    random = Random(f"{seed}/request drill")
    with ExitStack() as stack:
        folder = stack.enter_context(memory_folder())
        scheme = random.choice((Scheme.NAMESPACED, Scheme.BY_TOPIC_ID, None))
        bench = Bench(folder, random, 2, scheme, Settings(_DELAYS))
        stack.callback(bench.end)
        drill = _RequestDrill(Game(bench, random, {scope: dict(each) for scope, each in _DELAYS.items()}))
        for _ in range(steps):
            name = drill.play()
            reach(f"drill {name or 'ended'}")
            if not name:
                return


class _RequestDrill:
    """One broker, and the cluster that its controllers go by."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._ids = dict[str, TopicId]()
        self._epochs = dict[tuple[str, int], int]()
        self._controller_epoch, self._number = 1, 0
        self._longest = 20
        self._start()
        if game.bench.scheme is not Scheme.BY_TOPIC_ID and game.random.random() < 0.5:
            self._make_without_ids()

    def _make_without_ids(self) -> None:
        """Make replicas as an old controller had them made, which get their topic ID by a later request."""
        name, game = self._game.random.choice(_NAMES), self._game
        self._ids[name] = new_topic_id(game)
        for number in range(_PARTITIONS):
            self._epochs[name, number] = game.random.randrange(3)
            at = TopicPartition(name, number)
            made = game.store.create(at, None)
            game.kept.append(Kept(game.number(), None, [State(Where.LIVE, made.log_dir, at)], is_made=False))
        fill_rest(game, game.kept)

    def _start(self) -> None:
        self._broker = Broker(self._game.store, broker_epoch=_BROKER_EPOCH)
        self._known = Known(_BROKER_EPOCH)

    def play(self) -> str:
        """Send one request, and check what it does; gives what it is called, empty where the drill ends with it."""
        game, random = self._game, self._game.random
        game.bench.clock.advance(random.choice((1, 1, 1_000, 400_000)))
        self._change_cluster(random)
        request = self._stop_replica(random) if random.random() < 0.25 else self._leader_and_isr(random)
        away = random.random() < _AWAY
        if away:
            self._reopen(away=random.randrange(len(game.bench.log_dirs)))
        number = self._numbered(random)
        nameless = any(each.topic_id is None for each in game.kept)
        well = away or nameless or random.random() < _HEALTHY
        self._send(request, number, cut=None if well else random.choice(list(FaultKind)))
        if game.store.offline:
            game.bench.close()
            self._reopen()
        elif random.random() < _RESTARTED:
            game.bench.crash()
            self._reopen()
        if game.is_made_twice:
            return ""
        settle(game.bench, game.kept)
        fill_rest(game, game.kept)
        return "stop_replica" if isinstance(request, StopReplicaRequest) else f"leader_and_isr_{request.type.name}"

    def _change_cluster(self, random: Random) -> None:
        name = random.choice(_NAMES)
        if any(each.topic_id is None and each.state.at.topic == name for each in self._game.kept):
            return
        if name not in self._ids or random.random() < 0.2:
            self._ids[name] = new_topic_id(self._game)
            for number in range(_PARTITIONS):
                self._epochs[name, number] = random.randrange(3)
        elif random.random() < 0.1:
            new = random.choice(_NAMES)
            if (
                new != name and new not in self._ids
            ):  # the topic is moved to another name, which the disks still have to follow
                self._ids[new] = self._ids.pop(name)
                for number in range(_PARTITIONS):
                    self._epochs[new, number] = self._epochs.pop((name, number))

    def _numbered(self, random: Random) -> int:
        self._number += 1
        return max(self._number - random.choice((0, 0, 0, 0, 0, 1, 4)), 0)

    def _header(self, random: Random) -> tuple[int, int, int]:
        if random.random() < 0.1:
            self._controller_epoch, self._number = self._controller_epoch + 1, 0
        epoch = self._controller_epoch - (random.random() < 0.08)
        return (
            1,
            epoch,
            random.choice((_BROKER_EPOCH, _BROKER_EPOCH, _BROKER_EPOCH, _BROKER_EPOCH, -1, _BROKER_EPOCH - 1)),
        )

    def _leader_and_isr(self, random: Random) -> LeaderAndIsrRequest:
        kind, topics = random.choice(_TYPES), list[TopicState]()
        # Those without an ID get the one of the request; it is not judged what they are without that.
        nameless = {each.state.at.topic for each in self._game.kept if each.topic_id is None}
        for name, topic_id in self._ids.items():
            if name not in nameless and random.random() < 0.25:
                continue
            states = tuple(
                self._state(random, name, number, hosted=name in nameless)
                for number in range(_PARTITIONS)
                if name in nameless or random.random() < 0.8
            )
            topics.append(TopicState(name, topic_id, states))
        controller, epoch, broker_epoch = self._header(random)
        return LeaderAndIsrRequest(controller, epoch, tuple(topics), broker_epoch, kind)

    def _state(self, random: Random, name: str, number: int, *, hosted: bool) -> PartitionState:
        self._epochs[name, number] += random.random() < 0.4
        epoch = self._epochs[name, number] - (random.random() < 0.15)
        replicas = (NODE_ID, random.choice(_OTHERS)) if hosted or random.random() < 0.8 else _OTHERS[:2]
        # What may lie on a disk that is away is not new; of another topic it would be there twice.
        known = (each for each in self._game.kept if each.topic_id == self._ids[name] or each.state.at.topic == name)
        is_new = not any(known) and random.random() < 0.5
        return PartitionState(number, 1, replicas[0], max(epoch, 0), replicas, 0, replicas, is_new=is_new)

    def _stop_replica(self, random: Random) -> StopReplicaRequest:
        topics = list[StopTopic]()
        for name in sorted(random.sample(_NAMES, 2)):
            topic_id = random.choice((self._ids.get(name), self._ids.get(name), None, new_topic_id(self._game)))
            states = list[StopPartition]()
            for number in sorted(random.sample(range(_PARTITIONS), 2)):
                epoch = self._epochs.get((name, number), 0)
                epoch = random.choice((epoch, epoch + 1, max(epoch - 1, 0), -1, -2))
                states.append(StopPartition(number, epoch, random.random() < 0.6))
            topics.append(StopTopic(name, topic_id, tuple(states)))
        controller, epoch, broker_epoch = self._header(random)
        return StopReplicaRequest(controller, epoch, tuple(topics), broker_epoch)

    def _send(self, request: _Request, number: int, *, cut: FaultKind | None) -> None:
        game, bench = self._game, self._game.bench
        refused = self._known.refuses(request, number)
        expected = Expected(game, self._known)
        if refused is None and isinstance(request, LeaderAndIsrRequest):
            expected.of_leader_and_isr(request)
        elif refused is None and isinstance(request, StopReplicaRequest):
            expected.of_stop_replica(request)
        game.kept += expected.made
        before = bench.changes
        try:
            with bench.fault(cut, game.random.randrange(self._longest + 1)):
                answer = self._broker.handle(request, number)
        except PowerCut:
            bench.crash()
            self._reopen()
            return
        self._longest = max(self._longest, bench.changes - before)
        answers = [KafkaError(each.error) for topic in answer.topics for each in topic.partitions]
        if bench.struck:
            self._after_a_fault(request, number, expected, answers)
            return
        if refused is not None and answer.error is not refused and set(answers) != {refused}:
            raise BrokenInvariantError(f"{_words(request)} is answered {answer}, and {refused.name} was expected")
        if refused is None and (answer.error or answers != expected.answers):
            said, wanted = (", ".join(each.name for each in several) for several in (answers, expected.answers))
            raise BrokenInvariantError(f"{_words(request)} is answered {answer.error} {said}; expected was {wanted}")
        for each in (*expected.changed, *expected.made):
            each.states = [each.states[-1]]
        for topic, partition in self._epochs:
            epoch = self._broker.leader_epoch(TopicPartition(topic, partition))
            if epoch != (wanted_epoch := self._known.epochs.get((topic, partition))):
                what = f"the leader epoch of {topic}-{partition} is taken for {epoch}, and was {wanted_epoch}"
                raise BrokenInvariantError(f"after {_words(request)}, {what}")

    def _after_a_fault(self, request: _Request, number: int, expected: Expected, answers: list[KafkaError]) -> None:
        """A disk failed, or the system refused something: what is answered well is done, and nothing is half done.

        While the disk is away, the same request again makes nothing that lies there.
        """
        bench = self._game.bench
        for place, (wanted, found) in enumerate(zip(expected.answers, answers, strict=False)):
            if wanted is not KafkaError.NONE and found is KafkaError.NONE:
                raise BrokenInvariantError(f"a request is answered well, and {wanted.name} was expected")
            if found is KafkaError.NONE and place in expected.by_answer:
                kept = expected.by_answer[place]
                kept.states = [kept.states[-1]]
        bench.stagings.update((each.topic_id, each.state.at.partition) for each in expected.changed)
        if bench.store.offline:
            self._broker.handle(request, number)
        bench.crash()
        self._reopen()

    def _reopen(self, away: int | None = None) -> None:
        bench = self._game.bench
        if away is not None:
            bench.close()
            bench.lose(away)
        else:
            for number in bench.disks.offline:
                bench.disks.come_back(number)
        bench.open()
        self._start()


def _words(request: _Request) -> str:
    return f"{type(request).__name__} of epoch {request.controller_epoch} {request.topics}"
