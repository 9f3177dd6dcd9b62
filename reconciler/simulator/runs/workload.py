"""The actions of administrators and clients in a history, drawn from the seed, a few every simulated second.

There are few topics and their names are used again, so that a topic is often re-created while a broker is down: the
case that topic IDs are for. Commands go to the controller of that moment, and are lost if there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TypeAlias

from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import DeletePartitionsRequest, DeletePartitionsResponse, DeletePartitionsTopic
from reconciler.simulator.admin import NOT_GIVEN, Admin, AlterTopic, CommandOutcome, CreateTopic
from reconciler.simulator.cluster import Cluster, Member
from reconciler.simulator.kernel import Response, broker_endpoint
from reconciler.simulator.runs.operator import Operator
from reconciler.simulator.runs.swarm import NOTHING, LeftOut, Swarm

NAMES = ("orders", "clicks", "payments", "audit.log", "__consumer_offsets", "org:orders", "net:orders")
"""The topics of a history."""

NAMESPACES = ("org", "org", "org:orders-1", "clicks-1")
"""The namespaces of a history; some are called like a partition's directory (KIP37-2)."""

_TENANTS = ("org", "net")
"""Namespaces of topics that are there from the beginning, where the history has namespaces."""

_MOVED = ("org", "net", "net:org")
"""The namespaces that are moved, each to another of these names."""

_UNCLEAN = "audit.log"
"""The topic that may lose records by unclean elections."""

_CONFIGS = (
    ("file.delete.delay.ms", ("30000", "2m")),
    ("delete.stale.topic.delay.ms", ("200000", "7m")),
    ("min.insync.replicas", ("1", "2")),
    ("retention.ms", ("20000", "600000", "-1")),
)
"""Configs of topics, namespaces and the cluster, with the values that they get."""

_FIRST = 3
"""How many topics are created at the beginning."""

_AWAY, _AWAY_MS, _AGAIN_MS = 0.4, (200, 2_500), (20, 300, 1_500)
"""How likely a broker is away during a command, for how long, and when a deleted topic is created again."""

_AILING = 0.7
"""How likely a broker is restarted while a disk is away, where one is and somebody starts or stops a broker."""

_MAKES_STALE = ("delete", "shrink", "reassign")
_PLANNED_MS = (100, 600)
"""Commands after which an operator makes a plan for a broker that was away, and how soon."""

_KNOWN = 0.85
"""How likely a command is about a topic that is there."""

_MOST_PARTITIONS, _WIDE = 4, 0.3
"""Partitions of a topic, and how likely it gets more of them where the history has such topics."""

_BURST = (2, 6)
"""How many actions come at once."""

_WRITES_MS, _AT_ONCE = (1, 5, 20, 50, 200, 1_000), 2
"""When a topic that gets fewer partitions is written to, after the command, and how many records each time."""


_Action: TypeAlias = Callable[[Admin, Random], tuple[str, CommandOutcome] | None]
"""Gives a command, and returns what was commanded and what became of it; None: there was nothing to command."""


class Workload:
    """Acts again and again; each action and the pause after it depend on the seed alone."""

    def __init__(self, cluster: Cluster, left_out: LeftOut = NOTHING) -> None:
        """Do nothing until :meth:`begin`; what is left out is drawn, and not done."""
        self._cluster, self._random = cluster, cluster.world.randomness("workload")
        self._goes_on, self._swarm, self._left_out = False, Swarm.of(cluster.world.seed), left_out
        self._operator = Operator(cluster, self._swarm.features, left_out.features)
        self.actions = 0
        """How many were drawn so far."""
        actions: list[tuple[int, str, _Action]] = [
            (4, "create", self._create),
            (3, "delete", self._delete),
            (2, "grow", self._grow),
            (2, "shrink", self._shrink),
            (3, "reassign", self._reassign),
            (1, "prefer", self._prefer),
            (2, "namespace", self._namespace),
            (2, "move_namespace", self._move_namespace),
            (2, "configure", self._configure),
        ]
        self._actions = [each for each in actions if each[1] == "create" or each[1] in self._swarm.features]

    def begin(self) -> None:
        """Act from here on, until :meth:`end`."""
        self._goes_on = True
        self._again()
        holds_tiers = self._cluster.settings.broker.scheme is not Scheme.FLAT
        for namespace in _TENANTS if holds_tiers and "namespace" in self._swarm.features else ():
            if (random := self._next()) is not None and self._does("namespace"):
                self._say(partial(self._tenant, namespace), random)
        for _ in range(_FIRST):
            if (random := self._next()) is not None:
                self._say(self._create, random)

    def end(self) -> None:
        """Stop acting."""
        self._goes_on = False
        self._operator.end()

    def _again(self) -> None:
        pause_ms = self._random.randint(1, self._swarm.longest_pause_ms)
        self._cluster.world.add(pause_ms, "", "workload", self._act)

    def _act(self) -> None:
        if not self._goes_on:
            return
        self._again()
        burst = self._random.random() < self._swarm.burst
        for _ in range(self._random.randint(*_BURST) if burst else 1):
            if (random := self._next()) is not None:
                self._act_once(random)

    def _next(self) -> Random | None:
        """Give the generator of the next action; None: it is left out.

        Each has its own, so that the others stay as they are where one is left out.
        """
        number, self.actions = self.actions, self.actions + 1
        return None if number in self._left_out.actions else self._cluster.world.randomness(f"action {number}")

    def _does(self, feature: str) -> bool:
        return feature in self._swarm.features and feature not in self._left_out.features

    def _act_once(self, random: Random) -> None:
        chance = random.random()
        if chance < 0.30:
            for _ in range(random.randint(1, 4)):
                self._cluster.producer.send(random.choice(NAMES))
        elif chance < 0.40:
            self._cluster.consumer.poll(NAMES)
        elif chance < 0.46:
            if self._does("stop"):
                self._stop_or_start(random)
        elif chance < 0.62:
            self._operator.act(random)
        else:
            self._command(random)

    def _command(self, random: Random) -> None:
        weights = [weight for weight, _, _ in self._actions]
        ((_, name, action),) = random.choices(self._actions, weights)
        if name in self._left_out.features:
            return
        if self._does("away") and random.random() < _AWAY:
            gone = self._go_away(random)
            if gone is not None and name in _MAKES_STALE:
                plan = partial(self._operator.plan, gone, random)
                self._cluster.world.add(random.randint(*_PLANNED_MS), "", "operator", plan)
        self._say(action, random)

    def _say(self, action: _Action, random: Random) -> None:
        """Give a command to the active controller, if there is one; the history says what became of it."""
        active, journal = self._cluster.active, self._cluster.world.history
        said = None if active is None else action(active.admin, random)
        if said is not None:
            text, outcome = said
            journal.reach(f"command {text.partition(' ')[0]}")
            if outcome.error is not KafkaError.NONE:
                journal.reach(f"answer command {outcome.error.name}")
            became = "" if outcome.error is KafkaError.NONE else f": {outcome.error.name}"
            journal.say("admin", text + became)

    def _write(self, topic: str) -> None:
        if self._goes_on:
            for _ in range(_AT_ONCE):
                self._cluster.producer.send(topic)

    def _go_away(self, random: Random) -> Member | None:
        """Stop a broker, in order or not, for so long that it misses what is done next; None: too few are left."""
        running = [each for each in self._cluster.members.values() if each.running]
        if len(running) <= 2:
            return None
        member = random.choice(running)
        if random.random() < 0.5:
            member.shut_down()
        else:
            self._cluster.world.crash(member.name)
        self._cluster.world.add(random.randint(*_AWAY_MS), "", "workload", partial(self._come_back, member))
        return member

    def _come_back(self, member: Member) -> None:
        if self._goes_on:
            member.start()

    def _stop_or_start(self, random: Random) -> None:
        members = list(self._cluster.members.values())
        ailing = [each for each in members if each.running and each.broker.store.offline]
        member = random.choice(members)
        if ailing and random.random() < _AILING:
            member = random.choice(ailing)
            member.shut_down()
            member.start()
        elif not member.running:
            member.start()
        elif sum(each.running for each in self._cluster.members.values()) > 1:
            member.shut_down()

    def _topic(self, random: Random) -> str:
        """Draw a name, most often of a topic that is there."""
        known = sorted(self._cluster.oracle.topics())
        return random.choice(known if known and random.random() < _KNOWN else NAMES)

    def _create(self, admin: Admin, random: Random, topic: str | None = None) -> tuple[str, CommandOutcome]:
        topic, most = topic or random.choice(NAMES), len(self._cluster.members)
        wanted = CreateTopic(topic, random.randint(1, _MOST_PARTITIONS), random.randint(1, min(3, most)))
        if self._swarm.wide and random.random() < _WIDE:
            wanted = CreateTopic(topic, random.randint(_MOST_PARTITIONS, self._swarm.wide), 1)
        text = f"creates {topic} with {wanted.partitions} partitions of {wanted.factor} replicas"
        return text, admin.create_topics([wanted])[topic]

    def _delete(self, admin: Admin, random: Random) -> tuple[str, CommandOutcome]:
        topic = self._topic(random)
        outcome = admin.delete_topics([topic])[topic]
        if outcome.error is KafkaError.NONE and random.random() < 0.5:
            for pause_ms in _AGAIN_MS:
                self._cluster.world.add(pause_ms, "", "workload", partial(self._create_again, topic, random))
        return f"deletes {topic}", outcome

    def _create_again(self, topic: str, random: Random) -> None:
        if self._goes_on and topic not in self._cluster.oracle.topics():
            self._say(partial(self._create, topic=topic), random)

    def _grow(self, admin: Admin, random: Random) -> tuple[str, CommandOutcome]:
        topic, partitions = self._topic(random), random.randint(2, _MOST_PARTITIONS + 2)
        outcome = admin.alter_topics([AlterTopic(topic, partitions, NOT_GIVEN)])[topic]
        return f"grows {topic} to {partitions} partitions", outcome

    def _shrink(self, admin: Admin, random: Random) -> None:
        """Delete the last partitions of a topic, which is written to while its leaders and the producer hear of it."""
        last = self._any_partition(random, least=1)
        if last is None:
            return
        topic, total, delay_ms = last.topic, random.randint(1, last.partition), random.choice((0, 5_000))
        request = DeletePartitionsRequest((DeletePartitionsTopic(topic, total, delay_ms),), random.choice((0, 1_000)))

        def answered(response: Response | None) -> None:
            errors = {"no answer"}
            if isinstance(response, DeletePartitionsResponse):
                partitions = [each for found in response.topics for each in found.partitions]
                errors = {
                    KafkaError(each).name for each in (response.error, *(one.error for one in partitions)) if each
                }
            became = f": {', '.join(sorted(errors))}" if errors else ""
            self._cluster.world.history.say("admin", f"leaves {topic} with {total} partitions{became}")

        controller = admin.node.controller.node_id
        self._cluster.world.network.call("client-1", broker_endpoint(controller), request, answered)
        for pause_ms in _WRITES_MS:
            self._cluster.world.add(pause_ms, "", "workload", partial(self._write, topic))

    def _reassign(self, admin: Admin, random: Random) -> tuple[str, CommandOutcome] | None:
        partition = self._any_partition(random)
        if partition is None:
            return None
        brokers = sorted(self._cluster.members)
        replicas = tuple(random.sample(brokers, random.randint(1, min(3, len(brokers)))))
        wanted = None if random.random() < 0.2 else replicas
        outcome = admin.reassign([(partition, wanted)])[partition]
        return f"reassigns {partition} to {wanted or 'what it was'}", outcome

    def _prefer(self, admin: Admin, random: Random) -> tuple[str, CommandOutcome] | None:
        partition = self._any_partition(random)
        if partition is None:
            return None
        return f"elects the preferred leader of {partition}", admin.elect_preferred([partition])[partition]

    def _tenant(self, namespace: str, admin: Admin, _random: Random) -> tuple[str, CommandOutcome]:
        return f"creates namespace {namespace}", admin.create_namespace(namespace)

    def _namespace(self, admin: Admin, random: Random) -> tuple[str, CommandOutcome]:
        namespace = random.choice(NAMESPACES)
        if random.random() < 0.7:
            return f"creates namespace {namespace}", admin.create_namespace(namespace)
        return f"deletes namespace {namespace}", admin.delete_namespace(namespace, recursive=random.random() < 0.5)

    def _move_namespace(self, admin: Admin, random: Random) -> tuple[str, CommandOutcome] | None:
        """Move a namespace to another name, which may be taken, and from where it comes back (KIP37-3)."""
        there = [each for each in _MOVED if self._cluster.oracle.is_namespace(each)]
        if not there:
            return None
        namespace = random.choice(there)
        target = random.choice([each for each in _MOVED if each != namespace])
        return f"moves namespace {namespace} to {target}", admin.move_namespace(namespace, target)

    def _configure(self, admin: Admin, random: Random) -> tuple[str, CommandOutcome]:
        """Set a config of a topic, a namespace or the cluster, or have it inherited again (KIP37-5)."""
        name, values = random.choice(_CONFIGS)
        wanted = {name: random.choice(values)} if random.random() < 0.8 else {}
        scope = random.choice((*NAMES, *NAMESPACES, "", _UNCLEAN))
        if scope == _UNCLEAN:
            name, wanted = "unclean.leader.election.enable", {"unclean.leader.election.enable": "true"}
        deleted = () if wanted else (name,)
        text = f"sets {name} of {scope or 'the cluster'} to {wanted.get(name, 'what it inherits')}"
        if scope in NAMES:
            return text, admin.alter_topics([AlterTopic(scope, configs=wanted, deleted_configs=deleted)])[scope]
        return text, admin.alter_namespace_configs(scope, wanted, deleted)

    def _any_partition(self, random: Random, least: int = 0) -> TopicPartition | None:
        known = [each for each in sorted(self._cluster.oracle.wanted()) if each.partition >= least]
        return random.choice(known) if known else None
