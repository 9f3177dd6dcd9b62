"""The form of what a command says on standard error: sentences for people, or an object of JSON to a line."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Any

LOG_FORMATS = ("text", "json")

_FORM = {"": "text"}
"""The form of this process; one command runs in it at a time."""


class Level(StrEnum):
    """How bad it is what a line says."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def choose_log_format(form: str) -> None:
    """Choose one of :data:`LOG_FORMATS` for all lines from now on."""
    _FORM[""] = form


def is_json() -> bool:
    """Whether lines are JSON."""
    return _FORM[""] == "json"


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
