"""Namespaces in ZooKeeper: create, list, delete and move, and move a topic from one to another (KIP37-3, KIP37-4).

A namespace is an empty node below ``/brokers/topics``; its tiers are the nodes above it. Deleting a namespace marks its
topics for deletion, and itself; :class:`NamespaceSweep` deletes its node when its last topic is gone. KIP-37 refuses a
deletion only if other namespaces lie below, and so does this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layout.topic import (
    NAMESPACE_SEPARATOR,
    Namespace,
    TopicPartition,
    clash_with_tier,
    namespace_of,
    partition_of_tier,
)
from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode, KnownTopic, check_all_newer, find_steady
from reconciler.simulator.admin.delete import deletion_marks
from reconciler.simulator.zookeeper import (
    CONFIGS,
    CONTROLLER_EPOCH,
    DELETE_NAMESPACES,
    NAMESPACE_ACLS,
    TOPIC_ACLS,
    TOPICS,
    Create,
    Delete,
    Operation,
    Session,
    Set,
    check_name,
    config_change,
    name_at,
    path_below,
    read_namespaces,
    read_topics,
    topic_path,
)
from reconciler.sources.zookeeper import decode_topic

REFUSED = KafkaError.INVALID_TOPIC_EXCEPTION
"""Kafka's number nearest to KIP-37's InvalidNamespaceException, which has none."""


def namespace_mark(namespace: str) -> str:
    """The path that marks a namespace for deletion: one flat name, so that no tier's mark lies above another's."""
    return f"{DELETE_NAMESPACES}/{namespace}"


def create_namespace(node: ControllerNode, namespace: str) -> None:
    """Create a namespace with all its tiers, as one transaction.

    Raises:
        InvalidNameError: it cannot have this name.
        CommandRefusedError: 36, it exists, or a topic has the name of a tier; 17, a tier is being deleted, or would
            have the directory of a partition; 35, a broker does not know namespaces.
    """
    if not Namespace.parse(namespace).tiers:
        raise CommandRefusedError(KafkaError.TOPIC_ALREADY_EXISTS, "the default namespace is always there")
    check_name(f"{namespace}:any")
    check_all_newer(node)
    missing = _missing_tiers(node, namespace)
    if not missing:
        raise CommandRefusedError(KafkaError.TOPIC_ALREADY_EXISTS, f"namespace {namespace} exists already")
    node.commit([*missing, config_change(namespace)])


def list_namespaces(node: ControllerNode, below: str = "") -> list[str]:
    """The namespaces below a namespace, sorted; empty: all except the default namespace.

    Raises:
        CommandRefusedError: 17, it does not exist.
    """
    found = read_namespaces(node.session)
    if below and below not in found:
        raise _unknown(below)
    prefix = f"{below}{NAMESPACE_SEPARATOR}" if below else ""
    return [name for name in found if name.startswith(prefix)]


def delete_namespace(node: ControllerNode, namespace: str, *, recursive: bool = False) -> None:
    """Mark a namespace and its topics for deletion; ``recursive``: with the namespaces below it.

    Raises:
        CommandRefusedError: 17, it does not exist, or has namespaces below it and the deletion is not recursive.
    """
    below = list_namespaces(node, namespace) if namespace else []
    if not namespace:
        raise CommandRefusedError(REFUSED, "the default namespace cannot be deleted; delete its topics")
    if below and not recursive:
        raise CommandRefusedError(
            REFUSED, f"{namespace} has {len(below)} namespaces below it, the first {below[0]}: delete it recursively"
        )
    gone = {namespace, *below}
    topics = [topic for topic in read_topics(node.session) if namespace_of(topic) in gone]
    marks: list[Operation] = [
        Create(namespace_mark(name)) for name in sorted(gone) if node.session.find(namespace_mark(name)) is None
    ]
    node.commit([*marks, *deletion_marks(node, topics)])


def check_usable(node: ControllerNode, namespace: str) -> None:
    """Check that a namespace was created and is not being deleted; the default namespace can always be used.

    Raises:
        CommandRefusedError: 17, it cannot be used.
    """
    if namespace:
        found = node.session.find(topic_path(namespace))
        if found is None or found.data:
            raise _unknown(namespace)
        for tier in _with_tiers(namespace):
            _check_staying(node, tier)


def check_no_tiers(node: ControllerNode, topic: str, partitions: Iterable[int]) -> None:
    """Check that no namespace has the directory that one of a topic's new partitions needs (KIP37-2).

    Raises:
        CommandRefusedError: 17, one has.
    """
    for partition in (TopicPartition(topic, number) for number in partitions):
        found = node.session.find(topic_path(str(partition)))
        if found is not None and not found.data:
            raise CommandRefusedError(REFUSED, clash_with_tier(partition))


def _missing_tiers(node: ControllerNode, namespace: str) -> list[Operation]:
    """Operations that create the tiers of a namespace that are missing; none for the default namespace.

    Raises:
        CommandRefusedError: as :func:`create_namespace`.
    """
    missing: list[Operation] = []
    for tier in _with_tiers(namespace):
        found = node.session.find(topic_path(tier))
        if found is None:
            _check_no_partition(node, tier)
            missing += [Create(topic_path(tier)), *_without_configs(node, tier)]
        elif found.data:
            raise CommandRefusedError(KafkaError.TOPIC_ALREADY_EXISTS, f"{tier} is a topic; take another name")
        _check_staying(node, tier)
    return missing


def _without_configs(node: ControllerNode, tier: str) -> list[Operation]:
    """Operations that take away the configs that an earlier namespace of this name left, which are not this one's."""
    left = node.session.find(path_below(CONFIGS, tier))
    return [Set(path_below(CONFIGS, tier), b"")] if left is not None and left.data else []


def _check_no_partition(node: ControllerNode, tier: str) -> None:
    partition = partition_of_tier(tier)
    found = None if partition is None else node.session.find(topic_path(partition.topic))
    if partition is not None and found is not None and partition.partition in decode_topic(found.data).partitions:
        raise CommandRefusedError(REFUSED, clash_with_tier(partition))


def _check_staying(node: ControllerNode, tier: str) -> None:
    if node.session.find(namespace_mark(tier)) is not None:
        raise CommandRefusedError(REFUSED, f"namespace {tier} is being deleted; wait until it is gone")


def _with_tiers(namespace: str) -> list[str]:
    """A namespace and the tiers above it, the outermost first; none for the default namespace."""
    tiers = namespace.split(NAMESPACE_SEPARATOR) if namespace else []
    return [NAMESPACE_SEPARATOR.join(tiers[: count + 1]) for count in range(len(tiers))]


def _unknown(namespace: str) -> CommandRefusedError:
    return CommandRefusedError(REFUSED, f"there is no namespace {namespace!r:.80}; create it first")


class NamespaceSweep:
    """Deletes the nodes of deleted namespaces once their last topic is gone (KIP37-3).

    It runs beside the controller, on watches of its broker's session, whenever a topic, a mark, or the controller
    changes. Nodes that one controller leaves behind are swept by the next one when it starts, or at the latest when it
    gets a command about namespaces.
    """

    def __init__(self, node: ControllerNode) -> None:
        """Write in the name of this controller."""
        self._node = node
        self._watching: Session | None = None

    def start(self) -> None:
        """Begin to watch in the session that the broker holds now, and sweep; do nothing if the session is over.

        A second call in the same session only sweeps.
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
        """Delete the namespaces that are marked and empty, the innermost tiers first, and return their names.

        Raises:
            CommandRefusedError: 41, this is not the active controller.
        """
        session = self._node.session
        marked = session.children(DELETE_NAMESPACES) if session.find(DELETE_NAMESPACES) else []
        gone = []
        for name in sorted(marked, key=lambda each: (-each.count(":"), each)):
            if session.find(path_below(TOPICS, name)) is None or not session.children(path_below(TOPICS, name)):
                self._node.commit([*self._removal(name), Delete(namespace_mark(name)), config_change(name)])
                gone.append(name)
        return gone

    def _removal(self, name: str) -> list[Operation]:
        """Operations that delete a namespace's own nodes, except where its topics' configs or ACLs lie below."""
        paths = [path_below(root, name) for root in (TOPICS, CONFIGS, NAMESPACE_ACLS, TOPIC_ACLS)]
        session = self._node.session
        return [Delete(path) for path in paths if session.find(path) is not None and not session.children(path)]

    def _changed(self, path: str) -> None:
        try:
            if self._node.controller.active:
                self.sweep()
        except CommandRefusedError as error:
            # The next controller sweeps; any other error is a bug here.
            if error.error not in (KafkaError.NOT_CONTROLLER, KafkaError.INVALID_REQUEST):
                raise


def move_topic(node: ControllerNode, topic: str, namespace: str) -> str:
    """Move a topic to another namespace, and return its new full name; its ID and its data stay (KIP37-3).

    One transaction moves the topic's node, the states of its partitions with leaders and epochs, its configs and its
    ACLs. The versions of the states begin anew. The controller sees a known topic ID under another name (KIP516-13).
    The empty namespace is the default one.

    Raises:
        InvalidNameError: a name breaks the rules.
        CommandRefusedError: 3, there is no such topic; 17, it is being deleted, or there is no such namespace, or a
            namespace has the directory of one of its partitions; 35, a broker does not know namespaces; 36, there is a
            topic of that name, or ACLs for one, or it is in this namespace already; 42, it has no topic ID; 60, it is
            under change.
    """
    Namespace.parse(namespace)
    if namespace:
        check_all_newer(node)
    node.controller.catch_up()
    moved = _find_movable(node, topic)
    check_usable(node, namespace)
    local = topic.rpartition(NAMESPACE_SEPARATOR)[2]
    wanted = f"{namespace}{NAMESPACE_SEPARATOR}{local}" if namespace else local
    check_name(wanted)
    if node.session.find(topic_path(wanted)) is not None:
        raise CommandRefusedError(KafkaError.TOPIC_ALREADY_EXISTS, f"{wanted} exists already")
    check_no_tiers(node, wanted, moved.node.partitions)
    node.commit([*_moved(node, (TOPICS, CONFIGS, TOPIC_ACLS), topic, wanted), config_change(wanted)])
    return wanted


def move_namespace(node: ControllerNode, namespace: str, target: str) -> None:
    """Move a namespace, with the namespaces below it and all their topics, to another name (KIP37-3).

    One transaction moves every node as :func:`move_topic` does, with the configs and the ACLs of the namespaces, so a
    controller that dies leaves all of it or nothing. Tiers of the new name that are missing are made; those above the
    old name stay. Brokers rename what they have when a request names a topic ID that they know under another name, and
    one that was away does when it is back. Nothing is ever merged.

    Raises:
        InvalidNameError: a name breaks the rules.
        CommandRefusedError: 17, the namespace does not exist, one of the two lies inside the other, one of the
            namespaces or topics is being deleted, or a partition has the directory of a new tier; 35, a broker does not
            know namespaces; 36, the new name is taken, or there are ACLs for a topic below it; 42, a topic has no
            topic ID; 60, a topic is under change.
    """
    _check_apart(namespace, target)
    check_all_newer(node)
    node.controller.catch_up()
    tiers, topics = in_namespace(node, namespace)
    for tier in {*tiers, *_with_tiers(namespace)}:
        _check_staying(node, tier)
    for topic in topics:
        _find_movable(node, topic)
    if node.session.find(topic_path(target)) is not None:
        raise CommandRefusedError(
            KafkaError.TOPIC_ALREADY_EXISTS,
            f"{target} exists already, and nothing is ever merged: delete it first, or choose another name",
        )
    for name in (*tiers, *topics):
        renamed = target + name[len(namespace) :]
        check_name(renamed if name in topics else f"{renamed}:any")
    _check_no_partition(node, target)
    above = _missing_tiers(node, namespace_of(target))
    moves = _moved(node, (TOPICS, CONFIGS, NAMESPACE_ACLS, TOPIC_ACLS), namespace, target)
    made = {each.path for each in above if isinstance(each, Create)}
    left = [each for each in moves if not (isinstance(each, Create) and each.path in made)]
    node.commit([*above, *left, config_change(target)])


def in_namespace(node: ControllerNode, namespace: str) -> tuple[list[str], list[str]]:
    """A namespace with those below it, and the topics in any of them, sorted.

    Raises:
        CommandRefusedError: 17, there is no such namespace.
    """
    tiers = [namespace, *list_namespaces(node, namespace)]
    prefix = f"{namespace}{NAMESPACE_SEPARATOR}"
    return tiers, [topic for topic in read_topics(node.session) if topic.startswith(prefix)]


def _find_movable(node: ControllerNode, topic: str) -> KnownTopic:
    """Read a topic that is to get another name; without an ID, nobody would know it again."""
    found = find_steady(node, topic)
    if found.node.topic_id is None:
        why = f"{topic} has no topic ID, so brokers would not know it under another name; it gets one from a controller"
        raise CommandRefusedError(KafkaError.INVALID_REQUEST, why)
    return found


def _check_apart(namespace: str, target: str) -> None:
    """Refuse two names of which one is the default namespace, or is or holds the other."""
    for name in (namespace, target):
        if not Namespace.parse(name).tiers:
            raise CommandRefusedError(REFUSED, "the default namespace cannot be moved or replaced: move its topics")
    inner, outer = sorted((f"{each}{NAMESPACE_SEPARATOR}" for each in (namespace, target)), key=len, reverse=True)
    if inner.startswith(outer):
        raise CommandRefusedError(
            REFUSED,
            f"{namespace} cannot become {target}, for one of the two lies inside the other: move its topics one by one",
        )


def _moved(node: ControllerNode, roots: Sequence[str], name: str, wanted: str) -> list[Operation]:
    """Operations that move the nodes of a topic or a namespace below some roots.

    Configs and ACLs that an earlier namespace of the new name left are not this one's, and go. A topic's ACLs may be
    there before the topic, so they are never overwritten.

    Raises:
        CommandRefusedError: 36, there are ACLs for a topic of a new name.
    """
    session, created, deleted = node.session, dict[str, Operation](), list[Operation]()
    old: list[Operation] = []
    for root in roots:
        source, target = path_below(root, name), path_below(root, wanted)
        left = _tree(session, target)
        taken = [path for path in left if root == TOPIC_ACLS and session.get(path).data]
        if taken:
            raise CommandRefusedError(
                KafkaError.TOPIC_ALREADY_EXISTS,
                f"{name_at(root, taken[0])} has ACLs already, and nothing is ever merged: remove them first",
            )
        old += [Delete(path, session.get(path).version) for path in reversed(left)]
        paths = _tree(session, source)
        for path in paths:
            create = Create(target + path[len(source) :], session.get(path).data)
            steps = node.with_parents(create) if path == source else [create]
            created |= {each.path: each for each in steps}
        deleted += [Delete(path, session.get(path).version) for path in reversed(paths)]
    return [*old, *created.values(), *deleted]


def _tree(session: Session, path: str) -> list[str]:
    """The paths of a node and of all below it, parents first; none where there is no such node."""
    paths = [path] if session.find(path) is not None else []
    for each in paths:
        paths.extend(f"{each}/{name}" for name in session.children(each))
    return paths
