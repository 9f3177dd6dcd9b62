"""Namespaces in a broker's log dirs: their directories follow ZooKeeper's namespaces (KIP37-2, KIP37-3).

Only log dirs with the scheme ``namespaced`` have directories for tiers; in others nothing is done. A tier that is no
longer in ZooKeeper is removed once it is empty, which is looked at again and again: a topic that waits for its
StopReplica request, or for the request under another name by which a broker renames it, does not get in the way, and
nothing is lost when ZooKeeper lists nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from layout.scheme import Scheme
from logstore import LogStoreError
from logstore.journal import list_namespace_dirs, namespace_at
from logstore.namespaces import create_namespace, delete_namespace
from logstore.store import LogStore
from reconciler.simulator.kernel import Timers
from reconciler.simulator.zookeeper import PARTITIONS, TOPICS, Session, read_namespaces

_PAUSE_MS = 1_000
"""How long after a look a tier that could not be removed is looked at again."""


class BrokerNamespaces:
    """Keeps one broker's log dirs in step with ZooKeeper, from the broker's start to its end."""

    def __init__(self, store: LogStore, session: Session, timers: Timers, say: Callable[[str], None]) -> None:
        """Follow a broker's session; each session needs a new BrokerNamespaces."""
        self._store, self._session, self._timers, self._say = store, session, timers, say
        self._kept: dict[str, str] = {}
        """Each tier that is no longer in ZooKeeper and could not be removed, and why."""
        self._looks_again = False

    def start(self) -> None:
        """Create and remove tiers before the broker gets its first request, and watch from then on."""
        if any(log_dir.scheme is Scheme.NAMESPACED for log_dir in self._store.log_dirs):
            self._session.watch(TOPICS, self._changed)
            self.follow()

    def follow(self) -> None:
        """Create missing tiers, and remove empty tiers that are no longer in ZooKeeper.

        An error, of a disk or because a replica that is to go has the name, goes to the history. The change is tried
        again at the next change in ZooKeeper, and when a topic in the namespace comes (``machine.control``).
        """
        wanted = read_namespaces(self._session)
        try:
            here = self._by_log_dir()
        except LogStoreError as error:
            self._say(f"cannot have all namespaces: {error}")
            return
        for name in wanted:
            if any(name not in names for names in here):
                self._create(name)
        gone = sorted({name for names in here for name in names} - set(wanted), reverse=True)
        self._kept = {name: why for name in gone if (why := self._remove(name))}
        if self._kept and not self._looks_again:
            self._looks_again = True
            self._timers.after(_PAUSE_MS, "look at namespaces that are gone", self._look_again)

    def _by_log_dir(self) -> list[set[str]]:
        """The namespaces of each log dir that is namespaced and online; a log dir on a replaced disk has none."""
        log_dirs = [each for each in self._store.log_dirs if each.scheme is Scheme.NAMESPACED and each.offline is None]
        return [{namespace_at(path) for path in list_namespace_dirs(log_dir)} for log_dir in log_dirs]

    def _create(self, name: str) -> None:
        try:
            create_namespace(self._store, name)
            self._say(f"has namespace {name} now")
        except LogStoreError as error:
            self._say(f"cannot have namespace {name}: {error}")

    def _remove(self, name: str) -> str:
        """Remove a tier; the store refuses if it is not empty, and the reason is returned."""
        try:
            delete_namespace(self._store, name)
        except LogStoreError as error:
            if self._kept.get(name) != str(error):
                self._say(f"keeps namespace {name} for now: {error}")
            return str(error)
        self._say(f"has namespace {name} no more")
        return ""

    def _look_again(self) -> None:
        self._looks_again = False
        if not self._session.expired:
            self.follow()

    def _changed(self, path: str) -> None:
        """Follow ZooKeeper, unless the change is in a topic's node or below one."""
        if f"/{PARTITIONS}/" in f"{path}/":
            return
        node = self._session.find(path) if not self._session.expired else None
        if not self._session.expired and (node is None or not node.data):
            self.follow()
