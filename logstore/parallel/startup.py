"""What makes a process start sooner: no module before it is needed, no pandas, no collector during a bulk load.

Arrow imports NumPy, where it is installed, when it is imported itself, and pandas the first time that it is given a
list; it asks whether the list is one of pandas' own. The two take a third of a second, as long as a scan of twenty
thousand replicas. Spark needs both, so an environment with the extra ``spark`` has them, and every process that scans
or opens a store would pay. The command line says no to them where Spark is not asked for; a program that embeds
``LogStore`` may, before it imports Arrow, if nothing else in it wants them.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType


def lazy_exports(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Make a package's ``__getattr__``, which imports what it exports when somebody asks for it (PEP 562).

    Nothing is kept in the package, so no name that it exports may be the name of one of its modules.

    Args:
        package: its ``__name__``.
        modules: module below the package → the names that it defines.
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
    """Hold the cyclic collector back: it costs several times the decoding, and a bulk load makes no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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
