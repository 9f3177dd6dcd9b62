"""``logstore convert``: lays out log dirs by another scheme, as :mod:`logstore.namespaces` plans it."""

from __future__ import annotations

from typing import Any

from layout.scheme import Scheme
from logstore.namespaces import plan_convert
from reconciler.cli.frame import Exit, change_store


def run(*, paths: tuple[str, ...], scheme: str, **how: Any) -> Exit:
    """Convert all the log dirs of one broker to another scheme: every replica is renamed, nothing is copied."""
    return change_store(paths, lambda store: plan_convert(store, Scheme(scheme)), **how)
