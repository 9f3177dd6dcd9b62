"""A ZooKeeper in memory whose watches fire on demand."""

from __future__ import annotations

import pytest

from reconciler.simulator.zookeeper import Session, ZooKeeper
from tests.reconciler.simulator.admin.admin_bench import Crank


@pytest.fixture
def crank() -> Crank:
    return Crank()


@pytest.fixture
def server(crank: Crank) -> ZooKeeper:
    return ZooKeeper(crank)


@pytest.fixture
def session(server: ZooKeeper) -> Session:
    return server.session("broker-1")
