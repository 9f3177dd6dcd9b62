"""The objects that all parts of an active controller share, and the one way to change a partition's state node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layout.topic import TopicPartition
from reconciler.simulator.controller.context import ControllerContext, LeaderAndIsr
from reconciler.simulator.controller.requests import Channels, Later, RequestBatch
from reconciler.simulator.controller.settings import ControllerMovedError, ControllerSettings
from reconciler.simulator.controller.store import ClusterNodes
from reconciler.simulator.zookeeper import BadVersionError, NoNodeError


@dataclass(frozen=True, slots=True)
class ControllerCore:
    """The shared objects, from the election to the resignation.

    Attributes:
        batch: the requests to be sent next; the part that gathers them also sends them.
        say: adds a line to the history.
        later: calls a function later, unless the controller has resigned by then.
    """

    node_id: int
    settings: ControllerSettings
    context: ControllerContext
    nodes: ClusterNodes
    channels: Channels
    batch: RequestBatch
    say: Callable[[str], None]
    later: Later

    def change_state(
        self, partition: TopicPartition, change: Callable[[LeaderAndIsr], LeaderAndIsr | None]
    ) -> LeaderAndIsr | None:
        """Change a leader or an in-sync set: first in ZooKeeper, then in the context (CREATE-4).

        ``change`` returns the new state for the newest one, or None for no change; it is called again when ZooKeeper
        has a newer state.

        Returns:
            The new state; None: there was no change, or the topic was deleted and its node is gone.

        Raises:
            ControllerMovedError: a newer controller wrote the state.
        """
        state = change(self.context.leadership[partition])
        if state is None:
            return None
        try:
            try:
                written = self.nodes.write_state(partition, state)
            except BadVersionError:
                found = self.nodes.state(partition)
                if found is None or found.controller_epoch > self.context.epoch:
                    raise ControllerMovedError(
                        f"{partition} was written by a newer controller than epoch {self.context.epoch}: "
                        "stand for election again"
                    ) from None
                self.context.leadership[partition] = found
                state = change(found)
                if state is None:
                    return None
                written = self.nodes.write_state(partition, state)
        except NoNodeError:
            self.say(f"{partition} has no state node any more: its topic was deleted")
            return None
        self.context.leadership[partition] = written
        return written
