"""A simulated broker, and a simulated cluster, for upstream's tests."""

from tests.reconciler.conftest import sim
from tests.reconciler.simulator.conftest import new_cluster

__all__ = ["new_cluster", "sim"]
