"""Drills the engine of one machine beside each history: a store alone, with a fault in the middle of many changes.

The brokers of a history change their stores as the controller tells them, so some of what an engine can do comes seldom
there, and a power cut seldom in the middle of it. Here the store is changed at random: created, written to, staged,
restored, moved, purged, renamed, converted. Many of the changes are cut short at one of their own changes of a disk, by
the power, the disk or the system. After each change all of it is compared with what the store was given to keep
(``looking``). Source: DESIGN §5; KIP37-2, KIP37-3, KIP516-3, KIP516-5, KIP516-6, KIP516-7.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from random import Random
from typing import Final, NamedTuple

from layout.errors import LayoutError
from layout.scheme import Scheme
from logstore import DELETE_DELAY, STALE_DELAY, LogDirInUseError, LogStore, LogStoreError, Settings, StoreOptions
from logstore.fs.crash_disk import memory_folder
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import Bench, FaultKind, PowerCut, must_be_away
from reconciler.simulator.drills.game import Change, Game
from reconciler.simulator.drills.kept_replicas import Where
from reconciler.simulator.drills.looking import settle
from reconciler.simulator.drills.moves import draw

STEPS: Final = 40
"""Changes of a drill."""

_HEALTHY, _CUT_AFTER, _AWAY, _CLOSED = 0.55, 0.25, 0.2, 0.08
"""How likely nothing goes wrong in a change; the power is cut right after one; a disk is away at the next open; the
store is closed and opened in order after a change."""

_LONGEST_OPEN: Final = 12
"""Changes of one disk in a long open."""

_SCHEMES: Final = (Scheme.NAMESPACED, Scheme.NAMESPACED, Scheme.BY_TOPIC_ID, Scheme.FLAT, None, None)
_IN_MEMORY: Final = frozenset({"offsets"})
"""Changes that are in memory when they could not be written, and go into the file with the next ones."""

_SYNCED_UNDO: Final = frozenset({"stage"})
"""Changes that are taken back durably."""

_DELAYS: Final[tuple[dict[str, dict[str, int]], ...]] = (
    {},
    {"": {STALE_DELAY: 300_000}},
    {"orders": {STALE_DELAY: 2_000, DELETE_DELAY: 700}, "org:": {STALE_DELAY: 50_000, DELETE_DELAY: 9_000}},
)


class _Problem(NamedTuple):
    """What a change raised; None: nothing."""

    kind: type[Exception] | None
    text: str = ""


def drill_engine(seed: int, reach: Callable[[str], None], steps: int = STEPS) -> None:
    """Drill a store as a seed says; ``reach`` counts what it comes to.

    Raises:
        BrokenInvariantError: it did not keep what it was given.
    """
    random = Random(f"{seed}/engine drill")
    scheme, delays = random.choice(_SCHEMES), {scope: dict(each) for scope, each in random.choice(_DELAYS).items()}
    with ExitStack() as stack:
        folder = stack.enter_context(memory_folder())
        bench = Bench(folder, random, random.randint(2, 3), scheme, Settings(delays))
        stack.callback(bench.end)
        game, longest = Game(bench, random, delays), dict[str, int]()
        for _ in range(steps):
            change = draw(game)
            if change is not None:
                reach(f"drill {change.name}")
                if not _play(game, change, longest, reach):
                    return


def _play(game: Game, change: Change, longest: dict[str, int], reach: Callable[[str], None]) -> bool:
    """Make a change, perhaps cut short, and look at what became of it; False: the drill ends with it.

    On a full disk there may be no room for the mark of a crash: what that leaves is harmless, and not known exactly.
    """
    bench, random = game.bench, game.random
    kind = None if random.random() < _HEALTHY else random.choice((FaultKind.POWER, FaultKind.POWER, *FaultKind))
    for each in change.kept:
        bench.stagings[each.topic_id, each.state.at.partition] += each.states[-1].where is not Where.LIVE
    before, strained = bench.changes, bool(bench.disks.full)
    with bench.fault(kind, random.randrange(longest.get(change.name, 10) + 1)):
        problem, cut = _made(change)
    longest[change.name] = max(longest.get(change.name, 0), bench.changes - before)
    if bench.struck:
        reach(f"drill_fault {kind}")
    if bench.struck or strained:
        bench.stagings.update((each.topic_id, each.state.at.partition) for each in change.kept)  # tried again, perhaps
    game.troubled |= bench.struck or strained
    _judge(change, problem, hurt=bench.struck or (strained and problem.kind is not None))
    if strained and (cut or change.loose):
        return False
    if problem.kind is not None and (bench.struck or strained) and not bench.disks.offline:
        _after_an_error(game, change)
    elif strained or (change.loose and not cut and not bench.disks.offline):
        bench.make_room()
        bench.close()
        _reopen(game)
    elif cut or bench.store.offline or bench.disks.offline or random.random() < _CUT_AFTER:
        bench.crash()
        _reopen(game)
    elif random.random() < _CLOSED:
        bench.close()
        _reopen(game)
    return _settled(game, change)


def _settled(game: Game, change: Change) -> bool:
    """Look at what became of a change; False: that cannot be known."""
    bench, whole = game.bench, change.kept if change.whole else ()
    if game.is_made_twice:
        return False
    bench.learn_scheme()
    settle(bench, game.kept, whole, troubled=game.troubled)
    if any(len(set(each.states)) > 1 for each in game.kept):
        bench.close()
        _reopen(game)
        settle(bench, game.kept, whole)
    change.done()
    _still_locked(bench, game.random)
    return True


def _made(change: Change) -> tuple[_Problem, bool]:
    """Make a change; gives what it raised, and whether the power went."""
    try:
        change.act()
    except PowerCut:
        return _Problem(None), True
    except (LogStoreError, LayoutError) as error:
        # An error keeps all that it came through, and so directories that are open, which a crash closes.
        return _Problem(type(error), str(error)), False
    return _Problem(None), False


def _judge(change: Change, problem: _Problem, *, hurt: bool) -> None:
    """Narrow what may be found by what was said of a change."""
    if hurt:
        return
    if problem.kind is not None and not issubclass(problem.kind, change.refused or ()):
        raise BrokenInvariantError(f"{change.name} is refused, and should not be: {problem.text}")
    if problem.kind is None and change.refused:
        raise BrokenInvariantError(f"{change.name} is done, and should be refused")
    for each in change.kept:
        each.states = each.states if change.loose else [each.states[0 if change.refused else -1]]


def _after_an_error(game: Game, change: Change) -> None:
    """Open the store again after the system refused a change: what was undone may be brought back by a crash."""
    bench, random = game.bench, game.random
    states = {each.number: list(each.states) for each in change.kept}
    if not bench.store.offline and change.name not in _IN_MEMORY:
        bench.learn_scheme()
        settle(bench, game.kept, change.kept if change.whole else (), troubled=True)
    crashes = random.random() < 0.7 and not bench.disks.full
    bench.make_room()
    bench.close()
    if change.name in _IN_MEMORY or (crashes and change.name not in _SYNCED_UNDO):
        for each in change.kept:
            each.states = states[each.number]
        game.kept += [each for each in change.kept if each not in game.kept]
    if crashes:
        bench.disks.crash(random)
    else:
        bench.write_back()  # else a later crash brings it back
    _reopen(game)


def _reopen(game: Game) -> None:
    """Open the store again, sometimes while a disk is away or fails, which then comes back."""
    bench, random = game.bench, game.random
    for number in bench.disks.offline:
        bench.disks.come_back(number)
    bench.make_room()
    if random.random() < _AWAY:
        number = random.randrange(len(bench.log_dirs))
        if (known := must_be_away(bench.log_dirs)) is not None:
            number = known
        if random.random() < 0.5:
            bench.lose(number)
        else:
            bench.disks.fail_after(number, random.randrange(_LONGEST_OPEN), random)
        bench.open()
        bench.disks.disarm()
        if random.random() < 0.5:
            bench.close()
        else:
            bench.crash()
        bench.disks.come_back(number)
    bench.open()
    game.troubled = False
    if bench.store.offline:
        raise BrokenInvariantError(f"a log dir is offline for nothing: {bench.store.offline}")


def _still_locked(bench: Bench, random: Random) -> None:
    """Nobody else may open what the store holds open."""
    if random.random() < 0.05:
        try:
            with closing(LogStore.open(bench.log_dirs[:1], StoreOptions(bench.clock, disk=bench.disks.disk, jobs=0))):
                pass
        except LogDirInUseError:
            return
        raise BrokenInvariantError("a log dir was opened twice")
