"""Carry out the actions of a decision in their order, and give the result of each.

Nothing is decided here. ``logstore`` makes each change safe by itself, so a request that was carried out in part,
because a disk or the machine failed, is finished by sending it again. Source: KIP516-5 to -7, KIP516-11; FACTS §4.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Protocol

from layout.errors import LayoutError
from layout.ids import TopicId
from logstore import KafkaError, LogStoreError
from logstore.staging import Staged, StagingOutcome
from logstore.store import LogStore, Replica
from reconciler.broker.decision import NOT_NAMED, ActionResult, DecidedAction, Decision, Outcome
from reconciler.plan import ActionKind

logger = logging.getLogger(__name__)


class Executor(Protocol):
    """Does each kind of action, or foresees it, and gives one result for each in the given order."""

    @property
    def store(self) -> LogStore:
        """The store of the broker."""

    def stage(self, actions: Sequence[DecidedAction], delay: str) -> list[ActionResult]:
        """Stage live replicas; ``delay`` names the setting that says how long they wait."""

    def restore(self, actions: Sequence[DecidedAction]) -> list[ActionResult]:
        """Restore staged replicas."""

    def write_topic_ids(self, actions: Sequence[DecidedAction]) -> list[ActionResult]:
        """Write the controller's topic IDs for replicas that have none (KIP516-11)."""

    def create(self, actions: Sequence[DecidedAction]) -> list[ActionResult]:
        """Create empty replicas."""


def carry_out(store: LogStore, decision: Decision) -> Outcome:
    """Make the changes of a decision.

    The store is as it was when the decision was made.
    """
    return execute(decision, StoreExecutor(store))


def execute(decision: Decision, executor: Executor) -> Outcome:
    """Let an executor do the actions of a decision, and note what became of each.

    An action is left out if its partition is answered with an error by then, because what should make room for it is
    still there; and a replica is not made if it may lie on a disk that failed meanwhile.
    """
    outcome, store, offline = Outcome(), executor.store, set(executor.store.offline)
    does: dict[ActionKind, Callable[[Sequence[DecidedAction]], list[ActionResult]]] = {
        ActionKind.STAGE: lambda actions: executor.stage(actions, decision.delay),
        ActionKind.RESTORE: executor.restore,
        ActionKind.WRITE_TOPIC_ID: executor.write_topic_ids,
        ActionKind.CREATE: executor.create,
    }
    for (kind, _), group in groupby(decision.actions, key=_batch_of):
        batch, some_offline = list(group), bool(store.offline)
        left_out = [_left_out(each, outcome, some_offline=some_offline) for each in batch]
        done = iter(does[kind]([each for each, known in zip(batch, left_out, strict=True) if known is None]))
        for each, known in zip(batch, left_out, strict=True):
            outcome.add(each, known or next(done))
        failed = set(store.offline) - offline if kind is ActionKind.STAGE else ()
        if failed:
            lost = {key for key, entry in store.entries().items() if entry.log_dir in failed}
            places = (place for place, key in enumerate(decision.keys()) if key in lost)
            outcome.answers |= dict.fromkeys(places, int(KafkaError.KAFKA_STORAGE_ERROR))
    return outcome


def _batch_of(decided: DecidedAction) -> tuple[ActionKind, int]:
    """A disk may fail at each replica that it restores, which the next one must know of: so these go one by one."""
    kind = decided.action.kind
    return kind, decided.place if kind is ActionKind.RESTORE else NOT_NAMED


def _left_out(decided: DecidedAction, outcome: Outcome, *, some_offline: bool) -> ActionResult | None:
    if decided.place in outcome.answers:
        return decided.failed(outcome.answers[decided.place], "what should make room for it is still there")
    if some_offline and decided.may_be_elsewhere:
        return decided.failed(KafkaError.KAFKA_STORAGE_ERROR, "it may lie on a disk that is offline")
    return None


class StoreExecutor:
    """Changes the disks."""

    def __init__(self, store: LogStore) -> None:
        """Take the store of the broker."""
        self.store = store

    def stage(self, actions: Sequence[DecidedAction], delay: str) -> list[ActionResult]:
        """Stage live replicas, with one barrier for many of them; a failing disk does not hold up the others."""
        batches: dict[tuple[str, bool], dict[Any, tuple[str, str]]] = {}
        for each in actions:
            action, copy = each.action, each.found
            batch = batches.setdefault((action.log_dir, copy is not None), {})
            batch[action.replica if copy is None else copy] = (action.verdict, action.why)
        found: dict[tuple[str, str], Staged | str] = {}
        failures: dict[str, str] = {}
        for (log_dir, are_copies), wanted in batches.items():
            stage = self.store.stage_copies if are_copies else self.store.stage_each
            failed = _stage(log_dir, len(wanted), partial(stage, wanted, setting=delay), found)
            failures[log_dir] = failures.get(log_dir) or failed
        results = []
        for each in actions:
            staged = found.get((each.action.log_dir, each.action.name), failures[each.action.log_dir])
            if isinstance(staged, Staged):
                results.append(each.done(staged.log_dir, staged.location, staged.due_ms))
            else:
                results.append(each.failed(each.otherwise, staged))
        return results

    def restore(self, actions: Sequence[DecidedAction]) -> list[ActionResult]:
        """Restore staged replicas, under the name that the request has for their topic IDs.

        Where that fails the data is still there, so no empty replica is created instead.
        """
        results = []
        for each in actions:
            assert isinstance(each.found, Staged), "the staged replica goes with its action"
            try:
                back = self.store.restore(each.found, each.action.replica, each.wanted_id)
            except (LogStoreError, LayoutError) as error:
                logger.warning("%s: %s is not brought back: %s", each.action.log_dir, each.action.name, error)
                results.append(each.failed(KafkaError.KAFKA_STORAGE_ERROR, str(error)))
            else:
                results.append(each.done(back.log_dir, back.path))
        return results

    def write_topic_ids(self, actions: Sequence[DecidedAction]) -> list[ActionResult]:
        """Write the controller's topic IDs for replicas that have none (KIP516-11)."""
        wanted = {each.action.replica: TopicId.parse(each.action.wanted_topic_id or "") for each in actions}
        results, given = [], self.store.assign_topic_ids(wanted)
        for each, (at, topic_id) in zip(actions, wanted.items(), strict=True):
            found = given[at]
            if isinstance(found, LogStoreError):
                logger.error("%s is not given topic ID %s: %s", at, topic_id, found)
                results.append(each.failed(found.kafka_error, str(found)))
            else:
                results.append(each.done(found.log_dir, found.path))
        return results

    def create(self, actions: Sequence[DecidedAction]) -> list[ActionResult]:
        """Create empty replicas."""
        wanted = {each.action.replica: each.wanted_id for each in actions}
        results, made = [], self.store.create_many(wanted)
        for each, at in zip(actions, wanted, strict=True):
            found = made[at]
            if isinstance(found, Replica):
                results.append(each.done(found.log_dir, found.path))
            else:
                logger.error("%s is not created: %s", at, found)
                results.append(each.failed(answer_to_failed_creation(found), str(found)))
        return results


def _stage(
    log_dir: str, count: int, run: Callable[..., StagingOutcome], found: dict[tuple[str, str], Staged | str]
) -> str:
    """Stage replicas of one log dir; return why not all of them are staged, or nothing.

    Args:
        log_dir: path of it.
        count: how many there are.
        run: stages them.
        found: gets each staged replica, or why it is not staged, by log dir and path.
    """

    def committed(batch: Sequence[Staged]) -> None:
        for staged in batch:
            assert staged.record is not None, "a replica that was just staged has its record"
            found[log_dir, staged.record.path] = staged

    try:
        for refused in run(on_committed=committed).refused:
            logger.warning("%s: %s is not staged: %s", log_dir, refused.candidate.partition, refused.reason)
            found[log_dir, refused.candidate.path] = refused.reason
    except LogStoreError as error:
        logger.error("%s: %d replicas should be staged, and not all of them are: %s", log_dir, count, error)
        return str(error)
    return ""


def answer_to_failed_creation(error: LogStoreError | LayoutError) -> KafkaError:
    """Return the error number of a replica that cannot be created."""
    return error.kafka_error if isinstance(error, LogStoreError) else KafkaError.INVALID_TOPIC_EXCEPTION
