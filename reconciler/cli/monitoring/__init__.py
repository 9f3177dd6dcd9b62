"""How commands are watched by others: the file of metrics that they leave, the endpoint of a watch, their options."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.monitoring.endpoint import metrics_endpoint, parse_address
    from reconciler.cli.monitoring.metrics_file import MetricsFile
    from reconciler.cli.monitoring.options import metrics_listen_option, metrics_option, metrics_topics_option
    from reconciler.cli.monitoring.purge_progress import PurgeProgress
    from reconciler.cli.monitoring.watch_metrics import WatchMetrics
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "endpoint": ("metrics_endpoint", "parse_address"),
            "metrics_file": ("MetricsFile",),
            "options": ("metrics_listen_option", "metrics_option", "metrics_topics_option"),
            "purge_progress": ("PurgeProgress",),
            "watch_metrics": ("WatchMetrics",),
        },
    )

__all__ = [
    "MetricsFile",
    "PurgeProgress",
    "WatchMetrics",
    "metrics_endpoint",
    "metrics_listen_option",
    "metrics_option",
    "metrics_topics_option",
    "parse_address",
]
