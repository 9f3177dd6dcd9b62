"""An option for the whole of the operator loop, instead of a sample."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--whole``."""
    parser.addoption("--whole", action="store_true", help="every pair of faults, not a sample")
