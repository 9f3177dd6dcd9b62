"""The effects of a control request on the replicas of a broker: what it staged, restored, created and wrote."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.staging import Staged
from logstore.store import Replica
from reconciler.broker.judgement import PartitionKey


class EffectKind(StrEnum):
    """Kind of a change of a replica, in the order in which a report shows them."""

    STAGED = "staged"
    RESTORED = "restored"
    CREATED = "created"
    TOPIC_ID_WRITTEN = "topic_id_written"


@dataclass(frozen=True, slots=True)
class Effect:
    """One change of a replica.

    Attributes:
        kind: of the change.
        topic: full name.
        partition: of the topic.
        topic_id: of the replica after the change; None: it has none.
        log_dir: path of its log dir.
        location: path after the change: below the log dir, or as ``logstore staged`` shows it.
        verdict: why the replica was staged; empty for other kinds.
        evidence: the sentence that goes with the verdict.
        due_ms: when a purge may delete the staged replica, in ms since 1970; None for other kinds.
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


def live_effect(kind: EffectKind, at: TopicPartition, topic_id: TopicId | None, log_dir: str, path: str) -> Effect:
    """Describe a replica that is live after the change."""
    return Effect(kind, at.topic, at.partition, _text_unless_zero(topic_id), log_dir, path)


def effect_on(kind: EffectKind, replica: Replica) -> Effect:
    """Describe a replica that the store returned."""
    return live_effect(kind, replica.partition, replica.topic_id, replica.log_dir, replica.path)


def staged_effect(staged: Staged) -> Effect:
    """Describe a replica that was just staged, from its record."""
    record = staged.record
    assert record is not None, "a replica that was just staged has its record"
    at = (record.topic, record.partition, _text_unless_zero(record.topic_id), staged.log_dir, staged.location)
    return Effect(EffectKind.STAGED, *at, record.verdict, record.evidence, record.due_ms)


def in_order(effects: Iterable[Effect]) -> list[Effect]:
    """Sort effects by kind, topic and partition."""
    order = list(EffectKind)
    return sorted(effects, key=lambda each: (order.index(each.kind), each.topic, each.partition))


def _text_unless_zero(topic_id: TopicId | None) -> str | None:
    return None if topic_id is None or topic_id.is_zero else str(topic_id)
