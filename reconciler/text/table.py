"""Fit tables and lines into the width of a terminal.

What finds no room beside the rest of its row stands below it. What is longer than the terminal, a path most of all, is
cut in the middle: the end of a path, which names the thing, stays whole where it fits. Numbers, IDs and times are never
cut. Nobody can paste half a command, so a command is whole, or is left out.
"""

from __future__ import annotations

import os
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.text.formatting import NOTHING, visible

CUT = "…"
"""Stands for what was cut out, and for the folder that the paths of a column share."""

_GAP = "  "
_BELOW = "  "
"""What indents lines below a row."""

_SHORT = 24
"""Prose of at most this many characters stands with the other facts below a row, after its title."""

_READABLE = 32
"""Prose is folded inside its column where that has at least this many characters; else it stands below its row."""

_ID = len("Ogo1Z1cKS8WeUM7jCukeWA,")
"""Characters of an ID in prose, which is whole on the narrowest terminal too."""

_COMMANDS = 3
"""At most so many different commands of a column stand below a table."""

_WORTH_SHARING = 12
"""A shared folder is written once where it has at least this many characters."""

_OWN_COMMAND = re.compile(r"\blogstore [a-z-]+ ")


@dataclass(frozen=True, slots=True)
class Column:
    """The title of a column, and what its cells are; without any of these, words that are never cut.

    Attributes:
        title: what stands above the cells.
        right: numbers, which are aligned to the right.
        path: paths or names of replicas, which are cut in the middle where they have no room.
        prose: sentences, which are folded.
        command: commands to paste.
    """

    title: str
    right: bool = False
    path: bool = False
    prose: bool = False
    command: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a fitted table; a style is for its first characters."""

    text: str
    style: str = ""
    styled: int = 0


@dataclass(slots=True)
class FittedTable:
    """The lines of a table, and whether something that it holds is not in them."""

    lines: list[Line] = field(default_factory=list)
    is_cut: bool = False


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes; a wide character of East Asia takes two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Break a text into lines at its spaces, where no word is ever broken; the first line and the rest are indented."""
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def cut_middle(text: str, width: int) -> str:
    """Cut a path or a name to a width: ``/disks/…/orders-0``; the last component is whole where it fits."""
    if columns_of(text) <= width:
        return text
    *above, last = text.split("/")
    if not above or columns_of(f"{CUT}/{last}") > width:
        start = _fitting(text, max(0, width - 1) // 3)
        end = _fitting(text[::-1], max(0, width - 1) - columns_of(start))[::-1]
        return f"{start}{CUT}{end}"
    # A path begins with an empty component, which says nothing alone.
    first = above[: 2 if above[0] == "" else 1] if above[0] != CUT else []
    ends, starts = above[len(first) :], "/".join([*first, CUT]) if first else CUT
    if columns_of(f"{starts}/{last}") > width:
        starts = CUT
    while ends and columns_of(f"{starts}/{ends[-1]}/{last}") <= width:
        last = f"{ends.pop()}/{last}"
    while ends and first and columns_of(f"{'/'.join([*first, ends[0]])}/{CUT}/{last}") <= width:
        first.append(ends.pop(0))
        starts = "/".join([*first, CUT])
    return f"{starts}/{last}"


def _fitting(text: str, width: int) -> str:
    """Return as much of the beginning of a text as has room."""
    kept = text[:width]
    while columns_of(kept) > width:
        kept = kept[:-1]
    return kept


def fold(text: str, width: int) -> tuple[list[str], bool]:
    """Break a text into lines that keep its indent, and cut words that are longer than a line in the middle.

    A command of ours in the text can be pasted: what begins with it is never cut, however long it is.

    Returns:
        The lines, and whether a word was cut.
    """
    inner = text.lstrip(" ")
    indent = text[: len(text) - len(inner)][: width // 2]
    command = _OWN_COMMAND.search(inner)
    prose, rest = (inner, "") if command is None else (inner[: command.start()], inner[command.start() :])
    shown = re.sub(r"\S+", lambda word: cut_middle(word[0], max(_ID, width - len(indent))), prose)
    return wrapped(shown + rest, width, indent, indent) or [""], shown != prose


def share_folders(columns: Sequence[Column], cells: list[list[str]]) -> list[str]:
    """Write the folder that the paths of a column share as ``…``, and return lines that say what it is."""
    heads = []
    for index, column in enumerate(columns):
        folder = _shared_folder([row[index] for row in cells]) if column.path else None
        if folder is not None:
            heads.append(f"{column.title}: {CUT} is {folder}")
            for row in cells:
                row[index] = f"{CUT}{row[index].removeprefix(folder)}" if row[index].startswith("/") else row[index]
    return heads


def _shared_folder(cells: Iterable[str]) -> str | None:
    """Find the folder that holds every path of a column; None: there are not several, or it would save nothing."""
    paths = [cell for cell in cells if cell.startswith("/")]
    if len(paths) < 2:
        return None
    folder = os.path.commonpath(paths)
    folder = os.path.dirname(folder) if folder in paths else folder
    return folder if len(folder) >= _WORTH_SHARING else None


def fit_table(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], styles: Mapping[str, str], width: int
) -> FittedTable:
    """Lay out a table for a terminal.

    Args:
        columns: of the table; the first one is always in it.
        rows: the text of each cell.
        styles: text of a row's first cell → its style.
        width: of the terminal, in characters.
    """
    cells = [list(row) for row in rows]
    whole = _widths(columns, [[visible(cell) for cell in row] for row in cells])
    fitted = FittedTable()
    if _total(whole) <= width:
        table = _Layout(list(range(len(columns))), [], None, whole)
    else:
        for head in share_folders(columns, cells):
            _say(fitted, visible(head), width)
        cells = [[visible(cell) for cell in row] for row in cells]
        table = _layout(columns, cells, width)
    _add_row(fitted, columns, [column.title for column in columns], table, width)
    for row in cells:
        shown = [visible(cell) for cell in row]
        _add_row(fitted, columns, shown, table, width, style=styles.get(row[0], ""))
        _add_below(fitted, columns, shown, table, width)
    if table.prose_at is not None or len(table.beside) < len(columns):
        _add_commands(fitted, columns, cells, table)
    return fitted


@dataclass(slots=True)
class _Layout:
    """Which columns stand beside each other, which below, and how wide the former are; by number."""

    beside: list[int]
    below: list[int]
    prose_at: int | None
    """The column that is folded where it stands."""
    widths: list[int]


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(map(columns_of, (column.title, *(row[index] for row in cells)))) for index, column in enumerate(columns)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _layout(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> _Layout:
    """Choose what stands beside each other: below go prose first and the widest words then; paths are cut last."""
    widths = _widths(columns, cells)
    beside = [index for index, column in enumerate(columns) if index == 0 or not (column.prose or column.command)]
    paths = [index for index in beside if columns[index].path]
    # Whole paths are worth more than the words beside them; one that is cut anyway leaves those some room.
    are_whole = sum(widths[index] for index in paths) <= width * 3 // 4
    fair = width if are_whole else width // 2 // max(1, len(paths))
    named = {}
    for index in paths:
        needed = max(columns_of(_shortest(each)) for each in (columns[index].title, *(row[index] for row in cells)))
        named[index] = max(needed, min(widths[index], fair))
    below: list[int] = []
    while True:
        needed = _total([named.get(index, widths[index]) for index in beside])
        words = [index for index in beside[1:] if index not in named]
        if needed <= width or not words:
            break
        widest = max(words, key=lambda index: (widths[index], index))
        beside.remove(widest)
        below.append(widest)
    _share_out(widths, named, beside, width)
    prose = [index for index, column in enumerate(columns) if column.prose and index != 0]
    left = width - _total([widths[index] for index in beside]) - len(_GAP)
    longest = max((columns_of(word) for row in cells for index in prose for word in row[index].split()), default=0)
    if len(prose) == 1 and not below and left >= min(max(_READABLE, longest), widths[prose[0]], width * 2 // 3):
        widths[prose[0]] = min(left, widths[prose[0]])
        return _Layout(sorted([*beside, *prose]), [], prose[0], widths)
    return _Layout(beside, sorted([*below, *prose]), None, widths)


def _shortest(path: str) -> str:
    """Return the shortest form of a path in which its last component is whole."""
    above, slash, last = path.rpartition("/")
    return f"{CUT}/{last}" if slash and above else path


def _share_out(widths: list[int], named: Mapping[int, int], beside: Sequence[int], width: int) -> None:
    """Give the columns of paths what the others leave; each gets what it needs first, and then the first ones more."""
    left = width - _total([named.get(index, widths[index]) for index in beside])
    for index in beside:
        if index in named:
            given = max(4, min(widths[index], named[index] + left))
            left -= given - named[index]
            widths[index] = given


def _add_row(
    fitted: FittedTable,
    columns: Sequence[Column],
    row: Sequence[str],
    table: _Layout,
    width: int,
    *,
    style: str | None = None,
) -> None:
    """Add the line of a row, or several where its prose is folded; one that is still too wide is folded as a text.

    Without a style for the first cell it is the row of titles, which is bold.
    """
    cells = {index: row[index] for index in table.beside}
    for index in table.beside:
        if columns[index].path:
            cells[index] = cut_middle(row[index], table.widths[index])
            fitted.is_cut |= cells[index] != row[index]
    more: list[str] = []
    if table.prose_at is not None:
        lines, is_cut = fold(row[table.prose_at], table.widths[table.prose_at])
        cells[table.prose_at], *more = lines
        fitted.is_cut |= is_cut
    text = _line(columns, cells, table)
    if columns_of(text) > width:
        _say(fitted, text, width, style or "", len(row[0]))
    elif style is None:
        fitted.lines.append(Line(text, "bold", len(text)))
    else:
        fitted.lines.append(Line(text, style, len(cells[table.beside[0]])))
    for each in more:
        rest = dict.fromkeys(table.beside, "") | {table.prose_at or 0: each}
        fitted.lines.append(Line(_line(columns, rest, table)))


def _line(columns: Sequence[Column], cells: Mapping[int, str], table: _Layout) -> str:
    padded = []
    for index in table.beside:
        blanks = " " * (table.widths[index] - columns_of(cells[index]))
        padded.append(f"{blanks}{cells[index]}" if columns[index].right else f"{cells[index]}{blanks}")
    return _GAP.join(padded).rstrip()


def _add_below(fitted: FittedTable, columns: Sequence[Column], row: Sequence[str], table: _Layout, width: int) -> None:
    """Add what has no room beside the rest of its row: facts with their titles, and then prose."""
    filled = [index for index in table.below if row[index] not in ("", NOTHING)]
    prose = [index for index in filled if columns[index].prose and len(row[index]) > _SHORT]
    facts = [f"{columns[index].title.lower()} {row[index]}".strip() for index in filled if index not in prose]
    for text in ([", ".join(facts)] if facts else []) + [row[index] for index in prose]:
        _say(fitted, f"{_BELOW}{text}", width)


def _add_commands(
    fitted: FittedTable, columns: Sequence[Column], cells: Sequence[Sequence[str]], table: _Layout
) -> None:
    """Add the commands that have no room, each once; where there are many they are left out."""
    for index, column in enumerate(columns):
        if not column.command or index in table.beside:
            continue
        commands = dict.fromkeys(visible(row[index]) for row in cells if row[index] not in ("", NOTHING))
        if len(commands) > _COMMANDS:
            fitted.is_cut = True
        else:
            fitted.lines += [Line(f"{column.title.lower()}: {each}") for each in commands]


def _say(fitted: FittedTable, text: str, width: int, style: str = "", styled: int = 0) -> None:
    lines, is_cut = fold(text, width)
    fitted.is_cut |= is_cut
    fitted.lines += [Line(each, style if not number else "", styled) for number, each in enumerate(lines)]
