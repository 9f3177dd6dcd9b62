"""The file of a plan: JSON with one action to a line, so that a person can take out a line and keep a valid plan. Pure.

The head (time, machine, log dirs, metadata) has a fingerprint. Every action has one too, over the fingerprint of the
head and its own fields. So a line may be taken out, while a changed line, or a line of another plan, is refused. A sum
over the whole list would forbid the one edit that is allowed. Fingerprints find mistakes in editing; they are no
signature: so every field is checked as if somebody had made them fit. A name leads only to what an action of its kind
may change, and bytes that are written are named by their sum alone. Totals, counts and what is left alone are for human
readers, and are not checked.

After the last line was taken out, a comma stands before the closing bracket. JSON forbids that, and this reader accepts
it. Source: DESIGN §6.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from layout import json_text
from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.errors import DamagedFileError, InvalidIdError
from layout.ids import TopicId
from layout.ours import LEFTOVERS, MISSING, is_absolute, is_repairable, is_sum, stays_below
from reconciler.errors import RefusedError
from reconciler.plan.plan import (
    CHECKPOINT_REPAIRS,
    FILE_REPAIRS,
    REPAIRS,
    TOPIC_ID_REPAIRS,
    Action,
    ActionKind,
    KeptCopy,
    Plan,
    PlannedLogDir,
)
from reconciler.text import moment

SCHEMA_VERSION: Final = 1
"""Goes up when a field changes its meaning or is removed."""

FORMAT: Final = "plan"
"""The name of the file in messages; the user chooses the real one."""

_SHOWN = 20
_LAST_COMMA = re.compile(rb",(\s*\n\s*\])")
"""The pattern needs a line end, which JSON escapes within a value: so it never matches inside a value."""

_NOT_IN_HEAD = frozenset({"fingerprint", "created", "totals", "counts", "left_alone", "actions"})
"""Fields that the fingerprint of the head does not cover."""

_ENTRY = re.compile(r"\S+ -?[0-9]{1,10}")
_ON_A_FILE = CHECKPOINT_REPAIRS | {ActionKind.REMOVE_LEFTOVER}
"""Kinds of actions on a file of the log dir itself, which are about no replica."""


def sealed(plan: Plan) -> Plan:
    """Return the plan with the fingerprints of its head and of its actions."""
    head = _sum(_head(plan))
    return replace(
        plan,
        fingerprint=head,
        actions=tuple(replace(action, fingerprint=_of_action(head, action_fields(action))) for action in plan.actions),
    )


def encode_plan(plan: Plan) -> bytes:
    """Encode a sealed plan in ASCII, so that names that are not UTF-8 survive as escapes.

    Raises:
        RefusedError: it has a repair that breaks a rule, so that :func:`parse_plan` would refuse it.
    """
    lines = [json.dumps(key) + ": " + json.dumps(value) for key, value in _head(plan).items()]
    lines += [
        f'"fingerprint": {json.dumps(plan.fingerprint)}',
        f'"created": {json.dumps(moment(plan.created_ms))}',
        f'"totals": {json.dumps(plan.totals())}',
        f'"counts": {json.dumps(dict(plan.counts))}',
        f'"left_alone": {_listed([asdict(each) for each in plan.left_alone])}',
        f'"actions": {_listed([{**action_fields(each), "fingerprint": each.fingerprint} for each in plan.actions])}',
    ]
    written = ("{\n  " + ",\n  ".join(lines) + "\n}\n").encode("ascii")
    if plan.repairs_only:
        parse_plan(written)
    return written


def parse_plan(data: bytes, location: str = "the plan") -> Plan:
    """Parse a plan, and check it by every rule.

    ``location`` is its path, for messages.

    Raises:
        RefusedError: it is no plan, breaks a rule, or was changed in another way than by taking actions out; the
            message has all reasons.
    """
    try:
        reader = json_text.FieldReader.of_file(_LAST_COMMA.sub(rb"\1", data), FORMAT, SCHEMA_VERSION)
    except DamagedFileError as error:
        raise RefusedError(f"{location}: {error}; make a new plan") from error
    fields = reader.values
    created_ms, delay_ms = reader.integer("created_ms", bits=64, least=0), reader.integer("delay_ms", bits=64, least=0)
    host, user, fingerprint = reader.text("host"), reader.text("user"), reader.text("fingerprint")
    reasons = reader.reasons
    log_dirs = tuple(map(_log_dir, reader.objects("log_dirs")))
    metadata = tuple({key: str(value) for key, value in each.values.items()} for each in reader.objects("metadata"))
    if fingerprint != _sum({key: value for key, value in fields.items() if key not in _NOT_IN_HEAD}):
        reasons.append("its head does not have the fingerprint that stands there, so something in it was changed")
    actions = []
    for number, each in enumerate(reader.objects("actions"), start=1):
        found = _problems(each.values, fingerprint, {log_dir.path for log_dir in log_dirs}, created_ms)
        reasons += [f"action {number}: {reason}" for reason in found]
        if not found:
            actions.append(_action(each.values))
    reasons += _repeats(log_dirs, actions)
    if len(reasons) > _SHOWN:
        reasons[_SHOWN:] = [f"and {len(reasons) - _SHOWN} more"]
    try:
        reader.check(FORMAT)
    except DamagedFileError as error:
        raise RefusedError(
            f"{location}: {error}; lines of actions may be taken out, and nothing else may be changed: make a new plan"
        ) from error
    policy = fields.get("policy")
    gates = {key: str(value) for key, value in policy.items()} if isinstance(policy, dict) else {}
    return Plan(created_ms, host, user, delay_ms, gates, log_dirs, metadata, tuple(actions), fingerprint=fingerprint)


def _head(plan: Plan) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "created_ms": plan.created_ms,
        "host": plan.host,
        "user": plan.user,
        "delay_ms": plan.delay_ms,
        "policy": dict(plan.policy),
        "log_dirs": [asdict(each) for each in plan.log_dirs],
        "metadata": [dict(each) for each in plan.metadata],
    }


def action_fields(action: Action) -> dict[str, Any]:
    """Return the fields of an action as JSON has them, without its fingerprint; what is None or empty is left out."""
    fields = {key: value for key, value in asdict(action).items() if value is not None and value != ()}
    del fields["fingerprint"]
    if action.kind in _ON_A_FILE:
        del fields["topic"], fields["partition"]
    return fields


def _listed(objects: Sequence[Mapping[str, Any]]) -> str:
    if not objects:
        return "[]"
    return "[\n    " + ",\n    ".join(json.dumps(each) for each in objects) + "\n  ]"


def _sum(fields: Mapping[str, Any]) -> str:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _of_action(head: str, fields: Mapping[str, Any]) -> str:
    return _sum({"head": head, **fields})


def _log_dir(reader: json_text.FieldReader) -> PlannedLogDir:
    path = reader.text("path")
    if not is_absolute(path):
        reader.wrong("path", "an absolute path without '.' or '..'", path)
    return PlannedLogDir(
        path,
        reader.text("cluster_id") if reader.raw("cluster_id") is not None else None,
        reader.integer("node_id") if reader.raw("node_id") is not None else None,
        reader.text("directory_id") if reader.raw("directory_id") is not None else None,
        reader.text("staging") if reader.raw("staging") is not None else None,
    )


def _repeats(log_dirs: Sequence[PlannedLogDir], actions: Sequence[Action]) -> list[str]:
    """Give a reason for each log dir, action, and path of a repair that stands there more than once."""
    places = Counter(("a repair" if each.kind in REPAIRS else each.kind, each.log_dir, each.name) for each in actions)
    twice = [f"{kind} of {log_dir}/{name}" for (kind, log_dir, name), times in places.items() if times > 1]
    twice += [path for path, times in Counter(each.path for each in log_dirs).items() if times > 1]
    return [f"{what} stands there twice" for what in twice]


def _problems(fields: Mapping[str, Any], head: str, known: set[str], planned_ms: int) -> list[str]:
    """List the problems of one action, each as a clause."""
    own = {key: value for key, value in fields.items() if key != "fingerprint"}
    found = []
    if fields.get("fingerprint") != _of_action(head, own):
        found.append("it was changed, or comes from another plan: its fingerprint does not fit")
    reader = json_text.FieldReader(fields)
    if fields.get("kind") not in list(ActionKind):  # a list: it may be no text at all
        reader.note(f"kind is {fields.get('kind')!r:.40}")
    kind = ActionKind(fields["kind"]) if not reader.reasons else None
    _read_place(reader, kind, known)
    if kind not in _ON_A_FILE:
        reader.text("topic")
        reader.integer("partition", least=0)
    for key in ("verdict", "why", *(("undo",) if fields.get("undo") is not None else ())):
        reader.text(key)
    least = {"due_ms": planned_ms}
    for key in ("inode", "bytes", "disk_bytes", "modified_ms", "created_ms", "due_ms"):
        if fields.get(key) is not None:
            reader.integer(key, bits=64, least=least.get(key))
    for key in ("topic_id", "wanted_topic_id"):
        if fields.get(key) is not None and not _is_id(fields[key]):
            reader.note(f"{key} is {fields[key]!r:.40}, expected a topic ID")
    if kind in REPAIRS:
        _read_repair(fields, reader, kind, known)
    return [*found, "; ".join(reader.reasons)] if reader.reasons else found


def _read_place(reader: json_text.FieldReader, kind: ActionKind | None, known: set[str]) -> None:
    """Check where an action leads; a problem is noted in the reader."""
    name, log_dir = reader.text("name"), reader.text("log_dir")
    if log_dir not in known:
        reader.note(f"its log dir {log_dir!r:.60} is none of the plan's")
    if kind is not None and kind in REPAIRS:
        if not _is_place(kind, name):
            reader.note(f"{name!r:.60} is no place for {kind}")
    elif not stays_below(name.removeprefix("../")):
        reader.note(f"name is {name!r:.60}, expected a path below the log dir or beside it")


def _is_place(kind: ActionKind, name: str) -> bool:
    """Whether a repair may change a path below a log dir."""
    if kind in TOPIC_ID_REPAIRS:
        return "/" in name and is_repairable(name)
    if kind in CHECKPOINT_REPAIRS:
        return name in OFFSET_CHECKPOINTS
    return name in LEFTOVERS if kind is ActionKind.REMOVE_LEFTOVER else stays_below(name)


def _read_repair(fields: Mapping[str, Any], reader: json_text.FieldReader, kind: ActionKind, known: set[str]) -> None:
    """Check the fields of a repair; a problem is noted in the reader."""
    sums = [fields.get(key) for key in ("expects", *(("writes",) if kind in FILE_REPAIRS else ()))]
    if not all(isinstance(each, str) and is_sum(each) for each in sums):
        reader.note(f"expects and writes are SHA-256 or {MISSING!r}")
    if kind not in _ON_A_FILE:
        reader.integer("inode", bits=64, least=0)
    if kind in TOPIC_ID_REPAIRS and not (
        _is_id(wanted := fields.get("wanted_topic_id")) and wanted != str(TopicId.ZERO)
    ):
        reader.note("wanted_topic_id: expected a topic ID")
    if kind in CHECKPOINT_REPAIRS:
        for entry in _lines(fields, "drops", reader):
            if not _ENTRY.fullmatch(entry):
                reader.note(f"drops {entry!r:.60}, expected a topic and a partition")
        _lines(fields, "lost", reader)
    if kind is ActionKind.STAGE_DUPLICATE:
        _read_kept(fields.get("keeps"), reader, known)


def _lines(fields: Mapping[str, Any], key: str, reader: json_text.FieldReader) -> list[str]:
    value = fields.get(key, [])
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    reader.note(f"{key}: expected a list of texts")
    return []


def _read_kept(value: object, reader: json_text.FieldReader, known: set[str]) -> None:
    """Check the copy of a duplicate that stays; a problem is noted in the reader."""
    if not isinstance(value, dict):
        reader.note("keeps: expected an object")
        return
    log_dir, name, inode, topic_id = (value.get(key) for key in ("log_dir", "name", "inode", "topic_id"))
    is_there = log_dir in list(known) and isinstance(name, str) and stays_below(name)
    if not (is_there and json_text.is_int(inode, 64) and (topic_id is None or _is_id(topic_id))):
        reader.note(f"keeps {log_dir!r:.60} {name!r:.60}, which is no replica in one of the plan's log dirs")


def _is_id(value: object) -> bool:
    try:
        return isinstance(value, str) and str(TopicId.parse(value)) == value
    except InvalidIdError:
        return False


def _action(fields: Mapping[str, Any]) -> Action:
    """Make an action of checked fields; fields without a meaning for its kind are covered by the fingerprint only."""
    kind = ActionKind(fields["kind"])
    known = {key: fields.get(key) for key in _PLAIN_FIELDS}
    of_file = {"topic": "", "partition": -1} if kind in _ON_A_FILE else {}
    repair: dict[str, Any] = {key: fields.get(key) for key in ("expects", "writes")} if kind in REPAIRS else {}
    if kind in CHECKPOINT_REPAIRS:
        repair |= {key: tuple(fields.get(key, ())) for key in ("drops", "lost")}
    if kind is ActionKind.STAGE_DUPLICATE:
        repair["keeps"] = KeptCopy(*(fields["keeps"].get(key) for key in KeptCopy.__dataclass_fields__))
    return Action(**{**known, "kind": kind, **of_file, **repair})


_PLAIN_FIELDS = tuple(Action.__dataclass_fields__.keys() - {"expects", "writes", "drops", "lost", "keeps"})
"""Fields of actions of every kind."""
