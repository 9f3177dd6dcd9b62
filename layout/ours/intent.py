"""``.logstore_intent``: what a change of many steps is about to do, so that a crash at any step can be finished.

One JSON object: the name of the change, a sentence for people, the log dirs that take part, and every step as a list of
a verb, the number of its log dir, and what it is about::

    {"schema_version": 1, "id": "<32 hex>", "operation": "move-topic", "sentence": "move topic orders to org:orders",
     "log_dirs": ["s33AdXtkR8Gf_xRO-R_dpA"],
     "steps": [["rename", 0, "orders-0", "org/orders-0"], ["rename-entries", 0, "orders", "org:orders"]]}

Steps are idempotent and each has an inverse, so a change can be carried out, carried out again from any state in the
middle, or undone. Doing them belongs to ``logstore.journal.steps``, writing and finding the file to
``logstore.journal.journal``. A log dir is named by its directory ID, or by its path where it has none. Source: DESIGN
§5; KIP37-3, KIP516-12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from layout import json_text
from layout.errors import DamagedFileError, InvalidIdError
from layout.ids import TopicId
from layout.ours.staged_record import stays_below

FORMAT: Final = "intent"
SCHEMA_VERSION: Final = 1
"""Raised whenever a field or a step changes its meaning or goes."""

_ID = re.compile(r"[0-9a-f]{32}")


class MakeDirectory(NamedTuple):
    """Make a directory, one level below one that is there; ``tier``: with the marker file of a tier in it."""

    at: int
    path: str
    tier: bool


class RemoveDirectory(NamedTuple):
    """Remove a directory, with its marker file if it is a tier, unless something else lies in it."""

    at: int
    path: str
    tier: bool


class Rename(NamedTuple):
    """Give a directory another path, in a directory that is there; nothing is ever replaced."""

    at: int
    path: str
    new_path: str


class Rewrite(NamedTuple):
    """Replace a small file's bytes; as text, in which bytes that are not UTF-8 are surrogates."""

    at: int
    path: str
    old: str
    new: str


class RenameEntries(NamedTuple):
    """Give the entries of a topic in the offset checkpoints another topic's name; both are full names."""

    at: int
    topic: str
    new_topic: str


class Stage(NamedTuple):
    """Stage a live replica, with this record; ``topic_id`` is empty where it has none, times in ms since 1970."""

    at: int
    path: str
    topic: str
    partition: int
    topic_id: str
    verdict: str
    evidence: str
    staged_ms: int
    due_ms: int


class Unstage(NamedTuple):
    """Bring back what a :class:`Stage` of the same fields has staged."""

    at: int
    path: str
    topic: str
    partition: int
    topic_id: str
    verdict: str
    evidence: str
    staged_ms: int
    due_ms: int


IntentStep: TypeAlias = MakeDirectory | RemoveDirectory | Rename | Rewrite | RenameEntries | Stage | Unstage

VERBS: Final[dict[str, type[IntentStep]]] = {
    "make-directory": MakeDirectory,
    "remove-directory": RemoveDirectory,
    "rename": Rename,
    "rewrite": Rewrite,
    "rename-entries": RenameEntries,
    "stage": Stage,
    "unstage": Unstage,
}
_VERB_OF = {kind: verb for verb, kind in VERBS.items()}
_TYPES: dict[type[IntentStep], tuple[type, ...]] = {
    MakeDirectory: (int, str, bool),
    RemoveDirectory: (int, str, bool),
    Rename: (int, str, str),
    Rewrite: (int, str, str, str),
    RenameEntries: (int, str, str),
    Stage: (int, str, str, int, str, str, str, int, int),
    Unstage: (int, str, str, int, str, str, str, int, int),
}
"""What stands in each field; a bool is no int here."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A change of many steps.

    Attributes:
        id: 32 lower-case hexadecimal digits, which tell one change from another.
        operation: its name: ``create-namespace``, ``convert`` ...
        sentence: what it does, for people, without a full stop: ``create namespace org:apache``.
        log_dirs: those that take part; the first one's file decides whether the change is under way.
        steps: in the order in which they are done; those of two log dirs do not depend on each other.
    """

    id: str
    operation: str
    sentence: str
    log_dirs: tuple[str, ...]
    steps: tuple[IntentStep, ...]

    def of(self, at: int) -> tuple[IntentStep, ...]:
        """The steps of one log dir, by its number."""
        return tuple(step for step in self.steps if step.at == at)

    def only(self, numbers: Iterable[int]) -> Intent:
        """The same change with the steps of some log dirs alone."""
        kept = frozenset(numbers)
        return replace(self, steps=tuple(step for step in self.steps if step.at in kept))


def inverse_step(step: IntentStep) -> IntentStep:
    """The step that undoes this one."""
    match step:
        case MakeDirectory():
            return RemoveDirectory(*step)
        case RemoveDirectory():
            return MakeDirectory(*step)
        case Rename():
            return Rename(step.at, step.new_path, step.path)
        case Rewrite():
            return Rewrite(step.at, step.path, step.new, step.old)
        case RenameEntries():
            return RenameEntries(step.at, step.new_topic, step.topic)
        case Stage():
            return Unstage(*step)
        case Unstage():
            return Stage(*step)


def inverse_steps(steps: Iterable[IntentStep]) -> list[IntentStep]:
    """The steps that undo a row of steps, in their order."""
    return [inverse_step(step) for step in reversed(list(steps))]


def step_text(data: bytes) -> str:
    """The bytes of a small file as a step holds them."""
    return data.decode("utf-8", "surrogateescape")


def step_bytes(text: str) -> bytes:
    """The bytes that :func:`step_text` was given."""
    return text.encode("utf-8", "surrogateescape")


def encode_intent(intent: Intent) -> bytes:
    """Write the file: one line of ASCII."""
    fields = {
        "schema_version": SCHEMA_VERSION,
        "id": intent.id,
        "operation": intent.operation,
        "sentence": intent.sentence,
        "log_dirs": intent.log_dirs,
        "steps": [(_VERB_OF[type(step)], *step) for step in intent.steps],
    }
    return (json.dumps(fields, separators=(",", ":")) + "\n").encode("ascii")


def parse_intent(data: bytes) -> Intent:
    """Read the file, and hold every step to its form.

    Raises:
        DamagedFileError: anything in it that :func:`encode` does not write.
    """
    fields = json_text.parse_object(data, FORMAT)
    reader = json_text.FieldReader(fields, FORMAT)
    if reader.integer("schema_version", 32) != SCHEMA_VERSION:
        reader.note(f"this release reads schema version {SCHEMA_VERSION} only")
    id_, operation, sentence = (reader.text(name) for name in ("id", "operation", "sentence"))
    if not _ID.fullmatch(id_):
        reader.note("id: 32 digits of [0-9a-f] are expected")
    log_dirs, steps = fields.get("log_dirs"), fields.get("steps")
    if not isinstance(log_dirs, list) or not log_dirs or not all(isinstance(each, str) and each for each in log_dirs):
        reader.note("log_dirs: a list of directory IDs or paths is expected")
    if not isinstance(steps, list):
        reader.note("steps: a list is expected")
    reader.check()
    assert isinstance(log_dirs, list)
    assert isinstance(steps, list)
    return Intent(id_, operation, sentence, tuple(log_dirs), tuple(_step(each, len(log_dirs)) for each in steps))


def _step(given: object, log_dirs: int) -> IntentStep:
    """One step, once its verb, its fields and its paths are what they should be."""
    if isinstance(given, list) and given:
        verb, *values = given
        kind = VERBS.get(verb) if isinstance(verb, str) else None
        if (
            kind is not None
            and tuple(map(type, values)) == _TYPES[kind]
            and 0 <= values[0] < log_dirs
            and all(stays_below(path) for path in _paths(kind, values))
            and (kind not in (Stage, Unstage) or _is_topic_id(values[4]))
        ):
            return kind(*values)
    raise DamagedFileError(FORMAT, f"{given!r:.80} is no step")


def _paths(kind: type[IntentStep], values: list[str]) -> list[str]:
    return [values[1], values[2]] if kind is Rename else [] if kind is RenameEntries else [values[1]]


def _is_topic_id(text: str) -> bool:
    """Whether this is a topic ID, or empty for none."""
    try:
        return not text or bool(TopicId.parse(text))
    except InvalidIdError:
        return False
