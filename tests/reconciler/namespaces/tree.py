"""The ZooKeeper of the simulator, asked as kazoo's client is asked: what is written is what its brokers read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.simulator.zookeeper import (
    CONTROLLER_EPOCH,
    BadVersionError,
    Check,
    Create,
    NodeExistsError,
    NoNodeError,
    Operation,
    Session,
    Set,
    ZooKeeper,
    broker_path,
    encode_broker,
    make_base,
)
from tests.reconciler.simulator.admin.admin_bench import Crank

exceptions = pytest.importorskip("kazoo.exceptions", reason="kazoo is not installed")


class SimulatedClient:
    """The calls of a client that a namespace's configs and ACLs need, on a session of the simulator."""

    def __init__(self) -> None:
        self.zookeeper = ZooKeeper(Crank())
        self.session: Session = self.zookeeper.session("test")
        make_base(self.session)
        self.session.create(CONTROLLER_EPOCH, b"3")
        for path in ("/brokers/topics/org", "/brokers/topics/org/apache"):
            self.session.create(path)
        self.session.create("/brokers/topics/orders", b'{"version":1,"partitions":{"0":[1,2]}}')
        for node_id in (1, 2):
            self.session.create(broker_path(node_id), encode_broker(node_id), ephemeral=True)

    def register(self, node_id: int, data: bytes) -> None:
        """Let a broker register anew."""
        if self.session.find(broker_path(node_id)) is not None:
            self.session.delete(broker_path(node_id))
        self.session.create(broker_path(node_id), data, ephemeral=True)

    def get(self, path: str) -> Any:
        found = self.session.find(path)
        if found is None:
            raise exceptions.NoNodeError
        return found.data, SimpleNamespace(version=found.version)

    def get_children(self, path: str) -> list[str]:
        if self.session.find(path) is None:
            raise exceptions.NoNodeError
        return list(self.session.children(path))

    def transaction(self) -> Transaction:
        return Transaction(self.session)


class Transaction:
    """All or nothing, as ZooKeeper has it; ``refused`` makes it fail with that error."""

    refused: Exception | None = None

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parts: list[Operation] = []

    def check(self, path: str, version: int) -> None:
        self._parts.append(Check(path, version))

    def create(self, path: str, data: bytes, sequence: bool = False) -> None:
        self._parts.append(Create(path, data, sequence=sequence))

    def set_data(self, path: str, data: bytes, version: int) -> None:
        self._parts.append(Set(path, data, version))

    def commit(self) -> list[Any]:
        if self.refused is not None:
            return [self.refused]
        try:
            self._session.multi(self._parts)
        except (BadVersionError, NodeExistsError, NoNodeError) as error:
            return [getattr(exceptions, type(error).__name__)(), exceptions.RolledBackError()]
        return [True] * len(self._parts)
