"""One batch of replicas on its way into the staging root; :mod:`logstore.staging.pipeline` explains the steps.

Most replicas take the fast path: their records share a file, and a quick check precedes the link. A replica for which
the fast path fails takes the slow path: a full check, which reports why it is refused, and a record of its own.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing

from layout import partition_metadata
from layout.errors import LayoutError
from layout.ours import STAGED_RECORD, check_record, encode_record, shared_records_name
from logstore.errors import LogStoreError, UnsafePathError
from logstore.fs import (
    DIRECTORY_FLAGS,
    FIRST_READ,
    READ_FLAGS,
    Directory,
    barrier,
    remove_file,
    sync_all,
    write_new_file,
)
from logstore.log_dir import DISK_FAILURES
from logstore.staging import records
from logstore.staging.candidate import Candidate, Refused, revalidate
from logstore.staging.listing import Staged
from logstore.staging.placement import name_below_log_dir
from logstore.staging.records import record_of_live, restored_path
from logstore.staging.session import NO_SPACE, StagingMove, StagingSession

logger = logging.getLogger(__name__)

_BY_NAME_FLAGS = DIRECTORY_FLAGS | getattr(os, "O_PATH", 0)
"""Flags for a directory whose entries are used by name and never listed; ``O_PATH`` is quicker where it exists."""


class _NoRoomError(Exception):
    """The staging root had room for some names of a batch and has none for the next; the text is the system's."""


class StagingBatch:
    """Candidates that are staged together.

    Attributes:
        candidates: all of them.
        moves: the candidates that passed their check, and are on their way.
        refused: the candidates that did not pass it.
    """

    def __init__(self, session: StagingSession, candidates: Sequence[Candidate], *, each_synced: bool) -> None:
        """Take candidates; nothing happens yet.

        Args:
            session: of the call.
            candidates: of one log dir.
            each_synced: each record is a file of its own and is synced by itself, so that the batch needs no barrier.
        """
        self.candidates, self._session, self._each_synced = candidates, session, each_synced
        self._log_dir = session.log_dir
        self._files: dict[int, list[StagingMove]] = {}
        """Replicas on the fast path, by the number of the file with their records."""
        self._slow_path: list[Candidate] = []
        """Candidates that need the full check, and a record of their own."""
        self.moves: list[StagingMove] = []
        self.refused: list[Refused] = []

    @property
    def files(self) -> int:
        """Number of files with the records of its replicas."""
        return len(self._files)

    def write_records(self) -> None:
        """Step 1: write files with the records of all candidates that can take the fast path. Raises OSError."""
        if self._each_synced or not self._log_dir.is_marked:
            self._slow_path += self.candidates
            return
        for start in range(0, len(self.candidates), records.REPLICAS_PER_FILE):
            together = self.candidates[start : start + records.REPLICAS_PER_FILE]
            moves = [move for candidate in together if (move := self._planned(candidate)) is not None]
            number, by_name = self._session.next_number(), {move.name: move.record for move in moves}
            if moves and records.write_shared_records(self._log_dir.disk, self._session.root, number, by_name):
                self._files[number] = moves
            else:
                for move in moves:
                    self._fall_back(move)

    def _planned(self, candidate: Candidate) -> StagingMove | None:
        """Choose the name of a candidate and make its record, without a look at the disk; None: the slow path."""
        session, path = self._session, candidate.path
        folder, _, former = path.rpartition("/")
        if candidate.topic_id is not None and path not in session.taken:
            try:
                record = session.record(candidate, {})
                restored_path(self._log_dir, record)  # a replica that could not be restored must not be staged
                check_record(record)
                parent = session.parents.get(folder) or session.parent(folder)
            except (OSError, LogStoreError, LayoutError):
                pass
            else:
                session.taken.add(path)
                name = session.free_name(candidate.partition, candidate.topic_id)
                return StagingMove(candidate, record, parent, former, candidate.inode or 0, name)
        self._slow_path.append(candidate)
        return None

    def _fall_back(self, move: StagingMove) -> None:
        """Fall back to the slow path, which reports why the replica was refused."""
        self._session.give_back(move)
        self._slow_path.append(move.candidate)

    def sync_records(self) -> None:
        """Step 2, where no call syncs the whole file system. Raises OSError."""
        if self._files:
            records.sync_shared_records(self._log_dir.disk, self._session.root, list(self._files))

    def rename(self) -> None:
        """Steps 3 and 4, for each replica; a candidate that has changed is refused.

        The staging root of a full disk may have room for some names and not for the rest. Where the session allows
        that (``partly``), the rest is refused as well.

        Raises:
            OSError: from the system; for lack of space, if not even the first name had room, or ``partly`` is not set.
            UnsafePathError: the directory that was renamed is not the one that was checked.
        """
        try:
            for number, moves in self._files.items():
                file = shared_records_name(number)
                for move in moves:
                    if self._linked(move, file):
                        self._rename(move)
                    else:
                        self._fall_back(move)
            if self._slow_path:
                self._stage_slow_path()
        except _NoRoomError as error:
            self._leave_the_rest(str(error))

    def _linked(self, move: StagingMove, file: str) -> bool:
        """Check a replica quickly, and link the file with its record into it; False: it must take the slow path.

        The quick check covers neither a former record nor a mount point of any file system: on both, the link fails.
        """
        disk, root, parent = self._log_dir.disk, self._session.root.descriptor, move.parent
        try:
            descriptor = os.open(move.former, _BY_NAME_FLAGS, dir_fd=parent.descriptor)
        except OSError:
            return False
        try:
            status = os.fstat(descriptor)
            if move.inode not in (0, status.st_ino):
                return False
            move.inode = status.st_ino
            if not _holds_id(descriptor, move):
                return False
            move.inside = True
            self.moves.append(move)
            try:
                disk.link(root, file, descriptor, STAGED_RECORD)
            except OSError as error:
                self.moves.pop()  # a former record may hold the replica's offsets
                if error.errno in DISK_FAILURES:
                    raise
                return False
        finally:
            os.close(descriptor)
        return True

    def _rename(self, move: StagingMove) -> None:
        disk, root = self._log_dir.disk, self._session.root
        try:
            disk.rename(move.parent.descriptor, move.former, root.descriptor, move.name)
        except OSError as error:
            if self._session.partly and error.errno in NO_SPACE and any(move.renamed for move in self.moves):
                raise _NoRoomError(os.strerror(error.errno or 0)) from error
            raise
        move.renamed = True
        status = root.status(move.name)
        if status is None or status.st_ino != move.inode:
            raise UnsafePathError(f"{root.path_of(move.name)} is not the directory that was looked at before")

    def _leave_the_rest(self, reason: str) -> None:
        """Refuse all candidates that are not renamed, and remove the records that some of them have already."""
        left = [move for move in self.moves if not move.renamed]
        self._log_dir.leave_unclean = True  # a record that is removed here may come back after a crash
        with closing(self._with_records(left)) as directories:
            for directory in directories:
                remove_file(self._log_dir.disk, directory, STAGED_RECORD, durable=False)
        for move in left:
            self._session.fallback.remove(self._log_dir, move.name)
        self.moves = [move for move in self.moves if move.renamed]
        settled = {id(move.candidate) for move in self.moves} | {id(refused.candidate) for refused in self.refused}
        for candidate in self.candidates:
            if id(candidate) not in settled:
                self._refuse(candidate, f"{self._session.root.path} has no room for one more name ({reason})")

    def _stage_slow_path(self) -> None:
        """Check each candidate in full, write its own record into it, make the records durable, and rename."""
        before = len(self.moves)
        for candidate in self._slow_path:
            with ExitStack() as opened:
                found = self._examine(candidate, opened)
                if found is not None:
                    self.moves.append(found[0])
                    self._write_record(*found)
        moves = self.moves[before:]
        if not self._each_synced:
            with closing(self._with_records(moves)) as directories:
                barrier(self._log_dir.disk, self._log_dir.root, directories)
        for move in moves:
            self._rename(move)

    def _examine(self, candidate: Candidate, opened: ExitStack) -> tuple[StagingMove, Directory] | None:
        """Open and check a candidate, and choose its name; None: it is refused."""
        session = self._session
        folder, _, former = candidate.path.rpartition("/")
        if candidate.path in session.taken:
            self._refuse(candidate, "it was named before")
            return None
        try:
            parent = session.parent(folder)
            directory = opened.enter_context(parent.child(former))
            change = revalidate(candidate, directory)
            record = session.record(candidate, self._kept(candidate, directory))
            restored_path(self._log_dir, record)  # a replica that could not be restored must not be staged
            check_record(record)
        except FileNotFoundError:
            change = "it is gone"
        except NotADirectoryError:
            change = "it is no directory"
        except (LogStoreError, LayoutError) as error:
            change = str(error)
        if change is not None:
            self._refuse(candidate, change)
            return None
        session.taken.add(candidate.path)
        name = session.free_name(candidate.partition, record.topic_id)
        return StagingMove(candidate, record, parent, former, directory.key[1], name), directory

    def _refuse(self, candidate: Candidate, why: str) -> None:
        self.refused.append(Refused(candidate, f"{candidate.path} was left where it is: {why}"))

    def _write_record(self, move: StagingMove, directory: Directory) -> None:
        """Write the record into the partition dir; where there is no room, to the fallback folder, by its new name."""
        disk, data = self._log_dir.disk, encode_record(move.record)
        move.inside = True
        try:
            write_new_file(disk, directory, STAGED_RECORD, data, durable=self._each_synced)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            # Durably: an empty file that came back after a crash would be read before the fallback record.
            remove_file(disk, directory, STAGED_RECORD)
            fallback = self._session.fallback
            if self._files:
                # A file of records may name it too, and recovery would believe that before the fallback record.
                move.name = self._session.free_name(move.candidate.partition, move.record.topic_id)
            try:
                written = fallback.write(self._log_dir, move.name, data)
            except (OSError, LogStoreError) as failure:
                # That folder is on another disk, whose failure says nothing about this one.
                logger.warning("the folder for spare records, %s, cannot be used: %s", fallback.folder, failure)
                written = False
            if not written:
                raise
            move.inside = False

    def _with_records(self, moves: Iterable[StagingMove]) -> Generator[Directory, None, None]:
        """Open the partition dirs that got records, one at a time; skip those that are gone or replaced by now."""
        for move in moves:
            if move.inside:
                with ExitStack() as opened:
                    try:
                        directory = opened.enter_context(move.parent.child(move.former))
                    except (FileNotFoundError, NotADirectoryError, UnsafePathError):
                        continue
                    yield directory

    def sync_renamed(self) -> None:
        """Step 5, where no call syncs the whole file system, or the batch is too small for one. Raises OSError."""
        disk, root = self._log_dir.disk, self._session.root
        if self._files:
            for move in self.moves:
                with root.child(move.name) as directory:
                    disk.sync(directory.descriptor)
        self._session.sync()

    def drop_files(self) -> None:
        """Step 6: remove the files of records, whose links are durable. Raises OSError: the disk fails."""
        for number in self._files:
            try:
                remove_file(self._log_dir.disk, self._session.root, shared_records_name(number), durable=False)
            except OSError as error:
                if error.errno in DISK_FAILURES:
                    raise
                self._log_dir.leave_unclean = True  # the next open removes the file

    def staged(self) -> list[Staged]:
        """List what is staged by now, in the order of ``moves``."""
        return [self._staged(move) for move in self.moves]

    def undo(self) -> None:
        """Rename everything back to where it was. Where that fails too, the log dir goes offline.

        A record is removed only when its replica is durably back: a crash may lose the rename back, and the replica
        that is still staged then must have its record. The next open removes a record that a crash brings back.
        """
        log_dir, disk, root = self._log_dir, self._log_dir.disk, self._session.root
        try:
            for move in reversed(self.moves):
                if move.renamed:
                    disk.rename(root.descriptor, move.name, move.parent.descriptor, move.former)
            if any(move.renamed for move in self.moves):
                sync_all(disk, [*self._session.parents.values(), root])
            log_dir.leave_unclean |= bool(self._files) or any(move.inside for move in self.moves)
            with closing(self._with_records(self.moves)) as directories:
                for directory in directories:
                    remove_file(disk, directory, STAGED_RECORD, durable=False)
            self.drop_files()
        except OSError as error:
            log_dir.leave_unclean = True
            log_dir.go_offline(
                f"{log_dir.path}: what was staged so far could not be brought back ({error.strerror}); the log dir is "
                "offline, and opening it again sorts it out"
            )
        for move in self.moves:
            self._session.fallback.remove(log_dir, move.name)

    def _kept(self, candidate: Candidate, directory: Directory) -> Mapping[str, int]:
        """The offsets in a former record: after a restore that a crash cut short, nothing else holds them."""
        former = None if _record_in(directory) is None else record_of_live(self._log_dir, directory, candidate.path)
        return {} if former is None else former.checkpoints

    def _staged(self, move: StagingMove) -> Staged:
        return Staged(
            log_dir=self._log_dir.path,
            placement=self._session.placement,
            name=move.name,
            location=name_below_log_dir(self._log_dir, self._session.placement, move.name),
            record=move.record,
            problem=None,
            topic_id=move.record.topic_id,
            partition=move.candidate.partition,
            inode=move.inode,
        )


def _holds_id(descriptor: int, move: StagingMove) -> bool:
    """Whether ``partition.metadata`` in a partition dir holds the expected topic ID, and can be read at once."""
    topic_id = move.record.topic_id
    try:
        file = os.open(partition_metadata.FILE_NAME, READ_FLAGS, dir_fd=descriptor)
        try:
            data = os.read(file, FIRST_READ)
        finally:
            os.close(file)
        is_canonical = data == partition_metadata.encode(topic_id)
        return is_canonical or (len(data) < FIRST_READ and partition_metadata.parse(data).topic_id == topic_id)
    except (OSError, LayoutError):
        return False


def _record_in(directory: Directory) -> os.stat_result | None:
    """Status of the file in a partition dir where its record goes; None: there is none.

    Raises:
        UnsafePathError: it is a directory, which cannot be replaced by a record.
    """
    found = directory.status(STAGED_RECORD)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise UnsafePathError(f"a directory called {STAGED_RECORD} takes the place of its record")
    return found
