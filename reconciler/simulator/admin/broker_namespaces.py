"""A broker's side of namespaces: its log dirs have the tiers that ZooKeeper has (KIP37-2, KIP37-3).

Only a store whose log dirs are laid out ``namespaced`` has directories for tiers; with any other nothing is done. A
tier that ZooKeeper has no more is removed at the first change after nothing is in it, so that a topic which waits for
its StopReplica request is never in the way, and nothing is lost when ZooKeeper says nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from layout.scheme import Scheme
from logstore import LogStoreError
from logstore.journal import namespace_at, namespace_dirs
from logstore.namespaces import create_namespace, delete_namespace
from logstore.store import LogStore
from reconciler.simulator.zookeeper import PARTITIONS, TOPICS, Session, read_namespaces


class BrokerNamespaces:
    """Keeps one broker's log dirs in step, from the broker's start to its end."""

    def __init__(self, store: LogStore, session: Session, say: Callable[[str], None]) -> None:
        """Take what the broker has.

        Args:
            store: its log dirs.
            session: its own; where it opens another, make another of these.
            say: adds a line to the history.
        """
        self._store, self._session, self._say = store, session, say

    def start(self) -> None:
        """Bring the log dirs in step, before the broker hears of any topic, and watch from then on."""
        if any(log_dir.scheme is Scheme.NAMESPACED for log_dir in self._store.log_dirs):
            self._session.watch(TOPICS, self._changed)
            self.follow()

    def follow(self) -> None:
        """Create the tiers that are missing, and remove those that ZooKeeper has no more and that are empty.

        What a disk refuses is said, and tried again at the next change.
        """
        wanted = read_namespaces(self._session)
        try:
            here = self._by_log_dir()
            for name in wanted:
                if any(name not in names for names in here):
                    create_namespace(self._store, name)
                    self._say(f"has namespace {name} now")
        except LogStoreError as error:
            self._say(f"cannot have all namespaces: {error}")
            return
        for name in sorted({name for names in here for name in names} - set(wanted), reverse=True):
            self._remove(name)

    def _by_log_dir(self) -> list[set[str]]:
        """The namespaces of each log dir that has tiers and works: a disk that was replaced has none."""
        log_dirs = [each for each in self._store.log_dirs if each.scheme is Scheme.NAMESPACED and each.offline is None]
        return [{namespace_at(path) for path in namespace_dirs(log_dir)} for log_dir in log_dirs]

    def _remove(self, name: str) -> None:
        """Remove a tier; the store refuses where anything is in it."""
        try:
            delete_namespace(self._store, name)
            self._say(f"has namespace {name} no more")
        except LogStoreError as error:
            self._say(f"keeps namespace {name} for now: {error}")

    def _changed(self, path: str) -> None:
        """Topics' own nodes and all below them are none of its business."""
        if f"/{PARTITIONS}/" in f"{path}/":
            return
        node = self._session.find(path) if not self._session.expired else None
        if not self._session.expired and (node is None or not node.data):
            self.follow()
