"""Checks every answer of a broker: by the topic ID on the disk of the replica that it comes from, and by its epochs.

The answers, to clients and to followers, come from the broker's ``WatchedNetwork``. The check must not ask the store's
fence, which it tests: it reads the replica's ``partition.metadata`` itself. A controller's request to an earlier
registration of the broker, or of an earlier controller, is never obeyed. Source: KIP516-8; FACTS §4.2, §4.5.
"""

from __future__ import annotations

from collections import Counter

from layout import partition_metadata
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.scan import read_metadata_file
from logstore.store import LogStore
from reconciler.protocol import LeaderAndIsrResponse, StopReplicaResponse, UpdateMetadataResponse
from reconciler.simulator.cluster import Member
from reconciler.simulator.kernel import (
    AlterIsrResponse,
    EpochEndRequest,
    EpochEndResponse,
    FetchRequest,
    FetchResponse,
    Journal,
    ListOffsetsRequest,
    ListOffsetsResponse,
    Numbered,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
)

_ASKS = (FetchRequest, ProduceRequest, ListOffsetsRequest, EpochEndRequest)
_ANSWERS = (FetchResponse, ProduceResponse, ListOffsetsResponse, EpochEndResponse)
_OBEYED = (LeaderAndIsrResponse, StopReplicaResponse, UpdateMetadataResponse)


def wrongly_served(member: Member, request: Request, response: Response) -> str | None:
    """Describe what is wrong with an answer; None: nothing.

    An answer without an error, to a request with a topic ID, must come from a live replica that has this topic ID on
    its disk, and every record in it must have been written under it.
    """
    if not isinstance(request, _ASKS) or not isinstance(response, _ANSWERS) or request.topic_id is None:
        return None
    if response.error is not KafkaError.NONE:
        return None
    what = f"{member.name} served a {type(request).__name__} for {request.partition} of topic ID {request.topic_id}"
    if isinstance(response, FetchResponse):
        for record in response.records:
            if record.topic_id != request.topic_id:
                return f"{what} with offset {record.offset}, written under {record.topic_id}: {record.value}"
    at = request.partition
    entries = member.broker.store.entries()
    if not at.topic:  # the request has an ID alone
        wanted = str(request.topic_id)
        named = [key for key, entry in entries.items() if entry.topic_id == wanted and key[1] == at.partition]
        at = TopicPartition(*named[0]) if named else at
    entry = entries.get((at.topic, at.partition))
    if entry is None:
        return f"{what}, and has no live replica of it"
    disks = member.disks
    number = disks.log_dirs.index(entry.log_dir)
    if number in disks.offline or disks.is_empty(number):
        return None  # the disk failed, or was replaced after that, and the broker has not noticed yet
    found = _topic_id(f"{entry.log_dir}/{entry.path}", at)
    return None if found == request.topic_id else f"{what}, and {entry.path} on its disk has {found or 'none'}"


class EpochCheck:
    """Checks that each broker of a cluster obeys no request that is of an earlier registration or controller."""

    def __init__(self) -> None:
        """Begin; no request was answered yet."""
        self._obeyed: dict[int, tuple[LogStore, int]] = {}

    def wrongly_obeyed(self, member: Member, request: Request, response: Response, registered: int) -> str | None:
        """Describe what is wrong with an answer; None: nothing. ``registered``: the transaction of the registration."""
        if not isinstance(request, Numbered) or not isinstance(response, _OBEYED) or response.error != KafkaError.NONE:
            return None
        sent, store = request.request, member.broker.store
        before = self._obeyed.get(member.node_id)
        newest = before[1] if before is not None and before[0] is store else -1
        self._obeyed[member.node_id] = store, max(newest, sent.controller_epoch)
        what = f"{member.name} obeyed a {type(sent).__name__} of controller epoch {sent.controller_epoch}"
        if sent.controller_epoch < newest:
            return f"{what}, and had obeyed one of {newest} before"
        if -1 < sent.broker_epoch < registered:
            return f"{what} to its registration {sent.broker_epoch}, and it is registered as {registered}"
        return None


def count_errors(response: Response, journal: Journal) -> None:
    """Count the error of an answer, and those of the partitions in it, by the kind of request."""
    kind = type(response).__name__.removesuffix("Response")
    if isinstance(response, LeaderAndIsrResponse | StopReplicaResponse):
        found = Counter(each.error for topic in response.topics for each in topic.partitions)
        found[response.error] += 1
    elif isinstance(response, (*_ANSWERS, AlterIsrResponse, UpdateMetadataResponse)):
        found = Counter([int(response.error)])
    else:
        return
    for error, times in found.items():
        if error != KafkaError.NONE:
            journal.reach(f"answer {kind} {KafkaError(error).name}", times)


def _topic_id(path: str, partition: TopicPartition) -> TopicId | None:
    found = read_metadata_file(path).found
    if found is None or partition_metadata.contradiction(found, partition.topic, partition.partition):
        return None
    return found.topic_id
