"""What a store was given to keep, and what it may look like after each change, which may have been cut short.

Each replica has a number of its own in a file, so that two of one partition differ whatever the engine calls
them. After a change that failed, a replica is as it was before or as it should be afterwards, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from layout.ids import TopicId
from layout.topic import TopicPartition

NUMBER_FILE = "00000000000000000000.number"
"""The file with a replica's number."""


class Where(StrEnum):
    """Where a replica is."""

    NOWHERE = "nowhere"
    LIVE = "live"
    STAGED = "staged"
    BEGUN = "half purged"


@dataclass(frozen=True, slots=True)
class State:
    """What may be found of a replica.

    Attributes:
        where: it is.
        log_dir: that holds it; empty: any.
        at: its partition by the topic's full name of that time.
        staged_ms: when it was staged.
        due_ms: when it may be purged.
        offsets: checkpoint → its offset there.
    """

    where: Where
    log_dir: str
    at: TopicPartition
    staged_ms: int = 0
    due_ms: int = 0
    offsets: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        if self.where is Where.NOWHERE:
            return "nowhere"
        return f"{self.where} in {self.log_dir or 'a log dir'} as {self.at} with {dict(self.offsets)} due {self.due_ms}"


@dataclass(slots=True)
class Kept:
    """One replica.

    Attributes:
        number: its own.
        topic_id: None: it has none.
        states: what it may be found as; one but after a change that failed.
        files: name → bytes, without ``partition.metadata``.
        copy_of: the number that the copy of a move still has.
        is_made: whether its files are written.
    """

    number: int
    topic_id: TopicId | None
    states: list[State]
    files: dict[str, bytes] = field(default_factory=dict)
    copy_of: int | None = None
    is_made: bool = True

    @property
    def state(self) -> State:
        """What it is, where that is known."""
        return self.states[0]

    def may_be(self, where: Where) -> bool:
        """Whether it may be found there."""
        return any(each.where is where for each in self.states)

    @property
    def is_live(self) -> bool:
        """Whether it is live."""
        return self.states[0].where is Where.LIVE

    @property
    def is_staged(self) -> bool:
        """Whether it is staged, whole or not."""
        return self.states[0].where in (Where.STAGED, Where.BEGUN)

    def __str__(self) -> str:
        return f"replica {self.number} of topic ID {self.topic_id}"


@dataclass(frozen=True, slots=True)
class FoundDirectory:
    """A directory on a disk.

    Attributes:
        log_dir: it lies in.
        path: below that, or of a sibling's directory, beside it.
        is_staged: whether it lies where staged ones do.
        files: name → bytes.
    """

    log_dir: str
    path: str
    is_staged: bool
    files: Mapping[str, bytes]

    @property
    def number(self) -> int | None:
        """The number in it; None: it has none yet, or none any more."""
        text = self.files.get(NUMBER_FILE, b"")
        return int(text) if text.isdigit() else None

    def __str__(self) -> str:
        return f"{self.log_dir}/{self.path}"
