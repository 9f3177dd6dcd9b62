"""Carry out changes of how the replicas of a store are named and laid out: namespaces, topic names, schemes.

Each function plans a change and carries it out at once. A caller who wants to look first plans, with ``namespaces``,
``rename`` or ``schemes``, and passes the plan to :func:`carry_out`. A change has many steps over several log dirs;
``logstore.journal`` sees to it that it is done wholly or not at all. Look-ups of the store go on meanwhile, and answer
as before until all of the change is done. Nobody may read or write the replicas concerned while the change runs.
Source: KIP37-3, KIP516-12, KIP516-13.
"""

from __future__ import annotations

import logging

from layout import checkpoint
from layout.ours import RenameEntries
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore.errors import OfflineLogDirError
from logstore.journal import carry_out_intent
from logstore.namespaces.move import plan_move_namespace
from logstore.namespaces.namespaces import plan_create, plan_delete
from logstore.namespaces.plan import PlannedChange, first_few
from logstore.namespaces.rename import plan_move, plan_rename
from logstore.namespaces.schemes import plan_convert
from logstore.settings import STALE_DELAY
from logstore.store import OpenStore

logger = logging.getLogger(__name__)


def create_namespace(store: OpenStore, namespace: str) -> PlannedChange:
    """Create a namespace with all its tiers. Raises as :func:`plan_create` and :func:`carry_out`.

    All log dirs of the store get the namespace, for example ``org:apache``.
    """
    with store.changing:
        return carry_out(store, plan_create(store, namespace))


def delete_namespace(
    store: OpenStore, namespace: str, *, recursive: bool = False, setting: str = STALE_DELAY
) -> PlannedChange:
    """Delete a namespace.

    Args:
        store: all its log dirs lose the namespace.
        namespace: not the default one.
        recursive: also delete the namespaces below it, and stage every topic in any of them; without it, a namespace
            that is not empty is refused.
        setting: name of the delay after which a purge may delete the staged replicas.

    Raises:
        LogStoreError, LayoutError: as :func:`plan_delete` and :func:`carry_out`.
    """
    with store.changing:
        return carry_out(store, plan_delete(store, namespace, recursive=recursive, setting=setting))


def move_topic(store: OpenStore, topic: str, namespace: str) -> PlannedChange:
    """Move a topic, by full name, to another namespace; empty: the default one. Raises as :func:`rename_topic`."""
    with store.changing:
        return carry_out(store, plan_move(store, topic, namespace))


def move_namespace(store: OpenStore, namespace: str, target: str) -> PlannedChange:
    """Move a namespace, with all that is in it, to another name.

    The settings of the store that are given for it, or for something in it, go along.
    Raises as :func:`plan_move_namespace` and :func:`carry_out`.
    """
    with store.changing:
        done = carry_out(store, plan_move_namespace(store, namespace, target))
        store.settings = store.settings.moved(namespace, target)
        return done


def rename_topic(store: OpenStore, topic: str, new_topic: str) -> PlannedChange:
    """Give a topic another full name. Raises as :func:`plan_rename` and :func:`carry_out`."""
    with store.changing:
        return carry_out(store, plan_rename(store, topic, new_topic))


def convert(store: OpenStore, scheme: Scheme) -> PlannedChange:
    """Lay out all log dirs by another scheme. Raises as :func:`plan_convert` and :func:`carry_out`."""
    with store.changing:
        return carry_out(store, plan_convert(store, scheme))


def carry_out(store: OpenStore, planned: PlannedChange) -> PlannedChange:
    """Carry out a plan that was made for this store in its present state.

    Returns:
        The plan.

    Raises:
        ChangeFailedError: the system refused, and nothing was changed.
        ChangeRefusedError: an earlier change is not finished yet, or the plan does not fit any more.
        OfflineLogDirError: a disk failed. Either nothing was begun, or the other log dirs have done their steps and the
            rest is done at the next open.
    """
    with store.changing:
        _forget_old_entries(store, planned)
        failed = carry_out_intent(store.log_dirs, planned.intent, store.fallback)
        store.take_over(planned.replicas)
    if failed:
        raise OfflineLogDirError(
            f"{failed[0].offline}; {planned.intent.sentence}: the other log dirs have done their part, and the "
            "rest is done when this one is opened again"
        )
    logger.info("done: %s (%d steps)", planned.intent.sentence, len(planned.intent.steps))
    return planned


def _forget_old_entries(store: OpenStore, planned: PlannedChange) -> None:
    """Remove checkpoint entries that an earlier topic left under a new name: its offsets are not the new topic's."""
    log_dirs = {log_dir.path: log_dir for log_dir in store.log_dirs}
    new_topics: dict[str, set[str]] = {}
    for step in planned.intent.steps:
        if isinstance(step, RenameEntries):
            new_topics.setdefault(planned.log_dirs[step.at], set()).add(step.new_topic)
    for path, topics in new_topics.items():
        log_dir = log_dirs[path]
        files = map(log_dir.checkpoints.entries, checkpoint.OFFSET_CHECKPOINTS)
        old = {entry for entries in files for entry in entries if entry[0] in topics}
        if old:
            with log_dir.changing(f"old checkpoint entries of {first_few(sorted(topics))} cannot be removed"):
                log_dir.checkpoints.take_out(TopicPartition(*each) for each in old)
                log_dir.checkpoints.write(log_dir.disk)
