"""Renders a page of Markdown as text for a terminal: prose is wrapped, and code stands as it is, ready to paste."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence

import click
from markdown_it.tree import SyntaxTreeNode

from reconciler.cli.guide.markdown import inlines, parse_page, table_cells

_CODE = "  "
"""What code is indented by: little, so that a line of a page's code fits a terminal of 80 columns."""

_GAP = "  "
"""What stands between two columns."""


def as_text(markdown: str, width: int, *, styled: bool) -> str:
    """Render a page in lines of at most ``width`` characters; ``styled`` sets headings and code off by styles.

    Only a line of code, which a reader may copy, and a word that is longer are wider than that.
    """
    return "\n".join("\n".join(_block(node, width, styled)) + "\n" for node in parse_page(markdown).children)


def _block(node: SyntaxTreeNode, width: int, styled: bool) -> Iterator[str]:
    """Yield the lines of one block."""
    match node.type:
        case "heading":
            yield from _heading(_inline(node), node.tag, width, styled)
        case "paragraph":
            yield from _wrapped(_inline(node), width)
        case "fence":
            for line in node.content.splitlines():
                yield click.style(f"{_CODE}{line}", bold=True) if styled and line else f"{_CODE}{line}".rstrip()
        case "bullet_list" | "ordered_list":
            yield from _list(node, width, styled)
        case "table":
            yield from _table(node, width)
        case _:
            raise ValueError(f"a page of this program has a {node.type}, which no text was made for")


def _heading(text: str, tag: str, width: int, styled: bool) -> Iterator[str]:
    lines = _wrapped(text, width)
    if styled:
        yield from (click.style(line, bold=True, underline=tag == "h1") for line in lines)
    else:
        yield from lines
        yield ("=" if tag == "h1" else "-") * max(map(len, lines))


def _list(node: SyntaxTreeNode, width: int, styled: bool) -> Iterator[str]:
    for number, item in enumerate(node.children, 1):
        mark = f"{number}. " if node.type == "ordered_list" else "- "
        inside = [_block(each, width - len(mark), styled) for each in item.children]
        lines = [line for number, block in enumerate(inside) for line in ([""] if number else []) + list(block)]
        yield f"{mark}{lines[0]}"
        yield from (f"{' ' * len(mark)}{line}" if line else "" for line in lines[1:])


def _table(node: SyntaxTreeNode, width: int) -> Iterator[str]:
    """Yield a table with wrapped cells, or as paragraphs where its longest words do not fit beside each other."""
    titles, *rows = [[_inline(cell) for cell in row] for row in table_cells(node)]
    columns = list(zip(titles, *rows, strict=True))
    longest = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    if sum(longest) + len(_GAP) * (len(titles) - 1) > width:
        yield from _stacked(titles, rows, width)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    fits = sum(max(map(len, column)) for column in columns) + len(_GAP) * (len(titles) - 1) <= width
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, len(_GAP) - 1, 0, 0), leading=not fits
    )
    for title, least in zip(titles, longest, strict=True):
        table.add_column(Text(title), min_width=least)
    for row in rows:
        table.add_row(*map(Text, row))
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, force_terminal=False).print(table)
    yield from (line.rstrip() for line in out.getvalue().rstrip("\n").split("\n"))


def _stacked(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield a paragraph for each row: its first cell, and below it each other cell with the titles it stands under."""
    for number, (first, *cells) in enumerate(rows):
        yield from [""] * bool(number) + list(_wrapped(first, width))
        for cell in dict.fromkeys(filter(None, cells)):
            under = [title for title, other in zip(titles[1:], cells, strict=True) if other == cell]
            said = f"{', '.join(under)}: {cell}"
            yield from (f"{_CODE}{line}" for line in _wrapped(said, width - len(_CODE)))


def _inline(node: SyntaxTreeNode) -> str:
    """Write out the text of a block: code keeps its quotes, and a line break is a space."""
    return "".join(_words(inlines(node)))


def _words(inline: Iterable[SyntaxTreeNode]) -> Iterator[str]:
    for each in inline:
        match each.type:
            case "text":
                yield each.content
            case "code_inline":
                yield f"`{each.content}`"
            case "softbreak":
                yield " "
            case _:
                yield from _words(each.children)


def _wrapped(text: str, width: int) -> Sequence[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
