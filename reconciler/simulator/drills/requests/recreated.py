"""A scene of a troubled broker: a topic was re-created, and its former replicas cannot be staged, or not all of them.

Somebody changed one of them, so that it is not what was judged; or a disk or the system refuses a change while they are
staged or their successors made. Besides, the request names a topic that stays as it is, and one that was never here.
What could not be staged is live as before, and nothing is made beside it. What is not new is not made either once a
disk failed, for it may lie there. Source: DESIGN §4; KIP516-5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from layout import partition_metadata
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, RequestType
from reconciler.simulator.drills.bench import FaultKind
from reconciler.simulator.drills.requests.troubled_broker import REFUSALS, Hosted, TroubledBroker

_CHANGED: Final = 0.25
"""How likely somebody changed a replica, and no change is refused."""

_LONGEST: Final = 10
"""Of so many changes of a disk one is refused: more often one that stages than one that makes."""


def play_recreated(game: TroubledBroker, random: Random) -> str:
    """Play the scene; gives what it came to."""
    epoch, unknown_id, successor_id = random.randint(1, 9), *(TopicId(random.randbytes(16)) for _ in range(2))
    former, other = game.made("orders", epoch), game.made("payments", epoch)
    unknown = Hosted("audit", unknown_id, dict.fromkeys(range(2)))
    scene = _Recreation(game, random, epoch, former, former.recreated(successor_id), other, unknown)
    how = scene.changed() if random.random() < _CHANGED else scene.refused()
    for each in scene.wanted:
        game.are_live("re-created", each)
    game.are_staged("re-created", former)
    return how


@dataclass(frozen=True, slots=True)
class _Recreation:
    """One play of the scene.

    Attributes:
        game: the broker.
        random: of the drill.
        epoch: leader epoch of what is here.
        former: the topic that was re-created.
        successor: the one that has its name now.
        other: one that stays.
        unknown: one that was never here.
    """

    game: TroubledBroker
    random: Random
    epoch: int
    former: Hosted
    successor: Hosted
    other: Hosted
    unknown: Hosted

    @property
    def wanted(self) -> tuple[Hosted, Hosted, Hosted]:
        """The topics of a request."""
        return self.successor, self.other, self.unknown

    def _request(self, epoch: int, *, new: bool = False) -> LeaderAndIsrRequest:
        kind = self.random.choice((RequestType.FULL, RequestType.INCREMENTAL))
        return self.game.wants(kind, epoch, *self.wanted, new=new)

    def _learn(self, epoch: int) -> None:
        for each in self.wanted:
            self.game.learn(each, epoch)

    def changed(self) -> str:
        """Let somebody change replicas, which stay, and change them back."""
        game, former = self.game, self.former
        changed = self.random.sample(list(former.numbers), self.random.randint(1, len(former.numbers)))
        places, before = (
            [each.path for partition in changed for each in game.directories(former, partition)],
            list[bytes](),
        )
        for path in places:
            before.append(Path(path, partition_metadata.FILE_NAME).read_bytes())
            another = partition_metadata.encode(TopicId(self.random.randbytes(16)))
            game.bench.write(path, partition_metadata.FILE_NAME, another)
        request = self._request(self.epoch + 1, new=self.random.random() < 0.5)
        bad = {(former.name, each): KafkaError.KAFKA_STORAGE_ERROR for each in changed}
        game.expect_answers("to re-create what was changed", request, bad)
        self._learn(self.epoch + 1)
        game.learn(former, self.epoch, changed)
        game.check_epochs("of what was changed")
        for partition in changed:
            found = {each.number for topic in (former, self.successor) for each in game.directories(topic, partition)}
            game.expect(f"what is live of {former.name}-{partition}, changed,", found, {former.numbers[partition]})
        for path, data in zip(places, before, strict=True):
            game.bench.write(path, partition_metadata.FILE_NAME, data)
        bad = {key: KafkaError.STALE_CONTROLLER_EPOCH for key in game.epochs if key not in bad}
        game.expect_answers("to re-create what is as it was", request, bad)
        self._learn(self.epoch + 1)
        game.check_epochs("of what is as it was")
        return "recreated_changed"

    def refused(self) -> str:
        """Refuse one change, and send the request again, while a disk is away and when it is back."""
        game, new = self.game, self.random.random() < 0.25
        request, error = self._request(self.epoch + 1, new=new), self.random.choice(self.random.choice(REFUSALS))
        with game.bench.fault(FaultKind.SYSTEM, self.random.randrange(_LONGEST), error):
            answers = game.answered(request)
        away = set(game.store.offline)
        game.are_whole("re-created where something is refused", self.former)
        good = {each.name: game.answered_well(each, answers) for each in self.wanted}
        self._check_failed(away, good, new=new)
        self._learn_after(away, good)
        request, bad = self._request(self.epoch + 2), dict[tuple[str, int], KafkaError]()
        for topic in self.wanted:
            for partition in topic.numbers:
                if away.issuperset(game.live(topic, partition)) and away:
                    bad[topic.name, partition] = KafkaError.KAFKA_STORAGE_ERROR
                else:
                    game.learn(topic, self.epoch + 2, [partition])
        game.expect_answers("to re-create once more", request, bad)
        game.check_epochs("of what is re-created once more")
        if away:
            game.restart()
            game.expect_answers("to re-create when the disk is back", request, {})
            self._learn(self.epoch + 2)
            game.check_epochs("of what is re-created when the disk is back")
        return f"recreated_{'offline' if away else 'refused'}"

    def _check_failed(self, away: set[str], good: Mapping[str, set[int]], *, new: bool) -> None:
        """Compare the answers where a disk failed while it staged: each on it is bad, and only what is new is made."""
        game, former, other = self.game, self.former, self.other
        stuck = {log_dir for partition in former.numbers for log_dir in game.live(former, partition)}
        for partition in other.numbers:
            (log_dir,) = game.live(other, partition)
            if log_dir not in away or log_dir in stuck:
                what = f"whether {other.name}-{partition} in {log_dir} is answered well"
                game.expect(what, partition in good[other.name], log_dir not in away)
        if not away.isdisjoint(stuck):
            made = set(self.unknown.numbers if new else ())
            game.expect("what is made although a disk failed just now", good[self.unknown.name], made)
        if not away.isdisjoint(stuck) and not new:
            game.expect("what is made in place of replicas, some of them on it", good[self.successor.name], set())

    def _learn_after(self, away: set[str], good: Mapping[str, set[int]]) -> None:
        """Note what should be remembered; of what a disk failed to stage, it may be the epoch of the former topic."""
        game, former = self.game, self.former
        game.learn(self.other, self.epoch)
        game.learn(self.unknown, None)
        staged = game.staged()
        for partition, number in former.numbers.items():
            live = game.live(former, partition)
            (log_dir,) = live or staged[number or 0]
            remembered = game.broker.leader_epoch(TopicPartition(former.name, partition))
            is_kept = live or (log_dir in away and remembered == self.epoch)
            game.learn(former, self.epoch if is_kept else None, [partition])
        for topic in self.wanted:
            game.learn(topic, self.epoch + 1, good[topic.name])
        game.check_epochs("of what was to be re-created")
