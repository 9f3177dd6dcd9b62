"""Bulk loads: how a source makes millions of small objects without paying for the cyclic garbage collector.

Owns that one switch; what is loaded belongs to the sources.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_gc() -> Iterator[None]:
    """Hold the cyclic collector back: it costs several times the decoding, and a bulk load makes no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
