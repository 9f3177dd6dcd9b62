"""``.logstore_intent``: the steps of a change, so that after a crash at any step the change can be finished.

One JSON object: the name of the change, a sentence for people, the log dirs that take part, and every step as a list of
a verb, the number of its log dir, and its arguments::

    {"schema_version": 1, "id": "<32 hex>", "operation": "move-topic", "sentence": "move topic orders to org:orders",
     "log_dirs": ["s33AdXtkR8Gf_xRO-R_dpA"],
     "steps": [["rename", 0, "orders-0", "org/orders-0"], ["rename-entries", 0, "orders", "org:orders"]]}

Steps are idempotent and each has an inverse, so a change can be carried out, carried out again from any state in the
middle, or undone; ``logstore.journal`` does that. A log dir is named by its directory ID, or by its path where it has
none. Source: DESIGN §5; KIP37-3, KIP516-12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias, get_type_hints

from layout import json_text
from layout.errors import DamagedFileError, InvalidIdError
from layout.ids import TopicId
from layout.ours.staged_record import stays_below

FORMAT: Final = "intent"
SCHEMA_VERSION: Final = 1
"""Raised whenever a field or a step changes its meaning or goes."""

_ID = re.compile(r"[0-9a-f]{32}")


class MakeDirectory(NamedTuple):
    """Make a directory in an existing one; ``tier``: with the marker file of a tier in it."""

    at: int
    path: str
    tier: bool


class RemoveDirectory(NamedTuple):
    """Remove a directory unless something lies in it; ``tier``: its marker file is removed with it."""

    at: int
    path: str
    tier: bool


class Rename(NamedTuple):
    """Rename a directory to a path in an existing directory; nothing is ever replaced."""

    at: int
    path: str
    new_path: str


class Rewrite(NamedTuple):
    """Replace the bytes of a small file; both are text here (:func:`step_text`)."""

    at: int
    path: str
    old: str
    new: str


class RenameEntries(NamedTuple):
    """Rename the entries of a topic in the offset checkpoints; both are full names."""

    at: int
    topic: str
    new_topic: str


class Stage(NamedTuple):
    """Stage a live replica with this record; ``topic_id`` is empty where it has none, times are in ms since 1970."""

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
    """Restore the replica that a :class:`Stage` with the same fields has staged."""

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
_TYPES = {kind: tuple(get_type_hints(kind).values()) for kind in VERBS.values()}
"""The exact type of each field; a bool is no int here."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A change of many steps.

    Attributes:
        id: 32 lower-case hexadecimal digits, unique to the change.
        operation: name of the change: ``create-namespace``, ``convert`` ...
        sentence: what the change does, for people, without a full stop: ``create namespace org:apache``.
        log_dirs: the log dirs that take part; the file of the first decides whether the change is under way.
        steps: in the order in which they are done; steps of different log dirs do not depend on each other.
        given_up: the change does not take place, whatever the first log dir's file says.
    """

    id: str
    operation: str
    sentence: str
    log_dirs: tuple[str, ...]
    steps: tuple[IntentStep, ...]
    given_up: bool = False

    def of(self, at: int) -> tuple[IntentStep, ...]:
        """Select the steps of one log dir, by its number."""
        return tuple(step for step in self.steps if step.at == at)

    def only(self, numbers: Iterable[int]) -> Intent:
        """Copy the change with only the steps of some log dirs."""
        kept = frozenset(numbers)
        return replace(self, steps=tuple(step for step in self.steps if step.at in kept))


def inverse_step(step: IntentStep) -> IntentStep:
    """Give the step that undoes a step."""
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
    """Give the steps that undo a sequence of steps, in the order in which they must be done."""
    return [inverse_step(step) for step in reversed(list(steps))]


def step_text(data: bytes) -> str:
    """Turn the bytes of a small file into the text of a step; bytes that are not UTF-8 become surrogates."""
    return data.decode("utf-8", "surrogateescape")


def step_bytes(text: str) -> bytes:
    """Turn the text of a step back into bytes; the inverse of :func:`step_text`."""
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
        **({"given_up": True} if intent.given_up else {}),
    }
    return (json.dumps(fields, separators=(",", ":")) + "\n").encode("ascii")


def parse_intent(data: bytes) -> Intent:
    """Read the file, and check every step.

    Raises:
        DamagedFileError: the file holds something that :func:`encode_intent` does not write.
    """
    reader = json_text.FieldReader.of_file(data, FORMAT, SCHEMA_VERSION)
    id_, operation, sentence = (reader.text(name) for name in ("id", "operation", "sentence"))
    if not _ID.fullmatch(id_):
        reader.note("id: 32 digits of [0-9a-f] are expected")
    log_dirs, steps = reader.raw("log_dirs"), reader.raw("steps")
    given_up = reader.boolean("given_up", default=False)
    if not isinstance(log_dirs, list) or not log_dirs or not all(isinstance(each, str) and each for each in log_dirs):
        reader.note("log_dirs: a list of directory IDs or paths is expected")
    if not isinstance(steps, list):
        reader.note("steps: a list is expected")
    reader.check(FORMAT)
    assert isinstance(log_dirs, list)
    assert isinstance(steps, list)
    checked = tuple(_step(each, len(log_dirs)) for each in steps)
    return Intent(id_, operation, sentence, tuple(log_dirs), checked, given_up)


def _step(given: object, log_dirs: int) -> IntentStep:
    """Read one step, and check its verb, its fields and its paths."""
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
    """Whether a text is a topic ID, or empty for none."""
    try:
        return not text or bool(TopicId.parse(text))
    except InvalidIdError:
        return False
