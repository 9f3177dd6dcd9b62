"""Exit codes, and every error as one sentence on standard error: nobody meets a traceback unasked.

Usage errors of click itself (an unknown option, a missing argument) are left to click, which says them and exits with
2 as well.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum

import click

from logstore import ChangeRefusedError, DamagedRecordError, InventoryError, LogStoreError, NotALogDirError
from reconciler.errors import ReconcilerError
from reconciler.text import visible

TRACEBACK = "LOGSTORE_TRACEBACK"
"""Set this in the environment to see where an error came from."""


class Exit(IntEnum):
    """What the exit code says (DESIGN §9)."""

    CLEAN = 0
    FINDINGS = 1
    USAGE = 2
    REFUSED = 3
    PARTLY_FAILED = 4


class PartlyFailedError(ReconcilerError):
    """Something was done, and not all of it: output is incomplete, or an engine gave up."""

    exit_code = Exit.PARTLY_FAILED


def code_of(error: BaseException) -> Exit:
    """The exit code that stands for an error."""
    match error:
        case ReconcilerError():
            return Exit(error.exit_code)
        case NotALogDirError():
            return Exit.USAGE
        case FileNotFoundError() if _without_current_directory(error):
            return Exit.USAGE
        case InventoryError() | ChangeRefusedError() | DamagedRecordError():
            return Exit.REFUSED
        case _:
            return Exit.PARTLY_FAILED


@contextmanager
def sentences() -> Iterator[None]:
    """Say what goes wrong inside in one sentence, and leave with the exit code for it."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BaseException as error:
        if os.environ.get(TRACEBACK) or isinstance(error, SystemExit):
            raise
        say(_sentence(error))
        raise click.exceptions.Exit(code_of(error)) from error


def say(sentence: str) -> None:
    """Write a line of prose to standard error; names in it cannot steer the terminal.

    Where nobody listens any more, there is nobody to tell that either: the exit code still says it.
    """
    with suppress(OSError):
        click.echo(f"logstore: {visible(sentence)}", err=True)


def abandon_output() -> None:
    """Stop writing to standard output, which cannot take any more; else Python complains of it once more at its end."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _without_current_directory(error: FileNotFoundError) -> bool:
    """Whether this is what a relative path gives when the current directory was removed."""
    return error.filename is None and error.strerror == os.strerror(errno.ENOENT)


def _sentence(error: BaseException) -> str:
    match error:
        case KeyboardInterrupt():
            return "interrupted; what was written so far is incomplete, and what was not done yet stays as it was"
        case ReconcilerError() | LogStoreError():
            return str(error)
        case FileNotFoundError() if _without_current_directory(error):
            return "the current directory is gone: change to another one, or give absolute paths from there"
        case OSError(strerror=str(reason)):
            return f"{error.filename}: {reason}" if error.filename is not None else reason
        case MemoryError():
            return "there is not enough memory: audit fewer log dirs at a time, or inventories instead of trees"
        case _:
            return (
                f"this is a bug in logstore ({type(error).__name__}: {error!s:.200}): run it again with {TRACEBACK}=1 "
                "and report what it prints"
            )
