"""Tables for people: nothing cut short, nothing that steers a terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from reconciler.cli.frame import Column, open_page
from reconciler.cli.frame.output import PlainPage, TerminalPage

COLUMNS = (Column("NAME"), Column("SIZE", right=True), Column("WHY"))


def test_plain_text_is_aligned_and_ends_without_blanks() -> None:
    out = io.BytesIO()
    opened = PlainPage(out)
    opened.line("heading\x1b[2J", "bold")
    opened.table(COLUMNS, [("a", "1 B", ""), ("long-name", "10 kB", "because")], {"a": "red"})
    assert out.getvalue().decode().splitlines() == [
        "heading\\x1b[2J",
        "NAME        SIZE  WHY",
        "a            1 B",
        "long-name  10 kB  because",
    ]


def test_a_very_long_cell_is_whole_and_shifts_only_its_own_line() -> None:
    out = io.BytesIO()
    PlainPage(out).table((Column("A"), Column("B")), [("x" * 300, "1"), ("y", "2")], {})
    first, second = out.getvalue().decode().splitlines()[1:]
    assert first == "x" * 300 + "  1"
    assert len(second) < 100


def test_a_terminal_folds_what_is_too_wide_and_loses_nothing() -> None:
    out = io.StringIO()
    opened = TerminalPage(Console(file=out, width=40, force_terminal=True, highlight=False))
    opened.table(COLUMNS, [("n" * 60, "1 B", "why\x1b]0;x\x07")], {"n" * 60: "red"})
    text = out.getvalue()
    assert text.count("n") == 60
    assert "\x1b]0" not in text
    assert "\x07" not in text


def test_brackets_in_a_name_are_no_markup() -> None:
    out = io.StringIO()
    TerminalPage(Console(file=out, width=80, highlight=False)).line("[bold]x[/bold]")
    assert out.getvalue() == "[bold]x[/bold]\n"


def test_a_file_gets_plain_text(tmp_path: Path) -> None:
    with open_page(str(tmp_path / "file")) as opened:
        assert not opened.is_terminal
        opened.line("ö")
    assert (tmp_path / "file").read_text("utf-8") == "ö\n"


def test_a_terminal_gets_a_terminal_page(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", Terminal(io.BytesIO(), "utf-8"))
    with open_page(None) as opened:
        assert opened.is_terminal
