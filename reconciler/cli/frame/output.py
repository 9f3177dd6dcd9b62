"""Output: standard output or a file, rows for programs or pages for people, and progress on a terminal.

A :class:`Page` takes lines and tables: in a pipe or a file it is plain aligned text as wide as its content, and on a
terminal no line is wider than that, save a command to paste. Progress is shown on a terminal only.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeVar

import click

from reconciler.cli.frame.lifecycle import (
    ClosedPipeError,
    PartlyFailedError,
    abandon_output,
    detail,
    may_be_unread,
    since,
    warn,
)
from reconciler.cli.settings import Level, Verbosity, is_said, verbosity
from reconciler.errors import UsageError
from reconciler.text import Column, fit_table, fold, share_folders, visible

if TYPE_CHECKING:
    from rich.console import Console

_CLOSED = "standard output is closed: give -o FILE"


class Format(StrEnum):
    """The values of ``--format``."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"

    @property
    def is_binary(self) -> bool:
        """Whether a terminal cannot show the format."""
        return self in (Format.PARQUET, Format.ARROW)


def check_output(form: Format, path: str | None, log_dirs: Iterable[str], read: Iterable[str] = ()) -> None:
    """Check that the output can be written, before any work is done: to a file, or None for standard output.

    Nothing may be written into a log dir, or over a file that will be read.

    Raises:
        UsageError: standard output is closed, or a binary format would go to a terminal, or the file cannot be made,
            would lie in a log dir, or will be read.
    """
    if is_standard(path):
        if sys.stdout is None:
            raise UsageError(_CLOSED)
        if form.is_binary and sys.stdout.isatty():
            raise UsageError(f"{form} is nothing for a terminal: give -o FILE, or send the output on with > or |")
        return
    assert path is not None
    refuse_inside(path, log_dirs)
    here = (each for each in read if os.path.exists(each))
    if os.path.exists(path) and any(os.path.samefile(path, each) for each in here):
        raise UsageError(f"{path} would be written over while it is read: name another file with -o")
    _refuse_unwritable(path)
    named = os.path.splitext(path)[1].removeprefix(".")
    if form is Format.TABLE and named in (Format.PARQUET, Format.ARROW):
        # Else it shows only where the file is read, perhaps on another machine.
        warn(f"{path} gets a table for people, and no rows in {named}: --format says what is written, not the name")


def refuse_inside(path: str, log_dirs: Iterable[str], instead: str = "name another place") -> None:
    """Refuse a path that lies in a log dir, where a broker or an audit would stumble over it.

    A log dir is one that is known, or is recognised by the files in it; ``instead`` ends the sentence.

    Raises:
        UsageError: the path lies in a log dir.
    """
    from reconciler.cli.frame.inputs import log_dir_of_path

    real = os.path.realpath(path)
    known = [(each, os.path.realpath(each)) for each in log_dirs]
    homes = [log_dir for log_dir, folder in known if os.path.commonpath([folder, real]) == folder]
    home = log_dir_of_path(real)
    if home is not None:
        homes.append(home.log_dir)
    if homes:
        raise UsageError(f"{path} lies in the log dir {homes[0]}, where nothing is written: {instead}")


def _refuse_unwritable(path: str) -> None:
    """Refuse a file that cannot be made or overwritten, without touching it."""
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
    """Open the file of ``-o`` for writing bytes; None and ``-`` are standard output.

    Raises:
        UsageError: the file cannot be opened.
        PartlyFailedError: the file cannot take all data, so it is incomplete.
        ClosedPipeError: nobody reads standard output any more.
    """
    if is_standard(path):
        yield from _standard_output()
        return
    assert path is not None
    try:
        file = open(path, "wb")  # noqa: SIM115 - opening fails for other reasons than writing
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with file:
            yield file
    except OSError as error:
        raise PartlyFailedError(f"{path} is incomplete: {error.strerror or error}") from error


def _standard_output() -> Iterator[BinaryIO]:
    if sys.stdout is None:
        raise UsageError(_CLOSED)
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except KeyboardInterrupt:
        # Flushing the buffer would wait again for a reader that may never come.
        abandon_output()
        raise
    except BrokenPipeError as error:
        abandon_output()
        raise ClosedPipeError("whoever read the output stopped before its end") from error
    except OSError as error:
        abandon_output()
        raise PartlyFailedError(f"the output is incomplete: {error.strerror or error}") from error


def write_document(document: Mapping[str, Any], path: str | None) -> None:
    """Write a document as JSON that people can read too."""
    import orjson

    with destination(path) as out:
        out.write(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


def write_rows(form: Format, batches: Iterable[Any], schema: Any, schema_version: int, out: BinaryIO) -> None:
    """Write Arrow rows in a format that needs nothing but rows: ``ndjson``, ``csv``, ``parquet`` or ``arrow``.

    The version of the schema is for the lines of NDJSON.
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


_WIDE_TERMINAL = 150
"""A terminal with at least this many characters in a line is wide."""

_WIDEST = 80
"""A column of plain text is padded to at most this many characters."""


class Page(Protocol):
    """Takes lines and tables, one after the other."""

    is_terminal: bool
    is_wide: bool
    """Whether there is room for columns that are not essential."""

    def line(self, text: str = "", style: str = "", *, whole: bool = False) -> None:
        """Write a line of text; the style is for terminals, which wrap it unless it is to stay whole."""

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Mapping[str, str]) -> None:
        """Write a table with titles; ``styles`` maps the text of a row's first cell to a style for terminals."""


@contextmanager
def open_page(path: str | None) -> Iterator[Page]:
    """Open a page on the file of ``-o``; only standard output can be a terminal.

    Raises:
        UsageError, PartlyFailedError: as :func:`reconciler.cli.frame.destination`.
    """
    with destination(path) as out:
        if is_standard(path) and sys.stdout.isatty():
            from rich.console import Console

            page = TerminalPage(Console(highlight=False))
            yield page
            _hint(page)
        else:
            yield PlainPage(out)


class PlainPage:
    """A page of aligned text without colour, as wide as its content."""

    is_terminal = False
    is_wide = True

    def __init__(self, out: BinaryIO) -> None:
        """Take an open file."""
        self._out = out

    def line(self, text: str = "", style: str = "", *, whole: bool = False) -> None:
        """Write a line of text; there are no styles, and nothing is wrapped."""
        self._out.write(f"{visible(text)}\n".encode())

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Mapping[str, str]) -> None:
        """Write a table; the last column is not padded, and a very wide cell shifts only its own line.

        The folder that the paths of a column share is written once, above the table, and as ``…`` in its place.
        """
        cells = [list(row) for row in rows]
        for head in share_folders(columns, cells):
            self.line(head)
        lines = [[column.title for column in columns], *([visible(cell) for cell in row] for row in cells)]
        # What is wider shifts its own line alone, and makes no other one wider.
        widths = [
            max((len(cell) for cell in cells if len(cell) <= _WIDEST), default=0) for cells in zip(*lines, strict=True)
        ]
        for line in lines:
            padded = (
                cell.rjust(width) if column.right else cell.ljust(width)
                for cell, width, column in zip(line, widths, columns, strict=True)
            )
            self._out.write(f"{'  '.join(padded).rstrip()}\n".encode())


class TerminalPage:
    """A page on a terminal: no line is wider than it, and a path keeps its end; a command is whole, to be pasted."""

    is_terminal = True

    def __init__(self, console: Console) -> None:
        """Take the console of the terminal."""
        self._console = console
        self._width = max(20, console.width)
        self.is_wide = console.width >= _WIDE_TERMINAL
        self.is_cut = False
        """Whether something on the page is shorter than it is in a pipe."""

    @property
    def width(self) -> int:
        """The characters in a line."""
        return self._width

    def line(self, text: str = "", style: str = "", *, whole: bool = False) -> None:
        """Write a line of text in a style of rich; prose is wrapped at its spaces, a command is not."""
        shown = visible(text)
        lines, is_cut = ([shown], False) if whole else fold(shown, self._width)
        self.is_cut |= is_cut
        for each in lines:
            self._print(each, style, len(each))

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Mapping[str, str]) -> None:
        """Write a table no wider than the terminal (:func:`reconciler.text.fit_table`)."""
        fitted = fit_table(columns, rows, styles, self._width)
        self.is_cut |= fitted.is_cut
        for each in fitted.lines:
            self._print(each.text, each.style, each.styled)

    def _print(self, text: str, style: str, styled: int) -> None:
        from rich.text import Text

        shown = Text(text)
        if style:
            shown.stylize(style, 0, styled)
        self._console.print(shown, soft_wrap=True)


_HINTED = "logstore.hinted"


def _hint(page: TerminalPage) -> None:
    """Say once for each command how what was cut is seen whole."""
    context = click.get_current_context(silent=True)
    if not page.is_cut or verbosity() is Verbosity.QUIET or (context is not None and context.meta.get(_HINTED)):
        return
    has_json = context is not None and any("--json" in option.opts for option in context.command.params)
    if context is not None:
        context.meta[_HINTED] = True
    how = "--json, or with | cat" if has_json else "| cat"
    page.line(f"Cut to {page.width} columns; nothing is cut with {how} at the end.", "dim")


_READABLE = 100
"""A line of prose is at most this wide, however wide the terminal is."""


def tell_of(log_dir: str, lines: Iterable[str], *, headed: bool = False) -> None:
    """Write lines about changes in a log dir to standard output; on a terminal it stands once above its lines.

    The changes go on where nobody reads it any more or it takes no more data, as
    :func:`reconciler.cli.frame.may_be_unread` has it.
    ``headed``: the log dir stands there already.
    """
    if sys.stdout is None:
        return
    with may_be_unread(), open_page(None) as page:
        if page.is_terminal and not headed:
            page.line(log_dir, "bold")
        for line in lines:
            page.line(f"  {line}" if page.is_terminal else f"{log_dir}: {line}")


_PIPED = 80
"""The width of a text that does not go to a terminal."""


def show_text(written: Callable[[int, bool], str]) -> None:
    """Show a text that explains something, in the user's pager where it goes to a terminal.

    ``written`` makes the text from the width of its lines in characters, and whether styles of a terminal may stand in
    it.

    Raises:
        UsageError, PartlyFailedError, ClosedPipeError: as :func:`destination`.
    """
    if sys.stdout is None or not sys.stdout.isatty():
        with destination(None) as out:
            out.write(written(_PIPED, False).encode())
        return
    import shutil

    # As git has it: colours are let through, and what fits on one screen needs no key to leave it.
    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager(written(min(shutil.get_terminal_size().columns, _READABLE), True))


Item = TypeVar("Item")


def with_progress(items: Iterable[Item], total: int, doing: str) -> Iterator[Item]:
    """Yield the items, and show their progress on a terminal, unless there are fewer than two."""
    if is_said(Level.DEBUG):
        began = time.monotonic()
        for number, item in enumerate(items, 1):
            detail(f"{doing}: {number} of {total}, {since(began)}")
            yield item
        return
    if total < 2 or not _on_terminal():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(items, total=total, description=visible(doing))


@contextmanager
def show_busy(doing: str) -> Iterator[None]:
    """Show on a terminal what is being done while the block runs."""
    if is_said(Level.DEBUG):
        began = time.monotonic()
        yield
        detail(f"{doing}: done {since(began)}")
        return
    if not _on_terminal():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(visible(doing))):
        yield


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and verbosity() is not Verbosity.QUIET
