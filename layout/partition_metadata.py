"""``partition.metadata``: the topic ID of the replica in whose partition dir the file lies.

Three forms are read (KIP516-2)::

    shipped      version: 0            what Kafka 2.8 and later write: 43 bytes, no final line end
                 topic_id: UXyU9i5ARn6W00ON2taeWA
    key/value    schema_version: 0     the proposal's four fields, one line each, in any order
                 id: UXyU9i5ARn6W00ON2taeWA
                 name: orders
                 partition: 3
    JSON         {"schema_version": 0, "id": "UXyU9i5ARn6W00ON2taeWA", "name": "orders", "partition": 3}

How the form is recognised: the shipped rule always goes first, because a broker looks at positions and not at keys; a
file that it accepts keeps the version and the topic ID that a broker reads there. Only a file that it refuses can be
JSON (first byte ``{``) or key/value in an unusual order (all four keys present). An accepted file that also has all
four fields, with the same version and topic ID, is key/value, and gains the name and the partition. Only the proposal's
own spellings of the four keys count; ``version`` and ``topic_id`` belong to the shipped form.

Every result and every error says what a real broker does with the bytes. Source: FACTS §2.1.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from layout import json_text
from layout.errors import BrokerEffect, DamagedFileError, InvalidIdError, NumberFormatError, excerpt
from layout.ids import TopicId
from layout.java_text import java_lines, java_split, parse_java_int

FILE_NAME: Final = "partition.metadata"
SCHEMA_VERSION: Final = 0
"""The version that :func:`encode` and :func:`encode_json` write."""

_EXACT = re.compile(rb"version: 0\ntopic_id: ([A-Za-z0-9_-]{22})")
_SEPARATOR = re.compile(r":\s+", re.ASCII)
_FIELDS: Final = ("schema_version", "id", "name", "partition")


class EmptyFileError(DamagedFileError):
    """Zero bytes: the usual trace of a crash between creating the file and writing it."""


class ZeroTopicIdError(DamagedFileError):
    """The ID that means *no ID*, which no broker writes."""


class Form(StrEnum):
    """The form in which a file was written."""

    SHIPPED = "shipped"
    KEY_VALUE = "key/value"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """The content of one file.

    Attributes:
        version: int32, not negative; releases after 3.6 accept any.
        topic_id: never the zero ID.
        topic: full topic name; None in the shipped form, which does not hold it.
        partition: None in the shipped form.
        form: of the file.
        effect: what a real broker of the 3.7+ line does when it reads these bytes at start.
    """

    version: int
    topic_id: TopicId
    topic: str | None = None
    partition: int | None = None
    form: Form = Form.SHIPPED
    effect: BrokerEffect = BrokerEffect.NONE


def fast_topic_id(data: bytes) -> bytes | None:
    """Read the 16 bytes of the topic ID when ``data`` is exactly as Kafka writes it; None: use :func:`parse`.

    A scan reads 100,000 of these files; this fast path builds no text, lines and objects for each.
    """
    exact = _EXACT.fullmatch(data)
    if exact is None:
        return None
    raw = base64.urlsafe_b64decode(exact[1] + b"==")
    return raw if any(raw) else None


def parse(data: bytes) -> PartitionMetadata:
    """Read a file in any of the three forms; the module's docstring says how the form is recognised.

    Raises:
        EmptyFileError: zero bytes.
        ZeroTopicIdError: the topic ID is the zero ID.
        DamagedFileError: no form fits.
    """
    raw = fast_topic_id(data)
    if raw is not None:
        return PartitionMetadata(0, TopicId(raw))
    try:
        shipped = parse_shipped(data)
    except DamagedFileError as refusal:
        if data.startswith(b"{"):
            return _from_fields(json_text.parse_object(data, FILE_NAME, refusal.effect), Form.JSON, refusal.effect)
        fields = _key_value_fields(data)
        if fields is None:
            raise
        return _from_key_value(fields, refusal.effect)
    return _with_name_and_partition(shipped, _key_value_fields(data))


def parse_shipped(data: bytes) -> PartitionMetadata:
    """Read the bytes exactly as a broker of the 3.7+ line does.

    Two lines count and the rest is ignored; each is split at ``:`` and white space and must give two parts; the keys
    are not checked. There is one difference, and only beyond the first 8 KiB: bytes that are not UTF-8 are refused
    wherever they stand, while a broker may not read so far.

    Raises:
        EmptyFileError: zero bytes (startup aborts).
        ZeroTopicIdError: the zero ID (the log dir goes offline).
        DamagedFileError: a malformed line or bytes that are not UTF-8 (the log dir goes offline); a second line
            missing or a topic ID that does not parse (startup aborts).
    """
    if not data:
        raise EmptyFileError(FILE_NAME, "the file is empty", BrokerEffect.STARTUP_ABORTS)
    try:
        lines = java_lines(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 at byte {error.start}"
        raise DamagedFileError(FILE_NAME, problem, BrokerEffect.LOG_DIR_OFFLINE) from error
    version_text = _second_part(lines[0], 1)
    try:
        version = parse_java_int(version_text)
    except NumberFormatError as error:
        raise DamagedFileError(FILE_NAME, f"version: {error}", BrokerEffect.LOG_DIR_OFFLINE) from error
    if version < 0:
        raise DamagedFileError(FILE_NAME, f"version {version} is negative", BrokerEffect.LOG_DIR_OFFLINE)
    if len(lines) < 2:
        raise DamagedFileError(FILE_NAME, "the line with the topic ID is missing", BrokerEffect.STARTUP_ABORTS)
    id_text = _second_part(lines[1], 2)
    try:
        topic_id = TopicId.parse(id_text)
    except InvalidIdError as error:
        raise DamagedFileError(FILE_NAME, f"topic ID: {error}", BrokerEffect.STARTUP_ABORTS) from error
    if topic_id.is_zero:
        raise ZeroTopicIdError(FILE_NAME, "the topic ID is the zero ID", BrokerEffect.LOG_DIR_OFFLINE)
    return PartitionMetadata(version, topic_id)


def accepted_by_36(metadata: PartitionMetadata) -> bool:
    """Whether releases 2.8 to 3.6, which require version 0 exactly, would read this file."""
    return metadata.effect is BrokerEffect.NONE and metadata.version == 0


def contradiction(metadata: PartitionMetadata, topic: str, partition: int) -> str | None:
    """Say in one clause how a file contradicts its directory; None: they agree (KIP516-2).

    Args:
        metadata: the content of the file; a field that its form does not hold contradicts nothing.
        topic: full topic name of the directory.
        partition: of the directory.
    """
    reasons = []
    if metadata.topic is not None and metadata.topic != topic:
        reasons.append(f"it names topic {metadata.topic!r}, its directory is of {topic!r}")
    if metadata.partition is not None and metadata.partition != partition:
        reasons.append(f"it names partition {metadata.partition}, its directory is of {partition}")
    return "; ".join(reasons) or None


def encode(topic_id: TopicId) -> bytes:
    """Write the shipped form: 43 bytes, for a log dir that a real broker reads.

    Raises:
        InvalidIdError: the zero ID, which every reader refuses.
    """
    _refuse_zero(topic_id)
    return f"version: {SCHEMA_VERSION}\ntopic_id: {topic_id}".encode("ascii")


def encode_json(topic_id: TopicId, topic: str, partition: int) -> bytes:
    """Write the JSON form with all four fields: one line, no final line end, for a log dir that is ours.

    Raises:
        InvalidIdError: the zero ID, which every reader refuses.
    """
    _refuse_zero(topic_id)
    # Written as json.dumps would, which takes three times as long, for each of the replicas that a broker is given.
    version, known_as, name, number = _FIELDS
    values = f'"{version}": {SCHEMA_VERSION}, "{known_as}": "{topic_id}", "{name}": {json.dumps(topic)}'
    return f'{{{values}, "{number}": {partition}}}'.encode("ascii")


def _refuse_zero(topic_id: TopicId) -> None:
    if not isinstance(topic_id, TopicId):
        raise InvalidIdError(f"{topic_id!r:.60} is no topic ID: a TopicId is expected")
    if topic_id.is_zero:
        raise InvalidIdError("the zero ID means that there is none; a replica without an ID has no partition.metadata")


def _second_part(line: str, number: int) -> str:
    parts = java_split(_SEPARATOR, line)
    if len(parts) != 2:
        problem = f"line {number} is {excerpt(line)}, expected a key, ': ' and a value"
        raise DamagedFileError(FILE_NAME, problem, BrokerEffect.LOG_DIR_OFFLINE)
    return parts[1]


def _key_value_fields(data: bytes) -> dict[str, str] | None:
    """Read the proposal's fields in order of appearance; None unless each of the four is there exactly once."""
    try:
        lines = java_lines(data.decode("utf-8"))
    except UnicodeDecodeError:
        return None
    pairs = [parts for parts in (java_split(_SEPARATOR, line) for line in lines) if len(parts) == 2]
    fields = {key: value for key, value in pairs if key in _FIELDS}
    named = [key for key, _ in pairs if key in _FIELDS]
    return fields if sorted(named) == sorted(_FIELDS) else None


def _with_name_and_partition(shipped: PartitionMetadata, fields: dict[str, str] | None) -> PartitionMetadata:
    """Add the name and the partition, unless the proposal's fields are broken or contradict what a broker reads."""
    if fields is None:
        return shipped
    try:
        found = _from_key_value(fields, BrokerEffect.NONE)
    except DamagedFileError:
        return shipped
    agrees = (found.version, found.topic_id) == (shipped.version, shipped.topic_id)
    return found if agrees else shipped


def _from_key_value(fields: dict[str, str], effect: BrokerEffect) -> PartitionMetadata:
    values: dict[str, object] = dict(fields)
    for key in ("schema_version", "partition"):
        with contextlib.suppress(NumberFormatError):
            values[key] = parse_java_int(fields[key])
    return _from_fields(values, Form.KEY_VALUE, effect)


def _from_fields(fields: dict[str, object], form: Form, effect: BrokerEffect) -> PartitionMetadata:
    """Check the proposal's four fields; further ones are ignored, as a broker ignores further lines."""
    reader = json_text.FieldReader(fields)
    version = reader.integer("schema_version", least=0)
    topic_id = reader.id("id", TopicId)
    topic = reader.text("name")
    partition = reader.integer("partition", least=0)
    reader.check(FILE_NAME, effect)
    if topic_id.is_zero:
        raise ZeroTopicIdError(FILE_NAME, "the topic ID is the zero ID", effect)
    return PartitionMetadata(version, topic_id, topic, partition, form, effect)
