"""Control requests and their answers as JSON, both ways: with Kafka's own names, or with those of KIP-516.

JSON is written as Kafka's tools would write it for a version, by the same tables as the bytes. Any version is read; the
fields that are present identify it. A document that is no such message is refused with every reason and its place.
LeaderAndIsr requests may stand in the wrapper of Kafka's request log. Source: FACTS §5.1 to §5.3; KIP516-4, KIP516-7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.json_text import FieldReader
from layout.topic import check_full_topic_name
from reconciler.errors import InvalidRequestError
from reconciler.protocol import proposals
from reconciler.protocol.check import MAX_PARTITIONS, check_extent, check_request
from reconciler.protocol.json_fields import read_fields, topic_id_of, unknown_fields
from reconciler.protocol.messages import AnyRequest, AnyResponse, tree
from reconciler.protocol.proposals import NO_DELAY, DeletePartitionsRequest, DeletePartitionsResponse
from reconciler.protocol.requests import (
    ControlResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LiveLeader,
    PartitionError,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    StopTopic,
    TopicState,
    errors_by_topic,
)
from reconciler.protocol.schema import Message, Struct
from reconciler.protocol.tables import LEADER_AND_ISR, STOP_REPLICA, Version
from reconciler.protocol.update_metadata import (
    PROPOSED_WITH_IDS,
    PROPOSED_WITH_MODE,
    UPDATE_METADATA,
    ControllerRequest,
    UpdateMetadataRequest,
)

_STOP_REPLICA_FIELDS = frozenset(
    {"deletePartitions", "delete_partitions", "ungroupedPartitions", "topics", "partitions"}
)
_LEADER_AND_ISR_FIELDS = frozenset({"ungroupedPartitionStates", "topic_states", "liveLeaders", "live_leaders", "type"})
_UPDATE_METADATA_FIELDS = frozenset({"liveBrokers", "live_brokers"})
_OF_UPDATE_METADATA_PARTITIONS = frozenset({"offlineReplicas", "offline_replicas", "mode"})
_FORMS: dict[str, tuple[Struct, ...]] = {
    "LeaderAndIsr": (LEADER_AND_ISR.body, proposals.LEADER_AND_ISR.body),
    "StopReplica": (STOP_REPLICA.body, proposals.STOP_REPLICA.body),
    "UpdateMetadata": (UPDATE_METADATA.body, PROPOSED_WITH_IDS.body, PROPOSED_WITH_MODE.body),
    "DeletePartitions": (proposals.DELETE_PARTITIONS.body,),
}
_FURTHER_NAMES = frozenset({"is_kraft_controller", "zkVersion"})
"""Names that are read, and stand in no table: ours, and that of a release before 2.8."""


def encode_json(message: AnyRequest | AnyResponse, version: Version) -> bytes:
    """Write a request or an answer as JSON.

    Args:
        message: the request or the answer.
        version: decides on the fields; ``kip-516`` or ``kip-694`` for the proposal's own names.

    Raises:
        UnsupportedVersionError: there is no such version, or it cannot express the message.
    """
    return orjson.dumps(tree(message, version))


def parse_request(data: bytes, location: str) -> ControllerRequest:
    """Read a controller's request of any version; its fields or its log line identify it.

    It may be carried out, so a field that no form of it has is a reason to refuse it.

    Raises:
        InvalidRequestError: with every reason: its place, the expected and the found value.
    """
    document = _loaded(data, location)
    found, key = _request_in(document)
    if not isinstance(found, dict):
        return _leader_and_isr(document, location)
    if _is_of(UPDATE_METADATA, key, found, _is_update_metadata):
        return _update_metadata(found, location, _unknown(found, "UpdateMetadata"))
    if not _is_of(STOP_REPLICA, key, found, _is_stop_replica):
        return _leader_and_isr(document, location, _unknown(found, "LeaderAndIsr"))
    number = _count_stopped(found)
    if number > MAX_PARTITIONS:
        reason = f"it names {number} partitions, and {MAX_PARTITIONS} are the most that one request may name"
        raise InvalidRequestError(location, [reason], "StopReplica request")
    return _stop_replica(found, location, _unknown(found, "StopReplica"))


def parse_metadata_request(data: bytes, location: str) -> LeaderAndIsrRequest | UpdateMetadataRequest:
    """Read a request that says where replicas belong, which is not carried out; otherwise as :func:`parse_request`.

    A field that no form has is passed over, as in the metadata that later releases write.
    """
    document = _loaded(data, location)
    found, key = _request_in(document)
    if isinstance(found, dict) and _is_of(UPDATE_METADATA, key, found, _is_update_metadata):
        return _update_metadata(found, location)
    return _leader_and_isr(document, location)


def parse_leader_and_isr(data: bytes, location: str) -> LeaderAndIsrRequest:
    """Read a LeaderAndIsr request of any version; raises as :func:`parse_request`."""
    return _leader_and_isr(_loaded(data, location), location)


def parse_stop_replica(data: bytes, location: str) -> StopReplicaRequest:
    """Read a StopReplica request of any version; raises as :func:`parse_request`."""
    return _stop_replica(_loaded(data, location, "StopReplica request"), location)


def parse_response(
    kind: type[LeaderAndIsrResponse] | type[StopReplicaResponse], data: bytes, location: str
) -> ControlResponse:
    """Read an answer of any version; raises as :func:`parse_request`."""
    what = "LeaderAndIsr response" if kind is LeaderAndIsrResponse else "StopReplica response"
    document = _object(_loaded(data, location, what), location, what)
    topics = errors_by_topic(_partition_errors(document))
    error = document.integer("errorCode", "error_code", bits=16)
    _refuse(document, location, what)
    return kind(error, topics)


def parse_delete_partitions(data: bytes, location: str) -> DeletePartitionsRequest:
    """Read a DeletePartitions request, with one delay or with one for each topic (KIP694-2); raises as the others."""
    what = "DeletePartitions request"
    document = _loaded(data, location, what)
    known = _unknown(document, "DeletePartitions") if isinstance(document, dict) else ()
    fields = _object(document, location, what, known)
    request = read_fields(proposals.DELETE_PARTITIONS.body, fields)
    assert isinstance(request, DeletePartitionsRequest)
    for number, topic in enumerate(request.topics):
        if topic.delay_ms == NO_DELAY:
            fields.missing(f"topics[{number}].delete_partitions_delay")
    _refuse(fields, location, what)
    return request


def parse_delete_partitions_response(data: bytes, location: str) -> DeletePartitionsResponse:
    """Read the answer to a DeletePartitions request; raises as :func:`parse_request`."""
    what = "DeletePartitions response"
    fields = _object(_loaded(data, location, what), location, what)
    response = read_fields(proposals.DELETE_PARTITIONS_RESPONSE.body, fields)
    _refuse(fields, location, what)
    assert isinstance(response, DeletePartitionsResponse)
    return response


def _loaded(data: bytes, location: str, what: str = "LeaderAndIsr request") -> Any:
    """Parse JSON that is no larger than the longest request."""
    check_extent(data, location)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        reason = f"it is no JSON: {error}" if data else "the file is empty"
        raise InvalidRequestError(location, [reason], what) from error


def _object(document: object, location: str, what: str, known: Iterable[str] = ()) -> FieldReader:
    """Read a document whose reasons begin with those that are known of it."""
    reasons = list(known)
    fields = FieldReader.of(document, "", reasons)
    if fields is None:
        raise InvalidRequestError(location, reasons, what)
    return fields


def _refuse(document: FieldReader, location: str, what: str) -> None:
    if document.reasons:
        raise InvalidRequestError(location, document.reasons, what)


def _is_stop_replica(fields: Mapping[str, Any]) -> bool:
    """Whether a document is a StopReplica request; where it has ``topicStates``, the first partition decides."""
    if not _LEADER_AND_ISR_FIELDS.isdisjoint(fields):
        return False
    if not _STOP_REPLICA_FIELDS.isdisjoint(fields):
        return True
    topics = fields.get("topicStates")
    for topic in topics if isinstance(topics, list) else ():
        states = topic.get("partitionStates") if isinstance(topic, dict) else None
        for state in states if isinstance(states, list) else ():
            return isinstance(state, dict) and "deletePartition" in state
    return False


def _request_in(document: Any) -> tuple[Any, int | None]:
    """Take the wrapper of Kafka's request log off; return the request, and the API key of its header."""
    if not isinstance(document, dict) or not isinstance(document.get("request"), dict):
        return document, None
    header = document.get("requestHeader")
    return document["request"], header.get("requestApiKey") if isinstance(header, dict) else None


def _is_of(message: Message, key: int | None, found: Any, looks: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Whether a document is of a kind: by the API key where a header has one, else by its fields."""
    return key == message.key if key is not None else looks(found)


def _is_update_metadata(fields: Mapping[str, Any]) -> bool:
    """Whether a document has a field that only UpdateMetadata has, in itself or in any of its partitions."""
    if not _UPDATE_METADATA_FIELDS.isdisjoint(fields):
        return True
    return any(not _OF_UPDATE_METADATA_PARTITIONS.isdisjoint(row) for row in _rows(fields))


def _rows(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the topics and the partitions of a document, whatever they hold."""
    lists = (fields.get(name) for name in ("topicStates", "topic_states", "ungroupedPartitionStates"))
    rows = [row for each in lists if isinstance(each, list) for row in each if isinstance(row, dict)]
    below = (row.get(name) for row in rows for name in ("partitionStates", "partition_states"))
    rows += [state for each in below if isinstance(each, list) for state in each if isinstance(state, dict)]
    return rows


def _unknown(document: Mapping[str, Any], kind: str) -> list[str]:
    """Give the reasons to refuse a request with fields that no form of it has: they may say what it means."""
    found = unknown_fields(document, _FORMS[kind], _FURTHER_NAMES)
    return sorted(f"{place}: no {kind} request has such a field" for place in found)


def _update_metadata(document: object, location: str, reasons: Iterable[str] = ()) -> UpdateMetadataRequest:
    """Make an UpdateMetadata request of a decoded document, by the table of the form whose names it has."""
    what = "UpdateMetadata request"
    fields = _object(document, location, what, reasons)
    table = UPDATE_METADATA
    if fields.has("controller_id", "topic_states", "live_brokers"):
        table = PROPOSED_WITH_MODE if any("mode" in row for row in _rows(fields.values)) else PROPOSED_WITH_IDS
    request = read_fields(table.body, fields)
    _refuse(fields, location, what)
    assert isinstance(request, UpdateMetadataRequest)
    check_request(request, location)
    return request


def _count_stopped(fields: Mapping[str, Any]) -> int:
    """Count the partitions of a StopReplica document, before they are made into objects."""
    number = 0
    for name in ("ungroupedPartitions", "topics", "partitions", "topicStates"):
        listed = fields.get(name)
        if not isinstance(listed, list):
            continue
        number += len(listed)
        for topic in listed:
            for inner in ("partitionIndexes", "partition_ids", "partitionStates"):
                below = topic.get(inner) if isinstance(topic, dict) else None
                number += len(below) if isinstance(below, list) else 0
    return number


def _leader_and_isr(document: object, location: str, known: Iterable[str] = ()) -> LeaderAndIsrRequest:
    """Make a LeaderAndIsr request of a decoded document, which may be a line of Kafka's request log."""
    reasons = list(known)
    fields = _unwrapped(FieldReader.of(document, "", reasons))
    request = _read_leader_and_isr(fields) if fields else None
    if request is None or reasons:
        raise InvalidRequestError(location, reasons)
    check_request(request, location)
    return request


def _stop_replica(document: object, location: str, reasons: Iterable[str] = ()) -> StopReplicaRequest:
    """Make a StopReplica request of a decoded document."""
    what = "StopReplica request"
    fields = _object(document, location, what, reasons)
    flag = fields.boolean("deletePartitions", "delete_partitions", default=False)
    request = StopReplicaRequest(
        controller_id=fields.integer("controllerId", "controller_id"),
        controller_epoch=fields.integer("controllerEpoch", "controller_epoch"),
        topics=tuple(_stop_topics(_stop_partitions(fields, flag), fields)),
        broker_epoch=fields.integer("brokerEpoch", "broker_epoch", default=-1, bits=64),
        is_kraft_controller=fields.boolean("isKRaftController", default=False),
    )
    _refuse(fields, location, what)
    check_request(request, location)
    return request


def _unwrapped(document: FieldReader | None) -> FieldReader | None:
    """The request inside a line of Kafka's request log, or the document itself."""
    if document is None or not document.has("request"):
        return document
    if document.has("requestHeader"):
        header = document.child("requestHeader")
        if header and header.has("requestApiKey") and header.raw("requestApiKey") != LEADER_AND_ISR.key:
            header.wrong("requestApiKey", f"{LEADER_AND_ISR.key} for LeaderAndIsr", header.raw("requestApiKey"))
    return document.child("request")


def _read_leader_and_isr(fields: FieldReader) -> LeaderAndIsrRequest:
    controller_epoch = fields.integer("controllerEpoch", "controller_epoch")
    return LeaderAndIsrRequest(
        controller_id=fields.integer("controllerId", "controller_id"),
        controller_epoch=controller_epoch,
        topics=_topic_states(fields),
        broker_epoch=fields.integer("brokerEpoch", "broker_epoch", default=-1, bits=64),
        type=_request_type(fields),
        is_kraft_controller=fields.boolean("isKRaftController", "is_kraft_controller", default=False),
        live_leaders=tuple(_live_leader(each) for each in fields.objects("liveLeaders", "live_leaders", optional=True)),
    )


def _request_type(fields: FieldReader) -> RequestType:
    if not isinstance(fields.raw("type"), str):
        return RequestType.of(fields.integer("type", default=RequestType.UNSPECIFIED))
    found = RequestType.named(fields.raw("type"))
    if found is None:
        fields.wrong("type", f"a number or one of {', '.join(RequestType.__members__)}", fields.raw("type"))
    return found or RequestType.UNSPECIFIED


def _topic_states(fields: FieldReader) -> tuple[TopicState, ...]:
    """Read the topics of version 2 and later, or of the older list by partition; each topic and partition once."""
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
            topic_id = topic_id_of(topic)
            if ids.setdefault(name, topic_id) != topic_id:
                topic.wrong("topicId", f"the ID that {name} has before, {ids[name]}", topic.raw("topicId", "topic_id"))
            for state in topic.objects("partitionStates", "partition_states"):
                _add_partition(partitions.setdefault(name, {}), state, name)
    _check_distinct(ids, fields)
    return tuple(TopicState(name, ids[name], tuple(partitions.get(name, {}).values())) for name in ids)


def _check_distinct(ids: dict[str, TopicId | None], fields: FieldReader) -> None:
    owners: dict[TopicId, str] = {}
    for name, topic_id in ids.items():
        if topic_id is not None and owners.setdefault(topic_id, name) != name:
            fields.reasons.append(f"topic ID {topic_id}: expected of one topic, found of {owners[topic_id]} and {name}")


def _topic_name(fields: FieldReader) -> str:
    name = fields.text("topicName", "topic")
    try:
        check_full_topic_name(name or "unnamed")
    except InvalidNameError as error:
        fields.reasons.append(f"{fields.place('topicName')}: {error}")
    return name


def _add_partition(partitions: dict[int, PartitionState], fields: FieldReader, topic: str) -> None:
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


def _live_leader(fields: FieldReader) -> LiveLeader:
    return LiveLeader(
        fields.integer("brokerId", "id"), fields.text("hostName", "host"), fields.integer("port", least=0)
    )


def _stop_partitions(document: FieldReader, flag: bool) -> Iterator[tuple[str, TopicId | None, StopPartition]]:
    """Yield each partition with its topic, from the list that the version has."""
    if document.has("ungroupedPartitions"):
        for each in document.objects("ungroupedPartitions"):
            yield each.text("topicName"), None, StopPartition(each.integer("partitionIndex", least=0), delete=flag)
    elif document.has("topics", "partitions"):
        for topic in document.objects("topics", "partitions"):
            name, topic_id = topic.text("name", "topic"), topic_id_of(topic)
            numbers = "partitionIndexes" if topic.has("partitionIndexes") else "partition_ids"
            # Partition numbers follow the rules of broker ids: distinct, and not negative.
            for number in topic.broker_ids(numbers):
                yield name, topic_id, StopPartition(number, delete=flag)
    else:
        for topic in document.objects("topicStates"):
            name = topic.text("topicName")
            for state in topic.objects("partitionStates"):
                number, epoch = state.integer("partitionIndex", least=0), state.integer("leaderEpoch", default=-1)
                yield name, None, StopPartition(number, epoch, state.boolean("deletePartition", default=False))


def _stop_topics(
    stopped: Iterable[tuple[str, TopicId | None, StopPartition]], document: FieldReader
) -> Iterator[StopTopic]:
    """Group partitions by topic name; the same name under two IDs is a reason."""
    partitions: dict[str, list[StopPartition]] = {}
    ids: dict[str, TopicId | None] = {}
    for name, topic_id, partition in stopped:
        if ids.setdefault(name, topic_id) != topic_id:
            document.reasons.append(f"topic {name!r:.80} is there under the IDs {ids[name]} and {topic_id}")
        partitions.setdefault(name, []).append(partition)
    for name, states in partitions.items():
        yield StopTopic(name, ids[name], tuple(states))


def _partition_errors(document: FieldReader) -> Iterator[tuple[str, TopicId | None, PartitionError]]:
    """Yield each partition's answer with its topic, from the list that the version has."""
    if document.has("topics"):
        for topic in document.objects("topics"):
            topic_id = topic_id_of(topic)
            for error in topic.objects("partitionErrors"):
                yield "", topic_id, _partition_error(error)
        return
    for error in document.objects("partitionErrors", "partitions"):
        name = error.text("topicName", "topic") if error.has("topicName", "topic") else ""
        yield name, topic_id_of(error), _partition_error(error)


def _partition_error(fields: FieldReader) -> PartitionError:
    number = fields.integer("partitionIndex", "partition", least=0)
    return PartitionError(number, fields.integer("errorCode", "error_code", bits=16))
