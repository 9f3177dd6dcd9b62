"""A cluster in one process, to start, break and inspect.

::

    with Cluster(seed=7) as cluster:
        first = cluster.create_topic("orders", factor=3)
        cluster.produce("orders", 5)
        cluster.stop_broker(2)
        cluster.delete_topic("orders")
        second = cluster.create_topic("orders", assignment={0: [1, 2, 3]})
        cluster.start_broker(2)
        cluster.run(for_ms=10_000)
        print([staged.location for staged in cluster.members[2].broker.store.staged()])

Events happen only in :meth:`Cluster.run` and :meth:`Cluster.run_until`, and in the methods that wait by calling them.
Source: KIP516-5, KIP516-6, KIP516-10, CREATE-4.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Self

from layout.ids import TopicId
from logstore import KafkaError, check_argument
from logstore.fs.crash_disk import memory_folder
from reconciler.errors import ReconcilerError, RefusedError, UsageError
from reconciler.protocol import DeletePartitionsRequest, DeletePartitionsResponse, DeletePartitionsTopic
from reconciler.simulator.admin import (
    NOT_GIVEN,
    Admin,
    CommandOutcome,
    CreateTopic,
    GivenTopic,
    TopicDescription,
    is_created,
    with_lags,
)
from reconciler.simulator.cluster.member import ClusterSettings, Member
from reconciler.simulator.cluster.oracle import Oracle
from reconciler.simulator.kernel import ANONYMOUS, MetadataRequest, OfClient, Record, Response, World
from reconciler.simulator.machine import AcknowledgedRecord, BelievedPartition, ClientMetadata, Consumer, Producer
from reconciler.simulator.zookeeper import CLUSTER_ID, CONTROLLER, ZooKeeper, make_base
from reconciler.sources.zookeeper import decode_controller, encode_cluster_id
from reconciler.text import listed

PATIENCE_MS = 120_000
"""The longest wait for a condition, in simulated time."""


class AnsweredError(RefusedError):
    """The cluster answered with an error; nothing was changed. ``error`` is Kafka's number for it."""

    def __init__(self, error: KafkaError, who: str, why: str) -> None:
        """Keep the number beside the sentence: who answered, and why."""
        super().__init__(f"{who} answers {error.name}: {why}")
        self.error = error


class NotInTimeError(ReconcilerError):
    """A condition did not become true in time; the message has the end of the history."""


class Cluster:
    """Brokers, a ZooKeeper, a producer and a consumer; everything from one seed.

    Attributes:
        oracle: what the cluster should hold, by its znodes.
        happened: called after every event of :meth:`run` and :meth:`run_until`.
    """

    def __init__(self, settings: ClusterSettings | None = None, *, seed: int = 0, folder: str | None = None) -> None:
        """Make a cluster whose machines are off; use it in a ``with`` block, or call :meth:`start` and :meth:`close`.

        Args:
            settings: None: three brokers with two log dirs each, and no faults.
            seed: determines the whole history.
            folder: an empty one for the disks, which stay there; None: a temporary one.
        """
        self.settings = ClusterSettings() if settings is None else settings
        check_argument("settings", self.settings, ClusterSettings, UsageError)
        check_argument("seed", seed, int, UsageError)
        self._opened = ExitStack()
        self.folder = folder if folder is not None else self._opened.enter_context(memory_folder())
        self.world = World(seed, self.settings.rates, fault_interval_ms=self.settings.fault_interval_ms)
        self.world.history.folder = self.folder
        self.zookeeper = ZooKeeper(self.world.timers("zookeeper"))
        self._session = self.zookeeper.session("observer")
        make_base(self._session)
        self._session.create(CLUSTER_ID, encode_cluster_id(self.settings.broker.cluster_id), parents=True)
        self.oracle = Oracle(self.zookeeper)
        self.happened: Callable[[], None] = lambda: None
        admin_random = self.world.randomness("admin")
        self.members = {
            node_id: Member(
                node_id,
                os.path.join(self.folder, f"broker-{node_id}"),
                world=self.world,
                zookeeper=self.zookeeper,
                settings=self.settings,
                random=admin_random,
            )
            for node_id in range(1, self.settings.brokers + 1)
        }
        self.producer = Producer("client-1", self._metadata("client-1"), self.world.network, self.world.random)
        self.consumer = Consumer("client-2", self._metadata("client-2"), self.world.network)
        self._clients = {ANONYMOUS: (self.producer, self.consumer)}

    def start(self) -> None:
        """Switch all machines on, and wait until there is a controller and every broker is registered."""
        for member in self.members.values():
            member.start()
        brokers = set(self.members)
        self.run_until(
            "all brokers are registered", lambda: self.oracle.brokers() == brokers and self.active is not None
        )

    @property
    def active(self) -> Member | None:
        """The machine of the active controller, by ``/controller``; None: there is none, or it is not active yet."""
        node = self._session.find(CONTROLLER)
        node_id = None if node is None else decode_controller(node.data)
        member = None if node_id is None else self.members.get(node_id)
        return member if member is not None and member.running and member.controller.active else None

    def run(self, steps: int | None = None, *, for_ms: int | None = None) -> int:
        """Let events happen, up to a number or for a true time, and return how many happened.

        Raises:
            UsageError: a number or a time is none, or negative.
        """
        _check_counts(steps=steps, for_ms=for_ms)
        done, end_ms = 0, None if for_ms is None else self.world.now_ms + for_ms
        while steps is None or done < steps:
            if not self.world.run(1, for_ms=None if end_ms is None else end_ms - self.world.now_ms):
                break
            done += 1
            self.happened()
        return done

    def run_until(self, what: str, is_so: Callable[[], bool], within_ms: int = PATIENCE_MS) -> None:
        """Let events happen until a condition is true.

        Raises:
            NotInTimeError: it was not true within that time.
        """
        end_ms = self.world.now_ms + within_ms
        while not is_so():
            if self.world.now_ms >= end_ms or not self.world.step():
                last = "\n".join(self.world.history.lines[-20:])
                waited = f"waited {within_ms / 1000:g} s of simulated time"
                raise NotInTimeError(f"{waited}, and not: {what}; at the end:\n{last}")
            self.happened()

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        factor: int = 1,
        *,
        assignment: Mapping[int, Sequence[int]] | None = None,
        principal: str = ANONYMOUS,
    ) -> TopicId:
        """Create a topic, by counts or by an assignment, and wait until all its partitions have leaders (CREATE-4).

        Raises:
            AnsweredError: the controller refuses.
            NotInTimeError: there is no controller, or a partition gets no leader.
        """
        wanted = CreateTopic(topic, partitions, factor)
        if assignment is not None:
            wanted, partitions = CreateTopic(topic, NOT_GIVEN, NOT_GIVEN, assignment), len(assignment)
        self._ask(lambda member: member.admin.create_topics([wanted], principal)[topic])

        def is_there() -> bool:
            # The metadata is looked at itself: who may create a topic need not have the right to describe it.
            known = None if self.active is None else self.active.broker.metadata.answer(MetadataRequest((topic,)))
            found = [] if known is None else known.topics
            return bool(found) and is_created(found[0], partitions)

        self.run_until(f"{topic} has leaders", is_there)
        made = self.oracle.topic_id(topic)
        assert made is not None, "a topic that was created has an ID"
        return made

    def delete_topic(self, topic: str, *, principal: str = ANONYMOUS) -> None:
        """Delete a topic, and wait until its name is free; its brokers delete its data later (KIP516-10).

        Raises:
            AnsweredError: the controller refuses.
            NotInTimeError: there is no controller.
        """
        self._ask(lambda member: member.admin.delete_topics([topic], principal)[topic])
        self.run_until(f"{topic} is gone", lambda: not self.oracle.is_there(topic))

    def describe_topics(
        self, topics: Sequence[GivenTopic] = (), *, principal: str = ANONYMOUS
    ) -> list[TopicDescription]:
        """Describe topics as the controller's broker does, with the lags that the leaders know; empty: all topics.

        Raises:
            NotInTimeError: there is no controller.
        """

        def described_by(node_id: int, topic: str) -> TopicDescription | None:
            member = self.members[node_id]
            return member.admin.describe_topics([topic], principal)[0] if member.running else None

        found = self._controllers_member().admin.describe_topics(topics, principal)
        return [with_lags(each, described_by) for each in found]

    def command(self, ask: Callable[[Admin], CommandOutcome]) -> None:
        """Give a command to the active controller's broker, as soon as there is one.

        Raises:
            AnsweredError: the controller refuses.
            NotInTimeError: there is no controller.
        """
        self._ask(lambda member: ask(member.admin))

    def clients(self, principal: str) -> tuple[Producer, Consumer]:
        """Give the producer and the consumer of a principal, made when they are first asked for.

        What they write and read is reported to :attr:`producer` and :attr:`consumer` too, which hold the record of all.
        """
        if principal not in self._clients:
            first = 2 * len(self._clients) + 1
            producer, consumer = (f"client-{number}" for number in (first, first + 1))
            random = self.world.randomness(producer)
            made = Producer(producer, self._metadata(producer, principal), self.world.network, random)
            reader = Consumer(consumer, self._metadata(consumer, principal), self.world.network)
            made.on_acknowledged, reader.on_record = self._was_written, self._was_read
            self._clients[principal] = made, reader
        return self._clients[principal]

    def _was_written(self, record: AcknowledgedRecord) -> None:
        self.producer.acknowledged.append(record)
        self.producer.on_acknowledged(record)

    def _was_read(self, believed: BelievedPartition, record: Record) -> None:
        self.consumer.on_record(believed, record)

    def delete_partitions(
        self, topic: str, total: int, delay_ms: int = 0, timeout_ms: int = 5_000, *, principal: str = ANONYMOUS
    ) -> DeletePartitionsResponse:
        """Send the controller a request for fewer partitions, and return its answer (KIP694-2).

        Raises:
            RefusedError: the connection was lost.
            NotInTimeError: there is no controller.
        """
        request = DeletePartitionsRequest((DeletePartitionsTopic(topic, total, delay_ms),), timeout_ms)
        member = self._controllers_member()
        answers: list[Response | None] = []
        self.world.network.call("client-1", member.name, OfClient(principal, request), answers.append)
        self.run_until(f"{member.name} answers", lambda: bool(answers))
        if not isinstance(answers[0], DeletePartitionsResponse):
            raise RefusedError(f"{member.name} gives no answer")
        return answers[0]

    def produce(self, topic: str, count: int = 1, *, principal: str = ANONYMOUS) -> list[str]:
        """Write records in turn, wait until each is acknowledged, and return their values.

        Raises:
            UsageError: the number of records is none, or negative.
            AnsweredError: the principal may not write to the topic.
            NotInTimeError: a record is not acknowledged.
        """
        _check_counts(count=count)
        producer, _ = self.clients(principal)
        producer.unauthorized.discard(topic)
        values = []
        for _ in range(count):
            before = len(producer.acknowledged)

            def is_answered(before: int = before) -> bool:
                if len(producer.acknowledged) > before or topic in producer.unauthorized:
                    return True
                if "on its way" not in producer.unsure.values():
                    producer.send(topic)
                return False

            self.run_until(f"{topic} takes a record", is_answered)
            _check_authorized(producer.unauthorized, topic, f"{principal} may not write to {topic}")
            values.append(producer.acknowledged[-1].value)
        return values

    def consume(self, topic: str, for_ms: int = 10_000, *, principal: str = ANONYMOUS) -> list[str]:
        """Read a topic from its beginning for a simulated time, and return all values that were seen until now.

        Raises:
            AnsweredError: the principal may not read the topic.
        """
        _, consumer = self.clients(principal)
        consumer.unauthorized.discard(topic)
        end_ms = self.world.now_ms + for_ms
        while self.world.now_ms < end_ms:
            consumer.poll([topic])
            self.run(for_ms=500)
        _check_authorized(consumer.unauthorized, topic, f"{principal} may not read {topic}")
        topic_id = self.oracle.topic_id(topic)
        return [
            record.value
            for (at, believed), records in consumer.seen.items()
            if at.topic == topic and believed == topic_id
            for record in records
        ]

    def start_broker(self, node_id: int) -> None:
        """Switch a machine on, and wait until its broker is registered.

        Raises:
            UsageError: there is no such broker; here, and in the two methods below.
            NotInTimeError: the broker does not start; the history says why.
        """
        member = self._member(node_id)
        member.start()
        # Its node may still be there from before a crash; only its own registration gives it an epoch.
        self.run_until(
            f"broker {node_id} is registered", lambda: member.running and member.broker.broker.broker_epoch >= 0
        )

    def upgrade_broker(self, node_id: int) -> None:
        """Stop a broker of an older release, and start it as one of this, which knows namespaces (KIP-37).

        Raises:
            NotInTimeError: as :meth:`start_broker`.
        """
        self._member(node_id).upgrade()
        self.start_broker(node_id)

    def stop_broker(self, node_id: int) -> None:
        """Stop a broker in order."""
        self._member(node_id).shut_down()

    def crash_broker(self, node_id: int) -> None:
        """Cut a machine's power; changes that were not synced may be lost."""
        self.world.crash(self._member(node_id).name)

    def close(self) -> None:
        """Stop all brokers, close the disks, and remove the folder if it is a temporary one."""
        for member in self.members.values():
            if member.running:
                member.shut_down()
            member.disks.close()
        self._opened.close()

    def _member(self, node_id: int) -> Member:
        if not isinstance(node_id, int) or node_id not in self.members:
            known = listed([str(each) for each in self.members])
            raise UsageError(f"there is no broker {node_id!r:.40} in this cluster: {known} are in it")
        return self.members[node_id]

    def _ask(self, command: Callable[[Member], CommandOutcome]) -> None:
        """Give a command to the active controller, as soon as there is one."""
        outcome = command(self._controllers_member())
        if outcome.error is not KafkaError.NONE:
            raise AnsweredError(outcome.error, "the controller", outcome.message)

    def _controllers_member(self) -> Member:
        """The machine of the active controller, as soon as there is one."""
        self.run_until("there is a controller", lambda: self.active is not None)
        member = self.active
        assert member is not None, "it was waited for"
        return member

    def _metadata(self, endpoint: str, principal: str = ANONYMOUS) -> ClientMetadata:
        """Make a client's metadata; where an authorizer is asked, the client asks by name, to learn of a refusal."""
        brokers, timers = sorted(self.members), self.world.timers(endpoint)
        by_name = self.settings.broker.authorizer is not None
        return ClientMetadata(endpoint, brokers, self.world.network, timers, principal=principal, by_name=by_name)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_authorized(unauthorized: set[str], topic: str, why: str) -> None:
    if topic in unauthorized:
        raise AnsweredError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "the broker", why)


def _check_counts(**counts: int | None) -> None:
    for name, number in counts.items():
        check_argument(name, 0 if number is None else number, int, UsageError)
        if number is not None and number < 0:
            raise UsageError(f"{name} = {number:,}, where 0 or more is expected")
