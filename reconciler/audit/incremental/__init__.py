"""Incremental audits: what the verdicts of a broker rest on, and what an earlier audit said of those as before."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.audit.incremental.basis import BASIS_SCHEMA, Basis, note_basis, read_basis
    from reconciler.audit.incremental.kept import EarlierAudit, keep_findings
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "basis": ("BASIS_SCHEMA", "Basis", "note_basis", "read_basis"),
            "kept": ("EarlierAudit", "keep_findings"),
        },
    )

__all__ = ["BASIS_SCHEMA", "Basis", "EarlierAudit", "keep_findings", "note_basis", "read_basis"]
