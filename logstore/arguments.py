"""Check what a caller gives, by the annotations that stand there anyway.

A wrong value gives one sentence, where it would give a traceback from deep inside or a wrong answer in silence. The
checks stand at the doors, in what is made once for a run; what is made for each replica checks itself by hand.
"""

from __future__ import annotations

import math
import os
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from enum import Enum, StrEnum
from functools import cache
from typing import Any, TypeAlias

Limits: TypeAlias = Mapping[str, tuple[float, float]]
"""Field → the least and the greatest number that it may hold."""

_NOUNS: Mapping[object, str] = {
    int: "an integer",
    float: "a number",
    str: "a text",
    bool: "True or False",
    bytes: "bytes",
    types.NoneType: "None",
}

_PLAIN: frozenset[object] = frozenset({int, str, bool, bytes, types.NoneType})
"""Types whose every value is as it should be; a float may be infinite or none."""


def check_fields(value: Any, error: Callable[[str], Exception], limits: Limits = types.MappingProxyType({})) -> None:
    """Refuse a dataclass with a field of another type than its annotation has, or with a number beyond its limits.

    Args:
        value: the dataclass, in its ``__post_init__``.
        error: makes the error from its message, which has all reasons.
        limits: of numbers, each and those in a collection; a number that is infinite or none is beyond every limit.
    """
    reasons = []
    for name, hint in _hints(value.__class__):
        given = getattr(value, name)
        if type(given) is hint and hint in _PLAIN and name not in limits:
            continue  # nearly every value
        least, most = limits.get(name, (-math.inf, math.inf))
        if not _fits(given, hint):
            reasons.append(f"{name} = {_shown(given)}, where {_noun(hint)} is expected")
        elif not all(least <= number <= most for number in _numbers(given)):
            reasons.append(f"{name} = {_shown(given)}, where {_range(least, most)} is expected")
    if reasons:
        raise error(f"{type(value).__name__} was given {'; '.join(reasons)}")


def check_argument(name: str, given: object, expected: type[object], error: Callable[[str], Exception]) -> None:
    """Refuse an argument of another type, with the error that the function raises."""
    if not _fits(given, expected):
        raise error(f"{name} = {_shown(given)}, where {_noun(expected)} is expected")


def check_each(name: str, given: object, expected: type[object], error: Callable[[str], Exception]) -> None:
    """Refuse what is no collection, or has a member of another type; its members are what a caller made one by one."""
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        raise error(f"{name} = {_shown(given)}, where a list, each {_noun(expected)}, is expected")
    for each in given:
        if not isinstance(each, expected):
            raise error(f"one of {name} = {_shown(each)}, where {_noun(expected)} is expected")


def check_paths(name: str, given: object, error: Callable[[str], Exception]) -> None:
    """Refuse what is no list of paths; a text is one path, whose letters are none."""
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        raise error(f"{name} = {_shown(given)}, where a list of paths is expected")
    for each in given:
        check_path(f"one of {name}", each, error)


def check_path(name: str, given: object, error: Callable[[str], Exception]) -> None:
    """Refuse what is no path: neither a text nor something with ``__fspath__``, or empty, which is no folder."""
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise error(f"{name} = {_shown(given)}, where a path is expected")


@cache
def _hints(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Give name and annotation of each field that a caller gives."""
    hints = typing.get_type_hints(kind)
    return tuple((each.name, hints[each.name]) for each in fields(kind) if each.init)


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Take an annotation apart, which takes longer than what is done with the parts."""
    return typing.get_origin(hint), typing.get_args(hint)


def _fits(given: object, hint: Any) -> bool:
    origin, inner = _parts(hint)
    if origin in (types.UnionType, typing.Union):
        return (type(given) in _PLAIN and type(given) in inner) or any(_fits(given, each) for each in inner)
    if origin is typing.Literal:
        return given in inner
    if origin is tuple and inner[1:] != (...,):
        pairs = zip(given, inner, strict=False) if isinstance(given, tuple) and len(given) == len(inner) else None
        return pairs is not None and all(_fits(each, kind) for each, kind in pairs)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(given, Mapping) and all(
            _fits(key, inner[0]) and _fits(value, inner[1]) for key, value in given.items()
        )
    if origin is not None and issubclass(origin, Collection):
        is_collection = isinstance(given, origin) and not isinstance(given, str | bytes)
        return is_collection and all(_fits(each, inner[0]) for each in typing.cast("Collection[object]", given))
    return _is_a(given, origin or hint)


def _is_a(given: object, kind: Any) -> bool:
    """Whether a value is of a type without parameters; a number is no bool, and neither infinite nor none."""
    if kind is Any:
        return True
    if kind is Callable:
        return callable(given)
    if kind in (int, float):
        is_number = isinstance(given, int if kind is int else int | float) and not isinstance(given, bool)
        return is_number and math.isfinite(typing.cast("float", given))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return given in tuple(kind)  # a text that is the value of one is as good
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(given, name) for name in vars(kind) if not name.startswith("_"))
    return isinstance(given, types.NoneType if kind is None else kind)


def _numbers(given: object) -> list[float]:
    values = given if isinstance(given, tuple) else (given,)
    return [each for each in values if isinstance(each, int | float)]


def _shown(given: object) -> str:
    """Write a value on one line, which the text of a table is not."""
    return " ".join(f"{given!r:.60}".splitlines())


def _noun(hint: Any) -> str:
    """Name what an annotation stands for: ``a tuple, each a text``, ``an integer or None``."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(map(_noun, inner))
    if origin is typing.Literal:
        return " or ".join(map(repr, inner))
    kind = origin or hint
    if kind is Callable:
        return "a function"
    if origin is not None and issubclass(origin, Mapping):
        return f"a mapping of {_noun(inner[0])} to {_noun(inner[1])}"
    if origin is not None and issubclass(origin, Collection):
        return f"a {'sequence' if origin is Sequence else origin.__name__}, each {_noun(inner[0])}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(str(each) for each in kind) if len(kind) <= len(_NOUNS) else f"a {kind.__name__}"
    return _NOUNS.get(None if kind is None else kind) or f"a {getattr(kind, '__name__', kind)}"


def _range(least: float, most: float) -> str:
    if math.isinf(most):
        return f"{least:g} or more"
    return f"{least:g} to {most:g}"
