"""What must hold of a simulated cluster: at every moment, at the end, and in the eyes of an audit."""

from reconciler.simulator.checks.expected import expected_state
from reconciler.simulator.checks.promises import BrokenPromiseError, Invariants
from reconciler.simulator.checks.rest import check_audit, check_converged, converge, let_delays_pass

__all__ = [
    "BrokenPromiseError",
    "Invariants",
    "check_audit",
    "check_converged",
    "converge",
    "expected_state",
    "let_delays_pass",
]
