"""The evidence that plans are made from: log dirs, their rows, and the verdicts of the case table. Decides nothing.

:class:`PlanView` is the evidence of a plan. It judges every row, and looks up since when each
unwanted replica lies there. Rows keep the path of their log dir as the system has it, not as text that can be shown.
The contents of a log dir that cannot be trusted are left out of every plan.

:class:`RepairView` is the evidence of a plan of repairs. It reads every row once and keeps only rows that may need
repair, so that 100,000 replicas in order take little memory. All other rows are only counted. Source: DESIGN §3.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from layout import checkpoint, meta_properties, partition_metadata
from layout.errors import DamagedFileError
from layout.ours import BROKER_TEMPORARY
from layout.scheme import Scheme
from logstore.repair import read_files
from logstore.rows import Kind, MetadataState
from logstore.scan import replica_created_ms
from reconciler.desired import BrokerKey, DesiredState, by_cluster
from reconciler.errors import RefusedError
from reconciler.plan.plan import PlannedLogDir
from reconciler.text import json_objects
from reconciler.verdicts import UNWANTED, Judged, Neighbours, Row, Verdict, broker_of, compare

if TYPE_CHECKING:
    from logstore.scan import Observation


_PLAN_COLUMNS = [
    *("cluster_id", "node_id", "directory_id", "log_dir", "name", "kind", "topic", "partition", "topic_id"),
    *("metadata_state", "problem", "bytes", "disk_bytes", "modified_ms", "inode", "due_ms"),
]


@dataclass(frozen=True, slots=True)
class ScannedLogDir:
    """One log dir that was scanned.

    Attributes:
        path: as the system has it.
        row: the row of the log dir itself.
        scheme: the layout of a log dir of ours; None for a real broker's.
        staging: path of its staging root; None: not looked for, as no repair needs it.
        newest_ms: newest time of change of a file of its directories, or of those in its root that a broker writes
            anew, in ms since 1970; None: not known.
        held: topic and partition of every live or future directory; only repairs need it.
        foreign: names of entries that no rule knows; only repairs need it.
    """

    path: str
    row: Row
    scheme: Scheme | None
    staging: str | None
    newest_ms: int | None = None
    held: frozenset[tuple[str | None, int | None]] = frozenset()
    foreign: frozenset[str] = frozenset()

    @property
    def can_be_trusted(self) -> bool:
        """Whether the log dir is there, is in order, and names its broker."""
        return self.row["metadata_state"] == MetadataState.OK and self.row["node_id"] is not None

    @property
    def broker(self) -> BrokerKey:
        """Cluster and number of the broker that owns the log dir."""
        return broker_of(self.row)

    @property
    def planned(self) -> PlannedLogDir:
        """What a plan says of it."""
        row = self.row
        return PlannedLogDir(self.path, row["cluster_id"], row["node_id"], row["directory_id"], self.staging)


def copied_log_dirs(log_dirs: Iterable[ScannedLogDir]) -> Iterator[tuple[ScannedLogDir, str]]:
    """Find log dirs under whose directory.id another one of the broker was given before, each with a clause of why.

    Nothing changes either of them: an operator says which is the copy by leaving it out.
    """
    first_with: dict[tuple[BrokerKey, str], str] = {}
    for log_dir in log_dirs:
        directory_id = log_dir.row["directory_id"]
        if directory_id is None or not log_dir.can_be_trusted:
            continue
        first = first_with.setdefault((log_dir.broker, directory_id), log_dir.path)
        if first != log_dir.path:
            yield (
                log_dir,
                f"its directory.id {directory_id} is that of {first}, so one of them is a copy, and no plan for both "
                "can be applied: leave the copy out",
            )


@dataclass(slots=True)
class PlanView:
    """The log dirs of some brokers, and all their rows as the case table judges them; :meth:`of` makes one."""

    log_dirs: dict[str, ScannedLogDir] = field(default_factory=dict)
    states: dict[str, DesiredState] = field(default_factory=dict)
    """Desired states by cluster."""
    judged_of: dict[str, list[Judged]] = field(default_factory=dict)
    """By cluster, because a missing replica has no row that would name its cluster."""
    live: Counter[BrokerKey] = field(default_factory=Counter)
    """Number of live replicas of each broker, on log dirs that can be trusted."""
    created: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Log dir and name of replicas that may be staged → since when they lie there, in ms since 1970, where known."""
    epochs: Mapping[tuple[str, str], int | None] = field(default_factory=dict)
    """Log dir and name of replicas without topic ID → their last leader epoch; -1: none; None: not known."""
    elsewhere: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Log dir and name of what could come back → why it may be live in a log dir of its broker that was not given."""

    @classmethod
    def of(
        cls,
        observations: Sequence[Observation],
        staging: Mapping[str, str],
        states: Sequence[DesiredState],
        now_ms: int,
        *,
        any_cluster: bool = False,
    ) -> PlanView:
        """Judge every row.

        Args:
            observations: all the log dirs of one broker or of several, each once, with sizes.
            staging: path of a log dir → path of its staging root; left out: the log dir itself.
            states: the desired states of the metadata sources.
            now_ms: in ms since 1970.
            any_cluster: treat metadata of another cluster as metadata of the one cluster whose log dirs were given.

        Raises:
            RefusedError: metadata and log dirs do not belong together.
        """
        view = cls()
        rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for seen in observations:
            own = [row | {"log_dir": seen.log_dir} for row in json_objects(seen.rows.select(_PLAN_COLUMNS))]
            path = seen.log_dir
            times = [*(row["modified_ms"] for row in own if row["modified_ms"] is not None), *_rewritten(path)]
            newest_ms = max(times, default=None)
            found = ScannedLogDir(path, own[0], _scheme_of(seen), staging.get(path, path), newest_ms)
            view.log_dirs[path] = found
            # The contents of a log dir that cannot be trusted are unknown, so only its own row is judged.
            rows[found.broker.cluster] += own if found.can_be_trusted else own[:1]
            if found.can_be_trusted:
                view.live[found.broker] += sum(row["kind"] == Kind.LIVE for row in own)
        clusters = {log_dir.broker.cluster for log_dir in view.log_dirs.values()} - {""}
        view.states = _states_by_cluster(states, clusters, any_cluster=any_cluster)
        for cluster, found_there in rows.items():
            speaking = {cluster: view.states[cluster]} if cluster in view.states else {}
            view.judged_of[cluster] = list(compare(speaking, found_there, now_ms))
        view.created = {
            (row["log_dir"], row["name"]): created_ms
            for row in (each.observed for each in view.judged if each.verdict in UNWANTED)
            if row is not None and (created_ms := replica_created_ms(row["log_dir"], row["name"])) is not None
        }
        bare = [each.observed for each in view.judged if each.verdict is Verdict.NO_ID and each.observed is not None]
        files = read_files((row["log_dir"], f"{row['name']}/{checkpoint.LEADER_EPOCH_CHECKPOINT}") for row in bare)
        view.epochs = {(row["log_dir"], row["name"]): last_epoch(row, files) for row in bare}
        return view

    @property
    def judged(self) -> list[Judged]:
        """All judged rows, cluster by cluster."""
        return [judged for found in self.judged_of.values() for judged in found]

    @property
    def trusted(self) -> list[ScannedLogDir]:
        """Log dirs that actions may change."""
        return [log_dir for log_dir in self.log_dirs.values() if log_dir.can_be_trusted]


_REWRITTEN = (meta_properties.FILE_NAME, *checkpoint.OFFSET_CHECKPOINTS)
"""Files in the root of a log dir; a running broker writes most of them anew each minute."""


def _rewritten(log_dir: str) -> Iterator[int]:
    """Yield when each of them was written, in ms since 1970; what cannot be looked at has its own finding."""
    for name in _REWRITTEN:
        with suppress(OSError):
            yield os.lstat(f"{log_dir}/{name}").st_mtime_ns // 1_000_000


def _scheme_of(seen: Observation) -> Scheme | None:
    scheme = None if seen.identity is None else seen.identity.scheme
    return next((each for each in Scheme if each == scheme), None)


def _states_by_cluster(
    states: Sequence[DesiredState], clusters: set[str], *, any_cluster: bool
) -> dict[str, DesiredState]:
    strangers = [state for state in states if state.identity.cluster_id not in {None, *clusters}]
    if not strangers:
        return by_cluster(states, clusters)
    if any_cluster and len(states) == 1 and len(clusters) == 1:
        identity = replace(states[0].identity, cluster_id=None)
        return by_cluster([replace(states[0], identity=identity)], clusters)
    try:
        return by_cluster(states, clusters)
    except RefusedError as error:
        raise RefusedError(f"{error} (override: --allow cluster)") from error


_REPAIR_COLUMNS = [
    *("cluster_id", "node_id", "directory_id", "log_dir", "name", "kind", "topic", "partition", "topic_id"),
    *("metadata_state", "problem", "inode", "due_ms", "end_offset", "bytes", "modified_ms"),
]
_ALWAYS = frozenset({Kind.LOG_DIR.value, Kind.CHECKPOINT_ENTRY.value, Kind.LEFTOVER.value})
_COPIES = frozenset({Kind.LIVE.value, Kind.FUTURE.value})
_STAGED_KINDS = frozenset({Kind.STRAY.value, Kind.STAGED.value})
_DAMAGED_KINDS = frozenset({Kind.FUTURE.value, Kind.STRAY.value, Kind.STAGED.value})
_DAMAGED = frozenset(MetadataState) - {MetadataState.OK, MetadataState.MISSING, MetadataState.ABSENT}

Files = Mapping[tuple[str, str], bytes | None]
"""Log dir and path below it → contents; None: the file is missing; left out: it cannot be read."""


@dataclass(slots=True)
class RepairView:
    """The rows of some brokers that may need repair, judged, and counts over all others; :meth:`of` makes one."""

    states: Mapping[str, DesiredState] = field(default_factory=dict)
    """Desired states by cluster."""
    judged: list[Judged] = field(default_factory=list)
    """The rows of log dirs that can be trusted, as the case table judges them."""
    files: Files = field(default_factory=dict)
    """Contents of the files that a repair of these rows depends on."""
    created: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Log dir and name of each replica that is live twice → since when it lies there, in ms since 1970, where known."""
    log_dirs: dict[str, ScannedLogDir] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Rows of log dirs, of damage in them, and of live replicas that may need repair."""
    ids_of_topic: dict[tuple[BrokerKey, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Broker and topic → topic IDs in intact files of live and future replicas, with their number."""
    topics_of_id: dict[tuple[BrokerKey, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    staged: set[tuple[BrokerKey, str, int]] = field(default_factory=set)
    """Broker, topic ID and partition of stray and staged replicas."""
    copies: Counter[tuple[BrokerKey, str, int]] = field(default_factory=Counter)
    """Number of live directories of each replica."""
    with_ids: set[BrokerKey] = field(default_factory=set)
    """Brokers with a topic ID in at least one file."""
    on_kraft: set[BrokerKey] = field(default_factory=set)
    """Brokers whose ``meta.properties`` is of KRaft mode."""
    number: Counter[BrokerKey] = field(default_factory=Counter)
    """Number of live directories of each broker."""
    without_file: Counter[BrokerKey] = field(default_factory=Counter)
    """Number of those without ``partition.metadata``."""

    @classmethod
    def of(
        cls,
        observations: Sequence[Observation],
        states: Mapping[str, DesiredState],
        adopted: Collection[str],
        now_ms: int,
    ) -> RepairView:
        """Read every row, keep and judge those that may need repair, and read the files that it depends on.

        Args:
            observations: all the log dirs of one broker or of several, each once.
            states: by cluster, as :func:`reconciler.desired.by_cluster` gives them.
            adopted: topics of which every live replica is kept.
            now_ms: in ms since 1970.
        """
        view = cls(states)
        ids = {cluster: _topic_ids(state) for cluster, state in states.items()}
        names = {cluster: {topic_id: topic for topic, topic_id in known.items()} for cluster, known in ids.items()}
        in_order: list[dict[str, Any]] = []
        for seen in observations:
            held, foreign = set(), set()
            for row in json_objects(seen.rows.select(_REPAIR_COLUMNS)):
                row["log_dir"] = seen.log_dir
                kind, broker = row["kind"], broker_of(row)
                if kind == Kind.LIVE and row["topic"] is None and row["topic_id"] is not None:
                    # Under the by-topic-id scheme only the file names the topic; the ID is in the directory's name.
                    row["topic"] = names.get(broker.cluster, {}).get(row["topic_id"])
                view._count(row, broker)
                if kind in _COPIES:
                    held.add((row["topic"], row["partition"]))
                elif kind == Kind.FOREIGN:
                    foreign.add(row["name"])
                if kind in _ALWAYS or (kind in _DAMAGED_KINDS and row["metadata_state"] in _DAMAGED):
                    view.rows.append(row)
                elif kind == Kind.LIVE:
                    known = ids.get(broker.cluster, {}).get(row["topic"])
                    odd = row["metadata_state"] != MetadataState.OK or known not in (None, row["topic_id"])
                    (view.rows if odd or row["topic"] in adopted else in_order).append(row)
                if kind == Kind.LOG_DIR:
                    head = row
                    if seen.identity is not None and seen.identity.version > 0:
                        view.on_kraft.add(broker)
            view.log_dirs[seen.log_dir] = ScannedLogDir(
                seen.log_dir, head, _scheme_of(seen), None, held=frozenset(held), foreign=frozenset(foreign)
            )
        view.rows += [row for row in in_order if view.copies_of(row) > 1]
        # Directory listings have no stable order, and the same disks must give the same plan.
        places = {path: number for number, path in enumerate(view.log_dirs)}
        view.rows.sort(key=lambda row: (places[row["log_dir"]], row["name"], row["topic"] or "", row["partition"] or 0))
        trusted = [row for row in view.rows if view.log_dirs[row["log_dir"]].can_be_trusted]
        # What is wanted and in order has no row here, so that what looks missing is left out.
        view.judged = [each for each in compare(states, trusted, now_ms) if each.observed is not None]
        view.files = read_files(dict.fromkeys(view._files(trusted, adopted)))
        view.created = {
            (row["log_dir"], row["name"]): created_ms
            for row in trusted
            if row["kind"] == Kind.LIVE
            and view.copies_of(row) > 1
            and (created_ms := replica_created_ms(row["log_dir"], row["name"])) is not None
        }
        return view

    @property
    def live(self) -> list[Judged]:
        """The live replicas that may need repair."""
        return [each for each in self.judged if each.row.kind == Kind.LIVE]

    def copies_of(self, row: Row) -> int:
        """Count the live directories of a replica on its broker; 1 where the broker is unknown."""
        broker = broker_of(row)
        return self.copies[broker, row["topic"], row["partition"]] if broker.node >= 0 else 1

    def neighbours(self, judged: Judged) -> Neighbours:
        """Count what the other replicas of a live one's broker tell about its topic ID."""
        broker, wanted = broker_of(judged.observed or {}), judged.row.wanted_topic_id
        names = self.topics_of_id.get((broker, wanted), ())
        holders = sum(self.ids_of_topic[broker, name][wanted] for name in names)
        return Neighbours(holders, broker in self.on_kraft, self.number[broker], self.without_file[broker])

    def _files(self, rows: Sequence[Row], adopted: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield log dir and path of each file that repairs of some rows depend on."""
        for row in rows:
            log_dir, name = row["log_dir"], row["name"]
            if row["kind"] == Kind.LIVE:
                damaged = row["metadata_state"] != MetadataState.OK
                if damaged or row["topic"] in adopted or self.copies_of(row) > 1:
                    yield log_dir, f"{name}/{partition_metadata.FILE_NAME}"
                    yield log_dir, f"{name}/{checkpoint.LEADER_EPOCH_CHECKPOINT}"
            elif row["kind"] == Kind.CHECKPOINT_ENTRY:
                yield log_dir, name
            elif row["kind"] == Kind.LEFTOVER:
                yield log_dir, name
                yield log_dir, name.removesuffix(BROKER_TEMPORARY)

    def _count(self, row: Row, broker: BrokerKey) -> None:
        kind, topic, partition, topic_id = row["kind"], row["topic"], row["partition"], row["topic_id"]
        if kind == Kind.LIVE and topic is not None:
            self.copies[broker, topic, partition] += 1
            self.number[broker] += 1
            self.without_file[broker] += row["metadata_state"] == MetadataState.MISSING
        if topic_id is None:
            return
        if kind in _COPIES and topic is not None and row["metadata_state"] == MetadataState.OK:
            self.ids_of_topic[broker, topic][topic_id] += 1
            self.topics_of_id[broker, topic_id].add(topic)
            self.with_ids.add(broker)
        elif kind in _STAGED_KINDS and partition is not None:
            self.staged.add((broker, topic_id, partition))


def _topic_ids(state: DesiredState) -> dict[str, str]:
    names, ids = (state.topics.column(name).to_pylist() for name in ("topic", "topic_id"))
    return {name: topic_id for name, topic_id in zip(names, ids, strict=True) if topic_id}


def last_epoch(row: Row, files: Files) -> int | None:
    """Return the last leader epoch of a partition dir; -1: it has none; None: not known."""
    place = (row["log_dir"], f"{row['name']}/{checkpoint.LEADER_EPOCH_CHECKPOINT}")
    if place not in files:
        return None
    try:
        entries = checkpoint.parse_leader_epochs(files[place] or b"")
    except DamagedFileError:
        return None
    return entries[-1][0] if entries else -1
