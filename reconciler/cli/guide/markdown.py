"""Parses a page of Markdown, for whatever renders it: a terminal, or a man page."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode


def parse_page(markdown: str) -> SyntaxTreeNode:
    """Parse a page: Markdown as CommonMark has it, and tables."""
    return SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(markdown))


def inlines(node: SyntaxTreeNode) -> list[SyntaxTreeNode]:
    """Return the text of a heading, a paragraph or a cell in its pieces: plain text, code, breaks, emphasis."""
    return [piece for child in node.children for piece in child.children]


def table_cells(table: SyntaxTreeNode) -> list[list[SyntaxTreeNode]]:
    """Return the rows of a table, the titles first."""
    return [list(row.children) for part in table.children for row in part.children]
