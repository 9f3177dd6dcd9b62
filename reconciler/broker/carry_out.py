"""Carry out what was decided about a control request, and note what could not be done.

Nothing is decided here. ``logstore`` makes each change safe by itself, so a request that was carried out in part,
because a disk or the machine failed, is finished by sending it again. Source: KIP516-5 to -7, KIP516-11; FACTS §4.2.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from layout.errors import LayoutError
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError, LogStoreError
from logstore.staging import Staged
from logstore.store import LogStore, Replica
from reconciler.broker.decision import Decision, NamelessReplica, Outcome, StaleReplica, WantedReplica
from reconciler.broker.effects import EffectKind, effect_on, staged_effect
from reconciler.broker.judgement import PartitionKey

logger = logging.getLogger(__name__)


def carry_out(store: LogStore, decision: Decision) -> Outcome:
    """Make the changes of a decision: stage, write topic IDs, restore, create.

    Args:
        store: of the broker, as it was when the decision was made.
        decision: about one request.
    """
    outcome, offline = Outcome(), set(store.offline)
    refused = stage_copies(store, decision.copies, decision.delay, outcome)
    outcome.staged = stage(store, decision.stale, decision.delay, outcome)
    failed = set(store.offline) - offline
    if failed:
        refused |= {key for key, entry in store.entries().items() if entry.log_dir in failed}
    outcome.note_unstaged(decision, refused)
    write_topic_ids(store, decision.nameless, outcome)
    empty = []
    for each in decision.wanted:
        if not outcome.may_be_made(each, some_offline=bool(store.offline)):
            continue
        if each.staged is None:
            empty.append(each)
        else:
            restore(store, each, each.staged, outcome)
    create(store, empty, outcome)
    return outcome


def stage(
    store: LogStore, stale: Mapping[PartitionKey, StaleReplica], delay: str, outcome: Outcome
) -> set[PartitionKey]:
    """Stage live replicas, with one barrier for many of them; a failing disk does not hold up the others.

    Returns:
        The staged replicas; the log says why others are not staged.
    """
    done: list[Staged] = []
    by_log_dir: dict[str, dict[TopicPartition, tuple[str, str]]] = {}
    for key, each in stale.items():
        by_log_dir.setdefault(each.entry.log_dir, {})[TopicPartition(*key)] = (each.verdict, each.evidence)
    for log_dir, wanted in by_log_dir.items():
        try:
            for refused in store.stage_each(wanted, setting=delay, on_committed=done.extend).refused:
                logger.warning("%s: %s is not staged: %s", log_dir, refused.candidate.partition, refused.reason)
        except LogStoreError as error:
            logger.error("%s: %d replicas should be staged, and not all of them are: %s", log_dir, len(wanted), error)
    outcome.effects += map(staged_effect, done)
    return _keys(done)


def stage_copies(
    store: LogStore, copies: Mapping[Replica, tuple[str, str]], delay: str, outcome: Outcome
) -> set[PartitionKey]:
    """Stage the given copies of partitions that are live twice; a failing disk does not hold up the others.

    Returns:
        The partitions of which a copy is not staged.
    """
    left: set[PartitionKey] = set()
    by_log_dir: dict[str, dict[Replica, tuple[str, str]]] = {}
    for copy, reason in copies.items():
        by_log_dir.setdefault(copy.log_dir, {})[copy] = reason
    for log_dir, wanted in by_log_dir.items():
        done: list[Staged] = []
        try:
            for refused in store.stage_copies(wanted, setting=delay, on_committed=done.extend).refused:
                logger.warning(
                    "%s: a copy of %s is not staged: %s", log_dir, refused.candidate.partition, refused.reason
                )
        except LogStoreError as error:
            logger.error("%s: %d copies should be staged, and not all of them are: %s", log_dir, len(wanted), error)
        outcome.effects += map(staged_effect, done)
        left |= {(copy.partition.topic, copy.partition.partition) for copy in wanted} - _keys(done)
    return left


def restore(store: LogStore, wanted: WantedReplica, staged: Staged, outcome: Outcome) -> None:
    """Restore a staged replica. Where that fails the data is still there, so no empty replica is created instead."""
    try:
        back = store.restore(staged, wanted.at)
    except (LogStoreError, LayoutError) as error:
        logger.warning("%s: %s is not brought back: %s", staged.log_dir, staged.location, error)
        outcome.answers[wanted.place] = KafkaError.KAFKA_STORAGE_ERROR
    else:
        outcome.effects.append(effect_on(EffectKind.RESTORED, back))


def create(store: LogStore, wanted: Sequence[WantedReplica], outcome: Outcome) -> None:
    """Create empty replicas."""
    empty: dict[TopicPartition, TopicId | None] = {each.at: each.topic_id for each in wanted}
    made = store.create_many(empty) if empty else {}
    for each in wanted:
        found = made[each.at]
        if isinstance(found, Replica):
            outcome.effects.append(effect_on(EffectKind.CREATED, found))
        else:
            logger.error("%s is not created: %s", each.at, found)
            outcome.answers[each.place] = answer_to_failed_creation(found)


def answer_to_failed_creation(error: LogStoreError | LayoutError) -> KafkaError:
    """Return the error number of a replica that cannot be created."""
    return error.kafka_error if isinstance(error, LogStoreError) else KafkaError.INVALID_TOPIC_EXCEPTION


def write_topic_ids(store: LogStore, nameless: Sequence[NamelessReplica], outcome: Outcome) -> None:
    """Write the controller's topic IDs for replicas that have none (KIP516-11)."""
    given = store.assign_topic_ids({each.at: each.topic_id for each in nameless}) if nameless else {}
    for each in nameless:
        found = given[each.at]
        if isinstance(found, LogStoreError):
            logger.error("%s is not given topic ID %s: %s", each.at, each.topic_id, found)
            outcome.answers[each.place] = found.kafka_error
        else:
            outcome.effects.append(effect_on(EffectKind.TOPIC_ID_WRITTEN, found))


def _keys(staged: Sequence[Staged]) -> set[PartitionKey]:
    return {(each.partition.topic, each.partition.partition) for each in staged if each.partition is not None}
