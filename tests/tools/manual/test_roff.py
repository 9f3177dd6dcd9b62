"""Text and Markdown as roff: no character of a text becomes a request."""

from __future__ import annotations

import pytest

from tools.manual.roff import escaped, from_markdown


@pytest.mark.parametrize(
    ("text", "roff"),
    [
        (r"a\b", r"a\(rsb"),
        ("--json", r"\-\-json"),
        (".so /etc/passwd", r"\&.so /etc/passwd"),
        ("'quoted'", r"\(aqquoted\(aq"),
        ("one\n.two", "one\n\\&.two"),
    ],
)
def test_what_roff_takes_for_its_own_is_escaped(text: str, roff: str) -> None:
    assert escaped(text) == roff


def test_markdown_becomes_sections_paragraphs_lists_and_tagged_paragraphs() -> None:
    text = "# A\n\nOne `two`\n*three*.\n\n## B-c\n\n1. four\n\n   ```sh\n   .ls\n   ```\n"
    text += "- five\n\n| a | b |\n|---|---|\n| x | y |\n"
    assert list(from_markdown(text)) == [
        *('.SH "DESCRIPTION"', ".PP", r"One \fBtwo\fP \fIthree\fP\&."),
        *(r'.SH "B\-C"', '.IP "1." 4', "four", ".RS 4", ".PP", ".RS 4", ".nf", r"\&.ls", ".fi", ".RE", ".RE"),
        *(r".IP \(bu 2", "five", ".TP", "x", "y"),
    ]


def test_of_more_than_two_columns_each_cell_says_its_title() -> None:
    text = "# A\n\n| | b | c |\n|---|---|---|\n| x | y | |\n| z | v | w |\n"
    assert list(from_markdown(text))[1:] == [".TP", "x", "b: y", ".TP", "z", "b: v\n.br\nc: w"]


def test_markdown_that_no_page_has_is_a_mistake_of_its_writer() -> None:
    with pytest.raises(ValueError, match="a page has a blockquote"):
        list(from_markdown("# A\n\n> quoted\n"))
