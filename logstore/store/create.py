"""Makes replicas, each with its ``partition.metadata``, all at once or not at all; many of them behind one barrier.

A draft has a name that Kafka itself deletes at its next start, so a crash leaves a whole replica or none, in a real
broker's log dir as well as in ours. Each step is taken for all of them before the next::

    1  a draft for each, orders-0.<32 hex>-delete, with its partition.metadata     a crash leaves drafts, which go
    2  the drafts are synced, one barrier for all                                  from here on each is whole
    3  each draft gets its live name                                               a crash leaves a draft or a replica
    4  the directories that lost and gained entries are synced                     from here on they are there

Whatever fails before the end of step 4 is undone, and no replica was made.
Source: KIP516-2, KIP516-11; DESIGN §5; FACTS §1.2, §2.1.

What every new replica needs: its place, and its ``partition.metadata``; and the topic ID of one that has none.

How replicas are made so that a crash leaves a whole one or none is told in ``create_many``. Source: KIP516-2,
KIP516-11, KIP37-3; FACTS §2.1.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass

from layout import partition_metadata
from layout.directory_name import delete_name
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import check_namespace_fits, partition_path
from layout.topic import Namespace, TopicPartition, named
from logstore.errors import LogStoreError, NameTakenError, OfflineLogDirError
from logstore.fs import (
    TEMPORARY,
    Directory,
    barrier,
    remove_file,
    remove_tree,
    rename_exclusively,
    replace_file,
    sync_all,
    write_new_file,
)
from logstore.log_dir import LogDir, open_replica_parent

_MOST_SYNCED_ALONE = 4
"""Replicas up to which each is synced by itself: a barrier waits for all that others wrote to the disk."""


@dataclass(slots=True)
class _ReplicaDraft:
    """One replica on its way."""

    partition: TopicPartition
    topic_id: TopicId | None
    path: str
    parent: Directory
    name: str
    """Of the draft, in the log dir."""
    renamed: bool = False

    @property
    def live_name(self) -> str:
        return self.path.rpartition("/")[2]


def create_replica(log_dir: LogDir, partition: TopicPartition, topic_id: TopicId | None) -> str:
    """Make one empty replica, durably, and give its path below the log dir.

    Args:
        log_dir: where it goes.
        partition: by the topic's full name.
        topic_id: that goes into its ``partition.metadata``; None: it gets none, as before Kafka 2.8.

    Raises:
        InvalidNameError: the name breaks the rules, or the scheme cannot hold it.
        InvalidNamespaceError: its namespace was not created.
        NameTakenError: something of its name is there.
        OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
    """
    found = create_replicas(log_dir, {partition: topic_id}).get(partition)
    if isinstance(found, str):
        return found
    raise found or OfflineLogDirError(log_dir.offline or f"{log_dir.path} is offline")


def create_replicas(
    log_dir: LogDir, wanted: Mapping[TopicPartition, TopicId | None]
) -> dict[TopicPartition, str | LogStoreError | LayoutError]:
    """Make empty replicas, durably; those whose name cannot be used are left out, and the others are made.

    Args:
        log_dir: where they go.
        wanted: by full name; at best about a thousand at a time. None: it gets no topic ID.

    Returns:
        For each: its path below the log dir, or why it cannot be there, as :func:`create_replica` raises it. What
        is left out was not made because the disk failed, and may be made on another; where it cannot be told whether it
        was made, the failure stands, because there must not be two.

    Raises:
        ChangeFailedError: the system refuses; none was made.
    """
    batch = _CreateBatch(log_dir)
    try:
        with log_dir.changing(f"{named(list(wanted))} cannot be created"), batch.opened:
            try:
                batch.write_drafts(wanted)
                # What the checkpoints still say of earlier replicas of these names is not true of the new ones.
                log_dir.checkpoints.take_out(draft.partition for draft in batch.drafts)
                log_dir.write_checkpoints()
                batch.rename()
            except BaseException:
                batch.undo()
                raise
    except OfflineLogDirError as error:
        return dict.fromkeys(batch.uncertain, error)
    return batch.found


def spread_over_log_dirs(
    counts: Mapping[str, int], wanted: Mapping[TopicPartition, TopicId | None], most: int
) -> list[tuple[str, dict[TopicPartition, TopicId | None]]]:
    """Batches of new replicas, so that each goes to the log dir that has the fewest by then.

    Args:
        counts: log dir → how many replicas it has; at least one log dir.
        wanted: the replicas.
        most: how many make a batch.
    """
    by_then = dict(counts)
    batches: dict[str, list[dict[TopicPartition, TopicId | None]]] = {path: [] for path in counts}
    for partition, topic_id in wanted.items():
        path = min(by_then, key=by_then.__getitem__)
        by_then[path] += 1
        if not batches[path] or len(batches[path][-1]) == most:
            batches[path].append({})
        batches[path][-1][partition] = topic_id
    return [(path, batch) for path, each in batches.items() for batch in each]


class _CreateBatch:
    """The replicas of one call, step by step."""

    def __init__(self, log_dir: LogDir) -> None:
        self.log_dir, self.opened = log_dir, ExitStack()
        self.uncertain: list[TopicPartition] = []
        """Replicas that may have their live name, or not, after a failure that could not be undone."""
        self.parents: dict[str, Directory] = {}
        self.drafts: list[_ReplicaDraft] = []
        self.promised: set[str] = set()
        self.found: dict[TopicPartition, str | LogStoreError | LayoutError] = {}

    def write_drafts(self, wanted: Mapping[TopicPartition, TopicId | None]) -> None:
        """Steps 1 and 2."""
        disk, root, few = self.log_dir.disk, self.log_dir.root, len(wanted) <= _MOST_SYNCED_ALONE
        for partition, topic_id in wanted.items():
            try:
                draft = self._plan(partition, topic_id)
                data = None if topic_id is None else metadata_bytes(self.log_dir, partition, topic_id)
            except (LogStoreError, LayoutError) as error:
                self.found[partition] = error
                continue
            disk.mkdir(root.descriptor, draft.name)
            self.drafts.append(draft)
            self.promised.add(draft.path)
            self.found[partition] = draft.path
            if data is not None:
                with root.child(draft.name) as directory:
                    write_new_file(disk, directory, partition_metadata.FILE_NAME, data, durable=few)
        if self.drafts and not few:
            with closing(self._opened_drafts()) as directories:
                barrier(disk, root, directories)

    def rename(self) -> None:
        """Steps 3 and 4."""
        disk, root = self.log_dir.disk, self.log_dir.root
        for draft in self.drafts:
            rename_exclusively(disk, root, draft.name, draft.parent, draft.live_name)
            draft.renamed = True
        if self.drafts:
            sync_all(disk, [*self.parents.values(), root])

    def undo(self) -> None:
        """Remove whatever was made; a replica that has its live name is durably a draft again before it is emptied.

        Where that fails too, the disk is failing and goes offline; what is live by then is whole.
        """
        disk, root = self.log_dir.disk, self.log_dir.root
        renamed = [draft for draft in self.drafts if draft.renamed]
        try:
            for draft in renamed:
                disk.rename(draft.parent.descriptor, draft.live_name, root.descriptor, draft.name)
            if renamed:
                sync_all(disk, [root, *self.parents.values()])
        except OSError as error:
            self.uncertain = [draft.partition for draft in renamed]
            self.log_dir.leave_unclean = True
            self.log_dir.go_offline(
                f"{self.log_dir.path}: what was created so far could not be removed ({error.strerror}); the log dir is "
                "offline, and opening it again sorts it out"
            )
            return
        for draft in self.drafts:
            with suppress(OSError, LogStoreError):
                remove_tree(disk, root, draft.name)

    def _plan(self, partition: TopicPartition, topic_id: TopicId | None) -> _ReplicaDraft:
        path = partition_path(self.log_dir.scheme, partition, topic_id)
        if partition.namespace:
            check_namespace_fits(self.log_dir.path, Namespace.parse(partition.namespace))
        folder, _, name = path.rpartition("/")
        if folder not in self.parents:
            self.parents[folder] = self.opened.enter_context(open_replica_parent(self.log_dir, folder, partition))
        parent = self.parents[folder]
        if parent.holds(name) or path in self.promised:
            raise NameTakenError(f"{parent.path_of(name)} is there already; nothing is ever overwritten")
        draft = delete_name(partition.local_topic, partition.partition, self.log_dir.disk.unique())
        return _ReplicaDraft(partition, topic_id, path, parent, draft)

    def _opened_drafts(self) -> Generator[Directory, None, None]:
        for draft in self.drafts:
            with self.log_dir.root.child(draft.name) as directory:
                yield directory


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
