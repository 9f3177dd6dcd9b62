"""One machine of a simulated cluster: its disks, its broker, its faults, and its administrator's commands.

The kernel lets faults happen to it. A machine that loses its power keeps its ZooKeeper session until that times out, as
a real one does: until then ZooKeeper, and so the controller, regard the broker as alive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from layout.topic import TopicPartition
from logstore import check_fields
from logstore.fs.crash_disk import DiskVersion, MachineDisks
from logstore.purge import Purged
from reconciler.errors import UsageError
from reconciler.protocol import DeletePartitionsRequest, DeletePartitionsResponse
from reconciler.simulator.admin import Admin, BrokerNamespaces
from reconciler.simulator.controller import (
    Controller,
    ControllerSettings,
    FewerPartitionsSettings,
    fewer_partitions_extension,
)
from reconciler.simulator.kernel import Fault, FaultRates, World, broker_endpoint
from reconciler.simulator.machine import (
    BrokerSettings,
    SimulatedBroker,
    WatchedNetwork,
    faults_while_running,
    faults_while_stopped,
)
from reconciler.simulator.zookeeper import Authorizer, Session, ZooKeeper


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The size of a cluster, its faults, and the settings of its parts.

    Attributes:
        brokers: how many, numbered from 1.
        log_dirs: how many each broker has, each on a disk of its own.
        racks: of the brokers, in the order of their numbers; empty: each has that of ``broker``, or none.
        older_brokers: those of an older release, which does not know namespaces, until they are upgraded (KIP-37).
        rates: how often each fault happens.
        broker: settings of every broker.
        controller: settings of every controller.
        fewer_partitions: whether partitions may be deleted, and how often delays are checked (KIP694-3).
        fault_interval_ms: the true time between draws of faults of machines and disks.
        session_ms: the true time after which ZooKeeper ends the session of a machine without power.

    Raises:
        UsageError: one is of another type, or a number is not positive.
    """

    brokers: int = 3
    log_dirs: int = 2
    rates: FaultRates = field(default_factory=FaultRates.none)
    broker: BrokerSettings = field(default_factory=BrokerSettings)
    controller: ControllerSettings = field(default_factory=ControllerSettings)
    fewer_partitions: FewerPartitionsSettings = field(default_factory=FewerPartitionsSettings)
    fault_interval_ms: int = 1_000
    session_ms: int = 6_000
    racks: tuple[str, ...] = ()
    older_brokers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        positive = ("brokers", "log_dirs", "fault_interval_ms", "session_ms")
        check_fields(self, UsageError, dict.fromkeys(positive, (1, math.inf)))
        if self.racks and len(self.racks) != self.brokers:
            raise UsageError(
                f"ClusterSettings was given {len(self.racks)} racks of {self.brokers} brokers: give each broker one, "
                "or none"
            )

    def rack_of(self, node_id: int) -> str | None:
        """The rack of a broker; None: it has none."""
        return self.racks[node_id - 1] if self.racks else self.broker.rack


class Member:
    """One machine with one broker; a :class:`~reconciler.simulator.kernel.faults.FaultTarget`.

    Attributes:
        name: of the machine, which is its endpoint.
        network: as its broker sees it, with a callback for every answer.
        changing: called before every change to a disk.
        purged: called with each directory that the broker deletes for ever.
        scanned: path of a log dir → the version of its disk when it was scanned last, and the rows that the scan gave.
    """

    def __init__(
        self,
        node_id: int,
        folder: str,
        *,
        world: World,
        zookeeper: ZooKeeper,
        settings: ClusterSettings,
        random: Random,
    ) -> None:
        """Put together a machine that is off; ``folder`` is empty, and for its disks."""
        self.node_id, self.name = node_id, broker_endpoint(node_id)
        self._world, self._settings, self._random = world, settings, random
        self.disks = MachineDisks(folder, settings.log_dirs, self._changes_a_disk)
        self.disks.disk.names = world.randomness(f"names on {self.name}")
        self.changing: Callable[[], None] = lambda: None
        self.purged: Callable[[Purged], None] = lambda purged: None
        self.scanned: dict[str, tuple[DiskVersion, list[dict[str, Any]]]] = {}
        self.network = WatchedNetwork(world.network)
        self._admin: tuple[Controller, Admin] | None = None
        self.broker = SimulatedBroker(
            node_id,
            self.disks,
            zookeeper,
            self.network,
            world.timers(self.name),
            world.history,
            replace(
                settings.broker,
                rack=settings.rack_of(node_id),
                delete_topic_partition_enable=settings.fewer_partitions.enabled,
                knows_namespaces=settings.broker.knows_namespaces and node_id not in settings.older_brokers,
            ),
            self._make_controller,
        )
        self.broker.registered = self._follow_namespaces
        self.broker.purged = self._was_purged
        self.broker.administer = self._administer
        world.add_target(self)

    @property
    def running(self) -> bool:
        """Whether the broker is up."""
        return self.broker.running

    @property
    def controller(self) -> Controller:
        """The controller in the broker's process; there is none while it is down."""
        return self.broker.controller

    @property
    def admin(self) -> Admin:
        """The commands, as this broker answers them; a broker that is down answers none."""
        controller, settings = self.controller, self._settings
        if self._admin is None or self._admin[0] is not controller:
            admin = Admin(
                controller,
                self._session,
                self.broker.metadata.answer,
                self._world.timers(self.name),
                random=self._random,
                authorizer=None if settings.broker.authorizer is None else self._authorizer,
                fewer_partitions=settings.fewer_partitions,
                lags=self.broker.lags,
                placement=settings.controller.placement,
                # The cluster counts as formed only when every broker has registered.
                registered={node_id: settings.rack_of(node_id) for node_id in range(1, settings.brokers + 1)},
            )
            self._admin = controller, admin
            admin.start()
        return self._admin[1]

    def start(self) -> None:
        """Switch the machine on; if the broker cannot start, the history says why."""
        self._world.guarded(self.broker.start)

    def shut_down(self) -> None:
        """Stop the broker in order."""
        self._world.guarded(self.broker.shut_down)

    def alter_log_dir(self, at: TopicPartition, number: int) -> None:
        """Move a replica to another disk of the machine, by number from 0, while its broker is up (KIP516-3)."""
        if self.running:
            self.broker.alter_log_dir(at, number)

    def upgrade(self) -> None:
        """Stop the broker in order, if it is up, so that it starts as one of this release, which knows namespaces."""
        self.shut_down()
        self.broker.settings = replace(self.broker.settings, knows_namespaces=True)

    def crash(self) -> None:
        """Lose the power; called by the kernel, which has dropped the machine's timers and connections already."""
        self.broker.crash()
        self._world.history.reach("crash machine")
        self._world.history.reach("crash disk", self.disks.crash(self._random))
        session = self.broker.session
        if session is not None and not session.expired:
            session.abandon()
            self._world.add(self._settings.session_ms, "", f"the session of {self.name} is over", session.expire)

    def faults(self) -> Mapping[str, Fault]:
        """The faults that may happen to it now, besides a crash."""
        if not self.running:
            return {"restart": self._restart, **faults_while_stopped(self.disks)}
        session = self.broker.session
        expires: dict[str, Fault] = {}
        if session is not None and not session.expired:
            expires["session"] = lambda _random: self._expire(session)
        return {**expires, **faults_while_running(self.disks)}

    def _restart(self, _random: Random) -> str:
        self.broker.start()
        return "is switched on"

    def _expire(self, session: Session) -> str:
        session.expire()
        return "its session expires"

    def _follow_namespaces(self, session: Session) -> None:
        """Keep the namespaces on the disks in step with ZooKeeper (KIP37-2)."""

        def say(text: str) -> None:
            self._world.history.say(self.name, text)

        BrokerNamespaces(self.broker.store, session, self._world.timers(self.name), say).start()

    def _session(self) -> Session:
        session = self.broker.session
        assert session is not None, "a broker that is up has a session"
        return session

    def _authorizer(self) -> Authorizer:
        settings = self._settings.broker.authorizer
        assert settings is not None, "it is asked only where there is one"
        return Authorizer.of(self._session(), settings)

    def _make_controller(self, broker_epoch: Callable[[], int]) -> Controller:
        timers, journal = self._world.timers(self.name), self._world.history
        fewer = fewer_partitions_extension(timers.now_ms, self._settings.fewer_partitions)
        settings = replace(self._settings.controller, crash_before=self._power_goes)
        return Controller(self.node_id, broker_epoch, self.network, timers, journal, settings, extensions=[fewer])

    def _administer(
        self, request: DeletePartitionsRequest, answer: Callable[[DeletePartitionsResponse], None], principal: str
    ) -> None:
        """Hand a request to the commands of the controller of this moment."""
        self.admin.take_delete_partitions(request, answer, principal)

    def _was_purged(self, purged: Purged) -> None:
        self.purged(purged)

    def _changes_a_disk(self) -> None:
        """Let a power cut come before each change to a disk."""
        self.changing()
        self._world.passes(self.name)

    def _power_goes(self, step: str) -> bool:
        """Let a power cut come before each step of a controller that others can see."""
        self._world.passes(self.name)
        return self._settings.controller.crash_before(step)
