"""Tables and lines for people: rich on a terminal, plain aligned text in a pipe or a file, nothing cut short in either.

A :class:`Page` is where both go. What stands in a table is left to the commands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

from reconciler.cli.frame.output import destination, is_standard
from reconciler.text import visible

if TYPE_CHECKING:
    from rich.console import Console

_WIDE_TERMINAL = 150
"""Characters from which on a terminal is wide."""

_WIDEST = 80
"""Characters to which a column of plain text is padded."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's title, and whether its cells are figures, which stand to the right."""

    title: str
    right: bool = False


class Page(Protocol):
    """Takes lines and tables, one after the other."""

    is_terminal: bool
    is_wide: bool
    """Whether there is room for columns that are merely good to have."""

    def line(self, text: str = "", style: str = "") -> None:
        """A line of text; the style is for terminals."""

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Mapping[str, str]) -> None:
        """A table with its titles on top; ``styles`` goes by the text of a row's first cell, and is for terminals."""


@contextmanager
def open_page(path: str | None) -> Iterator[Page]:
    """Open a page on what ``-o`` names; only standard output can be a terminal.

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
    """Aligned text, without colour and as wide as it needs to be."""

    is_terminal = False
    is_wide = True

    def __init__(self, out: BinaryIO) -> None:
        """Write to an open file."""
        self._out = out

    def line(self, text: str = "", style: str = "") -> None:
        """A line of text; there are no styles."""
        self._out.write(f"{visible(text)}\n".encode())

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Mapping[str, str]) -> None:
        """A table; the last column is not padded, and a cell that is wider than most shifts its line alone."""
        lines = [[column.title for column in columns], *([visible(cell) for cell in row] for row in rows)]
        widths = [min(_WIDEST, max(map(len, cells))) for cells in zip(*lines, strict=True)]
        for line in lines:
            cells = (
                cell.rjust(width) if column.right else cell.ljust(width)
                for cell, width, column in zip(line, widths, columns, strict=True)
            )
            self._out.write(f"{'  '.join(cells).rstrip()}\n".encode())


class TerminalPage:
    """Tables that fold long cells, in colour where the terminal has it."""

    is_terminal = True

    def __init__(self, console: Console) -> None:
        """Write to a terminal."""
        self._console = console
        self.is_wide = console.width >= _WIDE_TERMINAL

    def line(self, text: str = "", style: str = "") -> None:
        """A line of text in a style of rich."""
        from rich.text import Text

        self._console.print(Text(visible(text), style=style))

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Mapping[str, str]) -> None:
        """A table as wide as the terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
        for column in columns:
            justify = "right" if column.right else "left"
            table.add_column(column.title, justify=justify, no_wrap=column.right, overflow="fold")  # type: ignore[arg-type]
        for first, *rest in rows:
            table.add_row(Text(visible(first), style=styles.get(first, "")), *(Text(visible(cell)) for cell in rest))
        self._console.print(table)
