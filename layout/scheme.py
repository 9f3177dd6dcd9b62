"""Schemes: where a partition lies below a log dir, flat, namespaced or by topic ID; and the names of our own files.

::

    flat          orders-0                                  as Kafka has it, and the only scheme that a broker can read
    namespaced    org/apache/orders-0                       one directory per tier, each with a marker file (KIP37-2)
    by-topic-id   51/517c94f62e40467e96d3438ddad69e58_0     a rename of the topic touches no data (KIP516-12)

Paths are joined with ``/``. A scheme refuses a partition that it cannot hold. ``directory_name`` has the names of the
directories themselves. Only a log dir that is *ours*, whose ``meta.properties`` says so, has a scheme other than flat,
and holds its own staging directory.
Source: DESIGN §5; KIP37-1, KIP37-2, KIP516-12.
"""

from __future__ import annotations

from enum import StrEnum

from layout.directory_name import MAX_DIRECTORY_NAME, by_topic_id_name, live_name
from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.topic import METADATA_TOPIC, NAMESPACE_SEPARATOR, Namespace, TopicPartition, check_full_topic_name

MARKER_FILE = ".logstore_tier"
"""An empty file in the directory of every tier, so that a tier called ``a-1`` is never taken for a partition.

No tier can have this name itself, because of the ``_``, and a broker ignores plain files.
"""

DEEPEST_TIER = 64
"""Levels of tiers that are followed; a path has space for hardly more."""

STAGING_DIR = "deleting"
"""The staging directory of a log dir that is ours; in a real broker's log dir it would stop the broker (FACTS §1.6)."""

UNCLEAN_FILE = ".logstore_unclean"
"""An empty file in a log dir that the engine has begun to change; it is removed at a clean stop.

While it is there, a crash may have left something half done, so the next open reads every replica; without it one
listing is enough. A broker ignores plain files, so it may stand in any log dir."""

INTENT_FILE = ".logstore_intent"
"""Holds the steps of a change, so that after a crash at any step the next open can finish it."""

REPAIR_BACKUP_PREFIX, REPAIR_BACKUP_SUFFIX = ".logstore_repair.", ".json"
"""Around the first digits of a plan's fingerprint: the backup of a repair, kept until the repair is undone."""

RUN_JOURNAL_PREFIX, RUN_JOURNAL_SUFFIX = ".logstore_run.", ".ndjson"
"""Around the time and the plan of a run: the journal of who did what, when and why. Kept for ever."""

LEDGER_FILE = ".logstore_ledger"
"""Says of each directory that is staged beside it what it was, and when it may go; a broker ignores plain files."""

MAX_PATH = 4095
"""Longest path that Linux opens, in bytes without the closing NUL."""

_ROOM_FOR_A_FILE = 2 * (1 + MAX_DIRECTORY_NAME)


class Scheme(StrEnum):
    """A layout of partitions below a log dir; the values stand in ``meta.properties``."""

    FLAT = "flat"
    NAMESPACED = "namespaced"
    BY_TOPIC_ID = "by-topic-id"


def partition_path(scheme: Scheme, partition: TopicPartition, topic_id: TopicId | None = None) -> str:
    """The path of a live replica below its log dir.

    ``partition`` has the topic's full name; only the by-topic-id scheme needs the topic ID.

    Raises:
        InvalidNameError: the name breaks the rules for topics, is that of the metadata log, or the scheme cannot hold
            it: a namespace under flat, no ID under by-topic-id, a directory name of more than 255 bytes.
    """
    check_full_topic_name(partition.topic)
    if partition.local_topic == METADATA_TOPIC:
        raise InvalidNameError(f"{partition} would be KRaft's own metadata log, which no scan takes for a replica")
    if scheme is Scheme.BY_TOPIC_ID:
        if topic_id is None or topic_id.is_zero:
            raise InvalidNameError(f"{partition} has no topic ID, and the scheme {scheme} has no other name for it")
        return by_topic_id_name(topic_id, partition.partition)
    namespace = partition.namespace
    if scheme is Scheme.FLAT and namespace:
        raise InvalidNameError(
            f"{partition} is in namespace {namespace}, and the scheme {scheme} has no directories for tiers: "
            f"convert the log dir to {Scheme.NAMESPACED}"
        )
    name = live_name(partition.local_topic, partition.partition)
    if len(name) > MAX_DIRECTORY_NAME:
        raise InvalidNameError(f"{name:.40}… has {len(name)} bytes, and file systems hold {MAX_DIRECTORY_NAME}")
    return "/".join((*Namespace.parse(namespace).tiers, name)) if namespace else name


def namespace_path(namespace: Namespace) -> str:
    """The path of a namespace's directory below the log dir; empty for the default namespace."""
    return str(namespace).replace(NAMESPACE_SEPARATOR, "/")


def check_namespace_depth(namespace: Namespace) -> None:
    """Make sure that a scan of a log dir finds what lies in a namespace: it follows a limited number of tiers.

    Raises:
        InvalidNameError: the namespace has more.
    """
    if len(namespace.tiers) > DEEPEST_TIER:
        raise InvalidNameError(
            f"namespace {namespace!s:.80} has {len(namespace.tiers)} tiers, and {DEEPEST_TIER} are the most that a "
            "scan of a log dir follows: take fewer"
        )


def check_namespace_fits(log_dir: str, namespace: Namespace) -> None:
    """Make sure that everything that may be created in a namespace has a path that the system can open.

    A directory name of 255 bytes with a file name of 255 bytes in it must fit, so that no later rename to a longer name
    and no temporary file can fail.

    Raises:
        InvalidNameError: the namespace does not fit, or has too many tiers; the message has the numbers.
    """
    check_namespace_depth(namespace)
    path = f"{log_dir.rstrip('/')}/{namespace_path(namespace)}".rstrip("/")
    length, limit = len(path.encode("utf-8", "surrogateescape")), MAX_PATH - _ROOM_FOR_A_FILE
    if length > limit:
        raise InvalidNameError(
            f"namespace {namespace!s:.80} makes a path of {length} bytes under {log_dir:.80}; {limit} are the most, "
            f"because a partition dir and its files below it must fit into {MAX_PATH}"
        )


def sibling_staging_root(log_dir: str) -> str:
    """The staging root of a real broker's log dir: ``<log dir>.deleting``, beside it on the same device.

    Args:
        log_dir: its path, absolute or relative; slashes at the end are ignored.

    Raises:
        InvalidNameError: the path is the root, or ends in ``.`` or ``..``, so it cannot get the suffix.
    """
    path = log_dir.rstrip("/")
    if path.rpartition("/")[2] in ("", ".", ".."):
        raise InvalidNameError(
            f"{log_dir!r:.80} has no name of its own, so nothing can stand beside it: give its full path"
        )
    return f"{path}.{STAGING_DIR}"
