"""The broker: remembers the epochs that controllers told it, and handles one control request after the other.

What a broker remembers is in memory only, as in Kafka: after a restart the first request brings it all again. Memory
grows with the partitions of a request alone: some 130 bytes for each in the request itself, 200 while it is handled, 75
in the answer, and 50 that stay. Source: DESIGN §4; FACTS §4.2; KIP516-4 to -8, KIP516-11.
"""

from __future__ import annotations

import threading
from typing import overload

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.parallel import paused_gc
from logstore.store import LogStore
from reconciler.broker.leader_and_isr import handle_leader_and_isr
from reconciler.broker.stop_replica import handle_stop_replica
from reconciler.errors import UsageError
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


class Broker:
    """One broker over its store. Requests are handled one at a time, from any thread.

    Attributes:
        store: its log dirs.
        node_id: its number.
        broker_epoch: of its registration; whoever registers it sets it. -1: no request is stale by it.
        controller_epoch: the greatest that it was told.
    """

    def __init__(self, store: LogStore, node_id: int | None = None, *, broker_epoch: int = -1) -> None:
        """Start with what the disks hold, and no epochs.

        Args:
            store: open, and changed by nobody who does not mind that requests change it too.
            node_id: None: as the log dirs say.
            broker_epoch: of its registration.

        Raises:
            UsageError: the log dirs belong to another broker, or to none that they could name.
        """
        named = next((each.identity.node_id for each in store.log_dirs if each.identity.node_id is not None), None)
        own = named if node_id is None else node_id
        if own is None:
            raise UsageError("the log dirs do not say whose they are: give the broker's number")
        if named is not None and own != named:
            raise UsageError(f"the log dirs belong to broker {named}, and not to broker {node_id}")
        self.store = store
        self.node_id = own
        self.broker_epoch = broker_epoch
        self.controller_epoch = 0
        self._epochs: dict[str, dict[int, int]] = {}
        self._latest = (0, 0)
        self._handling = threading.RLock()

    @overload
    def handle(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse: ...

    @overload
    def handle(self, request: StopReplicaRequest) -> StopReplicaResponse: ...

    def handle(self, request: ControlRequest) -> ControlResponse:
        """Do what a controller asks for, as far as it can be done, and say so partition by partition.

        To handle the same request again changes nothing; one that was cut short is finished by it.

        Raises:
            InvalidRequestError: the request is malformed; it has all the reasons, and nothing was changed.
        """
        check_request(request, f"the request of controller {request.controller_id}")
        with self._handling, paused_gc():
            stale = staleness(request, self.broker_epoch, self.controller_epoch)
            if isinstance(request, StopReplicaRequest):
                if stale is not None:
                    return StopReplicaResponse(stale)
                self.controller_epoch = request.controller_epoch
                return handle_stop_replica(self.store, request, self._epochs)
            if stale is not None:
                return error_response(request, stale)
            self.controller_epoch = request.controller_epoch
            return handle_leader_and_isr(self.store, request, self.node_id, self._epochs)

    def comes_in_order(self, controller_epoch: int, number: int) -> bool:
        """Whether a request comes after all that was asked about before; what is asked about is remembered.

        Ask before :meth:`handle` wherever a request can overtake another, as over a new connection: a copy that comes
        late could bring back a replica that was stopped since, and a late FULL request would stage what was made since.
        The same number again is in order, for whoever got no answer sends a request once more.

        Args:
            controller_epoch: of the request.
            number: its place among all that its controller sent in that epoch, as a correlation ID.
        """
        with self._handling:
            late = controller_epoch == self._latest[0] and number < self._latest[1]
            self._latest = max(self._latest, (controller_epoch, number))
        return not late  # what an earlier controller sends is answered by its epoch

    def fence(self, partition: TopicPartition, topic_id: TopicId | None = None) -> KafkaError:
        """What a fetch, list-offsets or epoch request is answered; see ``LogStore.fence`` (KIP516-8)."""
        return self.store.fence(partition, topic_id)

    def leader_epoch(self, partition: TopicPartition) -> int | None:
        """The last leader epoch that it was told for a partition; None: it was told none, or hosts it no more."""
        with self._handling:
            return self._epochs.get(partition.topic, {}).get(partition.partition)


def staleness(request: ControlRequest, broker_epoch: int, controller_epoch: int) -> KafkaError | None:
    """Why a request is too old to be heard; epochs come before anything else (FACTS §4.2, 2 and 3; §4.5, 1 and 2).

    Args:
        request: what a controller says.
        broker_epoch: of the broker's registration.
        controller_epoch: the greatest that the broker was told.
    """
    if request.broker_epoch != -1 and request.broker_epoch < broker_epoch:
        return KafkaError.STALE_BROKER_EPOCH
    return KafkaError.STALE_CONTROLLER_EPOCH if request.controller_epoch < controller_epoch else None
