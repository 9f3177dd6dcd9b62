"""The errors of ``layout``, with one root: damaged bytes are kept apart from invalid arguments.

``DamagedFileError`` is about bytes that were found; ``InvalidNameError`` and ``InvalidIdError`` are about text that a
caller passed. Messages say what was found, where, and what a broker would do; :func:`excerpt` quotes it.
"""

from __future__ import annotations

from enum import StrEnum


def excerpt(text: str, most: int = 60) -> str:
    """Quote what was found in a file, such as a line of zero bytes: cut where it is long, and closed all the same.

    ``most``: characters of what is returned.
    """
    shown, head = repr(text), text[:most]
    if len(shown) <= most:
        return shown
    while len(repr(head)) >= most:
        head = head[:-1]
    cut = repr(head)
    return f"{cut[:-1]}…{cut[-1]}"


class BrokerEffect(StrEnum):
    """What a real broker does when it meets damage at start (FACTS §1.5, §1.6, §2)."""

    NONE = "nothing"
    LOG_DIR_OFFLINE = "the log dir goes offline"
    STARTUP_ABORTS = "the broker does not start"


class LayoutError(Exception):
    """Root of everything that ``layout`` raises."""


class InvalidIdError(LayoutError, ValueError):
    """A text or a number of bytes that is no topic ID or directory ID (FACTS §3)."""


class InvalidNameError(LayoutError, ValueError):
    """A topic, namespace or directory name that breaks the rules for it (FACTS §1.2, §1.4; KIP37-1)."""


class DamagedFileError(LayoutError):
    """The bytes of a metadata file do not parse.

    Attributes:
        file: name of the file's format, for example ``partition.metadata``.
        problem: what was found, one clause without a full stop.
        effect: what a real broker of the 3.7+ line does when it reads these bytes.
    """

    def __init__(self, file: str, problem: str, effect: BrokerEffect = BrokerEffect.NONE) -> None:
        """Keep the parts, and join them to the message."""
        super().__init__(f"{file}: {problem}")
        self.file = file
        self.problem = problem
        self.effect = effect


class NumberFormatError(LayoutError, ValueError):
    """A text that Java would not read as an integer of the width asked for (FACTS §11)."""


class InvalidQuestionError(LayoutError, ValueError):
    """A question about a broker without an answer: no such release, no such mode or state of a file in it."""
