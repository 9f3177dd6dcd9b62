"""Build and read the names of directories: live, future, delete, stray, staged, internal, or foreign.

::

    live      orders-0                                            topic "-" partition
    delete    orders-0.<32 hex>-delete                            waits for deletion; a long topic is cut to fit
    stray     orders-0.<32 hex>-stray                             not this broker's, since 3.6.1; cut to fit as well
    future    orders-0.<32 hex>-future                            being moved from another disk; never cut
    staged    <topic ID>_0, <topic ID>_0.2                        in a staging directory; .2 is a second copy
    by ID     51/<topic ID in hex, begins with 51>_0              live, under the by-topic-id scheme

Every name is built and read here and nowhere else. Reading never raises: a name of none of these forms is ``foreign``,
with the reason. A topic read from a name is not checked, because a broker does not check it either, and one read from a
delete or stray name may be cut. Names that are not UTF-8 come as Python gives them, with surrogate escapes, and are
read like any other text. ``scheme`` says where the directories stand.
Source: FACTS §1.2, §1.3; DESIGN §5; KIP516-12.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from layout.errors import InvalidNameError, LayoutError
from layout.ids import TopicId
from layout.java_text import parse_java_int
from layout.topic import METADATA_TOPIC, utf16_length

MAX_DIRECTORY_NAME = 255
"""Kafka cuts names to this many UTF-16 units; file systems refuse more than this many bytes."""

MAX_PARTITION = (1 << 31) - 1
"""Partitions are signed 32-bit integers to Kafka."""

REMOTE_LOG_INDEX_CACHE = "remote-log-index-cache"
"""Where tiered storage keeps indexes; a broker's own directory, which its scan passes over since 3.5 (FACTS §1.6)."""

# White space is ASCII's six characters to Java's regular expressions.
_WHITE_SPACE = re.compile(r"\s", re.ASCII)
_UNIQUE = re.compile(r"[0-9a-f]{32}")
_PLAIN = re.compile(r"[a-zA-Z0-9._-]+")
_STAGED = re.compile(r"([A-Za-z0-9_-]{22})_(0|[1-9][0-9]{0,9})(?:\.([1-9][0-9]{0,8}))?")
_MOST_COPIES = 999_999_999
_BY_TOPIC_ID = re.compile(r"([0-9a-f]{2})/(\1[0-9a-f]{30})_(0|[1-9][0-9]{0,9})")


class DirectoryKind(StrEnum):
    """The kind of a directory, by its name alone."""

    LIVE = "live"
    FUTURE = "future"
    DELETE = "delete"
    STRAY = "stray"
    STAGED = "staged"
    INTERNAL = "internal"
    """The broker's own, no replica of a topic: ``__cluster_metadata`` in any form, ``remote-log-index-cache``."""
    FOREIGN = "foreign"


class DirectoryName(NamedTuple):
    """A directory's name, read. Which fields are set depends on the kind.

    Attributes:
        text: the name.
        kind: of the directory.
        topic: as it stands in the name, cut where the name was cut; None for staged, by-ID and foreign names.
        partition: 0 to 2147483647; None for foreign names and for ``remote-log-index-cache``.
        unique: the part that tells several names of one replica apart: random text before the suffix of a delete, stray
            or future name, or the number of a staged copy from ``2`` on; else None.
        topic_id: of staged and by-ID names; the other forms do not have it.
        problem: why the name is foreign, one sentence without a full stop; else None.
    """

    text: str
    kind: DirectoryKind
    topic: str | None
    partition: int | None
    unique: str | None
    topic_id: TopicId | None
    problem: str | None


SUFFIXES = {
    "-delete": DirectoryKind.DELETE,
    "-future": DirectoryKind.FUTURE,
    "-stray": DirectoryKind.STRAY,
}
"""Suffix → kind; the suffix decides before anything else in a name is read."""

_SUFFIXES = tuple(SUFFIXES)


def split_live(text: str) -> tuple[str, int] | None:
    """Split a plain live name into topic and partition; None: use :func:`parse`.

    This is the fast path: it reads names like ``orders-123`` with up to nine ASCII digits and leaves every rarer form
    to ``parse``. It gives nothing for a name that ``parse`` would not call live with the same topic and partition.
    """
    topic, _, digits = text.rpartition("-")
    if topic and len(digits) < 10 and digits.isdecimal() and digits.isascii() and topic != METADATA_TOPIC:
        return topic, int(digits)
    return None


def parse(text: str) -> DirectoryName:
    """Read the name of a directory that lies in a log dir, or in a tier of it, by Kafka's rule. Never raises.

    Releases agree on the rule since 2.8, except that ``-stray`` is known since 3.6.1; here it always is.
    """
    plain = split_live(text)
    if plain is not None:
        return DirectoryName(text, DirectoryKind.LIVE, plain[0], plain[1], None, None, None)
    if text == REMOTE_LOG_INDEX_CACHE:
        return DirectoryName(text, DirectoryKind.INTERNAL, None, None, None, None, None)
    kind, stem, unique = _split_suffix(text)
    if stem is None:
        suffix = text[text.rindex("-") :]
        return _refused(text, f"the name ends in {suffix} but is not of the form topic-partition.unique{suffix}")
    topic, dash, digits = stem.rpartition("-")
    if not dash:
        return _refused(text, "the name has no '-', so it is not of the form topic-partition")
    if not topic or not digits:
        return _refused(text, f"the name has no {'partition after' if topic else 'topic before'} its last '-'")
    try:
        partition = parse_java_int(digits)
    except LayoutError:
        return _refused(text, f"{digits!r:.60} after the last '-' is no partition: 0 to {MAX_PARTITION} is expected")
    if topic == METADATA_TOPIC:
        kind = DirectoryKind.INTERNAL
    return DirectoryName(text, kind, topic, partition, unique, None, None)


def parse_staged(text: str) -> DirectoryName:
    """Read the name of a directory in a staging directory: staged, or foreign. Never raises.

    Only what :func:`staged_name` writes is staged, so an ID has its canonical text and numbers have no leading zeros.
    """
    match = _STAGED.fullmatch(text)
    if match is not None:
        topic_id, partition, copy = TopicId.parse(match[1]), int(match[2]), match[3]
        if str(topic_id) == match[1] and partition <= MAX_PARTITION and copy != "1":
            return DirectoryName(text, DirectoryKind.STAGED, None, partition, copy, topic_id, None)
    return _foreign(
        text, "the name is not of the form topic-ID_partition or topic-ID_partition.copy, so nothing staged it"
    )


def parse_by_topic_id(text: str) -> DirectoryName:
    """Read the path of a directory below a log dir under the by-topic-id scheme: live, or foreign. Never raises.

    Args:
        text: two components, the prefix directory and the directory in it, joined by ``/``.
    """
    match = _BY_TOPIC_ID.fullmatch(text)
    if match is not None and int(match[3]) <= MAX_PARTITION:
        return DirectoryName(text, DirectoryKind.LIVE, None, int(match[3]), None, TopicId.from_hex(match[2]), None)
    return _foreign(
        text, "the path is not the first two digits of a topic ID in hex, '/', the ID in hex, '_', a partition"
    )


def live_name(topic: str, partition: int) -> str:
    """The name of a replica's directory: ``orders-0``.

    ``topic``: its own name, without a namespace; ``partition``: 0 to 2147483647.

    Raises:
        InvalidNameError: the name would not be read back as this replica.
    """
    return _checked(f"{topic}-{partition}", DirectoryKind.LIVE, topic, partition)


def delete_name(topic: str, partition: int, unique: str) -> str:
    """The name under which a replica waits for its deletion; the topic is cut so that the name has 255 UTF-16 units.

    As :func:`live_name`; ``unique``: 32 random lower-case hexadecimal digits.

    Raises:
        InvalidNameError: ``unique`` is something else, or the name would not be read back as this replica.
    """
    return _capped(topic, partition, unique, "-delete")


def stray_name(topic: str, partition: int, unique: str) -> str:
    """The name that a broker gives to a replica it should not have; otherwise as :func:`delete_name`."""
    return _capped(topic, partition, unique, "-stray")


def future_name(topic: str, partition: int, unique: str) -> str:
    """The name of a replica that is being moved from another disk; otherwise as :func:`delete_name`, but **never cut**.

    Kafka cuts nothing here, so a topic of more than 213 characters gives a name that no common file system accepts.
    """
    return _checked(topic + _tail(partition, unique, "-future"), DirectoryKind.FUTURE, topic, partition)


def staged_name(topic_id: TopicId, partition: int, copy: int = 1) -> str:
    """The name of a directory in a staging directory.

    The topic ID is zero where the disk held none; ``copy``: 1 for the first of this replica, then 2, 3 ...

    Raises:
        InvalidNameError: ``partition`` or ``copy`` is out of range.
    """
    if not (0 <= partition <= MAX_PARTITION and 1 <= copy <= _MOST_COPIES):
        raise InvalidNameError(f"partition {partition}, copy {copy}: one of them is out of range")
    return f"{topic_id}_{partition}" if copy == 1 else f"{topic_id}_{partition}.{copy}"


def by_topic_id_name(topic_id: TopicId, partition: int) -> str:
    """The path of a replica below a log dir under the by-topic-id scheme: prefix directory, ``/``, directory.

    Raises:
        InvalidNameError: ``partition`` is out of range.
    """
    path = f"{topic_id.hex[:2]}/{topic_id.hex}_{partition}"
    if parse_by_topic_id(path).kind is not DirectoryKind.LIVE:
        raise InvalidNameError(f"{partition} is no partition: 0 to {MAX_PARTITION} is expected")
    return path


def _split_suffix(text: str) -> tuple[DirectoryKind, str | None, str | None]:
    r"""Split a name into its kind, the stem before the last ``.``, and the unique part; without suffix all is stem.

    The stem is None where the suffix is there and the form is not. Kafka's pattern for the form, ``\S+-\S+\.\S+`` and
    the suffix, is tested by positions here: matching it by backtracking takes cubic time on a malicious name.
    """
    if not text.endswith(_SUFFIXES):
        return DirectoryKind.LIVE, text, None
    cut = text.rindex("-")
    before = text[:cut]
    first_dash = before.find("-", 1)
    last_dot_inside = before.rfind(".", 0, -1)
    if first_dash < 0 or last_dot_inside < first_dash + 2 or _WHITE_SPACE.search(before):
        return DirectoryKind.FOREIGN, None, None
    stem, _, unique = before.rpartition(".")
    return SUFFIXES[text[cut:]], stem, unique


def _foreign(text: str, problem: str) -> DirectoryName:
    return DirectoryName(text, DirectoryKind.FOREIGN, None, None, None, None, problem)


def _refused(text: str, reason: str) -> DirectoryName:
    return _foreign(text, f"{reason}; a broker does not start while such a directory is in its log dir")


def _tail(partition: int, unique: str, suffix: str) -> str:
    """The part of a delete, stray or future name that follows the topic."""
    if not _UNIQUE.fullmatch(unique):
        raise InvalidNameError(f"{unique!r:.60} is no unique part: 32 digits of [0-9a-f] are expected")
    return f"-{partition}.{unique}{suffix}"


def _capped(topic: str, partition: int, unique: str, suffix: str) -> str:
    """Build a name of at most 255 UTF-16 units by cutting the end of the topic, never through a surrogate pair."""
    tail = _tail(partition, unique, suffix)
    room = MAX_DIRECTORY_NAME - len(tail)
    kept = topic[:room]
    while utf16_length(kept) > room:
        kept = kept[:-1]
    return _checked(kept + tail, SUFFIXES[suffix], kept, partition)


def _checked(name: str, kind: DirectoryKind, topic: str, partition: int) -> str:
    """Make sure that a built name is one component of a path and reads back as what it was built from."""
    is_number = type(partition) is int and 0 <= partition <= MAX_PARTITION
    if is_number and topic != METADATA_TOPIC and _PLAIN.fullmatch(topic):
        return name  # the fast path: such a name always reads back
    read = parse(name)
    expected = DirectoryKind.INTERNAL if topic == METADATA_TOPIC else kind
    if (read.kind, read.topic, read.partition) != (expected, topic, partition) or "/" in name or "\0" in name:
        raise InvalidNameError(
            f"topic {topic!r:.80} and partition {partition} give {name!r:.80}, which names no {kind} dir"
        )
    return name
