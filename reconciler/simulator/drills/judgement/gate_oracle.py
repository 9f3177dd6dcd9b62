"""Says which gates refuse a plan, from the drawn premises alone, in other words than the gates' own.

The engine gathers facts into tables and asks each gate of them. Here each gate is one question to the plain values that
were drawn. Source: DESIGN §6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from reconciler.desired import BrokerKey
from reconciler.plan import Gate, Policy
from reconciler.simulator.drills.judgement.drawn import CLUSTER, NOW_MS, DrawnLogDir
from reconciler.simulator.drills.judgement.premises import Premises
from reconciler.simulator.drills.judgement.verdict_oracle import UNWANTED, VerdictOracle, broker
from reconciler.verdicts import Verdict

_SKEW_MS, _TOLERANCE_MS = 2_000, 60_000
_TELLING: Final = 12

Rows = Sequence[Mapping[str, Any]]


class GateOracle:
    """Judges the premises of one plan.

    Args:
        premises: of the plan.
        verdicts: of the same drawn cluster.
        staged: the rows that the plan stages, live ones and strays.
        changed: the brokers in whose log dirs it does anything.
    """

    def __init__(self, premises: Premises, verdicts: VerdictOracle, staged: Rows, changed: set[BrokerKey]) -> None:
        self._premises, self._metadata = premises, premises.drawn.metadata
        self._identity, self._verdicts = self._metadata.identity, verdicts.of_rows()
        self._staged, self._changed = staged, changed
        self._sound = [each for each in premises.drawn.log_dirs if each.is_sound]
        self._live = [row for row in verdicts.rows if row["kind"] == "live"]

    def refused(self, policy: Policy) -> set[Gate]:
        """Name the gates that refuse the plan."""
        shut = {gate for gate, is_shut in _GATES.items() if is_shut(self)}
        shut |= self._shut_by_numbers(policy)
        return shut - policy.allowed | ({Gate.LOG_DIR} if self._is_copied() else set())

    def _shut_by_numbers(self, policy: Policy) -> set[Gate]:
        shut, as_of_ms = set[Gate](), self._identity.timestamp_ms
        given = not self._premises.no_metadata
        if given and as_of_ms is not None and policy.oldest_ms is not None and as_of_ms + policy.oldest_ms < NOW_MS:
            shut.add(Gate.AGE)
        if given and self._premises.before is not None and policy.most_shrink is not None:
            now = (
                len(self._metadata.ids),
                sum(len({*at.replicas, *at.moving}) for at in self._metadata.assigned.values()),
            )
            lost = [(old - new) / old for old, new in zip(self._premises.before, now, strict=True) if old]
            if any(each > policy.most_shrink + 1e-9 for each in lost):
                shut.add(Gate.SHRUNK)
        for each in {broker(row) for row in self._staged if row["kind"] == "live"}:
            own = [row for row in self._live if broker(row) == each]
            unwanted = sum(self._verdict(row) in UNWANTED for row in own)
            if policy.most_share is not None and unwanted > policy.most_share * len(own) + 1e-9:
                shut.add(Gate.SHARE)
            if policy.most_count is not None and unwanted > policy.most_count:
                shut.add(Gate.COUNT)
        return shut

    def _verdict(self, row: Mapping[str, Any]) -> Verdict:
        return self._verdicts[row["log_dir"], row["name"]].verdict

    def _lacks_cluster(self) -> bool:
        if self._premises.no_metadata:
            return False
        return self._identity.cluster_id is None or any(each.broker.cluster != CLUSTER for each in self._sound)

    def _lacks_broker(self) -> bool:
        scope, known = self._identity.scope, {*self._metadata.brokers}
        known |= {node for at in self._metadata.assigned.values() for node in (*at.replicas, *at.moving)}
        own = {each.broker.node for each in self._sound if each.broker.cluster == CLUSTER}
        is_left_out = scope is not None and bool(own - scope)
        return not self._premises.no_metadata and (is_left_out or (bool(self._metadata.ids) and bool(own - known)))

    def _is_empty(self) -> bool:
        return self._premises.no_metadata or not self._metadata.ids or not self._metadata.assigned

    def _is_undated(self) -> bool:
        as_of_ms = self._identity.timestamp_ms
        return not self._premises.no_metadata and (as_of_ms is None or as_of_ms > NOW_MS + _TOLERANCE_MS)

    def _is_cut(self) -> bool:
        return not self._premises.no_metadata and bool(self._identity.ends_early)

    def _went_back(self) -> bool:
        now, found = self._identity, False
        for used in () if self._premises.no_metadata else self._premises.used:
            if used.source == now.source:
                found |= used.epoch is not None and used.epoch > (now.epoch or 0)
                found |= used.offset is not None and used.offset > (now.offset or 0)
            if now.timestamp_ms is not None and used.as_of_ms is not None:
                found |= used.as_of_ms - now.timestamp_ms > _TOLERANCE_MS
        return found

    def _is_behind(self) -> bool:
        sound = {each.path for each in self._sound}
        newest = [ms for path, ms in self._premises.newest.items() if path in sound]
        return any(ms - _TOLERANCE_MS > NOW_MS for ms in (*newest, *self._premises.journals.values()))

    def _has_broken_log_dir(self) -> bool:
        return len(self._sound) < len(self._premises.drawn.log_dirs)

    def _is_copied(self) -> bool:
        seen = [(each.broker, each.head["directory_id"]) for each in self._sound if each.broker in self._changed]
        return len(set(seen)) < len(seen)

    def _has_strange_log_dir(self) -> bool:
        chosen = {row["log_dir"] for row in self._staged}
        return any(self._is_strange(each) for each in self._sound if each.path in chosen)

    def _is_strange(self, log_dir: DrawnLogDir) -> bool:
        node, directory_id = log_dir.broker.node, log_dir.head["directory_id"]
        registered = self._metadata.brokers.get(node)
        if registered is not None and registered.directory_ids and directory_id not in registered.directory_ids:
            return True
        placed = {key for key, at in self._metadata.assigned.items() if at.homes.get(node) == directory_id}
        held = {(row["topic"], row["partition"]) for row in self._live if row["log_dir"] == log_dir.path}
        common = len(placed & held)
        is_little = common < len(held) / 2 and common < len(placed) / 2
        return is_little and (common == 0 or len(held) >= _TELLING)

    def _has_newer(self) -> bool:
        as_of_ms = self._identity.timestamp_ms
        return as_of_ms is not None and any(self._is_newer(row, as_of_ms) for row in self._staged)

    def _is_newer(self, row: Mapping[str, Any], as_of_ms: int) -> bool:
        (home,) = (each for each in self._sound if each.path == row["log_dir"])
        known = [ms for ms in (row["modified_ms"], home.created.get(row["name"])) if ms]
        return not known or max(known) + _SKEW_MS > as_of_ms

    def _is_uncommitted(self) -> bool:
        doubtful = set(self._identity.uncommitted)
        return any(doubtful & {row["topic_id"], self._metadata.ids.get(row["topic"])} for row in self._staged)

    def _copies(self) -> list[tuple[list[int], bool]]:
        """Of each staged replica that has others: the nodes of those in sync, and whether one of them is the leader."""
        found = []
        for row in self._staged:
            owner = self._metadata.owner(row["topic_id"])
            at = self._metadata.assigned.get((owner or row["topic"], row["partition"]))
            if (owner is not None or self._verdict(row) is Verdict.NOT_ASSIGNED) and at is not None:
                found.append((list(at.isr), at.leader in (*at.replicas, *at.moving)))
        return found

    def _has_sole_copy(self) -> bool:
        return any(not in_sync for in_sync, _ in self._copies())

    def _has_no_live_copy(self) -> bool:
        alive = {node for node, each in self._metadata.brokers.items() if not each.fenced}
        names_none = not self._metadata.brokers
        return any(
            in_sync and not (is_led and (names_none or alive.intersection(in_sync)))
            for in_sync, is_led in self._copies()
        )

    def _has_no_id(self) -> bool:
        return any(row["topic_id"] is None and self._verdict(row) is Verdict.UNKNOWN_TOPIC for row in self._staged)

    def _is_internal(self) -> bool:
        names = [row["topic"].split(":")[-1] for row in self._staged]
        return any(name[:2] == "__" or name.endswith("-changelog") for name in names)


_GATES: Final[Mapping[Gate, Callable[[GateOracle], bool]]] = {
    Gate.CLUSTER: GateOracle._lacks_cluster,
    Gate.BROKER: GateOracle._lacks_broker,
    Gate.EMPTY: GateOracle._is_empty,
    Gate.TIME: GateOracle._is_undated,
    Gate.INCOMPLETE: GateOracle._is_cut,
    Gate.WENT_BACK: GateOracle._went_back,
    Gate.CLOCK: GateOracle._is_behind,
    Gate.ABSENT: GateOracle._has_broken_log_dir,
    Gate.LOG_DIR: GateOracle._has_strange_log_dir,
    Gate.NEWER: GateOracle._has_newer,
    Gate.UNCOMMITTED: GateOracle._is_uncommitted,
    Gate.SOLE_COPY: GateOracle._has_sole_copy,
    Gate.LIVE_COPY: GateOracle._has_no_live_copy,
    Gate.NO_ID: GateOracle._has_no_id,
    Gate.INTERNAL: GateOracle._is_internal,
}
