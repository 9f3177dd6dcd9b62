"""What must hold of a simulated cluster: at every moment, at the end, and in the eyes of an audit."""

from reconciler.simulator.checks.convergence import (
    check_converged,
    check_full_changes_nothing,
    converge,
    let_delays_pass,
)
from reconciler.simulator.checks.expected_verdicts import check_audit, expected_state
from reconciler.simulator.checks.invariants import BrokenInvariantError, Invariants

__all__ = [
    "BrokenInvariantError",
    "Invariants",
    "check_audit",
    "check_converged",
    "check_full_changes_nothing",
    "converge",
    "expected_state",
    "let_delays_pass",
]
