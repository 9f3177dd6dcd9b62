"""Access to ZooKeeper in the name of the active controller; writes fail once another controller is elected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from layout.ids import TopicId
from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.controller import Controller
from reconciler.simulator.placement import PLACEMENTS, KnownBroker, Placement
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
    delete_partitions_path,
    delete_path,
    read_brokers,
    read_topics,
    topic_path,
)
from reconciler.sources.zookeeper import NAMESPACES_FEATURE, TopicNode, decode_topic, topic_id_of
from reconciler.text import listed


class ControllerNode:
    """The controller and its session, as the commands use them; ``placement`` has the rules for new partitions."""

    def __init__(
        self,
        controller: Controller,
        session: Callable[[], Session],
        placement: Placement = Placement.ZOOKEEPER,
        registered: Mapping[int, str | None] = MappingProxyType({}),
    ) -> None:
        """Take the controller, and a function that gives the session of its broker.

        ``registered`` has the rack of each broker that has ever registered: a KRaft controller knows it while the
        broker is away, and ZooKeeper forgets it.
        """
        self.controller = controller
        self.placement = PLACEMENTS[placement]
        self._session, self._registered = session, registered

    @property
    def current(self) -> Session:
        """The session that the broker holds now, which may be over."""
        return self._session()

    @property
    def session(self) -> Session:
        """The session, for reading.

        Raises:
            CommandRefusedError: 41, the session expired.
        """
        session = self._session()
        if session.expired:
            raise _not_controller("its session with ZooKeeper is over")
        return session

    def known_brokers(self) -> list[KnownBroker]:
        """The brokers to place replicas on, by ID: a registered one without a session is fenced."""
        live = {node_id: KnownBroker(node_id, found.rack) for node_id, found in read_brokers(self.session).items()}
        away = {node_id: KnownBroker(node_id, rack, fenced=True) for node_id, rack in self._registered.items()}
        return [broker for _, broker in sorted((away | live).items())]

    def check_active(self) -> None:
        """Make sure that commands are carried out here.

        Raises:
            CommandRefusedError: 41, this is not the active controller.
        """
        if not self.controller.active:
            raise _not_controller("another broker is, or none")

    def commit(self, operations: Sequence[Operation]) -> None:
        """Write all operations or none; none once another controller was elected.

        Raises:
            CommandRefusedError: 41, another controller was elected; 42, a node was changed since it was read.
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
            why = f"something was changed just now; send this again: {error}"
            raise CommandRefusedError(KafkaError.INVALID_REQUEST, why) from error

    def with_parents(self, operation: Create) -> list[Operation]:
        """Operations that create a node after the empty nodes that are missing above it."""
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


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic's node as it was read, and the version that a write requires."""

    topic: str
    node: TopicNode
    version: int


def known_topics(node: ControllerNode) -> dict[str, TopicId | None]:
    """Read the names and IDs of all topics."""
    return {name: topic_id_of(found) for name, found in read_topics(node.session).items()}


def find_topic(node: ControllerNode, topic: str) -> KnownTopic:
    """Read a topic.

    Raises:
        CommandRefusedError: 3, there is no such topic.
    """
    found = node.session.find(topic_path(topic)) if topic and "/" not in topic else None
    if found is None or not found.data:
        raise CommandRefusedError(KafkaError.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r:.80}")
    return KnownTopic(topic, decode_topic(found.data), found.version)


def find_steady(node: ControllerNode, topic: str) -> KnownTopic:
    """Read a topic whose partitions are to be changed.

    Raises:
        CommandRefusedError: 3, there is no such topic; 17, it is being deleted; 60, it is already under change.
    """
    found = find_topic(node, topic)
    if node.session.find(delete_path(topic)) is not None:
        raise CommandRefusedError(KafkaError.INVALID_TOPIC_EXCEPTION, f"{topic} is being deleted")
    moving = sorted({*found.node.adding, *found.node.removing})
    if moving:
        raise _under_change(topic, f"partitions {moving} are being given other replicas")
    if node.session.find(delete_partitions_path(topic)) is not None:
        raise _under_change(topic, "its last partitions are being deleted")
    return found


def _under_change(topic: str, why: str) -> CommandRefusedError:
    return CommandRefusedError(
        KafkaError.REASSIGNMENT_IN_PROGRESS, f"{topic} is already under change: {why}; describe shows when it is done"
    )


def check_all_newer(node: ControllerNode) -> None:
    """Check that no registered broker is one of an older release, which does not know namespaces (KIP-37).

    Raises:
        CommandRefusedError: 35, some are.
    """
    brokers = read_brokers(node.session)
    older = [str(node_id) for node_id, found in brokers.items() if not found.knows_namespaces]
    if older:
        who = f"{'broker' if len(older) == 1 else 'brokers'} {listed(older)} of {len(brokers)}"
        raise CommandRefusedError(
            KafkaError.UNSUPPORTED_VERSION,
            f"{who} registered without the feature {NAMESPACES_FEATURE}: upgrade all brokers first",
        )
