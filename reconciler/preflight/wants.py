"""Which replicas the metadata want here: the comparison's columns, joined by topic ID as a broker does, and by name.

A KRaft broker asks for each replica whether its topic ID and partition are in the metadata with this broker among the
replicas, and never looks at the name (FACTS §6.3). ``reconciler.verdicts.join`` joins live directories by name and
all others by topic ID; so it is asked twice, the second time with every live directory called a future one. Nothing is
compared here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from logstore.rows import Kind
from reconciler.desired import DesiredState
from reconciler.verdicts import Judged, Row, Verdict, compare

_ASKED = frozenset({Kind.LIVE.value, Kind.FUTURE.value, Kind.DELETE.value, Kind.STRAY.value, Kind.LOG_DIR.value})
_NOWHERE = frozenset({Verdict.MISSING, Verdict.ABSENT})


@dataclass(frozen=True, slots=True)
class Want:
    """What the metadata say of one directory of a replica."""

    is_judged: bool = False
    """They speak for this broker."""
    is_complete: bool = False
    """What they do not mention is not wanted."""
    by_name: bool = False
    """This broker is among the replicas; asked by name for live directories, by topic ID for all others."""
    by_topic_id: bool = False
    is_same_topic: bool = False
    """The topic ID on the disk belongs to the topic of this name."""
    is_stale: bool = False
    """The name is known under another topic ID."""
    only_in_sync: bool = False
    """The partition's only in-sync replica, for the metadata, is the one wanted here."""
    assigned_here: bool = False
    """The metadata assign the replica to this very log dir."""
    topic_id: str | None = None
    """Under which it is wanted here."""

    @property
    def is_unwanted(self) -> bool:
        """The metadata say that this topic ID's partition should not be here."""
        return self.is_judged and self.is_complete and not self.by_topic_id


UNKNOWN = Want()


@dataclass(frozen=True, slots=True)
class Wants:
    """What the metadata say of everything that lies on a broker's log dirs, and of what does not."""

    of: Mapping[tuple[str, str], Want] = field(default_factory=dict)
    """By log dir and name, as in the rows."""
    nowhere: Sequence[Judged] = ()
    """Wanted on this broker, and on none of the log dirs."""

    def about(self, log_dir: str, name: str) -> Want:
        """What they say of one directory."""
        return self.of.get((log_dir, name), UNKNOWN)


def ask(states: Mapping[str, DesiredState], rows: Sequence[Row], now_ms: int) -> Wants:
    """Ask the comparison about every replica.

    Args:
        states: desired state by cluster ID, as :func:`reconciler.desired.by_cluster` gives it.
        rows: of all log dirs of one broker.
        now_ms: ms since 1970; no answer that is used hangs on it.
    """
    if not states:
        return Wants()
    asked = [row for row in rows if row["kind"] in _ASKED]
    by_name = list(compare(states, asked, now_ms))
    as_future = [{**row, "kind": Kind.FUTURE.value} if row["kind"] == Kind.LIVE else row for row in asked]
    by_topic_id = list(compare(states, as_future, now_ms))
    answers = zip(asked, by_name, by_topic_id, strict=False)
    return Wants(
        {(row["log_dir"], row["name"]): _want(row, name, topic_id) for row, name, topic_id in answers},
        [each for each in by_name[len(asked) :] if each.verdict in _NOWHERE],
    )


def _want(row: Row, by_name: Judged, by_topic_id: Judged) -> Want:
    wanted = by_topic_id.wanted or by_name.wanted
    joined = by_name.row
    return Want(
        is_judged=joined.judged,
        is_complete=joined.complete,
        by_name=joined.wanted,
        by_topic_id=by_topic_id.row.wanted,
        is_same_topic=joined.id_topic == joined.topic,
        is_stale=by_name.verdict is Verdict.STALE_ID,
        only_in_sync=is_only_in_sync(wanted),
        assigned_here=by_topic_id.wanted is not None
        and row["directory_id"] is not None
        and by_topic_id.wanted["directory_id"] == row["directory_id"],
        topic_id=None if wanted is None else wanted["topic_id"],
    )


def is_only_in_sync(wanted: Row | None) -> bool:
    """Whether a wanted replica is its partition's only one in sync."""
    return wanted is not None and bool(wanted["in_sync"]) and wanted["isr_size"] == 1
