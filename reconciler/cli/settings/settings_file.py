"""The settings file and the variables ``LOGSTORE_*``: what every command would be given again and again.

An option on the command line counts most, then a variable, then the file, then the default. A file is TOML. At its top
stand the few settings that most commands have, and a table with the name of a verb has any option of that verb, by its
long name; ``[namespace.create]`` is that of a command in a group. A setting of a verb counts more than the same at the
top. A mistake is one sentence with file and line.
"""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from reconciler.errors import UsageError
from reconciler.text import TomlFile

DEFAULT_PLACES = ("/etc/logstore.toml", "~/.config/logstore.toml")
"""Files that are read where they are there; the later one counts more."""

LOG_DIRS, LOG_FORMAT = "log_dirs", "log_format"
GENERAL = (LOG_DIRS, "metadata", "spare_records", "policy", "kafka", "mode", "metadata_log_dir")
"""Settings at the top of a file, each of every verb that has such an option; :data:`LOG_FORMAT` is of all verbs."""

_OF_A_BROKERS_DISKS = {
    **dict.fromkeys(("doctor", "scan", "audit", "preflight", "watch", "plan", "repair", "staged", "explain"), False),
    **dict.fromkeys(("restore", "purge", "reconcile", "convert"), True),
    **dict.fromkeys(("namespace list", "policy check"), False),
    **{f"namespace {name}": True for name in ("create", "delete", "move", "rename")},
}
"""Verb whose log dirs are all those of brokers → whether it changes what lies there."""

_DASHES = str.maketrans("- ", "__")


@dataclass(frozen=True, slots=True)
class _Setting:
    value: Any
    origin: str
    """``FILE:LINE`` or the name of a variable, to begin a message with."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings: name, or verb and name → value, with where each comes from."""

    general: Mapping[str, _Setting] = field(default_factory=dict)
    of_verbs: Mapping[tuple[str, str], _Setting] = field(default_factory=dict)
    files: Sequence[str] = ()
    """The files that were read."""

    def log_format(self, formats: Sequence[str]) -> str | None:
        """Return the form of log lines; None: no setting says it.

        Raises:
            UsageError: it is none of the formats.
        """
        found = self.general.get(LOG_FORMAT)
        if found is not None and found.value not in formats:
            raise UsageError(
                f"{found.origin}: {LOG_FORMAT} is one of {', '.join(formats)}, and not {found.value!r:.40}"
            )
        return None if found is None else str(found.value)

    def defaults_of(self, verb: str, command: click.Command) -> dict[str, Any]:
        """Return what the settings give to the parameters of one command, and to the commands in it by their names.

        Raises:
            UsageError: a setting of the verb is no option of it, or a value is none that the option takes.
        """
        below = command.commands if isinstance(command, click.Group) else {}
        known = dict(_names(verb, command))
        for (of_verb, name), setting in self.of_verbs.items():
            inner = of_verb.removeprefix(f"{verb} ")
            if of_verb == verb and name not in known:
                raise UsageError(f"{setting.origin}: 'logstore {verb}' has no option {_option(name)}")
            if inner != of_verb and inner not in below:
                raise UsageError(f"{setting.origin}: 'logstore {verb}' has no command {inner!r:.60}")
        found: dict[str, Any] = {}
        with click.Context(command, info_name=verb) as context:
            for name, parameter, setting in self.given_to(verb, command):
                found[parameter] = _converted(context, known[name], name, setting)
        return found | {name: self.defaults_of(f"{verb} {name}", each) for name, each in below.items()}

    def given_to(self, verb: str, command: click.Command) -> Iterator[tuple[str, str, _Setting]]:
        """Yield each setting of a command: its name, that of the parameter, and the setting with where it is from."""
        for name, parameter in _names(verb, command):
            general = self.general.get(name) if name in GENERAL else None
            setting = self.of_verbs.get((verb, name), general)
            if setting is not None and parameter.name is not None:
                yield name, parameter.name, setting


def changes_log_dirs(verb: str) -> bool:
    """Whether a verb changes what lies in the log dirs that it takes."""
    return _OF_A_BROKERS_DISKS.get(verb, False)


def _names(verb: str, command: click.Command) -> Iterator[tuple[str, click.Parameter]]:
    """Yield the parameters of a command by the names that settings have for them."""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            name = max(parameter.opts, key=len).lstrip("-").translate(_DASHES)
            if name == "log_dir" and verb in _OF_A_BROKERS_DISKS:
                yield LOG_DIRS, parameter
            if name != "help":
                yield name, parameter
        elif parameter.name == "paths" and verb in _OF_A_BROKERS_DISKS:
            yield LOG_DIRS, parameter


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _converted(context: click.Context, parameter: click.Parameter, name: str, setting: _Setting) -> Any:
    """Check a value as if it had been given on the command line, and expand patterns of log dirs.

    Raises:
        UsageError: the option does not take it.
    """
    is_many = parameter.multiple or parameter.nargs != 1
    value = setting.value
    if is_many and not isinstance(value, list):
        value = [value]
    if isinstance(value, list | dict) != is_many or (is_many and any(isinstance(each, list | dict) for each in value)):
        raise UsageError(f"{setting.origin}: {name} takes {'a list of values' if is_many else 'one value'}")
    if is_many:
        value = [each if isinstance(each, str) else str(each) for each in value]
    if name == LOG_DIRS:
        value = [path for each in value for path in (sorted(glob.glob(each)) or [each])]
    try:
        parameter.type_cast_value(context, value)
    except click.BadParameter as error:
        raise UsageError(f"{setting.origin}: {name}: {error.message}") from error
    return value


def read_settings(given: str | None, verbs: Collection[str], environment: Mapping[str, str]) -> Settings:
    """Read the settings of a call.

    Args:
        given: the file that was named; None: those of :data:`DEFAULT_PLACES` that are there.
        verbs: names of all commands, and those of commands in a group as ``namespace create``.
        environment: the variables of the process.

    Raises:
        UsageError: the named file is not there, a file cannot be read, or something in it is a mistake.
    """
    general: dict[str, _Setting] = {}
    of_verbs: dict[tuple[str, str], _Setting] = {}
    places = [given] if given else [place for place in map(os.path.expanduser, DEFAULT_PLACES) if os.path.exists(place)]
    for path in places:
        _read_file(path, verbs, general, of_verbs)
    for name in (*GENERAL, LOG_FORMAT):
        variable = f"LOGSTORE_{name.upper()}"
        # The fallback folder has been a variable of its own option all along.
        if environment.get(variable) and name != "spare_records":
            general[name] = _Setting(_words(name, environment[variable]), variable)
            for key in [key for key in of_verbs if key[1] == name]:
                del of_verbs[key]
    prefixes = {f"LOGSTORE_{verb.upper().translate(_DASHES)}_": verb for verb in verbs}
    for variable, value in environment.items():
        prefix = max((each for each in prefixes if variable.startswith(each)), key=len, default=None)
        if prefix is not None and value:
            name = variable.removeprefix(prefix).lower()
            of_verbs[prefixes[prefix], name] = _Setting(_words(name, value), variable)
    return Settings(general, of_verbs, places)


def _words(name: str, value: str) -> Any:
    """Split a variable for a setting that takes several values; a value that holds a blank stands in quotes."""
    if name not in (LOG_DIRS, "metadata"):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise UsageError(f"LOGSTORE_{name.upper()}: a quotation mark is never closed") from error


def _read_file(
    path: str,
    verbs: Collection[str],
    general: dict[str, _Setting],
    of_verbs: dict[tuple[str, str], _Setting],
) -> None:
    try:
        with open(path, "rb") as opened:
            file = TomlFile.parse(path, opened.read(1 << 20))
    except OSError as error:
        raise UsageError(f"settings {path} cannot be read: {error.strerror}") from error
    for key, value in file.document.items():
        name = key.translate(_DASHES)
        if isinstance(value, dict) and key in verbs:
            for verb, option, each in _options_in(key, value):
                of_verbs[verb, option.translate(_DASHES)] = _Setting(each, file.place(option, verb.replace(" ", ".")))
        elif name in (*GENERAL, LOG_FORMAT) and not isinstance(value, dict):
            general[name] = _Setting(value, file.place(key))
        else:
            known = f"a setting is one of {', '.join((*GENERAL, LOG_FORMAT))}, and a table has the name of a verb"
            raise UsageError(f"{file.place(key)}: {key!r:.60} is no setting: {known}")


def _options_in(verb: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield verb, option and value for each entry of a verb's table, and of the tables in it."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{verb} {name}", option, each) for option, each in value.items())
        else:
            yield verb, name, value
