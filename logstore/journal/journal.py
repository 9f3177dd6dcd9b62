"""Carries out changes of many steps over several log dirs, so that a crash at any step ends wholly done or undone.

Every log dir that takes part gets a file ``.logstore_intent``: the first one with all the steps of all of them, and it
decides; each other one with its own steps. In which order, and why::

    1  the first log dir's file is written                  from here on, the next open carries the change out
    2  the other log dirs' files are written                so that each can go on if the first one's disk fails
    3  each log dir does its steps, durably                 (steps.py)
    4  the first log dir's file is removed, then the rest   a file whose first log dir has none any more is over

Where the system refuses in the middle, what was done is undone, the files go, and nothing was changed. Where a disk
fails, the other log dirs come to the end, and what is left of the change waits in the files for the next open. Until
then no other change of many steps is begun. At an open, log dirs that are missing do not keep the others from coming
to the end; where the *first* one is missing, each log dir does its own steps and keeps its file, emptied, to say so.
Source: DESIGN §5; KIP37-3, KIP516-12.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

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
from logstore.log_dir import DISK_FAILURES, LogDir
from logstore.staging import FallbackRecords

logger = logging.getLogger(__name__)

INTENT_LIMIT = 1 << 30
"""Bytes of an intent that are read; a conversion of 100,000 replicas writes about 12 MB."""


def log_dir_key(log_dir: LogDir) -> str:
    """How an intent names a log dir."""
    return log_dir.directory_id or log_dir.path


def check_nothing_pending(log_dirs: Iterable[LogDir]) -> None:
    """Refuse to begin a change of many steps while another waits for its end.

    Raises:
        ChangeRefusedError: one does; the message says which, and what to do.
    """
    for log_dir in log_dirs:
        if log_dir.offline is None and log_dir.root.holds(INTENT_FILE):
            raise ChangeRefusedError(
                f"{log_dir.path}/{INTENT_FILE} says that an earlier change is not finished: open the store again with "
                "all its log dirs; if one of them is gone for good, remove that file"
            )


def carry_out_intent(log_dirs: Sequence[LogDir], intent: Intent, spare: FallbackRecords) -> list[LogDir]:
    """Do all the steps of a change, or none; gives the log dirs whose disk failed on the way.

    The others have done their part by then, and the rest is done when those are opened again.

    Args:
        log_dirs: all those of the store that are open.
        intent: its log dirs are among them.
        spare: where records lie that found no room in the log dirs.

    Raises:
        ChangeRefusedError: an earlier change waits for its end, or something is not as the plan says; nothing was done.
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
    change = _Change(intent, members, spare)
    with _nothing_left_half_done(change):
        change.announce()
        try:
            change.forward([intent.of(number) for number in range(len(members))], resuming=False)
        except LogStoreError as error:
            change.undo(error)
            raise
        change.conclude()
    return [log_dir for log_dir in members if log_dir.offline is not None]


def finish_intents(log_dirs: Sequence[LogDir], spare: FallbackRecords) -> list[str]:
    """Bring every change that a crash cut short to its end, before anything else is done; what was done, in sentences.

    A log dir in which that cannot be done goes offline, and so do the others that take part, because nothing may be
    built upon what is half done.
    """
    copies: dict[str, dict[str, Intent]] = {}
    for log_dir in log_dirs:
        found = _read(log_dir) if log_dir.offline is None else None
        if found is not None or (log_dir.offline is None and log_dir.root.holds(INTENT_FILE + TEMPORARY)):
            log_dir.was_unclean = True  # also where a full disk had no room for the mark that says so
        if found is not None:
            copies.setdefault(found.id, {})[log_dir_key(log_dir)] = found
    by_key = {log_dir_key(log_dir): log_dir for log_dir in log_dirs if log_dir.offline is None}
    done = [_finish(by_key, own, spare) for own in copies.values()]
    for sentence in done:
        logger.warning("%s", sentence)
    return done


def _finish(by_key: dict[str, LogDir], copies: dict[str, Intent], spare: FallbackRecords) -> str:
    """Bring one change to its end, by the files of it that there are."""
    any_copy = next(iter(copies.values()))
    first = any_copy.log_dirs[0]
    intent = copies.get(first, any_copy)
    change = _Change(intent, [by_key.get(key) for key in intent.log_dirs], spare)
    with _nothing_left_half_done(change):
        if first in by_key and first not in copies:
            change.drop_files([by_key[key] for key in copies])
            return f"{intent.sentence}: this came to its end before, and its last traces are removed"
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
    """What a log dir has to do: what the first one's file says, unless its own says that it has done it.

    Without the first one's file, a log dir knows its own part alone.
    """
    own = copies.get(key)
    if own is not None:
        return own.of(number) if intent.log_dirs[0] not in copies or not own.of(number) else intent.of(number)
    return intent.of(number) if intent.log_dirs[0] in copies else ()


def _read(log_dir: LogDir) -> Intent | None:
    """A log dir's file; None: there is none, or it is no use, and the log dir is offline."""
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
    """A change on its way, and the log dirs that take part; None: one is missing."""

    intent: Intent
    members: Sequence[LogDir | None]
    spare: FallbackRecords

    @property
    def online(self) -> list[bool]:
        return [log_dir is not None and log_dir.offline is None for log_dir in self.members]

    def announce(self) -> None:
        """Steps 1 and 2; where one file cannot be written, those before it go, the first one first."""
        for number, log_dir in enumerate(self.members):
            assert log_dir is not None, "nothing begins while a log dir is missing"
            try:
                with log_dir.changing(f"cannot {self.intent.sentence}"):
                    self._announce_in(log_dir, self.intent if number == 0 else self.intent.only([number]))
            except LogStoreError:
                self.drop_files()
                raise

    def _announce_in(self, log_dir: LogDir, part: Intent) -> None:
        try:
            _write(log_dir, part)
        except OSError as error:
            if error.errno not in DISK_FAILURES:
                self._each_by_itself([log_dir], _remove)  # the file may be there, where only its last sync failed
            raise

    def forward(self, parts: Sequence[Iterable[IntentStep]], *, resuming: bool) -> None:
        """Step 3. A log dir whose disk fails is left behind; whatever else fails comes out."""
        for log_dir, steps in zip(self.members, parts, strict=True):
            if log_dir is not None and log_dir.offline is None:
                try:
                    do_steps(log_dir, steps, self.intent.sentence, resuming=resuming, spare=self.spare)
                except OfflineLogDirError:
                    continue

    def undo(self, cause: LogStoreError) -> bool:
        """Undo what was done. Where that fails too, no log dir that takes part is used until the next open: False."""
        parts = [inverse_steps(self.intent.of(number)) for number in range(len(self.members))]
        try:
            self.forward(parts, resuming=True)
        except LogStoreError as error:
            self.all_offline(f"{cause}, and that could not be undone ({error})")
            return False
        if not all(self.online):
            self.all_offline(f"{cause}, and that could not be undone in every log dir")
            return False
        self.drop_files()
        return all(self.online)

    def conclude(self) -> None:
        """Step 4; or where a log dir is missing, its part is left in the first one's file, or a word for that one."""
        left = [number for number, online in enumerate(self.online) if not online]
        if not left:
            self.drop_files()
            return
        first, *others = self.members
        if first is not None and first.offline is None:
            self._each_by_itself([first], lambda log_dir: _write(log_dir, self.intent.only(left)))
            if first.offline is None:
                self._each_by_itself(others, _remove)
                return
        self._each_by_itself(others, lambda log_dir: _write(log_dir, self.intent.only(())))

    def drop_files(self, members: Sequence[LogDir] | None = None) -> None:
        """The first one's file goes first: without it the others are over."""
        self._each_by_itself(self.members if members is None else members, _remove)

    def _each_by_itself(self, members: Iterable[LogDir | None], write: Callable[[LogDir], None]) -> None:
        """A log dir whose file cannot be brought up to date must not be changed until it is opened again."""
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


def _remove(log_dir: LogDir) -> None:
    remove_file(log_dir.disk, log_dir.root, INTENT_FILE)


@contextmanager
def _nothing_left_half_done(change: _Change) -> Iterator[None]:
    """Whatever interrupts a change, a signal or a bug: nothing is built upon what it left.

    Where what was refused could not be undone either, the disk is failing, and that is what is said.
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
