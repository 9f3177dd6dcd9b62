"""A broker between its start and its end: its parts, connected, and its periodic work.

Requests go to the part that handles their type. Every few seconds the broker checks its session, failed disks, lagging
followers and the high watermarks. Less often it flushes, and purges staged replicas that are due by its own clock. When
a disk fails, its replicas are no longer served, and a node in ZooKeeper notifies the controller; when the last disk
fails, the broker halts, as Kafka does.
Source: FACTS §2.4, §4.2, §8; KIP516-6, KIP516-8, KIP516-9.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from layout.topic import TopicPartition
from logstore import KafkaError, LogStoreError
from logstore.purge import Purged
from reconciler.broker import Broker
from reconciler.protocol import (
    KIP694,
    DeletePartitionsRequest,
    DeletePartitionsResponse,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    decode_delete_partitions,
    decode_response,
    decode_update_metadata,
    encode_message,
)
from reconciler.simulator.controller import Controller
from reconciler.simulator.kernel import (
    ANONYMOUS,
    AlterIsrRequest,
    Answer,
    EpochEndRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    Numbered,
    OfClient,
    ProduceRequest,
    Request,
)
from reconciler.simulator.machine.configs import BrokerConfigs
from reconciler.simulator.machine.control import ControlRequests
from reconciler.simulator.machine.fetching import FollowerFetching
from reconciler.simulator.machine.host import Host, short_path
from reconciler.simulator.machine.hosted_replicas import HostedReplicas
from reconciler.simulator.machine.partition import InSyncSets
from reconciler.simulator.machine.serving import LeaderRequests, MetadataCache, refuse_request
from reconciler.simulator.zookeeper import (
    CONTROLLER,
    LOG_DIR_EVENTS,
    Authorizer,
    NodeExistsError,
    Session,
    SimulatedZooKeeperError,
    ZooKeeper,
    broker_path,
    encode_broker,
    make_base,
)
from reconciler.sources.zookeeper import decode_controller, encode_log_dir_event

Administer: TypeAlias = Callable[[DeletePartitionsRequest, Callable[[DeletePartitionsResponse], None], str], None]
"""Takes a request of an administrator, what answers it, and the principal whose it is."""

_DELETE_PARTITIONS_VERSION = 1
"""The version in which each topic has its own delay."""


def refuse_to_administer(
    request: DeletePartitionsRequest, answer: Callable[[DeletePartitionsResponse], None], principal: str
) -> None:
    """Answer for a broker that nobody gave the commands of an administrator: it is not the controller."""
    answer(DeletePartitionsResponse(KafkaError.NOT_CONTROLLER))


class BrokerLife:
    """A broker from one start to its end; ``session`` is the last one that it opened."""

    def __init__(
        self,
        host: Host,
        broker: Broker,
        zookeeper: ZooKeeper,
        make_controller: Callable[[Callable[[], int]], Controller],
        halt: Callable[[], None],
    ) -> None:
        """Connect the parts; nothing happens yet. ``halt`` ends this life."""
        self.host, self.broker, self.store, self.halt = host, broker, broker.store, halt
        self.zookeeper = zookeeper
        self.metadata = MetadataCache(restricts=host.settings.delete_topic_partition_enable)
        self.session: Session | None = None
        self._registering = False
        self.offline = frozenset(self.store.offline)
        self.purged: Callable[[Purged], None] = lambda purged: None
        """Called with each directory that was deleted for ever."""
        self.registered: Callable[[Session], None] = lambda session: None
        """Called with each session under which the broker is registered."""
        self.administer: Administer = refuse_to_administer
        """Called with each request of an administrator."""
        self.unreported = 0
        """How many failed log dirs have no node in ZooKeeper yet."""
        self.configs = BrokerConfigs(host, self.store)
        self.replicas = HostedReplicas(host, self.store)
        self.serving = LeaderRequests(host, broker, self.replicas, self.configs)
        self.fetching = FollowerFetching(host, self.broker_epoch)
        self.in_sync = InSyncSets(host, self.broker_epoch, self.active_controller)
        self.control = ControlRequests(host, broker, self.replicas)
        self.replicas.ended = self.serving.ended
        self.serving.caught_up = self.in_sync.caught_up
        self.serving.may_write = self.metadata.may_write
        self.in_sync.agreed = self.serving.advance
        self.control.changed = self.fetching.start
        self.replicas.came = self.configs.learn
        self.controller = make_controller(self.broker_epoch)
        host.noticed = self.look_at_disks

    def begin(self) -> None:
        """Register, and start the periodic work."""
        self.register()
        settings = self.host.settings
        self.host.after(settings.tick_ms, "tick", self.tick)
        self.host.after(settings.flush_ms, "flush", self.flush)
        self.host.after(settings.purge_ms, "purge", self.purge)

    def end(self) -> None:
        """Stop all timers and answers of this life, and the controller."""
        self.host.alive = False
        self.controller.stop()

    def broker_epoch(self) -> int:
        """The epoch of its registration; -1 before that."""
        return self.broker.broker_epoch

    def register(self) -> None:
        """Open a session and register under it; while an older session still holds the node, try again."""
        session = self.session = self.zookeeper.session(self.host.endpoint)
        path = broker_path(self.host.node_id)
        make_base(session)
        node = encode_broker(
            self.host.node_id,
            rack=self.host.settings.rack,
            timestamp_ms=self.host.timers.now_ms(),
            knows_namespaces=self.host.settings.knows_namespaces,
        )
        try:
            session.create(path, node, ephemeral=True)
        except NodeExistsError:
            session.close()
            self._registering = True
            self.host.after(self.host.settings.backoff_ms, "register again", self.register)
            return
        self._registering = False
        self.broker.broker_epoch = session.get(path).czxid
        self.host.say(f"is registered, with epoch {self.broker.broker_epoch}")
        self.host.network.serve(self.host.endpoint, self.serve)
        self.configs.follow(session)
        self.registered(session)
        self.controller.start(session)

    def close_session(self) -> None:
        """Close the session, if it is not over already."""
        session = self.session
        if session is not None and not session.expired:
            session.close()

    def active_controller(self) -> int | None:
        """The ID of the controller that ``/controller`` names."""
        try:
            node = None if self.session is None else self.session.find(CONTROLLER)
        except SimulatedZooKeeperError:
            return None
        return None if node is None else decode_controller(node.data)

    def serve(self, sender: str, request: Request, answer: Answer) -> None:
        """Take a request that arrived; a malformed one gets no answer, as Kafka closes the connection."""
        plain, number = (request.request, request.number) if isinstance(request, Numbered) else (request, None)
        self.host.guarded(f"{type(plain).__name__} of {sender}", lambda: self._handle(sender, plain, number, answer))

    def authorizer(self) -> Authorizer | None:
        """Give the authorizer, which reads ACLs by the broker's session; None: the broker has none."""
        settings, session = self.host.settings.authorizer, self.session
        return None if settings is None or session is None else Authorizer.of(session, settings)

    def _handle(self, sender: str, request: Request, number: int | None, answer: Answer) -> None:
        refusal = refuse_request(self.authorizer(), request, self.store.topic_of)
        if refusal is None:
            self._answer(sender, request, number, answer)
        else:
            answer(refusal)

    def _answer(self, sender: str, request: Request, number: int | None, answer: Answer) -> None:
        match request:
            case LeaderAndIsrRequest() | StopReplicaRequest():
                answer(self.control.handle(request, number))
            case UpdateMetadataRequest():
                answer(UpdateMetadataResponse(self._update_metadata(request, number)))
            case AlterIsrRequest():
                self.controller.handle(sender, request, answer)
            case FetchRequest():
                self.serving.fetch(request, answer)
            case ProduceRequest():
                self.serving.produce(request, answer)
            case ListOffsetsRequest():
                self.serving.list_offsets(request, answer)
            case EpochEndRequest():
                self.serving.epoch_end(request, answer)
            case MetadataRequest():
                answer(self.metadata.answer(request, self.authorizer()))
            case DeletePartitionsRequest() | OfClient():
                self._delete_partitions(request, answer)

    def _delete_partitions(self, sent: DeletePartitionsRequest | OfClient, answer: Answer) -> None:
        """Hand on a request and its answer as they are on the wire (KIP694-2), with the principal of its connection."""
        principal, plain = (sent.principal, sent.request) if isinstance(sent, OfClient) else (ANONYMOUS, sent)

        def encoded(response: DeletePartitionsResponse) -> None:
            data = encode_message(response, _DELETE_PARTITIONS_VERSION)
            answer(decode_response(DeletePartitionsResponse, data, _DELETE_PARTITIONS_VERSION))

        data = encode_message(plain, _DELETE_PARTITIONS_VERSION)
        self.administer(decode_delete_partitions(data, _DELETE_PARTITIONS_VERSION), encoded, principal)

    def _update_metadata(self, sent: UpdateMetadataRequest, number: int | None) -> KafkaError:
        """Take over a request as it is on the wire, in the form with topic IDs and modes (KIP694-1).

        Epochs and the number are checked as in LeaderAndIsr (FACTS §4.2, 2 and 3).
        """
        request = decode_update_metadata(encode_message(sent, KIP694), KIP694)
        if request.broker_epoch != -1 and request.broker_epoch < self.broker.broker_epoch:
            return KafkaError.STALE_BROKER_EPOCH
        if request.controller_epoch < self.broker.controller_epoch:
            return KafkaError.STALE_CONTROLLER_EPOCH
        if number is not None and not self.broker.comes_in_order(request.controller_epoch, number):
            return KafkaError.STALE_CONTROLLER_EPOCH
        self.broker.controller_epoch = request.controller_epoch
        self.metadata.update(request)
        self.serving.refuse_writes()
        return KafkaError.NONE

    def tick(self) -> None:
        """Check the session, failed disks, lagging followers, and the high watermarks."""
        self.host.after(self.host.settings.tick_ms, "tick", self.tick)
        if self.session is not None and self.session.expired and not self._registering:
            self.host.say("its session is over, so it registers again")
            self.controller.stop()
            self.register()
        self._report_failed_disks()
        for partition in self.replicas:
            self.in_sync.shrink(partition)
        self.replicas.write_high_watermarks()

    def flush(self) -> None:
        """Make all records durable, and write the checkpoints."""
        self.host.after(self.host.settings.flush_ms, "flush", self.flush)
        self.flush_all()
        for log_dir in self.store.log_dirs:
            if log_dir.offline is None:
                # Kafka writes its checkpoints to all log dirs, so it sees a disk that fails also where nothing lies.
                with suppress(LogStoreError), log_dir.changing("it cannot be synced"):
                    log_dir.disk.sync(log_dir.root.descriptor)

    def flush_all(self) -> None:
        """Flush all records, and write the recovery points and high watermarks."""
        self.replicas.flush()
        self.replicas.write_recovery_points()
        self.replicas.write_high_watermarks()

    def purge(self) -> None:
        """Delete for ever what is due by the machine's clock: records that are too old, and staged replicas."""
        self.host.after(self.host.settings.purge_ms, "purge", self.purge)
        self._delete_old_records()
        for _ in range(self.host.settings.purge_steps):
            gone = self.store.purge_step()
            if gone is None:
                break
            self.host.say(f"{gone.location} is purged")
            self.purged(gone)

    def _delete_old_records(self) -> None:
        """Delete committed records that are older than ``retention.ms`` allows; a disk that fails stops no other."""
        for partition in self.replicas:
            retention_ms, before = self.configs.retention_ms(partition.at.topic), partition.log.start
            try:
                if retention_ms is not None and partition.delete_old(retention_ms, self.host.timers.now_ms()):
                    self.host.say(f"{partition.at}: records {before} to {partition.log.start - 1} are too old, and go")
            except LogStoreError as error:
                self.host.say(f"{partition.at}: {error}")

    def alter_log_dir(self, at: TopicPartition, path: str) -> None:
        """Move a replica to another log dir, as Kafka's AlterReplicaLogDirs asks for; it keeps its role (KIP516-3)."""
        target = next((each for each in self.store.log_dirs if each.path == path), None)
        if target is None or target.identity.directory_id is None:
            self.host.say(f"{at} is not moved: {short_path(path)} is not open, or has no ID")
            return
        hosted = self.replicas.get(at)
        if hosted is not None:
            hosted.log.flush()
        before = self.store.get(at).log_dir
        try:
            self.store.move(at, target.identity.directory_id)
            self.replicas.moved(at)
        finally:
            self.replicas.follow_the_store()
        self.host.say(f"{at} is moved from {short_path(before)} to {short_path(path)}")

    def look_at_disks(self) -> None:
        """After an event: stop serving the replicas of disks that failed in it."""
        offline = self.store.offline
        failed = [path for path in offline if path not in self.offline]
        if not failed:
            return
        self.offline = frozenset(offline)
        for path in failed:
            self.host.say(f"{short_path(path)} is offline")
        self.replicas.follow_the_store()
        if all(log_dir.offline is not None for log_dir in self.store.log_dirs):
            self.halt()
            return
        self.unreported += len(failed)
        self._report_failed_disks()

    def _report_failed_disks(self) -> None:
        """Report failed log dirs to the controller by nodes in ZooKeeper; without a session, later."""
        session = self.session
        while self.unreported and session is not None and not session.expired:
            data = encode_log_dir_event(self.host.node_id)
            session.create(f"{LOG_DIR_EVENTS}/log_dir_event_", data, sequence=True)
            self.unreported -= 1
