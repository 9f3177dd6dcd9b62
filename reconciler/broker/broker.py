"""The broker: remembers the epochs of its controllers, and handles one control request after the other.

Epochs are kept in memory only, as in Kafka: after a restart the first request brings them again. Memory grows only with
the partitions of a request: about 130 bytes for each in the request itself, 200 while it is handled, 75 in the answer,
and 50 that stay. Source: DESIGN §4; FACTS §4.2; KIP516-4 to -8, KIP516-11.
"""

from __future__ import annotations

import logging
import threading
from typing import overload

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError, check_argument
from logstore.parallel import paused_gc
from logstore.store import LogStore
from reconciler.broker.carry_out import carry_out
from reconciler.broker.decision import ActionResult, Decision, Outcome, answers_by_topic, remember
from reconciler.broker.leader_and_isr import decide_leader_and_isr
from reconciler.broker.memory import BrokerMemory, KnownEpochs
from reconciler.broker.snapshot import look_at_disks
from reconciler.broker.stop_replica import decide_stop_replica
from reconciler.errors import InvalidRequestError, UsageError
from reconciler.protocol import (
    ControlRequest,
    ControlResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    check_request,
    error_response,
)

logger = logging.getLogger(__name__)


class Broker:
    """One broker over its store. Requests are handled one at a time, from any thread.

    Attributes:
        store: its log dirs.
        node_id: number of the broker.
        broker_epoch: of the broker's registration, set by the embedding program; -1: no request is stale by it.
        controller_epoch: the greatest of all handled requests.
    """

    def __init__(
        self, store: LogStore, node_id: int | None = None, *, broker_epoch: int = -1, known: KnownEpochs | None = None
    ) -> None:
        """Start with the replicas on the disks, and no epochs but those that are known from elsewhere.

        Args:
            store: open; requests change it, and so may other code.
            node_id: number of the broker; None: the number in the log dirs.
            broker_epoch: of the broker's registration.
            known: of requests before this one; None: the first request is believed, as in Kafka.

        Raises:
            UsageError: the log dirs belong to another broker, or name none and ``node_id`` is None; or an argument is
                of another type.
        """
        check_argument("store", store, LogStore, UsageError)
        for name, number in (("node_id", 0 if node_id is None else node_id), ("broker_epoch", broker_epoch)):
            check_argument(name, number, int, UsageError)
        check_argument("known", known or KnownEpochs(), KnownEpochs, UsageError)
        named = next((each.identity.node_id for each in store.log_dirs if each.identity.node_id is not None), None)
        own = named if node_id is None else node_id
        if own is None:
            raise UsageError("the log dirs do not say whose they are: give the broker's number")
        if named is not None and own != named:
            raise UsageError(f"the log dirs belong to broker {named}, and not to broker {node_id}")
        self.store = store
        self.node_id = own
        self._memory = BrokerMemory(known=known or KnownEpochs())
        self.broker_epoch = max(broker_epoch, self._memory.known.broker_epoch)
        self.controller_epoch = self._memory.known.controller_epoch
        self._latest = (0, 0)
        self._handling = threading.RLock()

    @overload
    def handle(self, request: LeaderAndIsrRequest, number: int | None = None) -> LeaderAndIsrResponse: ...

    @overload
    def handle(self, request: StopReplicaRequest, number: int | None = None) -> StopReplicaResponse: ...

    def handle(self, request: ControlRequest, number: int | None = None) -> ControlResponse:
        """Do what a controller asks for, as far as possible, and return an error number for each partition.

        Handling the same request again changes nothing, or finishes a request that was interrupted.

        Args:
            request: of a controller.
            number: its position among all requests of its controller in that epoch, as the correlation ID in its
                header. Give it wherever a request can overtake another, for example over a new connection. One that
                comes late changes nothing and is answered with STALE_CONTROLLER_EPOCH, see :meth:`comes_in_order`.
                None: requests come in their order.

        Raises:
            InvalidRequestError: the request is malformed, or is none; the message has all reasons, and nothing was
                changed.
        """
        return self.handle_with_results(request, number)[0]

    def handle_with_results(
        self, request: ControlRequest, number: int | None = None
    ) -> tuple[ControlResponse, list[ActionResult]]:
        """Do as :meth:`handle`, and return the result of each action too."""
        given: object = request
        if not isinstance(given, LeaderAndIsrRequest | StopReplicaRequest):
            found = f"it is a {type(given).__name__}, and reconciler.protocol reads a request from bytes or JSON"
            raise InvalidRequestError("what was sent to the broker", [found], "LeaderAndIsr or StopReplica request")
        check_request(request, f"the request of controller {request.controller_id}")
        with self._handling, paused_gc():
            epochs = self.broker_epoch, self.controller_epoch
            # What is too old as a whole counts for nothing, and neither does its number.
            is_current = staleness(request, *epochs) is None
            if is_current and number is not None and not self.comes_in_order(request.controller_epoch, number):
                return refused(request, KafkaError.STALE_CONTROLLER_EPOCH), []
            decision = decide(self.store, request, self.node_id, self._memory, epochs)
            if not isinstance(decision, Decision):
                return decision, []
            self.controller_epoch = request.controller_epoch
            outcome = carry_out(self.store, decision)
            return answer_from(decision, outcome, self._memory), outcome.results

    def comes_in_order(self, controller_epoch: int, number: int) -> bool:
        """Whether a request comes after all numbered requests before it; remembers the request.

        :meth:`handle` asks this itself; ask it of a request that the embedding program answers, as UpdateMetadata, once
        its epochs are known to be current. A late copy of a request could restore a replica that was stopped meanwhile,
        and a late FULL request would stage replicas that were created meanwhile. The same number again is in order,
        because a controller without an answer sends a request again.

        Args:
            controller_epoch: of the request.
            number: the request's position among all requests of its controller in that epoch, as a correlation ID.
        """
        with self._handling:
            late = controller_epoch == self._latest[0] and number < self._latest[1]
            self._latest = max(self._latest, (controller_epoch, number))
        return not late  # a request of an earlier controller is refused by its epoch

    def forget(self, topic: str) -> None:
        """Forget the leader epochs of a topic whose replicas the store has renamed: the next of that name is another.

        Call it after ``logstore.namespaces.rename_topic`` or ``move_namespace``, with each old name (KIP516-13).
        """
        with self._handling:
            self._memory.epochs.pop(topic, None)

    def fence(self, partition: TopicPartition, topic_id: TopicId | None = None) -> KafkaError:
        """Return the answer to a fetch, list-offsets or epoch request; see ``LogStore.fence`` (KIP516-8)."""
        return self.store.fence(partition, topic_id)

    def leader_epoch(self, partition: TopicPartition) -> int | None:
        """Return the last leader epoch received for a partition; None: none received, or the partition is gone."""
        with self._handling:
            return self._memory.epochs.get(partition.topic, {}).get(partition.partition)


def decide(
    store: LogStore,
    request: ControlRequest,
    node_id: int,
    memory: BrokerMemory,
    epochs: tuple[int, int] | None = None,
) -> Decision | ControlResponse:
    """Look at the disks, and decide what a request changes and answers; nothing is changed.

    The store is only read, and the request is checked; ``epochs``: of the broker's registration, and the greatest
    controller epoch so far; None: as ``memory`` knows them.

    Returns:
        The decision; or the answer to a request that is too old as a whole, and changes nothing.
    """
    stale = staleness(request, *(epochs or (memory.known.broker_epoch, memory.known.controller_epoch)))
    if stale is not None:
        return refused(request, stale)
    present = look_at_disks(store, request, node_id)
    if isinstance(request, StopReplicaRequest):
        decision = decide_stop_replica(request, present, memory)
    else:
        decision = decide_leader_and_isr(request, node_id, present, memory)
    for remark in decision.remarks:
        logger.warning("%s", remark)
    return decision


def refused(request: ControlRequest, error: KafkaError) -> ControlResponse:
    """Answer a request that is not handled at all; a StopReplica is answered without its partitions (FACTS §4.5)."""
    return StopReplicaResponse(error) if isinstance(request, StopReplicaRequest) else error_response(request, error)


def answer_from(decision: Decision, outcome: Outcome, memory: BrokerMemory) -> ControlResponse:
    """Make the answer to a request from what was decided and what became of it; updates ``memory``."""
    topics = answers_by_topic(decision.request, remember(memory, decision, outcome))
    stops = isinstance(decision.request, StopReplicaRequest)
    return StopReplicaResponse(KafkaError.NONE, topics) if stops else LeaderAndIsrResponse(KafkaError.NONE, topics)


def staleness(request: ControlRequest, broker_epoch: int, controller_epoch: int) -> KafkaError | None:
    """Return the error of a request that is too old, or None; epochs are checked first (FACTS §4.2, 2-3; §4.5, 1-2).

    ``broker_epoch``: of the broker's registration; ``controller_epoch``: the greatest of all requests that it has
    handled.
    """
    if request.broker_epoch != -1 and request.broker_epoch < broker_epoch:
        return KafkaError.STALE_BROKER_EPOCH
    return KafkaError.STALE_CONTROLLER_EPOCH if request.controller_epoch < controller_epoch else None
