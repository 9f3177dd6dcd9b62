"""The case table as one CASE expression of an engine, and the evidence as another.

An engine offers a :class:`Dialect`, four constructors over its own expression objects. Nothing here knows which engine
it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from string import Formatter
from typing import Any, Protocol

from reconciler.verdicts import CASES, DOUBTS, Doubt, Verdict, plainly_in_order

_LAST_OK = max(number for number, case in enumerate(CASES) if case.verdict is Verdict.OK)


class Dialect(Protocol):
    """Four constructors of an engine's expressions, which must support ``==``, ``!=``, ``>``, ``-``, ``&``, ``|``."""

    def column(self, name: str) -> Any:
        """Make the value of a column."""

    def literal(self, value: str | int | bool | None) -> Any:
        """Make a constant; None is null."""

    def choose(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        """Choose the value of the first branch whose condition holds, else ``otherwise``."""

    def concat(self, parts: Sequence[Any]) -> Any:
        """Concatenate text parts and columns of any type as text."""


class _Columns:
    """A joined row whose attributes are the engine's columns, for the conditions of the case table.

    An attribute that is known beforehand is a constant, so the engine's optimizer drops the cases that it rules out.
    """

    def __init__(self, dialect: Dialect, **known: str | bool) -> None:
        self._dialect = dialect
        self._known = known

    def __getattr__(self, name: str) -> Any:
        return self._dialect.literal(self._known[name]) if name in self._known else self._dialect.column(name)


def case_number(dialect: Dialect) -> Any:
    """Compute the index in :data:`reconciler.verdicts.CASES` of the first case that holds for a row of ``joined``."""
    row = _Columns(dialect)
    branches = [(case.when(row), dialect.literal(number)) for number, case in enumerate(CASES)]
    return dialect.choose(branches, dialect.literal(-1))


def is_listed(dialect: Dialect, all_rows: bool) -> Any:
    """Compute whether a row of ``joined`` is listed: findings are, and with ``all_rows`` the OK rows as well.

    The metadata's own log is no replica, so it is listed only where something is wrong with it, as a log dir is.
    """
    if not all_rows:
        return is_finding(dialect)
    kind, state = dialect.column("kind"), dialect.column("state")
    return ((kind != "log_dir") | (state != "ok")) & ((kind != "internal") | is_finding(dialect))


def is_finding(dialect: Dialect) -> Any:
    """Compute whether the first case that holds means a verdict other than OK; OK rows are counted, not listed.

    Every row is tested. Nearly all rows are live directories, so the cases that can apply to these stand apart, and
    the cases after the last one that means OK are left out.
    """
    kind = dialect.column("kind")
    live = _is_finding(dialect, _Columns(dialect, kind="live", on_disk=True))
    missing = _is_finding(dialect, _Columns(dialect, kind="", on_disk=False))
    return dialect.choose([(kind == "live", live), (kind == "", missing)], _is_finding(dialect, _Columns(dialect)))


def _is_finding(dialect: Dialect, row: _Columns) -> Any:
    branches = [(case.when(row), dialect.literal(case.verdict is not Verdict.OK)) for case in CASES[: _LAST_OK + 1]]
    return dialect.choose(branches, dialect.literal(True))


def is_worth_a_look(dialect: Dialect) -> Any:
    """Compute whether a row may be a finding, from the columns that are known before any lookup."""
    in_order = plainly_in_order(_Columns(dialect))
    return dialect.choose([(in_order, dialect.literal(False))], dialect.literal(True))


def verdict(dialect: Dialect) -> Any:
    """Compute the name of the verdict from a column ``case_no``."""
    return _by_case(dialect, [dialect.literal(case.verdict.value) for case in CASES])


def evidence(dialect: Dialect) -> Any:
    """Compute the evidence as a sentence, from a column ``case_no`` and the columns of the joined row."""
    return _by_case(dialect, [_filled(dialect, case.evidence) for case in CASES])


def doubt(dialect: Dialect) -> Any:
    """Compute the name of the doubt that a verdict is in, or null, from ``case_no`` and the columns of ``Times``."""
    branches = [
        (_is_open_to(dialect, each) & doubt_holds(dialect, each), dialect.literal(each.value)) for each in DOUBTS
    ]
    return dialect.choose(branches, dialect.literal(None))


def doubt_holds(dialect: Dialect, doubt: Doubt) -> Any:
    """Compute whether a verdict that is open to a doubt is in it, from the columns of ``Times``; null: no."""
    return DOUBTS[doubt](_Columns(dialect))


def _is_open_to(dialect: Dialect, doubt: Doubt) -> Any:
    number = dialect.column("case_no")
    return reduce(or_, (number == dialect.literal(index) for index, case in enumerate(CASES) if case.doubt is doubt))


def _by_case(dialect: Dialect, values: Sequence[Any]) -> Any:
    number = dialect.column("case_no")
    branches = [(number == dialect.literal(index), value) for index, value in enumerate(values)]
    return dialect.choose(branches, dialect.literal(""))


def _filled(dialect: Dialect, template: str) -> Any:
    parts: list[Any] = []
    for text, name, _, _ in Formatter().parse(template):
        if text:
            parts.append(dialect.literal(text))
        if name == "copies":
            parts.append(dialect.column(name))
        elif name:
            column = dialect.column(name)
            parts.append(dialect.choose([(column == dialect.literal(""), dialect.literal("none"))], column))
    return dialect.concat(parts) if parts else dialect.literal("")
