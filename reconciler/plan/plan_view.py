"""What a plan looks at: the log dirs of some brokers, their rows, and how the case table judges each. Decides nothing.

Rows keep the path of their log dir as the system has it, not as text that can be shown. What lies in a log dir that
cannot be trusted is left out, and is in no plan. Source: DESIGN §3.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from layout.scheme import Scheme
from logstore.rows import Kind, MetadataState
from reconciler.desired import BrokerKey, DesiredState, by_cluster
from reconciler.errors import RefusedError
from reconciler.text import json_objects
from reconciler.verdicts import Judged, Row, broker_of, compare

if TYPE_CHECKING:
    from logstore.scan import Observation

_COLUMNS = [
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
            own = [row | {"log_dir": seen.log_dir} for row in json_objects(seen.rows.select(_COLUMNS))]
            path = seen.log_dir
            view.log_dirs[path] = found = ScannedLogDir(path, own[0], known, aside.staging.get(path, path))
            # Of a log dir that is not what it should be, only its own row is judged: nothing in it is known.
            rows[found.broker.cluster] += own if found.can_be_trusted else own[:1]
            if found.can_be_trusted:
                view.live[found.broker] += sum(row["kind"] == Kind.LIVE for row in own)
        clusters = {log_dir.broker.cluster for log_dir in view.log_dirs.values()} - {""}
        view.states = _by_cluster(states, clusters, any_cluster=any_cluster)
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


def _by_cluster(states: Sequence[DesiredState], clusters: set[str], *, any_cluster: bool) -> dict[str, DesiredState]:
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
