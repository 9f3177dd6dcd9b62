"""The part of a store that changes how its replicas are named and laid out: namespaces, topic names, schemes.

Each of these is a change of many steps over several log dirs; ``journal`` sees to it that it is done wholly or not at
all. Planning is left to ``namespaces``, ``rename_topic`` and ``convert``; whoever wants to look first plans, and hands
the plan to :meth:`LayoutChanges.carry_out`. Source: KIP37-3, KIP516-12, KIP516-13.
"""

from __future__ import annotations

import logging

from layout import checkpoint
from layout.ours.intent import RenameEntries
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore.errors import OfflineLogDirError
from logstore.journal import journal
from logstore.namespaces.convert import plan_convert
from logstore.namespaces.namespaces import list_namespaces, plan_create, plan_delete
from logstore.namespaces.planned_change import PlannedChange
from logstore.namespaces.rename_topic import plan_move, plan_rename
from logstore.settings import STALE_DELAY
from logstore.store.open_store import OpenStore

logger = logging.getLogger(__name__)


class LayoutChanges(OpenStore):
    """Namespaces, topic names and schemes of a store.

    Look-ups go on meanwhile and tell what was so before, until all of a change is done; nobody may read or write the
    replicas that it concerns as long as it runs.
    """

    def list_namespaces(self, below: str = "") -> list[str]:
        """The namespaces below one, in order; empty: all. Raises as :func:`list_namespaces`."""
        with self._changing:
            return list_namespaces(self, below)

    def create_namespace(self, namespace: str) -> PlannedChange:
        """Create a namespace with all its tiers. Raises as :func:`plan_create`, :meth:`carry_out`.

        Args:
            namespace: for example ``org:apache``.
        """
        with self._changing:
            return self.carry_out(plan_create(self, namespace))

    def delete_namespace(self, namespace: str, *, recursive: bool = False, setting: str = STALE_DELAY) -> PlannedChange:
        """Delete a namespace; recursively: with those below it, and every topic in them is staged.

        Args:
            namespace: not the default one.
            recursive: without it, a namespace that is not empty is refused.
            setting: the delay until a purge may take what is staged.

        Raises:
            LogStoreError, LayoutError: as :func:`plan_delete` and :meth:`carry_out`.
        """
        with self._changing:
            return self.carry_out(plan_delete(self, namespace, recursive=recursive, setting=setting))

    def move_topic(self, topic: str, namespace: str) -> PlannedChange:
        """Move a topic, by full name, to another namespace; empty: to the default one. As :meth:`rename_topic`."""
        with self._changing:
            return self.carry_out(plan_move(self, topic, namespace))

    def rename_topic(self, topic: str, new_topic: str) -> PlannedChange:
        """Give a topic another full name. Raises as :func:`plan_rename` and :meth:`carry_out`."""
        with self._changing:
            return self.carry_out(plan_rename(self, topic, new_topic))

    def convert(self, scheme: Scheme) -> PlannedChange:
        """Lay out all log dirs by another scheme. Raises as :func:`plan_convert` and as carry_out."""
        with self._changing:
            return self.carry_out(plan_convert(self, scheme))

    def carry_out(self, planned: PlannedChange) -> PlannedChange:
        """Do what was planned for this store as it is now; gives the plan.

        Raises:
            ChangeFailedError: the system refused, and nothing was changed.
            ChangeRefusedError: an earlier change waits for its end, or the plan does not fit any more.
            OfflineLogDirError: a disk failed. What the other log dirs had to do is done, or nothing was begun; the rest
                is done at the next open.
        """
        with self._changing:
            self._forget_old_entries(planned)
            failed = journal.carry_out(self.log_dirs, planned.intent, self.spare)
            self._take_over(planned)
        if failed:
            raise OfflineLogDirError(
                f"{failed[0].offline}; {planned.intent.sentence}: the other log dirs have done their part, and the "
                "rest is done when this one is opened again"
            )
        logger.info("done: %s (%d steps)", planned.intent.sentence, len(planned.intent.steps))
        return planned

    def _forget_old_entries(self, planned: PlannedChange) -> None:
        """Take out checkpoint entries of a new name: no such topic is here, and its offsets are not the new one's."""
        for step in planned.intent.steps:
            if isinstance(step, RenameEntries):
                log_dir = self._log_dirs[planned.log_dirs[step.at]]
                files = map(log_dir.checkpoints.entries, checkpoint.OFFSET_CHECKPOINTS)
                old = {entry for entries in files for entry in entries if entry[0] == step.new_topic}
                if old:
                    with log_dir.changing(f"old checkpoint entries of {step.new_topic} cannot be removed"):
                        log_dir.checkpoints.take_out(TopicPartition(*each) for each in old)
                        log_dir.checkpoints.write(log_dir.disk)

    def _take_over(self, planned: PlannedChange) -> None:
        """Tell the index what has changed; what lies in an offline log dir is not known to have."""
        with self._looking:
            changed = [pair for pair in planned.replicas if self._log_dirs[pair[0].log_dir].offline is None]
            for before, _ in changed:
                self._index.drop(before.partition)
            for _, after in changed:
                if after is not None:
                    self._index.put(after)
