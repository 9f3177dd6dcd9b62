"""Takes away the nodes of namespaces that were deleted, once their last topic has gone (KIP37-3).

Runs beside the controller, on watches of its broker's session; what one controller did not get to, the next one does
when it starts, at the latest when it is asked for a namespace.
"""

from __future__ import annotations

from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode
from reconciler.simulator.admin.zookeeper_namespaces import namespace_mark
from reconciler.simulator.zookeeper import (
    CONFIGS,
    CONTROLLER_EPOCH,
    DELETE_NAMESPACES,
    NAMESPACE_ACLS,
    TOPIC_ACLS,
    TOPICS,
    Delete,
    Operation,
    Session,
    path_below,
)


class NamespaceSweep:
    """Sweeps whenever a topic, a mark, or the controller changes."""

    def __init__(self, node: ControllerNode) -> None:
        """Take the controller in whose name to write."""
        self._node = node
        self._watching: Session | None = None

    def start(self) -> None:
        """Begin to watch in the session that the broker holds now, and sweep; in a session that is over, do nothing.

        A second time in the same session it only sweeps.
        """
        session = self._node.current
        if session.expired:
            return
        if self._watching is not session:
            self._watching = session
            for path in (TOPICS, DELETE_NAMESPACES, CONTROLLER_EPOCH):
                session.watch(path, self._changed)
        self._changed(TOPICS)

    def sweep(self) -> list[str]:
        """Take away what is marked and empty, the innermost tiers first; gives their names.

        Raises:
            CommandRefusedError: 41, this is not the active controller.
        """
        session = self._node.session
        marked = session.children(DELETE_NAMESPACES) if session.find(DELETE_NAMESPACES) else []
        gone = []
        for name in sorted(marked, key=lambda each: (-each.count(":"), each)):
            if session.find(path_below(TOPICS, name)) is None or not session.children(path_below(TOPICS, name)):
                self._node.commit([*self._removal(name), Delete(namespace_mark(name))])
                gone.append(name)
        return gone

    def _removal(self, name: str) -> list[Operation]:
        """The namespace's own nodes; a leaf only, for a tier's configs and ACLs lie above those of its topics."""
        paths = [path_below(root, name) for root in (TOPICS, CONFIGS, NAMESPACE_ACLS, TOPIC_ACLS)]
        session = self._node.session
        return [Delete(path) for path in paths if session.find(path) is not None and not session.children(path)]

    def _changed(self, path: str) -> None:
        try:
            if self._node.controller.active:
                self.sweep()
        except CommandRefusedError as error:
            # The next controller sweeps; anything but that would be a mistake of ours.
            if error.error not in (KafkaError.NOT_CONTROLLER, KafkaError.INVALID_REQUEST):
                raise
