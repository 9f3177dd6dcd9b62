"""The pages that commands print: audits, plans, outcomes and explanations."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.pages.audit_page import next_lines, show_audit
    from reconciler.cli.pages.directory_page import explain_directory, explain_log_dir
    from reconciler.cli.pages.doctor_page import broken, show_examination
    from reconciler.cli.pages.explanation import Explanation, judge_name, scan_rows
    from reconciler.cli.pages.file_page import explain_file
    from reconciler.cli.pages.plan_pages import show_plan, write_outcome, write_undone
    from reconciler.cli.pages.policy_page import CheckedPolicy, show_policy, write_policy
    from reconciler.cli.pages.reconcile_page import WORDS, RequestReport, error_name, write_report
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "audit_page": ("next_lines", "show_audit"),
            "directory_page": ("explain_directory", "explain_log_dir"),
            "doctor_page": (
                "broken",
                "show_examination",
            ),
            "explanation": ("Explanation", "judge_name", "scan_rows"),
            "file_page": ("explain_file",),
            "plan_pages": ("show_plan", "write_outcome", "write_undone"),
            "policy_page": ("CheckedPolicy", "show_policy", "write_policy"),
            "reconcile_page": ("RequestReport", "WORDS", "error_name", "write_report"),
        },
    )

__all__ = [
    "WORDS",
    "CheckedPolicy",
    "Explanation",
    "RequestReport",
    "broken",
    "error_name",
    "explain_directory",
    "explain_file",
    "explain_log_dir",
    "judge_name",
    "next_lines",
    "scan_rows",
    "show_audit",
    "show_examination",
    "show_plan",
    "show_policy",
    "write_outcome",
    "write_policy",
    "write_report",
    "write_undone",
]
