"""Control requests and their answers as JSON, both ways: Kafka's own names, and those that KIP-516 draws.

Written is what Kafka's tools would write for a version, from the tables of ``wire``. Read is any version, told by the
fields that are there; what is no such document is refused with every reason and its place. LeaderAndIsr requests are
read by ``sources.request_json``. Source: FACTS §5.1, §5.3; KIP516-4, KIP516-7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from layout.ids import TopicId
from logstore.parallel import paused_gc
from reconciler.errors import InvalidRequestError
from reconciler.protocol.json_fields import INT64, JsonFields
from reconciler.protocol.messages import tree
from reconciler.protocol.requests import ControlRequest, StopPartition, StopReplicaRequest, StopTopic
from reconciler.protocol.requests_check import check_request
from reconciler.protocol.responses import (
    ControlResponse,
    LeaderAndIsrResponse,
    PartitionError,
    StopReplicaResponse,
    TopicErrors,
)
from reconciler.protocol.tables import Version

_INT16 = 1 << 15
_Errors = tuple[str, TopicId | None, PartitionError]


def encode_json(message: ControlRequest | ControlResponse, version: Version) -> bytes:
    """Write a request or an answer as JSON.

    Args:
        message: what is written.
        version: whose fields there are; ``kip-516`` for the proposal's own names.

    Raises:
        UnsupportedVersionError: there is no such version, or it has no words for what the message says.
    """
    return orjson.dumps(tree(message, version))


def parse_stop_replica(data: bytes, location: str) -> StopReplicaRequest:
    """Read a StopReplica request of any version.

    Raises:
        InvalidRequestError: with every reason, each as its place, what is expected and what is found.
    """
    what = "StopReplica request"
    document = _document(data, location, what)
    flag = document.boolean("deletePartitions", "delete_partitions", default=False)
    request = StopReplicaRequest(
        controller_id=document.integer("controllerId", "controller_id"),
        controller_epoch=document.integer("controllerEpoch", "controller_epoch"),
        topics=tuple(_grouped(_stopped(document, flag), document)),
        broker_epoch=document.integer("brokerEpoch", "broker_epoch", default=-1, bound=INT64),
        is_kraft_controller=document.boolean("isKRaftController", default=False),
    )
    _refuse(document, location, what)
    check_request(request, location)
    return request


def parse_response(
    kind: type[LeaderAndIsrResponse] | type[StopReplicaResponse], data: bytes, location: str
) -> ControlResponse:
    """Read an answer of any version; raises as :func:`parse_stop_replica`."""
    what = "LeaderAndIsr response" if kind is LeaderAndIsrResponse else "StopReplica response"
    document = _document(data, location, what)
    grouped: dict[tuple[str, TopicId | None], list[PartitionError]] = {}
    for topic, topic_id, found in _errors(document):
        grouped.setdefault((topic, topic_id), []).append(found)
    error = document.integer("errorCode", "error_code", bound=_INT16)
    _refuse(document, location, what)
    return kind(error, tuple(TopicErrors(*key, tuple(errors)) for key, errors in grouped.items()))


def _document(data: bytes, location: str, what: str) -> JsonFields:
    try:
        with paused_gc():
            loaded = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InvalidRequestError(location, [f"it is no JSON: {error}"], what) from error
    reasons: list[str] = []
    document = JsonFields.of(loaded, "", reasons)
    if document is None:
        raise InvalidRequestError(location, reasons, what)
    return document


def _refuse(document: JsonFields, location: str, what: str) -> None:
    if document.reasons:
        raise InvalidRequestError(location, document.reasons, what)


def _stopped(document: JsonFields, flag: bool) -> Iterator[tuple[str, TopicId | None, StopPartition]]:
    """Each partition with its topic, from whichever list the version has."""
    if document.has("ungroupedPartitions"):
        for each in document.objects("ungroupedPartitions"):
            yield each.text("topicName"), None, StopPartition(each.integer("partitionIndex", least=0), delete=flag)
    elif document.has("topics", "partitions"):
        for topic in document.objects("topics", "partitions"):
            name, topic_id = topic.text("name", "topic"), topic.topic_id()
            numbers = "partitionIndexes" if topic.has("partitionIndexes") else "partition_ids"
            # They are numbers under the rules of broker ids: distinct, and not negative.
            for number in topic.broker_ids(numbers):
                yield name, topic_id, StopPartition(number, delete=flag)
    else:
        for topic in document.objects("topicStates"):
            name = topic.text("topicName")
            for state in topic.objects("partitionStates"):
                yield (
                    name,
                    None,
                    StopPartition(
                        state.integer("partitionIndex", least=0),
                        state.integer("leaderEpoch", default=-1),
                        state.boolean("deletePartition", default=False),
                    ),
                )


def _grouped(stopped: Iterable[tuple[str, TopicId | None, StopPartition]], document: JsonFields) -> Iterator[StopTopic]:
    """One topic for each name; the same name under two IDs is a reason."""
    partitions: dict[str, list[StopPartition]] = {}
    ids: dict[str, TopicId | None] = {}
    for name, topic_id, partition in stopped:
        if ids.setdefault(name, topic_id) != topic_id:
            document.reasons.append(f"topic {name!r:.80} is there under the IDs {ids[name]} and {topic_id}")
        partitions.setdefault(name, []).append(partition)
    for name, states in partitions.items():
        yield StopTopic(name, ids[name], tuple(states))


def _errors(document: JsonFields) -> Iterator[_Errors]:
    """Each partition's answer with its topic, from whichever list the version has."""
    if document.has("topics"):
        for topic in document.objects("topics"):
            topic_id = topic.topic_id()
            for error in topic.objects("partitionErrors"):
                yield "", topic_id, _error(error)
        return
    for error in document.objects("partitionErrors", "partitions"):
        name = error.text("topicName", "topic") if error.has("topicName", "topic") else ""
        yield name, error.topic_id(), _error(error)


def _error(fields: JsonFields) -> PartitionError:
    number = fields.integer("partitionIndex", "partition", least=0)
    return PartitionError(number, fields.integer("errorCode", "error_code", bound=_INT16))
