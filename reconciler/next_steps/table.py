"""The decision table: from what is known of a broker to the ordered steps to a healthy one.

A line is a condition over a :class:`Situation` and the steps that follow from it. Every line whose condition holds adds
its steps, in this order; after a line that ends the list nothing can be said before its step is done.

| what is known                                                   | step                                             |
|-----------------------------------------------------------------|--------------------------------------------------|
| a log dir that this user may not read, something in it, or the  | ``doctor`` as the broker's user; the list ends   |
| staging directory beside it                                     |                                                  |
| a log dir is not there, or is not the expected one; the last    | ``findmnt --real``; if it is empty,              |
| two steps are for a disk that is truly a new one                | ``kafka-storage.sh format``, or ``cp`` of        |
|                                                                 | meta.properties, ``doctor``; the list ends       |
| a log dir's file system is mounted read-only, and no broker runs | ``findmnt --target``, ``doctor``; the list ends  |
| a change of names or of the scheme that is not finished         | ``convert --to``, ``doctor``; the list ends      |
| ``-delete``, or ``-future`` without its original, wanted here,  | ``mv`` it to its name, before any start          |
| and no other copy is in sync                                    |                                                  |
| a metadata log beside the one that the broker reads             | stop the broker if it runs; ``mv`` the log out   |
|                                                                 | of the log dir, ``doctor``; the list ends        |
| a disk is a copy, or another cluster's or broker's              | ``grep -H = …/meta.properties``; the list ends   |
| one that the broker never registered, in place of one it did    | ``findmnt --target LOG_DIR``; the rest is for a  |
|                                                                 | disk that is a new one, in place of a lost one   |
| the broker registered a log dir that was not given; what is     | ``doctor … OTHER_LOG_DIR``; with its path, and   |
| missing lies in one                                             | the list ends                                    |
| no metadata, another cluster's, or the copy of a stopped broker | ``doctor … --metadata SOURCE``                   |
| metadata that is old, of the future, or without its end         | ``doctor … --metadata SOURCE``                   |
| many live twice: a disk is a copy                               | ``grep -H = …/meta.properties``; the list ends   |
| strays, or to be, of a broker with ZooKeeper of unknown release | ``doctor … --kafka RELEASE``; if a repair comes  |
|                                                                 | first, ``doctor`` after it, and the list ends    |
| a broker runs here, and something has to be changed             | stop the broker; for strays alone it has time    |
| a disk that is full, and something staged on it                 | ``purge …``; else ``--before-due``, the largest; |
|                                                                 | ``doctor`` if more has to be done; the list ends |
| a disk that takes no file more, without its lock file           | ``mv`` an unwanted replica to another disk,      |
|                                                                 | ``doctor``; the list ends                        |
| a disk that is full, and nothing that a step here takes off it  | ``du``: grow it, or clear it; later              |
|                                                                 | ``kafka-log-dirs.sh``, of what can move away     |
| a directory of a foreign name, also in the staging directory    | ``mv`` it out, or to the missing name it had     |
| a directory that the release does not know, such as a stray     | ``mv`` it out of the log dir                     |
| FUTURE_ABANDONED of a broker that stands still, and not wanted  | ``mv`` it out of the log dir                     |
| a replica under another name than its topic ID has              | ``mv`` it to that name                           |
| DUPLICATE, and nothing tells which copy is the better one       | ``repair`` with ``--keep COPY``                  |
| a future or stray replica whose partition.metadata is damaged   | ``mv`` it out of the log dir                     |
| STRAY without topic ID, and none of its name is wanted here;    | ``mv`` it out of the log dir                     |
| with a cut name; or with a live replica of its ID in its place  |                                                  |
| DUPLICATE, DAMAGED, NO_ID, CHECKPOINT_ENTRY, LEFTOVER; not on a | ``repair … -o FILE``, ``repair --apply FILE``    |
| full disk with something to stage, where it finds no room       |                                                  |
| a disk that is full, and something to stage                     | ``mkdir`` the folder of fallback records         |
| STALE_ID, NOT_ASSIGNED, UNKNOWN_TOPIC, something wanted again   | ``plan … -o FILE``, ``apply FILE``               |
| STRAY; without topic ID, and a live one in sync in its place    | with ``--strays``; and ``--strays-without-id``   |
| no topic ID is certain, and another broker leads it in sync     | with ``--refetch TOPIC``                         |
| what that stages keeps the broker from starting: the disk is    | ``doctor``; the list ends                        |
| full, or the release does not know what is staged in place      |                                                  |
| DAMAGED or NO_ID beside STALE_ID                                | the repair follows here: no ID was certain       |
| no topic ID is certain, and it may be the only copy             | ``repair --adopt-topic-id TOPIC``, ``--apply``   |
| live twice, and no repair can take them apart                   | ``repair …``, which says why; the list ends      |
| a replica of which neither can be done                          | ``explain PATH``                                 |
| nothing but NO_ID, of a broker that runs in ZooKeeper mode      | ``repair … -o FILE``, later; no stop             |
| something else keeps the broker from starting                   | what that rule names                             |
| STAGED_DUE in a log dir itself, and no broker runs              | ``purge …``: beside a broker it would wait       |
| MISSING, and it had the only copy in sync; ABSENT, and a new    | ``audit … --verdict MISSING``; no start          |
| disk lies in the place of the one where the metadata has it     |                                                  |
| what nobody wants, and the policy keeps                         | ``doctor …``, later: no plan takes it            |
| a broker stands still, or has to                                | ``preflight …``, if the steps above change what  |
|                                                                 | doctor found; then start it                      |
| STRAY without topic ID, and the one in its place not in sync    | ``doctor …``, later                              |
| STAGED_DUE, and not wanted here again                           | ``purge …``; where others are, ``--metadata …``  |
| STAGED, or staged by a step above                               | ``purge …``, later                               |

Each ``mv`` is a step, up to five of a kind; ``doctor`` names the next ones after them.

MISSING needs no step of its own: a broker makes such a replica anew at its start, and fetches it from the leader. So it
does with what is ABSENT because a new disk lies in the place of the one where the metadata has it.
FUTURE, IN_FLIGHT and MARKED_DELETE are a running broker's own work, and need none either; so is FUTURE_ABANDONED while
the broker runs. Its next start never deletes that, and in KRaft mode makes a stray of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from reconciler.next_steps.call import ADOPTION_FILE, FALLBACK_FOLDER
from reconciler.next_steps.command import SOURCE, Step
from reconciler.next_steps.disks import (
    NOT_THIS_BROKERS,
    absent,
    another_disk,
    apart,
    as_another_user,
    finish_change,
    mount,
    mount_writable,
    not_given,
    on_replaced,
    read_only,
    replaced,
    unseen,
    whose,
    with_not_given,
)
from reconciler.next_steps.findings import step_of_rule, step_of_undecided
from reconciler.next_steps.losses import RETURNABLE, come_back, loses, lost, made_at_start
from reconciler.next_steps.moves import (
    UNWANTED,
    abandoned,
    entries_of_renamed,
    foreign,
    keep_last_copies,
    last_copies,
    metadata_log_left,
    move_abandoned,
    move_for_lock,
    move_foreign,
    move_metadata_log,
    move_not_live,
    not_live,
    rename_back,
    renamed,
)
from reconciler.next_steps.room import (
    ask_release,
    free,
    frees,
    give_room,
    lacks_room,
    look_again,
    looks_again,
    make_folder,
    move_strays,
    needs_release,
    purge_due,
)
from reconciler.next_steps.situation import MetadataTrust, Obstacle, Situation, UncertainReplica
from reconciler.text import count
from reconciler.verdicts import BENIGN, Verdict

REPAIRED = (Verdict.DUPLICATE, Verdict.DAMAGED, Verdict.NO_ID, Verdict.CHECKPOINT_ENTRY, Verdict.LEFTOVER)
"""Verdicts that a plan of repairs is for."""
_WHAT_FOLLOWS = ", what follows is all that can be said"
_BY_A_LINE_ABOVE = frozenset(
    {
        *("absent_log_dir", "lock_held", "full_disk", "duplicate", "partition_metadata", "no_topic_id", "foreign_name"),
        *("unwanted", "damaged_checkpoint", "stray", "missing", "inconsistent_topic_id", "unknown_to_release"),
    }
)
"""Rules of preflight whose cure is a line of the table above the one for what is left."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table."""

    holds: Callable[[Situation], object]
    steps: Callable[[Situation], Iterator[Step]]
    ends: bool = False
    """Whether nothing can be said of later steps before this one is done."""


def next_steps(situation: Situation) -> tuple[Step, ...]:
    """List the steps to a healthy broker, in their order; none: there is nothing to do."""
    steps: list[Step] = []
    for line in TABLE:
        if line.holds(situation):
            if line.steps is make_folder and situation.call.fallback is None:
                # Before the folder is made, no command may name it.
                situation = replace(situation, call=situation.call.with_fallback(FALLBACK_FOLDER))
            steps += line.steps(situation)
            if line.ends:
                break
    if steps and steps[-1].why.endswith(_WHAT_FOLLOWS):
        steps[-1] = replace(steps[-1], why=f"{steps[-1].why.removesuffix(_WHAT_FOLLOWS)}, no more can be said")
    # Two lines may lead to one command, such as the repair of a log dir; it is run once.
    first = {step.command or step.why: step for step in reversed(steps)}
    return tuple(step for step in steps if first[step.command or step.why] is step)


def _can_plan(known: Situation) -> bool:
    return known.trust is not MetadataTrust.NONE


def _repairs(known: Situation) -> bool:
    """Whether a repair has something to do, now or once stale replicas are staged; what is not known counts as so."""
    waits = any(each.waits for each in known.uncertain)
    staged = sum(each.is_repaired and _can_go(known, each) for each in known.uncertain)
    useful = known.repairable is None or known.repairable > staged or bool(known.undecided) or waits
    return known.number(*REPAIRED) > entries_of_renamed(known) and useful and not _writes_ids_itself(known)


def _writes_ids_itself(known: Situation) -> bool:
    """Whether missing topic IDs are all there is, and the broker runs and writes them: no reason to stop it."""
    alone = 0 < known.number(Verdict.NO_ID) == known.number(*REPAIRED)
    return alone and known.on_zookeeper and bool(known.in_use) and not _needs_more(known)


def _needs_more(known: Situation) -> bool:
    return _stages(known) or foreign(known) or renamed(known) or bool(known.obstacles)


def _repairs_first(known: Situation) -> bool:
    """Whether a repair comes before a plan: not on a full disk, for its files and backups find no room there."""
    room_first = frees(known) or (bool(known.full) and _plans(known))
    return _repairs(known) and not _contradicted(known) and not room_first


def _contradicted(known: Situation) -> bool:
    """Whether topic IDs are missing while stale ones lie beside them, which keep a repair from being certain."""
    waits = known.repairable is None or any(each.waits for each in known.uncertain)
    missing = known.number(Verdict.DAMAGED, Verdict.NO_ID) > 0
    unshown = any(each.is_repaired and _can_go(known, each) for each in known.uncertain)
    return _can_plan(known) and (unshown or (waits and missing and known.number(Verdict.STALE_ID) > 0))


def _to_refetch(known: Situation) -> tuple[UncertainReplica, ...]:
    """Find the replicas without a certain topic ID that can be staged, so that the broker fetches them anew."""
    if _writes_ids_itself(known):
        return ()
    left = (each for each in known.uncertain if _can_go(known, each))
    return tuple(each for each in left if each.topic is not None and not each.waits)


def _can_go(known: Situation, uncertain: UncertainReplica) -> bool:
    """Whether a replica is to be fetched anew: not where its broker, in ZooKeeper mode, writes missing IDs by itself.

    One of release 2.8 writes none beside a replica that it follows, so most of its followers have no ID.
    """
    return uncertain.can_go and not (known.on_zookeeper and uncertain.is_repaired)


def _to_adopt(known: Situation) -> tuple[UncertainReplica, ...]:
    """Find those whose data only the operator's word can save: no other live broker leads them in sync."""
    left = (each for each in known.uncertain if not each.is_repaired and not each.waits)
    return tuple(each for each in left if each.can_be_adopted and not each.can_go)


def _stuck(known: Situation) -> tuple[UncertainReplica, ...]:
    """Find the rest: what can neither go nor be adopted."""
    ways = (*_to_refetch(known), *_to_adopt(known), *not_live(known))
    left = (each for each in known.uncertain if each not in ways and not (each.waits or each.is_repaired))
    return () if _writes_ids_itself(known) else tuple(left)


def _strays(known: Situation) -> int:
    """Count the strays that a plan gives a due time: none where they have to go before a start."""
    found = known.found.get(Verdict.STRAY)
    return 0 if found is None or not known.knows_strays else max(0, found.number - found.wanted - found.left)


def _waiting_strays(known: Situation) -> int:
    """Count the strays without topic ID that a plan takes once the replica in their place is in sync."""
    left = known.found[Verdict.STRAY].left if Verdict.STRAY in known.found and known.knows_strays else 0
    return left - sum(each.is_unclaimed for each in known.uncertain)


def _stages(known: Situation) -> bool:
    """Whether a plan has something to do by the verdicts alone."""
    return _can_plan(known) and known.number(*UNWANTED) + known.wanted(*RETURNABLE) + _strays(known) > 0


def _plans(known: Situation) -> bool:
    return _stages(known) or (_can_plan(known) and len(_to_refetch(known)) > 0)


def _sends_away(known: Situation) -> bool:
    return _can_plan(known) and bool(known.number(*UNWANTED) or _strays(known) or _to_refetch(known))


def _changes(known: Situation) -> bool:
    return frees(known) or _repairs(known) or _needs_room(known)


def _needs_room(known: Situation) -> bool:
    """Whether something has to be changed beside what a start writes anew: checkpoints, without stale entries."""
    ways = (_plans, foreign, renamed, abandoned, _to_adopt, not_live)
    repaired = _repairs(known) and known.number(Verdict.DUPLICATE, Verdict.DAMAGED, Verdict.NO_ID) > 0
    return repaired or bool(known.in_the_way) or any(way(known) for way in ways)


def _left(known: Situation) -> tuple[Obstacle, ...]:
    """Find the obstacles that no line above is for; a staging directory inside goes with what has a foreign name."""
    by_others = _BY_A_LINE_ABOVE | ({"staging_inside"} if foreign(known) else frozenset())
    return tuple(each for each in known.obstacles if each.rule not in by_others)


def _only_strays(known: Situation) -> bool:
    """Whether strays are all that is to be done, which only take room; a full disk needs that."""
    asked = {verdict for verdict in known.found if verdict not in BENIGN}
    return asked == {Verdict.STRAY} and not (known.wanted(Verdict.STRAY) or known.full or known.obstacles)


def _stands_still(known: Situation) -> bool:
    return _changes(known) or bool(known.obstacles) or (not known.in_use and made_at_start(known) > 0)


def _newer(known: Situation) -> Iterator[Step]:
    yield Step(
        f"{known.trust_why or 'the metadata cannot be relied on'}: {known.better_metadata}{_WHAT_FOLLOWS}",
        known.call.doctor(source=SOURCE),
    )


def _stop(known: Situation) -> Iterator[Step]:
    time = ", which has time, because strays disturb nothing" if _only_strays(known) else ""
    yield Step(f"stop the broker that runs on {', '.join(known.in_use)}{time}: what follows needs its log dirs alone")


def _repair(known: Situation) -> Iterator[Step]:
    what = ", ".join(verdict for verdict in REPAIRED if known.number(verdict))
    if known.undecided:
        yield step_of_undecided(known.undecided, known.call.repair(kept=[paths[0] for paths in known.undecided]))
    else:
        yield Step(f"plan what can be put right for certain of {what}, and read it", known.call.repair())
    yield Step("put it right; it is backed up first, and can be undone", known.call.apply_repair())


def _adopt(known: Situation) -> Iterator[Step]:
    found = _to_adopt(known)
    topics = {each.topic for each in found if each.topic is not None}
    yield Step(
        f"no other live broker leads {found[0].path} in sync, so it may be the only copy and stays: "
        f"{found[0].reason}. Only if its data is the present topic's, write that topic's ID",
        known.call.repair(adopted=topics),
    )
    yield Step("write it; the file is backed up first, and it can be undone", known.call.apply_repair(ADOPTION_FILE))


def _explain(known: Situation) -> Iterator[Step]:
    for each in _stuck(known):
        yield Step(f"nothing here can be done about {each.path}: {each.reason}", known.call.explain(each.path))


def _before_migration(known: Situation) -> Iterator[Step]:
    yield Step(
        f"the broker writes the {count(known.number(Verdict.NO_ID), 'missing topic ID')} by itself, one of 2.8 once it "
        "leads; before a migration to KRaft, stop it and put back what is left",
        known.call.repair(),
        later=True,
    )


def _plan(known: Situation) -> Iterator[Step]:
    parts = [f"stage {known.number(*UNWANTED)} that nobody wants"] if known.number(*UNWANTED) else []
    parts += [f"bring {known.wanted(*RETURNABLE)} back that are wanted"] if known.wanted(*RETURNABLE) else []
    strays = _strays(known)
    parts += [f"give {count(strays, 'stray')} a due time"] if strays else []
    replaced = known.found[Verdict.STRAY].replaced if strays else 0
    bare = (
        f"; {replaced} of them without topic ID, in whose place a replica lives, its data in sync" if replaced else ""
    )
    fetched = _to_refetch(known)
    parts += [f"stage {len(fetched)} of which no topic ID is certain, so that they are fetched anew"] if fetched else []
    first = f": {fetched[0].path}, {fetched[0].reason}" if fetched else ""
    topics = {str(each.topic) for each in fetched}
    command = known.call.plan(strays=strays > 0, without_id=replaced > 0, refetched=topics)
    yield Step(f"plan to {', '.join(parts)}, and read the plan{first}{bare}", command)
    yield Step("carry the plan out; nothing is deleted, and all of it can come back", known.call.apply())


def _others(known: Situation) -> Iterator[Step]:
    for obstacle in _left(known):
        step = step_of_rule(obstacle.rule, obstacle.log_dir, obstacle.name, None, known.call)
        if step is not None:
            yield Step(obstacle.problem, step.command)


def _start(known: Situation) -> Iterator[Step]:
    if _changes(known) or known.obstacles or known.due_inside:
        # Of two places for the metadata log, the broker's is the one that was named in a step before.
        named = next((each.log_dir for each in _left(known) if each.rule == "metadata_log_elsewhere"), None)
        asked = known.call.preflight(metadata_log_dir=named)
        yield Step("ask once more whether the broker starts now, and what it would do", asked)
    back = come_back(known) + (known.number(Verdict.RENAMED) if renamed(known) else 0)
    missing = max(0, made_at_start(known) - back) + known.number(Verdict.STALE_ID) + len(_to_refetch(known))
    fetched = "; it makes what is missing anew, and fetches it from the leaders" if missing else ""
    reported = ", and tells the controllers in which of its log dirs each of them is now" if on_replaced(known) else ""
    # What nothing above cures may keep it from starting still.
    once = ", once the answer is that it starts" if _left(known) else ""
    yield Step(f"start the broker{once}{fetched}{reported}")


def _after_start(known: Situation) -> Iterator[Step]:
    strays, lie = count(_waiting_strays(known), "stray"), "lies" if _waiting_strays(known) == 1 else "lie"
    yield Step(
        f"once the broker runs, and has the replicas in sync in whose place {strays} without topic ID {lie}, look "
        "again: then they get a due time",
        known.call.doctor(),
        later=True,
    )


def _wait(known: Situation) -> Iterator[Step]:
    when = "7 d after the plan was applied" if known.due_from is None else f"from {known.due_from} on"
    yield Step(f"{when}, delete for ever what is staged; until then it can come back", known.call.purge(), later=True)


def _kept(known: Situation) -> Iterator[Step]:
    stays, them, what = ("stays", "it", "a stray") if known.held == 1 else ("stay", "them", "strays")
    meanwhile = "" if known.on_zookeeper else f"; a start may make {what} of {them} meanwhile"
    yield Step(
        f"{count(known.held, 'replica')} that nobody wants {stays}, because the policy keeps {them}: "
        f"{known.held_by}{meanwhile}. Look again once that rule has ended, or is taken out",
        known.call.doctor(),
        later=True,
    )


TABLE: tuple[Line, ...] = (
    Line(lambda s: s.unreadable, as_another_user, ends=True),
    Line(absent, mount, ends=True),
    Line(read_only, mount_writable, ends=True),
    Line(lambda s: s.cut_short, finish_change, ends=True),
    Line(last_copies, keep_last_copies),
    Line(lambda s: metadata_log_left(s) and s.in_use, _stop),
    Line(metadata_log_left, move_metadata_log, ends=True),
    Line(lambda s: any(kind in s.fleet for kind in NOT_THIS_BROKERS), whose, ends=True),
    Line(not_given, with_not_given, ends=True),
    Line(replaced, another_disk),
    Line(lambda s: "LOG_DIR_NOT_SEEN" in s.fleet and not replaced(s), unseen),
    Line(lambda s: s.trust is not MetadataTrust.GOOD, _newer),
    Line(lambda s: s.copied, apart, ends=True),
    Line(lambda s: needs_release(s, _plans(s)) and not _repairs_first(s), ask_release),
    Line(lambda s: s.in_use and _changes(s), _stop),
    Line(frees, free),
    Line(lambda s: frees(s) and _needs_room(s), look_again, ends=True),
    Line(lambda s: s.without_lock and _changes(s), move_for_lock, ends=True),
    Line(lambda s: lacks_room(s, _plans(s)), give_room),
    Line(foreign, move_foreign),
    Line(lambda s: s.in_the_way, move_strays),
    Line(abandoned, move_abandoned),
    Line(renamed, rename_back),
    Line(not_live, move_not_live),
    Line(_repairs_first, _repair),
    Line(lambda s: needs_release(s, _plans(s)) and _repairs_first(s), look_again, ends=True),
    Line(lambda s: s.full and _plans(s), make_folder),
    Line(_plans, _plan),
    Line(lambda s: _plans(s) and looks_again(s), look_again, ends=True),
    Line(lambda s: _repairs(s) and _contradicted(s), _repair),
    Line(lambda s: _to_adopt(s) and not _writes_ids_itself(s), _adopt),
    Line(lambda s: s.live_twice, apart, ends=True),
    Line(_stuck, _explain),
    Line(_writes_ids_itself, _before_migration),
    Line(_left, _others),
    Line(lambda s: s.due_inside and s.purgeable and (not s.in_use or _changes(s)), purge_due),
    Line(loses, lost),
    Line(lambda s: s.held, _kept),
    Line(lambda s: _stands_still(s) and not loses(s), _start),
    Line(lambda s: s.trust is MetadataTrust.GOOD and _waiting_strays(s) > 0, _after_start),
    Line(lambda s: s.purgeable, purge_due),
    Line(lambda s: s.staged > s.wanted(Verdict.STAGED) or _sends_away(s), _wait),
)
"""The table, in its order."""
