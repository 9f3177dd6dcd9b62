"""What a plan looks at: the log dirs of some brokers, their rows, and how the case table judges each. Decides nothing.

Rows keep the path of their log dir as the system has it, not as text that can be shown. What lies in a log dir that
cannot be trusted is left out, and is in no plan. Source: DESIGN §3.

What a repair plan looks at: the rows of some scans that may need repair, and counts over all the others.

One pass over every row; only those that something may be wrong with are kept as objects, so that a broker with 100,000
replicas costs no more than its rows do. Nothing is decided here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from layout import checkpoint, partition_metadata
from layout.errors import DamagedFileError
from layout.scheme import Scheme
from logstore.rows import Kind, MetadataState
from reconciler.desired import BrokerKey, DesiredState, by_cluster
from reconciler.errors import RefusedError
from reconciler.text import json_objects
from reconciler.verdicts import Judged, Row, broker_of, compare

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
        row: of the log dir itself.
        scheme: how it is laid out when it is ours; None for a real broker's.
        staging: path of its staging root.
    """

    path: str
    row: Row
    scheme: Scheme | None
    staging: str

    @property
    def can_be_trusted(self) -> bool:
        """It is there, it is what it should be, and it says whose it is."""
        return self.row["metadata_state"] == MetadataState.OK and self.row["node_id"] is not None

    @property
    def broker(self) -> BrokerKey:
        """Whose it is."""
        return broker_of(self.row)


@dataclass(frozen=True, slots=True)
class StagingFacts:
    """What is to be known of places for staged replicas, and is no row of a scan.

    Attributes:
        staging: path of the staging root by path of the log dir; one that is missing shows as the log dir itself.
        recorded: log dir and name of strays that carry a record.
    """

    staging: Mapping[str, str] = field(default_factory=dict)
    recorded: frozenset[tuple[str, str]] = frozenset()


@dataclass(slots=True)
class PlanView:
    """See the module's docstring; :meth:`of` makes one."""

    log_dirs: dict[str, ScannedLogDir] = field(default_factory=dict)
    states: dict[str, DesiredState] = field(default_factory=dict)
    """By the cluster that each speaks for."""
    judged_of: dict[str, list[Judged]] = field(default_factory=dict)
    """By cluster, for a replica that is missing has no row that would name one."""
    recorded: frozenset[tuple[str, str]] = frozenset()
    """Log dir and name of strays that were given a due time before."""
    live: Counter[BrokerKey] = field(default_factory=Counter)
    """Live replicas of each broker, on log dirs that can be trusted."""

    @classmethod
    def of(
        cls,
        observations: Sequence[Observation],
        aside: StagingFacts,
        states: Sequence[DesiredState],
        now_ms: int,
        *,
        any_cluster: bool = False,
    ) -> PlanView:
        """Go over the rows, and judge each.

        Args:
            observations: all the log dirs of one broker or of several, each once, with sizes.
            aside: where their replicas are staged, and which strays have a record.
            states: what the metadata sources said.
            now_ms: in ms since 1970.
            any_cluster: metadata of another cluster is taken for that of the one cluster whose log dirs were given.

        Raises:
            RefusedError: metadata and log dirs cannot be put together.
        """
        view = cls(recorded=aside.recorded)
        rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for seen in observations:
            scheme = None if seen.identity is None else seen.identity.scheme
            known = next((each for each in Scheme if each == scheme), None)
            own = [row | {"log_dir": seen.log_dir} for row in json_objects(seen.rows.select(_PLAN_COLUMNS))]
            path = seen.log_dir
            view.log_dirs[path] = found = ScannedLogDir(path, own[0], known, aside.staging.get(path, path))
            # Of a log dir that is not what it should be, only its own row is judged: nothing in it is known.
            rows[found.broker.cluster] += own if found.can_be_trusted else own[:1]
            if found.can_be_trusted:
                view.live[found.broker] += sum(row["kind"] == Kind.LIVE for row in own)
        clusters = {log_dir.broker.cluster for log_dir in view.log_dirs.values()} - {""}
        view.states = _states_by_cluster(states, clusters, any_cluster=any_cluster)
        for cluster, found_there in rows.items():
            speaking = {cluster: view.states[cluster]} if cluster in view.states else {}
            view.judged_of[cluster] = list(compare(speaking, found_there, now_ms))
        return view

    @property
    def judged(self) -> list[Judged]:
        """Everything that was judged, cluster by cluster."""
        return [judged for found in self.judged_of.values() for judged in found]

    @property
    def trusted(self) -> list[ScannedLogDir]:
        """Log dirs in which something may be done."""
        return [log_dir for log_dir in self.log_dirs.values() if log_dir.can_be_trusted]


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
    *("metadata_state", "problem", "inode", "due_ms", "end_offset"),
]
_ALWAYS = frozenset({Kind.LOG_DIR.value, Kind.CHECKPOINT_ENTRY.value, Kind.LEFTOVER.value})
_COPIES = frozenset({Kind.LIVE.value, Kind.FUTURE.value})
_STAGED_KINDS = frozenset({Kind.STRAY.value, Kind.STAGED.value})
_DAMAGED_KINDS = frozenset({Kind.FUTURE.value, Kind.STRAY.value})
_DAMAGED = frozenset(MetadataState) - {MetadataState.OK, MetadataState.MISSING, MetadataState.ABSENT}
_TEMPORARY = ".tmp"

Files = Mapping[tuple[str, str], bytes | None]
"""(log dir, path below it) → bytes; None: missing; left out: not readable."""


@dataclass(frozen=True, slots=True)
class RepairableLogDir:
    """One log dir that was scanned: its row, how it is laid out, and what has a directory in it."""

    path: str
    row: Row
    scheme: Scheme | None
    held: frozenset[tuple[str | None, int | None]]
    foreign: frozenset[str]

    @property
    def can_be_trusted(self) -> bool:
        """It is there, it is what it should be, and it says whose it is."""
        return self.row["metadata_state"] == MetadataState.OK and self.row["node_id"] is not None


@dataclass(slots=True)
class RepairView:
    """See the module's docstring; :meth:`of` makes one."""

    log_dirs: dict[str, RepairableLogDir] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Log dirs, what is wrong in them, and live replicas that something may be wrong with."""
    ids_of_topic: dict[tuple[BrokerKey, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Topic IDs that live and future replicas of a topic hold, each in a file that is in order."""
    topics_of_id: dict[tuple[BrokerKey, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    aside: set[tuple[BrokerKey, str, int]] = field(default_factory=set)
    """Replicas by topic ID that lie aside, as stray or staged."""
    copies: Counter[tuple[BrokerKey, str, int]] = field(default_factory=Counter)
    """Live directories of each replica."""
    with_ids: set[BrokerKey] = field(default_factory=set)
    """Brokers that keep topic IDs at all."""

    @classmethod
    def of(
        cls, observations: Sequence[Observation], states: Mapping[str, DesiredState], adopted: Collection[str]
    ) -> RepairView:
        """Go over the rows.

        Args:
            observations: all the log dirs of one broker or of several, each once.
            states: by cluster, as :func:`reconciler.desired.by_cluster` gives them.
            adopted: topics whose live replicas are all looked at.
        """
        view = cls()
        ids = {cluster: _topic_ids(state) for cluster, state in states.items()}
        names = {cluster: {topic_id: topic for topic, topic_id in known.items()} for cluster, known in ids.items()}
        usual: list[dict[str, Any]] = []
        for seen in observations:
            held, foreign = set(), set()
            scheme = None if seen.identity is None else seen.identity.scheme
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
                    (view.rows if odd or row["topic"] in adopted else usual).append(row)
                if kind == Kind.LOG_DIR:
                    head = row
            known_scheme = next((each for each in Scheme if each == scheme), None)
            view.log_dirs[seen.log_dir] = RepairableLogDir(
                seen.log_dir, head, known_scheme, frozenset(held), frozenset(foreign)
            )
        view.rows += [row for row in usual if view.copies_of(row) > 1]
        # Directories are listed in no order that means anything; the same disks give the same plan.
        places = {path: number for number, path in enumerate(view.log_dirs)}
        view.rows.sort(key=lambda row: (places[row["log_dir"]], row["name"], row["topic"] or "", row["partition"] or 0))
        return view

    def copies_of(self, row: Row) -> int:
        """How many live directories of its broker are of the same replica; those of unknown brokers stand alone."""
        broker = broker_of(row)
        return self.copies[broker, row["topic"], row["partition"]] if broker.node >= 0 else 1

    def files_wanted(self, adopted: Collection[str]) -> Iterator[tuple[str, str]]:
        """The files that a plan hangs on, by (log dir, path); each once."""
        return iter(dict.fromkeys(self._files(adopted)))

    def _files(self, adopted: Collection[str]) -> Iterator[tuple[str, str]]:
        for row in self.rows:
            log_dir, name = row["log_dir"], row["name"]
            if not self.log_dirs[log_dir].can_be_trusted:
                continue
            if row["kind"] == Kind.LIVE:
                damaged = row["metadata_state"] != MetadataState.OK
                if damaged or row["topic"] in adopted or self.copies_of(row) > 1:
                    yield log_dir, f"{name}/{partition_metadata.FILE_NAME}"
                    yield log_dir, f"{name}/{checkpoint.LEADER_EPOCH_CHECKPOINT}"
            elif row["kind"] == Kind.CHECKPOINT_ENTRY:
                yield log_dir, name
            elif row["kind"] == Kind.LEFTOVER:
                yield log_dir, name
                yield log_dir, name.removesuffix(_TEMPORARY)

    def _count(self, row: Row, broker: BrokerKey) -> None:
        kind, topic, partition, topic_id = row["kind"], row["topic"], row["partition"], row["topic_id"]
        if kind == Kind.LIVE and topic is not None:
            self.copies[broker, topic, partition] += 1
        if topic_id is None:
            return
        if kind in _COPIES and topic is not None and row["metadata_state"] == MetadataState.OK:
            self.ids_of_topic[broker, topic][topic_id] += 1
            self.topics_of_id[broker, topic_id].add(topic)
            self.with_ids.add(broker)
        elif kind in _STAGED_KINDS and partition is not None:
            self.aside.add((broker, topic_id, partition))


def _topic_ids(state: DesiredState) -> dict[str, str]:
    names, ids = (state.topics.column(name).to_pylist() for name in ("topic", "topic_id"))
    return {name: topic_id for name, topic_id in zip(names, ids, strict=True) if topic_id}


def last_epoch(row: Row, files: Files) -> int | None:
    """The last leader epoch of a partition dir; -1: it has none; None: that cannot be told."""
    place = (row["log_dir"], f"{row['name']}/{checkpoint.LEADER_EPOCH_CHECKPOINT}")
    if place not in files:
        return None
    try:
        entries = checkpoint.parse_leader_epochs(files[place] or b"")
    except DamagedFileError:
        return None
    return entries[-1][0] if entries else -1
