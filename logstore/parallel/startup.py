"""Helpers for a quick start-up: lazy imports, no pandas, no garbage collection during a bulk load.

Arrow imports NumPy, where it is installed, together with itself. It imports pandas when it gets its first list, to ask
whether the list is a pandas object. The two imports take a third of a second, as long as a scan of twenty thousand
replicas. Spark needs both, so an environment with the extra ``spark`` has them, and every process that scans or opens a
store would pay. So the command line blocks both imports where Spark is not asked for. A program that embeds
``LogStore`` may do the same before it imports Arrow, if nothing else in it needs NumPy or pandas.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType


def lazy_exports(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Make a package's ``__getattr__``, which imports each exported name on first use (PEP 562).

    The names are not stored in the package, so no exported name may equal the name of one of its modules.

    ``modules``: module below the package → exported names that it defines.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def exported(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        return found

    return exported


@contextmanager
def paused_gc() -> Iterator[None]:
    """Pause the cyclic garbage collector: it costs several times the decoding, and a bulk load makes no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _WithoutPandas:
    """An import finder that refuses pandas and NumPy, and leaves all other modules to the next finder."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Raise the error of a module that is not installed."""
        if fullname in ("pandas", "numpy"):
            raise ModuleNotFoundError(f"{fullname} is not used by this process", name=fullname)


def do_without_pandas() -> None:
    """Make pandas and NumPy count as not installed in this process, unless they are imported already."""
    if not any(isinstance(finder, _WithoutPandas) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WithoutPandas())
