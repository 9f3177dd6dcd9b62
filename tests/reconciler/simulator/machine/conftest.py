"""Brokers for the tests of a broker's machine, which are closed at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reconciler.simulator.machine.brokers import Brokers
from tests.reconciler.simulator.machine.disk_folders import fresh_folders

fresh = pytest.fixture(fresh_folders)


@pytest.fixture
def make_brokers(tmp_path: Path) -> Iterator[Callable[..., Brokers]]:
    made: list[Brokers] = []

    def make(**options: Any) -> Brokers:
        made.append(Brokers(tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def brokers(make_brokers: Callable[..., Brokers]) -> Brokers:
    """Three of them, with one disk each."""
    return make_brokers()
