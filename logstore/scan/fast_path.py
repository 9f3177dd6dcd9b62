"""The fast path of a scan: live replicas with plain names and files as a broker writes them, which nearly all are.

It reads only the topic ID and the weight of each directory. The list of names gives the other columns, for many
directories at a time. As soon as one directory is different, the fast path gives up its whole piece, and
``scan_directories`` scans each directory by itself and reads the files again: so pass some dozens at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from logstore.rows import Columns, Kind, MetadataState
from logstore.scan.listing import Folder, FolderBatch
from logstore.scan.metadata_file import VanishedError, read_topic_ids_fast
from logstore.scan.replica import UNKNOWN_WEIGHT, ScanOptions, Weight, weigh

FastPathResult: TypeAlias = tuple[list[str], list[Weight] | None]
"""The topic IDs of some directories; and their weights, when sizes were asked for."""


def scan_fast(options: ScanOptions, folder: Folder, names: Sequence[str]) -> FastPathResult | None:
    """Scan directories with names of live replicas.

    Each name is one that ``split_live`` can split.

    Returns:
        None: one directory is different, or gone, so call :func:`~logstore.scan.scan_directories`.
    """
    topic_ids = read_topic_ids_fast(folder.path, names, options.topic_ids)
    if topic_ids is None or not options.sizes:
        return None if topic_ids is None else (topic_ids, None)
    weights: list[Weight] = []
    for name in names:
        try:
            weight, obstacle = weigh(folder.path + name)
        except VanishedError:
            return None
        if obstacle:
            return None
        weights.append(weight)
    return topic_ids, weights


def fast_path_columns(
    batch: FolderBatch, results: Iterable[FastPathResult], recovery_points: Mapping[tuple[str, int], int]
) -> Columns:
    """Make the columns of live replicas that all took the fast path.

    At least one replica; ``results`` are of :func:`scan_fast`, for some of the replicas each; ``recovery_points`` are
    as in :class:`ScanOptions`.
    """
    folder, names, inodes, replicas = batch
    topics, partitions = map(list, zip(*replicas or (), strict=True))
    if folder.namespace:
        topics = [folder.namespace + topic for topic in topics]
    nothing = [None] * len(names)
    offsets: Sequence[int | None] = nothing
    if recovery_points:
        offsets = [recovery_points.get(replica) for replica in zip(topics, partitions, strict=True)]
    paths = [folder.prefix + name for name in names] if folder.prefix else names
    live, ok = [Kind.LIVE.value] * len(names), [MetadataState.OK.value] * len(names)
    topic_ids: list[str] = []
    weights: list[Weight] = []
    for of_some, weights_of_some in results:
        topic_ids += of_some
        weights += [UNKNOWN_WEIGHT] * len(of_some) if weights_of_some is None else weights_of_some
    weighed = zip(*weights, strict=True)
    return [paths, live, topics, partitions, topic_ids, ok, nothing, *weighed, inodes, nothing, offsets]
