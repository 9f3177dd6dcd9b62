"""Says what a broker should do with a control request, by the rules of FACTS §4.2 and §4.5, and KIP516-5 to -8.

This is other code than the broker's: it knows what was given to keep, and goes by what each rule says in words::

    too old as a whole          it is refused, and nothing happens
    live under another ID       staged, and made again under the ID of the request; left alone by a request of no type
    not named by a FULL one     staged, unless the request has its ID under another name
    of an older leader epoch    refused; of the same one, too, unless the replica is still to be made
    wanted and not here         restored, the last staged one first; else made, but while a disk is away only a new one
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import DELETE_DELAY, STALE_DELAY, KafkaError
from reconciler.protocol import (
    LeaderAndIsrRequest,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopTopic,
    TopicState,
)
from reconciler.simulator.drills.game import Game
from reconciler.simulator.drills.kept_replicas import Kept, State, Where
from reconciler.simulator.drills.made import NODE_ID

_NOT_COMPARED = (-1, -2)


@dataclass(slots=True)
class Known:
    """What a broker should know since its start.

    Attributes:
        epochs: topic and partition → the last leader epoch.
        controller_epoch: the greatest so far.
        latest: controller epoch and number of the last request that counted.
        broker_epoch: of its registration.
    """

    broker_epoch: int
    epochs: dict[tuple[str, int], int] = field(default_factory=dict)
    controller_epoch: int = 0
    latest: tuple[int, int] = (0, 0)

    def refuses(self, request: LeaderAndIsrRequest | StopReplicaRequest, number: int) -> KafkaError | None:
        """Give the error of a request that is too old as a whole; otherwise it counts from here on."""
        if -1 < request.broker_epoch < self.broker_epoch:
            return KafkaError.STALE_BROKER_EPOCH
        if request.controller_epoch < self.controller_epoch:
            return KafkaError.STALE_CONTROLLER_EPOCH
        late = request.controller_epoch == self.latest[0] and number < self.latest[1]
        self.latest = max(self.latest, (request.controller_epoch, number))
        if late:
            return KafkaError.STALE_CONTROLLER_EPOCH
        self.controller_epoch = request.controller_epoch
        return None


class Expected:
    """What a request should change and be answered with.

    Attributes:
        answers: an error for each partition, in the order of the request.
        made: replicas that are to be made empty.
        changed: replicas with a new last state.
        by_answer: number of an answer → the replica that is live where it is a good one.
    """

    def __init__(self, game: Game, known: Known) -> None:
        """Begin with what lies on the disks now."""
        self._game, self._known = game, known
        self.answers = list[KafkaError]()
        self.made, self.changed = list[Kept](), list[Kept]()
        self.by_answer = dict[int, Kept]()
        self._ids: dict[TopicId | None, str] = {}
        self._away = set(game.store.offline)
        here = [each for each in game.kept if each.state.log_dir not in self._away]
        self._live = {(each.state.at.topic, each.state.at.partition): each for each in here if each.is_live}
        self._staged = [each for each in here if each.state.where is Where.STAGED]
        self._names: dict[tuple[TopicId | None, int], str] = {
            (each.topic_id, key[1]): key[0] for key, each in self._live.items() if each.topic_id is not None
        }

    def of_leader_and_isr(self, request: LeaderAndIsrRequest) -> None:
        """Go through a LeaderAndIsr request."""
        named = {(topic.topic, each.partition) for topic in request.topics for each in topic.partitions}
        ids = self._ids = {topic.topic_id: topic.topic for topic in request.topics if topic.topic_id is not None}
        if request.type is RequestType.FULL:
            for key, live in list(self._live.items()):
                if key not in named and ids.get(live.topic_id, key[0]) == key[0]:
                    self._stage(live, STALE_DELAY)
        for topic in request.topics:
            for state in topic.partitions:
                self.answers.append(self._partition(request.type, topic, state))

    def _partition(self, kind: RequestType, topic: TopicState, state: PartitionState) -> KafkaError:
        key, hosted = (topic.topic, state.partition), NODE_ID in state.replicas
        live, current = self._live.get(key), self._known.epochs.get(key, -1)
        differs = live is not None and None not in (live.topic_id, topic.topic_id) and live.topic_id != topic.topic_id
        if differs and (kind is RequestType.UNSPECIFIED or (live is not None and live.topic_id in self._ids)):
            return KafkaError.INCONSISTENT_TOPIC_ID
        if live is not None and (differs or (kind is RequestType.FULL and not hosted)):
            self._stage(live, STALE_DELAY)
            live, current = None, -1
        if live is None and self._names.get((topic.topic_id, state.partition), topic.topic) != topic.topic:
            return KafkaError.INCONSISTENT_TOPIC_ID
        lacks_id = live is not None and live.topic_id is None and topic.topic_id is not None
        if state.leader_epoch < current or (
            state.leader_epoch == current and not (lacks_id or (live is None and hosted))
        ):
            return KafkaError.STALE_CONTROLLER_EPOCH
        if not hosted:
            return KafkaError.UNKNOWN_TOPIC_OR_PARTITION
        if live is None:
            return self._make(kind, topic, state)
        if lacks_id:
            live.topic_id = topic.topic_id
        self._known.epochs[key] = state.leader_epoch
        return KafkaError.NONE

    def _make(self, kind: RequestType, topic: TopicState, state: PartitionState) -> KafkaError:
        if self._away and not state.is_new:
            return KafkaError.KAFKA_STORAGE_ERROR
        at, key = TopicPartition(topic.topic, state.partition), (topic.topic, state.partition)
        lying = [
            each
            for each in self._staged
            if each.topic_id == topic.topic_id and each.topic_id is not None and each.state.at.partition == at.partition
        ]
        self._known.epochs[key] = state.leader_epoch
        if lying and kind is not RequestType.UNSPECIFIED:
            last = max(lying, key=lambda each: each.state.staged_ms)
            self.by_answer[len(self.answers)] = last
            if last.state.at != at:
                last.states.append(replace(last.state, at=at))  # it gets its new name before it is live
            self._change(last, replace(last.state, where=Where.LIVE, at=at, staged_ms=0, due_ms=0))
            return KafkaError.NONE
        states = [State(Where.NOWHERE, "", at), State(Where.LIVE, "", at)]
        self.made.append(Kept(self._game.number(), topic.topic_id, states, is_made=False))
        self.by_answer[len(self.answers)] = self.made[-1]
        return KafkaError.NONE

    def of_stop_replica(self, request: StopReplicaRequest) -> None:
        """Go through a StopReplica request. Under which name a topic lies here is known before it."""
        names = dict(self._names)
        for topic in request.topics:
            for state in topic.partitions:
                self.answers.append(self._stop(topic, state, names))

    def _stop(
        self, topic: StopTopic, state: StopPartition, names: Mapping[tuple[TopicId | None, int], str]
    ) -> KafkaError:
        key = (topic.topic, state.partition)
        live, current = self._live.get(key), self._known.epochs.get(key)
        if live is not None and None not in (live.topic_id, topic.topic_id) and live.topic_id != topic.topic_id:
            return KafkaError.INCONSISTENT_TOPIC_ID
        if live is None and names.get((topic.topic_id, state.partition), topic.topic) != topic.topic:
            return KafkaError.INCONSISTENT_TOPIC_ID
        if current is not None and state.leader_epoch not in _NOT_COMPARED and state.leader_epoch < current:
            return KafkaError.FENCED_LEADER_EPOCH
        if state.delete and live is not None:
            self._stage(live, DELETE_DELAY)
        elif state.delete:
            self._known.epochs.pop(key, None)
        return KafkaError.NONE

    def _stage(self, live: Kept, setting: str) -> None:
        at, now_ms = live.state.at, self._game.bench.clock.now_ms()
        due_ms = now_ms + self._game.delay_ms(at.topic, setting)
        self._game.bench.stagings[live.topic_id, at.partition] += 1
        self._change(live, replace(live.state, where=Where.STAGED, staged_ms=now_ms, due_ms=due_ms))
        del self._live[at.topic, at.partition]
        self._names.pop((live.topic_id, at.partition), None)
        self._known.epochs.pop((at.topic, at.partition), None)

    def _change(self, kept: Kept, state: State) -> None:
        kept.states.append(state)
        self.changed.append(kept)


def new_topic_id(game: Game) -> TopicId:
    """Draw the ID of a topic that is made or made again."""
    return TopicId(game.random.randbytes(16))
