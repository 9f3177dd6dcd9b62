"""KRaft metadata as a desired state.

Nothing on disk says how far the log is committed. ``commitment`` says what is proven; where records go on after it,
they may still be taken back, and ``tail_uncommitted`` is set. Source: FACTS §7; DESIGN §7.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from typing import NamedTuple

from layout import meta_properties
from layout.errors import DamagedFileError
from layout.ids import DirectoryId, TopicId
from layout.topic import METADATA_DIR
from logstore.log_dir import find_lock_holder
from logstore.parallel import paused_gc
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.errors import MetadataError
from reconciler.sources.kraft.files import find_metadata_dir, open_file
from reconciler.sources.kraft.image import METADATA_VERSION, MetadataImage
from reconciler.sources.kraft.replay import read

_MAX_PROPERTIES_BYTES = 1 << 20
_NOWHERE_YET = (DirectoryId.MIGRATING.to_bytes(), DirectoryId.UNASSIGNED.to_bytes())


def recognises(path: str) -> bool:
    """Whether a path is a metadata directory, a log dir with one, or a snapshot other than bootstrap.checkpoint."""
    name = os.path.basename(os.path.normpath(path))
    if os.path.isfile(path):
        return name.endswith(".checkpoint") and name != "bootstrap.checkpoint"
    return os.path.isdir(path) and (name == METADATA_DIR or os.path.isdir(os.path.join(path, METADATA_DIR)))


def load(path: str) -> DesiredState:
    """Read the desired state of a whole cluster.

    Args:
        path: a ``__cluster_metadata-0`` directory, a log dir that holds one, or a single ``.checkpoint`` file.

    Raises:
        UsageError: no such path.
        MetadataError: there is no state there, or none that can be trusted; see ``replay``.
    """
    digest = hashlib.sha256()
    with paused_gc():
        replay = read(path, digest)
        keeper = _keeper(path)
        identity = MetadataIdentity(
            source="kraft",
            location=path,
            cluster_id=keeper.cluster_id,
            offset=replay.last_offset,
            epoch=replay.epoch,
            timestamp_ms=replay.timestamp_ms,
            tail_uncommitted=replay.log_played and replay.next_offset > replay.commitment.next_offset,
            digest=digest.hexdigest(),
            problems=(*replay.problems, *keeper.problems),
            keeper=keeper.node_id,
            keeper_runs=keeper.runs,
            keeper_decides=keeper.node_id is not None and replay.commitment.voters == frozenset([keeper.node_id]),
            metadata_version=replay.image.features.get(METADATA_VERSION),
            ends_early=tuple(replay.ends_early),
            uncommitted=tuple(sorted(str(TopicId(topic_id)) for topic_id in replay.uncommitted)),
        )
        return _desired(replay.image, identity)


def _desired(image: MetadataImage, identity: MetadataIdentity) -> DesiredState:
    """Turn an image into tables, topics by name and partitions by number."""
    builder = DesiredBuilder()
    text_of = cache(_directory_text)
    for topic_id, topic in sorted(image.topics.items(), key=lambda item: item[1].name):
        topic_text = str(TopicId(topic_id))
        builder.topic(topic.name, topic_text)
        for index, partition in sorted(topic.partitions.items()):
            builder.partition(
                topic.name,
                topic_text,
                index,
                partition.replicas,
                isr=partition.in_sync,
                adding=partition.adding,
                removing=partition.replicas if partition.leaving else partition.removing,
                directories=[text_of(directory) for directory in partition.directories],
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
            )
    for node_id, broker in sorted(image.brokers.items()):
        directories = [str(DirectoryId(directory)) for directory in broker.directories]
        builder.broker(node_id, broker.epoch, broker.fenced, directories)
    return builder.build(identity)


def _directory_text(directory: bytes) -> str | None:
    """The text of an assigned log dir; None where the controller knows none yet. *Lost* is an assignment."""
    return None if directory in _NOWHERE_YET else str(DirectoryId(directory))


class _Keeper(NamedTuple):
    """The node in whose log dir the metadata lies."""

    cluster_id: str | None = None
    node_id: int | None = None
    runs: bool = False
    problems: tuple[str, ...] = ()


def _keeper(path: str) -> _Keeper:
    """Read ``meta.properties`` beside the metadata directory, and look whether a process holds the log dir's lock."""
    folder = find_metadata_dir(path) if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
    if os.path.basename(os.path.abspath(folder)) != METADATA_DIR:
        return _Keeper(problems=(f"it does not stand in a {METADATA_DIR}, so its cluster is not known",))
    log_dir = os.path.dirname(os.path.abspath(folder))
    file_name = os.path.join(log_dir, meta_properties.FILE_NAME)
    try:
        with open_file(file_name) as (file, _):
            properties = meta_properties.parse(file.read(_MAX_PROPERTIES_BYTES))
    except (MetadataError, DamagedFileError) as error:
        return _Keeper(problems=(f"the cluster is not known: {file_name}: {error}",))
    problems = () if properties.cluster_id else (f"the cluster is not known: {file_name} has no cluster.id",)
    runs = find_lock_holder(log_dir, search=False) is not None
    return _Keeper(properties.cluster_id, properties.node_id, runs, problems)
