"""Create replicas, each with its ``partition.metadata``, all or none; and give topic IDs to replicas without one.

A draft has a name that Kafka itself deletes at its next start, so a crash leaves a whole replica or none, in a real
broker's log dir as well as in ours. Each step is done for all replicas before the next::

    1  a draft for each, orders-0.<32 hex>-delete, with its partition.metadata     a crash leaves drafts, which go
    2  the drafts are synced, one barrier for all                                  from here on each is whole
    3  each draft gets its live name                                               a crash leaves a draft or a replica
    4  the directories that lost and gained entries are synced                     from here on they are there

A failure before the end of step 4 is undone, and no replica was created.
Source: KIP516-2, KIP516-11, KIP37-3; DESIGN §5; FACTS §1.2, §2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from layout import partition_metadata
from layout.directory_name import delete_name
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import check_namespace_fits, partition_path
from layout.topic import Namespace, TopicPartition, named
from logstore.errors import LogStoreError, NameTakenError, OfflineLogDirError, UnsafePathError
from logstore.fs import Batch, remove_tree
from logstore.log_dir import LogDir, open_replica_parent
from logstore.tunables import ENTRIES_LISTED_FOR_A_NAME


@dataclass(slots=True)
class _ReplicaDraft:
    """One replica that is being created."""

    partition: TopicPartition
    path: str
    name: str
    """Name of the draft in the log dir."""
    renamed: bool = False


def create_replica(log_dir: LogDir, partition: TopicPartition, topic_id: TopicId | None) -> str:
    """Create one empty replica, durably, and give its path below the log dir.

    Args:
        log_dir: that gets the replica.
        partition: by the topic's full name.
        topic_id: for its ``partition.metadata``; None: it gets no such file, as before Kafka 2.8.

    Raises:
        InvalidNameError: the name breaks the rules, or the scheme cannot hold it.
        InvalidNamespaceError: its namespace was not created.
        NameTakenError: its path is taken.
        OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
    """
    found = create_replicas(log_dir, {partition: topic_id}).get(partition)
    if isinstance(found, str):
        return found
    raise found or OfflineLogDirError(log_dir.offline or f"{log_dir.path} is offline")


def create_replicas(
    log_dir: LogDir, wanted: Mapping[TopicPartition, TopicId | None], *, held: int | None = None
) -> dict[TopicPartition, str | LogStoreError | LayoutError]:
    """Create empty replicas, durably; a name that cannot be used does not keep the others from being created.

    Args:
        log_dir: that gets the replicas.
        wanted: partition, by full name → its topic ID; None: it gets none. About a thousand at a time are best.
        held: how many replicas it has, about; None: not known. Where they are few beside those wanted, one listing
            tells which names are taken.

    Returns:
        For each partition: its path below the log dir, or the error that :func:`create_replica` would have raised. A
        partition that is left out was not created because the disk failed, and may be created on another disk. Where it
        is unknown whether a replica was created, the disk's error is given, because there must not be two replicas.

    Raises:
        ChangeFailedError: the system refuses; no replica was created.
    """
    listed = held is not None and held < ENTRIES_LISTED_FOR_A_NAME * len(wanted)
    batch = _CreateBatch(log_dir, listed=listed)
    try:
        with log_dir.changing(f"{named(list(wanted))} cannot be created"), batch.changes:
            try:
                batch.write_drafts(wanted)
                # Checkpoint entries of earlier replicas under these names are not true of the new ones.
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
    """Plan batches of new replicas so that each replica goes to the log dir that has the fewest by then.

    ``counts``: how many replicas each log dir has, at least one log dir; ``wanted``: partition → its topic ID;
    ``most``: replicas in a batch.
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
    """The replicas that one call creates, step by step."""

    def __init__(self, log_dir: LogDir, *, listed: bool) -> None:
        self.log_dir, self.changes = log_dir, Batch(log_dir.disk, log_dir.root)
        self.listed = listed
        self.uncertain: list[TopicPartition] = []
        """Replicas that may or may not have their live name, after a failure that could not be undone."""
        self.folders: dict[str, set[str] | None] = {}
        """The directories that gain a replica, as paths below the log dir, with the names in them; None: not listed.

        Nobody else takes a name meanwhile, because the log dir is locked; and each rename looks again.
        """
        self.drafts: list[_ReplicaDraft] = []
        self.promised: set[str] = set()
        self.found: dict[TopicPartition, str | LogStoreError | LayoutError] = {}

    def write_drafts(self, wanted: Mapping[TopicPartition, TopicId | None]) -> None:
        """Steps 1 and 2."""
        planned, files = list[_ReplicaDraft](), list[tuple[str, bytes]]()
        for partition, topic_id in wanted.items():
            try:
                draft = self._plan(partition, topic_id)
                data = None if topic_id is None else metadata_bytes(self.log_dir, partition, topic_id)
            except (LogStoreError, LayoutError) as error:
                self.found[partition] = error
                continue
            planned.append(draft)
            self.promised.add(draft.path)
            self.found[partition] = draft.path
            if data is not None:
                files.append((f"{draft.name}/{partition_metadata.FILE_NAME}", data))
        # Calls of the system that follow each other take a third less time than each between two plans.
        for draft in planned:
            self.log_dir.disk.mkdir(self.log_dir.root.descriptor, draft.name)
            self.drafts.append(draft)
        self.changes.create(files)

    def rename(self) -> None:
        """Steps 3 and 4."""
        for draft in self.drafts:
            self.changes.rename(draft.name, draft.path)
            draft.renamed = True
        if self.drafts:
            self.changes.sync([*self.folders, ""])

    def undo(self) -> None:
        """Remove what was created; a replica with its live name is durably made a draft again before it is removed.

        Where that fails too, the log dir goes offline; replicas that are live by then are whole.
        """
        renamed = [draft for draft in self.drafts if draft.renamed]
        try:
            for draft in renamed:
                self.changes.rename(draft.path, draft.name)
            if renamed:
                self.changes.sync(["", *self.folders])
        except (OSError, UnsafePathError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self.uncertain = [draft.partition for draft in renamed]
            self.log_dir.leave_unclean = True
            self.log_dir.go_offline(
                f"{self.log_dir.path}: what was created so far could not be removed ({reason}); the log dir is "
                "offline, and opening it again sorts it out"
            )
            return
        for draft in self.drafts:
            with suppress(OSError, LogStoreError):
                remove_tree(self.log_dir.disk, self.log_dir.root, draft.name)

    def _plan(self, partition: TopicPartition, topic_id: TopicId | None) -> _ReplicaDraft:
        path = partition_path(self.log_dir.scheme, partition, topic_id)
        folder, _, name = path.rpartition("/")
        if folder and partition.namespace:
            check_namespace_fits(self.log_dir.path, Namespace.parse(partition.namespace))
        if folder not in self.folders:
            with open_replica_parent(self.log_dir, folder, partition) as parent:
                self.folders[folder] = parent.names() if self.listed else None
        names = self.folders[folder]
        if path in self.promised or (self.changes.holds(path) if names is None else name in names):
            raise NameTakenError(f"{self.log_dir.root.path_of(path)} is there already; nothing is ever overwritten")
        draft = delete_name(partition.local_topic, partition.partition, self.log_dir.disk.unique())
        return _ReplicaDraft(partition, path, draft)


def write_topic_ids(log_dir: LogDir, wanted: Mapping[str, tuple[TopicPartition, TopicId]]) -> None:
    """Durably write the topic IDs of replicas that have none, as the controller assigned them (KIP516-11).

    The bytes of every file are durable before the first file gets its name, and all names are durable before this
    returns. Many files need two barriers in all.

    ``wanted``: path below the log dir → the partition and its topic ID.

    Raises:
        OfflineLogDirError: the disk failed; some replicas may have got their ID.
        ChangeFailedError: the system refuses; no replica has got its ID.
    """
    who = named([partition for partition, _ in wanted.values()])
    with log_dir.changing(f"{who} cannot be given a topic ID"), Batch(log_dir.disk, log_dir.root) as batch:
        batch.replace(
            [
                (f"{path}/{partition_metadata.FILE_NAME}", metadata_bytes(log_dir, partition, topic_id))
                for path, (partition, topic_id) in wanted.items()
            ]
        )


def metadata_bytes(log_dir: LogDir, partition: TopicPartition, topic_id: TopicId) -> bytes:
    """Encode ``partition.metadata``: in the shipped form for a real broker, with all four fields in ours (KIP516-2)."""
    if not log_dir.is_ours:
        return partition_metadata.encode(topic_id)
    return partition_metadata.encode_json(topic_id, partition.topic, partition.partition)
