"""What a command says on standard error: how much, and as sentences for people or an object of JSON to a line."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

LOG_FORMATS = ("text", "json")


class Level(StrEnum):
    """How bad it is what a line says; a line of ``debug`` says what is read and done on the way."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Verbosity(StrEnum):
    """How much is said; the name is that of the option."""

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"


@dataclass(slots=True)
class _Chosen:
    """What was chosen for this process; one command runs in it at a time."""

    log_format: str = LOG_FORMATS[0]
    verbosity: Verbosity = Verbosity.NORMAL


_chosen = _Chosen()


def choose_log_format(form: str) -> None:
    """Choose one of :data:`LOG_FORMATS` for all lines from now on."""
    _chosen.log_format = form


def choose_verbosity(verbosity: Verbosity) -> None:
    """Choose how much is said from now on."""
    _chosen.verbosity = verbosity


def verbosity() -> Verbosity:
    """Return how much is said."""
    return _chosen.verbosity


def is_said(level: Level) -> bool:
    """Whether a line of this level is said at all."""
    if level is Level.DEBUG:
        return _chosen.verbosity is Verbosity.VERBOSE
    return level is not Level.INFO or _chosen.verbosity is not Verbosity.QUIET


def is_json() -> bool:
    """Whether lines are JSON."""
    return _chosen.log_format == "json"


def log_line(message: str, level: Level = Level.INFO, **fields: Any) -> str:
    """Make the line of a message.

    Args:
        message: one sentence.
        level: of the message.
        fields: further facts, which sentences have in their words.
    """
    if not is_json():
        return f"logstore: {message}"
    import json  # orjson would be one more library for commands that load little

    now = time.time()
    moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03}Z"
    whole = {"time": moment, "level": level.value, "message": message, "fields": fields}
    return json.dumps(whole, ensure_ascii=False)
