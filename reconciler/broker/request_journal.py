"""The journals of requests that a person sends, as ``apply`` leaves one of a plan, and the epochs that they hold.

A controller's requests come in order, over one connection. A file may be of last month: its replicas were moved, its
topics re-created since. So each request that is carried out by hand leaves a journal in every log dir, and the next one
must not be of an older controller epoch or broker epoch. Where no journal says so, the records do: a request whose
leader epoch is below the last one of ``leader-epoch-checkpoint``, under the same topic ID, was sent before them.
Source: FACTS §4.2, 2-3 and 5d; DESIGN §6.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layout.ours import RunJournal
from logstore.repair import RepairStatus
from logstore.scan import last_leader_epoch
from logstore.store import LogStore
from reconciler.broker.decision import ActionResult
from reconciler.broker.memory import KnownEpochs, PartitionKey
from reconciler.plan import UNDER_WAY, ActionKind, History, end_journals, journal_paths, write_journal
from reconciler.protocol import ControlRequest, LeaderAndIsrRequest
from reconciler.text import moment


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """The newest epochs of the requests that were carried out by hand on some log dirs.

    Attributes:
        controller_epoch: 0: there was no request.
        broker_epoch: -1: none of them named one.
        journal: path of the journal with that controller epoch; empty: there is none.
        when_ms: when that request was carried out, in ms since 1970.
    """

    controller_epoch: int = 0
    broker_epoch: int = -1
    journal: str = ""
    when_ms: int = 0

    def refusal(self, request: ControlRequest, broker_epoch: int) -> str | None:
        """Say why a request is too old to be carried out, and what to do; None: it is not too old.

        Args:
            request: of a controller.
            broker_epoch: of the broker's registration, as the user gave it; -1: not given.
        """
        newest = "send the controller's newest request instead"
        if request.broker_epoch != -1 and request.broker_epoch < max(broker_epoch, self.broker_epoch):
            if request.broker_epoch < broker_epoch:
                return f"it is of broker epoch {request.broker_epoch}, before --broker-epoch {broker_epoch}: {newest}"
            older = f"broker epoch {request.broker_epoch}, and one of broker epoch {self.broker_epoch}"
        elif request.controller_epoch < self.controller_epoch:
            older = f"controller epoch {request.controller_epoch}, and one of epoch {self.controller_epoch}"
        else:
            return None
        return (
            f"it is of {older} was carried out here before, the last one {moment(self.when_ms)} ({self.journal}): "
            f"{newest} (override: --allow epoch)"
        )

    def is_before(self, request: ControlRequest) -> bool:
        """Whether a request is the first here, or newer than the last one."""
        return not self.journal or (self.controller_epoch, self.broker_epoch) < (
            request.controller_epoch,
            request.broker_epoch,
        )


def last_carried_out(history: History) -> CarriedOut:
    """Find the newest epochs in the journals of some log dirs."""
    found = CarriedOut()
    for log_dir, journal in history.journals:
        for source in journal.metadata:
            controller_epoch, broker_epoch = source.get("controller_epoch", ""), source.get("broker_epoch", "-1")
            if not _is_of_request(source):
                continue
            known = max(found.broker_epoch, int(broker_epoch) if broker_epoch.isdecimal() else -1)
            newest = (found.controller_epoch, found.when_ms)
            if (int(controller_epoch), journal.started_ms) >= newest:
                (path,) = journal_paths([log_dir], journal.started_ms, journal.plan)
                found = CarriedOut(int(controller_epoch), known, path, journal.started_ms)
            else:
                found = CarriedOut(found.controller_epoch, known, found.journal, found.when_ms)
    return found


def end_cut_short(store: LogStore, history: History) -> list[str]:
    """Give the journals of requests that were cut short their end: what of them the disks show now; return problems.

    Whichever request comes next does this before its first change: it holds all locks, so none of these runs goes on,
    and the request itself may never come again.

    The store is open, with all its locks.
    """
    begun = [
        (path, journal)
        for path, journal in history.journals
        if journal.finished_ms is None and any(map(_is_of_request, journal.metadata))
    ]
    if not begun:
        return []
    live = {(key[0], str(key[1]), str(entry.topic_id), entry.log_dir) for key, entry in store.entries().items()}
    live |= {
        (copy.partition.topic, str(copy.partition.partition), str(copy.topic_id), copy.log_dir)
        for copy in store.duplicates
    }
    anywhere = {each[:3] for each in live}

    def result_of(path: str, line: Mapping[str, Any]) -> tuple[RepairStatus, str]:
        topic, partition, topic_id, wanted_id = (
            str(line.get(key)) for key in ("topic", "partition", "topic_id", "wanted_topic_id")
        )
        if line.get("kind") == ActionKind.STAGE:
            is_done = (topic, partition, topic_id, path) not in live
        else:
            is_done = (topic, partition, wanted_id) in anywhere
        if is_done:
            return RepairStatus.DONE, "the run was cut short, and the next one found this done"
        return RepairStatus.FAILED, "the run was cut short, and the next one found this not done"

    return end_journals(store.log_dirs, begun, store.clock.now_ms(), result_of)


def _is_of_request(source: Mapping[str, str]) -> bool:
    """Whether a journal's source is a request: that of a plan has no epoch of a controller."""
    return source.get("controller_epoch", "").isdecimal()


def reached_epochs(store: LogStore, request: ControlRequest) -> dict[PartitionKey, tuple[str, int]]:
    """Read the leader epoch of the last records of every replica that a request names under its topic ID."""
    found: dict[PartitionKey, tuple[str, int]] = {}
    entries = store.entries()
    for topic in request.topics:
        for state in topic.partitions:
            entry = entries.get((topic.topic, state.partition))
            if topic.topic_id is None or entry is None or entry.topic_id != str(topic.topic_id):
                continue
            epoch = None if entry.log_dir in store.offline else last_leader_epoch(f"{entry.log_dir}/{entry.path}")
            if epoch is not None:
                found[topic.topic, state.partition] = entry.topic_id, epoch
    return found


def older_partitions(request: ControlRequest, known: KnownEpochs) -> list[str]:
    """Describe each partition of a request that was sent before the records here were written."""
    return [
        f"{topic.topic}-{state.partition} (epoch {state.leader_epoch}, and {known.reached[key][1]} here)"
        for topic in request.topics
        for state in topic.partitions
        if known.is_older(key := (topic.topic, state.partition), topic.topic_id, state.leader_epoch)
    ]


@dataclass(frozen=True, slots=True)
class RequestJournal:
    """Writes the journal of one request into the log dirs of its broker: before the first change, and at the end.

    Attributes:
        store: open.
        request: that is carried out.
        location: of its file.
        user: who carries it out.
        started_ms: in ms since 1970.
    """

    store: LogStore
    request: ControlRequest
    location: str
    user: str
    started_ms: int

    def begin(self, planned: Sequence[ActionResult]) -> list[str]:
        """Note every action of a dry run as under way; return the problems, one sentence each."""
        return self._write(planned, None)

    def end(self, results: Sequence[ActionResult]) -> list[str]:
        """Note what became of every action; return the problems."""
        return self._write(results, self.store.clock.now_ms())

    def paths(self) -> list[str]:
        """Return the paths of the journals that are there."""
        online = [each.path for each in self.store.log_dirs if each.offline is None]
        return [path for path in journal_paths(online, self.started_ms, self._fingerprint) if os.path.exists(path)]

    @property
    def _fingerprint(self) -> str:
        return hashlib.sha256(repr(self.request).encode("utf-8", "backslashreplace")).hexdigest()

    def _write(self, results: Sequence[ActionResult], finished_ms: int | None) -> list[str]:
        who = (self._fingerprint, os.uname().nodename, self.user)
        problems = []
        for log_dir in self.store.log_dirs:
            if log_dir.offline is None:
                own = (each for each in results if (each.action.log_dir or each.log_dir) == log_dir.path)
                lines = tuple(_line(each, is_begun=finished_ms is None) for each in own)
                source = self._source(log_dir.identity.cluster_id)
                paths = tuple(dict.fromkeys((*(each.path for each in self.store.log_dirs), *self.store.offline)))
                journal = RunJournal(*who, self.started_ms, finished_ms, (source,), lines, paths)
                problems.append(write_journal(log_dir, journal))
        return [problem for problem in problems if problem is not None]

    def _source(self, cluster_id: str | None) -> Mapping[str, str]:
        request = self.request
        return {
            "source": request.type.name if isinstance(request, LeaderAndIsrRequest) else "STOP_REPLICA",
            "location": self.location,
            "cluster_id": cluster_id or "",
            "controller_id": str(request.controller_id),
            "controller_epoch": str(request.controller_epoch),
            "broker_epoch": str(request.broker_epoch),
        }


_DONE = {
    ActionKind.STAGE: "staged as {0.location}",
    ActionKind.RESTORE: "live as {0.location}",
    ActionKind.WRITE_TOPIC_ID: "it holds {0.topic_id}",
    ActionKind.CREATE: "empty, in {0.log_dir}/{0.location}",
}
"""Kind of action → the detail of its line when it is done."""


def _line(result: ActionResult, *, is_begun: bool) -> dict[str, object]:
    """Return the line of an action: what a line of a plan's journal has, and the wanted topic ID."""
    status, detail = UNDER_WAY, ""
    if not is_begun and result.answer is None:
        status, detail = RepairStatus.DONE.value, _DONE[result.action.kind].format(result)
    elif not is_begun:
        status, detail = RepairStatus.FAILED.value, result.why_not
    fields = ("kind", "name", "topic", "partition", "topic_id", "wanted_topic_id", "verdict", "why", "inode", "bytes")
    line = {key: getattr(result.action, key) for key in fields}
    # The store chose where to create.
    return {**line, "name": line["name"] or result.location, "status": status, "detail": detail}
