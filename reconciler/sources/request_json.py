"""LeaderAndIsr requests as JSON: read and checked whole.

Reads Kafka's field names, KIP-516's own, and the wrapper of Kafka's request log. A document that is not a request is
refused with every reason and its place. Owns the JSON of requests; the files they lie in belong to ``request_files``,
the types to ``reconciler.protocol.requests``, and what requests make a cluster want to ``request_state``.
Source: FACTS §5.1, §5.2; KIP516-4.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import orjson

from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.topic import check_full_topic_name
from reconciler.desired import DesiredState
from reconciler.errors import InvalidRequestError
from reconciler.protocol import (
    INT64,
    JsonFields,
    LeaderAndIsrRequest,
    LiveLeader,
    PartitionState,
    RequestType,
    TopicState,
    check_extent,
)
from reconciler.sources.first_bytes import first_bytes
from reconciler.sources.request_files import MAX_REQUEST_BYTES, load_requests

__all__ = ["API_KEY", "MAX_REQUEST_BYTES", "load", "load_all", "parse", "parse_document", "recognises"]

API_KEY = 4
"""The number of LeaderAndIsr in the header of a request log."""

_SNIFFED = re.compile(rb'\s*\{.*"(?:controllerId|controller_id|topicStates|topic_states)"', re.DOTALL)
_SNIFFED_BYTES = 64 << 10


def recognises(path: str) -> bool:
    """Whether the path is a file that begins like a LeaderAndIsr request."""
    return os.path.isfile(path) and _SNIFFED.match(first_bytes(path, _SNIFFED_BYTES)) is not None


def load(path: str) -> DesiredState:
    """Read one request, ``FILE`` or ``FILE@N``; see :func:`load_all`."""
    return load_all([path], path)


def load_all(paths: Sequence[str], location: str) -> DesiredState:
    """Read requests, each ``FILE`` or ``FILE@N`` where N received it, and merge them into one state.

    Raises:
        UsageError: no such file; or it cannot be told who received a request, or which of two for one broker is newer.
        InvalidRequestError: a document that is not a request.
        MetadataError: a file that cannot be read, or requests that contradict each other.
    """
    return load_requests(paths, location, parse, "request")


def parse(data: bytes, location: str) -> LeaderAndIsrRequest:
    """Read one request.

    Raises:
        InvalidRequestError: with every reason, each as its place, what is expected and what is found.
    """
    if not data:
        raise InvalidRequestError(location, ["the file is empty"])
    check_extent(data, location)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InvalidRequestError(location, [f"it is no JSON: {error}"]) from error
    return parse_document(document, location)


def parse_document(document: object, location: str) -> LeaderAndIsrRequest:
    """Make a request of what JSON holds.

    Raises:
        InvalidRequestError: with every reason, each as its place, what is expected and what is found.
    """
    reasons: list[str] = []
    fields = _unwrapped(JsonFields.of(document, "", reasons))
    request = _request(fields) if fields else None
    if request is None or reasons:
        raise InvalidRequestError(location, reasons)
    return request


def _unwrapped(document: JsonFields | None) -> JsonFields | None:
    """The request inside a line of Kafka's request log, or the document itself."""
    if document is None or not document.has("request"):
        return document
    if document.has("requestHeader"):
        header = document.child("requestHeader")
        if header and header.has("requestApiKey") and header.raw("requestApiKey") != API_KEY:
            header.wrong("requestApiKey", f"{API_KEY} for LeaderAndIsr", header.raw("requestApiKey"))
    return document.child("request")


def _request(fields: JsonFields) -> LeaderAndIsrRequest:
    controller_epoch = fields.integer("controllerEpoch", "controller_epoch")
    return LeaderAndIsrRequest(
        controller_id=fields.integer("controllerId", "controller_id"),
        controller_epoch=controller_epoch,
        topics=_topics(fields),
        broker_epoch=fields.integer("brokerEpoch", "broker_epoch", default=-1, bound=INT64),
        type=_type(fields),
        is_kraft_controller=fields.boolean("isKRaftController", "is_kraft_controller", default=False),
        live_leaders=tuple(_live_leader(each) for each in fields.objects("liveLeaders", "live_leaders", optional=True)),
    )


def _type(fields: JsonFields) -> RequestType:
    if not isinstance(fields.raw("type"), str):
        return RequestType.of(fields.integer("type", default=RequestType.UNSPECIFIED))
    found = RequestType.named(fields.raw("type"))
    if found is None:
        fields.wrong("type", f"a number or one of {', '.join(RequestType.__members__)}", fields.raw("type"))
    return found or RequestType.UNSPECIFIED


def _topics(fields: JsonFields) -> tuple[TopicState, ...]:
    """Topics of version 2 and later, or of the list by partition before; each topic once, each partition once."""
    partitions: dict[str, dict[int, PartitionState]] = {}
    ids: dict[str, TopicId | None] = {}
    if fields.has("ungroupedPartitionStates") and not fields.has("topicStates", "topic_states"):
        for state in fields.objects("ungroupedPartitionStates"):
            name = _topic_name(state)
            ids[name] = None
            _add_partition(partitions.setdefault(name, {}), state, name)
    else:
        for topic in fields.objects("topicStates", "topic_states"):
            name = _topic_name(topic)
            topic_id = topic.topic_id()
            if ids.setdefault(name, topic_id) != topic_id:
                topic.wrong("topicId", f"the ID that {name} has before, {ids[name]}", topic.raw("topicId", "topic_id"))
            for state in topic.objects("partitionStates", "partition_states"):
                _add_partition(partitions.setdefault(name, {}), state, name)
    _check_distinct(ids, fields)
    return tuple(TopicState(name, ids[name], tuple(partitions.get(name, {}).values())) for name in ids)


def _check_distinct(ids: dict[str, TopicId | None], fields: JsonFields) -> None:
    owners: dict[TopicId, str] = {}
    for name, topic_id in ids.items():
        if topic_id is not None and owners.setdefault(topic_id, name) != name:
            fields.reasons.append(f"topic ID {topic_id}: expected of one topic, found of {owners[topic_id]} and {name}")


def _topic_name(fields: JsonFields) -> str:
    name = fields.text("topicName", "topic")
    try:
        check_full_topic_name(name or "unnamed")
    except InvalidNameError as error:
        fields.reasons.append(f"{fields.place('topicName')}: {error}")
    return name


def _add_partition(partitions: dict[int, PartitionState], fields: JsonFields, topic: str) -> None:
    state = PartitionState(
        partition=fields.integer("partitionIndex", "partition", least=0),
        controller_epoch=fields.integer("controllerEpoch", "controller_epoch"),
        leader=fields.integer("leader"),
        leader_epoch=fields.integer("leaderEpoch", "leader_epoch"),
        isr=fields.broker_ids("isr"),
        partition_epoch=fields.integer("partitionEpoch", "zkVersion", "zk_version"),
        replicas=fields.broker_ids("replicas"),
        adding=fields.broker_ids("addingReplicas", optional=True),
        removing=fields.broker_ids("removingReplicas", optional=True),
        is_new=fields.boolean("isNew", "is_new", default=False),
        leader_recovery_state=fields.integer("leaderRecoveryState", default=0),
    )
    if state.partition in partitions:
        fields.reasons.append(f"{fields.path}: {topic}-{state.partition} is there twice")
    partitions[state.partition] = state


def _live_leader(fields: JsonFields) -> LiveLeader:
    return LiveLeader(
        broker_id=fields.integer("brokerId", "id"),
        host=fields.text("hostName", "host"),
        port=fields.integer("port", least=0),
    )
