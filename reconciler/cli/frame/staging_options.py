"""What the commands about staged directories share: the folder of spare records, and log dirs opened to be changed.

A record that found no room on a full disk lies in a folder on another disk, and every command must look into the same
one. So it is one fixed place unless somebody says otherwise: with ``sudo`` or from cron the environment is not the one
of whoever staged, and at three in the morning nobody remembers an option.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reconciler.cli.frame.exits import Exit, say
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from logstore.log_dir import LogDir
    from logstore.staging import FallbackRecords, Staged

Function = TypeVar("Function", bound=Callable[..., Any])

SPARE_FOLDER = "/var/lib/logstore/spare-records"
"""Used where it is there and nothing else is named: make it once, on a disk that no log dir lies on."""

SPARE_VARIABLE = "LOGSTORE_SPARE_RECORDS"


def spare_option(function: Function) -> Function:
    """The option ``--spare-records``, alike in every command that stages, lists, restores or purges."""
    return click.option(
        "--spare-records",
        metavar="DIR",
        envvar=SPARE_VARIABLE,
        help=f"Folder on another disk with the records that found no room. [default: ${SPARE_VARIABLE}, else "
        f"{SPARE_FOLDER} where it is there]",
    )(function)


def spare_records(folder: str | None) -> FallbackRecords:
    """The folder of spare records.

    Raises:
        UsageError: the one that was named is not there.
    """
    from logstore.staging import FallbackRecords

    if not folder:
        return FallbackRecords(SPARE_FOLDER if os.path.isdir(SPARE_FOLDER) else None)
    if not os.path.isdir(folder):
        raise UsageError(f"--spare-records: {folder} is no directory")
    return FallbackRecords(os.path.abspath(folder))


def log_dirs_in(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The log dirs that are meant by paths, each once: log dirs themselves, or folders of them.

    Raises:
        UsageError: not one of them is there, or one is an inventory, in which nothing can be changed.
    """
    from reconciler.cli.frame.inputs import sort_inputs

    inputs = sort_inputs(paths)
    if inputs.inventories:
        raise UsageError(f"{inputs.inventories[0]} is an inventory, and nothing is staged in a file: give log dirs")
    return inputs.log_dirs


def why_in_use(path: str) -> str | None:
    """Why a log dir cannot be changed now, as taking its lock would say; None: nobody holds it. Takes no lock."""
    from logstore.log_dir import find_lock_holder

    holder = find_lock_holder(os.path.abspath(path))
    if holder is None:
        return None
    return (
        f"{os.path.abspath(path)} is in use by {holder}: stop the broker, or whatever else works on this log dir, first"
    )


class Opened:
    """Log dirs that were opened to be changed, and what stood in the way of the others."""

    def __init__(self, stack: ExitStack) -> None:
        """Take what closes them."""
        self.log_dirs: list[LogDir] = []
        self._stack = stack
        self._codes: list[Exit] = []

    def open(self, paths: Iterable[str], spare: FallbackRecords) -> None:
        """Lock and open log dirs, and sort out what a crash left; what cannot be opened is said."""
        from logstore import LogDirInUseError, LogStoreError, NotALogDirError
        from logstore.log_dir import LogDir
        from logstore.store import recover_all

        for path in paths:
            try:
                self.log_dirs.append(self._stack.enter_context(LogDir.open(path)))
            except LogDirInUseError as error:
                self.refuse(str(error), Exit.REFUSED)
            except NotALogDirError as error:
                self.refuse(str(error), Exit.USAGE)
            except LogStoreError as error:
                self.refuse(str(error), Exit.PARTLY_FAILED)
        try:
            # What a crash left between these log dirs and others waits until all of them are opened.
            recover_all(self.log_dirs, spare)
        except LogStoreError as error:
            self.refuse(str(error), Exit.PARTLY_FAILED)
            self.log_dirs = []

    def refuse(self, sentence: str, code: Exit) -> None:
        """Say why a log dir is left out."""
        say(sentence)
        self._codes.append(code)

    def code(self, worked: int) -> Exit:
        """The exit code: that of what stood in the way if nothing worked, else partly failed, else clean.

        Args:
            worked: how many log dirs were worked on.
        """
        if not self._codes:
            return Exit.CLEAN
        return Exit.PARTLY_FAILED if worked else max(self._codes)


def describe_staged(staged: Staged) -> str:
    """A staged directory in a line for people: what it was, as far as that is known."""
    what = "nobody knows what" if staged.partition is None else str(staged.partition)
    return f"{what}, topic ID {staged.topic_id or 'unknown'}"
