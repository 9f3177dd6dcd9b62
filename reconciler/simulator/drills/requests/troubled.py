"""Drills a broker in short scenes, in each of which a disk is in the way of what a controller asks for.

::

    stopped     by another name than the topic has here; and of what somebody staged by hand before
    unread      what lies staged is wanted, and a disk refuses to say what it is
    unlisted    the same, and a disk or the system refuses to list it
    restored    the same, and it fails while the replicas are brought back
    recreated   the topic is another one by now, and the former replicas cannot be staged
    copies      a disk comes back with replicas of a topic that was re-created meanwhile

After each of them, the same holds whatever was drawn: what has data is never replaced by an empty replica, a partition
that is answered well is live, any other answer is the one of the rules, and the leader epoch of a request is remembered
where its answer is a good one. Then the request is sent again. Source: DESIGN §4; FACTS §4.2, §4.5; KIP516-5 to -7.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import KafkaError, Settings
from logstore.fs.crash_disk import memory_folder
from reconciler.protocol import RequestType
from reconciler.simulator.drills.bench import Bench, FaultKind
from reconciler.simulator.drills.requests.recreated import play_recreated
from reconciler.simulator.drills.requests.troubled_broker import (
    OF_THE_DISK,
    REFUSALS,
    Hosted,
    RefusedStore,
    TroubledBroker,
)

_OF_A_READ: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES)
_RECONCILING: Final = (RequestType.FULL, RequestType.INCREMENTAL)
_KEPT_BACK, _STALE = KafkaError.KAFKA_STORAGE_ERROR, KafkaError.STALE_CONTROLLER_EPOCH
_BY_HAND: Final = ("DRILLED", "somebody staged it by hand")
_LONGEST: Final = 10
"""Changes of a disk in a restore of some replicas, about."""


def drill_troubled(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Play some scenes on one bench as a seed says; ``reach`` counts which; it does not hang on ``steps``.

    Raises:
        BrokenInvariantError: one of them does not end as it should.
    """
    random = Random(f"{seed}/drill of a troubled broker")
    with ExitStack() as stack:
        folder = stack.enter_context(memory_folder())
        scheme = random.choice((Scheme.FLAT, Scheme.NAMESPACED, Scheme.BY_TOPIC_ID, None, None))
        bench = Bench(folder, random, 2, scheme, Settings({}), kind_of_store=RefusedStore)
        stack.callback(bench.end)
        game = TroubledBroker(bench, random)
        for play in (random.choice((_stopped, play_recreated)), random.choice(_SCENES)):
            game.start_anew()
            reach(f"drill_troubled {play(game, random)}")


def _stopped(game: TroubledBroker, random: Random) -> str:
    epoch = random.randint(1, 9)
    topic = game.made("orders", epoch)
    _stopped_by_another_name(game, random, topic, epoch)
    by_hand = random.sample(list(topic.numbers), random.randint(1, len(topic.numbers)))
    game.store.stage([TopicPartition(topic.name, each) for each in by_hand], *_BY_HAND)
    asked = {each: random.choice((epoch, epoch + 1, -1, -2, epoch - 1)) for each in by_hand}
    fenced = [each for each in by_hand if asked[each] == epoch - 1]
    delete, topic_id = random.random() < 0.8, random.choice((topic.topic_id, None))
    bad = {(topic.name, each): KafkaError.FENCED_LEADER_EPOCH for each in fenced}
    game.expect_answers("to stop what is staged", game.stops(topic.name, topic_id, asked, delete=delete), bad)
    forgotten = [each for each in by_hand if delete and each not in fenced]
    game.learn(topic, None, forgotten)
    game.check_epochs("of what is stopped")
    request = game.wants(random.choice(_RECONCILING), epoch - 1, topic)
    bad = {(topic.name, each): _STALE for each in topic.numbers if each not in forgotten}
    game.expect_answers("to an earlier leader epoch", request, bad)
    game.learn(topic, epoch - 1, forgotten)
    game.check_epochs("of what was stopped and is wanted again")
    game.are_staged("wanted again at an earlier leader epoch", topic, set(by_hand) - set(forgotten))
    return "stopped"


def _stopped_by_another_name(game: TroubledBroker, random: Random, topic: Hosted, epoch: int) -> None:
    """Nothing is stopped that lies here under another name; of what lies nowhere, nobody can tell."""
    if game.bench.scheme is not Scheme.BY_TOPIC_ID and random.random() < 0.3:
        game.store.create(TopicPartition("sales", 0), None)
    here, beyond = random.sample(list(topic.numbers), 2), len(topic.numbers)
    asked = {each: random.choice((epoch, -1, -2, 0)) for each in (*here, beyond)}
    request = game.stops("sales", topic.topic_id, asked, delete=random.random() < 0.7)
    bad = {("sales", each): KafkaError.INCONSISTENT_TOPIC_ID for each in here}
    game.expect_answers("to stop replicas by another name", request, bad)
    game.are_live("stopped by another name", topic)
    game.check_epochs("of a topic that was to be stopped by another name")


def _staged(game: TroubledBroker, random: Random, name: str, epoch: int) -> Hosted:
    """Make replicas, and stage them one way or another."""
    topic = game.made(name, epoch)
    way = random.choice(("full", "stop", "by hand"))
    if way == "full":
        game.expect_answers("to want nothing", game.wants(RequestType.FULL, epoch), {})
        game.learn(topic, None)
    elif way == "stop":
        request = game.stops(name, topic.topic_id, dict.fromkeys(topic.numbers, epoch), delete=True)
        game.expect_answers("to stop replicas", request, {})
        game.learn(topic, None)
    else:  # of which the broker knows nothing
        game.store.stage([TopicPartition(name, each) for each in topic.numbers], *_BY_HAND)
    game.are_staged(f"staged ({way})", topic)
    return topic


def _unread(game: TroubledBroker, random: Random) -> str:
    """What cannot be read is not replaced, whichever log dirs it lies in; what can be is restored."""
    epoch = random.randint(1, 9)
    topic = _staged(game, random, "clicks", epoch)
    lies_in, log_dirs = game.staged(), game.bench.log_dirs
    game.store.unread = frozenset(random.choice(([random.choice(log_dirs)], log_dirs)))
    game.store.hides_ids = random.random() < 0.5
    unread = [each for each, number in topic.numbers.items() if game.store.unread.issuperset(lies_in[number or 0])]
    request = game.wants(random.choice(_RECONCILING), epoch + 1, topic, new=random.random() < 0.5)
    bad = {(topic.name, each): _KEPT_BACK for each in unread}
    game.expect_answers("to want what cannot be read", request, bad)
    game.learn(topic, epoch + 1, topic.numbers.keys() - set(unread))
    game.check_epochs("of what cannot be read")
    game.are_staged("wanted, and not to be read", topic, unread)
    game.store.unread = frozenset()
    bad = {(topic.name, each): _STALE for each in topic.numbers if each not in unread}
    game.expect_answers("to want it again", request, bad)
    game.learn(topic, epoch + 1)
    game.check_epochs("of what can be read again")
    game.are_live("read again", topic)
    return "unread"


def _unlisted(game: TroubledBroker, random: Random) -> str:
    """Nothing is made, though one of the partitions was never here; and that neither while the disk is away."""
    epoch = random.randint(1, 9)
    topic = _staged(game, random, "payments", epoch)
    beyond = replace(topic, numbers={len(topic.numbers): None})
    wanted = replace(topic, numbers={**topic.numbers, **beyond.numbers})
    of_disk = random.random() < 0.6
    game.store.listing = random.choice(game.bench.log_dirs), random.choice(OF_THE_DISK if of_disk else _OF_A_READ)
    request = game.wants(random.choice(_RECONCILING), epoch + 1, wanted, new=random.random() < 0.8)
    bad = {(topic.name, each): _KEPT_BACK for each in wanted.numbers}
    for what in ("cannot be listed", "lies on a disk that is away")[: 1 + of_disk]:
        game.expect_answers(f"to want what {what}", request, bad)
        game.check_epochs(f"of what {what}")
        game.are_staged(f"wanted, where it {what}", topic)
        game.expect(f"what is made where it {what}", game.directories(beyond, len(topic.numbers)), [])
        game.store.listing = None
    if of_disk:
        game.restart()
    game.expect_answers("to want what can be listed again", request, {})
    game.learn(wanted, epoch + 1)
    game.check_epochs("of what can be listed again")
    game.are_live("listed again", wanted)
    return "unlisted_disk" if of_disk else "unlisted_system"


def _restored(game: TroubledBroker, random: Random) -> str:
    """Each replica is live or staged, and is answered so; while a disk is away, what was not restored stays so."""
    epoch = random.randint(1, 9)
    topic = _staged(game, random, "audit", epoch)
    request = game.wants(random.choice(_RECONCILING), epoch + 1, topic, new=random.random() < 0.8)
    with game.bench.fault(FaultKind.SYSTEM, random.randrange(_LONGEST), random.choice(random.choice(REFUSALS))):
        answers = game.answered(request)
    away = set(game.store.offline)
    game.are_whole("where a restore is refused", topic)
    first = game.answered_well(topic, answers)
    game.learn(topic, epoch + 1, first)
    game.check_epochs("of what was to be restored")
    bad = dict[tuple[str, int], KafkaError]()
    for partition in topic.numbers:
        live = [each.log_dir for each in game.directories(topic, partition)]
        if away and (partition not in first or not away.isdisjoint(live)):
            bad[topic.name, partition] = _KEPT_BACK
        elif partition in first:
            bad[topic.name, partition] = _STALE
    game.expect_answers("to want again what was to be restored", request, bad)
    if away:
        game.are_whole("wanted again while a disk is away", topic)
        game.check_epochs("while a disk is away")
        game.restart()
        game.expect_answers("to want it when the disk is back", request, {})
    game.learn(topic, epoch + 1)
    game.check_epochs("of what is restored")
    game.are_live("restored", topic)
    return "restored_well" if len(first) == len(topic.numbers) else f"restored_{'offline' if away else 'refused'}"


def _copies(game: TroubledBroker, random: Random) -> str:
    """A request stages each copy under another topic ID than its own, and goes on with the one that is left."""
    epoch = random.randint(1, 9)
    former, away = game.made("clicks", epoch), random.randrange(2)
    lost = [each for each in former.numbers if game.directories(former, each)[0].log_dir == game.bench.log_dirs[away]]
    successor = former.recreated(TopicId(random.randbytes(16)))
    game.restart(away=away)
    request = game.wants(random.choice(_RECONCILING), epoch + 1, successor, new=True)
    game.expect_answers("to re-create a topic while a disk is away", request, {})
    successor = game.numbered(successor)
    game.restart()
    if random.random() < 0.2:
        request = game.wants(RequestType.UNSPECIFIED, epoch + 2, successor)
        game.expect_answers("to want one of two copies", request, {(former.name, each): _KEPT_BACK for each in lost})
        game.learn(successor, epoch + 2, successor.numbers.keys() - set(lost))
        game.check_epochs("of what has two copies")
    wanted = successor if random.random() < 0.7 else former.recreated(TopicId(random.randbytes(16)))
    request = game.wants(random.choice(_RECONCILING), epoch + 3, wanted)
    game.expect_answers("to want a topic that was re-created while a disk was away", request, {})
    game.learn(wanted, epoch + 3)
    game.check_epochs("of what had two copies")
    game.are_live("which had two copies", wanted)
    game.are_staged("which was re-created", former)
    if wanted is not successor:
        game.are_staged("which was re-created too", successor)
    game.expect("what is live twice", game.store.duplicates, [])
    return "copies"


_SCENES: Final = (_unread, _unlisted, _restored, _copies)
