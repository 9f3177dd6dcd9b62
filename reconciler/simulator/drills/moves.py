"""The moves of an engine's drill: each draws one change of the store, and says what the replicas are after it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import (
    DELETE_DELAY,
    STALE_DELAY,
    ChangeRefusedError,
    InvalidNamespaceError,
    NameTakenError,
)
from logstore.namespaces import (
    convert,
    create_namespace,
    delete_namespace,
    list_namespaces,
    move_namespace,
    rename_topic,
)
from logstore.purge import PurgeRules, purge
from logstore.staging import Staged
from logstore.store import Replica
from reconciler.simulator.drills.game import Change, Game
from reconciler.simulator.drills.kept_replicas import NUMBER_FILE, Kept, State, Where

_TOPICS: Final = ("orders", "clicks", "old", "a" * 249)
_NAMESPACES: Final = ("org", "org:apache", "net")
_INSIDE: Final = ("org:orders", "org:apache:hits", "net:orders")
_PARTITIONS, _MANY = 3, 12
_LONGEST_MOVED: Final = 200
"""Characters of the topics that a move is drawn for; a longer one has no name as a future replica."""

_LOG = "00000000000000000000.log"
_STEPS_MS: Final = (1, 500, 1_500, 8_000, 60_000, 300_000, 5 * 3_600_000)


def draw(game: Game) -> Change | None:
    """Draw the next change; None: there was nothing to be changed."""
    names = [each for each, weight in _WEIGHTS.items() for _ in range(weight)]
    return _MOVES[game.random.choice(names)](game)


def _live(game: Game) -> list[Kept]:
    return [each for each in game.kept if each.is_live]


def _named(game: Game) -> list[str]:
    """The topics that the store may hold now."""
    scheme = game.bench.scheme
    if scheme is Scheme.BY_TOPIC_ID:
        return [*_TOPICS, *_INSIDE]
    there = list_namespaces(game.store) if scheme is Scheme.NAMESPACED else []
    return [*_TOPICS, *(each for each in _INSIDE if each.rpartition(":")[0] in there)]


def _create(game: Game) -> Change | None:
    random, topic = game.random, game.random.choice(_named(game))
    own = {each.state.at.partition: each for each in _live(game) if each.state.at.topic == topic}
    most = _MANY if random.random() < 0.2 else _PARTITIONS
    free = [number for number in range(most) if number not in own]
    if free and game.bench.scheme is Scheme.BY_TOPIC_ID and random.random() < 0.1:
        at, none = TopicPartition(topic, free[0]), random.choice((None, TopicId(bytes(16))))
        return Change("create_nameless", lambda: game.store.create(at, none), refused=(InvalidNameError,))
    topic_id = next(iter(own.values())).topic_id if own else _new_id(game, topic)
    if not free or (not own and any(each.is_live and each.topic_id == topic_id for each in game.kept if topic_id)):
        return None  # there is no room, or the topic of this ID has another name by now
    chosen = free if most == _MANY else random.sample(free, random.randint(1, len(free)))
    made = list[Kept]()
    for partition in sorted(chosen):
        at = TopicPartition(topic, partition)
        states = [State(Where.NOWHERE, "", at), State(Where.LIVE, "", at)]
        made.append(Kept(game.number(), topic_id, states, is_made=False))
    game.kept += made
    return Change("create", lambda: _create_all(game, made), made, done=lambda: fill_rest(game, made))


def _new_id(game: Game, topic: str) -> TopicId | None:
    """Draw the ID of a topic that is made: its former one, as of a replica that comes back, or another one, or none."""
    former = [each.topic_id for each in game.kept if each.state.at.topic == topic and each.topic_id is not None]
    if former and game.random.random() < 0.5:
        return game.random.choice(former)
    if topic == "old" and game.bench.scheme is not Scheme.BY_TOPIC_ID:
        return None
    return TopicId(game.random.randbytes(16))


def _create_all(game: Game, made: Sequence[Kept]) -> None:
    results = game.store.create_many({each.state.at: each.topic_id for each in made})
    for each in made:
        result = results[each.state.at]
        if isinstance(result, Replica):
            each.states = [State(Where.LIVE, result.log_dir, each.state.at)]
    for result in results.values():
        if not isinstance(result, Replica):
            raise result


def fill_rest(game: Game, made: Sequence[Kept]) -> None:
    """Give the new ones among some replicas their files, where they were made."""
    for each in made:
        if not each.is_made and each in game.kept:
            _fill(game, each)


def _fill(game: Game, kept: Kept) -> None:
    """Give a new replica its number, and records; some end in zeros, as preallocated segments do."""
    data = game.random.randbytes(game.random.randint(1, 900)) + bytes(game.random.choice((0, 0, 9_000)))
    path = _path(game, kept)
    game.bench.make_room()
    game.bench.write(path, _LOG, data)
    game.bench.write(path, NUMBER_FILE, b"%d" % kept.number)
    kept.files, kept.is_made = {_LOG: data, NUMBER_FILE: b"%d" % kept.number}, True


def _path(game: Game, kept: Kept) -> str:
    replica = game.store.get(kept.state.at)
    return f"{replica.log_dir}/{replica.path}"


def _offsets(game: Game) -> Change | None:
    live = _live(game)
    if not live:
        return None
    chosen = game.random.sample(live, min(len(live), game.random.randint(1, 3)))
    file, wanted = game.random.choice(OFFSET_CHECKPOINTS), dict[TopicPartition, int]()
    for each in chosen:
        wanted[each.state.at] = game.random.randrange(1 << 40)
        offsets = dict(each.state.offsets) | {file: wanted[each.state.at]}
        each.states.append(replace(each.state, offsets=tuple(sorted(offsets.items()))))
    return Change("offsets", lambda: game.store.write_offsets(file, wanted), chosen)


def _stage(game: Game) -> Change | None:
    live = _live(game)
    if not live:
        return None
    chosen = game.random.sample(live, min(len(live), game.random.choice((1, 2, 6))))
    setting, now_ms = game.random.choice((STALE_DELAY, DELETE_DELAY)), game.bench.clock.now_ms()
    for each in chosen:
        due_ms = now_ms + game.delay_ms(each.state.at.topic, setting)
        each.states.append(replace(each.state, where=Where.STAGED, staged_ms=now_ms, due_ms=due_ms))

    def act() -> None:
        names = [each.state.at for each in chosen]
        outcome = game.store.stage(names, "STALE_ID", "a drill", setting=setting)
        said = {each.partition for each in outcome.staged}
        for each in chosen:
            each.states = [each.states[1 if each.state.at in said else 0]]
        if outcome.refused:
            raise ChangeRefusedError(str(outcome.refused[0].reason))

    return Change("stage", act, chosen)


def _stage_another(game: Game) -> Change | None:
    """Stage what is not there so any more: another directory, or one of another topic ID, has its place."""
    live = _live(game)
    if not live:
        return None
    kept = game.random.choice(live)
    replica = game.store.get(kept.state.at)
    path = f"{replica.log_dir}/{replica.path}"
    inode = os.stat(path).st_ino
    if game.random.random() < 0.5:
        replica = replace(replica, inode=inode + 1)
    else:
        replica = replace(replica, inode=inode, topic_id=TopicId(game.random.randbytes(16)))
    refused = (ChangeRefusedError,)

    def act() -> None:
        outcome = game.store.stage_copies({replica: ("STALE_ID", "a drill")})
        if outcome.refused:
            raise ChangeRefusedError(str(outcome.refused[0].reason))

    return Change("stage_another", act, [kept], refused)


def _staged_of(game: Game, kept: Kept) -> Staged | None:
    """Find a replica among the staged ones by its number, which no other one has."""
    for each in game.store.staged():
        folder = {"inside": f"{each.log_dir}/deleting", "sibling": f"{each.log_dir}.deleting"}
        try:
            with open(f"{folder.get(each.placement, each.log_dir)}/{each.name}/{NUMBER_FILE}", "rb") as file:
                if file.read() == kept.files[NUMBER_FILE]:
                    return each
        except FileNotFoundError:
            continue
    return None


def _restore(game: Game) -> Change | None:
    staged = [each for each in game.kept if each.is_staged]
    kept = game.random.choice(staged) if staged else None
    found = None if kept is None else _staged_of(game, kept)
    if kept is None or found is None:
        return None
    refused: tuple[type[Exception], ...] = ()
    at, scheme = kept.state.at, game.bench.scheme
    namespace = at.topic.rpartition(":")[0]
    ids = {each.topic_id: each.state.at.topic for each in _live(game)}
    if kept.state.where is Where.BEGUN:
        refused = (ChangeRefusedError,)
    elif any(each.state.at == at for each in _live(game)):
        refused = (NameTakenError,)
    elif kept.topic_id is not None and ids.get(kept.topic_id, at.topic) != at.topic:
        return None  # its topic has another name by now, and the store need not know
    elif namespace and scheme is Scheme.NAMESPACED and namespace not in list_namespaces(game.store):
        refused = (InvalidNamespaceError,)
    elif game.random.random() < 0.1:
        # What was listed is not what has its name by now.
        found, refused = found._replace(inode=found.inode + 1), (ChangeRefusedError,)
    if not refused:
        kept.states.append(replace(kept.state, where=Where.LIVE, staged_ms=0, due_ms=0))
    return Change("restore", lambda: game.store.restore(found), [kept], refused)


def _move(game: Game) -> Change | None:
    live = _live(game)
    if not live:
        return None
    kept = game.random.choice(live)
    target = game.random.choice([each for each in game.store.log_dirs if each.path != kept.state.log_dir])
    directory_id = target.identity.directory_id
    assert directory_id is not None, "each log dir of a bench has one"
    state, now_ms = kept.state, game.bench.clock.now_ms()
    due_ms = now_ms + game.delay_ms(state.at.topic, DELETE_DELAY)
    kept.states.append(replace(state, where=Where.STAGED, staged_ms=now_ms, due_ms=due_ms))
    nowhere = State(Where.NOWHERE, target.path, state.at)
    copy = Kept(game.number(), kept.topic_id, [nowhere, replace(state, log_dir=target.path)], dict(kept.files))
    copy.copy_of = kept.number
    game.kept.append(copy)

    def number_copy() -> None:
        if copy in game.kept:
            copy.files[NUMBER_FILE] = b"%d" % copy.number
            game.bench.write(_path(game, copy), NUMBER_FILE, copy.files[NUMBER_FILE])
            copy.copy_of = None

    refused = (ChangeRefusedError,) if len(state.at.local_topic) > _LONGEST_MOVED else ()
    change = Change("move", lambda: game.store.move(state.at, directory_id), [kept, copy], refused, whole=True)
    change.done = number_copy
    return change


def _purge(game: Game) -> Change | None:
    staged, now_ms = [each for each in game.kept if each.is_staged], game.bench.clock.now_ms()
    if not staged:
        return None
    vetoed = {each.topic_id for each in staged if game.random.random() < 0.3}
    due, steps = list[Kept](), game.random.random() < 0.5
    for each in staged:
        begun = each.state.where is Where.BEGUN
        if (begun or each.state.due_ms <= now_ms) and (steps or each.topic_id not in vetoed):
            each.states += [replace(each.state, where=Where.BEGUN), replace(each.state, where=Where.NOWHERE)]
            due.append(each)

    cancel = threading.Event() if game.random.random() < 0.4 else None

    def act() -> None:
        if steps:
            while game.store.purge_step() is not None:
                pass
            return
        ids = {each if each is not None else TopicId(bytes(16)) for each in vetoed}
        rules = PurgeRules(now_ms, veto=lambda each: "it is wanted" if each.topic_id in ids else None)
        if cancel is not None:
            rules.cancel, rules.progress = cancel, lambda *_: cancel.set()
        report = purge(game.store.log_dirs, rules, fallback=game.store.fallback, look_at_processes=False)
        failed = [each.error for each in report.log_dirs if each.error] + [
            each for part in report.log_dirs for each in part.failures
        ]
        if failed:
            raise ChangeRefusedError(failed[0])

    return Change("purge", act, due, loose=cancel is not None and not steps)


def _advance(game: Game) -> None:
    game.bench.clock.advance(game.random.choice(_STEPS_MS))


def _fill_disk(game: Game) -> None:
    number = game.random.randrange(len(game.bench.log_dirs))
    if not game.bench.disks.full:
        game.bench.disks.fill(number)
    else:
        game.bench.disks.make_room(game.bench.disks.full[0])


def _rename(game: Game) -> Change | None:
    live = _live(game)
    if not live or game.bench.scheme is None:
        return None
    topic = game.random.choice(live).state.at.topic
    there = {each.state.at.topic for each in live}
    free = [each for each in _named(game) if each not in there]
    if not free:
        return None
    new, own = game.random.choice(free), [each for each in live if each.state.at.topic == topic]
    for each in own:
        each.states.append(replace(each.state, at=TopicPartition(new, each.state.at.partition)))
    return Change("rename", lambda: rename_topic(game.store, topic, new), own, whole=True)


def _namespace(game: Game) -> Change | None:
    random = game.random
    if game.bench.scheme is not Scheme.NAMESPACED:
        return None
    there = list_namespaces(game.store)
    if not there or random.random() < 0.6:
        wanted = random.choice(_NAMESPACES)
        refused: tuple[type[Exception], ...] = (InvalidNamespaceError,) if wanted in there else ()
        return Change("create_namespace", lambda: create_namespace(game.store, wanted), refused=refused)
    namespace = random.choice(there)
    inside = [each for each in _live(game) if each.state.at.topic.startswith(f"{namespace}:")]
    if random.random() < 0.4:
        now_ms = game.bench.clock.now_ms()
        for each in inside:
            due_ms = now_ms + game.delay_ms(each.state.at.topic, STALE_DELAY)
            each.states.append(replace(each.state, where=Where.STAGED, staged_ms=now_ms, due_ms=due_ms))
        return Change(
            "delete_namespace", lambda: delete_namespace(game.store, namespace, recursive=True), inside, whole=True
        )
    return _move_namespace(game, namespace, there, inside)


def _move_namespace(game: Game, namespace: str, there: Sequence[str], inside: list[Kept]) -> Change | None:
    free = [each for each in ("org", "net", "com") if each not in there and not each.startswith(f"{namespace}:")]
    if not free or ":" in namespace:
        return None
    target = game.random.choice(free)
    for each in inside:
        at = TopicPartition(target + each.state.at.topic[len(namespace) :], each.state.at.partition)
        each.states.append(replace(each.state, at=at))

    def moved() -> None:
        if target in list_namespaces(game.store):
            for scope in [each for each in game.delays if each.startswith(f"{namespace}:")]:
                game.delays[target + scope[len(namespace) :]] = game.delays.pop(scope)

    change = Change("move_namespace", lambda: move_namespace(game.store, namespace, target), inside, whole=True)
    change.done = moved
    return change


def _convert(game: Game) -> Change | None:
    scheme, bench = game.random.choice((Scheme.NAMESPACED, Scheme.BY_TOPIC_ID)), game.bench
    if bench.scheme is None or scheme is bench.scheme or bench.scheme is Scheme.FLAT:
        return None
    if scheme is Scheme.BY_TOPIC_ID and any(each.topic_id is None for each in game.kept):
        return None

    return Change("convert", lambda: convert(game.store, scheme))


_MOVES: Final[dict[str, Callable[[Game], Change | None]]] = {
    "create": _create,
    "offsets": _offsets,
    "stage": _stage,
    "stage_another": _stage_another,
    "restore": _restore,
    "move": _move,
    "purge": _purge,
    "advance": _advance,
    "fill_disk": _fill_disk,
    "rename": _rename,
    "namespace": _namespace,
    "convert": _convert,
}
_WEIGHTS: Final = {
    "create": 5, "offsets": 2, "stage": 5, "stage_another": 1, "restore": 5, "move": 3, "purge": 4, "advance": 3,
    "fill_disk": 1, "rename": 3, "namespace": 5, "convert": 2,
}  # fmt: skip
