"""Every command of an administrator, at one broker; only the active controller's broker carries out changes.

A command that changes something takes a batch, answers at once, and is carried out by later events; ``describe`` shows
when it is done (KIP4-1). An authorizer, if there is one, is asked first: a namespace's ACLs before a topic's own
(KIP37-6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from types import MappingProxyType

from layout.topic import TopicPartition, namespace_of
from logstore import KafkaError
from reconciler.protocol import DeletePartitionsRequest, DeletePartitionsResponse
from reconciler.simulator.admin import describe, zookeeper_namespaces
from reconciler.simulator.admin.acls import changed_acls
from reconciler.simulator.admin.alter import PartitionCount, alter_topic, outcome_of_fewer, outcome_of_more
from reconciler.simulator.admin.commands import (
    AlterTopic,
    CommandOutcome,
    CommandRefusedError,
    CreateTopic,
    GivenPartition,
    GivenTopic,
    TopicDescription,
    TopicKey,
    carry_out,
    key_of,
    name_of,
    outcome_of,
    resolve,
)
from reconciler.simulator.admin.configs import alter_namespace_configs
from reconciler.simulator.admin.controller_node import ControllerNode, known_topics
from reconciler.simulator.admin.create import create_topic
from reconciler.simulator.admin.delete import (
    DeletePartitions,
    DeletionAnswer,
    PartitionOutcome,
    mark_for_deletion,
    partition_outcomes,
    request_fewer,
)
from reconciler.simulator.admin.describe import subscribed_topics
from reconciler.simulator.admin.replication import PreferredElections, reassign
from reconciler.simulator.admin.zookeeper_namespaces import NamespaceSweep, in_namespace, move_namespace, move_topic
from reconciler.simulator.controller import Controller, FewerPartitionsSettings
from reconciler.simulator.kernel import ANONYMOUS, LiveBroker, Timers
from reconciler.simulator.placement import Placement
from reconciler.simulator.zookeeper import Authorizer, Session, topic_path
from reconciler.sources.zookeeper import TOPIC_OPERATIONS, Acl, AclOperation, decode_topic, operation_bits


class Admin:
    """The commands, as one broker answers them."""

    def __init__(
        self,
        controller: Controller,
        session: Callable[[], Session],
        metadata: describe.Metadata,
        timers: Timers,
        *,
        random: Random,
        authorizer: Callable[[], Authorizer] | None = None,
        fewer_partitions: FewerPartitionsSettings | None = None,
        lags: describe.Lags = lambda _partition: {},
        placement: Placement = Placement.ZOOKEEPER,
        registered: Mapping[int, str | None] = MappingProxyType({}),
    ) -> None:
        """Answer for one broker; ``lags`` gives those of the replicas of the partitions that it leads.

        Without an authorizer everybody may do everything; without ``fewer_partitions`` no partition can be deleted.
        ``registered`` has the rack of each broker that ever was in the cluster.
        """
        self._timers, self._fewer = timers, fewer_partitions or FewerPartitionsSettings()
        self.node = ControllerNode(controller, session, placement, registered)
        self._metadata, self._lags, self._random, self._authorizer = metadata, lags, random, authorizer
        self._elections = PreferredElections(self.node, timers)
        self._sweep = NamespaceSweep(self.node)

    def start(self) -> None:
        """Begin to watch for deleted, empty namespaces in the broker's session; a second call changes nothing."""
        self._sweep.start()

    def create_topics(self, batch: Sequence[CreateTopic], principal: str = ANONYMOUS) -> dict[str, CommandOutcome]:
        """Create topics (KIP4-3)."""

        def create(wanted: CreateTopic) -> None:
            self._begin(principal, AclOperation.CREATE, wanted.topic)
            create_topic(self.node, wanted, self._random)

        return carry_out(batch, lambda each: each.topic, create)

    def alter_topics(self, batch: Sequence[AlterTopic], principal: str = ANONYMOUS) -> dict[str, CommandOutcome]:
        """Alter topics, with one change for each (KIP4-3)."""

        def alter(wanted: AlterTopic) -> None:
            self._begin(principal, AclOperation.ALTER, wanted.topic)
            alter_topic(self.node, wanted, self._random)

        return carry_out(batch, lambda each: each.topic, alter)

    def delete_topics(
        self, batch: Sequence[GivenTopic], principal: str = ANONYMOUS
    ) -> dict[GivenTopic, CommandOutcome]:
        """Delete topics, each by its full name, its ID, or both (KIP516-10).

        A topic that is given in two ways is given twice. The outcomes have the keys that were given.
        """
        names, refused = resolve(batch, self._name_of)

        def delete(name: str) -> None:
            self._begin(principal, AclOperation.DELETE, name)
            mark_for_deletion(self.node, name)

        done = carry_out([names[topic] for topic in batch if topic in names], lambda name: name, delete)
        return {topic: refused[topic] if topic in refused else done[names[topic]] for topic in batch}

    def delete_partitions(
        self, batch: Sequence[DeletePartitions], principal: str = ANONYMOUS
    ) -> list[PartitionOutcome]:
        """Have the last partitions of topics deleted, at once or after a delay in which they can be read (KIP694-2)."""
        delays = {each.topic: each.delay_ms for each in batch}
        going: dict[str, list[int]] = {}

        def request(wanted: DeletePartitions) -> None:
            self._begin(principal, AclOperation.DELETE, wanted.topic)
            going[wanted.topic] = request_fewer(self.node, wanted, now_ms=self._timers.now_ms(), settings=self._fewer)

        outcomes = carry_out(batch, lambda each: each.topic, request)
        return [
            each
            for topic, outcome in outcomes.items()
            for each in partition_outcomes(topic, outcome, going.get(topic, []), delays[topic])
        ]

    def take_delete_partitions(
        self,
        request: DeletePartitionsRequest,
        answer: Callable[[DeletePartitionsResponse], None],
        principal: str = ANONYMOUS,
    ) -> None:
        """Take the same as a message of a client, and answer it when clients may no longer write (KIP694-2)."""
        batch = [DeletePartitions(each.topic, each.total, each.delay_ms) for each in request.topics]
        outcomes = self.delete_partitions(batch, principal)
        DeletionAnswer(self.node, self._timers, outcomes, timeout_ms=request.timeout_ms, answer=answer).look()

    def set_partitions(
        self, topic: str, total: int, delete_delay_ms: int = 0, principal: str = ANONYMOUS
    ) -> PartitionCount:
        """Give a topic more partitions, or fewer, as ``--alter --partitions`` does (KIP694-5)."""
        found = self.node.current.find(topic_path(topic)) if not self.node.current.expired else None
        if found is not None and 0 < total < len(decode_topic(found.data).partitions):
            outcomes = self.delete_partitions([DeletePartitions(topic, total, delete_delay_ms)], principal)
            return outcome_of_fewer(outcomes)
        return outcome_of_more(self.alter_topics([AlterTopic(topic, total)], principal)[topic])

    def describe_topics(self, topics: Sequence[GivenTopic] = (), principal: str = ANONYMOUS) -> list[TopicDescription]:
        """Describe topics as this broker knows them, controller or not; empty: all topics (KIP516-8, KIP516-9).

        A topic that the principal may not describe is answered with 29, and left out if all topics are asked for.
        """
        found = describe.describe(self.node.current, self._metadata, self._lags, topics, principal)
        keys = [key_of(each) for each in topics] or [TopicKey(each.topic) for each in found]
        seen = [self._as_seen_by(principal, key, each) for key, each in zip(keys, found, strict=True)]
        return [each for each in seen if topics or each.error is not KafkaError.TOPIC_AUTHORIZATION_FAILED]

    def describe_brokers(self, principal: str = ANONYMOUS) -> list[LiveBroker]:
        """The live brokers with host and port, as this broker knows them (KIP4-1)."""
        return describe.describe_brokers(self._metadata, principal)

    def list_topics(self, principal: str = ANONYMOUS) -> list[str]:
        """The full names of the topics that this broker knows and the principal may describe."""
        names = describe.list_topics(self._metadata, principal)
        return [name for name in names if self._may(principal, AclOperation.DESCRIBE, name)]

    def subscribed(self, pattern: str, principal: str = ANONYMOUS) -> list[str]:
        """The topics whose full names a pattern subscribes to (KIP37-7).

        Raises:
            UsageError: the pattern is no regular expression.
        """
        return subscribed_topics(pattern, self.list_topics(principal))

    def reassign(
        self, batch: Sequence[tuple[GivenPartition, tuple[int, ...] | None]], principal: str = ANONYMOUS
    ) -> dict[GivenPartition, CommandOutcome]:
        """Begin to reassign partitions to other replicas; None cancels a reassignment (KIP4-1).

        A topic is given by its name, its ID, or both (KIP516-8). The outcomes have the keys that were given.
        """
        found, refused = resolve([given for given, _ in batch], self._partition_of)

        def begin(instruction: tuple[TopicPartition, tuple[int, ...] | None]) -> None:
            each, replicas = instruction
            self._begin(principal, AclOperation.ALTER, each.topic)
            reassign(self.node, {each: replicas})

        instructions = [(found[given], replicas) for given, replicas in batch if given in found]
        done = carry_out(instructions, lambda instruction: instruction[0], begin)
        return {given: refused[given] if given in refused else done[found[given]] for given, _ in batch}

    def elect_preferred(
        self, batch: Sequence[TopicPartition] = (), principal: str = ANONYMOUS
    ) -> dict[TopicPartition, CommandOutcome]:
        """Begin an election of the first replicas as leaders; without a batch, for all partitions (KIP4-1).

        While an election runs, no other begins (KIP4-2).
        """

        def check(each: TopicPartition) -> None:
            self._begin(principal, AclOperation.ALTER, each.topic)
            self._elections.check_idle()
            self._elections.check(each)

        wanted = batch or self._elections.every_partition()
        outcomes = carry_out(wanted, lambda each: each, check)
        electing = [each for each, outcome in outcomes.items() if outcome.error is KafkaError.NONE]
        if electing:
            begun = outcome_of(partial(self._elections.start, electing))
            outcomes |= dict.fromkeys(electing, begun)
        return outcomes

    def create_namespace(self, namespace: str, principal: str = ANONYMOUS) -> CommandOutcome:
        """Create a namespace with all its tiers (KIP37-3)."""
        return self._one(principal, AclOperation.CREATE, namespace, zookeeper_namespaces.create_namespace)

    def list_namespaces(self, below: str = "", principal: str = ANONYMOUS) -> list[str]:
        """The namespaces below a namespace, sorted; empty: all except the default namespace.

        One that the principal may not describe is left out.

        Raises:
            CommandRefusedError: 17, it does not exist; 31, the principal may not describe it.
        """
        self._sweep.start()
        if below:
            self._check_namespace(principal, AclOperation.DESCRIBE, below)
        found = zookeeper_namespaces.list_namespaces(self.node, below)
        return [name for name in found if self._may_in(principal, AclOperation.DESCRIBE, name)]

    def delete_namespace(
        self, namespace: str, *, recursive: bool = False, principal: str = ANONYMOUS
    ) -> CommandOutcome:
        """Have a namespace deleted with its topics; ``recursive``: with the namespaces below it too (KIP37-3)."""
        delete = partial(zookeeper_namespaces.delete_namespace, recursive=recursive)
        return self._one(principal, AclOperation.DELETE, namespace, delete)

    def move_topic(self, topic: str, namespace: str, principal: str = ANONYMOUS) -> CommandOutcome:
        """Move a topic to another namespace; its ID and its data stay (KIP37-3)."""

        def move() -> None:
            self._begin(principal, AclOperation.ALTER, topic)
            self._check_namespace(principal, AclOperation.CREATE, namespace)
            move_topic(self.node, topic, namespace)

        return outcome_of(move)

    def move_namespace(self, namespace: str, target: str, principal: str = ANONYMOUS) -> CommandOutcome:
        """Move a namespace, with all that is in it, to another name; IDs and data stay (KIP37-3).

        It takes the right to alter each namespace and each topic that moves, and to create the new one.
        """

        def move() -> None:
            self.node.check_active()
            self._sweep.start()
            self._check_namespace(principal, AclOperation.ALTER, namespace)
            self._check_namespace(principal, AclOperation.CREATE, target)
            if self._authorizer is not None:
                tiers, topics = in_namespace(self.node, namespace)
                for tier in tiers:
                    self._check_namespace(principal, AclOperation.ALTER, tier)
                for topic in topics:
                    self._begin(principal, AclOperation.ALTER, topic)
            move_namespace(self.node, namespace, target)

        return outcome_of(move)

    def alter_namespace_configs(
        self, namespace: str, configs: Mapping[str, str], deleted: Sequence[str] = (), principal: str = ANONYMOUS
    ) -> CommandOutcome:
        """Set configs that the topics in a namespace inherit; empty: that all topics inherit (KIP37-5)."""
        alter = partial(alter_namespace_configs, configs=configs, deleted=deleted)
        return self._one(principal, AclOperation.ALTER_CONFIGS, namespace, alter)

    def alter_acls(
        self, scope: str, added: Sequence[Acl] = (), removed: Sequence[Acl] = (), principal: str = ANONYMOUS
    ) -> CommandOutcome:
        """Give ACLs to a topic, a namespace or the cluster, and take others away (KIP37-6).

        As in Kafka it takes the right to alter the cluster; or, in a namespace, to alter that.

        Args:
            scope: a topic's full name, a namespace with ``:`` at its end, or empty for the cluster.
            added: entries that will be there; one that is there already stays.
            removed: entries that will not be there; one that is not there is no error.
            principal: who asks.
        """

        def alter() -> None:
            self.node.check_active()
            self._check_namespace(principal, AclOperation.ALTER, namespace_of(scope))
            self.node.commit(changed_acls(self.node, scope, added, removed))

        return outcome_of(alter)

    def _name_of(self, topic: GivenTopic) -> str:
        self.node.check_active()
        return name_of(topic, lambda: known_topics(self.node))

    def _partition_of(self, given: GivenPartition) -> TopicPartition:
        topic, number = (given.topic, given.partition) if isinstance(given, TopicPartition) else given
        return TopicPartition(self._name_of(topic), number)

    def _one(
        self, principal: str, operation: AclOperation, namespace: str, do: Callable[[ControllerNode, str], None]
    ) -> CommandOutcome:
        def checked() -> None:
            self.node.check_active()
            self._sweep.start()
            self._check_namespace(principal, operation, namespace)
            do(self.node, namespace)

        return outcome_of(checked)

    def _begin(self, principal: str, operation: AclOperation, topic: str) -> None:
        self.node.check_active()
        if not self._may(principal, operation, topic):
            raise CommandRefusedError(
                KafkaError.TOPIC_AUTHORIZATION_FAILED, f"{principal} may not {operation.lower()} {topic}"
            )

    def _may(self, principal: str, operation: AclOperation, topic: str) -> bool:
        if self._authorizer is None:
            return True
        return self._authorizer().allows(principal, operation, topic)

    def _as_seen_by(self, principal: str, key: TopicKey, found: TopicDescription) -> TopicDescription:
        """Add the operations that a principal may carry out; without the right to describe, it learns nothing."""
        if found.topic and not self._may(principal, AclOperation.DESCRIBE, found.topic):
            why = f"{principal} may not describe {key.topic or f'the topic with the ID {key.topic_id}'}"
            refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
            return TopicDescription(key.topic, refused, None if key.topic else key.topic_id, message=why)
        if found.error is not KafkaError.NONE:
            return found
        may = [each for each in TOPIC_OPERATIONS if self._may(principal, each, found.topic)]
        return replace(found, authorized_operations=operation_bits(may))

    def _may_in(self, principal: str, operation: AclOperation, namespace: str) -> bool:
        return self._authorizer is None or self._authorizer().allows_in(principal, operation, namespace)

    def _check_namespace(self, principal: str, operation: AclOperation, namespace: str) -> None:
        if not self._may_in(principal, operation, namespace):
            raise CommandRefusedError(
                KafkaError.CLUSTER_AUTHORIZATION_FAILED,
                f"{principal} may not {operation.lower()} in {namespace or 'the cluster'}",
            )
