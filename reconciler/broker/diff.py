"""What a control request did to a store, or would do: two pictures of the store, before and after, side by side. Pure.

It is told from what lies there and not from what was intended, so it is as true of a request that went wrong half-way.
Source: DESIGN §4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from layout.ids import TopicId
from logstore.staging import Staged
from logstore.store import Entry
from reconciler.broker.judging import PartitionKey
from reconciler.broker.replica_store import ReplicaStore


class EffectKind(StrEnum):
    """What became of a replica, in the order in which a request does it."""

    STAGED = "staged"
    RESTORED = "restored"
    CREATED = "created"
    TOPIC_ID_WRITTEN = "topic_id_written"


@dataclass(frozen=True, slots=True)
class Effect:
    """One change.

    Attributes:
        kind: what was done.
        topic: full name.
        partition: of the topic.
        topic_id: that the replica has; the new one where it was written; None: none.
        log_dir: path of its log dir.
        location: where it lies now: below the log dir, or as ``logstore staged`` has it.
        verdict: why it was staged; empty for the other kinds.
        evidence: the sentence that goes with the verdict.
        due_ms: from when on a purge may take what was staged, in ms since 1970; None for the other kinds.
    """

    kind: EffectKind
    topic: str
    partition: int
    topic_id: str | None
    log_dir: str
    location: str
    verdict: str = ""
    evidence: str = ""
    due_ms: int | None = None

    @property
    def key(self) -> PartitionKey:
        """Topic and partition."""
        return self.topic, self.partition


class StoreSnapshot(NamedTuple):
    """What a store holds at one moment."""

    entries: Mapping[PartitionKey, Entry]
    staged: Mapping[tuple[str, str], Staged]
    """By log dir and location."""

    @classmethod
    def of(cls, store: ReplicaStore) -> StoreSnapshot:
        """What it holds now."""
        return cls(store.entries(), {(each.log_dir, each.location): each for each in store.staged()})


def effects(before: StoreSnapshot, after: StoreSnapshot) -> list[Effect]:
    """Every change between two pictures, by kind, topic and partition."""
    order = list(EffectKind)
    staged = list(_staged(before, after))
    found = [*staged, *_live(before, after, {effect.key for effect in staged})]
    return sorted(found, key=lambda each: (order.index(each.kind), each.topic, each.partition))


def _staged(before: StoreSnapshot, after: StoreSnapshot) -> Iterator[Effect]:
    for place, staged in after.staged.items():
        if place not in before.staged and staged.record is not None:
            record = staged.record
            at = (record.topic, record.partition, _text(record.topic_id), staged.log_dir, staged.location)
            yield Effect(EffectKind.STAGED, *at, record.verdict, record.evidence, record.due_ms)


def _live(before: StoreSnapshot, after: StoreSnapshot, moved: set[PartitionKey]) -> Iterator[Effect]:
    left = {
        (each.log_dir, _text(each.topic_id), each.inode) for at, each in before.staged.items() if at not in after.staged
    }
    for key, entry in after.entries.items():
        was = None if key in moved else before.entries.get(key)
        if was is not None and was.topic_id == entry.topic_id:
            continue
        kind = EffectKind.TOPIC_ID_WRITTEN
        if was is None:
            is_back = (entry.log_dir, entry.topic_id, entry.inode) in left
            kind = EffectKind.RESTORED if is_back else EffectKind.CREATED
        yield Effect(kind, *key, entry.topic_id, entry.log_dir, entry.path)


def _text(topic_id: TopicId | None) -> str | None:
    return None if topic_id is None or topic_id.is_zero else str(topic_id)
