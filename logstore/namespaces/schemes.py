"""Plan to convert the log dirs of a store from one scheme to another: flat, namespaced, by topic ID (KIP516-12).

Each replica is renamed to its path under the new scheme, nothing is copied, and in the last step ``meta.properties``
gets the new scheme. The steps stand in an intent, so a conversion that a crash cuts short is finished at the next open.
A replica that the new scheme cannot hold is refused before anything happens::

    to flat           no replica may be in a namespace but the default one; its topic's name must be known
    to namespaced     the topic's name must be known; the tiers of its namespace are made, in every log dir
    to by-topic-id    every replica must have a topic ID, which no other topic's replica of that partition has on any
                      disk; the name goes into partition.metadata where that lacks it

Staged replicas stay where they are: the path of each is worked out anew when it is restored, and a staged replica that
could not be restored under the new scheme is refused, as is a stray that a broker left. Directories that are no
replicas are left alone, and refused where they stand in the way. A namespace without topics has no trace in the other
two schemes, so converting away from ``namespaced`` forgets it; the plan's notes say which. A real broker's log
dir is never converted: the broker reads ``flat`` alone, and only by the rules of its own release.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from layout import meta_properties
from layout.directory_name import DirectoryKind
from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.ours import MakeDirectory, RemoveDirectory, Rename, Rewrite, step_text
from layout.scheme import Scheme, check_namespace_fits, partition_path
from layout.topic import Namespace, TopicPartition, clash_with_tier, namespace_of, partition_of_tier
from logstore.errors import ChangeRefusedError, LogStoreError, NamespaceClashError, NameTakenError
from logstore.fs import read_small_file
from logstore.journal import list_namespace_dirs, namespace_at, namespace_dir, with_parents
from logstore.log_dir import META_PROPERTIES_LIMIT, FallbackRecords, LogDir
from logstore.namespaces.namespaces import check_known
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
from logstore.namespaces.rename import rewritten
from logstore.scan import list_log_dir
from logstore.staging import Placement, Staged, list_staged
from logstore.store import OpenStore, Replica


def plan_convert(store: OpenStore, scheme: Scheme) -> PlannedChange:
    """Plan to convert every log dir of a store to a scheme; a log dir that has it already is left alone.

    Raises:
        ChangeRefusedError: a log dir is a real broker's; or there are replicas that the scheme cannot hold, whose topic
            is not known, that are live in two log dirs, or that are being moved between disks; the message lists them.
        NameTakenError: something lies where a replica, a namespace directory or a prefix directory would go, or two
            replicas would lie there by one topic ID. NamespaceClashError, its subclass: a replica and a namespace would
            have one directory.
        OfflineLogDirError: a log dir is offline.
    """
    check_ours(store, "converting it")
    check_all_online(store, "converting a store")
    planner = ChangePlanner("convert", f"convert to the scheme {scheme}")
    replicas: dict[str, list[Replica]] = {log_dir.path: [] for log_dir in store.log_dirs}
    for replica in store.replicas():
        replicas[replica.log_dir].append(replica)
    check_no_duplicates(store, {replica.partition.topic for replica in store.duplicates})
    changing = [log_dir for log_dir in store.log_dirs if log_dir.scheme is not scheme]
    if changing and scheme is Scheme.BY_TOPIC_ID:
        _check_each_id_once(store.replicas())
    tiers = set[str]()
    if changing and scheme is Scheme.NAMESPACED:
        _check_no_clash(store)
        tiers = {namespace_dir(namespace) for namespace in _namespaces_in_use(store) - {""}}
    for log_dir in store.log_dirs:
        if log_dir in changing:
            with reading_log_dir(log_dir, f"{log_dir.path} cannot be converted"):
                _Conversion(log_dir, scheme, replicas[log_dir.path], tiers, store.fallback).plan(planner)
    forgotten = sorted(_namespaces_on_disk(store) - _namespaces_in_use(store))
    if forgotten and scheme is not Scheme.NAMESPACED:
        planner.notes.append(
            f"no topic is in {first_few(forgotten)}, so nothing will be left of that: the scheme {scheme} has no "
            "directories for namespaces"
        )
    return planner.planned()


def _check_each_id_once(replicas: Iterable[Replica]) -> None:
    """Refuse two replicas that a path by topic ID could not tell apart, on one disk or on two."""
    taken: dict[tuple[TopicId, int], Replica] = {}
    for replica in sorted(replicas, key=lambda each: (each.partition, each.log_dir)):
        if replica.topic_id is None:
            continue
        other = taken.setdefault((replica.topic_id, replica.partition.partition), replica)
        if other is not replica:
            path = partition_path(Scheme.BY_TOPIC_ID, replica.partition, replica.topic_id)
            raise NameTakenError(
                f"{other.log_dir}/{other.path} and {replica.log_dir}/{replica.path} would both become {path}: one "
                "topic ID is of one topic, so stage the one that is not wanted first"
            )


def _check_no_clash(store: OpenStore) -> None:
    """Refuse a replica and a namespace that would have one directory, on one disk or on two (KIP37-2)."""
    entries = store.entries()
    tiers = _namespaces_in_use(store) | _namespaces_on_disk(store)
    partitions = [each for each in map(partition_of_tier, sorted(tiers - {""})) if each is not None]
    clashes = [f"{each} ({clash_with_tier(each)})" for each in partitions if (each.topic, each.partition) in entries]
    if clashes:
        raise NamespaceClashError(
            f"the store cannot be converted to {Scheme.NAMESPACED}, because these names are taken: {first_few(clashes)}"
        )


def _namespaces_on_disk(store: OpenStore) -> set[str]:
    return {namespace_at(path) for log_dir in store.log_dirs for path in list_namespace_dirs(log_dir)}


def _namespaces_in_use(store: OpenStore) -> set[str]:
    topics = {replica.partition.topic for replica in store.replicas()}
    return {namespace_at(path) for path in with_parents(namespace_dir(namespace_of(topic)) for topic in topics)}


@dataclass(frozen=True, slots=True)
class _Conversion:
    """The conversion of one log dir."""

    log_dir: LogDir
    scheme: Scheme
    replicas: list[Replica]
    tiers: set[str]
    """The namespace directories of the whole store: a replica may be created in any of its log dirs."""
    fallback: FallbackRecords

    def plan(self, planner: ChangePlanner) -> None:
        """Add the steps. Raises as :func:`plan_convert`, and OSError."""
        self._check_all_known()
        targets = self._targets()
        renames = [(replica, path) for replica, path in targets if replica.path != path]
        made = self._made_directories(targets)
        gone = self._gone_directories()
        self._check_free(made, [path for _, path in renames])
        check_known(self.log_dir, gone, {replica.path for replica, _ in renames})
        by_id, tiers = self.scheme is Scheme.BY_TOPIC_ID, self.scheme is Scheme.NAMESPACED
        planner.add(self.log_dir, *(MakeDirectory(0, path, tiers) for path in made))
        planner.add(self.log_dir, *(Rename(0, replica.path, path) for replica, path in renames))
        for replica, path in targets if by_id else ():
            planner.add(self.log_dir, *rewritten(self.log_dir, replica, replica.partition, path, always=True))
        had_tiers = self.log_dir.scheme is Scheme.NAMESPACED
        for staged in self._staged():
            planner.add(self.log_dir, *(self._named(staged) if by_id else ()))
        planner.add(self.log_dir, *(RemoveDirectory(0, path, had_tiers) for path in gone))
        planner.add(self.log_dir, self._new_identity())
        planner.replicas += [(replica, moved_replica(replica, replica.partition, path)) for replica, path in targets]

    def _targets(self) -> list[tuple[Replica, str]]:
        """Work out the path of each replica under the new scheme."""
        targets, problems = [], []
        for replica in sorted(self.replicas, key=lambda each: each.partition):
            try:
                targets.append((replica, partition_path(self.scheme, replica.partition, replica.topic_id)))
            except InvalidNameError as error:
                problems.append(f"{replica.path} ({error})")
        if problems:
            raise ChangeRefusedError(
                f"{self.log_dir.path} cannot be converted to {self.scheme}, because it cannot hold {len(problems)} of "
                f"{len(self.replicas)} replicas: {first_few(problems)}"
            )
        return targets

    def _staged(self) -> list[Staged]:
        """List what is staged, once it is sure that all of it can be restored under the new scheme."""
        found = list_staged(self.log_dir, self.fallback)
        problems = []
        for staged in found:
            if staged.placement is Placement.IN_PLACE:
                problems.append(f"{staged.location} (a stray has its place under the scheme flat alone)")
            elif staged.record is not None:
                topic_id = None if staged.record.topic_id.is_zero else staged.record.topic_id
                try:
                    partition_path(self.scheme, TopicPartition(staged.record.topic, staged.record.partition), topic_id)
                except InvalidNameError as error:
                    problems.append(f"{staged.location} ({error})")
        if problems:
            raise ChangeRefusedError(
                f"{self.log_dir.path} cannot be converted to {self.scheme}, because what is staged could not come back "
                f"there: {first_few(problems)}; restore or purge it first, or move it out: 'logstore doctor' says which"
            )
        return found

    def _named(self, staged: Staged) -> list[Rewrite]:
        """Plan to write the topic's name into a staged replica, because its restored path will not hold the name."""
        if staged.record is None:
            return []
        partition = TopicPartition(staged.record.topic, staged.record.partition)
        lies = Replica(partition, staged.topic_id, self.log_dir.path, staged.location, "", staged.inode)
        return rewritten(self.log_dir, lies, partition, staged.location, always=True)

    def _check_all_known(self) -> None:
        """Make sure that the store knows the name of every live replica, and that no replica is being moved."""
        known = {replica.path for replica in self.replicas}
        unknown, moving = [], []
        for place in list_log_dir(self.log_dir.path, self.log_dir.scheme).places:
            for name in place.names:
                kind, path = place.parse(name).kind, place.prefix + name
                if kind is DirectoryKind.LIVE and path not in known:
                    unknown.append(path)
                elif kind is DirectoryKind.FUTURE:
                    moving.append(path)
        if unknown:
            raise ChangeRefusedError(
                f"{self.log_dir.path} cannot be converted: nothing says of which topic these are: "
                f"{first_few(sorted(unknown))}; stage or repair them first"
            )
        if moving:
            raise ChangeRefusedError(
                f"{self.log_dir.path} cannot be converted while replicas are on their way between disks: "
                f"{first_few(sorted(moving))}"
            )

    def _made_directories(self, targets: Iterable[tuple[Replica, str]]) -> list[str]:
        """List the namespace or prefix directories that the replicas will lie in, here or in another log dir."""
        folders = {path.rpartition("/")[0] for _, path in targets} - {""} | self.tiers
        if self.scheme is Scheme.NAMESPACED:
            for folder in folders:
                check_namespace_fits(self.log_dir.path, Namespace.parse(namespace_at(folder)))
        return with_parents(folders)

    def _gone_directories(self) -> list[str]:
        """List the namespace or prefix directories that will be empty, children before their parents."""
        if self.log_dir.scheme is Scheme.BY_TOPIC_ID:
            return sorted(
                name for name, is_directory in self.log_dir.root.entries() if is_directory and _is_prefix(name)
            )
        return list_namespace_dirs(self.log_dir)[::-1]

    def _check_free(self, made: list[str], paths: list[str]) -> None:
        """Make sure that every new path is free; paths below a directory that is still to be made always are."""
        root = {name for name, _ in self.log_dir.root.entries()}
        tops = {path for path in (*made, *paths) if "/" not in path}
        in_the_way = sorted(root & tops) + sorted(set(made) & set(paths))
        if in_the_way:
            raise NameTakenError(
                f"{self.log_dir.path} cannot be converted to {self.scheme}, because these names are taken: "
                f"{first_few(in_the_way)}"
            )

    def _new_identity(self) -> Rewrite:
        """Plan to write the new scheme into ``meta.properties``; the date in its second line stays."""
        try:
            old = read_small_file(meta_properties.FILE_NAME, META_PROPERTIES_LIMIT, self.log_dir.root.descriptor) or b""
        except LogStoreError as error:
            raise ChangeRefusedError(f"{self.log_dir.path}: {meta_properties.FILE_NAME} {error}") from error
        lines = step_text(old).split("\n")
        date = lines[1][1:] if len(lines) > 1 and lines[1].startswith("#") else ""
        identity = replace(meta_properties.parse(old), scheme=self.scheme.value)
        new = meta_properties.encode(identity, date)
        return Rewrite(0, meta_properties.FILE_NAME, step_text(old), step_text(new))


def _is_prefix(name: str) -> bool:
    """Whether a name is that of a prefix directory of the by-topic-id scheme (``layout.directory_name``)."""
    return len(name) == 2 and not set(name) - set("0123456789abcdef")
