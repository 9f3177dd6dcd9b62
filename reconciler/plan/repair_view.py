"""What a repair plan looks at: the rows of some scans that may need repair, and counts over all the others.

One pass over every row; only those that something may be wrong with are kept as objects, so that a broker with 100,000
replicas costs no more than its rows do. Nothing is decided here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from layout import checkpoint, partition_metadata
from layout.scheme import Scheme
from logstore.rows import Kind, MetadataState
from reconciler.desired import BrokerKey, DesiredState
from reconciler.text import json_objects
from reconciler.verdicts import Row, broker_of

if TYPE_CHECKING:
    from logstore.scan import Observation

_COLUMNS = [
    *("cluster_id", "node_id", "directory_id", "log_dir", "name", "kind", "topic", "partition", "topic_id"),
    *("metadata_state", "problem", "inode", "due_ms", "end_offset"),
]
_ALWAYS = frozenset({Kind.LOG_DIR.value, Kind.CHECKPOINT_ENTRY.value, Kind.LEFTOVER.value})
_COPIES = frozenset({Kind.LIVE.value, Kind.FUTURE.value})
_ASIDE = frozenset({Kind.STRAY.value, Kind.STAGED.value})
_DAMAGED_KINDS = frozenset({Kind.FUTURE.value, Kind.STRAY.value})
_DAMAGED = frozenset(MetadataState) - {MetadataState.OK, MetadataState.MISSING, MetadataState.ABSENT}
_TEMPORARY = ".tmp"


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
            for row in json_objects(seen.rows.select(_COLUMNS)):
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
        elif kind in _ASIDE and partition is not None:
            self.aside.add((broker, topic_id, partition))


def _topic_ids(state: DesiredState) -> dict[str, str]:
    names, ids = (state.topics.column(name).to_pylist() for name in ("topic", "topic_id"))
    return {name: topic_id for name, topic_id in zip(names, ids, strict=True) if topic_id}
