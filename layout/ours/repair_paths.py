"""Paths and check sums as repair plans and their backups write them: pure text, held to what can do no harm."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from layout.ours.staged_record import stays_below

MISSING: Final = "missing"
"""Stands for the SHA-256 of a file that is not there."""

_SUM = re.compile(r"[0-9a-f]{64}")


def sum_of(data: bytes | None) -> str:
    """SHA-256 of a file's bytes in hex; None: there is no file."""
    return MISSING if data is None else hashlib.sha256(data).hexdigest()


def is_sum(text: str) -> bool:
    """Whether this is what :func:`sum_of` gives."""
    return text == MISSING or _SUM.fullmatch(text) is not None


def is_absolute(path: str) -> bool:
    """Whether a path is absolute and has no ``.`` or ``..`` on its way."""
    return path.startswith("/") and stays_below(path[1:])
