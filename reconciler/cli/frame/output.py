"""Where data goes, and in which format: standard output or a file, text or rows for other programs.

Tables for people are left to ``tables``, the text of rows to ``row_text``, inventories to ``logstore.rows.inventory``.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, BinaryIO

from reconciler.cli.frame.exits import PartlyFailedError, abandon_output
from reconciler.errors import UsageError


class Format(StrEnum):
    """What ``--format`` takes."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"

    @property
    def is_binary(self) -> bool:
        """Whether a terminal cannot show it."""
        return self in (Format.PARQUET, Format.ARROW)


def check_output(form: Format, path: str | None, log_dirs: Iterable[str], read: Iterable[str] = ()) -> None:
    """Make sure that there is somewhere to write to, before any work is done.

    Args:
        form: what will be written.
        path: the file, or None for standard output.
        log_dirs: nothing may be written into any of these.
        read: files that will be read, which must not be written over.

    Raises:
        UsageError: a binary format would go to a terminal, or the file cannot be made, would lie in a log dir, or is
            one of those that are read.
    """
    if is_standard(path):
        if form.is_binary and sys.stdout is not None and sys.stdout.isatty():
            raise UsageError(f"{form} is nothing for a terminal: give -o FILE, or send the output on with > or |")
        return
    assert path is not None
    refuse_inside(path, log_dirs)
    if any(os.path.exists(path) and os.path.samefile(path, each) for each in read):
        raise UsageError(f"{path} would be written over while it is read: name another file with -o")
    _refuse_unwritable(path)


def refuse_inside(path: str, log_dirs: Iterable[str], instead: str = "name another place") -> None:
    """Refuse a path that lies in a log dir, where a broker or an audit would stumble over it.

    Args:
        path: where something is to be written.
        log_dirs: those that are known; any other is recognised by the files in it.
        instead: what to do, for the sentence.

    Raises:
        UsageError: it does.
    """
    from reconciler.cli.pages import log_dir_of_path

    real = os.path.realpath(path)
    homes = [log_dir for log_dir in log_dirs if _contains(os.path.realpath(log_dir), real)]
    home = log_dir_of_path(real)
    if home is not None:
        homes.append(home.log_dir)
    if homes:
        raise UsageError(f"{path} lies in the log dir {homes[0]}, where nothing is written: {instead}")


def _contains(folder: str, path: str) -> bool:
    return os.path.commonpath([folder, path]) == folder


def _refuse_unwritable(path: str) -> None:
    """Refuse a file that cannot be made or written over, without touching it."""
    folder = os.path.dirname(path) or os.curdir
    if os.path.isdir(path):
        problem = errno.EISDIR
    elif not os.path.isdir(folder):
        problem = errno.ENOENT
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK):
        problem = errno.EACCES
    else:
        return
    raise UsageError(f"{path} cannot be written: {os.strerror(problem)}")


def is_standard(path: str | None) -> bool:
    """Whether a path given with ``-o`` means standard output."""
    return path is None or path == "-"


@contextmanager
def destination(path: str | None) -> Iterator[BinaryIO]:
    """Open what ``-o`` names for writing bytes; None and ``-`` are standard output.

    Raises:
        UsageError: it cannot be opened.
        PartlyFailedError: it cannot take everything, and what is there is incomplete.
    """
    if is_standard(path):
        yield from _standard_output()
        return
    assert path is not None
    try:
        file = open(path, "wb")  # noqa: SIM115 - opening it fails for other reasons than writing to it
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with file:
            yield file
    except OSError as error:
        raise PartlyFailedError(f"{path} is incomplete: {error.strerror or error}") from error


def _standard_output() -> Iterator[BinaryIO]:
    if sys.stdout is None:
        raise UsageError("standard output is closed: give -o FILE")
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except KeyboardInterrupt:
        # What is still buffered would wait once more for a reader that may never come.
        abandon_output()
        raise
    except BrokenPipeError as error:
        abandon_output()
        raise PartlyFailedError("whoever read the output stopped before its end") from error
    except OSError as error:
        abandon_output()
        raise PartlyFailedError(f"the output is incomplete: {error.strerror or error}") from error


def write_rows(form: Format, batches: Iterable[Any], schema: Any, schema_version: int, out: BinaryIO) -> None:
    """Write Arrow rows in one of the formats that need nothing but rows.

    Args:
        form: ``ndjson``, ``csv``, ``parquet`` or ``arrow``.
        batches: Arrow tables in the columns of the schema.
        schema: of the rows.
        schema_version: of the rows, for the lines of NDJSON.
        out: takes the bytes.
    """
    from logstore.rows import InventoryForm, write_inventory
    from reconciler.text import write_csv, write_lines

    match form:
        case Format.NDJSON:
            write_lines(batches, out, schema_version)
        case Format.CSV:
            write_csv(batches, schema, out)
        case _:
            write_inventory(batches, out, InventoryForm(form), schema)
