"""Incremental audits: what the verdicts of a broker rest on, and what an earlier audit said of those as before."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.audit.incremental.basis import BASIS_SCHEMA, Basis, just_scanned, note_basis, read_basis
    from reconciler.audit.incremental.kept import EarlierAudit, files_to_judge, keep_findings
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "basis": ("BASIS_SCHEMA", "Basis", "just_scanned", "note_basis", "read_basis"),
            "kept": ("EarlierAudit", "files_to_judge", "keep_findings"),
        },
    )

__all__ = [
    "BASIS_SCHEMA",
    "Basis",
    "EarlierAudit",
    "files_to_judge",
    "just_scanned",
    "keep_findings",
    "note_basis",
    "read_basis",
]
