"""Topic names and their rules, namespaces, and the pair of topic and partition.

A topic's *full name* is its namespace and its own name, joined by ``:``, for example ``org:apache:orders``. In the
default namespace, which is empty, it is the name alone, and everything is as in Kafka. Source: FACTS §1.4; KIP37-1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from layout.errors import InvalidNameError

MAX_NAME_LENGTH = 249
"""Most characters of a topic name or of a tier; a partition dir adds ``-`` and the partition (FACTS §1.4)."""

NAMESPACE_SEPARATOR = ":"
"""Stands between tiers, and between the last tier and the topic; no topic name may contain it."""

METADATA_TOPIC = "__cluster_metadata"
"""KRaft's own log; no client may create it, and a broker's scan skips it (FACTS §1.6)."""

METADATA_DIR = f"{METADATA_TOPIC}-0"
"""The directory of the metadata log, in the log dir that ``metadata.log.dir`` names."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that brokers create for themselves, as of 3.9 (FACTS §1.4)."""

RESERVED_TIERS = frozenset(
    {
        "deleting",
        "meta.properties",
        "bootstrap.checkpoint",
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "remote-log-index-cache",
        "replication-offset-checkpoint",
        ".lock",
    }
)
"""Tiers that would stand where a log dir has files of its own; also with ``.tmp`` or ``.logstore.tmp`` after them.

KIP37-1 names ``deleting`` and ``__…``; the others follow, because a directory of such a name would replace a file."""

_MAX_PARTITION = (1 << 31) - 1
"""Partitions are signed 32-bit integers to Kafka."""

_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
_LEGAL_TIER = re.compile(r"[a-zA-Z0-9.-]+")
_PARTITION = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of a topic, by full name, and its number, 0 to 2147483647.

    The name may break the rules for names: a disk may hold any (FACTS §1.3).

    Raises:
        InvalidNameError: the topic is no text, or the partition is no such number.
    """

    topic: str
    partition: int

    def __post_init__(self) -> None:
        if type(self.topic) is str and type(self.partition) is int and 0 <= self.partition <= _MAX_PARTITION:
            return  # the fast path, for nearly all: some programs make millions
        if not isinstance(self.topic, str):
            raise InvalidNameError(f"{self.topic!r:.80} is no topic name: a text is expected")
        is_number = isinstance(self.partition, int) and not isinstance(self.partition, bool)
        if not is_number or not 0 <= self.partition <= _MAX_PARTITION:
            expected = f"a number from 0 to {_MAX_PARTITION} is expected"
            raise InvalidNameError(f"{self.partition!r:.80} is no partition of {self.topic!r:.80}: {expected}")

    @property
    def namespace(self) -> str:
        """The tiers before the topic's own name, joined by ``:``; empty in the default namespace."""
        return namespace_of(self.topic)

    @property
    def local_topic(self) -> str:
        """The topic's own name, without its namespace."""
        return self.topic.rpartition(NAMESPACE_SEPARATOR)[2]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, order=True)
class Namespace:
    """The tiers above a topic, outermost first; no tiers: the default namespace. Every instance is valid.

    Raises:
        InvalidNameError: the tiers are no tuple of texts, or a tier is empty, longer than 249 characters, ``.`` or
            ``..``, reserved, or has a character other than ``a-z A-Z 0-9 . -``; the message gives every reason for
            every tier.
    """

    tiers: tuple[str, ...] = ()

    DEFAULT: ClassVar[Namespace]

    def __post_init__(self) -> None:
        if not isinstance(self.tiers, tuple) or not all(isinstance(tier, str) for tier in self.tiers):
            raise InvalidNameError(f"{self.tiers!r:.80} are no tiers: a tuple of texts is expected")
        reasons = [reason for tier in self.tiers for reason in _tier_problems(tier)]
        if reasons:
            raise InvalidNameError(f"{str(self)!r:.80} is no namespace: {'; '.join(reasons)}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``org:apache:kafka``; the empty text is the default namespace.

        Raises:
            InvalidNameError: any tier breaks the rules.
        """
        return cls(tuple(text.split(NAMESPACE_SEPARATOR)) if text else ())

    def child(self, tier: str) -> Namespace:
        """The namespace one tier below this one.

        Raises:
            InvalidNameError: the tier breaks the rules.
        """
        return Namespace((*self.tiers, tier))

    def full_name(self, local_topic: str) -> str:
        """The full name of a topic in this namespace; the topic's own name is not checked."""
        return NAMESPACE_SEPARATOR.join((*self.tiers, local_topic))

    def __str__(self) -> str:
        return NAMESPACE_SEPARATOR.join(self.tiers)


Namespace.DEFAULT = Namespace()


def namespace_of(topic: str) -> str:
    """The namespace part of a full topic name, unchecked; empty in the default namespace."""
    return topic.rpartition(NAMESPACE_SEPARATOR)[0]


def partition_of_tier(namespace: str) -> TopicPartition | None:
    """The partition whose directory would be a namespace's own; None: there can be none.

    Partition 1 of ``ns:a`` and the namespace ``ns:a-1`` are both the directory ``ns/a-1``, so only one of them may
    exist. The other way round, the namespace of a partition's directory is ``str(partition)`` (KIP37-2).
    """
    topic, _, digits = namespace.rpartition("-")
    if not topic.rpartition(NAMESPACE_SEPARATOR)[2] or _PARTITION.fullmatch(digits) is None:
        return None
    return TopicPartition(topic, int(digits)) if int(digits) <= _MAX_PARTITION else None


def clash_with_tier(partition: TopicPartition) -> str:
    """The reason why a partition and the namespace of its name exclude each other, as a sentence without full stop."""
    return (
        f"partition {partition.partition} of topic {partition.topic} and namespace {partition} would be one directory, "
        f"{str(partition).replace(NAMESPACE_SEPARATOR, '/')}: take another name for one of them"
    )


def named(partitions: Sequence[TopicPartition]) -> str:
    """Name some partitions in a message: the first, and how many more."""
    first = str(partitions[0]) if partitions else "nothing"
    return first if len(partitions) < 2 else f"{first} and {len(partitions) - 1} more"


def check_topic_name(name: str) -> None:
    """Check a topic's own name by Kafka's rules, in Kafka's order: empty, ``.``, ``..``, too long, bad character.

    Raises:
        InvalidNameError: it breaks a rule; the message gives all reasons, first the reason that Kafka would give.
    """
    reasons = _name_problems(name, _LEGAL_TOPIC, "a-z A-Z 0-9 . _ -")
    if reasons:
        raise InvalidNameError(f"{name!r:.80} is no topic name: {'; '.join(reasons)}")


def check_full_topic_name(topic: str) -> None:
    """Check a full name, namespace and topic (KIP37-1).

    Raises:
        InvalidNameError: the namespace or the topic's own name breaks a rule.
    """
    namespace, separator, name = topic.rpartition(NAMESPACE_SEPARATOR)
    if separator:
        Namespace(tuple(namespace.split(NAMESPACE_SEPARATOR)))
    check_topic_name(name)


def has_collision_chars(topic: str) -> bool:
    """Whether a name has a ``.`` or a ``_``, which are the same in the names of metrics."""
    return "." in topic or "_" in topic


def unify_collision_chars(topic: str) -> str:
    """The name with every ``.`` replaced by ``_``."""
    return topic.replace(".", "_")


def has_collision(one: str, other: str) -> bool:
    """Whether two names cannot be in one cluster. Kafka checks it when it creates a topic, never for a directory."""
    return unify_collision_chars(one) == unify_collision_chars(other)


def utf16_length(text: str) -> int:
    """Number of UTF-16 units, which is the length of a text in Java."""
    return len(text) if text.isascii() else len(text) + sum(character > "\uffff" for character in text)


def _name_problems(name: str, legal: re.Pattern[str], alphabet: str) -> list[str]:
    """List the broken rules that topics and tiers share, in Kafka's order."""
    if not name:
        return ["it is empty"]
    reasons = []
    if name in (".", ".."):
        reasons.append(f"{name!r} names a directory on every file system")
    length = utf16_length(name)
    if length > MAX_NAME_LENGTH:
        reasons.append(f"it has {length} characters and may have {MAX_NAME_LENGTH}")
    if not legal.fullmatch(name):
        reasons.append(f"it has a character other than {alphabet}")
    return reasons


def _tier_problems(tier: str) -> list[str]:
    """List every reason why a text is no tier, each with the tier."""
    reasons = _name_problems(tier, _LEGAL_TIER, "a-z A-Z 0-9 . -")
    if tier.removesuffix(".tmp").removesuffix(".logstore") in RESERVED_TIERS or tier.startswith("__"):
        reasons.append("it is reserved")
    return [f"tier {tier!r:.40}: {reason}" for reason in reasons]
