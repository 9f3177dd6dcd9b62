"""A broker of a simulated cluster: a :class:`~reconciler.broker.Broker` over real folders, and all that is around it.

What it does at its start, in this order: it opens its log dirs and recovers what a crash left, registers in ZooKeeper
(its epoch is the number of the transaction that created its node), serves its endpoint, and stands for election as the
controller. What it remembers of partitions comes from the controller, which sends a FULL request to a broker that just
registered. A crash forgets everything and gives the locks back, without a word to the disks; what the disks lost is for
``disks``. Whoever lets a broker crash also ends its session, after a while; see :attr:`SimulatedBroker.session`.
Source: FACTS §4, §8; KIP516-8, KIP516-9, KIP516-11.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from logstore import LogStoreError
from logstore.fs import Disk
from logstore.purge import Purged
from logstore.store import LogStore
from reconciler.broker import Broker
from reconciler.errors import ReconcilerError
from reconciler.simulator.kernel import Journal, Network, Timers, broker_endpoint
from reconciler.simulator.machine.broker_life import BrokerLife, RunsController
from reconciler.simulator.machine.broker_settings import BrokerSettings
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.hosted_replicas import HostedReplicas
from reconciler.simulator.machine.machine_clock import MachineClock
from reconciler.simulator.machine.metadata_cache import MetadataCache
from reconciler.simulator.machine.starting import open_store
from reconciler.simulator.zookeeper import Session, ZooKeeper


class MountedDisks(Protocol):
    """What a broker asks of its machine's disks."""

    @property
    def disk(self) -> Disk:
        """The primitive changes, and what becomes of them at a crash."""

    @property
    def log_dirs(self) -> Sequence[str]:
        """The paths of the log dirs, in the order in which the broker is configured."""


class SimulatedBroker:
    """One broker. The same object starts again after a crash.

    Attributes:
        node_id: its number.
        running: whether it is up.
        purged: told of each directory that was deleted for ever, from the next start on.
        registered: told of each session under which it is registered, from the next start on.
    """

    def __init__(  # noqa: PLR0917
        self,
        node_id: int,
        disks: MountedDisks,
        zookeeper: ZooKeeper,
        network: Network,
        timers: Timers,
        journal: Journal,
        settings: BrokerSettings,
        make_controller: Callable[..., RunsController],
    ) -> None:
        """Put together a broker that is down.

        Args:
            node_id: its number.
            disks: of its machine.
            zookeeper: where it registers.
            network: by which it is reached.
            timers: of its machine.
            journal: the history.
            settings: what it is told.
            make_controller: makes a controller of (node ID, broker epoch, ZooKeeper, network, timers, journal).
        """
        self.node_id, self.settings, self.running = node_id, settings, False
        self._last_session: Session | None = None
        self._disks, self._zookeeper, self._network = disks, zookeeper, network
        self._timers, self._journal, self._make_controller = timers, journal, make_controller
        self._life: BrokerLife | None = None
        self.purged: Callable[[Purged], None] = lambda purged: None
        self.registered: Callable[[Session], None] = lambda session: None

    @property
    def store(self) -> LogStore:
        """Its log dirs; there are none while it is down."""
        return self._living.store

    @property
    def broker(self) -> Broker:
        """What handles control requests; there is none while it is down."""
        return self._living.broker

    @property
    def replicas(self) -> HostedReplicas:
        """The partitions that it leads or follows; there are none while it is down."""
        return self._living.replicas

    @property
    def controller(self) -> RunsController:
        """The controller in its process; there is none while it is down."""
        return self._living.controller

    @property
    def metadata(self) -> MetadataCache:
        """What clients may be told; nothing while it is down."""
        return self._living.metadata

    @property
    def session(self) -> Session | None:
        """The last one that it opened. After a crash nobody closes it: ``expire()`` it when its time is over."""
        return self._last_session if self._life is None else self._life.session

    def start(self) -> None:
        """Start, if it is down; where no log dir can be used it stays down, and the history says why."""
        if self.running:
            return
        self.running = True  # from here on it can crash
        if not self._begin():
            self.running = False

    def _begin(self) -> bool:
        host = Host(self.node_id, self._network, self._timers, self._journal, self.settings)
        host.log_dirs = self._disks.log_dirs
        try:
            store = open_store(
                self._disks.log_dirs,
                self.node_id,
                disk=self._disks.disk,
                clock=MachineClock(self._timers),
                settings=self.settings,
                say=host.say,
            )
        except LogStoreError as error:
            host.say(f"does not start: {error}")
            return False
        try:
            broker = Broker(store, self.node_id)
        except ReconcilerError as error:
            store.close()
            host.say(f"does not start: {error}")
            return False
        self._life = BrokerLife(host, broker, self._zookeeper, self._make_controller, self.halt)
        self._life.purged, self._life.registered = self.purged, self.registered
        host.say(f"starts with {len(store)} replicas" + "".join(f"; {why}" for why in store.offline.values()))
        self._life.begin()
        return True

    def crash(self) -> None:
        """Lose all that is in memory, at once; the locks are given back, and nothing is written."""
        if self._life is not None:
            self._life.end()
            self._life.store.abandon()
        self._gone()

    def shut_down(self) -> None:
        """Stop in order: flush, write the checkpoints, close the session and the store."""
        if self._life is not None:
            life = self._life
            life.put_down()
            life.end()
            life.close_session()
            life.store.close()
            self._gone()
            life.host.say("stops")

    def halt(self, why: str) -> None:
        """Stop at once, as a broker does that has no log dir left."""
        if self._life is not None:
            life = self._life
            life.host.say(f"halts: {why}")
            life.close_session()
            self.crash()

    def _gone(self) -> None:
        if self._life is not None:
            self._last_session = self._life.session
        self._life = None
        self.running = False
        self._network.serve(broker_endpoint(self.node_id), None)

    @property
    def _living(self) -> BrokerLife:
        if self._life is None:
            raise RuntimeError(f"broker {self.node_id} is down; start it first")
        return self._life
