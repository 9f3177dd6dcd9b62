"""Finds the directories of namespaces in a log dir, and makes those that are missing.

A namespace exists through a directory for each of its tiers, each with a marker file, in every log dir that is laid out
``namespaced`` (KIP37-2). A disk that was offline when a namespace was created gets its directories when the store is
opened, so that the directory of a namespace exists on every disk.
"""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from layout.ours import MakeDirectory
from layout.scheme import DEEPEST_TIER, MARKER_FILE, Scheme
from layout.topic import NAMESPACE_SEPARATOR, TopicPartition, clash_with_tier
from logstore.errors import ChangeFailedError, NamespaceClashError, OfflineLogDirError
from logstore.fs import Directory
from logstore.journal.steps import do_steps
from logstore.log_dir import FallbackRecords, LogDir, LogDirView

logger = logging.getLogger(__name__)


def list_namespace_dirs(log_dir: LogDir) -> list[str]:
    """List the paths of all namespace directories below a log dir, parents first; empty unless ``namespaced``.

    Raises:
        OfflineLogDirError: the disk fails.
        UnsafePathError: another file system is mounted at one of them.
    """
    try:
        return find_namespace_dirs(log_dir)
    except OSError as error:
        raise log_dir.failed("the tiers of namespaces cannot be listed", error) from error


def find_namespace_dirs(log_dir: LogDirView) -> list[str]:
    """List the same for a log dir that is only read. Raises OSError, and UnsafePathError."""
    if not log_dir.is_ours or log_dir.scheme is not Scheme.NAMESPACED:
        return []
    return sorted(_below(log_dir.root, "", DEEPEST_TIER), key=lambda path: path.split("/"))


def _below(directory: Directory, prefix: str, deepest: int) -> Iterator[str]:
    for name, is_directory in directory.entries():
        if is_directory and deepest and is_namespace_dir(directory, name):
            yield f"{prefix}{name}"
            with directory.child(name) as tier:
                yield from _below(tier, f"{prefix}{name}/", deepest - 1)


def is_namespace_dir(directory: Directory, name: str) -> bool:
    """Whether a subdirectory carries the marker file of a namespace directory. Raises OSError."""
    marker = directory.status(f"{name}/{MARKER_FILE}")
    return marker is not None and stat.S_ISREG(marker.st_mode)


def check_no_tier(log_dirs: Iterable[LogDir], partition: TopicPartition) -> None:
    """Make sure that no log dir has a namespace whose directory a partition would need (KIP37-2).

    The partition may go to another disk than the one with the namespace; at its next open, the store would find that it
    cannot give every disk the namespace.

    Raises:
        NamespaceClashError: one has.
    """
    for log_dir in log_dirs:
        if log_dir.is_ours and log_dir.scheme is Scheme.NAMESPACED and log_dir.offline is None:
            # A file in the way is no namespace, and a disk that fails now says so when it is changed.
            with suppress(OSError):
                if is_namespace_dir(log_dir.root, namespace_dir(str(partition))):
                    raise NamespaceClashError(f"{log_dir.path} has that namespace: {clash_with_tier(partition)}")


def namespace_at(path: str) -> str:
    """Give the namespace of a directory: ``org/apache`` → ``org:apache``."""
    return path.replace("/", NAMESPACE_SEPARATOR)


def namespace_dir(namespace: str) -> str:
    """Give the directory of a namespace; the inverse of :func:`namespace_at`."""
    return namespace.replace(NAMESPACE_SEPARATOR, "/")


def with_parents(paths: Iterable[str]) -> list[str]:
    """Add all parent directories to paths; parents first, each once."""
    found = {"/".join(path.split("/")[:length]) for path in paths for length in range(1, path.count("/") + 2)}
    return sorted(found, key=lambda path: path.split("/"))


def make_missing_namespace_dirs(log_dirs: Sequence[LogDir]) -> None:
    """Make the namespace directories that a log dir lacks and another log dir of the store has.

    A file in the way of a directory, or a disk without room for it, is logged and left: the namespace cannot be used on
    that disk until an operator acts.
    """
    own: dict[LogDir, list[str]] = {}
    namespaced = [log_dir for log_dir in log_dirs if log_dir.is_ours and log_dir.scheme is Scheme.NAMESPACED]
    online = [log_dir for log_dir in namespaced if log_dir.offline is None]
    for log_dir in online if len(online) > 1 else ():
        with suppress(OfflineLogDirError):
            own[log_dir] = list_namespace_dirs(log_dir)
    everywhere = with_parents(path for paths in own.values() for path in paths)
    for log_dir, listed in own.items():
        here = {"", *listed}
        try:
            for path in everywhere:
                # A path that is blocked blocks the directories below it.
                if path not in here and path.rpartition("/")[0] in here and _make_missing(log_dir, path):
                    here.add(path)
        except (ChangeFailedError, OfflineLogDirError) as error:
            logger.warning("%s", error)


def _make_missing(log_dir: LogDir, path: str) -> bool:
    """Make a namespace directory whose parent exists; False: its path is taken."""
    if log_dir.root.holds_below(path):
        logger.warning("%s: %s is in the way of namespace %s", log_dir.path, path, namespace_at(path))
        return False
    step = MakeDirectory(0, path, tier=True)
    do_steps(log_dir, [step], f"make the tier {path}", resuming=True, fallback=FallbackRecords(None))
    logger.warning("%s: namespace %s was not there, and is made", log_dir.path, namespace_at(path))
    return True
