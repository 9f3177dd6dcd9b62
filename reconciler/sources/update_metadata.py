"""An UpdateMetadata request as a desired state: what a controller says of the whole cluster (FACTS §5.4).

It speaks for every broker, whoever received it, and names the topics that changed; only one of type FULL has them all.
A partition that is being deleted counts as wanted until it is gone, as in the other sources. What the request does not
say is not made up: no reassignment, no log dir, and no time. Source: KIP516-9; DESIGN §7.
"""

from __future__ import annotations

from reconciler.desired import Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.protocol import RequestType, UpdateMetadataRequest
from reconciler.text import count, listed

_DURING_DELETE = -2
"""The leader of a partition whose topic is being deleted."""


def state_of(request: UpdateMetadataRequest, location: str, digest: str) -> DesiredState:
    """Make the desired state of all brokers.

    Args:
        request: checked.
        location: the path as the user gave it.
        digest: of the bytes that were read.
    """
    builder = DesiredBuilder()
    for topic in request.topics:
        topic_id = None if topic.topic_id is None else str(topic.topic_id)
        builder.topic(topic.topic, topic_id)
        for state in topic.partitions:
            builder.partition(
                topic.topic,
                topic_id,
                state.partition,
                state.replicas,
                isr=state.isr,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
            )
    going = [
        topic.topic for topic in request.topics if any(state.leader == _DURING_DELETE for state in topic.partitions)
    ]
    identity = MetadataIdentity(
        "request",
        location,
        completeness=Completeness.FULL if request.type is RequestType.FULL else Completeness.INCREMENTAL,
        epoch=request.controller_epoch,
        digest=digest,
        problems=(f"{count(len(going), 'topic')} being deleted still counted as wanted: {listed(going)}",)
        if going
        else (),
    )
    return builder.build(identity)
