"""Pages as text: what is wrapped, what stands as it is, and what becomes of a table that is too wide."""

from __future__ import annotations

import re

import pytest

from reconciler.cli.guide import RUNBOOKS, TOPICS, as_text, read_page

STYLES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", [*TOPICS, *RUNBOOKS])
def test_every_page_fits_eighty_columns_but_for_a_line_that_is_copied_whole(name: str) -> None:
    text = as_text(read_page(name).text, 80, styled=False)
    whole = {line for line in text.splitlines() if len(line) > 80}
    assert [line for line in whole if not line.startswith('   "evidence": "')] == []
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_prose_is_wrapped_and_code_is_not() -> None:
    code = "x" * 50
    text = as_text(f"# A title\n\nOne `two`\nthree, *four*.\n\n```sh\n{code}\n```\n", 12, styled=False)
    assert text.split("\n") == ["A title", "=======", "", "One `two`", "three, four.", "", f"  {code}", ""]


def test_lists_are_indented_under_their_marks() -> None:
    text = as_text("1. one and two\n\n   ```sh\n   ls\n   ```\n2. three\n\n- four\n", 11, styled=False)
    assert text.split("\n") == ["1. one and", "   two", "", "     ls", "2. three", "", "- four", ""]


def test_a_table_stands_in_columns_where_it_fits() -> None:
    text = as_text("| a | b |\n|---|---|\n| `one` | two |\n", 40, styled=False)
    assert [line.split() for line in text.splitlines()] == [["a", "b"], ["─" * 10], ["`one`", "two"]]


def test_rows_stand_apart_where_a_cell_takes_several_lines() -> None:
    text = as_text("| a | b |\n|---|---|\n| one | two three |\n| four | five |\n", 12, styled=False)
    assert text.splitlines()[2:] == ["one   two", "      three", "", "four  five"]


def test_a_table_whose_words_do_not_fit_becomes_paragraphs_that_say_a_cell_once() -> None:
    table = (
        "| | first | second | third |\n|---|---|---|---|\n| what | the same | the same | |\n| else | | | another |\n"
    )
    text = as_text(table, 18, styled=False)
    assert text.split("\n") == ["what", "  first, second:", "  the same", "", "else", "  third: another", ""]


def test_styles_are_for_a_terminal_alone_and_change_no_word() -> None:
    page = read_page("cure").text
    plain, styled = as_text(page, 80, styled=False), as_text(page, 80, styled=True)
    assert not STYLES.search(plain)
    assert STYLES.search(styled)
    without_rules = [line for line in plain.splitlines() if not re.fullmatch("=+|-+", line)]
    assert STYLES.sub("", styled).splitlines() == without_rules


def test_markdown_that_no_page_has_is_a_mistake_of_its_writer() -> None:
    with pytest.raises(ValueError, match="a page of this program has a blockquote"):
        as_text("> quoted\n", 80, styled=False)
