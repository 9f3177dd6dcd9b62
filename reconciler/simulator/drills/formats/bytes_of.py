"""Writes a controller's requests as bytes, version by version, by no table: the other opinion on the messages.

A version is a sum of differences to the one before it, as Kafka's history made them. The bytes are put together with
their counts noted, so that a drill can damage one of them. Source: FACTS §5.1 to §5.3; KIP516-4, KIP516-7.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from layout.ids import TopicId
from reconciler.protocol import LeaderAndIsrRequest, PartitionState, StopReplicaRequest


class Count(NamedTuple):
    """A count in the bytes: where it stands, how many bytes it has, its number, and what is counted."""

    at: int
    width: int
    number: int
    name: str


class Bytes:
    """Bytes of one message as they grow, and the counts in them.

    Attributes:
        data: so far.
        counts: of the arrays.
        flexible: whether lengths are varints and each struct ends with its tagged fields.
    """

    def __init__(self, *, flexible: bool) -> None:
        self.data, self.flexible, self.counts = b"", flexible, list[Count]()

    def put(self, form: str, *values: object) -> None:
        """Append numbers of these forms."""
        self.data += struct.pack(f">{form}", *values)

    def text(self, text: str) -> None:
        """Append a text of at most some thousand bytes."""
        raw = text.encode()
        self.data += (varint(len(raw) + 1) if self.flexible else struct.pack(">h", len(raw))) + raw

    def count(self, name: str, items: Sequence[object]) -> None:
        """Append the number of items that follow."""
        raw = varint(len(items) + 1) if self.flexible else struct.pack(">i", len(items))
        self.counts.append(Count(len(self.data), len(raw), len(items), name))
        self.data += raw

    def numbers(self, name: str, numbers: Sequence[int]) -> None:
        """Append a list of int32."""
        self.count(name, numbers)
        self.put(f"{len(numbers)}i", *numbers)

    def id(self, topic_id: TopicId | None) -> None:
        """Append a topic ID, zeros for none."""
        self.data += bytes(16) if topic_id is None else topic_id.to_bytes()

    def end(self, tag: bytes = b"", *, more: int = 0) -> None:
        """End a struct; ``tag``: of its field 0, which says that it has so many bytes and ``more``."""
        if self.flexible:
            self.data += varint(1) + varint(0) + varint(len(tag) + more) + tag + bytes(more) if tag else varint(0)


def varint(number: int) -> bytes:
    """Write an unsigned number, seven bits to a byte, the lowest first."""
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([each | 0x80 for each in groups[:-1]] + groups[-1:])


def leader_and_isr(request: LeaderAndIsrRequest, version: int) -> Bytes:
    """Write a LeaderAndIsr request in a version from 0 to 7."""
    out = Bytes(flexible=version >= 4)
    out.put("i", request.controller_id)
    if version >= 7:
        out.put("?", request.is_kraft_controller)
    out.put("i", request.controller_epoch)
    if version >= 2:
        out.put("q", request.broker_epoch)
    if version >= 5:
        out.put("b", int(request.type))
    if version < 2:
        flat = [(topic.topic, state) for topic in request.topics for state in topic.partitions]
        out.count("ungroupedPartitionStates", flat)
        for name, state in flat:
            out.text(name)
            _state(out, state, version)
    else:
        out.count("topicStates", request.topics)
        for topic in request.topics:
            out.text(topic.topic)
            if version >= 5:
                out.id(topic.topic_id)
            out.count("partitionStates", topic.partitions)
            for state in topic.partitions:
                _state(out, state, version)
            out.end()
    out.count("liveLeaders", request.live_leaders)
    for leader in request.live_leaders:
        out.put("i", leader.broker_id)
        out.text(leader.host)
        out.put("i", leader.port)
        out.end()
    out.end()
    return out


def _state(out: Bytes, state: PartitionState, version: int) -> None:
    out.put("4i", state.partition, state.controller_epoch, state.leader, state.leader_epoch)
    out.numbers("isr", state.isr)
    out.put("i", state.partition_epoch)
    out.numbers("replicas", state.replicas)
    if version >= 3:
        out.numbers("addingReplicas", state.adding)
        out.numbers("removingReplicas", state.removing)
    if version >= 1:
        out.put("?", state.is_new)
    if version >= 6:
        out.put("b", state.leader_recovery_state)
    out.end()


def stop_replica(request: StopReplicaRequest, version: int) -> Bytes:
    """Write a StopReplica request in a version from 0 to 4."""
    out = Bytes(flexible=version >= 2)
    out.put("i", request.controller_id)
    if version >= 4:
        out.put("?", request.is_kraft_controller)
    out.put("i", request.controller_epoch)
    if version >= 1:
        out.put("q", request.broker_epoch)
    if version < 3:
        out.put("?", any(state.delete for topic in request.topics for state in topic.partitions))
    if version == 0:
        flat = [(topic.topic, state.partition) for topic in request.topics for state in topic.partitions]
        out.count("ungroupedPartitions", flat)
        for name, number in flat:
            out.text(name)
            out.put("i", number)
    else:
        out.count("topics" if version < 3 else "topicStates", request.topics)
        for topic in request.topics:
            out.text(topic.topic)
            if version < 3:
                out.numbers("partitionIndexes", [state.partition for state in topic.partitions])
            else:
                out.count("partitionStates", topic.partitions)
                for state in topic.partitions:
                    out.put("ii?", state.partition, state.leader_epoch, state.delete)
                    out.end()
            out.end()
    out.end()
    return out


def drawn_by_516(request: LeaderAndIsrRequest, more: Iterable[int] = ()) -> Bytes:
    """Write a LeaderAndIsr request as KIP-516 draws it: its type and topic IDs are tagged fields.

    ``more``: places of topics whose tag has a byte too many.
    """
    out = Bytes(flexible=True)
    out.put("iiq", request.controller_id, request.controller_epoch, request.broker_epoch)
    out.count("topic_states", request.topics)
    for place, topic in enumerate(request.topics):
        out.text(topic.topic)
        out.count("partition_states", topic.partitions)
        for state in topic.partitions:
            out.put("4i", state.partition, state.controller_epoch, state.leader, state.leader_epoch)
            out.numbers("isr", state.isr)
            out.put("i", state.partition_epoch)
            out.numbers("replicas", state.replicas)
            out.put("?", state.is_new)
            out.end()
        raw = bytes(16) if topic.topic_id is None else topic.topic_id.to_bytes()
        out.end(raw, more=int(place in more))
    out.count("live_leaders", request.live_leaders)
    for leader in request.live_leaders:
        out.put("i", leader.broker_id)
        out.text(leader.host)
        out.put("i", leader.port)
        out.end()
    out.end(struct.pack(">b", int(request.type)) if request.type else b"")
    return out
