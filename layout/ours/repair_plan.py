"""A repair plan: every change that a repair would make, with its evidence, as a file that is reviewed first.

A plan holds no bytes that are written as they stand, so a plan that was tampered with cannot put content of its own on
a disk. An action holds the SHA-256 of the bytes that it expects and of the bytes that it writes; the engine works the
new bytes out from the topic ID or from the old bytes, and does nothing where the sums differ. Paths lead only to files
and directories that a repair may change::

    write_partition_metadata   orders-0/partition.metadata           missing or damaged, and the topic ID is certain
    replace_topic_id           orders-0/partition.metadata           holds another ID, and the operator vouches for it
    rebuild_checkpoint         recovery-point-offset-checkpoint ...  does not parse: its good lines stay
    drop_checkpoint_entries    recovery-point-offset-checkpoint ...  names partitions that have no directory here
    remove_leftover            meta.properties.tmp ...               beside the whole file that it was to replace
    stage_duplicate            orders-0                              another log dir has the better copy

The fingerprint covers everything else in the file. It shows accidental edits; it is no signature. ``reconciler`` makes
plans, ``logstore.repair`` carries them out. Source: DESIGN §6.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from layout import json_text, meta_properties, partition_metadata
from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.errors import DamagedFileError, InvalidIdError
from layout.ids import TopicId
from layout.ours.staged_record import stays_below

SCHEMA_VERSION: Final = 1
"""Raised whenever a field changes its meaning or goes."""

FORMAT: Final = "repair plan"
"""The name of the format in messages; the user chooses the name of the file."""

BROKER_TEMPORARY: Final = ".tmp"
"""Suffix of a file while a broker writes it (FACTS §2)."""

LEFTOVERS: Final = frozenset(f"{name}{BROKER_TEMPORARY}" for name in (meta_properties.FILE_NAME, *OFFSET_CHECKPOINTS))
"""Temporary files that may be removed, because the file that each was to replace can be checked."""


class RepairKind(StrEnum):
    """The kind of an action; the values stand in plans and on the command line."""

    WRITE_PARTITION_METADATA = "write_partition_metadata"
    REPLACE_TOPIC_ID = "replace_topic_id"
    REBUILD_CHECKPOINT = "rebuild_checkpoint"
    DROP_CHECKPOINT_ENTRIES = "drop_checkpoint_entries"
    REMOVE_LEFTOVER = "remove_leftover"
    STAGE_DUPLICATE = "stage_duplicate"


_ENTRY = re.compile(r"\S+ -?[0-9]{1,10}")

TOPIC_ID_REPAIRS = frozenset({RepairKind.WRITE_PARTITION_METADATA, RepairKind.REPLACE_TOPIC_ID})
CHECKPOINT_REPAIRS = frozenset({RepairKind.REBUILD_CHECKPOINT, RepairKind.DROP_CHECKPOINT_ENTRIES})


@dataclass(frozen=True, slots=True)
class PlannedLogDir:
    """A log dir that a plan needs, and the identity that it must have; None where it had none."""

    path: str
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """The copy of a duplicate that stays, and how to recognise it."""

    log_dir: str
    path: str
    """Path of its directory below the log dir."""
    inode: int
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class RepairAction:
    """One change.

    Attributes:
        kind: what it does.
        log_dir: path of one of the plan's log dirs.
        path: of the file below the log dir; of the partition dir where a duplicate is staged.
        evidence: why, and what follows if nothing is done.
        expects: SHA-256 of the file's present bytes, or ``missing``; for a duplicate, of its ``partition.metadata``.
        writes: SHA-256 of the file's new bytes, or ``missing``; a duplicate is staged as it is.
        topic: full topic name, for actions on a replica.
        partition: for actions on a replica.
        topic_id: the ID to write; for a duplicate, the ID in its file.
        inode: of the partition dir.
        drops: checkpoint entries to remove because their partition has no directory, as ``topic partition``.
        lost: lines of a damaged checkpoint that do not parse, as escapes; only for people.
        keeps: the better copy of a duplicate.
    """

    kind: RepairKind
    log_dir: str
    path: str
    evidence: str
    expects: str
    writes: str
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None
    inode: int | None = None
    drops: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    keeps: KeptCopy | None = None

    @property
    def dropped(self) -> frozenset[tuple[str, int]]:
        """The entries of :attr:`drops` as (topic, partition)."""
        pairs = (entry.rpartition(" ") for entry in self.drops)
        return frozenset((topic, int(partition)) for topic, _, partition in pairs)


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A finding that the plan does not repair, and why."""

    log_dir: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """A plan; :func:`parse_repair_plan` checks every rule, and :func:`sealed_repair_plan` adds the fingerprint.

    Attributes:
        created_ms: when it was made, in ms since 1970.
        log_dirs: every log dir that an action needs.
        metadata: where the desired state came from, as text by field; for people, and part of the fingerprint.
        actions: in the order in which they are carried out within each log dir.
        left_alone: findings that the plan does not repair.
        fingerprint: SHA-256 over all other fields.
    """

    created_ms: int
    log_dirs: tuple[PlannedLogDir, ...]
    metadata: tuple[Mapping[str, str], ...] = field(hash=False)
    actions: tuple[RepairAction, ...]
    left_alone: tuple[LeftAlone, ...] = ()
    fingerprint: str = ""


def sealed_repair_plan(plan: RepairPlan) -> RepairPlan:
    """Copy a plan with its fingerprint."""
    return replace(plan, fingerprint=_fingerprint(_fields(plan)))


def encode_repair_plan(plan: RepairPlan) -> bytes:
    """Write a sealed plan: indented JSON in ASCII, one final line end.

    Raises:
        DamagedFileError: the plan breaks a rule, so that :func:`parse_repair_plan` would refuse it.
    """
    fields = {**_fields(plan), "fingerprint": plan.fingerprint}
    written = (json.dumps(fields, indent=2) + "\n").encode("ascii")
    parse_repair_plan(written)
    return written


def is_repair_plan(data: bytes) -> bool:
    """Whether a file is a plan of repairs, by the kinds of its actions; one without actions is none.

    Nothing else is checked: :func:`parse_repair_plan` does that.
    """
    try:
        actions = json_text.parse_object(data, FORMAT).get("actions")
    except DamagedFileError:
        return False
    first = actions[0] if isinstance(actions, list) and actions else None
    return isinstance(first, dict) and first.get("kind") in list(RepairKind)  # a list: it may be no text at all


def parse_repair_plan(data: bytes) -> RepairPlan:
    """Read a plan, and check every rule; unknown fields count in the fingerprint, and are ignored otherwise.

    Raises:
        DamagedFileError: no JSON object, an unknown schema version, another fingerprint, a path that no repair changes,
            or a field that breaks a rule; all reasons at once.
    """
    fields = json_text.parse_object(data, FORMAT)
    reader = json_text.FieldReader(fields)
    if reader.integer("schema_version") != SCHEMA_VERSION:
        reader.note(f"this release reads schema version {SCHEMA_VERSION} only")
    created_ms = reader.integer("created_ms", bits=64, least=0)
    fingerprint = reader.text("fingerprint")
    log_dirs = tuple(map(_log_dir, reader.objects("log_dirs")))
    known = {each.path for each in log_dirs}
    actions = tuple(
        _action(each.values, number, known, reader.reasons) for number, each in enumerate(reader.objects("actions"), 1)
    )
    left = tuple(
        LeftAlone(*_texts(each.values, "log_dir", "path", "reason"))
        for each in reader.objects("left_alone", optional=True)
    )
    metadata = tuple({key: str(value) for key, value in each.values.items()} for each in reader.objects("metadata"))
    reader.reasons += _repeats(log_dirs, actions)
    expected = _fingerprint({key: value for key, value in fields.items() if key != "fingerprint"})
    if fingerprint != expected:
        reader.note(f"its fingerprint is {fingerprint!r:.20}…, and {expected:.16}… belongs to what it says")
    reader.check(FORMAT)
    return RepairPlan(created_ms, log_dirs, metadata, actions, left, fingerprint)


def _fields(plan: RepairPlan) -> dict[str, Any]:
    """The fields of the JSON without the fingerprint; empty fields of an action are left out."""
    return {
        "schema_version": SCHEMA_VERSION,
        "created_ms": plan.created_ms,
        "log_dirs": [asdict(each) for each in plan.log_dirs],
        "metadata": [dict(each) for each in plan.metadata],
        "actions": [
            {key: value for key, value in asdict(each).items() if value is not None and value != ()}
            for each in plan.actions
        ],
        "left_alone": [asdict(each) for each in plan.left_alone],
    }


def _fingerprint(fields: Mapping[str, Any]) -> str:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _texts(fields: Mapping[str, object], *keys: str) -> list[str]:
    return [str(fields.get(key, "")) for key in keys]


def _log_dir(reader: json_text.FieldReader) -> PlannedLogDir:
    path = reader.text("path")
    if not is_absolute(path):
        reader.wrong("path", "an absolute path without '.' or '..'", path)
    return PlannedLogDir(
        path,
        reader.text("cluster_id") if reader.raw("cluster_id") is not None else None,
        reader.integer("node_id") if reader.raw("node_id") is not None else None,
        reader.text("directory_id") if reader.raw("directory_id") is not None else None,
    )


def _action(fields: Mapping[str, object], number: int, known: set[str], reasons: list[str]) -> RepairAction:
    """Read one action, and note every problem under its number."""
    reader = json_text.FieldReader(fields)
    found = [] if fields.get("kind") in list(RepairKind) else [f"kind is {fields.get('kind')!r:.40}"]
    kind = RepairKind.REMOVE_LEFTOVER if found else RepairKind(str(fields["kind"]))
    on_replica = kind in TOPIC_ID_REPAIRS or kind is RepairKind.STAGE_DUPLICATE
    action = RepairAction(
        kind,
        reader.text("log_dir"),
        reader.text("path"),
        reader.text("evidence"),
        reader.text("expects"),
        reader.text("writes"),
        reader.text("topic") if on_replica else None,
        reader.integer("partition", least=0) if on_replica else None,
        _topic_id(fields, kind, found),
        reader.integer("inode", bits=64, least=0) if on_replica else None,
        _lines(fields, "drops", found) if kind in CHECKPOINT_REPAIRS else (),
        _lines(fields, "lost", found) if kind is RepairKind.REBUILD_CHECKPOINT else (),
        _kept(fields, known, found) if kind is RepairKind.STAGE_DUPLICATE else None,
    )
    found += reader.reasons
    if action.log_dir not in known:
        found.append(f"its log dir {action.log_dir!r:.60} is none of the plan's")
    if not _is_place(kind, action.path):
        found.append(f"{action.path!r:.60} is no place for {kind}")
    if not all(is_sum(each) for each in (action.expects, action.writes)):
        found.append(f"expects and writes are SHA-256 or {MISSING!r}")
    for entry in action.drops:
        if not _ENTRY.fullmatch(entry):
            found.append(f"drops {entry!r:.60}, expected a topic and a partition")
            action = replace(action, drops=())
    reasons += [f"action {number}: {reason}" for reason in found]
    return action


def _topic_id(fields: Mapping[str, object], kind: RepairKind, found: list[str]) -> str | None:
    value = fields.get("topic_id")
    if value is None and kind not in TOPIC_ID_REPAIRS:
        return None
    try:
        if not isinstance(value, str) or TopicId.parse(value).is_zero:
            found.append(f"topic_id is {value!r:.40}, expected a topic ID")
            return None
    except InvalidIdError as error:
        found.append(f"topic_id: {error}")
    return str(value)


def _lines(fields: Mapping[str, object], key: str, found: list[str]) -> tuple[str, ...]:
    value = fields.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        found.append(f"{key}: expected a list of texts")
        return ()
    return tuple(value)


def _kept(fields: Mapping[str, object], known: set[str], found: list[str]) -> KeptCopy | None:
    value = fields.get("keeps")
    if not isinstance(value, dict):
        found.append("keeps: expected an object")
        return None
    log_dir, path = _texts(value, "log_dir", "path")
    inode, topic_id = value.get("inode"), value.get("topic_id")
    if log_dir not in known or not stays_below(path) or not json_text.is_int(inode, 64):
        found.append(f"keeps {log_dir!r:.60} {path!r:.60}, which is no replica in one of the plan's log dirs")
        return None
    return KeptCopy(log_dir, path, inode, None if topic_id is None else str(topic_id))


def _is_place(kind: RepairKind, path: str) -> bool:
    """Whether an action of a kind may change a path below a log dir."""
    folder, _, name = path.rpartition("/")
    if kind in TOPIC_ID_REPAIRS:
        return bool(folder) and stays_below(path) and name == partition_metadata.FILE_NAME
    if kind in CHECKPOINT_REPAIRS:
        return path in OFFSET_CHECKPOINTS
    return path in LEFTOVERS if kind is RepairKind.REMOVE_LEFTOVER else stays_below(path)


def _repeats(log_dirs: Sequence[PlannedLogDir], actions: Sequence[RepairAction]) -> list[str]:
    """Give a reason for each log dir, and each path in one, that is named more than once."""
    places = Counter([(each.path, ".") for each in log_dirs] + [(each.log_dir, each.path) for each in actions])
    return [f"{log_dir!r} {path!r} is named twice" for (log_dir, path), times in places.items() if times > 1]


MISSING: Final = "missing"
"""Stands for the SHA-256 of a file that is not there."""

_SUM = re.compile(r"[0-9a-f]{64}")


def sum_of(data: bytes | None) -> str:
    """Give the SHA-256 of a file's bytes in hex, or :data:`MISSING` for no file."""
    return MISSING if data is None else hashlib.sha256(data).hexdigest()


def is_sum(text: str) -> bool:
    """Whether a text can come from :func:`sum_of`."""
    return text == MISSING or _SUM.fullmatch(text) is not None


def is_absolute(path: str) -> bool:
    """Whether a path is absolute and has no component ``.`` or ``..``."""
    return path.startswith("/") and stays_below(path[1:])
