"""Asks metadata once more about what a purge would take, so that what is wanted again by now stays."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from layout.topic import TopicPartition
from logstore import ChangeRefusedError, LogStoreError
from logstore.log_dir import FallbackRecords, ReadOnlyLogDir
from logstore.scan import Observation, scan_all
from logstore.staging import Staged, find_staged, planned_restore
from reconciler.cli.frame.inputs import location_among, sort_inputs
from reconciler.cli.frame.lifecycle import warn
from reconciler.cli.frame.metadata import choose_metadata, say_problems
from reconciler.desired import DesiredState, by_cluster
from reconciler.errors import RefusedError
from reconciler.next_steps import SOURCE, Call, Step
from reconciler.plan import read_history
from reconciler.text import json_objects, moment
from reconciler.verdicts import Row, broker_of, reasons_for_distrust, wanted_again

_TOO_LATE = "it was staged after the metadata was asked"


@dataclass(slots=True)
class SecondLook:
    """What the metadata says of all that was staged when it was asked.

    Attributes:
        reasons: log dir, location and time of staging → why it stays; None: it may go.
        steps: how what is wanted again comes back, by log dir and location.
        unsure: what to ask instead, by the same, where metadata wants it that went back in time.
    """

    reasons: dict[tuple[str, str, int], str | None] = field(default_factory=dict)
    steps: dict[tuple[str, str], Step] = field(default_factory=dict)
    unsure: dict[tuple[str, str], Step] = field(default_factory=dict)

    def veto(self, staged: Staged) -> str | None:
        """Say why a staged directory that is due stays; None: it may go. What was not asked about stays."""
        staged_ms = 0 if staged.record is None else staged.record.staged_ms
        return self.reasons.get((staged.log_dir, staged.location, staged_ms), _TOO_LATE)

    def doubt(self, log_dirs: Collection[str], instead: Step) -> None:
        """Let what is wanted again in some log dirs stay, and bring none of it back."""
        for place in [each for each in self.steps if each[0] in log_dirs]:
            del self.steps[place]
            self.unsure[place] = instead
        for key, reason in self.reasons.items():
            if key[:2] in self.unsure:
                self.reasons[key] = f"{reason}, but went back in time"


def ask_again(call: Call, fallback: FallbackRecords) -> SecondLook:
    """Ask the metadata about everything that is staged in log dirs.

    The call says how the command was called; its log dirs may be folders of them.

    Raises:
        UsageError, MetadataError: a source does not exist, or cannot be read.
        RefusedError: the metadata cannot be trusted, or belongs to another cluster.
    """
    inputs = sort_inputs(call.log_dirs)
    given = choose_metadata(call.metadata, inputs, _now_ms())
    say_problems(given)
    seen = list(scan_all(inputs.log_dirs, sizes=False, fallback=fallback))
    rows = [row | {"log_dir": each.log_dir} for each in seen for row in json_objects(each.rows)]
    of_log_dir = {row["log_dir"]: broker_of(row) for row in rows if row["kind"] == "log_dir" and _is_known(row)}
    states = by_cluster(given, {broker.cluster for broker in of_log_dir.values()})
    distrust = list(reasons_for_distrust(states, set(of_log_dir.values()), _now_ms()))
    if distrust:
        raise RefusedError(
            f"nothing is purged, because what is wanted by now is not known: {'; '.join(distrust)}. Name newer or more "
            "complete metadata, or purge without --metadata, which asks nobody"
        )
    wanted = wanted_again(states, rows, _now_ms())
    look = SecondLook()
    for each in seen:
        if each.log_dir in of_log_dir:
            broker = of_log_dir[each.log_dir]
            disks = tuple(path for path, other in of_log_dir.items() if other == broker)
            own = replace(call, log_dirs=disks)
            _ask_about(each, states[broker.cluster], wanted, look, fallback=fallback, call=own)
    for broker in dict.fromkeys(of_log_dir.values()):
        disks = tuple(path for path, other in of_log_dir.items() if other == broker)
        if say_went_back(states[broker.cluster], broker.cluster, disks):
            why = "metadata that went back in time does not tell what is wanted here by now: look by newer metadata"
            look.doubt(disks, Step(why, replace(call, log_dirs=disks).doctor(source=SOURCE)))
    return look


def say_went_back(state: DesiredState, cluster: str, log_dirs: Iterable[str]) -> bool:
    """Warn of metadata that is older than what a plan applied to these log dirs was made from; say whether it is."""
    clause = read_history(log_dirs).went_back(state.identity, cluster)
    if clause is not None:
        warn(f"{state.identity.location} went back in time: {clause}")
    return clause is not None


def _ask_about(
    seen: Observation,
    state: DesiredState,
    wanted: dict[tuple[str, str], str],
    look: SecondLook,
    *,
    fallback: FallbackRecords,
    call: Call,
) -> None:
    """Enter what is staged in one log dir; half of a replica that a purge has begun to empty comes back never."""
    as_of_ms = state.identity.as_of_ms or 0
    names = dict(zip(*(state.topics.column(name).to_pylist() for name in ("topic_id", "topic")), strict=True))
    with ReadOnlyLogDir.open(seen.log_dir) as log_dir:
        for staged in find_staged(log_dir, fallback):
            if staged.record is None:
                continue
            reason = wanted.get((seen.log_dir, staged.location))
            topic_id, at = str(staged.topic_id), staged.record
            by_now = TopicPartition(names.get(topic_id, at.topic), at.partition)
            renamed = None if by_now == staged.partition else by_now
            if reason is not None:
                try:
                    planned_restore(log_dir, staged, renamed, staged.topic_id)
                except ChangeRefusedError:
                    reason = None
                except (LogStoreError, OSError):
                    pass  # something else is in its way, which the restore names
            if reason is not None:
                why = f"{staged.location} in {seen.log_dir} is wanted again; bring it back while the broker is stopped"
                chosen = [location_among(seen.log_dir, staged.location, call.log_dirs)]
                command = call.restore(locations=chosen)
                if renamed is not None:
                    command = call.restore(locations=chosen, topic_id=topic_id, was=str(renamed))
                look.steps[seen.log_dir, staged.location] = Step(why, command)
            elif topic_id in state.identity.uncommitted:
                reason = "what the metadata says of its topic may still be taken back"
            elif staged.record.staged_ms > as_of_ms:
                reason = f"it was staged after {moment(as_of_ms)}, as of which the metadata speaks"
            look.reasons[seen.log_dir, staged.location, staged.record.staged_ms] = reason


def _is_known(row: Row) -> bool:
    return bool(row["metadata_state"] == "ok")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
