"""The active controller's place in ZooKeeper: what is written there fails once another controller is elected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.zookeeper import (
    CONTROLLER_EPOCH,
    BadVersionError,
    Check,
    Create,
    NodeExistsError,
    NoNodeError,
    Operation,
    Session,
    SessionExpiredError,
)


class AdminController(Protocol):
    """What the commands ask of the controller in this broker's process."""

    @property
    def active(self) -> bool:
        """Whether it believes to be the cluster's controller."""

    @property
    def epoch(self) -> int:
        """The epoch in which it was elected."""

    def reassign(
        self, assignments: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Mapping[TopicPartition, KafkaError]:
        """Begin to give partitions other replicas; None cancels what was begun."""

    def elect_preferred(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, KafkaError]:
        """Have the first replicas lead."""


class ControllerNode:
    """The controller and its session, as the commands use them."""

    def __init__(self, controller: AdminController, session: Callable[[], Session]) -> None:
        """Take the controller, and where to find the session that its broker holds now."""
        self.controller = controller
        self._session = session

    @property
    def current(self) -> Session:
        """The session that the broker holds now, which may be over."""
        return self._session()

    @property
    def session(self) -> Session:
        """The session, to read in.

        Raises:
            CommandRefusedError: 41, it expired.
        """
        session = self._session()
        if session.expired:
            raise _not_controller("its session with ZooKeeper is over")
        return session

    def check_active(self) -> None:
        """Make sure that commands are carried out here.

        Raises:
            CommandRefusedError: 41, they are not.
        """
        if not self.controller.active:
            raise _not_controller("another broker is, or none")

    def commit(self, operations: Sequence[Operation]) -> None:
        """Write all of it, or nothing; nothing once another controller was elected.

        Raises:
            CommandRefusedError: 41, another was elected; 42, a node is not as it was read.
        """
        self.check_active()
        session = self.session
        epoch = session.find(CONTROLLER_EPOCH)
        if epoch is None or epoch.data != str(self.controller.epoch).encode("ascii"):
            raise _not_controller("another controller was elected")
        try:
            session.multi([Check(CONTROLLER_EPOCH, epoch.version), *operations])
        except SessionExpiredError as error:
            raise _not_controller(str(error)) from error
        except (BadVersionError, NodeExistsError, NoNodeError) as error:
            raise CommandRefusedError(KafkaError.INVALID_REQUEST, f"something was changed just now: {error}") from error

    def with_parents(self, operation: Create) -> list[Operation]:
        """Operations that create a node, and before it the empty nodes that are missing above it."""
        missing: list[Operation] = []
        above = operation.path.rpartition("/")[0]
        while above and self.session.find(above) is None:
            missing.append(Create(above))
            above = above.rpartition("/")[0]
        return [*reversed(missing), operation]


def _not_controller(why: str) -> CommandRefusedError:
    return CommandRefusedError(
        KafkaError.NOT_CONTROLLER, f"this broker is not the controller: {why}; ask the one that /controller names"
    )
