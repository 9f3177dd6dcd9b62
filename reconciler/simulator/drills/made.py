"""Log dirs for the games of the drills, each with an identity and replicas, made as a broker or this engine does."""

from __future__ import annotations

import os
from random import Random
from typing import Final

from layout import meta_properties, partition_metadata
from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import LogDir
from logstore.fs import Directory, Disk, make_directory, replace_file, write_new_file

CLUSTER_ID: Final = "drilled-cluster-00001"
NODE_ID: Final = 7
AT: Final = TopicPartition("orders", 0)
"""The replica of a game that has one alone."""


def make_log_dir(path: str, disk: Disk, random: Random, scheme: Scheme | None) -> None:
    """Make an empty log dir; ``scheme``: None for a broker's."""
    identity = MetaProperties(0, CLUSTER_ID, NODE_ID, DirectoryId(random.randbytes(16)), scheme)
    if scheme is not None:
        LogDir.format(path, identity, disk=disk).close()
        return
    parent, name = os.path.split(path)
    with Directory.open(parent) as mounted, make_directory(disk, mounted, name) as root:
        replace_file(disk, root, meta_properties.FILE_NAME, meta_properties.encode(identity, "#a drill"))


def add_replica(log_dir: LogDir, topic_id: TopicId, random: Random) -> dict[str, int]:
    """Make the replica of a flat log dir, with checkpoint entries; gives these."""
    with make_directory(log_dir.disk, log_dir.root, str(AT)) as made:
        data = partition_metadata.encode(topic_id)
        write_new_file(log_dir.disk, made, partition_metadata.FILE_NAME, data, durable=True)
    offsets = {file: random.randrange(1 << 40) for file in OFFSET_CHECKPOINTS[:2]}
    for file, offset in offsets.items():
        log_dir.checkpoints.update(file, {AT: offset})
    log_dir.checkpoints.write(log_dir.disk)
    return offsets
