"""A simulated broker for the tests of control requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reconciler.protocol.control_requests import Sim


@pytest.fixture
def sim(tmp_path: Path) -> Iterator[Sim]:
    """A broker with two empty log dirs; whatever the test leaves open is closed."""
    made = Sim(tmp_path)
    yield made
    made.stop()
