"""What is asked for: a topic by its full name or by its ID, or one partition of a topic.

A text can mean several of them: ``orders-0`` is a legal topic name too, and so is the text of a topic ID. All that it
can mean is asked for, because each copy that is found says itself what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from layout.directory_name import split_live
from layout.errors import InvalidIdError, InvalidNameError
from layout.ids import TopicId
from layout.topic import check_full_topic_name
from reconciler.errors import UsageError


@dataclass(frozen=True, slots=True)
class Subject:
    """A topic or a partition, as a user named it."""

    text: str
    topic_id: str | None
    """In canonical form; None: the text is no topic ID."""
    partition: tuple[str, int] | None
    """Topic and number; None: the text names no partition."""

    @classmethod
    def parse(cls, text: str) -> Subject:
        """Read a full topic name, a topic ID in Kafka's base64 form, or ``TOPIC-PARTITION``.

        Raises:
            UsageError: the text can be none of them.
        """
        try:
            topic_id = str(TopicId.parse(text))
        except InvalidIdError:
            topic_id = None
        try:
            check_full_topic_name(text)
        except InvalidNameError as error:
            if topic_id is None:
                raise UsageError(f"{error}; a topic, a topic ID or a partition such as orders-0 is expected") from error
        return cls(text, topic_id, split_live(text))

    @property
    def topics(self) -> frozenset[str]:
        """The topic names that the text can mean."""
        return frozenset({self.text} if self.partition is None else {self.text, self.partition[0]})

    @property
    def values(self) -> Mapping[str, frozenset[str]]:
        """By column of a row: the values of which a row of the subject has one."""
        return {"topic": self.topics, "topic_id": frozenset(() if self.topic_id is None else (self.topic_id,))}

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of a scan, or of a desired state, is about the subject."""
        return (
            row["topic"] == self.text
            or (self.topic_id is not None and row["topic_id"] == self.topic_id)
            or (row["topic"], row["partition"]) == self.partition
        )
