"""Writes KRaft metadata as a controller would: records, logs, snapshots and the files they stand in (FACTS §7).

For tests and the sample fleet. A record here is the bytes of its frame: the builders (:func:`topic`, :func:`partition`,
...) make them, :func:`log_batch`, :func:`log_bytes` and :func:`snapshot_bytes` wrap them, :func:`write_metadata_dir`
puts them where a reader expects them. How anything becomes bytes belongs to ``reconciler.sources.kraft``, which has the
records without a builder of their own, too.

A small metadata directory, with one topic in a snapshot and its removal in the log after it::

    orders = TopicId.random(os.urandom)
    write_metadata_dir(
        log_dir,
        snapshot=[topic("orders", orders), partition(orders, 0, [1, 2, 3])],
        log=[[remove_topic(orders)]],
        cluster_id="AtgGav8yQjiaJ3rTXE7VCA",
    )
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from layout import meta_properties, partition_metadata
from layout.ids import DirectoryId, KafkaId, TopicId
from layout.meta_properties import MetaProperties
from layout.segment_name import FileKind, metadata_snapshot_name, segment_file_name
from layout.topic import METADATA_DIR
from reconciler.sources.kraft import batch, control_record, proposed_record, record

CONTROL = 0x20
"""The attribute bit of a control batch."""

# Records


def topic_record(name: str, topic_id: TopicId | str) -> bytes:
    """TopicRecord: a topic comes into being, without partitions."""
    return record("TopicRecord", name=name, topicId=topic_id)


def partition_record(
    topic_id: TopicId | str,
    index: int,
    replicas: Sequence[int],
    *,
    isr: Sequence[int] | None = None,
    removing: Sequence[int] = (),
    adding: Sequence[int] = (),
    leader: int | None = None,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    directories: Sequence[DirectoryId | str] | None = None,
    version: int | None = None,
) -> bytes:
    """PartitionRecord: a partition comes into being, or is replaced.

    The first replica leads, and all are in sync, unless something else is given. ``directories`` has the log dir of
    each replica. The version is 1 with directories and 0 without.
    """
    chosen = version if version is not None else int(directories is not None)
    return record(
        "PartitionRecord",
        chosen,
        partitionId=index,
        topicId=topic_id,
        replicas=replicas,
        isr=replicas if isr is None else isr,
        removingReplicas=removing,
        addingReplicas=adding,
        leader=replicas[0] if leader is None and replicas else -1 if leader is None else leader,
        leaderEpoch=leader_epoch,
        partitionEpoch=partition_epoch,
        directories=() if directories is None else directories,
    )


def partition_with_mode_record(
    topic_id: TopicId | str, index: int, replicas: Sequence[int], mode: int, *, leader_epoch: int = 0
) -> bytes:
    """PartitionRecord as KIP-694 draws it, led by the first replica, all in sync: mode 0 to read and write, 1, -1."""
    return proposed_record(
        "PartitionRecord",
        partitionId=index,
        topicId=topic_id,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leaderEpoch=leader_epoch,
        mode=mode,
    )


def delete_topic_partitions_record(
    topic_id: TopicId | str, index: int, *, delayed: bool = False, created_ms: int = 0
) -> bytes:
    """DeleteTopicPartitionsRecord of KIP-694: one partition is to go, at once or after a delay, and its topic stays."""
    return proposed_record(
        "DeleteTopicPartitionsRecord",
        topicId=topic_id,
        deletePartitions=index,
        deletePartitionsDelayTimestamp=delayed,
        createTimestamp=created_ms,
    )


def partition_change_record(topic_id: TopicId | str, index: int, version: int | None = None, **changes: Any) -> bytes:
    """PartitionChangeRecord; ``changes`` by Kafka's names: isr, leader, replicas, removingReplicas, directories, ..."""
    chosen = version if version is not None else int("directories" in changes)
    return record("PartitionChangeRecord", chosen, partitionId=index, topicId=topic_id, **changes)


def remove_topic_record(topic_id: TopicId | str) -> bytes:
    """RemoveTopicRecord: the topic and all its partitions go."""
    return record("RemoveTopicRecord", topicId=topic_id)


def register_broker_record(
    broker_id: int,
    broker_epoch: int = 0,
    *,
    fenced: bool = False,
    directory_ids: Sequence[DirectoryId | str] = (),
    incarnation_id: KafkaId | str = TopicId.ZERO,
    version: int = 3,
) -> bytes:
    """RegisterBrokerRecord: a broker with its log dirs."""
    return record(
        "RegisterBrokerRecord",
        version,
        brokerId=broker_id,
        brokerEpoch=broker_epoch,
        incarnationId=incarnation_id,
        fenced=fenced,
        logDirs=directory_ids,
    )


def feature_level_record(name: str, level: int) -> bytes:
    """FeatureLevelRecord, for example ``metadata.version`` at 21 for Kafka 3.9."""
    return record("FeatureLevelRecord", name=name, featureLevel=level)


def begin_transaction(name: str | None = None) -> bytes:
    """BeginTransactionRecord: what follows takes effect together, or not at all."""
    return record("BeginTransactionRecord", name=name)


def end_transaction() -> bytes:
    """EndTransactionRecord: what came since the beginning takes effect."""
    return record("EndTransactionRecord")


def abort_transaction(reason: str | None = None) -> bytes:
    """AbortTransactionRecord: what came since the beginning is dropped."""
    return record("AbortTransactionRecord", reason=reason)


def no_op_record() -> bytes:
    """NoOpRecord, which an idle controller writes twice a second."""
    return record("NoOpRecord")


# Logs and snapshots


def log_batch(records: Sequence[bytes], base_offset: int, *, epoch: int = 1, timestamp_ms: int = 0) -> bytes:
    """A data batch of the log; it takes one offset for each record."""
    return batch([(None, value) for value in records], base_offset=base_offset, epoch=epoch, timestamp_ms=timestamp_ms)


def control_batch(
    controls: Sequence[tuple[bytes, bytes]], base_offset: int, *, epoch: int = 1, timestamp_ms: int = 0
) -> bytes:
    """A control batch of entries that :func:`control_record` made."""
    return batch(controls, base_offset=base_offset, epoch=epoch, timestamp_ms=timestamp_ms, attributes=CONTROL)


def leader_change_batch(
    base_offset: int,
    *,
    epoch: int = 1,
    timestamp_ms: int = 0,
    leader: int = 1,
    voters: Sequence[int] = (1,),
    granting: Sequence[int] = (1,),
) -> bytes:
    """The control batch that opens every leader epoch of the log; it takes one offset."""
    change = control_record(
        "LeaderChangeMessage",
        leaderId=leader,
        voters=[{"voterId": voter} for voter in voters],
        grantingVoters=[{"voterId": voter} for voter in granting],
    )
    return control_batch([change], base_offset, epoch=epoch, timestamp_ms=timestamp_ms)


def log_bytes(
    groups: Sequence[Sequence[bytes]],
    base_offset: int = 0,
    *,
    epoch: int = 1,
    timestamp_ms: int = 0,
    leader_change: bool = True,
) -> bytes:
    """The content of a segment: a LeaderChange batch (which takes the first offset), then one batch for each group."""
    written = []
    if leader_change:
        written.append(leader_change_batch(base_offset, epoch=epoch, timestamp_ms=timestamp_ms))
        base_offset += 1
    for group in groups:
        written.append(log_batch(group, base_offset, epoch=epoch, timestamp_ms=timestamp_ms))
        base_offset += len(group)
    return b"".join(written)


def snapshot_bytes(
    records: Sequence[bytes],
    *,
    epoch: int = 1,
    timestamp_ms: int = 0,
    batch_size: int = 2048,
    extra_controls: Sequence[tuple[bytes, bytes]] = (),
) -> bytes:
    """The content of a ``.checkpoint`` file: header, data batches, footer; offsets inside the file start at 0.

    The epoch is the one in the file's name; the time that of the last record of the log that is contained.
    ``extra_controls`` stand beside the header: KRaftVersionRecord and VotersRecord of kraft.version 1.
    """
    header = control_record("SnapshotHeaderRecord", lastContainedLogTimestamp=timestamp_ms)
    opening = [header, *extra_controls]
    written = [control_batch(opening, 0, epoch=epoch, timestamp_ms=timestamp_ms)]
    offset = len(opening)
    for start in range(0, len(records), batch_size):
        group = records[start : start + batch_size]
        written.append(log_batch(group, offset, epoch=epoch, timestamp_ms=timestamp_ms))
        offset += len(group)
    footer = control_record("SnapshotFooterRecord")
    written.append(control_batch([footer], offset, epoch=epoch, timestamp_ms=timestamp_ms))
    return b"".join(written)


# Files


def write_metadata_dir(
    log_dir: str | os.PathLike[str],
    *,
    snapshot: Sequence[bytes] | None = None,
    end_offset: int | None = None,
    log: Sequence[Sequence[bytes]] = (),
    epoch: int = 1,
    timestamp_ms: int = 0,
    cluster_id: str | None = None,
    node_id: int = 1,
    directory_id: DirectoryId | str | None = None,
) -> str:
    """Write ``__cluster_metadata-0`` under a log dir, and return its path: a snapshot, and a segment after it.

    The snapshot holds everything below the end offset, by default as much as it has records; without one the log begins
    at offset 0. The log is groups of frames, one batch each, after a LeaderChange batch; without groups there is no
    segment. With a cluster ID a ``meta.properties`` is written beside the directory.
    """
    folder = os.path.join(log_dir, METADATA_DIR)
    os.makedirs(folder, exist_ok=True)
    start = 0
    if snapshot is not None:
        start = len(snapshot) if end_offset is None else end_offset
        content = snapshot_bytes(snapshot, epoch=epoch, timestamp_ms=timestamp_ms)
        _write(os.path.join(folder, metadata_snapshot_name(start, epoch)), content)
    if log:
        content = log_bytes(log, start, epoch=epoch, timestamp_ms=timestamp_ms)
        _write(os.path.join(folder, segment_file_name(start, FileKind.LOG)), content)
    _write(os.path.join(folder, partition_metadata.FILE_NAME), partition_metadata.encode(TopicId.METADATA))
    if cluster_id is not None:
        directory = DirectoryId.parse(directory_id) if isinstance(directory_id, str) else directory_id
        identity = MetaProperties(1, cluster_id, node_id, directory)
        content = meta_properties.encode(identity, "Thu Jan 01 00:00:00 UTC 1970")
        _write(os.path.join(log_dir, meta_properties.FILE_NAME), content)
    return folder


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
