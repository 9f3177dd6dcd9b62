"""The errors of ``reconciler``: one root, and the exit code that the command line gives for each family.

Exit codes (DESIGN §9): 0 clean, 1 findings, 2 usage, 3 refused, 4 partly failed, 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class ReconcilerError(Exception):
    """Root of everything that ``reconciler`` raises."""

    exit_code: ClassVar[int] = 3


class UsageError(ReconcilerError):
    """A path, a scheme or a combination of options that does not exist or does not fit together."""

    exit_code = 2


class MetadataError(ReconcilerError):
    """A metadata source cannot be trusted: absent, truncated, corrupt, empty, or not of the kind it was said to be."""


SHOWN_REASONS = 20
"""How many reasons a message lists; the error keeps them all."""


class InvalidRequestError(MetadataError):
    """Input that is not the control request it should be; ``reasons`` holds every reason, each with its place."""

    def __init__(self, location: str, reasons: Sequence[str], what: str = "LeaderAndIsr request") -> None:
        """Join the first reasons into one message, and count the others; ``what`` names the expected message."""
        more = f"; and {len(reasons) - SHOWN_REASONS} more" if len(reasons) > SHOWN_REASONS else ""
        article = "an" if what[:1] in "AEIOU" else "a"
        super().__init__(f"{location} is not {article} {what}: {'; '.join(reasons[:SHOWN_REASONS])}{more}")
        self.location = location
        self.reasons = tuple(reasons)


class RefusedError(ReconcilerError):
    """The input is sound, but going on could do harm or give a wrong answer."""


class HistoryError(ReconcilerError):
    """An audit was made, and could not be added to its history, or its older runs not removed."""

    exit_code = 4


class EngineUnavailableError(ReconcilerError):
    """The engine that was asked for cannot run here, for example Spark without a Java."""
