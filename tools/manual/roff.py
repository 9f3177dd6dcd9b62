"""Writes roff in the macros of man: text of which no character becomes a request, and Markdown as paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from markdown_it.tree import SyntaxTreeNode

from reconciler.cli.guide import inlines, parse_page, table_cells

_SPECIAL = {"\\": r"\(rs", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}


def escaped(text: str) -> str:
    """Escape what roff takes for its own, a dot at the start of a line too."""
    shown = "".join(_SPECIAL.get(letter, letter) for letter in text)
    return re.sub(r"^(?=\.)", r"\\&", shown, flags=re.MULTILINE)


def bold(text: str) -> str:
    """Write a text in bold."""
    return rf"\fB{escaped(text)}\fP"


def header(name: str, section: int, version: str, line: str) -> Iterator[str]:
    """Yield the head of a page: its title and the section NAME, by which ``man -k`` finds it."""
    yield f'.TH "{name.upper()}" "{section}" "" "logstore {version}" "logstore"'
    yield from section_of("NAME", [f"{escaped(name)} \\- {escaped(line)}"])


def section_of(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a section."""
    yield f'.SH "{escaped(title)}"'
    yield from lines


def as_it_stands(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that are not filled: code, which somebody copies."""
    yield from (".PP", ".RS 4", ".nf")
    yield from (escaped(line) or r"\&" for line in lines)
    yield from (".fi", ".RE")


def from_markdown(markdown: str) -> Iterator[str]:
    """Yield what follows the title of a page of Markdown."""
    _, *nodes = parse_page(markdown).children
    if nodes[0].type != "heading":
        yield '.SH "DESCRIPTION"'
    for node in nodes:
        yield from _block(node)


def _block(node: SyntaxTreeNode) -> Iterator[str]:
    match node.type:
        case "heading":
            yield f'.SH "{"".join(_plain(inlines(node))).upper()}"'
        case "paragraph":
            yield from (".PP", _inline(node))
        case "fence":
            yield from as_it_stands(node.content.splitlines())
        case "bullet_list" | "ordered_list":
            for number, item in enumerate(node.children, 1):
                first, *others = item.children
                yield rf'.IP "{number}." 4' if node.type == "ordered_list" else r".IP \(bu 2"
                yield _inline(first)
                if others:
                    yield ".RS 4"
                    yield from (line for each in others for line in _block(each))
                    yield ".RE"
        case "table":
            yield from _table(node)
        case _:
            raise ValueError(f"a page has a {node.type}, which no man page was made for")


def _table(node: SyntaxTreeNode) -> Iterator[str]:
    """Yield a row as a paragraph under its first cell; where there are more than two, each with its title."""
    titles, *rows = [[_inline(cell) for cell in row] for row in table_cells(node)]
    for first, *cells in rows:
        yield from (".TP", first or r"\&")
        if len(cells) == 1:
            yield cells[0] or r"\&"
            continue
        yield "\n.br\n".join(f"{title}: {cell}" for title, cell in zip(titles[1:], cells, strict=True) if cell)


def _inline(node: SyntaxTreeNode) -> str:
    return "".join(_styled(inlines(node)))


def _styled(pieces: Iterable[SyntaxTreeNode]) -> Iterator[str]:
    for each in pieces:
        match each.type:
            case "text":
                yield escaped(each.content)
            case "code_inline":
                yield bold(each.content)
            case "softbreak":
                yield " "
            case _:
                yield rf"\fI{''.join(_styled(each.children))}\fP"


def _plain(pieces: Iterable[SyntaxTreeNode]) -> Iterator[str]:
    for each in pieces:
        yield escaped(each.content) if each.type in ("text", "code_inline") else " "
