"""The command line ``logstore``: ``main`` runs it, and ``logstore`` is the group of its commands.

Importing this package loads neither, so that ``main`` meets an interrupt while the command line is loaded.
"""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.__main__ import main
    from reconciler.cli.verbs import logstore
else:
    __getattr__ = lazy_exports(__name__, {"__main__": ("main",), "verbs": ("logstore",)})

__all__ = ["logstore", "main"]
