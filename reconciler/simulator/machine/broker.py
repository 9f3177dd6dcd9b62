"""A broker of a simulated cluster: a :class:`~reconciler.broker.Broker` over real folders, with its start and its end.

A start does this, in this order: it opens the log dirs and recovers what a crash left (FACTS §1.5), registers in
ZooKeeper (the broker's epoch is the number of the transaction that created its node), serves its endpoint, and stands
for election as the controller. Its partitions come from the controller, which sends a FULL request to a broker that
just registered.

A crash forgets everything in memory and releases the locks without a change to the disks; ``disks`` decides what they
lose. The caller that lets a broker crash also ends its session after a while; see :attr:`SimulatedBroker.session`.
Source: FACTS §4, §8; KIP516-8, KIP516-9, KIP516-11.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from layout import meta_properties
from layout.ids import DirectoryId
from layout.meta_properties import MetaProperties
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import Clock, LogStoreError, OfflineLogDirError
from logstore.fs import Disk
from logstore.fs.crash_disk import MachineDisks
from logstore.log_dir import LogDir, read_identity
from logstore.purge import Purged
from logstore.store import LogStore, StoreOptions
from reconciler.broker import Broker
from reconciler.errors import ReconcilerError
from reconciler.simulator.controller import Controller
from reconciler.simulator.kernel import CountedStore, Journal, Network, Timers, broker_endpoint
from reconciler.simulator.machine.configs import BrokerConfigs
from reconciler.simulator.machine.host import BrokerSettings, Host, MachineClock, short_path
from reconciler.simulator.machine.hosted_replicas import HostedReplicas
from reconciler.simulator.machine.life import Administer, BrokerLife, refuse_to_administer
from reconciler.simulator.machine.serving import MetadataCache
from reconciler.simulator.zookeeper import Session, ZooKeeper


class SimulatedBroker:
    """One broker. The same object starts again after a crash.

    Attributes:
        node_id: its number.
        running: whether it is up.
        purged: called with each directory that is deleted for ever; takes effect at the next start.
        registered: called with each session under which it registers; takes effect at the next start.
        administer: called with each request of an administrator; takes effect at the next start.
    """

    def __init__(  # noqa: PLR0917
        self,
        node_id: int,
        disks: MachineDisks,
        zookeeper: ZooKeeper,
        network: Network,
        timers: Timers,
        journal: Journal,
        settings: BrokerSettings,
        make_controller: Callable[[Callable[[], int]], Controller],
    ) -> None:
        """Put together a broker that is down; ``make_controller`` takes a function that gives the broker's epoch."""
        self.node_id, self.settings, self.running = node_id, settings, False
        self._last_session: Session | None = None
        self._last_delays = settings.delays
        self._disks, self._zookeeper, self._network = disks, zookeeper, network
        self._timers, self._journal, self._make_controller = timers, journal, make_controller
        self._life: BrokerLife | None = None
        self.purged: Callable[[Purged], None] = lambda purged: None
        self.registered: Callable[[Session], None] = lambda session: None
        self.administer: Administer = refuse_to_administer

    @property
    def clock(self) -> Clock:
        """The clock of its machine, for tools too."""
        return MachineClock(self._timers)

    @property
    def store(self) -> LogStore:
        """Its log dirs; there are none while it is down."""
        return self._living.store

    @property
    def broker(self) -> Broker:
        """The handler of control requests; there is none while it is down."""
        return self._living.broker

    @property
    def replicas(self) -> HostedReplicas:
        """The partitions that it leads or follows; there are none while it is down."""
        return self._living.replicas

    @property
    def controller(self) -> Controller:
        """The controller in its process; there is none while it is down."""
        return self._living.controller

    @property
    def configs(self) -> BrokerConfigs:
        """The configs that it goes by; there are none while it is down."""
        return self._living.configs

    @property
    def metadata(self) -> MetadataCache:
        """The metadata that it answers clients with; there is none while it is down."""
        return self._living.metadata

    def lags(self, at: TopicPartition) -> dict[int, int]:
        """How many records each replica lacks of a partition that this broker leads; otherwise nothing is known."""
        found = None if self._life is None else self._life.replicas.get(at)
        return {} if found is None else found.lags()

    @property
    def session(self) -> Session | None:
        """The last session that it opened. After a crash nothing closes it: ``expire()`` it when its time is over."""
        return self._last_session if self._life is None else self._life.session

    def start(self) -> None:
        """Start, if it is down; it stays down if no log dir can be used, and the history says why."""
        if self.running:
            return
        self.running = True  # from here on it can crash
        if not self._begin():
            self.running = False

    def _begin(self) -> bool:
        host = Host(self.node_id, self._network, self._timers, self._journal, self.settings)
        host.log_dirs = self._disks.log_dirs
        store = self._open(host)
        if store is None:
            return False
        try:
            broker = Broker(store, self.node_id)
        except ReconcilerError as error:
            store.close()
            host.say(f"does not start: {error}")
            return False
        self._life = BrokerLife(host, broker, self._zookeeper, self._make_controller, self.halt)
        self._life.purged, self._life.registered = self.purged, self.registered
        self._life.administer = self.administer
        host.say(f"starts with {len(store)} replicas" + "".join(f"; {why}" for why in store.offline.values()))
        self._life.begin()
        return True

    def alter_log_dir(self, at: TopicPartition, number: int) -> None:
        """Move a replica to another disk, by number from 0; the history says what became of it."""
        life, path = self._living, self._disks.log_dirs[number]
        life.host.guarded(f"move of {at}", lambda: life.alter_log_dir(at, path))

    def maintain(self, work: Callable[[LogStore], None]) -> None:
        """While the broker is down, open its log dirs for a tool; if that fails, the history says why.

        The tool stages with the delays that the broker had last, which an operator gives to it.
        """
        assert not self.running, "a broker that is up holds the locks"
        host = Host(self.node_id, self._network, self._timers, self._journal, self.settings)
        host.log_dirs = self._disks.log_dirs
        store = self._open(host)
        if store is not None:
            store.settings = self._last_delays
            try:
                work(store)
            except BaseException:
                store.abandon()  # the power is gone: nothing is written any more
                raise
            store.close()

    def _open(self, host: Host) -> LogStore | None:
        try:
            return open_store(
                self._disks.log_dirs,
                self.node_id,
                disk=self._disks.disk,
                clock=self.clock,
                settings=self.settings,
                say=host.say,
                reach=self._journal.reach,
            )
        except LogStoreError as error:
            host.say(f"does not start: {error}")
            return None

    def crash(self) -> None:
        """Lose everything in memory at once; the locks are released, and nothing is written."""
        if self._life is not None:
            self._life.end()
            self._life.store.abandon()
        self._gone()

    def shut_down(self) -> None:
        """Stop in order: flush, write the checkpoints, close the session and the store."""
        if self._life is not None:
            life = self._life
            life.flush_all()
            life.end()
            life.close_session()
            life.store.close()
            self._gone()
            life.host.say("stops")

    def halt(self) -> None:
        """Stop at once, as Kafka does when no log dir is left."""
        if self._life is not None:
            life = self._life
            life.host.say("halts: no log dir is left")
            life.close_session()
            self.crash()

    def _gone(self) -> None:
        if self._life is not None:
            self._last_session, self._last_delays = self._life.session, self._life.store.settings
        self._life = None
        self.running = False
        self._network.serve(broker_endpoint(self.node_id), None)

    @property
    def _living(self) -> BrokerLife:
        if self._life is None:
            raise RuntimeError(f"broker {self.node_id} is down; start it first")
        return self._life


def open_store(
    paths: Sequence[str],
    node_id: int,
    *,
    disk: Disk,
    clock: Clock,
    settings: BrokerSettings,
    say: Callable[[str], None],
    reach: Callable[[str, int], None] = lambda what, times: None,
) -> LogStore:
    """Open a broker's log dirs, and recover what a crash left in them.

    A log dir without ``meta.properties`` is new, or on a disk that was replaced: it is formatted, in the scheme of the
    others. A log dir that holds something else is left out. A disk that fails is offline from the start.
    What was formatted or left out is said, a line for each log dir; what is done with the store is counted.

    Raises:
        LogStoreError: no log dir can be used, or they do not belong together.
    """
    usable, schemes = list(paths), list[str]()
    new = [path for path in paths if not os.path.lexists(f"{path}/{meta_properties.FILE_NAME}")]
    for path in paths:
        identity = None if path in new else read_identity(path).identity
        if identity is not None:
            schemes.append(identity.scheme or Scheme.FLAT)
    scheme = schemes[0] if schemes else settings.scheme
    for path in new:
        try:
            directory_id = DirectoryId(bytes.fromhex(disk.unique())) if settings.directory_ids else None
            identity = MetaProperties(0, settings.cluster_id, node_id, directory_id, scheme)
            LogDir.format(path, identity, disk=disk).close()
            say(f"{short_path(path)} is new, and is formatted")
        except OfflineLogDirError as error:
            say(f"{short_path(path)} is not formatted: {error}")
        except LogStoreError as error:
            usable.remove(path)
            say(f"{short_path(path)} is left out: {error}")
    store = CountedStore.open(usable, StoreOptions(clock=clock, settings=settings.delays, disk=disk, jobs=0))
    store.reach = reach
    return store
