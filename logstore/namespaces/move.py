"""Plan to move a namespace, with all that is in it, to another name (KIP37-3).

Namespaces below it, their topics and its directories with their markers go along, in every log dir or in none::

    namespaced     org/apache → com/shop       the tiers of the new name are made, each entry of the old tier is renamed
                                               into the new one, which takes those below it along, and the old tier goes
    by-topic-id    nothing moves               the names stand in partition.metadata alone

Nothing is ever merged: the new name is free, or a namespace with nothing in it. Every entry is renamed by itself rather
than the tier, so that each step can be repeated: a tier that was there already looks like one that has moved.
Checkpoints and ``partition.metadata`` follow as for a topic (``rename``), and so do the names of staged replicas, when
they are restored. Tiers above the old name stay, also when they are empty.
"""

from __future__ import annotations

from layout.ours import MakeDirectory, RemoveDirectory, Rename, RenameEntries
from layout.scheme import MARKER_FILE, Scheme, check_namespace_fits, partition_path
from layout.topic import Namespace, TopicPartition
from logstore.errors import InvalidNamespaceError, NameTakenError
from logstore.journal import list_namespace_dirs, namespace_at, namespace_dir, with_parents
from logstore.log_dir import LogDir
from logstore.namespaces.namespaces import (
    check_known,
    check_no_partition,
    check_path_free,
    is_in,
    list_namespaces,
    named_namespace,
)
from logstore.namespaces.plan import (
    ChangePlanner,
    PlannedChange,
    check_all_online,
    check_no_duplicates,
    check_ours,
    first_few,
    moved_replica,
    reading_log_dir,
)
from logstore.namespaces.rename import check_not_on_its_way, rewritten
from logstore.store import OpenStore, Replica


def plan_move_namespace(store: OpenStore, namespace: str, target: str) -> PlannedChange:
    """Plan to move a namespace to another name; tiers of the new name that are missing are made.

    Args:
        store: all its log dirs must be online.
        namespace: that moves; not the default one.
        target: its name afterwards.

    Raises:
        InvalidNameError: one of them is no name of a namespace, or a new path would be too long.
        InvalidNamespaceError: the namespace does not exist, or one of the two lies inside the other.
        NameTakenError: the target holds something, or something else has the name of one of its tiers.
        NamespaceClashError: a partition has the directory of one of its tiers.
        ChangeRefusedError: a log dir is a real broker's; something unknown lies in the namespace; or a replica in it is
            live in two log dirs, or being moved between disks.
        OfflineLogDirError: a log dir is offline.
    """
    _check_apart(namespace, target)
    check_ours(store, "moving a namespace")
    check_all_online(store, f"moving namespace {namespace}")
    list_namespaces(store, namespace)
    _check_empty(store, target)
    check_no_partition(store, with_parents([namespace_dir(target)]))
    inside = [replica for replica in store.replicas() if is_in(replica.partition.topic, namespace)]
    inside.sort(key=lambda replica: (replica.partition, replica.log_dir))
    check_no_duplicates(store, {replica.partition.topic for replica in inside})
    planner = ChangePlanner("move-namespace", f"move namespace {namespace} to {target}")
    for log_dir in store.log_dirs:
        with reading_log_dir(log_dir, f"namespace {namespace} cannot be moved"):
            check_not_on_its_way(log_dir, {replica.partition.topic for replica in inside}, {""})
            own = [replica for replica in inside if replica.log_dir == log_dir.path]
            _plan_in(planner, log_dir, own, namespace, target)
    return planner.planned()


def _check_apart(namespace: str, target: str) -> None:
    """Refuse two names of which one is, or holds, the other."""
    for name in (namespace, target):
        named_namespace(name)
    if namespace == target:
        raise InvalidNamespaceError(f"namespace {namespace} has that name already")
    for inner, outer in ((namespace, target), (target, namespace)):
        if is_in(inner, outer):
            raise InvalidNamespaceError(
                f"{inner} lies inside {outer}, so {namespace} cannot become {target}: move its topics one by one"
            )


def _check_empty(store: OpenStore, target: str) -> None:
    """Refuse a target in which there is a topic or another namespace."""
    below = list_namespaces(store, target) if target in list_namespaces(store) else []
    topics = sorted({replica.partition.topic for replica in store.replicas() if is_in(replica.partition.topic, target)})
    if below or topics:
        raise NameTakenError(
            f"namespace {target} is there and not empty: namespaces below it: {first_few(below) or 'none'}; topics in "
            f"it: {first_few(topics) or 'none'}; nothing is ever merged, so choose another name"
        )


def _plan_in(planner: ChangePlanner, log_dir: LogDir, replicas: list[Replica], namespace: str, target: str) -> None:
    """Add the steps of one log dir. Raises as :func:`plan_move_namespace`, and OSError."""
    made, renames, gone = _directories(log_dir, {replica.path for replica in replicas}, namespace, target)
    moved = [(replica, _moved(log_dir, replica, namespace, target)) for replica in replicas]
    planner.add(log_dir, *made, *renames)
    planner.add(log_dir, *(step for old, new in moved for step in rewritten(log_dir, old, new.partition, new.path)))
    topics = {old.partition.topic: new.partition.topic for old, new in moved}
    planner.add(log_dir, *(RenameEntries(0, old, new) for old, new in topics.items()), *gone)
    planner.replicas += moved


def _directories(
    log_dir: LogDir, known: set[str], namespace: str, target: str
) -> tuple[list[MakeDirectory], list[Rename], list[RemoveDirectory]]:
    """Plan what becomes of the directories of a log dir; no steps where it has none for namespaces.

    ``known``: the paths of the replicas in the namespace.
    """
    here, (source, wanted) = list_namespace_dirs(log_dir), map(namespace_dir, (namespace, target))
    if log_dir.scheme is not Scheme.NAMESPACED:
        return [], [], []
    tiers = [path for path in here if path == source or path.startswith(f"{source}/")]
    for path in (wanted, *(wanted + tier[len(source) :] for tier in tiers)):
        check_namespace_fits(log_dir.path, Namespace.parse(namespace_at(path)))
    missing = [path for path in with_parents([wanted]) if path not in here]
    if missing:
        check_path_free(log_dir, missing[0])
    made = [MakeDirectory(0, path, tier=True) for path in missing]
    if source not in here:
        return made, [], []  # something is in its way on this disk: nothing of it lies here
    check_known(log_dir, tiers, known)
    with log_dir.root.below(source) as directory:
        names = sorted(name for name, _ in directory.entries() if name != MARKER_FILE)
    renames = [Rename(0, f"{source}/{name}", f"{wanted}/{name}") for name in names]
    return made, renames, [RemoveDirectory(0, source, tier=True)]


def _moved(log_dir: LogDir, replica: Replica, namespace: str, target: str) -> Replica:
    """Describe a replica of the namespace as it will be."""
    partition = TopicPartition(target + replica.partition.topic[len(namespace) :], replica.partition.partition)
    return moved_replica(replica, partition, partition_path(log_dir.scheme, partition, replica.topic_id))
