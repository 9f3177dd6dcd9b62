"""What must hold of a simulated cluster: at every moment, at the end, and in the eyes of an audit."""

from reconciler.simulator.checks.expected import desired
from reconciler.simulator.checks.promises import BrokenPromiseError, Promises
from reconciler.simulator.checks.rest import check_audit, check_rest, come_to_rest, let_delays_pass

__all__ = [
    "BrokenPromiseError",
    "Promises",
    "check_audit",
    "check_rest",
    "come_to_rest",
    "desired",
    "let_delays_pass",
]
