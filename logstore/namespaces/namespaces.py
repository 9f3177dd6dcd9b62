"""List the namespaces of a store, and plan to create or delete one in all its log dirs (KIP37-3).

Under the scheme ``namespaced`` a namespace consists of directories, one for each tier, and must be created before a
topic can be in it. ``by-topic-id`` has no directories for namespaces: the name of a topic alone says which namespace it
is in. A namespace exists there as long as a topic is in it, needs no creating, and goes with its last topic. ``flat``
has no namespaces at all.

Deleting a namespace stages the topics in it. They can be restored until their delay is over, once the namespace has
been created again. KIP-37 would delete the topics of a namespace without being asked twice, and refuse only where other
namespaces lie below it; here both need ``recursive``.
"""

from __future__ import annotations

from layout.directory_name import DirectoryKind, parse
from layout.ours import MakeDirectory, RemoveDirectory, Stage
from layout.scheme import MARKER_FILE, Scheme, check_namespace_fits
from layout.topic import NAMESPACE_SEPARATOR, Namespace, clash_with_tier, namespace_of, partition_of_tier
from logstore.errors import ChangeRefusedError, InvalidNamespaceError, NamespaceClashError, NameTakenError
from logstore.journal import is_namespace_dir, list_namespace_dirs, namespace_at, namespace_dir, with_parents
from logstore.log_dir import LogDir
from logstore.namespaces.plan import (
    ChangePlanner,
    PlannedChange,
    check_all_online,
    check_no_duplicates,
    check_ours,
    first_few,
    reading_log_dir,
)
from logstore.settings import STALE_DELAY
from logstore.store import OpenStore, Replica

VERDICT = "NAMESPACE_DELETED"
"""The verdict in the record of a replica that was staged because its namespace was deleted."""


def list_namespaces(store: OpenStore, below: str = "") -> list[str]:
    """List namespaces in order; the default namespace is never among them.

    Args:
        store: to look into; in a log dir without namespace directories, the names of its topics count.
        below: list only the namespaces below this one; empty: list all.

    Raises:
        InvalidNameError: ``below`` is no name of a namespace.
        InvalidNamespaceError: it does not exist.
        OfflineLogDirError: a disk fails.
    """
    Namespace.parse(below)
    with store.changing:
        found = {namespace_at(path) for log_dir in _online(store) for path in list_namespace_dirs(log_dir)}
        if any(log_dir.scheme is Scheme.BY_TOPIC_ID for log_dir in _online(store)):
            topics = {replica.partition.topic for replica in store.replicas()}
            found |= {
                namespace_at(path)
                for path in with_parents(namespace_dir(namespace_of(topic)) for topic in topics)
                if path
            }
    if below and below not in found:
        raise InvalidNamespaceError(f"there is no namespace {below}: {_existing(sorted(found))}")
    prefix = f"{below}{NAMESPACE_SEPARATOR}" if below else ""
    return sorted(name for name in found if name.startswith(prefix))


def plan_create(store: OpenStore, namespace: str) -> PlannedChange:
    """Plan to create a namespace, with all its tiers, in every log dir that is online.

    A log dir that is offline gets the namespace when it is back.

    Raises:
        InvalidNameError: the text is no name of a namespace, or its path would be too long.
        InvalidNamespaceError: the namespace exists.
        NameTakenError: a replica, on whatever disk, or something else has the name of one of its tiers; if it is a
            replica, it is the subclass NamespaceClashError.
        ChangeRefusedError: a log dir is a real broker's, or no log dir has namespace directories.
        OfflineLogDirError: a disk fails.
    """
    wanted = named_namespace(namespace)
    check_ours(store, "a namespace")
    planner = ChangePlanner("create-namespace", f"create namespace {namespace}")
    for log_dir in _with_tiers(store):
        check_namespace_fits(log_dir.path, wanted)
        here = set(list_namespace_dirs(log_dir))
        missing = [path for path in with_parents([namespace_dir(namespace)]) if path not in here]
        if missing:
            with reading_log_dir(log_dir, f"namespace {namespace} cannot be created"):
                check_path_free(log_dir, missing[0])
            check_no_partition(store, missing)
            planner.add(log_dir, *(MakeDirectory(0, path, tier=True) for path in missing))
    planned = planner.planned()
    if not planned.intent.steps:
        raise InvalidNamespaceError(f"namespace {namespace} exists already")
    return planned


def plan_delete(
    store: OpenStore, namespace: str, *, recursive: bool = False, setting: str = STALE_DELAY
) -> PlannedChange:
    """Plan to delete a namespace in every log dir.

    Args:
        store: all its log dirs must be online.
        namespace: not the default one.
        recursive: also delete the namespaces below it, and stage every topic in any of them.
        setting: the delay that counts, resolved for each topic along its tiers (KIP37-5).

    Raises:
        InvalidNameError: the text is no name of a namespace.
        InvalidNamespaceError: the namespace does not exist, or something is in it and ``recursive`` was not given.
        ChangeRefusedError: a log dir is a real broker's, or something unknown lies in a namespace directory.
        OfflineLogDirError: a log dir is offline.
    """
    named_namespace(namespace)
    check_ours(store, "a namespace")
    check_all_online(store, f"deleting namespace {namespace}")
    below = list_namespaces(store, namespace)
    inside = [replica for replica in store.replicas() if is_in(replica.partition.topic, namespace)]
    inside.sort(key=lambda replica: (replica.partition, replica.log_dir))
    topics = sorted({replica.partition.topic for replica in inside})
    if (below or topics) and not recursive:
        raise InvalidNamespaceError(
            f"namespace {namespace} is not empty: namespaces below it: {first_few(below) or 'none'}; topics in it: "
            f"{first_few(topics) or 'none'}; delete or move them first, or delete it with all that is in it (recursive)"
        )
    check_no_duplicates(store, topics)
    planner = ChangePlanner("delete-namespace", f"delete namespace {namespace}")
    now_ms = store.clock.now_ms()
    for log_dir in store.log_dirs:
        for replica in inside:
            if replica.log_dir == log_dir.path:
                due_ms = now_ms + store.settings.of(replica.partition.topic, setting)
                planner.add(log_dir, _stage(replica, f"namespace {namespace} was deleted", now_ms, due_ms))
                planner.replicas.append((replica, None))
        path = namespace_dir(namespace)
        tiers = [tier for tier in list_namespace_dirs(log_dir) if tier == path or tier.startswith(f"{path}/")]
        with reading_log_dir(log_dir, f"namespace {namespace} cannot be deleted"):
            check_known(log_dir, tiers, {replica.path for replica in inside if replica.log_dir == log_dir.path})
        planner.add(log_dir, *(RemoveDirectory(0, tier, tier=True) for tier in reversed(tiers)))
    return planner.planned()


def check_known(log_dir: LogDir, directories: list[str], known: set[str]) -> None:
    """Make sure that the directories to be removed hold only each other, marker files and known replicas.

    ``known``: paths of replicas that will be gone by then. All paths are below the log dir.

    Raises:
        ChangeRefusedError: something else is in one of the directories.
    """
    allowed = known | set(directories)
    strange = []
    for path in directories:
        with log_dir.root.below(path) as directory:
            names = [name for name, _ in directory.entries() if name != MARKER_FILE]
        strange += [f"{path}/{name}" for name in names if f"{path}/{name}" not in allowed]
    if strange:
        raise ChangeRefusedError(
            f"{log_dir.path} holds what is no replica or whose topic is not known: {first_few(sorted(strange))}; "
            "see to it first, with 'logstore explain PATH'"
        )


def check_exists(log_dir: LogDir, namespace: str) -> None:
    """Make sure that topics may be in a namespace in this log dir.

    Raises:
        InvalidNamespaceError: the scheme needs the directory of the namespace, and there is none.
        OSError: the system refuses to look.
    """
    if not namespace or log_dir.scheme is not Scheme.NAMESPACED:
        return
    folder, _, name = namespace_dir(namespace).rpartition("/")
    try:
        with log_dir.root.below(folder) as parent:
            found = is_namespace_dir(parent, name)
    except (FileNotFoundError, NotADirectoryError):
        found = False
    if not found:
        raise InvalidNamespaceError(f"namespace {namespace} was not created in {log_dir.path}: create it first")


def named_namespace(namespace: str) -> Namespace:
    """Parse a namespace other than the default one.

    Raises:
        InvalidNameError: the text is no name of a namespace.
        InvalidNamespaceError: it is empty.
    """
    wanted = Namespace.parse(namespace)
    if not wanted.tiers:
        raise InvalidNamespaceError(
            "the default namespace has no name; it is always there, and can be neither deleted nor moved"
        )
    return wanted


def _online(store: OpenStore) -> list[LogDir]:
    return [log_dir for log_dir in store.log_dirs if log_dir.offline is None]


def _with_tiers(store: OpenStore) -> list[LogDir]:
    """Select the log dirs that get directories for a namespace."""
    for log_dir in _online(store):
        if log_dir.scheme is Scheme.FLAT:
            raise ChangeRefusedError(
                f"{log_dir.path} is laid out {Scheme.FLAT}, which has no namespaces: convert it to {Scheme.NAMESPACED}"
            )
    found = [log_dir for log_dir in _online(store) if log_dir.scheme is Scheme.NAMESPACED]
    if not found:
        raise ChangeRefusedError(
            f"under {Scheme.BY_TOPIC_ID} a namespace needs no creating: the names of its topics say all there is"
        )
    return found


def check_path_free(log_dir: LogDir, path: str) -> None:
    """Refuse a tier whose path is taken. Nothing below a free path can be taken either.

    Raises:
        NameTakenError: a replica or something else has the name of the tier.
        OSError: the system refuses to look.
    """
    if log_dir.root.holds_below(path):
        partition = partition_of_tier(namespace_at(path))
        if partition is not None:
            raise NamespaceClashError(f"{log_dir.path}/{path} is a replica's directory: {clash_with_tier(partition)}")
        is_replica = parse(path.rpartition("/")[2]).kind is DirectoryKind.LIVE
        kind = "a replica's directory" if is_replica else "something else"
        raise NameTakenError(
            f"{log_dir.path}/{path} is {kind}, so there can be no tier of that name: choose another name"
        )


def check_no_partition(store: OpenStore, paths: list[str]) -> None:
    """Refuse tiers whose names the store's replicas have on any disk, perhaps on one that is offline (KIP37-2).

    Raises:
        NamespaceClashError: one has.
    """
    for path in paths:
        partition = partition_of_tier(namespace_at(path))
        found = None if partition is None else store.entries().get((partition.topic, partition.partition))
        if partition is not None and found is not None:
            raise NamespaceClashError(
                f"{found.log_dir}/{found.path} is a replica's directory: {clash_with_tier(partition)}"
            )


def _stage(replica: Replica, evidence: str, now_ms: int, due_ms: int) -> Stage:
    topic_id = "" if replica.topic_id is None else str(replica.topic_id)
    topic, partition = replica.partition.topic, replica.partition.partition
    return Stage(0, replica.path, topic, partition, topic_id, VERDICT, evidence, now_ms, due_ms)


def is_in(topic: str, namespace: str) -> bool:
    """Whether a topic is in a namespace, or in one below it."""
    return topic.startswith(f"{namespace}{NAMESPACE_SEPARATOR}")


def _existing(names: list[str]) -> str:
    return f"there are {first_few(names)}" if names else "there is none"
