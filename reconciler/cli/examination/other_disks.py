"""Finds a log dir of a broker that was not given, where metadata cannot say that there is one, and what lies beside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from reconciler.cli.frame import find_log_dirs
from reconciler.desired import BrokerKey
from reconciler.text import count
from reconciler.verdicts import Judged, Verdict


def with_not_given(
    fleet: list[tuple[str, str, str]], broker: BrokerKey, given: Sequence[str], judged: Iterable[Judged]
) -> list[tuple[str, str, str]]:
    """Add a log dir of a broker that was not given, and in which replicas lie that are missing in those given.

    Metadata of a live broker names no log dirs, and so cannot say that one is not among them; where it can, that is
    what counts. ``fleet``: kind, subject and detail of the findings of the fleet about the broker.
    """
    if any(kind == "LOG_DIR_NOT_SEEN" for kind, _, _ in fleet):
        return fleet
    missing = (each.wanted for each in judged if each.verdict is Verdict.MISSING)
    names = [f"{wanted['topic']}-{wanted['partition']}" for wanted in missing if wanted is not None]
    known = find_log_dirs(broker, given) if names else None
    twins = [twin for name in names if known is not None and (twin := known.twin_of(name)) is not None]
    if not twins:
        return fleet
    lie = count(len(twins), "replica that is missing here lies", "replicas that are missing here lie")
    detail = f"{lie} in a log dir of this broker that was not given"
    return [*fleet, ("LOG_DIR_NOT_SEEN", os.path.dirname(twins[0]), detail)]


def names_beside(log_dir: str) -> list[str]:
    """List what lies beside a log dir under its name and more, by absolute paths; a folder that is closed says none."""
    folder, name = os.path.split(os.path.abspath(log_dir))
    try:
        found = os.listdir(folder)
    except OSError:
        return []
    return [os.path.join(folder, each) for each in found if each.startswith(f"{name}.")]
