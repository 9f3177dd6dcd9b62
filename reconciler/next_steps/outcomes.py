"""What comes after a run that changed something, or could not.

| after       | and                                   | steps                                                 |
|-------------|---------------------------------------|-------------------------------------------------------|
| ``apply``   | a disk had no room for a record       | ``mkdir`` a folder for records, ``apply`` with it     |
| ``apply``   | a disk had no room for another file   | make room, by a ``purge`` for example; ``apply``      |
| ``apply``   | something else was skipped or failed  | ``doctor``: what is left, with the options it needs   |
| ``apply``   | all is done                           | ``preflight``, start the broker, later ``purge``      |
| ``apply``   | all is done, and of a broker some is  | later the same ``plan``, ``apply``; no start before   |
|             | only noted as unwanted                |                                                       |
| ``apply``   | all is done, with a folder for        | ``doctor``: a broker takes a full disk offline; later |
|             | records that found no room            | ``purge``                                             |
| ``repair``  | all is done                           | ``doctor``: what is left, and whether it starts       |
| ``repair``  | something was skipped or failed       | ``doctor``: what is left, with the options it needs   |
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.next_steps.call import FALLBACK_FOLDER, Call
from reconciler.next_steps.command import SOURCE, Command, Step, ToolCommand
from reconciler.text import count

_LEFT = "look again at what was skipped or failed, see why above, and plan anew what is left of it"
"""A plan does not say with which options it was made, such as the topics whose data is adopted."""


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """What became of a plan.

    Attributes:
        call: log dirs and metadata of the plan, and how it was applied.
        plan_file: the plan, as it was given.
        complete: whether every action is done, now or before.
        no_space: whether a replica could not be staged, because there is no room for its record.
        no_room_in_log_dir: whether another action failed because its disk is full; no other folder helps there.
        staged: how many replicas this run staged or gave a due time.
        due: when a purge may take the first of them, as text; None: nothing was staged, or some by an earlier run.
        brokers: the log dirs of each broker of the plan; empty: all are one broker's.
        noted: the log dirs of what was only noted as unwanted, one for each; what is done about it takes another plan.
        noted_until: when the next note counts, as text; None: the plan does not say.
        options: with which the plan was made, word by word; empty: it does not say.
    """

    call: Call
    plan_file: str
    complete: bool
    no_space: bool = False
    no_room_in_log_dir: bool = False
    staged: int = 0
    due: str | None = None
    brokers: tuple[tuple[str, ...], ...] = ()
    noted: tuple[str, ...] = ()
    noted_until: str | None = None
    options: tuple[str, ...] = ()


def steps_after_apply(done: AppliedPlan) -> tuple[Step, ...]:
    """List what comes next."""
    call = done.call
    if done.no_space and call.fallback is None:
        made = Step(
            "the disk is full, and a record of what is staged found no room: make a folder for it on another disk",
            ToolCommand("mkdir", ("-p", FALLBACK_FOLDER)),
        )
        again = call.with_fallback(FALLBACK_FOLDER).apply(done.plan_file)
        return made, Step("apply the plan again; what is done already is recognised", again)
    if done.no_space:
        why = f"{call.fallback} has no room either: name a folder on a disk that has, and apply the plan again"
        return (Step(why, call.apply(done.plan_file)),)
    if done.no_room_in_log_dir:
        return _after_no_room(done)
    if not done.complete:
        return (Step(_LEFT, call.doctor()),)
    steps = list[Step]()
    for log_dirs in done.brokers or (call.log_dirs,):
        if not set(log_dirs).intersection(done.noted):
            steps += _starting(replace(call, log_dirs=log_dirs))
    steps += _noting_again(done) if done.noted else ()
    if done.staged:
        when = "once it is due" if done.due is None else f"from {done.due} on"
        why = f"{when}, delete for ever what is staged, which frees its space; until then it can come back"
        steps.append(Step(why, call.purge(), later=True))
    return tuple(steps)


def _noting_again(done: AppliedPlan) -> tuple[Step, ...]:
    """List the steps that lead from a note to what the next one of the same replicas allows."""
    what = count(len(done.noted), "replica is only noted as unwanted", "replicas are only noted as unwanted")
    when = "later" if done.noted_until is None else f"from {done.noted_until} on"
    why = (
        f"{what}, and nothing is done about {'it' if len(done.noted) == 1 else 'them'} yet: {when}, and by later "
        "metadata, make the same plan again, before a start of the broker may make strays of what it finds unwanted"
    )
    if not done.options:
        return (Step(why, later=True),)
    again = _by_later_metadata(done.call).plan_again(done.options, done.plan_file)
    return Step(why, again, later=True), Step("then carry it out", done.call.apply(done.plan_file), later=True)


def _by_later_metadata(call: Call) -> Call:
    """Return the call with a blank for metadata that lies in its log dirs, and ends while the broker stands still."""
    inside = [
        source for source in call.metadata if f"{source}/".startswith(tuple(f"{path}/" for path in call.log_dirs))
    ]
    return replace(call, metadata=(SOURCE,)) if inside or not call.metadata else call


def _after_no_room(done: AppliedPlan) -> tuple[Step, ...]:
    """List the steps to room in a log dir, where a file has to be written."""
    full = "the disk is full, and a file in the log dir itself found no room: make room there"
    again = Step("apply the plan again; what is done already is recognised", done.call.apply(done.plan_file))
    if not done.staged:
        return Step(full), again
    purge = (
        f"{full}, for example by deleting for ever what is staged, from {done.due} on, or one directory at once with "
        "--location and --before-due"
    )
    return Step(purge, done.call.purge(), later=True), again


def undo_of_staging(call: Call, topic: str, partition: int, topic_id: str) -> Command:
    """Return the command that brings one staged replica back."""
    return replace(call, metadata=()).restore(topic=topic, partition=partition, topic_id=topic_id)


def undo_of_stray(log_dir: str, name: str) -> Command:
    """Return the command that leaves a stray what it was, without a due time."""
    return Call((log_dir,)).restore(locations=[name], as_stray=True)


def undo_of_file(path: str) -> ToolCommand:
    """Return the command that takes back a file which a change added: a topic ID."""
    return ToolCommand("rm", (path,))


def steps_after_repair(call: Call, *, complete: bool) -> tuple[Step, ...]:
    """List what comes next when a plan of repairs was applied."""
    if not call.log_dirs:
        return ()  # a plan without an action names none
    if not complete:
        return (Step(_LEFT, call.doctor()),)
    return (Step("see what is left to do, and whether the broker starts now", call.doctor()),)


def _starting(call: Call) -> tuple[Step, ...]:
    if call.fallback is not None:
        return (Step("what is staged frees no room: see whether a disk is full, before the start", call.doctor()),)
    return (
        Step("ask whether the broker starts now, and what it would do", call.preflight()),
        Step("start the broker"),
    )
