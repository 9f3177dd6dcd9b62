"""The command line ``logstore``: ``main`` runs it, and ``logstore`` is the group of its commands.

``spark_audit`` runs ``logstore audit --spark``, as a job for spark-submit.

Importing this package loads neither, so that ``main`` meets an interrupt while the command line is loaded.
"""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.__main__ import main, spark_audit
    from reconciler.cli.verbs import logstore
else:
    __getattr__ = lazy_exports(__name__, {"__main__": ("main", "spark_audit"), "verbs": ("logstore",)})

__all__ = ["logstore", "main", "spark_audit"]
