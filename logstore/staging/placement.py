"""Where the staged replicas of a log dir go: one of three places, chosen by looking at the disk (DESIGN §5).

::

    inside     <log dir>/deleting/<topic ID>_0       a log dir that is ours, as KIP-516 draws it
    sibling    <log dir>.deleting/<topic ID>_0       a real broker's: inside, it would stop the broker at its next start
    in place   <log dir>/orders-0.<32 hex>-stray     a real broker's that is a mount point, or whose parent is not ours
                                                     to write in: Kafka's own form, loaded but never deleted (FACTS §6);
                                                     a broker before 3.6.1 does not know it, and would not start (§1.3);
                                                     in a flat log dir that is ours, what a broker left there before

A rename works within one file system only, so the sibling needs a parent on the same device.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from enum import StrEnum

from layout.directory_name import SUFFIXES, DirectoryKind, parse, staged_name, stray_name
from layout.errors import InvalidNameError, LayoutError
from layout.ids import TopicId
from layout.scheme import STAGING_DIR, Scheme, sibling_staging_root
from layout.topic import TopicPartition
from logstore.errors import LogStoreError, UnsafePathError
from logstore.fs import Directory, Disk, make_directory, mount_of
from logstore.log_dir import LogDir, LogDirView, ReadOnlyLogDir

_STRAY_SUFFIX = next(suffix for suffix, kind in SUFFIXES.items() if kind is DirectoryKind.STRAY)


class Placement(StrEnum):
    """Where staged replicas go."""

    INSIDE = "inside"
    SIBLING = "sibling"
    IN_PLACE = "in-place"


def placements(log_dir: LogDirView) -> tuple[Placement, ...]:
    """List the places to which the replicas of a log dir are staged."""
    return (Placement.INSIDE,) if log_dir.is_ours else (Placement.SIBLING, Placement.IN_PLACE)


def choose_placement(log_dir: LogDirView) -> Placement:
    """Choose the place for a log dir's staged replicas, by its kind and its location; nothing is changed."""
    if log_dir.is_ours:
        return Placement.INSIDE
    try:
        root = sibling_staging_root(log_dir.path)
        parent = os.path.dirname(root)
        if os.path.isdir(root) and not os.path.islink(root):
            return Placement.SIBLING if _same_mount(root, log_dir) else Placement.IN_PLACE
        free = _same_mount(parent, log_dir) and not os.path.lexists(root) and os.access(parent, os.W_OK | os.X_OK)
    except (InvalidNameError, OSError):
        return Placement.IN_PLACE
    return Placement.SIBLING if free else Placement.IN_PLACE


def stages_in_place(path: str) -> bool:
    """Whether the staged replicas of a log dir stay in it; False too where it cannot be opened."""
    try:
        with ReadOnlyLogDir.open(path) as opened:
            return choose_placement(opened) is Placement.IN_PLACE
    except (LogStoreError, OSError):
        return False


def _same_mount(path: str, log_dir: LogDirView) -> bool:
    """Whether a rename can lead from the log dir to a directory; out of a bind mount it cannot. Raises OSError."""
    with Directory.open(path) as other:
        same_mount = mount_of(other.descriptor) == mount_of(log_dir.root.descriptor)
        return other.device == log_dir.root.device and same_mount


def staging_path(log_dir: LogDirView, placement: Placement) -> str:
    """Give the path of the directory that a placement stands for; for messages and plans."""
    if placement is Placement.INSIDE:
        return f"{log_dir.path}/{STAGING_DIR}"
    return sibling_staging_root(log_dir.path) if placement is Placement.SIBLING else log_dir.path


def placement_of(path: str, staging: str) -> Placement | None:
    """Which placement of the log dir at ``path`` the directory at ``staging`` is; None: it is no staging root."""
    if staging == path:
        return Placement.IN_PLACE
    if staging == f"{path}/{STAGING_DIR}":
        return Placement.INSIDE
    try:
        return Placement.SIBLING if staging == sibling_staging_root(path) else None
    except InvalidNameError:
        return None


def open_staging_root(log_dir: LogDirView, placement: Placement, *, make: bool = False) -> Directory | None:
    """Open the directory that staged replicas go to; None: it does not exist, and ``make`` was not asked for.

    In a log dir that is open to be changed, a sibling is locked first (:meth:`LogDir.lock_staging_root`).

    Raises:
        UnsafePathError: it is a link, is no directory, or lies on another file system.
        LogDirInUseError: a purge works in the sibling.
        OSError: it cannot be made or opened.
    """
    if placement is Placement.IN_PLACE:
        return log_dir.root.below("")
    path = staging_path(log_dir, placement)
    parent_path, _, name = path.rpartition("/")
    try:
        opened = log_dir.root.below("") if placement is Placement.INSIDE else Directory.open(parent_path or "/")
    except PermissionError:
        if make:
            raise
        return None  # we cannot have put anything into a parent that we may not even list
    with opened as parent:
        if make:
            assert isinstance(log_dir, LogDir), "only a log dir that is open to be changed gets a staging root"
            # A purge may run as the broker's user, to whom the folder of the log dir need not belong.
            found = make_directory(log_dir.disk, parent, name, owned_like=log_dir.root)
        elif not parent.holds(name):
            return None
        else:
            try:
                found = parent.child(name)
            except NotADirectoryError as error:
                raise UnsafePathError(f"{path} is no directory, so nothing is staged there") from error
    try:
        if found.device != log_dir.root.device:
            raise UnsafePathError(
                f"{path} lies on another file system than {log_dir.path}: nothing can be renamed into it"
            )
        if placement is Placement.SIBLING and isinstance(log_dir, LogDir):
            log_dir.lock_staging_root()
    except BaseException:
        found.close()
        raise
    return found


def staging_roots(log_dir: LogDirView) -> Generator[tuple[Placement, Directory], None, None]:
    """Open each directory of a log dir in which something may be staged, one at a time; no other place is searched.

    A flat log dir that is ours may hold strays of the time when a broker read it, so it is searched where it has one.
    Nothing of ours is staged beside them.

    Close the generator, so that no directory stays open where the caller raises.

    Raises:
        LogDirInUseError: a purge works in one of them.
        OSError: one of them cannot be opened.
    """
    has_strays = log_dir.is_ours and log_dir.scheme is Scheme.FLAT and _holds_stray(log_dir.root)
    for placement in (*placements(log_dir), *([Placement.IN_PLACE] if has_strays else [])):
        try:
            root = open_staging_root(log_dir, placement)
        except (UnsafePathError, LayoutError):
            continue  # a link, a mount point, or a path without a name: nothing of ours can lie there
        if root is not None:
            with root:
                yield placement, root


def _holds_stray(root: Directory) -> bool:
    """Whether a stray lies in a log dir: one listing, so that a hundred thousand replicas are not looked at."""
    names = (name for name in os.listdir(root.descriptor) if name.endswith(_STRAY_SUFFIX))
    return any(parse(name).kind is DirectoryKind.STRAY for name in names)


def free_name(
    is_taken: Callable[[str], bool], placement: Placement, partition: TopicPartition, topic_id: TopicId, disk: Disk
) -> str:
    """Choose a free name in the staging root: nothing is overwritten or merged; a taken name gets ``.2``, ``.3``.

    Args:
        is_taken: says whether something has a name already, or is to have it.
        placement: of the staging root.
        partition: of the replica.
        topic_id: of the replica, or the zero ID.
        disk: makes the digits of a stray's name.
    """
    copy = 1
    while True:
        if placement is Placement.IN_PLACE:
            name = stray_name(partition.local_topic, partition.partition, disk.unique())
        else:
            name = staged_name(topic_id, partition.partition, copy)
        if not is_taken(name):
            return name
        copy += 1


def name_below_log_dir(log_dir: LogDirView, placement: Placement, name: str) -> str:
    """Give the name of a staged directory in a scan: the path below the log dir, with ``../`` for a sibling."""
    if placement is Placement.INSIDE:
        return f"{STAGING_DIR}/{name}"
    if placement is Placement.SIBLING:
        return f"../{os.path.basename(staging_path(log_dir, placement))}/{name}"
    return name
