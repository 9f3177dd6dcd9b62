"""The engine's own settings, named as Kafka would name them, and how they resolve along the tiers of a namespace.

A topic's setting overrides its namespace's, a namespace's overrides that of the tier above, and the default comes last
(KIP37-5)::

    delete.stale.topic.delay.ms    default 14400000    how long a stale replica stays staged (KIP516-6)
    file.delete.delay.ms           default 60000       the same for a replica deleted by StopReplica (KIP516-7)

The proposal says "4 hours" but writes 14400 for a setting in ms. The hours are meant (DESIGN §4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from layout.topic import NAMESPACE_SEPARATOR, namespace_of
from logstore.arguments import check_argument, check_fields
from logstore.errors import ChangeRefusedError

STALE_DELAY: Final = "delete.stale.topic.delay.ms"
"""The setting of how long a stale replica stays staged, in ms (KIP516-6)."""

DELETE_DELAY: Final = "file.delete.delay.ms"
"""The setting of how long a replica that StopReplica deleted stays staged, in ms (KIP516-7)."""

DEFAULTS: Final[Mapping[str, int]] = {STALE_DELAY: 4 * 3_600_000, DELETE_DELAY: 60_000}
"""All settings: name → default in ms."""

_DURATION = re.compile(r"([0-9]{1,15})\s*(ms|s|m|h|d|w)?", re.ASCII)
_UNITS = {None: 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_MOST_MS = 100 * 366 * 86_400_000
"""A hundred years. A longer duration is a typing error, and added to the time it could overflow an int64."""


class InvalidSettingError(ChangeRefusedError):
    """An unknown setting, or a value out of its range."""


def parse_duration(text: str) -> int:
    """Parse ``4h``, ``7d``, ``30s``, ``500ms`` or a plain number of ms; return ms.

    Raises:
        InvalidSettingError: the text is no duration, or is longer than a hundred years.
    """
    check_argument("a duration", text, str, InvalidSettingError)
    match = _DURATION.fullmatch(text.strip())
    milliseconds = int(match[1]) * _UNITS[match[2]] if match else -1
    if not 0 <= milliseconds <= _MOST_MS:
        raise InvalidSettingError(
            f"{text!r:.40} is no duration: a number with ms, s, m, h, d or w behind it is expected, for example 4h"
        )
    return milliseconds


@dataclass(frozen=True, slots=True)
class Settings:
    """Valid settings by scope.

    Attributes:
        by_scope: a topic's full name, a namespace with ``:`` at its end, or ``""`` for the default → setting → ms.

    Raises:
        InvalidSettingError: an unknown setting, a negative value, or more than a hundred years.
    """

    by_scope: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, InvalidSettingError)
        for scope, values in self.by_scope.items():
            for name, value in values.items():
                if name not in DEFAULTS or not 0 <= value <= _MOST_MS:
                    known = ", ".join(DEFAULTS)
                    raise InvalidSettingError(
                        f"{name!r:.60} = {value} for {scope or 'all'!r:.60} is no setting: {known}, in ms, are there"
                    )

    def of(self, topic: str, name: str) -> int:
        """Give the value of a setting for a topic (full name), in ms."""
        for scope in _scopes(topic):
            value = self.by_scope.get(scope, {}).get(name)
            if value is not None:
                return value
        return DEFAULTS[name]

    def moved(self, namespace: str, target: str) -> Settings:
        """Give the settings after a namespace became another: what was given in it is now given there."""
        old, new = namespace + NAMESPACE_SEPARATOR, target + NAMESPACE_SEPARATOR
        scopes = {scope: values for scope, values in self.by_scope.items() if not scope.startswith(old)}
        going = {scope: values for scope, values in self.by_scope.items() if scope.startswith(old)}
        return Settings(scopes | {new + scope[len(old) :]: values for scope, values in going.items()})


def _scopes(topic: str) -> list[str]:
    """List the scopes that apply to a topic, the nearest first."""
    scopes = [topic]
    namespace = namespace_of(topic)
    while namespace:
        scopes.append(namespace + NAMESPACE_SEPARATOR)
        namespace = namespace_of(namespace)
    return [*scopes, ""]
