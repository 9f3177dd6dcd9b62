"""The audit of one machine or of a whole fleet: the case table, run by an engine that joins millions of rows."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.audit.amend import with_inventories, with_policy
    from reconciler.audit.embedded import audit
    from reconciler.audit.findings import FINDING_SCHEMA, FINDINGS_FILE, SCRATCH_PREFIX, SUMMARY_FILE, TOPICS_FILE
    from reconciler.audit.fleet import FLEET_SCHEMA, FleetFinding, FleetKey
    from reconciler.audit.incremental import BASIS_SCHEMA, Basis, EarlierAudit
    from reconciler.audit.next_steps import BrokerCalls, advised_steps, with_next
    from reconciler.audit.report import EarlierRun, render_report
    from reconciler.audit.report_json import AUDIT_SCHEMA_VERSION, by_urgency, write_findings, write_summary
    from reconciler.audit.result import Accepted, AuditResult, VerdictTotal
    from reconciler.audit.spark import spark_findings
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "amend": ("with_inventories", "with_policy"),
            "embedded": ("audit",),
            "findings": ("FINDINGS_FILE", "FINDING_SCHEMA", "SCRATCH_PREFIX", "SUMMARY_FILE", "TOPICS_FILE"),
            "fleet": ("FLEET_SCHEMA", "FleetFinding", "FleetKey"),
            "incremental": ("BASIS_SCHEMA", "Basis", "EarlierAudit"),
            "next_steps": ("BrokerCalls", "advised_steps", "with_next"),
            "report": ("EarlierRun", "render_report"),
            "report_json": ("AUDIT_SCHEMA_VERSION", "by_urgency", "write_findings", "write_summary"),
            "result": ("Accepted", "AuditResult", "VerdictTotal"),
            "spark": ("spark_findings",),
        },
    )

__all__ = [
    "AUDIT_SCHEMA_VERSION",
    "BASIS_SCHEMA",
    "FINDINGS_FILE",
    "FINDING_SCHEMA",
    "FLEET_SCHEMA",
    "SCRATCH_PREFIX",
    "SUMMARY_FILE",
    "TOPICS_FILE",
    "Accepted",
    "AuditResult",
    "Basis",
    "BrokerCalls",
    "EarlierAudit",
    "EarlierRun",
    "FleetFinding",
    "FleetKey",
    "VerdictTotal",
    "advised_steps",
    "audit",
    "by_urgency",
    "render_report",
    "spark_findings",
    "with_inventories",
    "with_next",
    "with_policy",
    "write_findings",
    "write_summary",
]
