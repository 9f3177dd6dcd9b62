"""Changes of how a store's replicas are named and laid out, carried out: namespaces, topic names, schemes.

Each of these is a change of many steps over several log dirs; ``journal`` sees to it that it is done wholly or not at
all. Planning is left to ``namespaces``, ``rename_topic`` and ``convert``; a caller who wants to look first plans, and
hands the plan to :func:`carry_out`. Look-ups of the store go on meanwhile and give what was so before, until all of a
change is done; nobody may read or write the replicas that it concerns as long as it runs.
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
from logstore.namespaces.namespaces import plan_create, plan_delete
from logstore.namespaces.plan import PlannedChange
from logstore.namespaces.rename import plan_move, plan_rename
from logstore.namespaces.schemes import plan_convert
from logstore.settings import STALE_DELAY
from logstore.store import OpenStore

logger = logging.getLogger(__name__)


def create_namespace(store: OpenStore, namespace: str) -> PlannedChange:
    """Create a namespace with all its tiers. Raises as :func:`plan_create` and :func:`carry_out`.

    Args:
        store: all of whose log dirs get it.
        namespace: for example ``org:apache``.
    """
    with store.changing:
        return carry_out(store, plan_create(store, namespace))


def delete_namespace(
    store: OpenStore, namespace: str, *, recursive: bool = False, setting: str = STALE_DELAY
) -> PlannedChange:
    """Delete a namespace; recursively: with those below it, and every topic in them is staged.

    Args:
        store: all of whose log dirs lose it.
        namespace: not the default one.
        recursive: without it, a namespace that is not empty is refused.
        setting: the delay until a purge may take what is staged.

    Raises:
        LogStoreError, LayoutError: as :func:`plan_delete` and :func:`carry_out`.
    """
    with store.changing:
        return carry_out(store, plan_delete(store, namespace, recursive=recursive, setting=setting))


def move_topic(store: OpenStore, topic: str, namespace: str) -> PlannedChange:
    """Move a topic, by full name, to another namespace; empty: to the default one. Raises as :func:`rename_topic`."""
    with store.changing:
        return carry_out(store, plan_move(store, topic, namespace))


def rename_topic(store: OpenStore, topic: str, new_topic: str) -> PlannedChange:
    """Give a topic another full name. Raises as :func:`plan_rename` and :func:`carry_out`."""
    with store.changing:
        return carry_out(store, plan_rename(store, topic, new_topic))


def convert(store: OpenStore, scheme: Scheme) -> PlannedChange:
    """Lay out all log dirs by another scheme. Raises as :func:`plan_convert` and :func:`carry_out`."""
    with store.changing:
        return carry_out(store, plan_convert(store, scheme))


def carry_out(store: OpenStore, planned: PlannedChange) -> PlannedChange:
    """Do what was planned for this store as it is now; gives the plan.

    Raises:
        ChangeFailedError: the system refused, and nothing was changed.
        ChangeRefusedError: an earlier change waits for its end, or the plan does not fit any more.
        OfflineLogDirError: a disk failed. What the other log dirs had to do is done, or nothing was begun; the rest
            is done at the next open.
    """
    with store.changing:
        _forget_old_entries(store, planned)
        failed = carry_out_intent(store.log_dirs, planned.intent, store.spare)
        store.take_over(planned.replicas)
    if failed:
        raise OfflineLogDirError(
            f"{failed[0].offline}; {planned.intent.sentence}: the other log dirs have done their part, and the "
            "rest is done when this one is opened again"
        )
    logger.info("done: %s (%d steps)", planned.intent.sentence, len(planned.intent.steps))
    return planned


def _forget_old_entries(store: OpenStore, planned: PlannedChange) -> None:
    """Take out checkpoint entries of a new name: no such topic is here, and its offsets are not the new one's."""
    log_dirs = {log_dir.path: log_dir for log_dir in store.log_dirs}
    for step in planned.intent.steps:
        if isinstance(step, RenameEntries):
            log_dir = log_dirs[planned.log_dirs[step.at]]
            files = map(log_dir.checkpoints.entries, checkpoint.OFFSET_CHECKPOINTS)
            old = {entry for entries in files for entry in entries if entry[0] == step.new_topic}
            if old:
                with log_dir.changing(f"old checkpoint entries of {step.new_topic} cannot be removed"):
                    log_dir.checkpoints.take_out(TopicPartition(*each) for each in old)
                    log_dir.checkpoints.write(log_dir.disk)
