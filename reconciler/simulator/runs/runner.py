"""Plays a scenario on a cluster, line by line; the first unmet expectation ends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from layout.ids import TopicId
from layout.topic import NAMESPACE_SEPARATOR, TopicPartition
from logstore import KafkaError, LogStoreError
from logstore.fs.crash_disk import MachineDisks
from logstore.store import LogStore
from reconciler.errors import ReconcilerError, RefusedError
from reconciler.simulator.admin import warnings_of
from reconciler.simulator.checks import BrokenInvariantError, Invariants, check_converged, converge, let_delays_pass
from reconciler.simulator.cluster import AnsweredError, Cluster
from reconciler.simulator.kernel import (
    ANONYMOUS,
    METADATA_WITH_MODES,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    PartitionMode,
    ProduceRequest,
    ProduceResponse,
    Response,
    broker_endpoint,
)
from reconciler.simulator.runs.admin_verbs import AdminVerbs
from reconciler.simulator.runs.scenario import Scenario, ScenarioLine
from reconciler.sources.zookeeper import Acl, AclOperation

_HEARD_MS = 1_000
"""How long a command is given to reach the brokers."""


def play(scenario: Scenario, cluster: Cluster) -> None:
    """Play a scenario on a cluster that has not started yet.

    Raises:
        BrokenInvariantError: an expectation of the scenario, or an invariant, does not hold; names the line.
    """
    _Runner(cluster).through(scenario)


class _Runner:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.invariants = cluster, Invariants(cluster)
        self.ids: dict[str, list[TopicId]] = {}
        """Topic name → every ID that it has had, in order."""
        self._verbs: Mapping[str, Callable[..., object]] = {
            "create": self._create,
            "namespace create": self._namespace,
            "namespace delete": self._delete_namespace,
            "namespace move": self._move_namespace,
            "config": self._config,
            "allow": lambda *acl, **who: self._acl(*acl, allow=True, **who),
            "deny": lambda *acl, **who: self._acl(*acl, allow=False, **who),
            "produce": cluster.produce,
            "stop": cluster.stop_broker,
            "start": cluster.start_broker,
            "crash": cluster.crash_broker,
            "upgrade": cluster.upgrade_broker,
            "partitions": self._partitions,
            "disk-fails": lambda node_id, number: self._disks(node_id).fail(number, Random(node_id)),
            "disk-back": lambda node_id, number: self._disks(node_id).come_back(number),
            "disk-replaced": self._replace_disk,
            "fail-over": self._fail_over,
            "wait": lambda milliseconds: cluster.run(for_ms=milliseconds),
            "rest": self._rest,
            "expect live": self._expect_live,
            "expect staged": self._expect_staged,
            "expect absent": self._expect_absent,
            "expect nothing-staged": self._expect_nothing_staged,
            "expect records": self._expect_records,
            "expect leader": self._expect_leader,
            "expect no-leader": lambda partition: self._expect_leader(partition, -1),
            "expect offsets": self._expect_offsets,
            "expect topics": self._expect_topics,
            "expect mode": self._expect_mode,
            "expect refused": self._expect_refused,
            **AdminVerbs(cluster, self._topic_id).verbs,
        }

    def through(self, scenario: Scenario) -> None:
        self.cluster.start()
        for line in scenario.lines:
            self.cluster.world.history.say("scenario", line.text)
            try:
                self._play(line)
                self.invariants.look(everywhere=True)
            except (ReconcilerError, LogStoreError) as error:
                raise BrokenInvariantError(_message(scenario, line, error)) from error

    def _play(self, line: ScenarioLine) -> None:
        who = {} if line.principal is None else {"principal": line.principal}
        try:
            if line.verb == "produce" and line.refused is not None:
                self._send(str(line.values[0]), **who)
            else:
                self._verbs[line.verb](*line.values, **who)
        except AnsweredError as answered:
            if line.refused is None and line.verb == "describe":
                # The history has the error: to ask for a topic that is gone is no failure.
                return
            if answered.error.value != line.refused:
                raise
            return
        if line.refused is not None:
            raise BrokenInvariantError(f"it was done, and error {line.refused} was expected")

    def _namespace(self, namespace: str, principal: str = ANONYMOUS) -> None:
        self.cluster.command(lambda admin: admin.create_namespace(namespace, principal))

    def _delete_namespace(self, namespace: str, principal: str = ANONYMOUS) -> None:
        self.cluster.command(lambda admin: admin.delete_namespace(namespace, recursive=True, principal=principal))
        self.cluster.run(for_ms=_HEARD_MS)

    def _move_namespace(self, namespace: str, target: str, principal: str = ANONYMOUS) -> None:
        """Move it, and go on at once: brokers rename what they have while the next lines are played."""
        self.cluster.command(lambda admin: admin.move_namespace(namespace, target, principal))
        inside = f"{namespace}{NAMESPACE_SEPARATOR}"
        for topic in [each for each in self.ids if each.startswith(inside)]:
            self.ids.setdefault(target + topic[len(namespace) :], []).extend(self.ids.pop(topic))

    def _config(
        self, name: str, configs: Mapping[str, str], deleted: Sequence[str], principal: str = ANONYMOUS
    ) -> None:
        """As ``kafka-configs --alter``, for a namespace, or ``*``, the cluster's default (KIP37-5)."""
        scope = "" if name == "*" else name
        self.cluster.command(lambda admin: admin.alter_namespace_configs(scope, configs, deleted, principal))
        self.cluster.run(for_ms=_HEARD_MS)

    def _send(self, topic: str, principal: str = ANONYMOUS) -> None:
        """Send one record once, where ``produce`` sends it until it is taken. Raises AnsweredError."""
        producer, _ = self.cluster.clients(principal)
        producer.unauthorized.discard(topic)
        value = producer.send(topic)
        while value is None and topic not in producer.unauthorized:
            self.cluster.run(for_ms=_HEARD_MS)
            value = producer.send(topic)
        self.cluster.run_until(f"{value} is answered", lambda: producer.unsure.get(value or "") != "on its way")
        if topic in producer.unauthorized:
            why = f"{principal} may not write to {topic}"
            raise AnsweredError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "the broker", why)
        error = producer.unsure.get(value or "", KafkaError.NONE.name)
        if error != KafkaError.NONE.name:
            raise AnsweredError(KafkaError[error], "the leader", f"{value} for {topic} is not taken")

    def _acl(self, whom: str, operation: AclOperation, scope: str, *, allow: bool, principal: str = ANONYMOUS) -> None:
        acl = Acl(whom, operation, allow)
        self.cluster.command(lambda admin: admin.alter_acls(scope, [acl], principal=principal))

    def _create(self, topic: str, partitions: int, factor: int, assignment: Any, principal: str = ANONYMOUS) -> None:
        made = self.cluster.create_topic(
            topic, partitions or 1, factor or 1, assignment=assignment, principal=principal
        )
        self.ids.setdefault(topic, []).append(made)

    def _partitions(self, topic: str, total: int, delay_ms: int, principal: str = ANONYMOUS) -> None:
        """As ``--alter --partitions N --delete-partitions-delay TIME`` (KIP694-5)."""
        active = self.cluster.active
        if active is None:
            raise RefusedError("there is no controller to ask")
        if 0 < total < sum(each.topic == topic for each in self.cluster.oracle.wanted()):
            self._fewer(topic, total, delay_ms, principal)
            return
        found = active.admin.set_partitions(topic, total, delay_ms, principal)
        for warning in found.warnings:
            self.cluster.world.history.say("admin", warning)
        if found.outcome.error is not KafkaError.NONE:
            raise AnsweredError(found.outcome.error, "the controller", found.outcome.message)

    def _fewer(self, topic: str, total: int, delay_ms: int, principal: str) -> None:
        """Send the message that the command sends for a smaller number (KIP694-2)."""
        answer = self.cluster.delete_partitions(topic, total, delay_ms, principal=principal)
        for found in answer.topics:
            for each in found.partitions:
                for warning in warnings_of(KafkaError(each.error)):
                    self.cluster.world.history.say("admin", warning)
                if each.error:
                    raise AnsweredError(KafkaError(each.error), "the controller", each.message or "")
                status = PartitionMode(each.status).name
                self.cluster.world.history.say("admin", f"{found.topic}-{each.partition} is {status}")
        if answer.error:
            raise AnsweredError(KafkaError(answer.error), "the controller", answer.message or "")

    def _fail_over(self) -> None:
        active = self.cluster.active
        session = None if active is None else active.broker.session
        if active is None or session is None:
            raise RefusedError("there is no controller that could fail")
        before = active.controller.epoch
        session.expire()
        self.cluster.run_until(
            "another controller",
            lambda: self.cluster.active is not None and self.cluster.active.controller.epoch > before,
        )

    def _rest(self) -> None:
        converge(self.cluster, self.invariants)
        check_converged(self.cluster)
        let_delays_pass(self.cluster, self.invariants)

    def _expect_live(self, node_id: int, partition: TopicPartition, which: int) -> None:
        found = self._store(node_id).find(partition)
        wanted = self._topic_id(partition.topic, which)
        if found is None or found.topic_id != wanted:
            has = "nothing" if found is None else f"topic ID {found.topic_id}"
            raise BrokenInvariantError(f"broker {node_id} has {has} live for {partition}, and {wanted} was expected")

    def _expect_staged(self, node_id: int, partition: TopicPartition, which: int) -> None:
        wanted = self._topic_id(partition.topic, which)
        staged = self._store(node_id).staged()
        if not any(each.topic_id == wanted and each.partition == partition for each in staged):
            lies = ", ".join(each.location for each in staged) or "nothing"
            raise BrokenInvariantError(f"broker {node_id} has {lies} staged, and {partition} of {wanted} was expected")

    def _expect_absent(self, node_id: int, partition: TopicPartition) -> None:
        found = self._store(node_id).find(partition)
        if found is not None:
            raise BrokenInvariantError(f"broker {node_id} has {partition} live in {found.path}, and it should not")

    def _expect_nothing_staged(self, node_id: int) -> None:
        staged = self._store(node_id).staged()
        if staged:
            raise BrokenInvariantError(
                f"broker {node_id} still has {', '.join(each.location for each in staged)} staged"
            )

    def _expect_topics(self, names: tuple[str, ...], principal: str = ANONYMOUS) -> None:
        active = self.cluster.active
        if active is None:
            raise RefusedError("there is no controller to ask")
        found = active.admin.list_topics(principal)
        if found != sorted(names):
            raise BrokenInvariantError(
                f"{principal} sees {', '.join(found) or 'no topic'}, and {', '.join(names) or 'none'} was expected"
            )

    def _expect_records(self, topic: str, count: int, principal: str = ANONYMOUS) -> None:
        seen = self.cluster.consume(topic, principal=principal)
        if len(seen) != count:
            raise BrokenInvariantError(f"{len(seen)} records can be read from {topic}, and {count} were expected")

    def _expect_leader(self, partition: TopicPartition, node_id: int) -> None:
        replicas = self.cluster.oracle.wanted().get(partition, ())
        if not replicas or replicas[0].leader != node_id:
            leads = replicas[0].leader if replicas else "nobody"
            raise BrokenInvariantError(f"{leads} leads {partition}, and {node_id} was expected")

    def _expect_mode(self, partition: TopicPartition, mode: PartitionMode) -> None:
        """Ask each broker that is up, in a version of Metadata with modes and in one without (KIP694-1)."""
        for node_id, member in self.cluster.members.items():
            if not member.running:
                continue
            found, older = (
                _partition_in(
                    member.broker.metadata.answer(MetadataRequest((partition.topic,), version=version)), partition
                )
                for version in (METADATA_WITH_MODES, METADATA_WITH_MODES - 1)
            )
            if found is None or found.mode is not mode:
                said = "does not know it" if found is None else f"says {found.mode.name}"
                raise BrokenInvariantError(f"{mode.name} was expected of {partition}, and broker {node_id} {said}")
            without = KafkaError.NONE if mode is PartitionMode.READ_WRITE else KafkaError.LEADER_NOT_AVAILABLE
            if older is None or older.error is not without:
                said = "does not know it" if older is None else f"answers {older.error.name}"
                raise BrokenInvariantError(
                    f"broker {node_id} {said} to a client without modes, {without.name} was expected"
                )

    def _expect_refused(self, partition: TopicPartition) -> None:
        """Send a record to the leader of a partition, as a producer does that does not know its mode (KIP694-1)."""
        replicas = self.cluster.oracle.wanted().get(partition, ())
        if not replicas or replicas[0].leader < 0:
            raise RefusedError(f"nobody leads {partition}, so nobody could refuse a record")
        request = ProduceRequest(partition, replicas[0].topic_id, "a record that should be refused")
        answers: list[Response | None] = []
        leader = broker_endpoint(replicas[0].leader)
        self.cluster.world.network.call("client-3", leader, request, answers.append)
        self.cluster.run_until(f"an answer of {leader}", lambda: bool(answers))
        error = answers[0].error if isinstance(answers[0], ProduceResponse) else None
        if error is not KafkaError.LEADER_NOT_AVAILABLE:
            said = "nothing" if error is None else error.name
            raise BrokenInvariantError(f"{leader} answers {said} to a record for {partition}, and should refuse it")

    def _expect_offsets(self, node_id: int, partition: TopicPartition, start: int, end: int) -> None:
        self._store(node_id)
        hosted = self.cluster.members[node_id].broker.replicas.get(partition)
        found = "no log" if hosted is None else f"offsets {hosted.log.start} to {hosted.log.end}"
        if found != f"offsets {start} to {end}":
            wanted = f"offsets {start} to {end}"
            raise BrokenInvariantError(f"broker {node_id} has {found} of {partition}, and {wanted} were expected")

    def _replace_disk(self, node_id: int, number: int) -> None:
        member = self.cluster.members[node_id]
        if member.running and number in member.disks.online:
            raise RefusedError(f"broker {node_id} has log dir {number} open: stop it first, or let the disk fail")
        member.disks.replace(number)

    def _disks(self, node_id: int) -> MachineDisks:
        return self.cluster.members[node_id].disks

    def _store(self, node_id: int) -> LogStore:
        member = self.cluster.members[node_id]
        if not member.running:
            raise RefusedError(f"broker {node_id} is off, so nothing is live or staged there: start it first")
        return member.broker.store

    def _topic_id(self, topic: str, which: int) -> TopicId:
        known = self.ids.get(topic, [])
        if not 1 <= which <= len(known):
            raise BrokenInvariantError(
                f"there were {len(known)} topics called {topic} so far, and number {which} is meant"
            )
        return known[which - 1]


def _partition_in(answer: MetadataResponse, partition: TopicPartition) -> PartitionMetadata | None:
    every = {(topic.topic, each.partition): each for topic in answer.topics for each in topic.partitions}
    return every.get((partition.topic, partition.partition))


def _message(scenario: Scenario, line: ScenarioLine, error: Exception) -> str:
    return f"{scenario.name}, line {line.number}, {line.text!r}: {error}"
