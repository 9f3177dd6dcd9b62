"""``staged.json``: the record inside a staged directory, from which the replica can be restored.

The record of one replica is an object of fields. Replicas that are staged together share one file, which is linked into
each of their directories and costs a fifth of a file for each: ``{"schema_version": 1, "records": {NAME: fields,
...}}``, where NAME is the name of the directory in the staging root.

The record says what the replica was, where it lay, why it was staged, when a purge may delete it, and which checkpoint
entries were removed with it. A staged directory without a valid record is never purged, so reading is strict: every
field is checked, and all reasons come at once. Source: DESIGN §5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from layout import json_text
from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.errors import DamagedFileError, LayoutError
from layout.ids import TopicId
from layout.segment_name import FileKind
from layout.topic import namespace_of

STAGED_RECORD: Final = FileKind.STAGED_RECORD.value
SCHEMA_VERSION: Final = 1
"""Raised whenever a field changes its meaning or goes."""

STAGED_RECORD_LIMIT: Final = 1 << 20
"""Largest file of records that is read, in bytes: topic and evidence are short, and 128 replicas may share a file."""

_SHARED = re.compile(re.escape(STAGED_RECORD) + r"\.[0-9]+\.tmp")

_quoted = json.encoder.encode_basestring_ascii
"""Encodes a text as JSON in ASCII, with its quotes."""

_OFFSET_CHECKPOINTS = frozenset(OFFSET_CHECKPOINTS)
_TEXT, _NUMBER = r'"([^"\\\x00-\x1f]*)"', "(0|[1-9][0-9]*)"
_LINE = re.compile(
    rf'{{"name": {_TEXT}, "namespace": {_TEXT}, "topic_id": {_TEXT}, "partition": {_NUMBER}, "path": {_TEXT}, '
    rf'"verdict": {_TEXT}, "evidence": {_TEXT}, "staged_ms": {_NUMBER}, "due_ms": {_NUMBER}, '
    rf'"checkpoints": (\{{[^{{}}]*\}})}}'
)
"""A record as :func:`encode_records` writes it, where no text needs an escape."""

_HEAD, _TAIL = f'{{"schema_version": {SCHEMA_VERSION}, "records": {{'.encode("ascii"), b"\n}}\n"
"""Around the records of replicas that were staged together, one line each."""

_BETWEEN = b'": {'
"""Between a name and its record. In a name, a quote has a backslash before it, so the first one ends the name."""


@dataclass(frozen=True, slots=True)
class StagedRecord:
    """Everything that a restore or a purge needs to know of one staged replica.

    Attributes:
        topic: full topic name, namespace included.
        partition: int32, not negative.
        topic_id: the zero ID for a replica that had none.
        path: its former path below its log dir, with ``/`` between the parts.
        verdict: why it was staged, as the comparison calls it.
        evidence: the sentence that goes with the verdict.
        staged_ms: when it was staged, in ms since 1970.
        due_ms: when a purge may delete it, in ms since 1970; not before ``staged_ms``.
        checkpoints: the partition's offset (int64) in each offset checkpoint, by file name.
    """

    topic: str
    partition: int
    topic_id: TopicId
    path: str
    verdict: str
    evidence: str
    staged_ms: int
    due_ms: int
    checkpoints: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def namespace(self) -> str:
        """The namespace of the topic; empty for the default namespace."""
        return namespace_of(self.topic)

    def is_due(self, now_ms: int) -> bool:
        """Whether a purge may delete the replica now; never before the time of staging, if a clock goes backwards."""
        return self.due_ms <= now_ms


def shared_records_name(number: int) -> str:
    """The name of a file of several records in the staging root, until each replica has its link to it."""
    return f"{STAGED_RECORD}.{number}.tmp"


def is_shared_records(name: str) -> bool:
    """Whether a name in a staging root comes from :func:`shared_records_name`."""
    return _SHARED.fullmatch(name) is not None


def check_record(record: StagedRecord) -> None:
    """Check a record by the same rules as its reader.

    Raises:
        DamagedFileError: the record breaks a rule; all reasons at once.
    """
    if not _is_surely_valid(record):
        _record(json_text.FieldReader(_fields(record)))


def _is_surely_valid(record: StagedRecord) -> bool:
    """Check a record by the fast path: True: no rule is broken; False: use the slow path."""
    texts = (record.topic, record.path, record.verdict, record.evidence)
    return (
        "" not in texts
        and "".join(texts).isascii()
        and 0 <= record.partition < 1 << 31
        and 0 <= record.staged_ms <= record.due_ms < 1 << 63
        and (not record.checkpoints or _are_offsets(record.checkpoints))
        and stays_below(record.path)
    )


def _are_offsets(checkpoints: Mapping[str, int]) -> bool:
    return not checkpoints.keys() - _OFFSET_CHECKPOINTS and all(
        json_text.is_int(offset, 64) for offset in checkpoints.values()
    )


def encode_record(record: StagedRecord) -> bytes:
    """Write the record of one replica: indented JSON in ASCII, so that names that are not UTF-8 survive as escapes.

    Raises:
        DamagedFileError: the record breaks a rule, so that :func:`parse_record` would refuse it.
    """
    check_record(record)
    return _written({"schema_version": SCHEMA_VERSION, **_fields(record)})


def encode_records(records: Mapping[str, StagedRecord]) -> bytes:
    """Write the records of replicas that are staged together, by the name that each directory gets.

    Each record must have passed :func:`check_record`, which is not called again here.
    """
    # One line for each record: Python's encoder takes ten times as long for indented JSON.
    lines = ",\n".join(f"{_quoted(name)}: {_line_of(record)}" for name, record in records.items())
    return b"".join((_HEAD, b"\n", lines.encode("ascii"), _TAIL))


def _line_of(record: StagedRecord) -> str:
    """Write the fields on one line, as ``json.dumps`` does, in a third of its time."""
    return (
        f'{{"name": {_quoted(record.topic)}, "namespace": {_quoted(record.namespace)}, '
        f'"topic_id": "{record.topic_id}", "partition": {record.partition}, "path": {_quoted(record.path)}, '
        f'"verdict": {_quoted(record.verdict)}, "evidence": {_quoted(record.evidence)}, '
        f'"staged_ms": {record.staged_ms}, "due_ms": {record.due_ms}, "checkpoints": '
        f"{json.dumps(dict(record.checkpoints)) if record.checkpoints else '{}'}}}"
    )


def parse_record(data: bytes, name: str = "") -> StagedRecord:
    """Read the record of one replica from the bytes of its file; see :meth:`RecordFile.record_of`."""
    return RecordFile(data).record_of(name)


class RecordFile:
    """A file of records; each record is parsed when it is asked for.

    Where each record has a line of its own, as :func:`encode_records` writes them, the other records are not parsed.
    """

    __slots__ = ("_data", "_lines")

    def __init__(self, data: bytes) -> None:
        """Take the bytes of the whole file."""
        self._data = data
        self._lines = _lines_of(data)

    def record_of(self, name: str) -> StagedRecord:
        """Parse the record of one directory, and check every rule of :class:`StagedRecord`.

        Args:
            name: of the directory in the staging root; needed where the file holds several records.

        Raises:
            DamagedFileError: as :func:`parse_records`; or the file holds no record of that name.
        """
        line = self._lines.get(_quoted(name).encode("ascii"))
        if line is None:
            return choose(parse_records(self._data), name)
        record = _as_written(line)
        if record is not None:
            return record
        return _record(json_text.FieldReader(json_text.parse_object(line, STAGED_RECORD)))


def _as_written(line: bytes) -> StagedRecord | None:
    """Parse by the fast path a record that :func:`encode_records` would write as this very line; None: any other."""
    try:
        found = _LINE.fullmatch(line.decode("ascii"))
        if found is None:
            return None
        topic, namespace, topic_id, partition, path, verdict, evidence, staged_ms, due_ms, checkpoints = found.groups()
        known = TopicId.parse(topic_id)
        offsets = {} if checkpoints == "{}" else json.loads(checkpoints)
        numbers = int(partition), int(staged_ms), int(due_ms)
    except (ValueError, RecursionError, LayoutError):
        return None
    record = StagedRecord(topic, numbers[0], known, path, verdict, evidence, numbers[1], numbers[2], offsets)
    sound = str(known) == topic_id and record.namespace == namespace and _is_surely_valid(record)
    return record if sound and (not offsets or json.dumps(offsets) == checkpoints) else None


def _lines_of(data: bytes) -> dict[bytes, bytes]:
    """Split a file into the line of each record, by its name as JSON; empty for a file of another form."""
    found: dict[bytes, bytes] = {}
    if data.startswith(_HEAD) and data.endswith(_TAIL):
        for line in data[len(_HEAD) : -len(_TAIL)].split(b"\n")[1:]:
            name, _, fields = line.partition(_BETWEEN)
            key = name + b'"'
            if key in found:
                return {}
            found[key] = b"{" + fields.removesuffix(b",")
    return found


def choose(records: Mapping[str, StagedRecord], name: str) -> StagedRecord:
    """Choose the record of one directory from the result of :func:`parse_records`.

    Raises:
        DamagedFileError: there is no such record.
    """
    record = records.get("") or records.get(name)
    if record is None:
        raise DamagedFileError(STAGED_RECORD, f"it holds {len(records)} records, and none of {name!r:.80}")
    return record


def parse_records(data: bytes) -> dict[str, StagedRecord]:
    """Parse all records of a file, and check every rule of :class:`StagedRecord`; unknown fields are ignored.

    Returns:
        Name of the directory → record; the empty name for the file of a single replica.

    Raises:
        DamagedFileError: no JSON object, an unknown schema version, or a field that breaks a rule; all reasons at once.
    """
    fields = json_text.parse_object(data, STAGED_RECORD)
    reader = json_text.FieldReader(fields)
    if reader.integer("schema_version") != SCHEMA_VERSION:
        reader.note(f"this release reads schema version {SCHEMA_VERSION} only")
    if "records" not in fields:
        return {"": _record(reader)}
    reader.check(STAGED_RECORD)
    shared = fields["records"]
    if not isinstance(shared, dict) or not all(isinstance(each, dict) for each in shared.values()):
        raise DamagedFileError(STAGED_RECORD, "records: expected an object with an object of fields for each directory")
    return {name: _record(json_text.FieldReader(each)) for name, each in shared.items()}


def _fields(record: StagedRecord) -> dict[str, object]:
    return {
        "name": record.topic,
        "namespace": record.namespace,
        "topic_id": str(record.topic_id),
        "partition": record.partition,
        "path": record.path,
        "verdict": record.verdict,
        "evidence": record.evidence,
        "staged_ms": record.staged_ms,
        "due_ms": record.due_ms,
        "checkpoints": dict(record.checkpoints),
    }


def _written(fields: Mapping[str, object]) -> bytes:
    return (json.dumps(fields, indent=2) + "\n").encode("ascii")


def _record(reader: json_text.FieldReader) -> StagedRecord:
    """Make a record of its fields, and check its rules. Raises DamagedFileError with all reasons at once."""
    record = StagedRecord(
        topic=reader.text("name"),
        partition=reader.integer("partition", least=0),
        topic_id=reader.id("topic_id", TopicId),
        path=reader.text("path"),
        verdict=reader.text("verdict"),
        evidence=reader.text("evidence", may_be_empty=True),
        staged_ms=reader.integer("staged_ms", bits=64, least=0),
        due_ms=reader.integer("due_ms", bits=64, least=0),
        checkpoints=checkpoint_offsets(reader),
    )
    if reader.text("namespace", may_be_empty=True) != record.namespace:
        reader.note(f"namespace is {reader.raw('namespace')!r:.60}, the name's is {record.namespace!r:.60}")
    if record.due_ms < record.staged_ms:
        reader.note(f"due_ms {record.due_ms} lies before staged_ms {record.staged_ms}")
    if not stays_below(record.path):
        reader.note(f"path is {record.path!r:.60}, expected a path below the log dir without '.' or '..'")
    reader.check(STAGED_RECORD)
    return record


def checkpoint_offsets(reader: json_text.FieldReader) -> dict[str, int]:
    """Read the field ``checkpoints`` of a record: offset checkpoint → int64; problems are noted in the reader."""
    entries = reader.raw("checkpoints")
    if not isinstance(entries, dict):
        reader.note("checkpoints: expected an object with an offset for each checkpoint file")
        return {}
    for file, offset in entries.items():
        if file not in OFFSET_CHECKPOINTS:
            reader.note(f"checkpoints: {file!r:.60} is no offset checkpoint")
        elif not json_text.is_int(offset, 64):
            reader.note(f"checkpoints: the offset in {file} is {offset!r:.60}, expected an int64")
    return entries


def stays_below(path: str) -> bool:
    """Whether a relative path can only lead to something inside the log dir."""
    return "\0" not in path and not {"", ".", ".."} & set(path.split("/"))
