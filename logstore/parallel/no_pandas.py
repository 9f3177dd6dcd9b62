"""Keeps pandas and NumPy out of a process that has no use for them.

Arrow imports NumPy, where it is installed, when it is imported itself, and pandas the first time that it is given a
list; it asks whether the list is one of pandas' own. The two take a third of a second, as long as a scan of twenty
thousand replicas. Spark needs both, so an environment with the extra ``spark`` has them, and every process that scans
or opens a store would pay. The command line says no to them where Spark is not asked for; a program that embeds
``LogStore`` may, before it imports Arrow, if nothing else in it wants them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


class _WithoutPandas:
    """A finder of modules that finds nothing, and refuses one."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Refuse them, in the words in which Python says that a module is not installed."""
        if fullname in ("pandas", "numpy"):
            raise ModuleNotFoundError(f"{fullname} is not used by this process", name=fullname)


def do_without_pandas() -> None:
    """From now on they count as not installed in this process, unless they were imported before."""
    if not any(isinstance(finder, _WithoutPandas) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WithoutPandas())
