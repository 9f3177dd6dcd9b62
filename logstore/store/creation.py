"""What every new replica needs: its place, and its ``partition.metadata``; and the topic ID of one that has none.

How replicas are made so that a crash leaves a whole one or none is told in ``create_many``. Source: KIP516-2,
KIP516-11, KIP37-3; FACTS §2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress

from layout import partition_metadata
from layout.ids import TopicId
from layout.topic import TopicPartition, named
from logstore.fs import TEMPORARY, barrier, remove_file, replace_file, write_new_file
from logstore.log_dir import LogDir


def write_topic_ids(log_dir: LogDir, wanted: Mapping[str, tuple[TopicPartition, TopicId]]) -> None:
    """Give replicas without a topic ID those that the controller says they have (KIP516-11), durably.

    The bytes of every file are durable before the first gets its name, and all the names are before this returns: for
    many of them behind two barriers.

    Args:
        log_dir: that holds them.
        wanted: path below the log dir → the partition, and its topic ID. Each of these directories is open meanwhile.

    Raises:
        OfflineLogDirError: the disk failed; some may have got theirs.
        ChangeFailedError: the system refuses; none has got one.
    """
    disk, name = log_dir.disk, partition_metadata.FILE_NAME
    temporary = name + TEMPORARY
    who = named([partition for partition, _ in wanted.values()])
    with log_dir.changing(f"{who} cannot be given a topic ID"), ExitStack() as opened:
        directories = [opened.enter_context(log_dir.root.below(path)) for path in wanted]
        if len(wanted) == 1:
            for directory, (partition, topic_id) in zip(directories, wanted.values(), strict=True):
                replace_file(disk, directory, name, metadata_bytes(log_dir, partition, topic_id))
            return
        try:
            for directory, (partition, topic_id) in zip(directories, wanted.values(), strict=True):
                data = metadata_bytes(log_dir, partition, topic_id)
                write_new_file(disk, directory, temporary, data, durable=False)
            barrier(disk, log_dir.root, directories)
        except OSError:
            for directory in directories:
                with suppress(OSError):
                    remove_file(disk, directory, temporary, durable=False)
            raise
        # From here on only a disk that fails gets in the way: a rename within a directory needs no room.
        for directory in directories:
            disk.rename(directory.descriptor, temporary, directory.descriptor, name)
        barrier(disk, log_dir.root, directories)


def metadata_bytes(log_dir: LogDir, partition: TopicPartition, topic_id: TopicId) -> bytes:
    """What ``partition.metadata`` holds: the shipped form for a real broker, all four fields in ours (KIP516-2)."""
    if not log_dir.is_ours:
        return partition_metadata.encode(topic_id)
    return partition_metadata.encode_json(topic_id, partition.topic, partition.partition)
