"""Propose repairs from rows, file contents and the desired state, as a plan. Pure.

The case table judges each row. The rules about topic IDs are here; ``repair_files`` has the rules about files in the
root of a log dir and about duplicates. A problem without a repair is in the plan too, with the reason. Where one repair
would disturb another in the same log dir, the second one waits for the next plan.

A topic ID is *certain* when the metadata wants exactly this topic and partition on this broker under it, and nothing on
the broker's disks contradicts it. A contradiction may come from the file itself, other replicas of the topic, other
topics under the ID, a staged or stray copy, or a leader epoch on the disk that the metadata has not reached. What also
shows that the data is of the present topic (:func:`reconciler.verdicts.shown_present`), or that nothing does, is in the
evidence. A replica that holds *another* ID is changed only when the operator names its topic, and so declares the data
to be the new topic's. Source: DESIGN §3, §6; USERS pains 1 and 2, F4; FACTS §6.2, §6.5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from layout import partition_metadata
from layout.ids import TopicId
from layout.ours import sum_of
from logstore import check_fields
from logstore.rows import Kind, MetadataState
from reconciler.errors import UsageError
from reconciler.next_steps import Call, UncertainReplica, step_of_fleet
from reconciler.plan.evidence import RepairView, copied_log_dirs, last_epoch
from reconciler.plan.file import sealed
from reconciler.plan.gate_inputs import EarlierRuns, led_elsewhere, shut_for_repair
from reconciler.plan.gates import GatesShutError
from reconciler.plan.plan import CHECKPOINT_REPAIRS, TOPIC_ID_REPAIRS, Action, ActionKind, LeftAlone, Plan
from reconciler.plan.policy import PlanChoice, Policy, why_forbidden
from reconciler.plan.proposal import PlanOrigin
from reconciler.plan.repair_files import (
    UndecidedDuplicate,
    checkpoint_actions,
    duplicates,
    leftover_action,
    not_twice,
)
from reconciler.policy import PolicyRules
from reconciler.verdicts import (
    NOTHING_SHOWS,
    Judged,
    Row,
    Verdict,
    broker_of,
    epoch_above,
    shown_present,
)


@dataclass(frozen=True, slots=True)
class RepairChoice:
    """The operator's choices for a plan of repairs.

    Attributes:
        only: kinds of actions; empty: all kinds.
        adopted: topics whose data on the disk is declared to be data of the present topic of that name.
    """

    only: frozenset[ActionKind] = frozenset()
    adopted: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    """Paths of copies of a replica that stay, where it is live twice, whatever their rank."""
    rules: PolicyRules = field(default_factory=PolicyRules)
    """Of a policy file: topics that are never touched or held, and longer delays."""
    policy: Policy = field(default_factory=Policy.cautious)
    """The gates; those about the metadata hold where a topic ID is taken from its word alone."""

    def __post_init__(self) -> None:
        check_fields(self, UsageError)

    def has(self, kinds: Collection[ActionKind]) -> bool:
        """Whether the choice includes any of these kinds."""
        return not self.only or bool(self.only & frozenset(kinds))


@dataclass(slots=True)
class _RepairDraft:
    """A plan of repairs in the making."""

    choice: RepairChoice
    now_ms: int
    actions: list[Action] = field(default_factory=list)
    left: list[LeftAlone] = field(default_factory=list)
    undecided: list[UndecidedDuplicate] = field(default_factory=list)
    on_word: set[Action] = field(default_factory=set)
    """Those that write what nothing but the metadata says."""

    def add(self, found: Action | LeftAlone | UndecidedDuplicate | None) -> None:
        if isinstance(found, LeftAlone):
            self.left.append(found)
        elif isinstance(found, UndecidedDuplicate):
            self.undecided.append(found)
        elif found is not None and self.choice.has([found.kind]):
            why = why_forbidden(self.choice.rules, found, self.now_ms)
            if why is not None:
                self.left.append(LeftAlone(found.log_dir, found.name, found.verdict, why))
                return
            delay_ms = self.choice.rules.delay_ms(found.topic, -1)
            if found.kind is ActionKind.STAGE_DUPLICATE and delay_ms >= 0:
                found = replace(found, due_ms=self.now_ms + delay_ms)
            self.actions.append(found)


def propose_repair(
    view: RepairView, choice: RepairChoice, origin: PlanOrigin, memory: EarlierRuns | None = None
) -> tuple[Plan, tuple[UndecidedDuplicate, ...]]:
    """Make a plan of repairs, with its fingerprints. Each repair is certain, or left alone.

    Gates hold it back only where it writes a topic ID that nothing but the metadata says. ``view``: the evidence,
    judged by the case table; ``origin`` stands in the plan; ``memory``: what the journals of earlier runs say.

    Returns:
        The plan, and the replicas that are live twice, of which a person has to say which copy stays.

    Raises:
        GatesShutError: one or more gates are shut.
    """
    draft = _RepairDraft(choice, origin.now_ms)
    for path, log_dir in view.log_dirs.items():
        if not log_dir.can_be_trusted:
            reason = f"nothing is repaired in a log dir that cannot be trusted: {log_dir.row['problem'] or 'no broker'}"
            draft.add(LeftAlone(path, ".", Verdict.ABSENT.value, reason))
    rows = [each.observed for each in view.judged if each.observed is not None]
    if choice.has(TOPIC_ID_REPAIRS):
        _topic_ids(draft, rows, view)
    if choice.has([ActionKind.STAGE_DUPLICATE]):
        for found in duplicates(view, choice.kept):
            draft.add(found)
        draft.left += not_twice(choice.kept, view)
    _on_log_dirs(draft, rows, view)
    _leave_copies(draft, view)
    plan = sealed(_plan(draft, view, origin))
    clusters = {view.log_dirs[each.log_dir].broker.cluster for each in draft.actions if each in draft.on_word}
    speaking = {cluster: state for cluster, state in view.states.items() if cluster in clusters}
    if shut := shut_for_repair(speaking, choice.policy, memory or EarlierRuns(), origin.now_ms):
        raise GatesShutError(shut, plan)
    return plan, tuple(draft.undecided)


def _said_by_disk(judged: Judged, view: RepairView) -> bool:
    """Whether the disk says the topic ID too, so that the metadata only agrees: its file, or others of its topic.

    In KRaft mode a broker puts what is of a deleted topic away before it makes a replica of a new one of that name.
    """
    near = view.neighbours(judged)
    return judged.row.disk_topic_id == judged.row.wanted_topic_id or bool(near.holders and near.on_kraft)


def _topic_ids(draft: _RepairDraft, rows: Sequence[Row], view: RepairView) -> None:
    """Add actions that write topic IDs, and note which of them rest on the metadata's word alone."""
    for row in rows:
        if row["kind"] in (Kind.FUTURE, Kind.STRAY):
            reason = f"{row['problem']}; only live replicas are given their file again"
            draft.add(_left(row, Verdict.DAMAGED, reason))
    for judged in view.live:
        found = certain_id(judged, view, draft.choice.adopted)
        draft.add(found)
        if isinstance(found, Action) and not _said_by_disk(judged, view):
            draft.on_word.add(found)
    draft.left += stale_topics(view.live, draft.choice.adopted)
    draft.left += _not_found(draft.choice.adopted, view.live)


def _leave_copies(draft: _RepairDraft, view: RepairView) -> None:
    """Change nothing of a broker with a copied log dir: each of its log dirs is opened when a plan is applied."""
    for copy, why in copied_log_dirs(view.log_dirs.values()):
        of_broker = tuple(path for path, each in view.log_dirs.items() if each.broker == copy.broker)
        draft.actions = [each for each in draft.actions if each.log_dir not in of_broker]
        within = tuple(f"{path}/" for path in of_broker)
        draft.undecided = [each for each in draft.undecided if not each.paths[0].startswith(within)]
        step = step_of_fleet("DUPLICATE_DIRECTORY_ID", Call(of_broker))
        shown = "" if step is None else step.text or ""
        reason = f"no log dir of its broker is repaired: {why}"
        draft.left.append(LeftAlone(copy.path, ".", Verdict.DUPLICATE.value, reason, shown))


def _left(row: Row, verdict: Verdict, reason: str) -> LeftAlone:
    return LeftAlone(row["log_dir"], row["name"], verdict.value, reason)


def _on_log_dirs(draft: _RepairDraft, rows: Sequence[Row], view: RepairView) -> None:
    """Add actions about checkpoints and leftovers, log dir by log dir."""
    staging = {action.log_dir for action in draft.actions if action.kind is ActionKind.STAGE_DUPLICATE}
    entries: dict[str, list[Row]] = {}
    for row in rows:
        if row["kind"] == Kind.CHECKPOINT_ENTRY:
            entries.setdefault(row["log_dir"], []).append(row)
        elif row["kind"] == Kind.LEFTOVER and draft.choice.has([ActionKind.REMOVE_LEFTOVER]):
            draft.add(leftover_action(row, view))
    if draft.choice.has(CHECKPOINT_REPAIRS):
        for path, found in entries.items():
            for each in checkpoint_actions(view.log_dirs[path], found, view, staging=path in staging):
                draft.add(each)


def _not_found(adopted: Collection[str], live: Sequence[Judged]) -> Iterator[LeftAlone]:
    """Yield a finding for each adopted topic that no log dir has."""
    known = {each.observed["topic"] for each in live if each.observed is not None}
    for topic in sorted(set(adopted) - known):
        yield LeftAlone("", topic, "", "no live replica of this topic was found, so there is nothing to adopt")


_ORDER = {kind: number for number, kind in enumerate(ActionKind)}


def _plan(draft: _RepairDraft, view: RepairView, origin: PlanOrigin) -> Plan:
    changed = {action.log_dir for action in draft.actions}
    changed |= {action.keeps.log_dir for action in draft.actions if action.keeps is not None}
    # All log dirs of a broker belong to its plan: it must run on none of them, and what comes next names all.
    brokers = {broker_of(view.log_dirs[path].row) for path in changed}
    needed = {path for path, each in view.log_dirs.items() if each.can_be_trusted and broker_of(each.row) in brokers}
    places = {path: number for number, path in enumerate(view.log_dirs)}
    actions = sorted(draft.actions, key=lambda each: (places[each.log_dir], _ORDER[each.kind], each.name))
    return Plan(
        origin.now_ms,
        origin.host,
        origin.user,
        PlanChoice().delay_ms,
        draft.choice.rules.described(),
        tuple(log_dir.planned for path, log_dir in view.log_dirs.items() if path in needed),
        tuple(state.identity.as_text() for state in view.states.values()),
        tuple(actions),
        tuple(sorted(draft.left, key=lambda each: (each.log_dir, each.name, each.reason))),
    )


WRONG_CURE = (
    "deleting partition.metadata is the wrong cure: a KRaft broker since 3.7.1 sets a replica without it aside as "
    "stray, data and all"
)
_BECOMES_STRAY = (
    "a KRaft broker since 3.7.1 sets it aside as stray at its next start, which loses the data where this is the only "
    "copy"
)


def certain_id(judged: Judged, view: RepairView, adopted: Collection[str]) -> Action | LeftAlone | None:
    """Decide about the topic ID of one live replica; None: it is in order.

    It is judged by the case table; ``adopted``: topics whose data the operator vouches for.
    """
    row = judged.observed
    assert row is not None
    adopt = row["topic"] in adopted
    if row["metadata_state"] == MetadataState.OK:
        return _other_id(judged, row, view) if adopt and judged.verdict is not Verdict.OK else None
    if row["metadata_state"] == MetadataState.MISSING and not _misses_an_id(judged, row, view):
        return None
    against = list(_against(judged, row, view))
    if not against:
        against += _old_data(judged, row, view) if not adopt else ()
    path = f"{row['name']}/{partition_metadata.FILE_NAME}"
    if not against and (row["log_dir"], path) not in view.files:
        against = [row["problem"] or f"{path} cannot be read"]
    if against:
        said = f"{row['problem']}; " if row["problem"] else ""
        return _left(row, judged.verdict, f"{said}no topic ID is certain: {'; '.join(against)}")
    return _action(ActionKind.WRITE_PARTITION_METADATA, judged, view, _why_certain(judged, row, view, adopt))


def _misses_an_id(judged: Judged, row: Row, view: RepairView) -> bool:
    """Whether a replica without the file should have it: not before Kafka 2.8, and not where it is unwanted."""
    if not judged.row.judged:
        return broker_of(row) in view.with_ids
    return judged.row.wanted and bool(judged.row.wanted_topic_id)


def _against(judged: Judged, row: Row, view: RepairView) -> Iterator[str]:
    """Yield the contradictions of a topic ID that the operator cannot override."""
    state, wanted, broker = row["metadata_state"], judged.row.wanted_topic_id, broker_of(row)
    if state == MetadataState.UNREADABLE:
        yield "the file is not one that can be replaced"
        return
    if view.copies_of(row) > 1:
        yield "the replica is live in two log dirs: repair that first"
    if not judged.row.judged:
        yield "no metadata speaks for this broker"
    elif not judged.row.wanted:
        yield "the metadata does not want this replica here"
    elif not wanted:
        yield "the metadata has no topic ID for it"
    elif judged.row.moving:
        yield "a reassignment is moving it, or its partition is being deleted"
    else:
        if row["topic_id"] not in (None, wanted):
            yield f"the disk says {row['topic_id']}, and the metadata {wanted}"
        strangers = sorted(view.topics_of_id.get((broker, wanted), set()) - {row["topic"]})
        if strangers:
            yield f"topic ID {wanted} is on this broker's disks as topic {strangers[0]}"
        if (broker, wanted, row["partition"]) in view.staged:
            yield f"another copy of it under topic ID {wanted} lies aside, stray or staged: it may be the right one"


def _old_data(judged: Judged, row: Row, view: RepairView) -> Iterator[str]:
    """Yield signs that the data may be of an older topic of the same name; the operator may override them."""
    wanted = judged.row.wanted_topic_id
    others = sorted(set(view.ids_of_topic.get((broker_of(row), row["topic"]), ())) - {wanted})
    if others:
        yield f"other replicas of topic {row['topic']} on this broker hold topic ID {others[0]}, and not {wanted}"
    on_disk = last_epoch(row, view.files)
    above = epoch_above(on_disk, judged.wanted)
    if above is not None:
        yield f"{above}; if the metadata was lost and made anew, --adopt-topic-id {row['topic']}"


def _other_id(judged: Judged, row: Row, view: RepairView) -> Action | LeftAlone:
    """Decide about an adopted topic's replica whose intact file holds another topic ID than the metadata."""
    against = list(_adoption_refused(judged, row, view))
    if (row["log_dir"], f"{row['name']}/{partition_metadata.FILE_NAME}") not in view.files:
        against.append("its partition.metadata cannot be read")
    if against:
        return _left(row, judged.verdict, f"it is not adopted: {'; '.join(against)}")
    wanted = judged.row.wanted_topic_id
    reached, in_metadata = last_epoch(row, view.files), None if judged.wanted is None else judged.wanted["leader_epoch"]
    epochs = (
        ""
        if reached is None or in_metadata is None
        else (f" Its last leader epoch is {reached}, the metadata's {in_metadata}.")
    )
    evidence = (
        f"the disk holds topic ID {row['topic_id']}, the metadata has {wanted} for topic {row['topic']}, and "
        f"--adopt-topic-id declares the data on the disk to be that topic's. This is right where the metadata was lost "
        f"and the topic made anew, and wrong where the topic was deleted on purpose; {WRONG_CURE}.{epochs}"
    )
    return _action(ActionKind.REPLACE_TOPIC_ID, judged, view, evidence)


def _adoption_refused(judged: Judged, row: Row, view: RepairView) -> Iterator[str]:
    if view.copies_of(row) > 1:
        yield "the replica is live in two log dirs: repair that first"
    elif judged.verdict is not Verdict.STALE_ID:
        yield judged.evidence
    elif not judged.row.wanted or not judged.row.wanted_topic_id:
        yield "the metadata does not want a replica of this topic here"
    elif judged.row.moving:
        yield "a reassignment is moving it, or its partition is being deleted"
    elif "/" in row["name"] and view.log_dirs[row["log_dir"]].scheme == "by-topic-id":
        yield "its directory is named after its topic ID, which a repair does not rename"


def stale_topics(judged: list[Judged], adopted: Collection[str]) -> Iterator[LeftAlone]:
    """Yield one finding for each topic that is not adopted and whose replicas hold another ID than the metadata."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for each in judged:
        row = each.observed
        if row is not None and each.verdict is Verdict.STALE_ID and each.row.wanted and row["topic"] not in adopted:
            groups.setdefault((row["log_dir"], row["topic"]), []).append(each)
    for (log_dir, topic), found in groups.items():
        first = found[0].observed
        assert first is not None
        more = f", and {len(found) - 1} more of topic {topic} like it" if len(found) > 1 else ""
        yield LeftAlone(
            log_dir,
            first["name"],
            Verdict.STALE_ID.value,
            f"{found[0].evidence}{more}; if the topic was deleted on purpose this is old data, which 'logstore plan' "
            f"stages; if the metadata was lost and made anew, --adopt-topic-id {topic} keeps the data; {WRONG_CURE}",
        )


def _action(kind: ActionKind, judged: Judged, view: RepairView, evidence: str) -> Action:
    row = judged.observed or {}
    path = f"{row['name']}/{partition_metadata.FILE_NAME}"
    wanted = TopicId.parse(judged.row.wanted_topic_id)
    ours = view.log_dirs[row["log_dir"]].scheme is not None
    written = (
        partition_metadata.encode_json(wanted, row["topic"], row["partition"])
        if ours
        else partition_metadata.encode(wanted)
    )
    return Action(
        kind,
        row["log_dir"],
        path,
        row["topic"],
        row["partition"],
        row["topic_id"],
        str(wanted),
        judged.verdict.value,
        evidence,
        inode=row["inode"],
        expects=sum_of(view.files[row["log_dir"], path]),
        writes=sum_of(written),
    )


def _why_certain(judged: Judged, row: Row, view: RepairView, adopt: bool) -> str:
    wanted, near = judged.row.wanted_topic_id, view.neighbours(judged)
    said = [f"{near.holders} other of this broker's replicas of the topic hold it" if near.holders else ""]
    said += [shown_present(judged, near) or "", "--adopt-topic-id vouches for the data" if adopt else ""]
    beside = "; ".join(dict.fromkeys(filter(None, said))) or f"nothing here denies it; but {NOTHING_SHOWS}"
    damage = row["problem"] or f"there is no {partition_metadata.FILE_NAME}: {_BECOMES_STRAY}"
    return (
        f"{damage}. The metadata wants partition {row['partition']} of topic {row['topic']} on this broker under topic "
        f"ID {wanted}, and {beside}"
    )


def uncertain_replicas(view: RepairView) -> Iterator[UncertainReplica]:
    """Find the replicas that no repair takes on, by the same evidence; one that is live twice is for another repair."""
    left = []
    for judged in view.judged:
        row = judged.observed or {}
        # What is staged beside a log dir is no matter for its broker.
        if row.get("kind") in (Kind.FUTURE, Kind.STRAY, Kind.STAGED) and not row["name"].startswith("../"):
            yield UncertainReplica(row["log_dir"], row["name"], row["topic"], row["problem"] or "", is_live=False)
        elif row.get("kind") == Kind.LIVE and view.copies_of(row) <= 1:
            found = certain_id(judged, view, ())
            shown = shown_present(judged, view.neighbours(judged)) is not None
            if isinstance(found, LeftAlone) or (found is not None and not shown):
                left.append((judged, row, found, shown))
    elsewhere = led_elsewhere(view.states, [(broker_of(row), row["topic"], row["partition"]) for _, row, *_ in left])
    renamed_back = replace(view, topics_of_id={})
    for judged, row, found, shown in left:
        key, is_left = (broker_of(row), row["topic"], row["partition"]), isinstance(found, LeftAlone)
        unwanted = judged.row.judged and judged.row.complete and not judged.row.wanted
        adopted = isinstance(certain_id(judged, view, [row["topic"]]), Action)
        yield UncertainReplica(
            row["log_dir"],
            row["name"],
            row["topic"],
            found.reason if isinstance(found, LeftAlone) else NOTHING_SHOWS,
            can_be_adopted=adopted,
            can_go=unwanted or key in elsewhere,
            waits=is_left and _waits(judged, renamed_back, shown=shown),
            is_repaired=not is_left,
        )


def _waits(judged: Judged, renamed_back: RepairView, *, shown: bool) -> bool:
    """Whether a topic ID is certain once directories that were renamed have their names again, or stale ones are gone.

    A broker in ZooKeeper mode writes the missing ID by itself, whatever shows whose data it is.
    """
    row = judged.observed or {}
    if isinstance(certain_id(judged, renamed_back, ()), Action):
        return shown or broker_of(row) not in renamed_back.on_kraft
    adopted = isinstance(certain_id(judged, renamed_back, [row["topic"]]), Action)
    return adopted and shown and epoch_above(last_epoch(row, renamed_back.files), judged.wanted) is None
