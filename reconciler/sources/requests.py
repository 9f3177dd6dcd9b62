"""A controller's requests as a desired state, from JSON (``request:FILE``) or from Kafka's bytes (``wire:FILE``).

``FILE@N`` names the broker that received the request, because a request does not. Both forms of one request make the
same state. The bytes begin with the request's header, which names the version; the length that goes before the header
on a connection may be there or not.

A LeaderAndIsr request speaks for one broker. Its state has a row for each partition that this broker should hold; a
partition without this broker among its replicas is known and not wanted here. Requests for several brokers make one
state, whose scope is all of them. One UpdateMetadata request speaks for the whole cluster, see ``update_metadata``.
Source: FACTS §5.1, §5.2, §5.4; KIP516-4, KIP516-9; DESIGN §4, §7.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from logstore.parallel import paused_gc
from reconciler.desired import TOPIC_SCHEMA, Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.protocol import (
    LONGEST_BEGINNING,
    LeaderAndIsrRequest,
    RequestType,
    TopicState,
    UnsupportedVersionError,
    UpdateMetadataRequest,
    begins_leader_and_isr,
    begins_update_metadata,
    decode_request,
    parse_metadata_request,
)
from reconciler.sources.files import first_bytes, read_file
from reconciler.sources.update_metadata import state_of

_SNIFFED_JSON = re.compile(rb'\s*\{.*"(?:controllerId|controller_id|topicStates|topic_states)"', re.DOTALL)
_SNIFFED_BYTES = 64 << 10
_RECEIVER = re.compile(r"(.+)@([0-9]{1,9})", re.ASCII | re.DOTALL)


MetadataRequest: TypeAlias = LeaderAndIsrRequest | UpdateMetadataRequest
"""A request that says where replicas belong."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request, the broker that received it, and the file it was read from."""

    request: LeaderAndIsrRequest
    node_id: int
    file: str


def is_json_request(path: str) -> bool:
    """Whether the path is a file that begins like a LeaderAndIsr or UpdateMetadata request as JSON."""
    return os.path.isfile(path) and _SNIFFED_JSON.match(first_bytes(path, _SNIFFED_BYTES)) is not None


def is_wire_request(path: str) -> bool:
    """Whether the path is a file that begins like the header of such a request with a readable client ID."""
    if not os.path.isfile(path):
        return False
    head = first_bytes(path, LONGEST_BEGINNING)
    return begins_leader_and_isr(head) or begins_update_metadata(head)


def load_json(paths: Sequence[str], location: str) -> DesiredState:
    """Read requests as JSON, and merge them into one state; see :func:`load_requests`."""
    return load_requests(paths, location, parse_metadata_request, "request")


def load_wire(paths: Sequence[str], location: str) -> DesiredState:
    """Read requests as bytes, and merge them into one state; see :func:`load_requests`."""
    return load_requests(paths, location, parse_wire, "wire")


def load_requests(
    paths: Sequence[str], location: str, parse: Callable[[bytes, str], MetadataRequest], scheme: str
) -> DesiredState:
    """Read requests and merge them into one state.

    Args:
        paths: each ``FILE``, or ``FILE@N`` where broker N received the request.
        location: the path as the user gave it.
        parse: makes a request of a file's bytes and of its name, which its errors show.
        scheme: of the source, for messages.

    Raises:
        UsageError: no such file; the receiver of a request is not known; neither of two for one broker is newer; or
            an UpdateMetadata request is not alone, or is given with a receiver.
        MetadataError: a file that cannot be read or parsed, or requests that contradict each other.
    """
    digest = hashlib.sha256()
    received = []
    with paused_gc():
        for path in paths:
            file, node_id = split_receiver(path)
            data = read_file(file)
            digest.update(data)
            request = parse(data, file)
            if isinstance(request, UpdateMetadataRequest):
                if node_id is not None or len(paths) > 1:
                    raise UsageError(
                        f"{file} is an UpdateMetadata request, which speaks for the whole cluster: give it alone, as "
                        f"{scheme}:{file}, and without a broker"
                    )
                return state_of(request, location, digest.hexdigest())
            received_by = receiver(request, file, scheme) if node_id is None else node_id
            received.append(ReceivedRequest(request, received_by, file))
        return merge(received, location, digest.hexdigest())


def split_receiver(path: str) -> tuple[str, int | None]:
    """Split ``FILE@N`` into the file and the broker; an existing file of the whole name takes precedence."""
    match = _RECEIVER.fullmatch(path)
    if match is None or os.path.lexists(path):
        return path, None
    return match[1], int(match[2])


def parse_wire(data: bytes, location: str) -> MetadataRequest:
    """Decode one LeaderAndIsr or UpdateMetadata request with its header, and with or without its length.

    Raises:
        MetadataError: the bytes are cut off or malformed, or the header is of another request or an unknown version.
    """
    if not data:
        raise MetadataError(f"{location} is empty: the bytes of a LeaderAndIsr request are expected")
    try:
        _, request = decode_request(data, location)
    except UnsupportedVersionError as error:
        raise MetadataError(
            f"{location} does not begin with the header of a LeaderAndIsr request of version 0 to 7, or of an "
            f"UpdateMetadata request of version 0 to 8: {error}"
        ) from error
    if not isinstance(request, LeaderAndIsrRequest | UpdateMetadataRequest):
        raise MetadataError(
            f"{location} is a StopReplica request, which says what a broker should let go and not what it should hold:"
            " give a LeaderAndIsr request"
        )
    return request


def receiver(request: LeaderAndIsrRequest, file: str, scheme: str = "request") -> int:
    """Find the broker that received a request: the only one among the replicas of every partition.

    Raises:
        UsageError: there is none or more than one; the message names them and the form ``scheme:FILE@N``.
    """
    candidates = sorted(request.receivers())
    if len(candidates) == 1:
        return candidates[0]
    found = f"any of brokers {', '.join(map(str, candidates))}" if candidates else "no one broker that it tells of"
    raise UsageError(
        f"{file} may have been sent to {found}: name the broker that received it, as {scheme}:{file}@"
        f"{candidates[0] if candidates else 'N'}"
    )


def merge(received: Sequence[ReceivedRequest], location: str, digest: str) -> DesiredState:
    """Make one state of requests; of several for one broker, the one with the greatest controller epoch counts.

    The state is FULL when every request is of type FULL, else INCREMENTAL.

    Raises:
        UsageError: two requests for one broker carry the same controller epoch, so neither is newer.
        MetadataError: requests give one topic two IDs, or two topics one ID.
    """
    newest, problems = _newest_per_broker(received)
    kinds = {each.request.type for each in newest}
    if len(kinds) > 1 and RequestType.FULL in kinds:
        problems.append("not every request is FULL, so what they do not mention does not count as not wanted")
    builder = DesiredBuilder()
    named: dict[str, set[int]] = {}
    for each in newest:
        for topic in each.request.topics:
            named.setdefault(topic.topic, set()).update(state.partition for state in topic.partitions)
            _add_topic(builder, topic, each.node_id)
    identity = MetadataIdentity(
        "request",
        location,
        completeness=Completeness.FULL if kinds == {RequestType.FULL} else Completeness.INCREMENTAL,
        scope=frozenset(each.node_id for each in newest),
        epoch=max(each.request.controller_epoch for each in newest),
        digest=digest,
        problems=tuple(problems),
    )
    return replace(builder.build(identity), topics=_topic_table(newest, named))


def _newest_per_broker(received: Sequence[ReceivedRequest]) -> tuple[list[ReceivedRequest], list[str]]:
    newest: dict[int, ReceivedRequest] = {}
    problems = []
    for each in sorted(received, key=lambda one: -one.request.controller_epoch):
        first = newest.setdefault(each.node_id, each)
        if first is each:
            continue
        if first.request.controller_epoch == each.request.controller_epoch:
            raise UsageError(
                f"{first.file} and {each.file} are both for broker {each.node_id} and of controller epoch"
                f" {each.request.controller_epoch}, so neither is known to be newer: name the one that counts"
            )
        problems.append(
            f"{each.file} (controller epoch {each.request.controller_epoch}) is passed over: {first.file} for broker"
            f" {each.node_id} is newer"
        )
    return list(newest.values()), problems


def _add_topic(builder: DesiredBuilder, topic: TopicState, node_id: int) -> None:
    """Add the rows of the receiver; rows of other brokers come from other requests."""
    topic_id = None if topic.topic_id is None else str(topic.topic_id)
    for state in topic.partitions:
        builder.partition(
            topic.topic,
            topic_id,
            state.partition,
            _only(node_id, state.replicas),
            isr=state.isr,
            adding=_only(node_id, state.adding),
            removing=_only(node_id, state.removing),
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
        )


def _only(node_id: int, brokers: Iterable[int]) -> tuple[int, ...]:
    return (node_id,) if node_id in brokers else ()


def _topic_table(newest: Sequence[ReceivedRequest], named: dict[str, set[int]]) -> pa.Table:
    """Make the table of all topics, each with the number of distinct partitions in all requests."""
    ids: dict[str, str | None] = {}
    owners: dict[str, str] = {}
    for each in newest:
        for topic in each.request.topics:
            topic_id = None if topic.topic_id is None else str(topic.topic_id)
            if ids.setdefault(topic.topic, topic_id) != topic_id:
                raise MetadataError(
                    f"{each.file} gives topic {topic.topic} the ID {topic_id or 'none'}, and another request gives it"
                    f" {ids[topic.topic] or 'none'}"
                )
            if topic_id and owners.setdefault(topic_id, topic.topic) != topic.topic:
                raise MetadataError(
                    f"{each.file} gives topic {topic.topic} the ID of topic {owners[topic_id]}: {topic_id}"
                )
    counts = [len(named[name]) for name in ids]
    return pa.table([list(ids), list(ids.values()), counts], schema=TOPIC_SCHEMA)
