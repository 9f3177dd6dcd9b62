"""Makes a repair plan from what was seen and what is wanted: a pure function, without a clock, a file or a logger.

What each row is, the case table says; what may be done about it is decided for topic IDs in ``repair_ids``, for the
files of a log dir's root in ``repair_files``, for duplicates in ``repair_copies``. Whatever is wrong and is not touched
is in the plan too, with the reason. Where one repair would disturb another in the same log dir, the second one waits
for the next plan. Source: DESIGN §3, §6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from layout.ours import (
    CHECKPOINT_REPAIRS,
    TOPIC_ID_REPAIRS,
    LeftAlone,
    PlannedLogDir,
    RepairAction,
    RepairKind,
    RepairPlan,
    sealed_repair_plan,
)
from logstore.rows import Kind
from reconciler.desired import DesiredState, MetadataIdentity, registered_log_dirs
from reconciler.plan.repair_copies import duplicates
from reconciler.plan.repair_files import checkpoint_actions, is_damaged, leftover_action
from reconciler.plan.repair_ids import Files, certain_id, stale_topics
from reconciler.plan.repair_view import RepairableLogDir, RepairView
from reconciler.verdicts import Judged, Row, compare


@dataclass(frozen=True, slots=True)
class RepairChoice:
    """What the operator asks for.

    Attributes:
        only: kinds of actions; empty: all of them.
        adopted: topics whose data on disk is declared to be the data of the topic that has the name now.
    """

    only: frozenset[RepairKind] = frozenset()
    adopted: frozenset[str] = frozenset()

    def has(self, kinds: Collection[RepairKind]) -> bool:
        """Whether actions of any of these kinds are asked for."""
        return not self.only or bool(self.only & frozenset(kinds))


@dataclass(slots=True)
class _RepairDraft:
    actions: list[RepairAction] = field(default_factory=list)
    left: list[LeftAlone] = field(default_factory=list)

    def add(self, found: RepairAction | LeftAlone | None, choice: RepairChoice) -> None:
        if isinstance(found, LeftAlone):
            self.left.append(found)
        elif found is not None and choice.has([found.kind]):
            self.actions.append(found)


def propose_repair(
    view: RepairView, files: Files, states: Mapping[str, DesiredState], now_ms: int, choice: RepairChoice
) -> RepairPlan:
    """Make a plan, with its fingerprint.

    Args:
        view: what was seen.
        files: what the files hold that :meth:`RepairView.files_wanted` names.
        states: by cluster, as :func:`reconciler.desired.by_cluster` gives them; the same that the view was made
        with.
        now_ms: when, in ms since 1970.
        choice: what the operator asks for.
    """
    draft = _RepairDraft()
    trusted = {path for path, log_dir in view.log_dirs.items() if log_dir.can_be_trusted}
    for path, log_dir in view.log_dirs.items():
        if path not in trusted:
            reason = f"nothing is repaired in a log dir that cannot be trusted: {log_dir.row['problem'] or 'no broker'}"
            draft.left.append(LeftAlone(path, ".", reason))
    rows = [row for row in view.rows if row["log_dir"] in trusted]
    live = [each for each in compare(states, rows, now_ms) if each.observed and each.observed["kind"] == Kind.LIVE]
    if choice.has(TOPIC_ID_REPAIRS):
        draft.left += [
            LeftAlone(row["log_dir"], row["name"], f"{row['problem']}; only live replicas are given their file again")
            for row in rows
            if row["kind"] in (Kind.FUTURE, Kind.STRAY)
        ]
        for judged in live:
            draft.add(certain_id(judged, view, files, choice.adopted), choice)
        draft.left += stale_topics(live, choice.adopted)
        draft.left += _not_found(choice.adopted, live)
    if choice.has([RepairKind.STAGE_DUPLICATE]):
        broken = {row["log_dir"] for row in rows if row["kind"] == Kind.CHECKPOINT_ENTRY and is_damaged(row)}
        for found in duplicates(live, view, files, broken, registered_log_dirs(dict(states))):
            draft.add(found, choice)
    _on_log_dirs(draft, rows, view, files, choice)
    return sealed_repair_plan(_plan(draft, view, states, now_ms))


def _on_log_dirs(
    draft: _RepairDraft, rows: Sequence[Row], view: RepairView, files: Files, choice: RepairChoice
) -> None:
    """Checkpoints and leftovers, log dir by log dir."""
    staging = {action.log_dir for action in draft.actions if action.kind is RepairKind.STAGE_DUPLICATE}
    entries: dict[str, list[Row]] = {}
    for row in rows:
        if row["kind"] == Kind.CHECKPOINT_ENTRY:
            entries.setdefault(row["log_dir"], []).append(row)
        elif row["kind"] == Kind.LEFTOVER and choice.has([RepairKind.REMOVE_LEFTOVER]):
            draft.add(leftover_action(view.log_dirs[row["log_dir"]], row, files), choice)
    if choice.has(CHECKPOINT_REPAIRS):
        for path, found in entries.items():
            for each in checkpoint_actions(view.log_dirs[path], found, files, path in staging):
                draft.add(each, choice)


def _not_found(adopted: Collection[str], live: Sequence[Judged]) -> Iterator[LeftAlone]:
    """A word for each topic that was to be adopted and that no log dir has."""
    known = {each.observed["topic"] for each in live if each.observed is not None}
    for topic in sorted(set(adopted) - known):
        yield LeftAlone("", topic, "no live replica of this topic was found, so there is nothing to adopt")


_ORDER = {kind: number for number, kind in enumerate(RepairKind)}


def _plan(draft: _RepairDraft, view: RepairView, states: Mapping[str, DesiredState], now_ms: int) -> RepairPlan:
    needed = {action.log_dir for action in draft.actions}
    needed |= {action.keeps.log_dir for action in draft.actions if action.keeps is not None}
    places = {path: number for number, path in enumerate(view.log_dirs)}
    actions = sorted(draft.actions, key=lambda each: (places[each.log_dir], _ORDER[each.kind], each.path))
    return RepairPlan(
        now_ms,
        tuple(_planned(log_dir) for path, log_dir in view.log_dirs.items() if path in needed),
        tuple(_identity(state.identity) for state in states.values()),
        tuple(actions),
        tuple(sorted(draft.left, key=lambda each: (each.log_dir, each.path, each.reason))),
    )


def _planned(log_dir: RepairableLogDir) -> PlannedLogDir:
    row = log_dir.row
    return PlannedLogDir(log_dir.path, row["cluster_id"], row["node_id"], row["directory_id"])


def _identity(identity: MetadataIdentity) -> dict[str, Any]:
    told = {
        "source": identity.source,
        "location": identity.location,
        "cluster_id": identity.cluster_id,
        "completeness": identity.completeness.value,
        "offset": identity.offset,
        "epoch": identity.epoch,
        "timestamp_ms": identity.timestamp_ms,
        "sha256": identity.digest or None,
    }
    return {key: str(value) for key, value in told.items() if value is not None}
