"""The life of a command: loaded when it is called, ended by an exit code, an error or a signal.

Heavy imports (pyarrow, duckdb, rich) belong to the commands, so ``logstore --help`` costs no more than click does.

Every error becomes one sentence on standard error; a traceback is shown only on request. Usage errors of click itself
(an unknown option, a missing argument) are left to click, which reports them and exits with 2 as well.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from logstore import ChangeRefusedError, DamagedRecordError, InventoryError, LogStoreError, NotALogDirError
from reconciler.cli.frame.address_space import no_room, refuse_join, refuse_small_address_space
from reconciler.cli.frame.suggestions import SuggestingGroup, complete_paths, options_suggested
from reconciler.cli.settings import (
    LOG_DIRS,
    Level,
    Settings,
    Verbosity,
    add_verbosity,
    changes_log_dirs,
    choose_verbosity,
    is_json,
    is_said,
    log_line,
)
from reconciler.cli.signals import heed_interrupt
from reconciler.errors import ReconcilerError, UsageError

if TYPE_CHECKING:
    from reconciler.next_steps import Step


class Commands(SuggestingGroup):
    """A group of commands, each with its parameters in a module of its own, in a variable called ``command``."""

    def __init__(self, *args: Any, commands_by_name: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        """Take the commands in the order of ``--help``: name → (module, one line of help)."""
        super().__init__(*args, **kwargs)
        self._modules = dict(commands_by_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the given order."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None: there is none of that name."""
        if cmd_name not in self._modules:
            return None
        refuse_small_address_space(cmd_name)
        module, line = self._modules[cmd_name]
        command: click.Command = importlib.import_module(module).command
        command.short_help = line
        complete_paths(command)
        add_verbosity(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their given lines, which loads none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._modules.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options before the name of the command; the help that they ask for may find no reader."""
        choose_verbosity(Verbosity.NORMAL)
        ctx.call_on_close(lambda: choose_verbosity(Verbosity.NORMAL))
        with sentences(), options_suggested():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command; its result is the exit code, and an exception becomes a sentence and an exit code."""
        try:
            with sentences(), options_suggested():
                code = super().invoke(ctx)
        except click.UsageError as error:
            if not is_json():
                raise
            say(error.format_message(), Level.ERROR)
            ctx.exit(error.exit_code)
        ended = Exit.CLEAN if code is None else Exit(code)
        for happened, instead in ((_INCOMPLETE, Exit.PARTLY_FAILED), (_UNREAD, Exit.CLOSED_PIPE)):
            if ctx.meta.get(happened) and ended in (Exit.CLEAN, Exit.FINDINGS):
                ended = instead
        ctx.exit(int(ended))


def carry_out(command: str, given: Mapping[str, Any], function: str = "run") -> Exit:
    """Load what a command does, a function of a module in ``reconciler.cli.commands``, and do it.

    What the settings gave is said before, as far as somebody wants to know or has to, and with ``--verbose`` what the
    engine does on the way, and how long all took.
    """
    if not given.get("spark"):
        refuse_join(command)
    context, began = click.get_current_context(), time.monotonic()
    _refuse_unused_json(context)
    settings = context.meta.get(SETTINGS)
    if isinstance(settings, Settings):
        _say_settings(context, settings)
    try:
        with _engine_lines():
            act = getattr(importlib.import_module(f"reconciler.cli.commands.{command}"), function)
            heed_interrupt()
            context.meta[_BEGUN] = True
            ended: Exit = act(**given)
    except UsageError as error:
        origins = _origins(context, settings, str(error)) if isinstance(settings, Settings) else ""
        if not origins:
            raise
        raise UsageError(f"{error} (named by {origins})") from error
    detail(f"ended with exit code {int(ended)}, {since(began)}")
    return ended


_BEGUN, JSON_ASKED = "logstore.begun", "logstore.json"
"""Where the context of a call keeps that the command is loaded, and does something; and whether ``--json`` was given,
before the name of the verb or behind it."""


def note_json(context: click.Context, _: click.Parameter, given: bool) -> None:
    """Keep that ``--json`` was given."""
    if given:
        context.meta[JSON_ASKED] = True


def _refuse_unused_json(context: click.Context) -> None:
    """Refuse ``--json`` before the name of a verb that has no such option.

    Raises:
        UsageError: it was given, and the verb would do nothing with it.
    """
    if context.meta.get(JSON_ASKED) and not any("--json" in option.opts for option in context.command.params):
        raise UsageError(f"'{context.command_path}' has no --json: leave it out")


SETTINGS = "logstore.settings"
"""Where the context of a call keeps its :class:`reconciler.cli.settings.Settings`."""


def _say_settings(context: click.Context, settings: Settings) -> None:
    """Say which log dirs the settings gave to a command that changes disks, and with ``--verbose`` all that they gave.

    The command line has its own words for what it gives, so only what is not on it is news.
    """
    verb = context.command_path.partition(" ")[2]
    if is_said(Level.DEBUG):
        detail(f"settings are read from {', '.join(settings.files) or 'no file'}")
    for name, parameter, setting in settings.given_to(verb, context.command):
        is_taken = context.get_parameter_source(parameter) is ParameterSource.DEFAULT_MAP
        value = context.params.get(parameter, setting.value)
        if name == LOG_DIRS and is_taken and changes_log_dirs(verb):
            say(f"the log dirs are those of {setting.origin}: {', '.join(map(str, value))}")
        else:
            detail(f"{setting.origin}: {name} is {value!r}" if is_taken else f"{setting.origin}: {name} is not needed")
    for option in context.command.params:
        if option.name and context.get_parameter_source(option.name) is ParameterSource.ENVIRONMENT:
            detail(f"{option.envvar}: {option.opts[0]} is {context.params.get(option.name)!r}")


def _origins(context: click.Context, settings: Settings, sentence: str) -> str:
    """Name the settings whose values a sentence speaks of, because they are not on the command line to be seen."""
    found = []
    for _, parameter, setting in settings.given_to(context.command_path.partition(" ")[2], context.command):
        values = setting.value if isinstance(setting.value, list) else [setting.value]
        is_taken = context.get_parameter_source(parameter) is ParameterSource.DEFAULT_MAP
        if is_taken and any(re.search(rf"(?<!\S){re.escape(str(each))}(?![^\s:,;])", sentence) for each in values):
            found.append(setting.origin)
    return ", ".join(found)


@contextmanager
def _engine_lines() -> Iterator[None]:
    """With ``--verbose`` say meanwhile what the engine logs, on any level."""
    if not is_said(Level.DEBUG):
        yield
        return
    import logging

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            # Of any level: what deserves a warning, the command says in its own words as well.
            detail(record.getMessage(), logger=record.name)

    handler, loggers = Handler(), [logging.getLogger(name) for name in ("logstore", "reconciler")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.removeHandler(handler)
            each.setLevel(level)


def detail(sentence: str, **fields: str) -> None:
    """Say what is read or done on the way, with ``--verbose`` alone."""
    say(sentence, Level.DEBUG, **fields)


def since(began: float) -> str:
    """Say how long something took that began at a time of :func:`time.monotonic`."""
    return f"after {time.monotonic() - began:.2f} s"


TRACEBACK_VARIABLE = "LOGSTORE_TRACEBACK"
"""Set this in the environment to see where an error came from."""


class Exit(IntEnum):
    """The exit codes (DESIGN §9)."""

    CLEAN = 0
    FINDINGS = 1
    USAGE = 2
    REFUSED = 3
    PARTLY_FAILED = 4
    INTERRUPTED = 128 + signal.SIGINT
    """As a shell has it for a command that Ctrl-C ended; SIGTERM and SIGHUP give the same."""
    CLOSED_PIPE = 128 + signal.SIGPIPE
    """As a shell has it for a command whose reader, ``head`` for example, has read enough."""


class PartlyFailedError(ReconcilerError):
    """A part of the work was done: output is incomplete, or an engine gave up."""

    exit_code = Exit.PARTLY_FAILED


class InterruptedRunError(ReconcilerError):
    """The user ended the command; the message says what was done, and what does the rest."""

    exit_code = Exit.INTERRUPTED


class ClosedPipeError(ReconcilerError):
    """Whoever read the output has read enough, which is nothing to tell anybody."""

    exit_code = Exit.CLOSED_PIPE


def code_of(error: BaseException) -> Exit:
    """Return the exit code for an error."""
    match error:
        case ReconcilerError():
            return Exit(error.exit_code)
        case KeyboardInterrupt():
            return Exit.INTERRUPTED
        case NotALogDirError():
            return Exit.USAGE
        case FileNotFoundError() if _without_current_directory(error):
            return Exit.USAGE
        case InventoryError() | ChangeRefusedError() | DamagedRecordError():
            return Exit.REFUSED
        case _:
            return Exit.PARTLY_FAILED


@contextmanager
def sentences() -> Iterator[None]:
    """Turn an exception inside into one sentence and the exit code for it."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BaseException as error:
        if isinstance(error, BrokenPipeError) and is_output_unread():
            abandon_output()
            raise click.exceptions.Exit(Exit.CLOSED_PIPE) from error
        if os.environ.get(TRACEBACK_VARIABLE) or isinstance(error, SystemExit):
            raise
        if not isinstance(error, ClosedPipeError):
            say(_sentence(error), Level.ERROR)
        raise click.exceptions.Exit(code_of(error)) from error


def say(sentence: str, level: Level = Level.INFO, **fields: str) -> None:
    """Write a line of prose to standard error; control characters in names cannot steer the terminal.

    With ``--log-format json`` it is an object, with the verb and further facts as fields.

    When the reader of standard error is gone, the error is dropped; the exit code still reports the failure.
    """
    if not is_said(level):
        return
    from reconciler.text import visible  # imported here, because --help says nothing

    context = click.get_current_context(silent=True)
    verb = {} if context is None or not context.info_name else {"command": context.info_name}
    with suppress(OSError):
        click.echo(log_line(visible(sentence), level, **verb, **fields), err=True)


def warn(sentence: str) -> None:
    """Say what asks somebody to act, or tells that less was done than was asked for; ``--quiet`` lets it through."""
    say(sentence, Level.WARNING)


_INCOMPLETE = "logstore.incomplete"


def say_incomplete(sentence: str) -> None:
    """Say that a part of what was asked for is not in the answer; the command ends with 4 in place of 0 or 1."""
    say(sentence, Level.WARNING)
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_INCOMPLETE] = True


_UNREAD = "logstore.unread"


@contextmanager
def may_be_unread() -> Iterator[None]:
    """Write about a change that is done, and go on where nobody reads it or no room is left: what comes next is prose.

    In place of 0 or 1 the command ends with 141 then, or with 4.
    """
    try:
        yield
    except (PartlyFailedError, UsageError) as error:
        say_incomplete(str(error))
    except (BrokenPipeError, ClosedPipeError):
        abandon_output()
        context = click.get_current_context(silent=True)
        if context is not None:
            context.meta[_UNREAD] = True


def say_step(step: Step, head: str = "next", level: Level = Level.INFO) -> None:
    """Say what comes next: why, and the command on a line of its own, which can be pasted as it stands."""
    if is_json():
        following = {} if step.command is None else {"next": str(step.text)}
        say(f"{head}: {step.why}", level, **following)
        return
    say(f"{head}: {step.why}" if step.command is None else f"{head}: {step.why}:", level)
    if step.command is not None and is_said(level):
        with suppress(OSError):
            click.echo(f"    {step.text}", err=True)


def is_output_unread() -> bool:
    """Whether standard output is a pipe whose reader is gone, which otherwise only the next write would show."""
    try:
        poller = select.poll()
        poller.register(sys.stdout.fileno(), 0)
        return any(events & (select.POLLERR | select.POLLNVAL) for _, events in poller.poll(0))
    except (OSError, ValueError, AttributeError):
        return False


def abandon_output() -> None:
    """Point standard output, which takes no more data, at nothing; else Python complains again when it exits."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _without_current_directory(error: FileNotFoundError) -> bool:
    """Whether this is the error of a relative path after the current directory was removed."""
    return error.filename is None and error.strerror == os.strerror(errno.ENOENT)


def _may_have_begun() -> bool:
    """Whether the command may have done something; most of a short one's time goes by before, while it is loaded."""
    return bool((context := click.get_current_context(silent=True)) is None or context.meta.get(_BEGUN))


def _sentence(error: BaseException) -> str:
    match error:
        case KeyboardInterrupt() if not _may_have_begun():
            return "interrupted before anything was done"
        case KeyboardInterrupt():
            return "interrupted; what was written so far is incomplete, and what was not done yet stays as it was"
        case ReconcilerError() | LogStoreError():
            return str(error)
        case FileNotFoundError() if _without_current_directory(error):
            return "the current directory is gone: change to another one, or give absolute paths from there"
        case OSError(strerror=str(reason)):
            return f"{error.filename}: {reason}" if error.filename is not None else reason
        case _:
            return no_room(error) or (
                f"this is a bug in logstore ({type(error).__name__}: {error!s:.200}): run it again with "
                f"{TRACEBACK_VARIABLE}=1 and report what it prints"
            )


@contextmanager
def say_warnings(*loggers: str, silent: bool = False) -> Iterator[None]:
    """Say every warning that is logged meanwhile; silent: drop it, because it will be said again."""
    import logging

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not silent:
                say(record.getMessage(), Level.WARNING, logger=record.name)

    handler = Handler(logging.WARNING)
    for name in loggers:
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name in loggers:
            logging.getLogger(name).removeHandler(handler)
