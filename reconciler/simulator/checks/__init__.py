"""What must hold of a simulated cluster: at every moment, at the end, and in the eyes of an audit."""

from reconciler.simulator.checks.applied_plan import (
    FoundDisks,
    wrongly_applied,
    wrongly_done_again,
    wrongly_planned,
    wrongly_refused,
)
from reconciler.simulator.checks.convergence import (
    check_converged,
    check_full_changes_nothing,
    converge,
    let_delays_pass,
)
from reconciler.simulator.checks.expected_verdicts import check_audit, expected_state
from reconciler.simulator.checks.invariants import BrokenInvariantError, Invariants
from reconciler.simulator.checks.repaired import Damage, DamagedFile, bytes_of, wrongly_repaired, wrongly_undone
from reconciler.simulator.checks.second_opinions import MachineWatch, SecondOpinions, engine_differences

__all__ = [
    "BrokenInvariantError",
    "Damage",
    "DamagedFile",
    "FoundDisks",
    "Invariants",
    "MachineWatch",
    "SecondOpinions",
    "bytes_of",
    "check_audit",
    "check_converged",
    "check_full_changes_nothing",
    "converge",
    "engine_differences",
    "expected_state",
    "let_delays_pass",
    "wrongly_applied",
    "wrongly_done_again",
    "wrongly_planned",
    "wrongly_refused",
    "wrongly_repaired",
    "wrongly_undone",
]
