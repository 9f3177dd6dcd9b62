"""A plan: verdicts turned into actions, each with the evidence that must still hold when it is carried out. Pure.

A plan adds nothing to the case table and takes nothing away. It says what would be done about each verdict::

    stage            a live replica that the metadata does not want is staged until its due time
    stage_stray      a stray replica of a broker gets a due time where it lies
    restore          a staged or stray replica that the metadata wants becomes live again
    write_topic_id   a replica without partition.metadata gets the ID under which it is wanted
    create           a wanted replica is created empty; never on a real broker's disks
    note_sighting    only a note in the journal: the replica was seen to be unwanted

``proposal`` makes a plan, ``file`` writes and reads it, ``apply`` carries it out.
Source: DESIGN §6; STYLE principle 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from layout.topic import TopicPartition


class ActionKind(StrEnum):
    """What an action does, in the order of carrying out: staged replicas make room for restored and created ones."""

    STAGE = "stage"
    STAGE_STRAY = "stage_stray"
    RESTORE = "restore"
    WRITE_TOPIC_ID = "write_topic_id"
    CREATE = "create"
    NOTE_SIGHTING = "note_sighting"


STAGING_ACTIONS = frozenset({ActionKind.STAGE, ActionKind.STAGE_STRAY})
"""Kinds of actions after which a purge may delete a replica."""


@dataclass(frozen=True, slots=True)
class PlannedLogDir:
    """A log dir that a plan was made for: its path, its identity, and where its replicas would be staged.

    Attributes:
        path: absolute.
        cluster_id: from ``meta.properties``, like the next two; None: the file does not say.
        node_id: number of the broker.
        directory_id: of the log dir.
        staging: path of its staging root; the log dir itself where replicas are staged in place.
    """

    path: str
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    staging: str

    @property
    def broker(self) -> tuple[str | None, int | None]:
        """Cluster and number of the broker that owns the log dir."""
        return self.cluster_id, self.node_id


@dataclass(frozen=True, slots=True)
class Action:
    """One line of a plan.

    Attributes:
        kind: what the action does.
        log_dir: path of one of the plan's log dirs.
        name: path of the replica's directory below the log dir, as a scan reports it; for a creation, the future path.
        topic: full name.
        partition: see :class:`TopicPartition`.
        topic_id: the topic ID on the disk; None: none.
        wanted_topic_id: the topic ID under which the metadata wants the replica here; None: it does not want it.
        verdict: of the case table.
        why: the sentence that goes with the verdict.
        inode: of the directory; None for a creation.
        bytes: sum of the lengths of the replica's files; None: not known.
        disk_bytes: space of the files on the disk; preallocated indexes make the lengths larger. None: not known.
        modified_ms: newest time of change in the directory, in ms since 1970; None: not known.
        created_ms: since when the replica lies there, in ms since 1970; None: not known.
        due_ms: when a purge may delete the replica if the plan is applied as soon as it is made.
        undo: the command that undoes the action; None: a change that the metadata wants has no undo.
        fingerprint: SHA-256 over the plan's head and all other fields of the action.
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
    created_ms: int | None = None

    @property
    def frees(self) -> int:
        """Bytes that a purge of the replica frees, as far as is known."""
        return (self.bytes or 0) if self.disk_bytes is None else self.disk_bytes

    @property
    def replica(self) -> TopicPartition:
        """The replica that the action is about."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A finding that needs attention and gets no action: the reason, and the command that shows more."""

    log_dir: str
    name: str
    verdict: str
    reason: str
    next: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. A reader may take actions out, and must change nothing else.

    Attributes:
        created_ms: when the plan was made, in ms since 1970.
        host: name of the machine on which the plan was made.
        user: who made the plan.
        delay_ms: least time between staging a replica and purging it.
        policy: the gates that the plan was held to, as text.
        log_dirs: every scanned log dir that can be trusted.
        metadata: the metadata sources, each as text by field: source, location, cluster, digest, age.
        actions: in the order in which they are shown.
        left_alone: findings that need attention and get no action.
        counts: how often each verdict was given.
        fingerprint: SHA-256 over the plan's head, which is everything before ``actions``.
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
        """Count actions and their bytes on the disk, for each kind that occurs."""
        found: dict[str, dict[str, int]] = {}
        for kind in ActionKind:
            of_kind = [action for action in self.actions if action.kind is kind]
            if of_kind:
                found[kind.value] = {"actions": len(of_kind), "bytes": sum(each.frees for each in of_kind)}
        return found
