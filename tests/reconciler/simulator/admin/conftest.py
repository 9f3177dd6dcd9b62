"""Fixtures for the tests of the administrator's commands."""

from __future__ import annotations

import pytest

from reconciler.simulator.admin import CommandOutcome
from tests.reconciler.simulator.admin.admin_bench import AdminBench


@pytest.fixture
def bench() -> AdminBench:
    """Three brokers without racks."""
    return AdminBench()


@pytest.fixture
def apache(bench: AdminBench) -> AdminBench:
    """The same with the namespace org:apache:kafka, and a controller that sweeps."""
    assert bench.admin.create_namespace("org:apache:kafka") == CommandOutcome()
    bench.admin.start()
    bench.timers.run()
    return bench
