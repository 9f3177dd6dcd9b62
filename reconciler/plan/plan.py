"""A plan: verdicts turned into actions, each with the evidence that it must still find when it is carried out. Pure.

A plan adds nothing to the case table and takes nothing away; it says what would be done about each verdict::

    stage            a live replica that nobody wants is moved aside, and waits for its due time
    stage_stray      a replica that a broker set aside gets a due time where it lies
    restore          a staged or stray replica that the metadata wants comes back
    write_topic_id   a replica without partition.metadata gets the ID under which it is wanted
    create           a replica that is wanted is made, empty; never on a real broker's disks
    note_sighting    nothing is done yet but a note in the journal: it was seen to be unwanted

How a plan is written to a file is left to ``plan_json``, making one to ``make_plan``, carrying it out to ``apply``.
Source: DESIGN §6; STYLE principle 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from layout.topic import TopicPartition


class ActionKind(StrEnum):
    """What an action does, in the order in which actions are carried out: what goes makes room for what comes."""

    STAGE = "stage"
    STAGE_STRAY = "stage_stray"
    RESTORE = "restore"
    WRITE_TOPIC_ID = "write_topic_id"
    CREATE = "create"
    NOTE_SIGHTING = "note_sighting"


STAGING_ACTIONS = frozenset({ActionKind.STAGE, ActionKind.STAGE_STRAY})
"""Actions after which a purge may take something."""


@dataclass(frozen=True, slots=True)
class PlannedLogDir:
    """A log dir that a plan was made for, by what it is recognised, and where its replicas would be staged.

    Attributes:
        path: absolute.
        cluster_id: of its identity, as are the next two; None: it had none to show.
        node_id: see above.
        directory_id: see above.
        staging: path of its staging root; the log dir itself where replicas are staged in place.
    """

    path: str
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    staging: str

    @property
    def broker(self) -> tuple[str | None, int | None]:
        """Whose it is."""
        return self.cluster_id, self.node_id


@dataclass(frozen=True, slots=True)
class Action:
    """One line of a plan.

    Attributes:
        kind: what is done.
        log_dir: path of one of the plan's log dirs.
        name: of the directory below the log dir, as a scan calls it; of one that is created, where it will lie.
        topic: full name.
        partition: see :class:`TopicPartition`.
        topic_id: that the disk holds; None: none.
        wanted_topic_id: under which the metadata wants the replica here; None: it does not.
        verdict: of the case table.
        why: the sentence that goes with the verdict.
        inode: of the directory; None of what is created.
        bytes: sum of its files' lengths; None: not known.
        disk_bytes: what they take on the disk; preallocated indexes make the lengths larger. None: not known.
        modified_ms: newest time of change in it, in ms since 1970; None: not known.
        due_ms: when a purge might take it, should the plan be applied as soon as it was made.
        undo: the command that takes it back; None: what the metadata wants is not taken back.
        fingerprint: SHA-256 over the plan's head and all of the above.
    """

    kind: ActionKind
    log_dir: str
    name: str
    topic: str
    partition: int
    topic_id: str | None
    wanted_topic_id: str | None
    verdict: str
    why: str
    inode: int | None = None
    bytes: int | None = None
    modified_ms: int | None = None
    due_ms: int | None = None
    undo: str | None = None
    fingerprint: str = ""
    disk_bytes: int | None = None

    @property
    def frees(self) -> int:
        """Bytes that come back when it is purged, as far as is known."""
        return (self.bytes or 0) if self.disk_bytes is None else self.disk_bytes

    @property
    def replica(self) -> TopicPartition:
        """The replica that it is about."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Something that asks for an action and gets none from this plan: why, and the command that looks further."""

    log_dir: str
    name: str
    verdict: str
    reason: str
    next: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. Whoever reads one may take actions out, and must change nothing else.

    Attributes:
        created_ms: when it was made, in ms since 1970.
        host: name of the machine on which it was made.
        user: who made it.
        delay_ms: how long what is staged stays so at least.
        policy: the gates that it was held to, as text.
        log_dirs: every log dir that was looked at and could be trusted.
        metadata: what the desired state came from, as text by field: source, location, cluster, digest, age.
        actions: in the order in which they are shown.
        left_alone: what it does not touch though somebody should.
        counts: how often each verdict was given.
        fingerprint: SHA-256 over its head, which is all but the last three.
    """

    created_ms: int
    host: str
    user: str
    delay_ms: int
    policy: Mapping[str, str] = field(hash=False)
    log_dirs: tuple[PlannedLogDir, ...]
    metadata: tuple[Mapping[str, str], ...] = field(hash=False)
    actions: tuple[Action, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)
    fingerprint: str = ""

    def totals(self) -> dict[str, dict[str, int]]:
        """Actions and bytes on the disk by kind of action, those that occur."""
        found: dict[str, dict[str, int]] = {}
        for kind in ActionKind:
            of_kind = [action for action in self.actions if action.kind is kind]
            if of_kind:
                found[kind.value] = {"actions": len(of_kind), "bytes": sum(each.frees for each in of_kind)}
        return found
