"""Output: standard output or a file, rows for programs or pages for people, and progress on a terminal.

A :class:`Page` takes lines and tables: rich on a terminal, plain aligned text in a pipe or a file, nothing cut short in
either. Progress is shown on a terminal only.
"""

from __future__ import annotations

import errno
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeVar

from reconciler.cli.frame.lifecycle import ClosedPipeError, PartlyFailedError, abandon_output
from reconciler.errors import UsageError
from reconciler.text import NOTHING, visible

if TYPE_CHECKING:
    from rich.console import Console


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
        UsageError: a binary format would go to a terminal, or the file cannot be made, would lie in a log dir, or will
            be read.
    """
    if is_standard(path):
        if form.is_binary and sys.stdout is not None and sys.stdout.isatty():
            raise UsageError(f"{form} is nothing for a terminal: give -o FILE, or send the output on with > or |")
        return
    assert path is not None
    refuse_inside(path, log_dirs)
    here = (each for each in read if os.path.exists(each))
    if os.path.exists(path) and any(os.path.samefile(path, each) for each in here):
        raise UsageError(f"{path} would be written over while it is read: name another file with -o")
    _refuse_unwritable(path)


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
        raise UsageError("standard output is closed: give -o FILE")
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

_SHORT = 24
"""A cell of at most this many characters stands beside the first where a table has no room."""

_WORTH_SHARING = 12
"""A shared folder is written once where it has at least this many characters."""

_WIDEST = 80
"""A column of plain text is padded to at most this many characters."""


@dataclass(frozen=True, slots=True)
class Column:
    """The title of a column, and what its cells are: numbers, which are aligned to the right, or paths."""

    title: str
    right: bool = False
    path: bool = False


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

            yield TerminalPage(Console(highlight=False))
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
        for index, column in enumerate(columns):
            folder = _shared_folder([row[index] for row in cells]) if column.path else None
            if folder is not None:
                self.line(f"{column.title}: … is {folder}")
                for row in cells:
                    row[index] = f"…{row[index].removeprefix(folder)}" if row[index].startswith("/") else row[index]
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


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Break a text into lines at its spaces, where no word is ever broken; the first line and the rest are indented."""
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def _shared_folder(cells: Iterable[str]) -> str | None:
    """Find the folder that holds every path of a column; None: there are not several, or it would save nothing."""
    paths = [cell for cell in cells if cell.startswith("/")]
    if len(paths) < 2:
        return None
    folder = os.path.commonpath(paths)
    folder = os.path.dirname(folder) if folder in paths else folder
    return folder if len(folder) >= _WORTH_SHARING else None


class TerminalPage:
    """A page on a terminal: nothing is cut short, and no path is broken, so that it can be copied."""

    is_terminal = True

    def __init__(self, console: Console) -> None:
        """Take the console of the terminal."""
        self._console = console
        self.is_wide = console.width >= _WIDE_TERMINAL

    def line(self, text: str = "", style: str = "", *, whole: bool = False) -> None:
        """Write a line of text in a style of rich; prose is wrapped at its spaces, a command is not."""
        from rich.text import Text

        shown = visible(text)
        for each in [shown] if whole else wrapped(shown, max(20, self._console.width)) or [""]:
            self._console.print(Text(each, style=style), soft_wrap=True)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Mapping[str, str]) -> None:
        """Write a table as wide as the terminal; one whose paths would be broken becomes a few lines for each row."""
        from rich.table import Table
        from rich.text import Text

        cells = [[visible(cell) for cell in row] for row in rows]
        if not self._has_room(columns, cells):
            for row in cells:
                self._stack(columns, row, styles.get(row[0], ""))
            return
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
        for column in columns:
            justify = "right" if column.right else "left"
            table.add_column(column.title, justify=justify, no_wrap=column.right, overflow="fold")  # type: ignore[arg-type]
        for first, *rest in cells:
            table.add_row(Text(first, style=styles.get(first, "")), *map(Text, rest))
        self._console.print(table)

    def _has_room(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> bool:
        """Whether the longest words of all columns, which can be broken nowhere, stand beside each other."""
        needed = []
        for number, column in enumerate(columns):
            cells = [column.title, *(row[number] for row in rows)]
            words = cells if column.right else [word for cell in cells for word in cell.split()]
            needed.append(max(map(len, words), default=0))
        return sum(needed) + 2 * len(needed) <= self._console.width

    def _stack(self, columns: Sequence[Column], row: Sequence[str], style: str) -> None:
        """Write a row as lines: what is short beside its first cell, and each longer cell below it."""
        short = [
            f"{column.title.lower()} {cell}"
            for column, cell in zip(columns[1:], row[1:], strict=True)
            if len(cell) <= _SHORT and cell != NOTHING and cell
        ]
        self.line("  ".join([row[0], ", ".join(short)]).rstrip(), style)
        for cell in row[1:]:
            if len(cell) > _SHORT:
                for each in wrapped(cell, max(20, self._console.width - 2)):
                    self.line(f"  {each}", whole=True)


_READABLE = 100
"""A line of prose is at most this wide, however wide the terminal is."""

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

    import click

    # As git has it: colours are let through, and what fits on one screen needs no key to leave it.
    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager(written(min(shutil.get_terminal_size().columns, _READABLE), True))


Item = TypeVar("Item")


def with_progress(items: Iterable[Item], total: int, doing: str) -> Iterator[Item]:
    """Yield the items, and show their progress on a terminal, unless there are fewer than two."""
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
    if not _on_terminal():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(visible(doing))):
        yield


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
