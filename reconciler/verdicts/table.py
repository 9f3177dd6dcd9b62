"""The case table: what the comparison says of one replica. The only place that decides (DESIGN §3).

A case is a verdict, a condition over the columns of one *joined row*, and the evidence as a template over the same
columns. Cases are ordered; the first whose condition holds gives the verdict. A joined row has what the disk says of a
(broker, topic, partition) and what the metadata says, side by side, every column present and never null.

Conditions use only ``==``, ``&`` and ``|``, so the same object answers for one Python row, for DuckDB's expressions and
for Spark's columns. ``not`` is missing on purpose (``~True`` is -2 in Python): :func:`_no` compares with False.

| disk                                      | metadata                                   | verdict          |
|-------------------------------------------|--------------------------------------------|------------------|
| log dir absent, or not the expected one   | –                                          | ABSENT           |
| transient file beside the partition dirs  | –                                          | LEFTOVER         |
| damaged partition.metadata or checkpoint, | any                                        | DAMAGED          |
| or a directory that cannot be read        |                                            |                  |
| checkpoint entry without a replica        | –                                          | CHECKPOINT_ENTRY |
| foreign name                              | –                                          | FOREIGN          |
| `__cluster_metadata`, index cache         | –                                          | OK               |
| staged, due / not yet due                 | –                                          | STAGED_DUE / STAGED |
| -delete / -stray name                     | any                                        | MARKED_DELETE / STRAY |
| -future name                              | move in progress / not                     | FUTURE / FUTURE_ABANDONED |
| the same live partition in two log dirs   | any                                        | DUPLICATE        |
| live                                      | none speaks of this broker                 | NOT_COMPARED     |
| live, ID belongs to another name          | any                                        | RENAMED          |
| live or absent, IDs do not contradict     | being reassigned here, or deleted          | IN_FLIGHT        |
| live, no topic ID                         | wanted here, under an ID                   | NO_ID            |
| live, ID = wanted ID                      | wanted here                                | OK               |
| live, ID ≠ the ID of its name             | name known                                 | STALE_ID         |
| live                                      | name known, broker not among the replicas  | NOT_ASSIGNED     |
| live                                      | name and ID both unknown                   | UNKNOWN_TOPIC    |
| absent                                    | wanted here, on a log dir that was not seen | ABSENT          |
| absent                                    | wanted here                                | MISSING          |

Four choices are on purpose. RENAMED stands before STALE_ID, because data that the cluster wants under another name
must never be called stale. STALE_ID needs only that the name is known under another ID, whether or not the new topic is
wanted on this broker: the old one no longer exists either way (KIP516-5). What an INCREMENTAL source does not mention
is NOT_COMPARED: silence of such a source says nothing. A -future directory without topic ID beside its live copy is
FUTURE as long as the metadata knows the topic's name: a move of release 2.8 has no ID before it is done, so it proves
nothing, and the verdict on the live copy speaks for both.

A case also says which doubt its verdict is open to, where one side may be too old to know (``doubt.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reconciler.verdicts.doubt import Doubt

Condition = Callable[[Any], Any]
"""Maps an object with the columns of :class:`JoinedRow` as attributes to a truth value or an engine's expression."""


class Verdict(StrEnum):
    """What the comparison says of one replica, or of something else that lies in a log dir."""

    OK = "OK"
    DAMAGED = "DAMAGED"
    FOREIGN = "FOREIGN"
    STAGED = "STAGED"
    STAGED_DUE = "STAGED_DUE"
    MARKED_DELETE = "MARKED_DELETE"
    STRAY = "STRAY"
    FUTURE = "FUTURE"
    FUTURE_ABANDONED = "FUTURE_ABANDONED"
    DUPLICATE = "DUPLICATE"
    NO_ID = "NO_ID"
    STALE_ID = "STALE_ID"
    NOT_ASSIGNED = "NOT_ASSIGNED"
    IN_FLIGHT = "IN_FLIGHT"
    UNKNOWN_TOPIC = "UNKNOWN_TOPIC"
    RENAMED = "RENAMED"
    MISSING = "MISSING"
    ABSENT = "ABSENT"
    NOT_COMPARED = "NOT_COMPARED"
    LEFTOVER = "LEFTOVER"
    CHECKPOINT_ENTRY = "CHECKPOINT_ENTRY"


BENIGN: frozenset[Verdict] = frozenset(
    {Verdict.OK, Verdict.STAGED, Verdict.FUTURE, Verdict.IN_FLIGHT, Verdict.NOT_COMPARED}
)
"""Verdicts that require no action: an audit that finds only these is clean."""

UNWANTED: frozenset[Verdict] = frozenset({Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC, Verdict.STRAY})
"""Verdicts on replicas that lie on a disk and that the cluster does not want there: what a plan stages."""

URGENCY: tuple[Verdict, ...] = (
    Verdict.ABSENT,
    Verdict.DAMAGED,
    Verdict.DUPLICATE,
    Verdict.FOREIGN,
    Verdict.STALE_ID,
    Verdict.NO_ID,
    Verdict.MISSING,
    Verdict.RENAMED,
    Verdict.NOT_ASSIGNED,
    Verdict.UNKNOWN_TOPIC,
    Verdict.STRAY,
    Verdict.FUTURE_ABANDONED,
    Verdict.MARKED_DELETE,
    Verdict.STAGED_DUE,
    Verdict.CHECKPOINT_ENTRY,
    Verdict.LEFTOVER,
    Verdict.IN_FLIGHT,
    Verdict.STAGED,
    Verdict.FUTURE,
    Verdict.NOT_COMPARED,
    Verdict.OK,
)
"""Every verdict once, those that stop a broker first: the order of tables and reports."""


@dataclass(frozen=True, slots=True)
class JoinedRow:
    """One (broker, topic, partition), disk and metadata side by side. Text is "" where there is none."""

    on_disk: bool = False
    kind: str = ""
    """A :class:`logstore.rows.Kind`, "" when nothing lies on the disk."""
    state: str = ""
    """A :class:`logstore.rows.MetadataState`, "" when none is expected."""
    topic: str = ""
    disk_topic_id: str = ""
    problem: str = ""
    """What the scan found wrong, one sentence."""
    due: bool = False
    """Staged, and its delay is over."""
    copies: int = 0
    """Live directories of this partition on this broker."""
    judged: bool = False
    """A metadata source speaks for this broker."""
    complete: bool = False
    """That source is FULL: what it does not mention is not wanted."""
    wanted: bool = False
    """The broker is among the replicas: by name for live directories, by topic ID for the rest, whose names are cut."""
    wanted_topic_id: str = ""
    moving: bool = False
    """A reassignment is adding the replica here or removing it from here, or its partition is being deleted."""
    name_known: bool = False
    name_topic_id: str = ""
    """The ID that the metadata gives to the topic's name."""
    id_topic: str = ""
    """The topic name that the metadata gives to the ID on the disk."""
    home_seen: bool = True
    """Asked of replicas that are nowhere: the log dir that the metadata assigns was scanned, or none is assigned."""


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table."""

    verdict: Verdict
    when: Condition
    evidence: str = ""
    """Template over the columns: ``the disk holds topic ID {disk_topic_id}``. Empty text shows as ``none``."""
    doubt: Doubt | None = None
    """The doubt that it is open to; None: neither side's age can make it wrong, or it asks for no action."""


def _no(flag: Any) -> Any:
    return flag == False  # noqa: E712 - see the module's docstring: engines have no `not`


def _live(row: Any) -> Any:
    return row.kind == "live"


def _damaged(row: Any) -> Any:
    return (
        (row.state == "empty")
        | (row.state == "malformed")
        | (row.state == "zero_id")
        | (row.state == "contradicts")
        | (row.state == "unreadable")
    )


def _same_id(row: Any) -> Any:
    return (row.disk_topic_id == row.wanted_topic_id) | (row.wanted_topic_id == "")


def _known_under_another_id(row: Any) -> Any:
    differs = _no(row.disk_topic_id == row.name_topic_id)
    return _no(row.disk_topic_id == "") & _no(row.name_topic_id == "") & differs


_DELETED_SOON = "a broker deletes it 60 s after it marked it, or after its next start"

CASES: tuple[Case, ...] = (
    Case(
        Verdict.ABSENT,
        lambda r: (r.kind == "log_dir") & _no(r.state == "ok"),
        "the log dir cannot be trusted: {problem}",
    ),
    Case(Verdict.LEFTOVER, lambda r: r.kind == "leftover", "{problem}"),
    Case(Verdict.DAMAGED, lambda r: r.on_disk & _damaged(r), "{problem}"),
    Case(Verdict.CHECKPOINT_ENTRY, lambda r: r.kind == "checkpoint_entry", "{problem}"),
    Case(Verdict.FOREIGN, lambda r: r.kind == "foreign", "{problem}"),
    Case(Verdict.OK, lambda r: (r.kind == "internal") | (r.kind == "log_dir")),
    Case(
        Verdict.STAGED_DUE, lambda r: (r.kind == "staged") & r.due, "staged, and its delay is over: a purge may take it"
    ),
    Case(
        Verdict.STAGED,
        lambda r: (r.kind == "staged") & r.wanted & _no(r.copies == 0),
        "staged, and the metadata wants topic ID {disk_topic_id} here, but a replica is live in its place",
    ),
    Case(
        Verdict.STAGED,
        lambda r: (r.kind == "staged") & r.wanted,
        "staged, but the metadata wants topic ID {disk_topic_id} here: restore it",
    ),
    Case(Verdict.STAGED, lambda r: (r.kind == "staged") & _no(r.problem == ""), "{problem}"),
    Case(Verdict.STAGED, lambda r: r.kind == "staged", "staged, and its delay is not over"),
    Case(
        Verdict.MARKED_DELETE,
        lambda r: (r.kind == "delete") & r.wanted & _no(r.copies == 0),
        f"{_DELETED_SOON}; a replica of the partition is live on this broker, as after a move between log dirs",
    ),
    Case(
        Verdict.MARKED_DELETE,
        lambda r: (r.kind == "delete") & r.wanted,
        f"{_DELETED_SOON}; as of the metadata, topic ID {{disk_topic_id}} is wanted here",
    ),
    Case(Verdict.MARKED_DELETE, lambda r: r.kind == "delete", _DELETED_SOON),
    Case(
        Verdict.STRAY,
        lambda r: (r.kind == "stray") & r.wanted & _no(r.copies == 0),
        "a broker moved it aside; the metadata wants topic ID {disk_topic_id} here, but a replica is live in its place",
    ),
    Case(
        Verdict.STRAY,
        lambda r: (r.kind == "stray") & r.wanted,
        "a broker moved it aside, but the metadata wants topic ID {disk_topic_id} here: restore it",
    ),
    Case(
        Verdict.STRAY,
        lambda r: (r.kind == "stray") & r.judged & _no(r.disk_topic_id == "") & _no(r.id_topic == ""),
        "a broker moved it aside and never deletes it; topic ID {disk_topic_id} lives on as {id_topic}, not here",
        doubt=Doubt.CHANGED_SINCE_METADATA,
    ),
    Case(
        Verdict.STRAY,
        lambda r: (r.kind == "stray") & r.judged & r.complete & _no(r.disk_topic_id == ""),
        "a broker moved it aside and never deletes it; the metadata does not know topic ID {disk_topic_id}",
        doubt=Doubt.CHANGED_SINCE_METADATA,
    ),
    Case(Verdict.STRAY, lambda r: r.kind == "stray", "a broker moved it aside and never deletes it"),
    Case(
        Verdict.FUTURE,
        lambda r: (r.kind == "future") & _no(r.copies == 0) & (r.wanted | _no(r.judged) | _no(r.complete)),
        "a move between log dirs is in progress: the live copy is on this broker",
    ),
    Case(
        Verdict.FUTURE,
        lambda r: (r.kind == "future") & _no(r.copies == 0) & (r.disk_topic_id == "") & r.name_known,
        "a move between log dirs, with no topic ID yet that could be compared: the live copy is on this broker",
    ),
    Case(
        Verdict.NOT_COMPARED,
        lambda r: (r.kind == "future") & _no(r.judged),
        "no metadata speaks for this broker, and the live copy of this move was not scanned",
    ),
    Case(
        Verdict.FUTURE_ABANDONED,
        lambda r: (r.kind == "future") & (r.copies == 0),
        "a move between log dirs that nobody will finish: this broker has no live copy beside it",
    ),
    Case(
        Verdict.FUTURE_ABANDONED,
        lambda r: r.kind == "future",
        "a move between log dirs that nobody will finish: the metadata does not want topic ID {disk_topic_id} here",
        doubt=Doubt.CHANGED_SINCE_METADATA,
    ),
    Case(
        Verdict.DUPLICATE,
        lambda r: _live(r) & _no(r.copies == 1) & _no(r.wanted) & (_no(r.judged) | _no(r.complete)),
        "live in {copies} directories of this broker, which will not start; topic ID here {disk_topic_id}, "
        "and which one is wanted is not known",
    ),
    Case(
        Verdict.DUPLICATE,
        lambda r: _live(r) & _no(r.copies == 1),
        "live in {copies} directories of this broker, which will not start; topic ID here {disk_topic_id}, "
        "wanted {wanted_topic_id}",
    ),
    Case(
        Verdict.NOT_COMPARED,
        lambda r: _live(r) & _no(r.judged) & (r.disk_topic_id == ""),
        "no metadata speaks for this broker, and the disk holds no topic ID",
    ),
    Case(Verdict.NOT_COMPARED, lambda r: _live(r) & _no(r.judged), "no metadata speaks for this broker"),
    Case(
        Verdict.RENAMED,
        lambda r: _live(r) & _no(r.id_topic == "") & _no(r.id_topic == r.topic),
        "topic ID {disk_topic_id} belongs to topic {id_topic}",
    ),
    Case(
        Verdict.IN_FLIGHT,
        lambda r: _live(r) & r.wanted & r.moving & (_same_id(r) | (r.disk_topic_id == "")),
        "a reassignment is moving this replica, or its partition is being deleted; its data is in use",
    ),
    Case(
        Verdict.IN_FLIGHT,
        lambda r: _no(r.on_disk) & r.wanted & r.moving,
        "a reassignment is moving this replica, or its partition is being deleted; it is not here yet, or no longer",
    ),
    Case(
        Verdict.NO_ID,
        lambda r: _live(r) & r.wanted & (r.disk_topic_id == "") & _no(r.wanted_topic_id == ""),
        "no topic ID on the disk; the metadata wants this replica under {wanted_topic_id}",
    ),
    Case(Verdict.OK, lambda r: _live(r) & r.wanted & _same_id(r)),
    Case(
        Verdict.STALE_ID,
        lambda r: _live(r) & r.wanted & _known_under_another_id(r),
        "the disk holds topic ID {disk_topic_id}; topic {topic} was re-created, and is wanted here, as {name_topic_id}",
        doubt=Doubt.CHANGED_SINCE_METADATA,
    ),
    Case(
        Verdict.STALE_ID,
        lambda r: _live(r) & _known_under_another_id(r),
        "the disk holds topic ID {disk_topic_id}; topic {topic} was re-created, on other brokers, as {name_topic_id}",
        doubt=Doubt.CHANGED_SINCE_METADATA,
    ),
    Case(
        Verdict.NOT_ASSIGNED,
        lambda r: _live(r) & r.complete & _no(r.id_topic == "") & (r.id_topic == r.topic),
        "topic {topic} exists under this topic ID, but this broker is not among the partition's replicas",
        doubt=Doubt.CHANGED_SINCE_METADATA,
    ),
    Case(
        Verdict.NOT_ASSIGNED,
        lambda r: _live(r) & r.complete & r.name_known,
        "this broker is not among the replicas of topic {topic}; judged by name, because one side has no topic ID",
        doubt=Doubt.CHANGED_SINCE_METADATA,
    ),
    Case(
        Verdict.UNKNOWN_TOPIC,
        lambda r: _live(r) & r.complete & _no(r.disk_topic_id == ""),
        "the metadata knows neither topic {topic} nor topic ID {disk_topic_id}",
        doubt=Doubt.CHANGED_SINCE_METADATA,
    ),
    Case(
        Verdict.UNKNOWN_TOPIC,
        lambda r: _live(r) & r.complete,
        "the metadata does not know topic {topic}; judged by name, because the disk has no topic ID",
        doubt=Doubt.CHANGED_SINCE_METADATA,
    ),
    Case(Verdict.NOT_COMPARED, lambda r: r.on_disk, "the metadata is INCREMENTAL and does not mention this replica"),
    Case(
        Verdict.ABSENT,
        lambda r: r.wanted & _no(r.home_seen),
        "wanted here, on a log dir of this broker that was not among those scanned",
        doubt=Doubt.SCANNED_BEFORE_METADATA,
    ),
    Case(
        Verdict.MISSING,
        lambda r: r.wanted,
        "wanted here under topic ID {wanted_topic_id}, and no log dir of this broker that was looked at has it",
        doubt=Doubt.SCANNED_BEFORE_METADATA,
    ),
)


def plainly_in_order(row: Any) -> Any:
    """The fast path to OK, which nearly every row takes: it needs no lookup of topics and brokers.

    A replica that lies on the disk under the name and the topic ID that the metadata wants here has its topic's name
    and its broker's judge from the same metadata. So a row for which this holds is OK by the table.
    """
    same_id = (row.disk_topic_id == row.wanted_topic_id) & _no(row.disk_topic_id == "")
    return _live(row) & (row.state == "ok") & (row.copies == 1) & row.wanted & _no(row.moving) & same_id


def case_number(row: JoinedRow) -> int:
    """Index in :data:`CASES` of the first case that holds for the row.

    Raises:
        ValueError: the row is neither on the disk nor wanted.
    """
    for number, case in enumerate(CASES):
        if case.when(row):
            return number
    raise ValueError(f"a joined row is on the disk, wanted, or both; this one is neither: {row}")
