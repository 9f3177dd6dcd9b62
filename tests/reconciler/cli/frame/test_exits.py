"""Every error is one sentence and one of the documented exit codes; a traceback comes only when it is asked for."""

from __future__ import annotations

import errno
import io
import os

import click
import pytest

from logstore import InventoryError, LogStoreError, NotALogDirError
from reconciler.cli.frame import Exit, PartlyFailedError, abandon_output, say
from reconciler.cli.frame.lifecycle import TRACEBACK, sentences
from reconciler.errors import EngineUnavailableError, MetadataError, RefusedError, UsageError


def outcome(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(click.exceptions.Exit) as left, sentences():
        raise error
    return left.value.exit_code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such thing"), Exit.USAGE),
        (NotALogDirError("no log dir"), Exit.USAGE),
        (MetadataError("torn"), Exit.REFUSED),
        (RefusedError("of another cluster"), Exit.REFUSED),
        (InventoryError("cut off"), Exit.REFUSED),
        (EngineUnavailableError("no Java"), Exit.REFUSED),
        (PartlyFailedError("disk full"), Exit.PARTLY_FAILED),
        (LogStoreError("something else"), Exit.PARTLY_FAILED),
    ],
)
def test_an_error_of_ours_is_its_own_sentence(error: Exception, code: Exit, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(error, capsys) == (code, f"logstore: {error}\n")


def test_an_error_of_the_system_names_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    error = OSError(28, "No space left on device", "/tmp/x")
    assert outcome(error, capsys) == (Exit.PARTLY_FAILED, "logstore: /tmp/x: No space left on device\n")
    assert outcome(OSError(5, "Input/output error"), capsys)[1] == "logstore: Input/output error\n"


def test_an_interrupt_and_a_lack_of_memory_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert "interrupted" in outcome(KeyboardInterrupt(), capsys)[1]
    assert "not enough memory" in outcome(MemoryError(), capsys)[1]


def test_a_bug_says_how_to_see_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = outcome(ValueError("unexpected\x1b[2J"), capsys)
    assert code == Exit.PARTLY_FAILED
    assert "ValueError: unexpected\\x1b[2J" in text
    assert f"{TRACEBACK}=1" in text


def test_a_traceback_comes_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACEBACK, "1")
    with pytest.raises(UsageError), sentences():
        raise UsageError("no such thing")


def test_what_click_raises_is_left_to_click() -> None:
    for error in (click.UsageError("x"), click.exceptions.Exit(3), click.Abort()):
        with pytest.raises(type(error)), sentences():
            raise error


def test_prose_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\x1b[2Jb\nc")
    assert capsys.readouterr().err == "logstore: a\\x1b[2Jb\\nc\n"


def test_output_that_is_no_file_is_abandoned_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    abandon_output()
    print("still here")
    assert capsys.readouterr().out in ("still here\n", "")


def test_a_current_directory_that_is_gone_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = outcome(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), capsys)
    assert (code, "the current directory is gone" in text) == (Exit.USAGE, True)


class Deaf(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_prose_that_nobody_hears_changes_no_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Deaf())
    with pytest.raises(click.exceptions.Exit) as left, sentences():
        raise UsageError("no such thing")
    assert left.value.exit_code == Exit.USAGE
