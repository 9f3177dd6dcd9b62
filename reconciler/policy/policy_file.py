"""The file of a policy: TOML, read strictly, so that no rule is lost by a slip of the pen. Pure.

Each mistake is one sentence with file and line: a key or a value that is none, a pattern that no name can match. The
form::

    foreign = ["lost+found", "README*"]

    [gates]
    max_age = "6h"
    max_share = "10%"
    max_count = 200
    max_shrink = "20%"

    [[delay]]
    topics = ["payments*", "ledger"]
    delay = "30d"

    [[never_touch]]
    topics = ["audit-*"]
    reason = "the auditors read these from the disks"

    [[hold]]
    topics = ["trades-*"]
    reason = "case 2026-114"
    until = 2027-06-30

A hold until a date ends with that day in UTC. Source: USERS, feature 24.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from logstore import InvalidSettingError, parse_duration
from reconciler.errors import UsageError
from reconciler.policy.rules import GateNumber, PolicyRules, Rule, RuleKind
from reconciler.text import TomlFile

_GATES = "gates"
_KEYS: Final[Mapping[RuleKind, tuple[str, ...]]] = {
    RuleKind.DELAY: ("topics", "delay"),
    RuleKind.NEVER_TOUCH: ("topics", "reason"),
    RuleKind.HOLD: ("topics", "reason", "until"),
}
"""The keys of a rule's table; all but ``until`` must be there."""

_TOPIC_PATTERN = re.compile(r"[A-Za-z0-9._:*?\[\]!-]+")
"""A topic's name has letters, digits, dots, dashes and underscores, and colons after its namespaces."""


def parse_policy(path: str, data: bytes) -> PolicyRules:
    """Parse the bytes of a policy file; ``path`` is named in messages.

    Raises:
        UsageError: something in it is a mistake; the message has file and line.
    """
    file = TomlFile.parse(path, data)
    tables = tuple(kind.value for kind in _KEYS)
    for key, value in file.document.items():
        if key not in (_GATES, RuleKind.FOREIGN, *tables):
            known = f"a policy has {RuleKind.FOREIGN}, [{_GATES}] and {', '.join(f'[[{each}]]' for each in tables)}"
            raise UsageError(f"{file.place(key)}: {key!r:.60} is no part of a policy: {known}")
        if key in tables and not (isinstance(value, list) and all(isinstance(each, dict) for each in value)):
            raise UsageError(f"{file.place(key)}: {key} is given as tables, each headed [[{key}]]")
    rules = [rule for kind in _KEYS for rule in _rules(file, kind)]
    return PolicyRules(path, (*rules, *_foreign(file)), _gates(file))


def _rules(file: TomlFile, kind: RuleKind) -> Iterator[Rule]:
    for number, table in enumerate(file.document.get(kind.value, ()), 1):

        def place(key: str = "", number: int = number) -> str:
            return file.place(key, kind.value, number)

        _check_keys(kind.value, table, _KEYS[kind], place)
        for key in _KEYS[kind]:
            if key not in table and key != "until":
                raise UsageError(f"{place()}: this [[{kind}]] has no {key}")
        until = table.get("until")
        yield Rule(
            kind,
            _patterns("topics", table["topics"], place("topics"), of_topics=True),
            place(),
            "" if "reason" not in table else _text("reason", table["reason"], place("reason")),
            0 if "delay" not in table else _duration("delay", table["delay"], place("delay")),
            None if until is None else _end(until, place("until")),
        )


def _check_keys(table: str, found: Mapping[str, Any], known: Collection[str], place: Callable[[str], str]) -> None:
    for key in found:
        if key not in known:
            raise UsageError(f"{place(key)}: {key!r:.60} is no key of {table}, which has {', '.join(known)}")


def _foreign(file: TomlFile) -> Iterator[Rule]:
    if RuleKind.FOREIGN in file.document:
        place = file.place(RuleKind.FOREIGN)
        for pattern in _patterns("foreign", file.document[RuleKind.FOREIGN], place, of_topics=False):
            yield Rule(RuleKind.FOREIGN, (pattern,), place)


def _patterns(key: str, value: object, place: str, *, of_topics: bool) -> tuple[str, ...]:
    """Check a list of shell patterns: one that no name can match would be a rule that does nothing."""
    if not (isinstance(value, list) and value and all(isinstance(each, str) for each in value)):
        raise UsageError(f"{place}: {key} is a list of patterns in quotes, with one at least, and not {value!r:.40}")
    for each in value:
        problem = None
        if not each or each != each.strip():
            problem = "is empty, or begins or ends with a blank"
        elif "[" in re.sub(r"\[!?\]?[^\]]*\]", "", each):
            problem = "has a [ that is never closed"
        elif of_topics and not _TOPIC_PATTERN.fullmatch(each):
            problem = "has a character that is in no topic's name"
        elif not of_topics and (each in (".", "..") or each.startswith("/") or not each.isprintable()):
            problem = "is no name of an entry of a log dir"
        if problem is not None:
            raise UsageError(f"{place}: the pattern {each!r:.60} {problem}")
    return tuple(value)


def _text(key: str, value: object, place: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise UsageError(f"{place}: {key} is a text of one line in quotes, and not {value!r:.40}")
    return value.strip()


def _duration(key: str, value: object, place: str) -> int:
    if not isinstance(value, str):
        raise UsageError(f"{place}: {key} is a time in quotes, for example '7d', and not {value!r:.40}")
    try:
        return parse_duration(value)
    except InvalidSettingError as error:
        raise UsageError(f"{place}: {key}: {error}") from error


def _end(value: object, place: str) -> int:
    """Return when a hold ends, in ms since 1970: with its day, or at a moment."""
    if isinstance(value, datetime) and value.tzinfo is None:
        raise UsageError(f"{place}: until is a moment without a time zone: write {value.isoformat()}Z for UTC")
    if not isinstance(value, date):
        raise UsageError(f"{place}: until is a date without quotes, for example 2027-06-30, and not {value!r:.40}")
    try:
        if isinstance(value, datetime):
            end = int(value.timestamp() * 1000)
        else:
            end = int((datetime(value.year, value.month, value.day, tzinfo=UTC) + timedelta(days=1)).timestamp() * 1000)
    except (OverflowError, ValueError):
        end = -1
    if end < 0:
        raise UsageError(f"{place}: until {value} is no date that can be waited for: leave it out to hold for ever")
    return end


def _gates(file: TomlFile) -> dict[str, GateNumber]:
    table = file.document.get(_GATES, {})
    if not isinstance(table, dict):
        raise UsageError(f"{file.place(_GATES)}: {_GATES} is a table, headed [{_GATES}]")
    _check_keys(_GATES, table, tuple(_NUMBERS), lambda key: file.place(key, _GATES))
    found = {}
    for key, value in table.items():
        place = file.place(key, _GATES)
        found[key] = GateNumber(_NUMBERS[key](key, value, place), str(value), place)
    return found


def _share(key: str, value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"{place}: {key} is a share, for example '30%' or 0.3, and not {value!r:.40}")
    try:
        return parse_share(str(value))
    except UsageError as error:
        raise UsageError(f"{place}: {key}: {error}") from error


def _count(key: str, value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise UsageError(f"{place}: {key} is a whole number, for example 1000, and not {value!r:.40}")
    return value


_NUMBERS: Final[Mapping[str, Callable[[str, object, str], float]]] = {
    "max_age": _duration,
    "max_shrink": _share,
    "max_share": _share,
    "max_count": _count,
}


def parse_share(text: str) -> float:
    """Parse ``30%`` or ``0.3``.

    Raises:
        UsageError: the text is no share, or not between 0 and 1.
    """
    digits = text.strip()
    try:
        share = float(digits.removesuffix("%")) / (100 if digits.endswith("%") else 1)
    except ValueError:
        share = -1
    if not 0 <= share <= 1:
        raise UsageError(f"{text!r:.40} is no share: 30% or 0.3 is expected")
    return share
