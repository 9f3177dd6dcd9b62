"""A simulated broker for upstream's tests of control requests."""

from tests.reconciler.conftest import sim

__all__ = ["sim"]
