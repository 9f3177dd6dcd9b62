"""The life of a command: loaded when it is called, ended by an exit code, one sentence for an error, or a signal."""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import Result

from logstore import InventoryError, LogStoreError, NotALogDirError
from reconciler.cli import logstore
from reconciler.cli.frame import (
    Commands,
    Exit,
    InterruptedRunError,
    PartlyFailedError,
    SuggestingGroup,
    abandon_output,
    detail,
    may_be_unread,
    say,
    say_incomplete,
    say_step,
    say_warnings,
    since,
    warn,
)
from reconciler.cli.frame.lifecycle import TRACEBACK_VARIABLE, sentences
from reconciler.cli.settings import Level, Verbosity, choose_verbosity
from reconciler.errors import EngineUnavailableError, MetadataError, RefusedError, UsageError
from reconciler.next_steps import Call, Step

Run = Callable[..., Result]
HEAVY = ("pyarrow", "duckdb", "rich", "jinja2", "pyspark", "orjson", "pandas")

REPOSITORY = Path(__file__).parents[4]

pytestmark = pytest.mark.usefixtures("every_signal_heard")


def modules_after(*args: str) -> set[str]:
    """The top-level modules that a command line leaves loaded."""
    program = (
        "import sys\n"
        "from reconciler.cli import main\n"
        f"sys.argv = ['logstore', *{list(args)!r}]\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {line.split(".")[0] for line in answer.stderr.splitlines()}


@pytest.mark.parametrize("args", [["--help"], ["--version"], [], ["nonsense"]])
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    assert not modules_after(*args) & set(HEAVY)


@pytest.mark.parametrize("command", ["scan", "audit", "explain"])
def test_the_help_of_a_command_loads_nothing_heavy(command: str) -> None:
    assert not modules_after(command, "--help") & set(HEAVY)


@pytest.mark.parametrize("command", [["staged"], ["restore", "--all"], ["purge"]])
def test_what_works_on_staged_directories_alone_loads_nothing_heavy(command: list[str], cluster) -> None:
    assert not modules_after(*command, cluster.log_dirs[0]) & set(HEAVY)
    assert set(HEAVY) & modules_after("scan", cluster.log_dirs[0])


def test_help_lists_every_command_with_its_line_the_exit_codes_and_an_example(run: Run) -> None:
    text = run("--help").output
    assert isinstance(logstore, Commands)
    for name in logstore.list_commands(None):
        command = logstore.get_command(None, name)
        assert " ".join(command.get_short_help_str(200).split()) in " ".join(text.split())
        assert re.search(rf"logstore {name} ([a-z]+ (\S+ )?)?(/|zk|--|sources\n|bash\)|disk-full\n)", text), (
            "an example, of a group's command too"
        )
    for line in ("0  clean", "1  findings", "2  usage", "3  refused", "4  partly failed"):
        assert line in text


@pytest.mark.parametrize("name", ["scan", "audit", "explain"])
def test_the_help_of_every_command_has_an_example(run: Run, name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"logstore {name} /" in result.output


def test_an_unknown_command_is_a_usage_error(run: Run) -> None:
    result = run("scna")
    assert (result.exit_code, "scna" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["audti", "/x"], "audit"),
        (["version"], "--version"),
        (["-V"], "--version"),
        (["namespace", "crate"], "create"),
        (["audit", "--ndjson", "/x"], "--format ndjson"),
        (["scan", "--csv", "/x"], "--format csv"),
        (["purge", "--dryrun", "/x"], "--dry-run"),
        (["namespace", "create", "--fromat", "json"], "--format"),
        (["plan", "--staging", "in_place", "/x"], "in-place"),
        (["preflight", "--mode", "kraf", "/x"], "kraft"),
        (["audit", "--accept", "own_metdata", "/x"], "own-metadata"),
        (["audit", "--verdict", "RENAMMED", "/x"], "renamed"),
    ],
)
def test_what_was_mistyped_names_the_nearest(run: Run, typed: list[str], meant: str) -> None:
    result = run(*typed)
    assert result.exit_code == 2
    assert f"Did you mean {meant!r}?" in result.stderr


@pytest.mark.parametrize("typed", [["xyzzy"], ["audit", "--xyzzy", "/x"], ["purge", "--zzz", "/x"]])
def test_what_is_near_nothing_names_nothing(run: Run, typed: list[str]) -> None:
    result = run(*typed)
    assert (result.exit_code, "Did you mean" in result.stderr) == (2, False)
    assert "No such" in result.stderr


def test_a_value_that_is_near_nothing_lists_them_all(run: Run) -> None:
    result = run("scan", "--format", "zzz", "/x")
    assert (result.exit_code, "Did you mean" in result.stderr) == (2, False)
    assert "'zzz' is not one of 'table', 'json'" in result.stderr


def test_a_group_within_suggests_too(run: Run) -> None:
    assert isinstance(logstore.get_command(None, "namespace"), SuggestingGroup)


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
        (InterruptedRunError("interrupted; the same command does the rest"), Exit.INTERRUPTED),
        (LogStoreError("something else"), Exit.PARTLY_FAILED),
    ],
)
def test_an_error_of_ours_is_its_own_sentence(error: Exception, code: Exit, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(error, capsys) == (code, f"logstore: {error}\n")


def test_an_error_of_the_system_names_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    error = OSError(28, "No space left on device", "/tmp/x")
    assert outcome(error, capsys) == (Exit.PARTLY_FAILED, "logstore: /tmp/x: No space left on device\n")
    assert outcome(OSError(5, "Input/output error"), capsys)[1] == "logstore: Input/output error\n"


def test_an_interrupt_and_a_lack_of_memory_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = outcome(KeyboardInterrupt(), capsys)
    assert (code, "interrupted" in text) == (130, True)
    assert "not enough memory" in outcome(MemoryError(), capsys)[1]


def test_a_library_that_finds_no_address_space_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = outcome(ImportError("x.so: failed to map segment from shared object"), capsys)
    assert code == 4
    assert "raise that limit (ulimit -v)" in said
    assert "bug" in outcome(ImportError("cannot import name x"), capsys)[1]


@pytest.mark.parametrize("error", [MemoryError(), SystemError("error return without exception set")])
def test_where_the_address_space_is_limited_its_lack_is_no_bug(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without = outcome(error, capsys)[1]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300_000_000, resource.RLIM_INFINITY))
    code, said = outcome(error, capsys)
    assert (code, "raise that limit (ulimit -v)" in said) == (Exit.PARTLY_FAILED, True)
    assert "raise that limit" not in without


def test_a_bug_says_how_to_see_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = outcome(ValueError("unexpected\x1b[2J"), capsys)
    assert code == Exit.PARTLY_FAILED
    assert "ValueError: unexpected\\x1b[2J" in text
    assert f"{TRACEBACK_VARIABLE}=1" in text


def test_a_traceback_comes_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
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


def test_a_current_directory_that_is_gone_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = outcome(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), capsys)
    assert (code, "the current directory is gone" in text) == (Exit.USAGE, True)


@pytest.mark.parametrize(("silent", "said"), [(False, "logstore: a disk is slow\n"), (True, "")])
def test_warnings_of_the_engine_become_sentences_or_nothing(
    silent: bool, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = logging.getLogger("logstore.somewhere")
    with say_warnings("logstore", silent=silent):
        logger.info("nothing to see")
        logger.warning("a disk is slow")
    assert capsys.readouterr().err == said


class Deaf(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_prose_that_nobody_hears_changes_no_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Deaf())
    with pytest.raises(click.exceptions.Exit) as left, sentences():
        raise UsageError("no such thing")
    assert left.value.exit_code == Exit.USAGE


def test_a_step_is_said_with_its_command_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    say_step(Step("see what is staged", Call(("/disks/a b",)).staged()))
    say_step(Step("start the broker"), "then")
    assert capsys.readouterr().err.splitlines() == [
        "logstore: next: see what is staged:",
        "    logstore staged '/disks/a b'",
        "logstore: then: start the broker",
    ]


def test_a_warning_is_heard_when_a_hint_is_not_and_a_step_on_the_way_only_when_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        for each in Verbosity:
            choose_verbosity(each)
            detail(f"a step, {since(time.monotonic() - 2).partition('.')[0]}")
            say("a hint")
            warn("a warning")
            say_step(Step("see what is staged", Call(("/disk",)).staged()))
            say_step(Step("act", Call(("/disk",)).staged()), level=Level.WARNING)
    finally:
        choose_verbosity(Verbosity.NORMAL)
    acts = ["logstore: next: act:", "    logstore staged /disk"]
    hints = ["logstore: next: see what is staged:", "    logstore staged /disk"]
    normal = ["logstore: a hint", "logstore: a warning", *hints, *acts]
    assert capsys.readouterr().err.splitlines() == [
        *["logstore: a warning", *acts], *normal, *["logstore: a step, after 2", *normal]
    ]  # fmt: skip


@pytest.mark.parametrize("code", [Exit.CLEAN, Exit.PARTLY_FAILED])
def test_what_is_told_of_a_change_may_be_unread_and_the_prose_still_follows(
    code: Exit, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def told() -> Exit:
        with may_be_unread():
            raise BrokenPipeError
        say("what comes next")
        return code

    monkeypatch.setitem(sys.modules, "module_of_told", SimpleNamespace(command=told))  # type: ignore[arg-type]
    group = Commands("group", commands_by_name={"told": ("module_of_told", "")})
    kept = os.dup(1)
    try:
        with pytest.raises(SystemExit) as ended:
            group(["told"], prog_name="logstore")
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert ended.value.code == (Exit.CLOSED_PIPE if code is Exit.CLEAN else code)
    assert "what comes next" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("code", "ended"),
    [(Exit.CLEAN, Exit.PARTLY_FAILED), (Exit.FINDINGS, Exit.PARTLY_FAILED), (Exit.REFUSED, Exit.REFUSED)],
)
def test_an_answer_that_lacks_something_never_counts_as_whole(
    code: Exit, ended: Exit, monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def told() -> Exit:
        say_incomplete("a part is not there")
        return code

    monkeypatch.setitem(sys.modules, "module_of_told", SimpleNamespace(command=told))  # type: ignore[arg-type]
    with pytest.raises(SystemExit) as exit_of:
        Commands("group", commands_by_name={"told": ("module_of_told", "")})(["told"], prog_name="logstore")
    assert exit_of.value.code == ended
