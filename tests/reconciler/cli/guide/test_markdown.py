"""Pages as a tree, which terminals and man pages are rendered from."""

from __future__ import annotations

from reconciler.cli.guide import inlines, parse_page, table_cells


def test_a_table_is_its_rows_the_titles_first() -> None:
    (table,) = parse_page("| a | `b` |\n|---|---|\n| one | |\n").children
    rows = [["".join(piece.content for piece in inlines(cell)) for cell in row] for row in table_cells(table)]
    assert rows == [["a", "b"], ["one", ""]]


def test_a_text_comes_in_its_pieces() -> None:
    (paragraph,) = parse_page("One `two`\n*three*\n").children
    assert [piece.type for piece in inlines(paragraph)] == ["text", "code_inline", "softbreak", "em"]
