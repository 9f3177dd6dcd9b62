"""The next step for one finding: of a replica, of the fleet, or of what a broker would stumble over at its start.

| verdict                                                | step                                    |
|--------------------------------------------------------|-----------------------------------------|
| ABSENT, with a path / on a log dir that was not given  | ``findmnt`` / ``doctor … OTHER_LOG_DIR`` |
| DAMAGED, DUPLICATE, NO_ID, CHECKPOINT_ENTRY, LEFTOVER  | ``repair`` of all log dirs              |
| DAMAGED, which the system refuses to read              | ``doctor``                              |
| STALE_ID, NOT_ASSIGNED, UNKNOWN_TOPIC                  | ``plan`` for all log dirs               |
| STRAY / without topic ID, or its name was cut          | ``plan --strays`` / ``doctor``          |
| MISSING                                                | ``preflight``: a start makes it anew    |
| FOREIGN, RENAMED, MARKED_DELETE                        | ``explain``, once explained ``doctor``  |
| FUTURE, FUTURE_ABANDONED / IN_FLIGHT                   | Kafka's own listing                     |
| STAGED_DUE / of a topic that the metadata knows        | ``purge --dry-run`` / ``doctor``        |
| STAGED / wanted here under its topic ID                | ``staged`` / ``doctor``                 |
| NOT_COMPARED                                           | ``audit`` with metadata                 |
| OK                                                     | none                                    |
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from layout.directory_name import MAX_DIRECTORY_NAME, DirectoryKind, parse
from reconciler.next_steps.call import Call
from reconciler.next_steps.command import OTHER_LOG_DIR, SOURCE, Command, Step, ToolCommand
from reconciler.text import count
from reconciler.verdicts import Verdict, location_of

MOUNTED = ToolCommand("findmnt", ("--real",))
"""Lists what is mounted where: asked about a path that is not there, the same program says nothing and fails."""

_REFUSED = "cannot be read: "
"""How a scan says that the system refuses, before the system's own words."""

_Finding = Mapping[str, Any]
_FindingStep = Callable[[_Finding, Call], Step]


def _absent(finding: _Finding, call: Call) -> Step:
    if finding["log_dir"] is None:
        return Step("give every log dir of the broker", call.doctor(other_log_dir=OTHER_LOG_DIR))
    return Step(f"see whether the disk of {finding['log_dir']} is mounted", MOUNTED)


def _repaired(_: _Finding, call: Call) -> Step:
    return Step("plan what can be put right for certain; a plan is read before it is applied", call.repair())


def _damaged(finding: _Finding, call: Call) -> Step:
    """See to a file that is damaged; what the system refuses to read is none that a repair can put right."""
    said = finding.get("evidence") or finding.get("problem") or ""
    return _examined(finding, call) if _REFUSED in said else _repaired(finding, call)


def _planned(_: _Finding, call: Call) -> Step:
    return Step("plan to stage what nobody wants; a plan is read before it is applied", call.plan())


def _stray(finding: _Finding, call: Call) -> Step:
    topic_id = finding.get("disk_topic_id") or finding.get("topic_id")
    if not _tells_what_it_was(finding["name"], topic_id):
        return _examined(finding, call)
    return Step("plan to bring back what is wanted, and to give the rest a due time", call.plan(strays=True))


def _tells_what_it_was(name: str | None, topic_id: str | None) -> bool:
    """Whether a stray has a topic ID and its whole name: a plan leaves others alone, unless the rest of the disk tells.

    What is known of the broker as a whole says what becomes of those.
    """
    return bool(topic_id) and len(posixpath.basename(name or "")) < MAX_DIRECTORY_NAME


def step_of_strays(number: int, call: Call) -> Step:
    """Return the step that gives a due time to strays without a record, without which no purge takes them."""
    left = count(number, "stray has", "strays have")
    why = f"{left} no due time here, and no purge takes what has none: plan to give one to what is surely unwanted"
    return Step(why, call.plan(strays=True))


def _missing(_: _Finding, call: Call) -> Step:
    why = "a start of the broker makes it anew and fetches it from the leader: see that another replica is in sync"
    return Step(why, call.preflight())


def _between_log_dirs(finding: _Finding, call: Call) -> Step:
    which = () if finding["broker"] is None else ("--broker-list", str(finding["broker"]))
    listing = call.kafka_tool("kafka-log-dirs.sh", "--describe", *which)
    return Step("ask the broker, once it runs, whether the move goes on", listing)


def _in_flight(_: _Finding, call: Call) -> Step:
    return Step("wait until the reassignment is over", call.kafka_tool("kafka-reassign-partitions.sh", "--list"))


def _staged_due(finding: _Finding, call: Call) -> Step:
    topic_id = finding.get("disk_topic_id") or finding.get("topic_id")
    if topic_id is not None and topic_id == finding.get("metadata_topic_id"):
        # It may be wanted here again, which the metadata says and no purge without them.
        return _examined(finding, call)
    return Step("see what a purge would take", call.purge(dry_run=True))


def _staged(finding: _Finding, call: Call) -> Step:
    topic_id = finding.get("topic_id")
    if topic_id is not None and topic_id == finding.get("wanted_topic_id"):
        return Step("it is wanted here: see how it comes back, and what is done before", call.doctor())
    return Step("see from when on a purge may take it", call.staged())


def _not_compared(_: _Finding, call: Call) -> Step:
    return Step("compare with metadata of this cluster", call.audit(source=SOURCE))


def _explained(finding: _Finding, call: Call) -> Step:
    if finding["log_dir"] is None:
        return _examined(finding, call)
    return Step("see what it is, and what a broker does with it", call.explain(location_of(finding)))


def _examined(_: _Finding, call: Call) -> Step:
    return step_of_broker(call)


def step_of_broker(call: Call) -> Step:
    """Return the step that looks at a broker as a whole, where several findings lead to several commands.

    ``call`` names all log dirs of the broker.
    """
    return Step("see what has to be done with this broker, and in which order", call.doctor())


FINDING_STEPS: Mapping[Verdict, _FindingStep] = {
    Verdict.ABSENT: _absent,
    Verdict.DAMAGED: _damaged,
    **dict.fromkeys((Verdict.DUPLICATE, Verdict.NO_ID, Verdict.CHECKPOINT_ENTRY, Verdict.LEFTOVER), _repaired),
    **dict.fromkeys((Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC), _planned),
    Verdict.STRAY: _stray,
    Verdict.MISSING: _missing,
    Verdict.FUTURE: _between_log_dirs,
    Verdict.FUTURE_ABANDONED: _between_log_dirs,
    Verdict.IN_FLIGHT: _in_flight,
    Verdict.STAGED_DUE: _staged_due,
    Verdict.STAGED: _staged,
    Verdict.NOT_COMPARED: _not_compared,
    **dict.fromkeys((Verdict.FOREIGN, Verdict.RENAMED, Verdict.MARKED_DELETE), _explained),
}
"""The step for a finding of each verdict; OK has none."""


def step_of_finding(
    verdict: Verdict, finding: Mapping[str, Any], call: Call, *, explained: bool = False
) -> Step | None:
    """Return the next step for a finding; None: nobody has to act.

    Args:
        verdict: of the finding.
        finding: has ``log_dir``, ``name``, ``topic``, ``partition`` and ``broker``, any of them None, and where they
            are known ``disk_topic_id``, or ``topic_id``, ``metadata_topic_id``, and ``wanted_topic_id`` of this broker.
        call: how the program was called, with the log dirs of the finding's broker.
        explained: the reader has already had the path explained.
    """
    make = FINDING_STEPS.get(verdict)
    if make is None:
        return None
    return (_examined if explained and make is _explained else make)(finding, call)


def _identity_files(call: Call) -> ToolCommand:
    return ToolCommand("grep", ("-H", "=", *(posixpath.join(log_dir, "meta.properties") for log_dir in call.log_dirs)))


def _whose_disks(call: Call) -> Step:
    return Step("find out which disk is a copy, or another broker's or cluster's", _identity_files(call))


FLEET_STEPS: Mapping[str, Callable[[Call], Step]] = {
    "DUPLICATE_DIRECTORY_ID": _whose_disks,
    "DUPLICATE_NODE_ID": _whose_disks,
    "NODE_IN_SEVERAL_CLUSTERS": _whose_disks,
    "OTHER_CLUSTER": lambda call: Step("name the metadata of that cluster", call.audit(source=SOURCE)),
    "LOG_DIR_NOT_SEEN": lambda call: Step("give all log.dirs", call.doctor(other_log_dir=OTHER_LOG_DIR)),
    "LOG_DIR_NOT_REGISTERED": lambda call: Step("ask what a start would do with it", call.preflight()),
}
"""By the kind of a finding of the fleet; the other kinds say only what to beware of."""


def step_of_fleet(kind: str, call: Call) -> Step | None:
    """Return the next step for a finding of the fleet about one broker; None: there is none."""
    make = FLEET_STEPS.get(kind)
    return None if make is None else make(call)


def step_of_undecided(copies: Sequence[Sequence[str]], keeping: Command) -> Step:
    """Return the step for replicas that are live twice, where nothing tells the better copy.

    Args:
        copies: the paths of each one's copies.
        keeping: the repair that keeps the first copy of each.
    """
    return Step(
        f"nothing tells which is the better copy, {' or '.join(copies[0])}, so you decide: plan to stage the other, "
        "which can come back, and compare size and time of both in the plan; name the other after --keep if that one "
        "is to stay",
        keeping,
    )


def step_of_unshown(number: int) -> Step:
    """Return the step for topic IDs that a plan writes over data of which nothing shows that it is the topic's.

    It names no command: what looks at the broker as a whole may be what led to the plan.
    """
    which = count(number, "topic ID is", "topic IDs are")
    return Step(
        f"{which} written over data of which nothing shows that it is the present topic's: read their lines, and make "
        "the plan without them where the topic may have been deleted and made anew; a plan with --refetch TOPIC has "
        "such a replica fetched anew instead, where another broker leads it in sync"
    )


def _tool(program: str, *options: str) -> Callable[[str, str, Call], ToolCommand]:
    return lambda path, _, __: ToolCommand(program, (*options, path))


def _at_log_dir(program: str, *options: str) -> Callable[[str, str, Call], ToolCommand]:
    return lambda _, log_dir, __: ToolCommand(program, (*options, log_dir))


def _given_to_owner(path: str, log_dir: str, _: Call) -> ToolCommand:
    """Give all that lies at a path to the owner of the log dir; with -H, because a log dir may be named by a link."""
    return ToolCommand("chown", ("-RH", f"--reference={log_dir}", "--", path))


def _explain(path: str, _: str, call: Call) -> Command:
    return call.explain(path)


def _identities(_: str, __: str, call: Call) -> ToolCommand:
    return _identity_files(call)


def _repair(path: str, _: str, call: Call) -> Command:
    return call.doctor() if _is_beside_live(path) else call.repair()


def _plan(path: str, _: str, call: Call) -> Command:
    return call.doctor() if _is_beside_live(path) else call.plan()


def _is_beside_live(path: str) -> bool:
    """Whether it is a future or stray replica, which no plan stages and no repair mends: doctor says when it goes."""
    return parse(posixpath.basename(path)).kind in (DirectoryKind.FUTURE, DirectoryKind.STRAY)


RULE_COMMANDS: Mapping[str, Callable[[str, str, Call], Command | ToolCommand]] = {
    # All log dirs together
    "same_directory": _at_log_dir("realpath"),
    "identity": _identities,
    "not_formatted": _at_log_dir("findmnt", "--target"),
    "metadata_log_elsewhere": lambda _, log_dir, call: call.preflight(metadata_log_dir=log_dir),
    # One log dir
    "absent_log_dir": lambda *_: MOUNTED,
    "unusable_log_dir": _at_log_dir("ls", "-lad"),
    "damaged_identity": _explain,
    "closed_to_this_user": lambda _, __, call: call.preflight(),  # as another user
    "lock_held": _tool("fuser", "-v"),
    "another_owner": _given_to_owner,
    "read_only_disk": _at_log_dir("findmnt", "--target"),
    "full_disk": lambda _, __, call: call.doctor(),
    "damaged_checkpoint": _repair,
    "scheme_not_flat": lambda _, log_dir, call: call.convert_to_flat(log_dir),
    "no_segment": lambda _, __, call: call.scan(),
    # Directories by name
    "foreign_name": _tool("ls", "-la"),
    "staging_inside": lambda _, __, call: call.staged(),
    "unknown_to_release": _explain,
    "link": _tool("readlink", "-f"),
    "unreadable_directory": _tool("ls", "-lad"),
    "marked_delete": _explain,
    "stray": lambda _, __, call: call.plan(strays=True),  # of those that tell what they were
    "duplicate": _repair,
    # Replicas by topic ID and by what the cluster wants
    "partition_metadata": _repair,
    "no_topic_id": lambda _, __, call: call.doctor(),
    "stray_search_fails": _repair,
    "full_request_fails": _repair,
    "unwanted": _plan,
    "inconsistent_topic_id": _plan,
    "future": _explain,
    "future_alone": lambda _, __, call: call.doctor(),
    "future_promoted": _explain,
    "missing": lambda _, __, call: call.doctor(),
    "empty_metadata": lambda _, __, call: call.audit(source=SOURCE),
    # Files in partition dirs
    "odd_file_name": _tool("ls", "-la"),
    "unreadable_file": _tool("ls", "-la"),
    "linked_file": _tool("readlink", "-f"),
    "leader_epochs": _explain,
    # The metadata log
    "metadata_log_damaged": _explain,
    "metadata_log_topic_id": _explain,
    "metadata_log_snapshot": _tool("ls", "-la"),
    "quorum_state_too_new": _tool("cat"),
    "feature_level_too_new": lambda _, __, call: replace(call, release=None).preflight(),  # of the metadata's release
}
"""By the rule of preflight that found something; a rule that is not here has no command."""


def step_of_rule(
    rule: str, log_dir: str | None, name: str | None, problem: str | None, call: Call, *, topic_id: str | None = None
) -> Step | None:
    """Return the next step for what preflight found; None: there is none.

    Args:
        rule: name of the rule.
        log_dir: of the finding; None: it is about the broker as a whole.
        name: path below the log dir; None or ".": the log dir itself.
        problem: what was found, for the step's sentence; None: the rule's name.
        call: how the program was called, with all log dirs of the broker.
        topic_id: that the replica holds; None: none, or not known.
    """
    make = RULE_COMMANDS.get(rule)
    if make is None:
        return None
    place = log_dir or (call.log_dirs[0] if call.log_dirs else "LOG_DIR")
    path = posixpath.normpath(f"{place}/{name or '.'}")
    if rule == "stray" and not _tells_what_it_was(name, topic_id):
        return Step(problem or rule, call.doctor())
    return Step(problem or rule.replace("_", " "), make(path, place, call))
