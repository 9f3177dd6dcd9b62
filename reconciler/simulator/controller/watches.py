"""The watches of an active controller: a change in ZooKeeper becomes one look at the nodes that it may concern.

Watches tell that something changed, never what; many changes at once lead to one look.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from reconciler.simulator.controller.active import Active
from reconciler.simulator.controller.channels import Later
from reconciler.simulator.zookeeper import BROKERS, DELETE_TOPICS, LOG_DIR_EVENTS, REASSIGN_PARTITIONS, TOPICS, Session

_PARTITION_NODE = re.compile(r".+/partitions/[0-9]+(?:/state)?")
"""Written by controllers alone, and so nothing to look at."""


class Watches:
    """The watches from one election to the resignation."""

    def __init__(
        self, session: Session, active: Active, guarded: Callable[[Callable[[], None]], None], later: Later
    ) -> None:
        """Watch nothing yet.

        Args:
            session: tells what changes.
            active: whose parts look.
            guarded: runs something, unless the controller has resigned by then.
            later: has something done later, unless the controller has resigned by then.
        """
        self._session, self._active, self._guarded, self._later = session, active, guarded, later
        self._due: dict[str, None] = {}

    def begin(self) -> None:
        """Be told from now on."""
        topics, brokers = self._active.topics.look, self._active.brokers.look
        self._watch(TOPICS, "topics", topics)
        self._watch(DELETE_TOPICS, "topics", topics)
        self._watch(BROKERS, "brokers", brokers)
        self._watch(LOG_DIR_EVENTS, "log dirs", self._active.brokers.log_dirs_failed)
        self._watch(REASSIGN_PARTITIONS, "reassignments", self._active.reassignments.from_node)
        for extension in self._active.extensions:
            for path in extension.paths():
                changed = extension.changed
                self._session.watch(path, lambda at, told=changed: self._guarded(lambda: told(at)))  # type: ignore[misc]

    def _watch(self, path: str, what: str, look: Callable[[], None]) -> None:
        def told(at: str) -> None:
            if not _PARTITION_NODE.fullmatch(at):
                self._guarded(lambda: self._look_soon(what, look))

        self._session.watch(path, told)

    def _look_soon(self, what: str, look: Callable[[], None]) -> None:
        if what not in self._due:
            self._due[what] = None
            self._later(0, f"look at {what}", lambda: self._look(what, look))

    def _look(self, what: str, look: Callable[[], None]) -> None:
        del self._due[what]
        look()
