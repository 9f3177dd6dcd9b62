"""What LeaderAndIsr requests make a cluster want: who received each, and one desired state of several.

A request speaks for one broker, which it does not name. The state of a request has a row for each partition that this
broker should hold; a partition without this broker among its replicas is known and not wanted here. Requests for
several brokers make one state, whose scope is all of them. Source: FACTS §5.2; KIP516-4; DESIGN §4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from reconciler.desired import TOPIC_SCHEMA, Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.protocol import LeaderAndIsrRequest, RequestType, TopicState


@dataclass(frozen=True, slots=True)
class Received:
    """A request, the broker that received it, and the file it was read from."""

    request: LeaderAndIsrRequest
    node_id: int
    file: str


def receiver(request: LeaderAndIsrRequest, file: str, scheme: str = "request") -> int:
    """The broker that received a request: the only one among the replicas of every partition.

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


def merge(received: Sequence[Received], location: str, digest: str) -> DesiredState:
    """One state of requests; of several for one broker, that with the greatest controller epoch counts.

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


def _newest_per_broker(received: Sequence[Received]) -> tuple[list[Received], list[str]]:
    newest: dict[int, Received] = {}
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
    """Add the rows of one broker; the other replicas are other requests' matter."""
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


def _topic_table(newest: Sequence[Received], named: dict[str, set[int]]) -> pa.Table:
    """The topics of all requests, each with the number of distinct partitions that they name."""
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
