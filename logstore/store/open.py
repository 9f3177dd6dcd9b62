"""Open the log dirs of one broker together, and answer for the replicas in them from memory.

Opening locks every log dir, recovers it from a crash, and scans it once. A log dir whose disk fails goes offline and
its replicas answer with KAFKA_STORAGE_ERROR; the others go on. Replicas are found by partition and fenced by topic ID.
:class:`OpenStore` changes no replica; ``LogStore`` does. Source: DESIGN §2; KIP516-8; FACTS §1.5, §1.7, §4.4.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Self

from layout.ids import DirectoryId, TopicId
from layout.log_dir_set import LogDirSet, startup_problems
from layout.topic import TopicPartition
from logstore.arguments import check_argument, check_fields, check_paths
from logstore.clock import Clock, SystemClock
from logstore.errors import (
    ChangeRefusedError,
    InvalidArgumentError,
    KafkaError,
    OfflineLogDirError,
    UnknownReplicaError,
)
from logstore.fs import Disk
from logstore.journal import finish_intents, make_missing_namespace_dirs
from logstore.log_dir import FallbackRecords, LogDir
from logstore.rows import MetadataState
from logstore.scan import scan_live
from logstore.settings import Settings
from logstore.staging import Placement
from logstore.store.index import Entry, Replica, ReplicaIndex
from logstore.store.move import recover_moves
from logstore.store.recovery import recover

_MOST_JOBS = 1024
"""More processes than any machine has processors for is a typing error."""


@dataclass(slots=True)
class StoreOptions:
    """Options of a store; the defaults are those of a broker.

    Attributes:
        clock: where the time comes from.
        settings: delays, by topic and namespace.
        disk: carries out the changes. With one that several threads may not share, such as
            :class:`logstore.fs.crash_disk.CrashDisk`, everything is done by the thread that asks for it.
        fallback_records: folder on another disk for fallback records, which are used when a disk is full; None: there
            is none.
        jobs: processes that scan a log dir beside this one; 0: this process scans it alone; None: as many as pay, and
            none for a disk that several threads may not share.
        placement: where replicas are staged: one placement for all log dirs, or one by the path of each. A log dir
            without one, or that does not allow it, gets a placement by what lies in it.

    Raises:
        InvalidArgumentError: an option is of another type, or the number of jobs is negative.
    """

    clock: Clock = field(default_factory=SystemClock)
    settings: Settings = field(default_factory=Settings)
    disk: Disk = field(default_factory=Disk)
    fallback_records: str | None = None
    jobs: int | None = None
    placement: Placement | Mapping[str, Placement] | None = None

    def __post_init__(self) -> None:
        check_fields(self, InvalidArgumentError, {"jobs": (0, _MOST_JOBS)})


class OpenStore:
    """One broker's log dirs, open; look-ups never wait for a disk, and may come from any thread.

    Attributes:
        clock: as in the options.
        settings: as in the options; others may be set at any time, for what is staged from then on.
        fallback: the fallback records.
        changing: lock that every change holds, so that changes happen one after the other; a thread may take it twice.
    """

    def __init__(self, log_dirs: Sequence[LogDir], offline: Mapping[str, str], options: StoreOptions) -> None:
        """Called by :meth:`open`."""
        self.clock, self.settings = options.clock, options.settings
        self.fallback = FallbackRecords(options.fallback_records, options.disk)
        self._jobs = 0 if options.jobs is None and not options.disk.is_shared else options.jobs
        self._placement = options.placement
        self._log_dirs = {log_dir.path: log_dir for log_dir in log_dirs}
        self._failed_to_open = dict(offline)
        self._index = ReplicaIndex()
        self._looking = threading.Lock()
        self.changing = threading.RLock()

    @classmethod
    def open(
        cls, log_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], options: StoreOptions | None = None
    ) -> Self:
        """Open a broker's log dirs, and recover them from a crash.

        A log dir whose disk fails is offline from the start, as in a broker; the others are opened.

        A single path is one log dir.

        Raises:
            InvalidArgumentError: what was given are no paths, or no options.
            ChangeRefusedError: two paths are one directory, or the log dirs belong to different brokers.
            NotALogDirError: a path is no log dir, or has no identity.
            LogDirInUseError: a broker runs on one of the log dirs.
            OfflineLogDirError: no log dir can be used.
        """
        options = options or StoreOptions()
        check_argument("options", options, StoreOptions, InvalidArgumentError)
        paths = [log_dirs] if isinstance(log_dirs, str | os.PathLike) else log_dirs
        check_paths("log_dirs", paths, InvalidArgumentError)
        opened, offline = open_log_dirs([os.fspath(path) for path in paths], options.disk)
        store = cls(opened, offline, options)
        try:
            recover_all(opened, store.fallback)
            store.reload()
        except BaseException:
            store._close_unclean()
            raise
        return store

    @property
    def log_dirs(self) -> list[LogDir]:
        """The log dirs that could be opened, in the order given; some may be offline by now."""
        return list(self._log_dirs.values())

    @property
    def offline(self) -> dict[str, str]:
        """Path of each log dir that is offline → why."""
        failed = {path: log_dir.offline for path, log_dir in self._log_dirs.items() if log_dir.offline is not None}
        return {**self._failed_to_open, **failed}

    @property
    def duplicates(self) -> list[Replica]:
        """Duplicates: replicas of partitions that are live in another log dir too (FACTS §1.7).

        ``repair`` chooses between the copies.
        """
        with self._looking:
            return list(self._index.duplicates)

    def reload(self) -> None:
        """Scan all log dirs that are online again; a log dir that cannot be read goes offline with its replicas."""
        with self.changing:
            online = [path for path, log_dir in self._log_dirs.items() if log_dir.offline is None]
            seen = scan_live(online, jobs=self._jobs)
            for each in seen:
                if each.state is not MetadataState.OK:
                    # A log dir that cannot be read holds unknown replicas, and must not be taken for empty.
                    log_dir = self._log_dirs[each.log_dir]
                    log_dir.go_offline(f"{log_dir.path} is offline, because it cannot be read: {each.problem}")
            fresh = ReplicaIndex()
            for each in seen:
                if each.state is MetadataState.OK:
                    fresh.load(each.log_dir, each.replicas)
            with self._looking:
                for replica in self._index:
                    # A replica on a disk that failed still lies there, and must not be created again elsewhere.
                    if self._log_dirs[replica.log_dir].offline is not None and fresh.get(replica.partition) is None:
                        fresh.put(replica)
                self._index = fresh

    def take_over(self, changed: Iterable[tuple[Replica, Replica | None]]) -> None:
        """Update the index after a change of many steps, except for replicas in offline log dirs.

        Args:
            changed: each replica before and after the change; None: it is no longer live.
        """
        with self._looking:
            online = [pair for pair in changed if self._log_dirs[pair[0].log_dir].offline is None]
            for before, _ in online:
                self._index.drop(before.partition)
            for _, after in online:
                if after is not None:
                    self._index.put(after)

    def find(self, partition: TopicPartition) -> Replica | None:
        """Find the live replica of a partition; None: there is none.

        Raises:
            OfflineLogDirError: its log dir is offline.
        """
        with self._looking:
            replica = self._index.get(partition)
        if replica is not None:
            self._log_dirs[replica.log_dir].check_online()
        return replica

    def get(self, partition: TopicPartition) -> Replica:
        """Find the live replica of a partition.

        Raises:
            UnknownReplicaError: there is none.
            OfflineLogDirError: its log dir is offline.
        """
        replica = self.find(partition)
        if replica is None:
            raise UnknownReplicaError(f"no log dir of this store has a live replica of {partition}")
        return replica

    def replicas(self) -> Iterator[Replica]:
        """Iterate over every live replica as of now, including replicas of offline log dirs."""
        with self._looking:
            return iter(self._index)

    def entries(self) -> dict[tuple[str, int], Entry]:
        """Copy the entries of all live replicas, by (topic, partition): fast even for 100,000 of them."""
        with self._looking:
            return self._index.entries()

    def __len__(self) -> int:
        """How many live replicas there are."""
        with self._looking:
            return len(self._index)

    def fence(self, partition: TopicPartition, topic_id: TopicId | None = None) -> KafkaError:
        """Give the error with which a fetch, list-offsets or epoch request is answered (KIP516-8, FACTS §4.4).

        Args:
            partition: by the topic's full name.
            topic_id: from the request; None or the zero ID: a request by name only, which is never fenced.

        Raises:
            InvalidArgumentError: the topic ID is none.
        """
        if topic_id is not None:
            check_argument("topic_id", topic_id, TopicId, InvalidArgumentError)
        given = None if topic_id is None or topic_id.is_zero else topic_id
        with self._looking:
            replica = self._index.get(partition)
        if replica is None:
            return KafkaError.UNKNOWN_TOPIC_OR_PARTITION if given is None else KafkaError.UNKNOWN_TOPIC_ID
        if self._log_dirs[replica.log_dir].offline is not None:
            return KafkaError.KAFKA_STORAGE_ERROR
        if given is None or replica.topic_id in (None, given):
            return KafkaError.NONE
        return KafkaError.INCONSISTENT_TOPIC_ID

    def topic_of(self, topic_id: TopicId) -> str | None:
        """Find the topic with this ID, for requests that carry no name; None: the answer is UNKNOWN_TOPIC_ID."""
        with self._looking:
            return self._index.topic_of(topic_id)

    def names_of(self, topic_id: TopicId) -> tuple[str, ...]:
        """Find the names under which live replicas have this ID: more than one where a rename did not reach all."""
        with self._looking:
            return self._index.names_of(topic_id)

    def log_dir_of(self, directory_id: DirectoryId) -> LogDir:
        """Find the log dir with a directory ID.

        Raises:
            UnknownReplicaError: no log dir of this store has it.
        """
        for log_dir in self._log_dirs.values():
            if log_dir.identity.directory_id == directory_id:
                return log_dir
        raise UnknownReplicaError(f"no log dir of this store has directory.id {directory_id}")

    def close(self) -> None:
        """Release all locks; every change is on disk already. A second call does nothing."""
        with self.changing:
            for log_dir in self._log_dirs.values():
                log_dir.close()

    def abandon(self) -> None:
        """Release all locks and write nothing, as a crash would; for tests and simulators."""
        with self.changing:
            for log_dir in self._log_dirs.values():
                log_dir.abandon()

    def _close_unclean(self) -> None:
        with ExitStack() as closing:  # closes every log dir, even when closing another one fails
            for log_dir in self._log_dirs.values():
                log_dir.leave_unclean = True
                closing.callback(log_dir.close)

    def _online(self) -> list[LogDir]:
        return [log_dir for log_dir in self._log_dirs.values() if log_dir.offline is None]

    def _least_loaded(self) -> LogDir:
        online = self._online()
        if not online:
            raise OfflineLogDirError("every log dir of this store is offline; see to the disks, and open it again")
        with self._looking:
            return min(online, key=lambda log_dir: self._index.counts.get(log_dir.path, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_log_dirs(paths: Sequence[str], disk: Disk) -> tuple[list[LogDir], dict[str, str]]:
    """Lock and open log dirs, all or none; only a log dir whose disk fails is left out.

    Returns:
        The open log dirs in the order given; and for each offline log dir, path → reason.

    Raises:
        ChangeRefusedError: two paths are one directory, or the log dirs do not belong to one broker.
        NotALogDirError, LogDirInUseError: as :meth:`LogDir.open`.
        OfflineLogDirError: no log dir can be used.
    """
    opened: list[LogDir] = []
    offline: dict[str, str] = {}
    try:
        _refuse_same_directory(paths)
        for path in paths:
            try:
                opened.append(LogDir.open(path, disk=disk))
            except OfflineLogDirError as error:
                offline[os.path.abspath(path)] = str(error)
        if not opened:
            raise OfflineLogDirError(f"no log dir can be used: {'; '.join(offline.values()) or 'none was given'}")
        _refuse_other_brokers(opened)
    except BaseException:
        for log_dir in opened:
            log_dir.close()
        raise
    return opened, offline


def recover_all(log_dirs: Sequence[LogDir], fallback: FallbackRecords) -> None:
    """Recover every log dir that was not closed cleanly; a log dir whose disk fails meanwhile goes offline.

    Changes of many steps are finished first, so that single replicas are recovered under their final names.

    Raises:
        ChangeFailedError: the system refuses, and the state of the log dirs is unknown.
    """
    finish_intents(log_dirs, fallback)
    for log_dir in log_dirs:
        try:
            if log_dir.was_unclean:
                recover(log_dir, fallback)
        except OfflineLogDirError:
            continue
    recover_moves(log_dirs)
    make_missing_namespace_dirs(log_dirs)


def _refuse_same_directory(paths: Sequence[str]) -> None:
    """Refuse one directory under two paths, as a broker does (FACTS §1.5); its second lock would fail less clearly."""
    seen: dict[str, str] = {}
    for path in paths:
        if "\0" in path:
            continue  # it is no path, which LogDir.open reports
        real = os.path.realpath(path)
        if real in seen:
            raise ChangeRefusedError(f"{path} and {seen[real]} are one log dir: give it once")
        seen[real] = path


def _refuse_other_brokers(log_dirs: Sequence[LogDir]) -> None:
    problems = startup_problems(LogDirSet({log_dir.path: log_dir.identity for log_dir in log_dirs}))
    if problems:
        raise ChangeRefusedError(f"these log dirs are not one broker's: {'; '.join(problems)}")
