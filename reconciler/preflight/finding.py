"""What follows from one thing that was found: the value, its order, and the columns in which it is written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

SCHEMA_VERSION = 1
"""Of the columns and of the JSON document; raised whenever a field changes its meaning or goes."""

FINDING_SCHEMA = pa.schema(
    [
        pa.field("effect", pa.string()),  # an Effect
        pa.field("rule", pa.string()),  # a name in rules.RULES
        pa.field("log_dir", pa.string()),  # null: of the broker as a whole
        pa.field("name", pa.string()),  # path below the log dir; "." for the log dir itself
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("topic_id", pa.string()),  # as the disk holds it
        pa.field("replicas", pa.int64()),  # how many replicas it speaks of
        pa.field("only_in_sync", pa.bool_()),  # the metadata's only in-sync replica of the partition
        pa.field("problem", pa.string()),  # what was found and what follows, one sentence
        pa.field("source", pa.string()),  # where that is known from
        pa.field("next", pa.string()),  # the next safe command; null where there is none
    ]
)


class Effect(StrEnum):
    """What a broker does because of it, the gravest first."""

    STARTUP_ABORTS = "startup_aborts"
    """The broker does not start, or halts at once."""
    LOG_DIR_OFFLINE = "log_dir_offline"
    """The broker goes on without this disk."""
    DELETED = "deleted"
    """Data is deleted for ever, within about a minute."""
    RENAMED_TO_STRAY = "renamed_to_stray"
    """A replica is set aside with its data, and replicated anew from elsewhere, if there is an elsewhere."""
    REPLACED = "replaced"
    """A future replica takes the place of the current one, which is then deleted."""
    CREATED_EMPTY = "created_empty"
    """Something is made anew and empty where data was expected."""
    NOT_SERVED = "not_served"
    """Data stays as it is, and the broker does not use it."""
    UNKNOWN = "unknown"
    """It cannot be told from here what the broker would do."""
    NOTE = "note"
    """Worth knowing; nothing is lost."""


ORDER = {effect: number for number, effect in enumerate(Effect)}
"""The gravest effect has the least number."""


@dataclass(frozen=True, slots=True)
class FindingPlace:
    """What a finding is about; everything None: the broker as a whole."""

    log_dir: str | None = None
    name: str | None = None
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, and what a broker does because of it."""

    effect: Effect
    rule: str
    """A name in :data:`reconciler.preflight.rules.RULES`."""
    problem: str
    """What was found and what follows from it; no full stop."""
    place: FindingPlace = FindingPlace()
    source: str = ""
    """Empty: the rule's own."""
    replicas: int = 0
    only_in_sync: bool = False

    @property
    def order(self) -> tuple[int, str, str, str, int]:
        """By which findings are sorted: the gravest first, those of one rule together."""
        place = self.place
        return ORDER[self.effect], self.rule, place.log_dir or "", place.name or "", place.partition or 0
