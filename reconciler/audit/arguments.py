"""The check of what a program gives to an audit, the same for both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from logstore import check_argument, check_path, check_paths
from reconciler.desired import DesiredState
from reconciler.errors import UsageError


def check_audit(
    paths: Mapping[str, Sequence[str]],
    states: Sequence[DesiredState],
    folders: Mapping[str, str],
    numbers: Mapping[str, tuple[int, int]],
    previous: str | None,
) -> None:
    """Refuse the arguments of an audit by either engine that are not what its docstring says.

    ``paths``: the lists of paths, by the name of the argument; ``folders``: single ones, and ``numbers``: each with the
    least that it may be, likewise; ``previous``: None where nothing is compared with.

    Raises:
        UsageError: one is of another type, or a number is too low.
    """
    for name, given in paths.items():
        check_paths(name, given, UsageError)
    check_argument("states", states, Sequence, UsageError)
    for state in states:
        check_argument("one of states", state, DesiredState, UsageError)
    for name, path in {**folders, **({} if previous is None else {"previous": previous})}.items():
        check_path(name, path, UsageError)
    for name, (number, least) in numbers.items():
        check_argument(name, number, int, UsageError)
        if number < least:
            raise UsageError(f"{name} = {number}, where {least} or more is expected")
