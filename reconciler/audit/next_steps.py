"""The steps advised after an audit: one for each finding, and one for each verdict that asks for action.

:mod:`reconciler.next_steps` decides them. Here each finding is given the log dirs of its broker and the metadata that
it was compared with, so that a step names all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from reconciler.audit.result import AuditResult
from reconciler.desired import in_full
from reconciler.next_steps import Call, Step, step_of_broker, step_of_finding, step_of_fleet
from reconciler.text import json_objects
from reconciler.verdicts import BENIGN, Advice, Verdict, advice_of

_ASKED = [
    *("verdict", "cluster_id", "broker", "log_dir", "name", "topic", "partition"),
    *("disk_topic_id", "metadata_topic_id"),
]


@dataclass(frozen=True, slots=True)
class AdvisedStep:
    """The advice for all findings of one verdict, with the step for the first of them."""

    verdict: Verdict
    advice: Advice
    step: Step
    hosts: tuple[str, ...] = ()
    """The hosts of the finding's log dir, or of its broker, where the step is taken; empty: they are not known."""

    @property
    def command(self) -> str:
        """The command of the step, as a shell takes it."""
        return self.step.text or ""


class BrokerCalls:
    """How each broker of an audit would be looked at: with all of its log dirs, and the metadata of its cluster."""

    def __init__(self, result: AuditResult, call: Call | None = None) -> None:
        """Take the audit, and how the command was called; None: only what the result says is known."""
        self._call, self._result = call or Call(), result
        self._sources = {source.cluster_id: source.location for source in result.metadata}
        self._log_dirs = {
            # Each once: scans by two names of one host have the same paths.
            (broker.cluster_id, broker.node_id): tuple(dict.fromkeys(str(each["log_dir"]) for each in broker.log_dirs))
            for broker in result.brokers
            if broker.node_id is not None
        }
        self._nobodys = tuple(
            str(each["log_dir"]) for broker in result.brokers if broker.node_id is None for each in broker.log_dirs
        )
        if len(self._log_dirs) == 1:
            # What names no broker, a disk that cannot be read for one, was given as a log dir of this one.
            self._log_dirs = {key: tuple(sorted({*own, *self._nobodys})) for key, own in self._log_dirs.items()}
        self._kept: dict[tuple[Any, ...], Call] = {}

    def of(self, finding: Mapping[str, Any]) -> Call:
        """Return the call for the broker of a finding; a log dir that names no broker stands alone."""
        broker = (finding["cluster_id"], finding["broker"])
        key = broker if broker in self._log_dirs else (*broker, finding["log_dir"])
        if key not in self._kept:
            alone = () if finding["log_dir"] is None else (finding["log_dir"],)
            self._kept[key] = self._made(finding["cluster_id"], self._log_dirs.get(broker, alone))
        return self._kept[key]

    def step_of(self, finding: Mapping[str, Any]) -> Step | None:
        """Return what comes next for a finding; None: nobody has to act."""
        if self._result.is_allowed(finding):
            return None
        step = step_of_finding(Verdict(finding["verdict"]), finding, self.of(finding))
        if step is not None and self._nobodys and finding["broker"] is not None and len(self._log_dirs) == 1:
            return step_of_broker(self.of(finding))  # the disk comes first: what lies there may be the other copy
        return step

    def only(self) -> Call | None:
        """Return the call for the only broker of the audit; None: there are several, or none."""
        if len(self._log_dirs) != 1:
            return None
        (((cluster, _), log_dirs),) = self._log_dirs.items()
        return self._made(cluster, log_dirs)

    def _made(self, cluster: str | None, log_dirs: tuple[str, ...]) -> Call:
        found = self._sources.get(cluster, self._sources.get(None))
        metadata = self._call.metadata or (() if found is None else (found,))
        # The log dirs are named in full, and a report is read in another folder than the audit was made in.
        return replace(self._call, log_dirs=log_dirs, metadata=tuple(map(in_full, metadata)))


def advised_steps(result: AuditResult, verdicts: Iterable[Verdict], call: Call | None = None) -> list[AdvisedStep]:
    """List a step for each of the verdicts that the audit found and that asks for action, in the given order."""
    calls, found = BrokerCalls(result, call), []
    hosts = {(broker.cluster_id, broker.node_id): broker.hosts for broker in result.brokers}
    modes = {source.cluster_id: source.mode for source in result.metadata}
    for verdict in verdicts:
        if verdict in BENIGN:
            continue
        for finding in _first(result, verdict):
            step = calls.step_of(finding)
            if step is not None:
                mode = modes.get(finding["cluster_id"], modes.get(None))
                there = (finding["host"],) if finding["host"] else hosts.get((finding["cluster_id"], finding["broker"]))
                found.append(AdvisedStep(verdict, advice_of(verdict, mode), step, there or ()))
    return found


def _first(result: AuditResult, verdict: Verdict) -> list[dict[str, Any]]:
    """Return the most urgent finding of a verdict that asks for action, in a list; empty: there is none."""
    found = result.most_urgent(1 + result.allowed.get(verdict, 0), (verdict,)).to_pylist()
    return [finding for finding in found if not result.is_allowed(finding)][:1]


def first_step(result: AuditResult, steps: Sequence[AdvisedStep], call: Call | None = None) -> Step | None:
    """Return what to run first; None: nothing that is known here.

    Where several commands are advised for the only broker of the audit, it is the command that says in which order,
    else the first of the given steps; without any, what comes next for a finding of the fleet.
    """
    calls = BrokerCalls(result, call)
    only = calls.only()
    if only is not None and len({each.command for each in steps}) > 1:
        return step_of_broker(only)
    if steps:
        return steps[0].step
    of_fleet = [] if only is None else [step_of_fleet(finding.kind, only) for finding in result.fleet]
    return next((step for step in of_fleet if step is not None), None)


def with_next(tables: Iterable[pa.Table], calls: BrokerCalls) -> Iterator[pa.Table]:
    """Add to each finding the command that comes next, in a column ``next``; null: nobody has to act."""
    for table in tables:
        commands = []
        for finding in json_objects(table.select(_ASKED)):
            step = calls.step_of(finding)
            commands.append(None if step is None else step.text)
        yield table.append_column("next", pa.array(commands, pa.string()))


def next_of_fleet(kind: str, calls: BrokerCalls) -> str | None:
    """Return the command that comes next for a finding of the fleet; None: none, or there are several brokers."""
    call = calls.only()
    step = None if call is None else step_of_fleet(kind, call)
    return None if step is None else step.text
