"""Progress is for terminals."""

from __future__ import annotations

import io

import pytest

from reconciler.cli.frame import show_busy, with_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_items_are_handed_on_in_silence_when_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with show_busy("comparing"):
        assert list(with_progress(iter("abc"), 3, "scanning")) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_what_is_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert list(with_progress(iter("abc"), 3, "scanning\x1b[2J")) == ["a", "b", "c"]
    assert "scanning\\x1b[2J" in terminal.getvalue()


def test_a_single_item_is_not_worth_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert list(with_progress(iter("a"), 1, "scanning")) == ["a"]
    assert terminal.getvalue() == ""
