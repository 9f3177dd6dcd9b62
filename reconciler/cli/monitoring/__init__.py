"""How commands are watched by others: the file of metrics that they leave, and the options for it."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.monitoring.metrics_file import MetricsFile
    from reconciler.cli.monitoring.options import metrics_option, metrics_topics_option
else:
    __getattr__ = lazy_exports(
        __name__,
        {"metrics_file": ("MetricsFile",), "options": ("metrics_option", "metrics_topics_option")},
    )

__all__ = ["MetricsFile", "metrics_option", "metrics_topics_option"]
