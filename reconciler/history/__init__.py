"""The results of many audits in one folder: each run appends to tables of findings, totals and topics."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.history.append import append_run
    from reconciler.history.delta import keep_delta_tables
    from reconciler.history.diff import DIFF_VERSION, Difference, compare_results
    from reconciler.history.results import Result, open_result
    from reconciler.history.retention import Removal, remove_old_days
    from reconciler.history.tables import (
        Place,
        Run,
        check_history,
        describe_runs_to_come,
        earlier_runs,
        first_seen,
        last_audit,
        list_runs,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "append": ("append_run",),
            "delta": ("keep_delta_tables",),
            "diff": ("DIFF_VERSION", "Difference", "compare_results"),
            "results": ("Result", "open_result"),
            "retention": ("Removal", "remove_old_days"),
            "tables": (
                "Place",
                "Run",
                "check_history",
                "describe_runs_to_come",
                "earlier_runs",
                "first_seen",
                "last_audit",
                "list_runs",
            ),
        },
    )

__all__ = [
    "DIFF_VERSION",
    "Difference",
    "Place",
    "Removal",
    "Result",
    "Run",
    "append_run",
    "check_history",
    "compare_results",
    "describe_runs_to_come",
    "earlier_runs",
    "first_seen",
    "keep_delta_tables",
    "last_audit",
    "list_runs",
    "open_result",
    "remove_old_days",
]
