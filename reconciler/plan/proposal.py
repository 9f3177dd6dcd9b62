"""Make a plan from judged rows, the desired state and the operator's choice. Pure: without a clock or a file.

The case table has judged each replica. The verdicts lead to these actions::

    STALE_ID, NOT_ASSIGNED, UNKNOWN_TOPIC    stage; in log dirs that are ours, create the wanted replica in its place
    NO_ID                                    write the topic ID, unless others or a leader epoch deny it
    DAMAGED, NO_ID of a topic to refetch     stage, if another broker leads it in sync, or nobody wants it here
    STAGED, STAGED_DUE, STRAY and wanted     restore by the topic ID's present name, unless a replica of the partition
                                             lives, or may in a log dir that was not given, or several could come
    STRAY and not wanted                     if the operator chose strays: give it a due time where it lies; one without
                                             a topic ID only if the operator chose that too, and the replica that lives
                                             in its place is in sync
    MISSING                                  create, in log dirs that are ours, unless RENAMED; real brokers do it
    DUPLICATE, DAMAGED, CHECKPOINT_ENTRY, LEFTOVER         left to ``logstore repair``
    MARKED_DELETE and wanted, FUTURE_ABANDONED, FOREIGN    left to a person
    everything else                          nothing; it is counted

An abandoned future replica is left alone on purpose: no file says whether a broker will finish the move. A finding that
needs attention and gets no action is kept in the plan, with the reason and the command that shows more. No plan is made
while a gate is shut. Source: DESIGN §3, §4, §6.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from layout import partition_metadata
from layout.directory_name import MAX_DIRECTORY_NAME
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import Scheme, partition_path
from layout.topic import TopicPartition
from logstore import check_fields
from logstore.rows import Kind
from reconciler.desired import BrokerKey, DesiredState, in_full
from reconciler.errors import UsageError
from reconciler.next_steps import (
    WITHOUT_ID,
    Call,
    Command,
    step_of_finding,
    undo_of_file,
    undo_of_staging,
    undo_of_stray,
)
from reconciler.plan.evidence import PlanView, ScannedLogDir
from reconciler.plan.file import sealed
from reconciler.plan.gate_inputs import (
    EarlierRuns,
    copies_in_doubt,
    gather_gate_inputs,
    led_elsewhere,
    seen_often_enough,
)
from reconciler.plan.gates import GatesShutError, refusals
from reconciler.plan.plan import Action, ActionKind, LeftAlone, Plan
from reconciler.plan.policy import PlanChoice, cheapest, is_internal_topic, why_forbidden
from reconciler.text import count
from reconciler.verdicts import NOTHING_SHOWS, Judged, Row, Verdict, broker_of, epoch_above


@dataclass(frozen=True, slots=True)
class PlanOrigin:
    """When, where and by whom a plan is made.

    Raises:
        UsageError: one is of another type, or the time is before 1970.
    """

    now_ms: int
    host: str
    user: str

    def __post_init__(self) -> None:
        check_fields(self, UsageError, {"now_ms": (0, math.inf)})


def make_plan(view: PlanView, choice: PlanChoice, origin: PlanOrigin, memory: EarlierRuns | None = None) -> Plan:
    """Make a plan, with its fingerprints.

    Args:
        view: the evidence, judged by the case table.
        choice: of the operator.
        origin: stands in the plan.
        memory: what the journals of earlier runs say.

    Raises:
        GatesShutError: one or more gates are shut.
    """
    memory = memory or EarlierRuns()
    draft = PlanDraft(view, choice, origin.now_ms)
    draft.fill()
    possible = [action for action, _ in draft.candidates]
    picked = draft.allowed()
    if choice.need is not None:
        copies = copies_in_doubt(view, draft.candidates)
        internal = (each for each in possible if is_internal_topic(each.topic, choice.internal))
        picked = cheapest(picked, choice.need, {*copies.sole, *copies.not_live, *internal})
    picked = [seen_often_enough(action, view, choice, memory, origin.now_ms) for action in picked]
    plan = _drafted(draft, picked, choice, origin)
    facts = gather_gate_inputs(view, draft.candidates, picked, choice, memory=memory, now_ms=origin.now_ms)
    shut = refusals(facts, choice.policy)
    if shut:
        raise GatesShutError(shut, plan)
    return plan


def _drafted(draft: PlanDraft, picked: list[Action], choice: PlanChoice, origin: PlanOrigin) -> Plan:
    view = draft.view
    places = {path: number for number, path in enumerate(view.log_dirs)}
    order = {kind: number for number, kind in enumerate(ActionKind)}
    picked.sort(key=lambda each: (places[each.log_dir], order[each.kind], each.topic, each.partition, each.name))
    return sealed(
        Plan(
            origin.now_ms,
            origin.host,
            origin.user,
            choice.delay_ms,
            choice.described(),
            tuple(log_dir.planned for log_dir in view.trusted),
            tuple(_identity(state, cluster) for cluster, state in view.states.items()),
            tuple(picked),
            tuple(draft.left_alone()),
            dict(sorted(Counter(each.verdict.value for each in view.judged if _is_counted(each)).items())),
        )
    )


def _is_counted(judged: Judged) -> bool:
    """Whether a row is one of the replicas: a log dir and the metadata's own log are none, and count where they ail."""
    kind = None if judged.observed is None else judged.observed["kind"]
    return judged.verdict is not Verdict.OK or kind not in (Kind.LOG_DIR, Kind.INTERNAL)


def _identity(state: DesiredState, cluster: str) -> dict[str, str]:
    """Describe a metadata source as text, for the plan and the journal."""
    counts = {"topics": str(state.topics.num_rows), "replicas": str(state.replicas.num_rows)}
    return state.identity.as_text(cluster) | counts


UNWANTED = frozenset({Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC})
"""Verdicts whose live replicas are staged."""

_RETURNABLE = frozenset({Verdict.STAGED, Verdict.STAGED_DUE, Verdict.STRAY})
_LEFT = frozenset(
    {
        *(Verdict.DUPLICATE, Verdict.DAMAGED, Verdict.CHECKPOINT_ENTRY, Verdict.LEFTOVER),
        *(Verdict.FUTURE_ABANDONED, Verdict.FOREIGN),
    }
)

_OTHER_NAME = "its data is live here under another topic name, so nothing takes its place"
_OTHERS_NAME = "its topic is live here under another name, and could not be renamed any more once it had this one too"
ReplicaKey = tuple[BrokerKey, str | None, int | None]
"""A broker, a topic by name or by ID, and a partition."""


@dataclass(slots=True)
class PlanDraft:
    """All actions that a plan could take, before any is picked; :meth:`fill` finds them.

    Attributes:
        view: the evidence.
        choice: of the operator: whether strays get a due time, what is fetched anew, and the rules of a policy file.
        now_ms: when the plan is made, in ms since 1970.
        candidates: actions, each with its judged row.
    """

    view: PlanView
    choice: PlanChoice
    now_ms: int
    candidates: list[tuple[Action, Judged]] = field(default_factory=list)
    _left: dict[tuple[str, Verdict, str], list[tuple[str, str, Judged, Command | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _stays: set[ReplicaKey] = field(default_factory=set)
    """Live replicas, by the topic name on the disk and in the metadata, that are not staged."""
    _in_place: dict[ReplicaKey, tuple[str, bool]] = field(default_factory=dict)
    """Live replicas, by topic name, that are as they should be → their paths, and whether they are in sync."""
    _ids: dict[tuple[BrokerKey, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    """Topic IDs of all replicas of a topic on this broker, live, staged or stray."""
    _renamed: set[ReplicaKey] = field(default_factory=set)
    """Live replicas, by topic ID, whose topic has another name in the metadata."""

    def fill(self) -> None:
        """Find an action, or a reason to leave it alone, for each judged row."""
        judged = self.view.judged
        for each in judged:
            self._note(each)
        for each in judged:
            if self._is_to_refetch(each):
                self._refetch(each)
            elif each.verdict in UNWANTED:
                self._stage(each)
            elif each.verdict is Verdict.NO_ID:
                self._write_topic_id(each)
            elif each.verdict is Verdict.STRAY and not each.row.wanted:
                self._stray(each)
            elif (each.verdict in _LEFT and not self._is_allowed(each)) or _is_last_copy(each):
                self._leave(each, each.evidence, together=True)
        self._create_all(self._restore_all())

    def allowed(self) -> list[Action]:
        """Return the chosen actions that no rule forbids; a finding whose action a rule forbids is left alone."""
        found, stays = list[tuple[BrokerKey, Action]](), set[tuple[BrokerKey, TopicPartition]]()
        for action, judged in self.candidates:
            if not self.choice.has(action):
                continue
            broker = self.view.log_dirs[action.log_dir].broker
            why = why_forbidden(self.choice.rules, action, self.now_ms)
            if why is None:
                found.append((broker, action))
                continue
            stays.add((broker, action.replica))
            call = replace(self._call(judged), policy=self.choice.rules.path)
            self._leave(judged, why, command=call.check_policy())
        # Nothing is created in the place of a replica that has to stay.
        creates = ActionKind.CREATE
        return [each for broker, each in found if each.kind is not creates or (broker, each.replica) not in stays]

    def left_alone(self) -> Iterator[LeftAlone]:
        """Yield what is left alone: one finding for each log dir, verdict and reason."""
        for (log_dir, verdict, _), found in sorted(self._left.items(), key=lambda each: each[0]):
            name, reason, judged, command = found[0]
            more = f", and {count(len(found) - 1, 'other')} like it" if len(found) > 1 else ""
            row = judged.observed or {}
            finding = {"log_dir": log_dir or None, "name": name, "broker": row.get("node_id"), "evidence": reason}
            finding |= {key: row.get(key) for key in ("topic", "topic_id")}
            if command is None:
                step = step_of_finding(verdict, finding, self._call(judged), explained=True)
                shown = (None if step is None else step.text) or ""
            else:
                shown = command.text
            yield LeftAlone(log_dir, name, verdict.value, f"{reason}{more}", shown)

    def _call(self, judged: Judged) -> Call:
        """Return how the broker of a replica is looked at: with all its log dirs, and the metadata of its cluster."""
        row = judged.observed or judged.wanted or {}
        home = self.view.log_dirs.get(str(row.get("log_dir")))
        log_dirs = [each.path for each in self.view.trusted if home is None or each.broker == home.broker]
        return Call(tuple(log_dirs), tuple(in_full(state.identity.location) for state in self.view.states.values()))

    def _note(self, judged: Judged) -> None:
        row = judged.observed
        if row is None:
            return
        broker = broker_of(row)
        if row["kind"] == Kind.LIVE and judged.verdict not in UNWANTED:
            self._stays.add((broker, row["topic"], row["partition"]))
        if judged.verdict is Verdict.OK and judged.wanted is not None:
            lives = (f"{row['log_dir']}/{row['name']}", bool(judged.wanted["in_sync"]))
            self._in_place[broker, row["topic"], row["partition"]] = lives
        if judged.verdict is Verdict.RENAMED:
            self._renamed.add((broker, row["topic_id"], row["partition"]))
            self._stays.add((broker, judged.row.id_topic, row["partition"]))
        if row["topic"] and row["topic_id"]:
            self._ids[broker, row["topic"]].add(row["topic_id"])

    def _leave(self, judged: Judged, reason: str, *, together: bool = False, command: Command | None = None) -> None:
        """Leave a finding alone. ``together``: reasons differ in numbers only, so the first stands for all of them."""
        row = judged.observed or judged.wanted or {}
        log_dir = "" if judged.observed is None else row["log_dir"]
        name = f"{row['topic']}-{row['partition']}" if judged.observed is None else row["name"]
        self._left[log_dir, judged.verdict, "" if together else reason].append((name, reason, judged, command))

    def _is_allowed(self, judged: Judged) -> bool:
        """Whether it is a foreign name that the policy allows."""
        return judged.verdict is Verdict.FOREIGN and self.choice.rules.allows((judged.observed or {})["name"])

    def _due_ms(self, row: Row) -> int:
        """Return when a purge may delete a replica that the plan stages."""
        return self.now_ms + self.choice.rules.delay_ms(row["topic"], self.choice.delay_ms)

    def _stage(self, judged: Judged) -> None:
        row = judged.observed or {}
        call = replace(self._call(judged), metadata=())
        undo = undo_of_staging(call, row["topic"] or "", row["partition"], row["topic_id"] or str(TopicId.ZERO))
        self._add(ActionKind.STAGE, judged, row, due_ms=self._due_ms(row), undo=undo.text)

    def _stray(self, judged: Judged) -> None:
        row = judged.observed or {}
        certain = judged.row.judged and row["topic_id"] and (judged.row.complete or judged.row.id_topic)
        if not self.choice.strays:
            self._leave(judged, f"{judged.evidence}; --strays gives it a due time", together=True)
        elif not certain and not (self.choice.strays_without_id and self._twin(row)):
            self._leave_uncertain(judged, row)
        elif len(row["name"]) >= MAX_DIRECTORY_NAME:
            self._leave(judged, f"{judged.evidence}; its name was cut, so nothing says surely what it was")
        elif self.view.log_dirs[row["log_dir"]].scheme not in (None, Scheme.FLAT):
            self._leave(judged, f"{judged.evidence}; under this scheme no broker can have left it", together=True)
        else:
            twin = "" if certain else f"; without a topic ID, and {self._twin(row)}"
            judged = replace(judged, evidence=f"{judged.evidence}{twin}")
            undo = undo_of_stray(row["log_dir"], row["name"])
            self._add(ActionKind.STAGE_STRAY, judged, row, due_ms=self._due_ms(row), undo=undo.text)

    def _twin(self, row: Row) -> str | None:
        """Describe the live replica of a stray's name whose data is in sync; None: there is none.

        A replica of a stopped broker is not in sync; where another live broker leads it, it is fetched from there.
        """
        if row["topic_id"] or len(row["name"]) >= MAX_DIRECTORY_NAME:
            return None
        key = (broker_of(row), row["topic"], row["partition"])
        path, in_sync = self._in_place.get(key, ("", False))
        if in_sync:
            return f"{path} is live and in sync in its place"
        led = path and led_elsewhere(self.view.states, [key])
        return f"{path} is live in its place, and another live broker leads it in sync" if led else None

    def _leave_uncertain(self, judged: Judged, row: Row) -> None:
        """Leave a stray of which nothing says surely that it is unwanted, and name the way on."""
        call, twin = self._call(judged), self._twin(row)
        path = "/".join((row["log_dir"], row["name"]))
        if twin is None:
            reason = "nothing says surely that it is unwanted"
            self._leave(judged, f"{judged.evidence}; {reason}", together=True, command=call.explain(path))
            return
        reason = f"it has no topic ID; {twin}, so {WITHOUT_ID} gives it a due time"
        again = call.plan(strays=True, without_id=True)
        self._leave(judged, f"{judged.evidence}; {reason}", command=again)

    def _is_to_refetch(self, judged: Judged) -> bool:
        is_uncertain = judged.verdict in (Verdict.DAMAGED, Verdict.NO_ID) and judged.row.kind == Kind.LIVE
        return is_uncertain and judged.row.topic in self.choice.refetched

    def _refetch(self, judged: Judged) -> None:
        """Stage a replica of which no topic ID is certain, where nothing is lost by that."""
        row = judged.observed or {}
        unwanted = judged.row.judged and judged.row.complete and not judged.row.wanted
        if judged.row.copies > 1:
            self._leave(judged, f"{judged.evidence}; it is live twice: repair that first")
        elif unwanted or led_elsewhere(self.view.states, [(broker_of(row), row["topic"], row["partition"])]):
            self._stage(judged)
        else:
            reason = "no other live broker leads it in sync, as far as the metadata knows, so it is not fetched anew"
            self._leave(judged, f"{judged.evidence}; {reason}")

    def _write_topic_id(self, judged: Judged) -> None:
        row = judged.observed or {}
        broker, wanted = broker_of(row), judged.row.wanted_topic_id
        others = sorted(self._ids[broker, row["topic"]] - {wanted})
        above = epoch_above(self.view.epochs.get((row["log_dir"], row["name"])), judged.wanted)
        if others:
            self._leave(judged, f"other replicas of topic {row['topic']} here hold topic ID {others[0]}, not {wanted}")
        elif (broker, wanted, row["partition"]) in self._renamed:
            self._leave(judged, _OTHER_NAME, command=self._call(judged).doctor())
        elif above is not None:
            self._leave(judged, f"{judged.evidence}; {above}", command=self._call(judged).repair())
        else:
            undo = undo_of_file("/".join((row["log_dir"], row["name"], partition_metadata.FILE_NAME)))
            shown = wanted in self._ids[broker, row["topic"]] or (judged.wanted or {}).get("in_sync")
            why = judged.evidence if shown else f"{judged.evidence}; {NOTHING_SHOWS}"
            self._add(ActionKind.WRITE_TOPIC_ID, replace(judged, evidence=why), row, undo=undo.text)

    def _restore_all(self) -> set[ReplicaKey]:
        """Plan restores; return the wanted replicas, by topic ID, that have a staged or stray copy."""
        copies: dict[ReplicaKey, list[tuple[Judged, Row, Row]]] = defaultdict(list)
        for each in self.view.judged:
            if each.verdict in _RETURNABLE and each.observed is not None and each.wanted is not None:
                key = (broker_of(each.observed), each.observed["topic_id"], each.observed["partition"])
                copies[key].append((each, each.observed, each.wanted))
        for (broker, _, partition), found in copies.items():
            for each, row, wanted in found:
                if (broker, wanted["topic"], partition) in self._stays:
                    # The step of a stray is this very plan; what becomes of it, the broker as a whole tells.
                    command = self._call(each).doctor() if each.verdict is Verdict.STRAY else None
                    self._leave(each, "the metadata wants it, and a replica of the partition is live", command=command)
                elif (row["log_dir"], row["name"]) in self.view.elsewhere:
                    why = self.view.elsewhere[row["log_dir"], row["name"]]
                    self._leave(each, f"{why}: give every log dir of the broker", command=self._call(each).doctor())
                elif len(found) > 1:
                    reason = f"{len(found)} replicas could come back: choose one of them, and restore it"
                    self._leave(each, reason, command=self._call(each).staged())
                else:
                    self._add(ActionKind.RESTORE, each, {**row, "topic": wanted["topic"]})
        return set(copies)

    def _create_all(self, returning: set[ReplicaKey]) -> None:
        """Plan creations, on brokers all of whose log dirs are ours; a replica in ``returning`` is not created."""
        of_broker: dict[BrokerKey, list[ScannedLogDir]] = defaultdict(list)
        for log_dir in self.view.trusted:
            of_broker[log_dir.broker].append(log_dir)
        load = Counter(each.observed["log_dir"] for each in self.view.judged if each.observed is not None)
        renamed = {key[:2] for key in self._renamed}
        for cluster, all_judged in self.view.judged_of.items():
            for each in all_judged:
                if each.wanted is None or each.verdict not in (Verdict.MISSING, Verdict.STALE_ID):
                    continue
                broker, placed = BrokerKey(cluster, each.wanted["node_id"]), each.wanted["directory_id"]
                log_dirs, key = of_broker[broker], (broker, each.wanted["topic_id"], each.wanted["partition"])
                if key in returning or not log_dirs or any(log_dir.scheme is None for log_dir in log_dirs):
                    continue
                if key[:2] in renamed:
                    reason = _OTHER_NAME if key in self._renamed else _OTHERS_NAME
                    self._leave(each, reason, command=self._call(each).doctor())
                    continue
                assigned = [each_dir for each_dir in log_dirs if placed and each_dir.row["directory_id"] == placed]
                home = assigned[0] if assigned else min(log_dirs, key=lambda log_dir: load[log_dir.path])
                load[home.path] += 1
                self._create(each, each.wanted, home)

    def _create(self, judged: Judged, wanted: Row, home: ScannedLogDir) -> None:
        topic_id = TopicId.parse(wanted["topic_id"]) if wanted["topic_id"] else None
        assert home.scheme is not None, "nothing is created on a real broker's disks"
        try:
            path = partition_path(home.scheme, TopicPartition(wanted["topic"], wanted["partition"]), topic_id)
        except LayoutError as error:
            self._leave(judged, f"it cannot be created: {error}")
            return
        nothing = dict.fromkeys(("topic_id", "inode", "bytes", "disk_bytes", "modified_ms"))
        place = {"log_dir": home.path, "name": path, "topic": wanted["topic"], "partition": wanted["partition"]}
        self._add(ActionKind.CREATE, judged, {**nothing, **place})

    def _add(
        self, kind: ActionKind, judged: Judged, row: Row, *, due_ms: int | None = None, undo: str | None = None
    ) -> None:
        if row["topic"] is None:
            self._leave(judged, f"{judged.evidence}; nothing says surely which topic it is of", together=True)
            return
        action = Action(
            kind,
            row["log_dir"],
            row["name"],
            row["topic"],
            row["partition"],
            row["topic_id"],
            judged.wanted["topic_id"] if judged.wanted is not None else None,
            judged.verdict.value,
            judged.evidence or "the metadata wants it here",
            inode=row["inode"],
            bytes=row["bytes"],
            modified_ms=row["modified_ms"],
            due_ms=due_ms,
            undo=undo,
            disk_bytes=row["disk_bytes"],
            created_ms=self.view.created.get((row["log_dir"], row["name"])),
        )
        self.candidates.append((action, judged))


def _is_last_copy(judged: Judged) -> bool:
    """Whether a broker will delete the only copy of a replica that is wanted on it."""
    return judged.verdict is Verdict.MARKED_DELETE and judged.row.wanted and judged.row.copies == 0
