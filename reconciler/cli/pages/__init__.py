"""What verbs print: tables and explanations."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.pages.audit_table import next_steps, show_audit
    from reconciler.cli.pages.directory_page import explain_directory, explain_log_dir
    from reconciler.cli.pages.explanation import Explanation, judge_name, log_dir_of_path, scan_rows
    from reconciler.cli.pages.file_page import explain_file
    from reconciler.cli.pages.plan_pages import show_plan, write_outcome
    from reconciler.cli.pages.reconcile_pages import Report, error_name, write_report
    from reconciler.cli.pages.repair_pages import show_repair_plan, write_repair_outcome, write_undone
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "audit_table": ("next_steps", "show_audit"),
            "directory_page": ("explain_directory", "explain_log_dir"),
            "explanation": ("Explanation", "judge_name", "log_dir_of_path", "scan_rows"),
            "file_page": ("explain_file",),
            "plan_pages": ("show_plan", "write_outcome"),
            "reconcile_pages": ("Report", "error_name", "write_report"),
            "repair_pages": ("show_repair_plan", "write_repair_outcome", "write_undone"),
        },
    )

__all__ = [
    "Explanation",
    "Report",
    "error_name",
    "explain_directory",
    "explain_file",
    "explain_log_dir",
    "judge_name",
    "log_dir_of_path",
    "next_steps",
    "scan_rows",
    "show_audit",
    "show_plan",
    "show_repair_plan",
    "write_outcome",
    "write_repair_outcome",
    "write_report",
    "write_undone",
]
