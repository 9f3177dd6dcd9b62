"""Options that several commands share, spelled and explained alike, and the values that are read from them.

Loads nothing heavier than click. A record that found no room on a full disk lies in a folder on another disk, the
fallback folder, and every command must look into the same one. So it has one fixed path unless another is named: with
``sudo`` or from cron the environment is not that of the user who staged, and at three in the morning nobody remembers
an option.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from layout.errors import InvalidQuestionError
from logstore import InvalidSettingError, parse_duration
from reconciler.cli.frame.lifecycle import JSON_ASKED, note_json
from reconciler.cli.frame.output import Format
from reconciler.errors import UsageError
from reconciler.next_steps import FALLBACK_FOLDER

if TYPE_CHECKING:
    from logstore.log_dir import FallbackRecords
    from reconciler.policy import PolicyRules

Function = TypeVar("Function", bound=Callable[..., Any])

TEXT_FORMATS = (Format.TABLE, Format.JSON, Format.NDJSON, Format.CSV)

FALLBACK_VARIABLE = "LOGSTORE_SPARE_RECORDS"

_POLICY_LIMIT = 1 << 20
"""The largest policy that is read, in bytes."""

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kMGT]?)i?B?", re.ASCII)


def output_options(*formats: Format) -> Callable[[Function], Function]:
    """Add the options ``--format`` and ``-o``, alike in every command that has data."""

    def decorate(function: Function) -> Function:
        function = click.option(
            "-o", "--output", metavar="FILE", help="Write the data to this file. [default: standard output]"
        )(function)
        if Format.JSON in formats:
            function = click.option(
                "--json", is_flag=True, expose_value=False, is_eager=True, callback=note_json, help="As --format json."
            )(function)
        return click.option(
            "--format",
            "form",
            type=click.Choice([each.value for each in formats]),
            default=Format.TABLE.value,
            show_default=True,
            callback=_chosen_format,
            help="How the data is written.",
        )(function)

    return decorate


def _chosen_format(context: click.Context, option: click.Parameter, form: str) -> str:
    """Return the format, which ``--json`` names as well.

    Raises:
        UsageError: both name one, and they differ.
    """
    if not context.meta.get(JSON_ASKED):
        return form
    given = option.name is not None and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    if given and form != Format.JSON:
        raise UsageError(f"--json and --format {form} name two formats: leave one of them out")
    if option.name is not None:  # or a command that is printed to be given again would leave it out
        context.set_parameter_source(option.name, ParameterSource.COMMANDLINE)
    return Format.JSON.value


def metadata_option(function: Function) -> Function:
    """Add the option ``--metadata``, alike in every command that compares."""
    return click.option(
        "--metadata",
        "specs",
        metavar="SOURCE",
        multiple=True,
        help="A KRaft metadata directory or snapshot, a ZooKeeper snapshot, a LeaderAndIsr request as JSON, output of "
        "kafka-topics --describe, or a saved state; kraft:, zk-snapshot:, request:, describe: or parquet: before the "
        "path says which, and wire: a request as bytes. zk:HOST:PORT/chroot asks a live ZooKeeper, kafka:HOST:PORT a "
        "live cluster. Once for each cluster; 'none' for no metadata. [default: what lies at or below the given "
        "folders]",
    )(function)


def scan_options(function: Function) -> Function:
    """Add the options ``--jobs`` and ``--sizes``, alike in every command that scans."""
    function = click.option(
        "--sizes/--no-sizes", default=True, help="Add up the files of each directory. [default: --sizes]"
    )(function)
    return click.option(
        "--jobs",
        type=click.IntRange(1, 64),
        metavar="N",
        help="Processes that look, beside the one that gathers what they find. [default: as many as pay]",
    )(function)


def fallback_records_option(
    function: Function,
    text: str = f"Folder on another disk with the records that found no room. [default: ${FALLBACK_VARIABLE}, else "
    f"{FALLBACK_FOLDER} where it is there]",
) -> Function:
    """Add the option ``--spare-records``, alike in every command that stages, lists, restores or purges."""
    option = click.option("--spare-records", "fallback_folder", metavar="DIR", envvar=FALLBACK_VARIABLE, help=text)
    return option(function)


def passed_on_fallback_option(function: Function) -> Function:
    """Add the same option to a command that looks into no such folder, and prints commands that do."""
    return fallback_records_option(
        function, "Passed on to the commands that are printed, as 'logstore apply' takes it."
    )


def change_options(function: Function) -> Function:
    """Add ``--dry-run``, ``--format``, ``-o`` and ``--spare-records``, alike in every command that changes a store."""
    function = output_options(*TEXT_FORMATS)(fallback_records_option(function))
    return click.option("--dry-run", is_flag=True, help="Show every step that would be taken, and take none.")(function)


DEFAULT_RELEASE = "3.9"
"""The release that is asked about where nothing tells it."""


_MODES = ("kraft", "zookeeper", "migration")


def broker_options(function: Function) -> Function:
    """Add ``--kafka``, ``--mode`` and ``--metadata-log-dir``, alike in every command that asks about a start."""
    for option in (
        click.option(
            "--metadata-log-dir",
            metavar="DIR",
            help="As in metadata.log.dir. [default: the first LOG_DIR, as for a broker]",
        ),
        click.option(
            "--mode",
            type=click.Choice(_MODES),
            help="Where the broker takes its metadata from; migration is ZooKeeper mode with migration to KRaft "
            "enabled. [default: as meta.properties tells, else kraft]",
        ),
        click.option(
            "--kafka",
            metavar="RELEASE",
            help="Release of the broker, for example 3.7.1. [default: the oldest that a broker of a KRaft cluster's "
            f"metadata can have, else {DEFAULT_RELEASE}]",
        ),
    ):
        function = option(function)
    return function


def passed_on_options(function: Function) -> Function:
    """Add the same options to a command that asks nothing about a start, and prints commands that do.

    The command takes them as ``**broker``, and gives them to its ``Call``.
    """
    why = "Passed on to the commands that are printed, as 'logstore doctor' takes it."
    function = policy_option(function)
    for option in (
        click.option("--metadata-log-dir", metavar="DIR", help=why),
        click.option("--mode", type=click.Choice(_MODES), help=why),
        click.option("--kafka", "release", metavar="RELEASE", callback=_checked_release, help=why),
    ):
        function = option(function)
    return function


def policy_option(function: Function) -> Function:
    """Add the option ``--policy``, alike in every command that plans, stages or purges, or prints one that does."""
    return click.option(
        "--policy",
        metavar="FILE",
        help="Rules as TOML: delays by topic, topics never to touch, legal holds, foreign names that are allowed, the "
        "numbers of the gates; 'logstore policy check' says what they mean. Commands that are printed take it too.",
    )(function)


def read_policy(path: str | None) -> PolicyRules:
    """Read a policy file; None: there is none, and so no rule.

    Raises:
        UsageError: it cannot be read, or something in it is a mistake.
    """
    from logstore import UnreadableFileError
    from logstore.fs import read_small_file  # which takes longer to load than click
    from reconciler.policy import PolicyRules, parse_policy

    if path is None:
        return PolicyRules()
    try:
        data = read_small_file(os.path.realpath(path), _POLICY_LIMIT)
    except UnreadableFileError as error:
        raise UsageError(f"policy {path} {error}") from error
    if data is None:
        raise UsageError(f"policy {path}: there is no such file; name the present one with --policy")
    return replace(parse_policy(path, data), path=os.path.abspath(path))


def _checked_release(_: click.Context, __: click.Parameter, release: str | None) -> str | None:
    check_question(release, None)
    return release


def is_of_settings(name: str) -> bool:
    """Whether the value of a parameter of this call is that of the settings."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.DEFAULT_MAP


def without_settings(given: dict[str, Any], *names: str) -> None:
    """Take back what the settings gave to parameters of several values, for which this call has no use."""
    context = click.get_current_context()
    for name in names:
        if is_of_settings(name):
            given[name] = context.params[name] = ()
            context.set_parameter_source(name, ParameterSource.DEFAULT)


def check_question(kafka: str | None, mode: str | None) -> None:
    """Refuse a release or a mode that does not exist before anything is read.

    Raises:
        UsageError: there is no such release, none that is known, or it does not have the mode.
    """
    if kafka is None:
        return
    # These take longer to load than click.
    from reconciler.preflight import BrokerAsked, BrokerMode, KafkaRelease, check_known

    try:
        release = KafkaRelease.parse(kafka)
        check_known(release)
        if mode is not None:
            BrokerAsked.of(release, BrokerMode(mode))
    except InvalidQuestionError as error:
        raise UsageError(str(error)) from error


def fallback_records(folder: str | None) -> FallbackRecords:
    """Find the folder of fallback records.

    Raises:
        UsageError: the named folder is not there.
    """
    from logstore.log_dir import FallbackRecords  # which takes longer to load than click

    if not folder:
        return FallbackRecords(FALLBACK_FOLDER if os.path.isdir(FALLBACK_FOLDER) else None)
    if not os.path.isdir(folder):
        raise UsageError(f"--spare-records: {folder} is no directory")
    return FallbackRecords(os.path.abspath(folder))


def parse_rate(text: str) -> int:
    """Read ``100M``, ``1.5G`` or a plain number of bytes; units are powers of 1000, as disks are sold.

    Raises:
        UsageError: the text is no rate, or a rate of zero.
    """
    digits = text.strip().removesuffix("/s").removesuffix("B").strip()
    unit = digits[-1:] if digits[-1:] in _UNITS else ""
    try:
        rate = int(float(digits.removesuffix(unit)) * _UNITS[unit])
    except (ValueError, OverflowError):
        rate = 0
    if rate < 1:
        raise UsageError(
            f"--rate: {text!r:.40} is no rate: a number of bytes with k, M, G or T is expected, as in 100M"
        )
    return rate


def parse_size(text: str) -> int:
    """Read ``200G``, ``1.5T`` or a plain number of bytes; units are powers of 1000, as disks are sold.

    Raises:
        UsageError: the text is no size, or a size of zero.
    """
    match = _SIZE.fullmatch(text.strip())
    number = 0 if match is None else int(float(match[1]) * _UNITS[match[2]])
    if number < 1:
        raise UsageError(
            f"--need: {text!r:.40} is no size: a number of bytes with k, M, G or T is expected, as in 200G"
        )
    return number


def parse_share(text: str) -> float:
    """Read ``30%`` or ``0.3``.

    Raises:
        UsageError: the text is no share, or not between 0 and 1.
    """
    from reconciler import policy  # which loads what reads settings

    try:
        return policy.parse_share(text)
    except UsageError as error:
        raise UsageError(f"--max-share: {error}") from error


def user_name() -> str:
    """Name the user who runs the command and, under sudo, the user who called it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"user {os.getuid()}"
    caller = os.environ.get("SUDO_USER")
    return f"{name} (sudo by {caller})" if caller and caller != name else name


def parse_duration_option(option: str, text: str) -> int:
    """Read a duration such as ``4h`` or ``7d``, in ms.

    Raises:
        UsageError: the text is no duration; the message names the option.
    """
    try:
        return parse_duration(text)
    except InvalidSettingError as error:
        raise UsageError(f"{option}: {error}") from error


def is_given(context: click.Context, name: str) -> bool:
    """Whether a parameter was given, on the command line or by a setting."""
    return context.get_parameter_source(name) not in (ParameterSource.DEFAULT, None)


def words_of_call(context: click.Context, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the words of a call behind the name of its command: arguments, and each option that was given.

    ``without``: options that are left out, by their long names, and arguments by theirs.
    """
    words: list[str] = []
    for parameter in context.command.params:
        # An option that only stands for another one has no value of its own.
        name = parameter.name or ""
        option = max(parameter.opts, key=len)
        if name not in context.params or not is_given(context, name) or option in without:
            continue
        value = context.params[name]
        for each in value if isinstance(value, tuple) else [value]:
            if isinstance(parameter, click.Argument):
                words.append(str(each))
            elif isinstance(each, bool):
                words.append(option if each else max(parameter.secondary_opts, key=len))
            else:
                words += [option, str(each)]
    return tuple(words)
