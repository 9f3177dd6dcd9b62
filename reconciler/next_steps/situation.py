"""What is known of one broker when its next steps are decided. Only values: whoever looked fills them in."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.next_steps.call import Call
from reconciler.verdicts import Verdict


class MetadataTrust(StrEnum):
    """How far the metadata can be believed."""

    GOOD = "good"
    NONE = "none"
    """There is none, or it is another cluster's, or it knows no topic."""
    OWN_COPY = "own_copy"
    """It is the copy of a broker that does not run, and ends where that broker stopped."""
    OLD = "old"
    """It is older than a plan accepts by default or than what it condemns, does not say how old it is, or names a time
    that has not come."""
    INCOMPLETE = "incomplete"
    """It does not mention everything, or its end is lost."""


NAMED_AT_ONCE = 5
"""So many findings of one verdict are named where each needs a command of its own."""


@dataclass(frozen=True, slots=True)
class FoundVerdict:
    """The findings of one verdict: how many, and the first of them.

    Attributes:
        number: of findings.
        log_dir: of the first; None: it is on no disk.
        name: path of the first below its log dir.
        topic: of the first; None: not known.
        partition: of the first; None: not known.
        belongs_to: the topic to which the metadata gives the topic ID of the first, where it is another one; of a
            directory of a foreign name, only where it is a replica that is missing.
        wanted: how many of them the metadata wants on this broker.
        directories: how many of them are directories.
        replaced: how many strays have no topic ID, and a live replica in their place that is in sync.
        sole: of how many the metadata has no other copy in sync.
        left: how many strays a plan leaves alone: without topic ID, and no live replica in sync in their place; with a
            name that was cut; or with a live replica of their topic ID in their place.
        last: how many marked for deletion, or copies between log dirs, are wanted here, where nothing lives in their
            place and no other copy is in sync: a start deletes the last copy, or cuts it back to nothing. They come
            before the others.
        others: the findings after the first, each alone, up to :data:`NAMED_AT_ONCE` in all; directories come first,
            and where there are any, only they are named.
    """

    number: int = 1
    log_dir: str | None = None
    name: str | None = None
    topic: str | None = None
    partition: int | None = None
    belongs_to: str | None = None
    wanted: int = 0
    directories: int = 0
    replaced: int = 0
    sole: int = 0
    left: int = 0
    last: int = 0
    others: tuple[FoundVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps the broker from starting, or takes one of its disks offline: a rule of preflight, and its place."""

    rule: str
    problem: str
    log_dir: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class UncertainReplica:
    """A replica whose ``partition.metadata`` is damaged or missing, and whose topic ID nothing makes certain.

    A stray is one only if nothing else says what becomes of it.

    Attributes:
        log_dir: where it lies.
        name: path of its directory below the log dir.
        topic: of which it is; None: not known.
        reason: why it is left alone, a clause.
        is_live: whether it is a live replica, and not a future or stray one.
        can_be_adopted: whether the operator may declare its data to be the present topic's.
        can_go: whether it can be staged without loss: another broker leads the partition and is in sync, or the
            metadata wants no replica of it here.
        waits: whether its topic ID is certain once stale replicas of the topic are staged, or those that were renamed
            by hand have their names again.
        is_repaired: whether a repair would write the topic ID all the same, because nothing denies it.
        is_unclaimed: whether it is a stray that no plan ever takes: without topic ID, and the metadata wants no replica
            of its name here; with a name that was cut; or with a live replica of its topic ID in its place.
    """

    log_dir: str
    name: str
    topic: str | None
    reason: str
    is_live: bool = True
    can_be_adopted: bool = False
    can_go: bool = False
    waits: bool = False
    is_repaired: bool = False
    is_unclaimed: bool = False

    @property
    def path(self) -> str:
        """Its directory."""
        return posixpath.normpath(posixpath.join(self.log_dir, self.name))


@dataclass(frozen=True, slots=True)
class CutShort:
    """A change of many steps, of names or of the scheme, that is begun in log dirs and not finished.

    Attributes:
        log_dirs: in which it is begun.
        sentence: what the change does.
        scheme: that the log dirs have once it is finished.
        unread: the files of some that cannot be read, so that nobody can finish it there.
    """

    log_dirs: tuple[str, ...]
    sentence: str
    scheme: str
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that the next steps of one broker depend on.

    Attributes:
        call: how the program was called; its log dirs are this broker's.
        found: findings by verdict.
        fleet: kinds of findings of the fleet that are about this broker, each with its subject.
        trust: how far the metadata can be believed.
        trust_why: what is wrong with the metadata, one clause; empty: nothing.
        only_voter: whether it is this broker's own, and the broker the only voter of its cluster and stopped.
        obstacles: what keeps the broker from starting, the gravest first.
        in_use: log dirs that a running broker holds.
        full: log dirs on whose disk no record of a staged replica finds room.
        staged: number of staged replicas whose time has not come.
        due: number of staged replicas that a purge may take.
        due_from: when a purge may take the first of the others, as text; None: nothing waits.
        due_inside: number of those due that lie in a log dir itself, where a purge waits while a broker runs.
        undecided: paths of the copies of each replica that is live twice, where nothing tells which is the better one.
        repairable: how many actions a plan of repairs would have; None: not known.
        live_twice: why none of them is for replicas that are live twice, one sentence; empty: it is not so.
        copied: whether that is because one of the log dirs is a copy of another, or not this broker's.
        uncertain: damaged replicas, and replicas without topic ID, whose topic ID nothing makes certain.
        on_zookeeper: whether the broker runs in ZooKeeper mode for good, and so writes missing topic IDs by itself.
        unreadable: what this user may not read, and the broker's own user perhaps may: log dirs, what lies in them,
            and staging directories; nothing is known of what lies there.
        without_lock: log dirs without the lock file that every change needs, on whose disks no file can be made.
        freed: locations of the largest staged replicas on full disks whose time has not come; none where they would
            give back too little to matter.
        freed_bytes: what they would give back.
        in_place: log dirs in which staged replicas stay, as ``-stray``.
        knows_strays: whether the release starts beside a directory that ends in ``-stray``.
        in_the_way: directories that the release does not know, and that no plan and no purge takes away.
        blank: absolute paths of log dirs with nothing in them, such as a new disk, or the mount point of one that is
            not mounted; in KRaft mode, without the one that holds the metadata log.
        cluster_id: of a broker in KRaft mode; empty: not known, or another mode.
        unnamed_disks: log dirs whose ``meta.properties`` has no ``directory.id``, so that it is the same on each disk.
        mount_points: absolute paths of log dirs that are the root of a file system.
        cut_short: the change of many steps that is not finished; None: there is none.
        moved_by_copy: absolute paths of log dirs beside which lies another file system, so that nothing leaves them by
            a rename.
        beside: absolute paths of what lies beside log dirs under their names and more, as ``disk.deleting`` does.
        held: how many that nobody wants are none of the findings above, because the policy keeps them.
        held_by: what the first rule that does so forbids and why, a clause; empty: nothing is kept.
        of_other_clusters: log dirs that were given too, and name the same node.id of another cluster.
    """

    call: Call
    found: Mapping[Verdict, FoundVerdict] = field(default_factory=dict)
    fleet: Mapping[str, str] = field(default_factory=dict)
    trust: MetadataTrust = MetadataTrust.GOOD
    trust_why: str = ""
    obstacles: tuple[Obstacle, ...] = ()
    in_use: tuple[str, ...] = ()
    full: tuple[str, ...] = ()
    staged: int = 0
    due: int = 0
    due_from: str | None = None
    due_inside: int = 0
    undecided: tuple[tuple[str, ...], ...] = ()
    on_zookeeper: bool = False
    unreadable: tuple[str, ...] = ()
    repairable: int | None = None
    uncertain: tuple[UncertainReplica, ...] = ()
    without_lock: tuple[str, ...] = ()
    freed: tuple[str, ...] = ()
    in_place: tuple[str, ...] = ()
    knows_strays: bool = True
    in_the_way: tuple[Obstacle, ...] = ()
    freed_bytes: int = 0
    blank: tuple[str, ...] = ()
    cluster_id: str = ""
    unnamed_disks: tuple[str, ...] = ()
    mount_points: tuple[str, ...] = ()
    moved_by_copy: tuple[str, ...] = ()
    cut_short: CutShort | None = None
    beside: frozenset[str] = frozenset()
    only_voter: bool = False
    live_twice: str = ""
    copied: bool = False
    held: int = 0
    held_by: str = ""
    of_other_clusters: tuple[str, ...] = ()

    @property
    def better_metadata(self) -> str:
        """Say where better metadata comes from, up to a clause on what holds without it."""
        if self.only_voter:
            return (
                "this broker is the only voter, so start it once nothing below is left to do, and name it as "
                "kafka:HOST:PORT; until then"
            )
        other = "ZooKeeper as zk:HOST:PORT" if self.on_zookeeper else "the __cluster_metadata-0 of a running controller"
        return f"name a running broker as kafka:HOST:PORT, or {other}; without one"

    @property
    def purgeable(self) -> int:
        """Count what is due and not wanted here again."""
        return max(0, self.due - self.wanted(Verdict.STAGED_DUE))

    def number(self, *verdicts: Verdict) -> int:
        """Count the findings of some verdicts."""
        return sum(self.found[verdict].number for verdict in verdicts if verdict in self.found)

    def wanted(self, *verdicts: Verdict) -> int:
        """Count the findings of some verdicts that the metadata wants on this broker."""
        return sum(self.found[verdict].wanted for verdict in verdicts if verdict in self.found)
