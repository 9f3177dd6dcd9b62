"""Keeps pandas out of a process that has no use for it.

Arrow imports pandas, where it is installed, the first time that it is given a list; it asks whether the list is one
of pandas' own. That takes a fifth of a second, as long as a scan of ten thousand replicas. Spark needs pandas, so an
environment with the extra ``spark`` has it, and every command that does not use Spark would pay.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


class _WithoutPandas:
    """A finder of modules that finds nothing, and refuses one."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Refuse pandas, in the words in which Python says that a module is not installed."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not used by this command", name=fullname)


def do_without_pandas() -> None:
    """From now on pandas counts as not installed in this process, unless it was imported before."""
    if not any(isinstance(finder, _WithoutPandas) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WithoutPandas())
