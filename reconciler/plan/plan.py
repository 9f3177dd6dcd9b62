"""A plan: findings turned into actions, each with the evidence that must still hold when it is carried out. Pure.

A plan adds nothing to the case table and takes nothing away. It says what would be done about each verdict, by moving
replicas::

    stage            a live replica that the metadata does not want is staged until its due time
    stage_stray      a stray replica of a broker gets a due time where it lies
    restore          a staged or stray replica that the metadata wants becomes live again
    write_topic_id   a replica without partition.metadata gets the ID under which it is wanted
    create           a wanted replica is created empty; never on a real broker's disks
    note_sighting    only a note in the journal: the replica was seen to be unwanted

and by putting right what is damaged or doubled::

    write_partition_metadata   orders-0/partition.metadata           missing or damaged, and the topic ID is certain
    replace_topic_id           orders-0/partition.metadata           holds another ID, and the operator vouches for it
    rebuild_checkpoint         recovery-point-offset-checkpoint ...  does not parse: its good lines stay
    drop_checkpoint_entries    recovery-point-offset-checkpoint ...  names partitions that have no directory here
    remove_leftover            meta.properties.tmp ...               beside the whole file that it was to replace
    stage_duplicate            orders-0                              another log dir has the better copy

``write_topic_id`` only ever adds a file, so removing that file undoes it, and it needs no backup. A repair may write
over bytes: it names the sums of the old and the new bytes, and the old ones are backed up first. No action holds bytes
that are written as they stand, so a plan that was tampered with cannot put content of its own on a disk.

``proposal`` and ``repair_proposal`` make plans, ``file`` writes and reads them, ``apply`` carries them out.
Source: DESIGN §6; STYLE principle 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from layout.topic import TopicPartition


class ActionKind(StrEnum):
    """What an action does, in the order of carrying out.

    Files are put right first, because staging writes checkpoints anew. Staged replicas make room for restored and
    created ones.
    """

    WRITE_PARTITION_METADATA = "write_partition_metadata"
    REPLACE_TOPIC_ID = "replace_topic_id"
    REBUILD_CHECKPOINT = "rebuild_checkpoint"
    DROP_CHECKPOINT_ENTRIES = "drop_checkpoint_entries"
    REMOVE_LEFTOVER = "remove_leftover"
    STAGE_DUPLICATE = "stage_duplicate"
    STAGE = "stage"
    STAGE_STRAY = "stage_stray"
    RESTORE = "restore"
    WRITE_TOPIC_ID = "write_topic_id"
    CREATE = "create"
    NOTE_SIGHTING = "note_sighting"


STAGING_ACTIONS: Final = frozenset({ActionKind.STAGE, ActionKind.STAGE_STRAY})
"""Kinds of actions that stage what the metadata does not want, and so are held to the gates."""

TOPIC_ID_REPAIRS: Final = frozenset({ActionKind.WRITE_PARTITION_METADATA, ActionKind.REPLACE_TOPIC_ID})
CHECKPOINT_REPAIRS: Final = frozenset({ActionKind.REBUILD_CHECKPOINT, ActionKind.DROP_CHECKPOINT_ENTRIES})
FILE_REPAIRS: Final = TOPIC_ID_REPAIRS | CHECKPOINT_REPAIRS | {ActionKind.REMOVE_LEFTOVER}
"""Kinds of actions that change one file, after a backup of it."""

REPAIRS: Final = FILE_REPAIRS | {ActionKind.STAGE_DUPLICATE}
"""Kinds of actions that ``logstore repair`` proposes."""


REMOVING_ACTIONS: Final = STAGING_ACTIONS | {ActionKind.STAGE_DUPLICATE}
"""Kinds of actions after which a purge deletes something."""


@dataclass(frozen=True, slots=True)
class PlannedLogDir:
    """A log dir that a plan was made for: its path, its identity, and where its replicas would be staged.

    Attributes:
        path: absolute.
        cluster_id: from ``meta.properties``, like the next two; None: the file does not say.
        node_id: number of the broker.
        directory_id: of the log dir.
        staging: path of its staging root; the log dir itself where replicas are staged in place; None: where is found
            by looking when the plan is carried out.
    """

    path: str
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    staging: str | None

    @property
    def broker(self) -> tuple[str | None, int | None]:
        """Cluster and number of the broker that owns the log dir."""
        return self.cluster_id, self.node_id


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """The copy of a duplicate that stays, and how to recognise it.

    Attributes:
        log_dir: path of one of the plan's log dirs.
        name: path of its directory below the log dir.
        inode: of the directory.
        topic_id: in its ``partition.metadata``; None: none that can be read.
    """

    log_dir: str
    name: str
    inode: int
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class Action:
    """One line of a plan.

    Attributes:
        kind: what the action does.
        log_dir: path of one of the plan's log dirs.
        name: path of the replica's directory below the log dir, as a scan reports it; for a creation, the future path;
            for a repair of a file, the path of the file.
        topic: full name; empty: the action is about a file of the log dir itself.
        partition: see :class:`TopicPartition`; -1 where there is no topic.
        topic_id: the topic ID on the disk; None: none.
        wanted_topic_id: the topic ID under which the metadata wants the replica here; None: it does not want it.
        verdict: of the case table.
        why: the sentence that goes with the verdict.
        inode: of the replica's directory; None for a creation, and for a file of the log dir itself.
        bytes: sum of the lengths of the replica's files; None: not known.
        disk_bytes: space of the files on the disk; preallocated indexes make the lengths larger. None: not known.
        modified_ms: newest time of change in the directory, in ms since 1970; None: not known.
        created_ms: since when the replica lies there, in ms since 1970; None: not known.
        due_ms: when a purge may delete the replica if the plan is applied as soon as it is made.
        undo: the command that undoes the action; None: a change that the metadata wants has no undo.
        fingerprint: SHA-256 over the plan's head and all other fields of the action.
        expects: for a repair, SHA-256 of the file's present bytes, or ``missing``; for a duplicate, of its
            ``partition.metadata``.
        writes: for a repair of a file, SHA-256 of its new bytes, or ``missing``.
        drops: checkpoint entries to remove because their partition has no directory, as ``topic partition``.
        lost: lines of a damaged checkpoint that do not parse, as escapes; only for people.
        keeps: the better copy of a duplicate.
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
    expects: str | None = None
    writes: str | None = None
    drops: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    keeps: KeptCopy | None = None

    @property
    def dropped(self) -> frozenset[tuple[str, int]]:
        """The entries of :attr:`drops` as (topic, partition)."""
        pairs = (entry.rpartition(" ") for entry in self.drops)
        return frozenset((topic, int(partition)) for topic, _, partition in pairs)

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
    """A finding that needs attention and gets no action.

    Attributes:
        log_dir: its path; empty: the finding is about none.
        name: path below the log dir; ``.``: the log dir itself.
        verdict: of the case table; empty: none was given.
        reason: one sentence.
        next: the command that shows more; empty: none does.
    """

    log_dir: str
    name: str
    verdict: str
    reason: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. A reader may take actions out, and must change nothing else.

    Attributes:
        created_ms: when the plan was made, in ms since 1970.
        host: name of the machine on which the plan was made.
        user: who made the plan.
        delay_ms: least time between staging a replica and purging it, where an action has no due time of its own.
        policy: the gates and rules that the plan was held to, as text; of one of repairs only the rules.
        log_dirs: every scanned log dir that can be trusted, of the brokers that a plan of repairs is about.
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

    @property
    def repairs_only(self) -> bool:
        """Whether every action is a repair, which no age of metadata makes wrong."""
        return bool(self.actions) and all(action.kind in REPAIRS for action in self.actions)

    @property
    def needs_clock(self) -> bool:
        """Whether the clock must not be behind the disks: a due time is made of it. A repair of files has none."""
        return any(action.kind not in FILE_REPAIRS for action in self.actions)

    def delay_of(self, action: Action) -> int:
        """Return how long what an action stages waits for its purge, in ms."""
        return self.delay_ms if action.due_ms is None else action.due_ms - self.created_ms

    def delays(self) -> dict[str, int]:
        """Return topic → how long what is staged of it waits, in ms, and the same for all others with an empty key."""
        found = {"": self.delay_ms}
        for action in (each for each in self.actions if each.kind in REMOVING_ACTIONS):
            found[action.topic] = max(found.get(action.topic, 0), self.delay_of(action))
        return found

    def totals(self) -> dict[str, dict[str, int]]:
        """Count actions and their bytes on the disk, for each kind that occurs."""
        found: dict[str, dict[str, int]] = {}
        for kind in ActionKind:
            of_kind = [action for action in self.actions if action.kind is kind]
            if of_kind:
                found[kind.value] = {"actions": len(of_kind), "bytes": sum(each.frees for each in of_kind)}
        return found
