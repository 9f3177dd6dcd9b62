"""Carries out changes of many steps over several log dirs, so that after a crash a change is wholly done or undone.

Every log dir of the change gets a file ``.logstore_intent``. The file of the first log dir holds the steps of all, and
decides; each other file holds the steps of its own log dir. In which order, and why::

    1  the first log dir's file is written                  from here on, the next open carries the change out
    2  the other log dirs' files are written                so that each can continue if the first one's disk fails
    3  each log dir does its steps, durably                 (``steps``)
    4  the first log dir's file is removed, then the rest   without the first file the change is over

Where the system refuses a step, the steps before it are undone, the files are removed, and nothing was changed. Before
the first one's file goes, each other one says ``given_up``: after a crash between the two, with the first log dir
missing, the others would do their steps again. Where a disk fails, the other log dirs do their steps, and the rest of
the change waits in the files for the next open. Until then no other change of many steps may begin. At an open, a
missing log dir does not keep the others from finishing. What is done meanwhile, each log dir records by its file, which
it keeps, emptied. Where the *first* one is missing, each does the steps of its own file. Where one has none then, and
none is emptied, no step was done yet, or all were, for the first step comes after the last file: the change does not
take place.

Where the first one's file cannot be removed, or nobody knows whether it was written, because its disk failed, it may
call for the change when the disk is back, and the others may hold something else by then. So each of these keeps a file
that says how the change ended: emptied where it is done, ``given_up`` where it does not take place. For the same reason
the first one keeps a file that says ``given_up`` while another is missing whose file may call for the change. Where one
did its part of a change that was given up, alone, before it saw such a file, people have to look.
Source: DESIGN §5; KIP37-3, KIP516-12.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from layout.errors import DamagedFileError
from layout.ours import Intent, IntentStep, encode_intent, inverse_steps, parse_intent
from layout.scheme import INTENT_FILE
from logstore.errors import (
    ChangeRefusedError,
    LogStoreError,
    OfflineLogDirError,
    UnreadableFileError,
)
from logstore.fs import TEMPORARY, read_small_file, remove_file, replace_file
from logstore.journal.steps import do_steps
from logstore.log_dir import DISK_FAILURES, FallbackRecords, LogDir

logger = logging.getLogger(__name__)

INTENT_LIMIT = 1 << 30
"""Largest intent that is read, in bytes; a conversion of 100,000 replicas writes about 12 MB."""


def log_dir_key(log_dir: LogDir) -> str:
    """Give the name of a log dir in an intent."""
    return log_dir.directory_id or log_dir.path


def check_nothing_pending(log_dirs: Iterable[LogDir]) -> None:
    """Refuse to begin a change of many steps while another is unfinished.

    Raises:
        ChangeRefusedError: a change is unfinished; the message says which, and what to do.
    """
    for log_dir in log_dirs:
        pending = what_is_pending(log_dir.path) if log_dir.offline is None else None
        if pending is not None:
            raise ChangeRefusedError(pending)


def what_is_pending(path: str) -> str | None:
    """Say that the log dir at a path has an unfinished change of many steps, and what to do; None: it has none."""
    if not os.path.lexists(f"{path}/{INTENT_FILE}"):
        return None
    return (
        f"{path}/{INTENT_FILE} says that an earlier change is not finished: give all log dirs of the broker to the "
        "command, or to the store, which brings it to its end first; if one of them is gone for good, remove that file"
    )


def carry_out_intent(log_dirs: Sequence[LogDir], intent: Intent, fallback: FallbackRecords) -> list[LogDir]:
    """Do all steps of a change, or none.

    ``log_dirs``: all open ones of the store; those of the change are among them.

    Returns:
        The log dirs whose disk failed meanwhile. The others have done their part; the next open of these does the rest.

    Raises:
        ChangeRefusedError: an earlier change is unfinished, or the plan no longer holds; nothing was done.
        ChangeFailedError: the system refused, and nothing was changed.
        OfflineLogDirError: a disk failed before anything was done.
    """
    if not intent.steps:
        return []
    check_nothing_pending(log_dirs)
    by_key = {log_dir_key(log_dir): log_dir for log_dir in log_dirs}
    members = [by_key[key] for key in intent.log_dirs]
    for log_dir in members:
        log_dir.check_online()
        with log_dir.changing(f"cannot {intent.sentence}"):
            # Entries that are in memory alone would not be renamed after a crash; where the system refuses still, a
            # change that may free the disk goes on.
            log_dir.write_checkpoints()
    change = _Change(intent, members, fallback)
    with _nothing_left_half_done(change):
        change.announce()
        try:
            change.forward([intent.of(number) for number in range(len(members))], resuming=False)
        except LogStoreError as error:
            change.undo(error)
            raise
        change.conclude()
    return [log_dir for log_dir in members if log_dir.offline is not None]


def finish_intents(log_dirs: Sequence[LogDir], fallback: FallbackRecords) -> list[str]:
    """Finish every change that a crash cut short, before anything else is done; gives a sentence for each.

    Where a change can be neither finished nor undone, all its log dirs go offline, because nothing may be built upon
    half a change.
    """
    copies: dict[str, dict[str, Intent]] = {}
    for log_dir in log_dirs:
        found = _read(log_dir) if log_dir.offline is None else None
        if found is not None or (log_dir.offline is None and log_dir.root.holds(INTENT_FILE + TEMPORARY)):
            log_dir.was_unclean = True  # also where a full disk had no room for the mark that says so
        if found is not None:
            copies.setdefault(found.id, {})[log_dir_key(log_dir)] = found
    by_key = {log_dir_key(log_dir): log_dir for log_dir in log_dirs if log_dir.offline is None}
    done = [_finish(by_key, own, fallback) for own in copies.values()]
    for sentence in done:
        logger.warning("%s", sentence)
    return done


def _finish(by_key: dict[str, LogDir], copies: dict[str, Intent], fallback: FallbackRecords) -> str:
    """Finish one change, from those of its files that exist."""
    any_copy = next(iter(copies.values()))
    first = any_copy.log_dirs[0]
    intent = copies.get(first, any_copy)
    change = _Change(intent, [by_key.get(key) for key in intent.log_dirs], fallback)
    with _nothing_left_half_done(change):
        if any(copy.given_up for copy in copies.values()):
            return change.give_up_at_last(copies)
        without = [] if first in by_key else [key for key in intent.log_dirs if key in by_key and key not in copies]
        if without and all(copy.steps for copy in copies.values()):
            change.drop_files(given_up=True)
            return f"{intent.sentence}: no log dir that is here has begun this, or all have done it, so it is over"
        if first in by_key and first not in copies:
            change.drop_files()
            return f"{intent.sentence}: this came to its end before, and its last traces are removed"
        change = replace(change, members=[None if key in without else by_key.get(key) for key in intent.log_dirs])
        parts = [_part(number, key, intent, copies) for number, key in enumerate(intent.log_dirs)]
        try:
            change.forward(parts, resuming=True)
        except LogStoreError as error:
            if not all(change.online):
                change.all_offline(f"{error}, and a log dir that takes part is missing")
                return f"{intent.sentence}: this was cut short, and can neither be finished nor undone now"
            undone = "it was undone" if change.undo(error) else "its log dirs are offline"
            return f"{intent.sentence}: this was cut short and could not be finished ({error}), so {undone}"
        change.conclude()
    missing = [key for key, online in zip(intent.log_dirs, change.online, strict=True) if not online]
    rest = f"; {', '.join(missing)} will follow when it is there" if missing else ""
    return f"{intent.sentence}: this was cut short, and is carried out to its end{rest}"


def _part(number: int, key: str, intent: Intent, copies: dict[str, Intent]) -> tuple[IntentStep, ...]:
    """Steps that a log dir still has to do: from the first log dir's file, unless its own file says that it is done.

    Without the first log dir's file, only its own file says what it has to do.
    """
    own = copies.get(key)
    if own is not None:
        return own.of(number) if intent.log_dirs[0] not in copies or not own.of(number) else intent.of(number)
    return intent.of(number) if intent.log_dirs[0] in copies else ()


def _has_done_its_part(number: int, copy: Intent | None) -> bool:
    return copy is not None and not copy.given_up and not copy.of(number)


def _read(log_dir: LogDir) -> Intent | None:
    """Read a log dir's file; None: it has none, or the file is invalid and the log dir goes offline."""
    try:
        data = read_small_file(INTENT_FILE, INTENT_LIMIT, log_dir.root.descriptor)
        if data is None:
            return None
        found = parse_intent(data)
        problem = "" if log_dir_key(log_dir) in found.log_dirs else "it is about other log dirs"
    except (UnreadableFileError, DamagedFileError) as error:
        problem = str(error)
    if not problem:
        return found
    log_dir.go_offline(
        f"{log_dir.path}/{INTENT_FILE} is no use ({problem}), so what a crash cut short cannot be finished: look at "
        "it with 'logstore scan', then remove that file"
    )
    return None


@dataclass(frozen=True, slots=True)
class _Change:
    """A change that is being carried out, and its log dirs; None stands for a missing log dir."""

    intent: Intent
    members: Sequence[LogDir | None]
    fallback: FallbackRecords

    @property
    def online(self) -> list[bool]:
        return [log_dir is not None and log_dir.offline is None for log_dir in self.members]

    def announce(self) -> None:
        """Write the files (steps 1 and 2); where that fails, remove those that are written, the first one first."""
        for number, log_dir in enumerate(self.members):
            assert log_dir is not None, "nothing begins while a log dir is missing"
            try:
                with log_dir.changing(f"cannot {self.intent.sentence}"):
                    self._announce_in(log_dir, self.intent if number == 0 else self.intent.only([number]))
            except LogStoreError:
                self.drop_files(given_up=True)
                raise

    def _announce_in(self, log_dir: LogDir, part: Intent) -> None:
        try:
            _write(log_dir, part)
        except OSError as error:
            if error.errno not in DISK_FAILURES:
                self._each_by_itself([log_dir], _remove)  # the file may be there, where only its last sync failed
            raise

    def forward(self, parts: Sequence[Iterable[IntentStep]], *, resuming: bool) -> None:
        """Do the steps of each log dir (step 3). A log dir whose disk fails is skipped; other errors are raised."""
        for log_dir, steps in zip(self.members, parts, strict=True):
            if log_dir is not None and log_dir.offline is None:
                try:
                    do_steps(log_dir, steps, self.intent.sentence, resuming=resuming, fallback=self.fallback)
                except OfflineLogDirError:
                    continue

    def undo(self, cause: LogStoreError) -> bool:
        """Undo the steps that were done; False: that failed too, and the log dirs are offline until the next open."""
        parts = [inverse_steps(self.intent.of(number)) for number in range(len(self.members))]
        try:
            self.forward(parts, resuming=True)
        except LogStoreError as error:
            self.all_offline(f"{cause}, and that could not be undone ({error})")
            return False
        if not all(self.online):
            self.all_offline(f"{cause}, and that could not be undone in every log dir")
            return False
        self.drop_files(given_up=True)
        return all(self.online)

    def conclude(self) -> None:
        """Remove the files (step 4); where a log dir is missing or offline, leave its part in the first one's file.

        Each other file stays then, emptied, to record that its part is done: the first one may be missing next time.
        """
        left = [number for number, online in enumerate(self.online) if not online]
        if not left:
            self.drop_files()
            return
        self._each_by_itself(self.members[:1], lambda log_dir: _write(log_dir, self.intent.only(left)))
        self._leave_word(given_up=False)

    def drop_files(self, *, given_up: bool = False) -> None:
        """Remove the files, the first log dir's first: without it the others mean nothing.

        Where that fails or the first one is missing, the others are left to say how the change ended. Of a change that
        is given up they say so before, and where one of them is missing or cannot say it, the first one is left too.
        """
        first, *others = self.members
        if given_up and self.online[0]:
            word = replace(self.intent.only(()), given_up=True)
            self._each_by_itself(others, lambda log_dir: _write_or_remove(log_dir, word))
            if not all(self.online):
                self._each_by_itself([first], lambda log_dir: _write_or_remove(log_dir, word))
                return
        self._each_by_itself([first], _remove)
        if self.online[0]:
            self._each_by_itself(others, _remove)
        else:
            self._leave_word(given_up=given_up)

    def give_up_at_last(self, copies: dict[str, Intent]) -> str:
        """Forget, also in log dirs that come back, a change that was given up while they were away; gives a sentence.

        Where one did its part by itself before it saw the others again, neither way is open any more.
        """
        keys = self.intent.log_dirs
        done = [key for number, key in enumerate(keys) if _has_done_its_part(number, copies.get(key))]
        if done:
            self.all_offline(
                f"{self.intent.sentence}: this was given up, and {', '.join(done)} did its part before it could see "
                f"that; look at every log dir with 'logstore scan', then remove its {INTENT_FILE}"
            )
            return f"{self.intent.sentence}: this can neither be finished nor undone now"
        self.drop_files(given_up=True)
        missing = [key for key, online in zip(keys, self.online, strict=True) if not online]
        where = f"and {', '.join(missing)} will forget it when it is there" if missing else "everywhere"
        return f"{self.intent.sentence}: this was given up, {where}"

    def _leave_word(self, *, given_up: bool) -> None:
        word = replace(self.intent.only(()), given_up=given_up)
        self._each_by_itself(self.members[1:], lambda log_dir: _write(log_dir, word))

    def _each_by_itself(self, members: Iterable[LogDir | None], write: Callable[[LogDir], None]) -> None:
        """Write or remove each file; a log dir where that fails goes offline until it is opened again."""
        for log_dir in members:
            if log_dir is not None and log_dir.offline is None:
                try:
                    write(log_dir)
                except OSError as error:
                    log_dir.go_offline(
                        f"{log_dir.path}/{INTENT_FILE} cannot be brought up to date ({error.strerror}); the log dir is "
                        "offline until it is opened again"
                    )

    def all_offline(self, reason: str) -> None:
        for log_dir in self.members:
            if log_dir is not None:
                log_dir.go_offline(f"{reason}; {log_dir.path} is offline until it is opened again")


def _write(log_dir: LogDir, intent: Intent) -> None:
    replace_file(log_dir.disk, log_dir.root, INTENT_FILE, encode_intent(intent))


def _write_or_remove(log_dir: LogDir, intent: Intent) -> None:
    """Write a file; where the system refuses, as a full disk does, remove it: the first log dir's file decides then."""
    try:
        _write(log_dir, intent)
    except OSError as error:
        if error.errno in DISK_FAILURES:
            raise
        _remove(log_dir)


def _remove(log_dir: LogDir) -> None:
    remove_file(log_dir.disk, log_dir.root, INTENT_FILE)


@contextmanager
def _nothing_left_half_done(change: _Change) -> Iterator[None]:
    """Take the log dirs offline when a signal or a bug interrupts a change, so that nothing is built upon half of it.

    Where a refused change could not be undone either, the disk is failing, and that is the error that is raised.
    """
    try:
        yield
    except LogStoreError as error:
        for log_dir in change.members:
            if log_dir is not None and log_dir.offline is not None:
                raise OfflineLogDirError(log_dir.offline) from error
        raise
    except BaseException as error:
        change.all_offline(f"{change.intent.sentence}: this was interrupted ({type(error).__name__})")
        raise
