"""Decide about repairs of offset checkpoints, of temporary files in the root of a log dir, and of duplicates. Pure.

A duplicate is live in two log dirs of one broker. The better copy stays and the other is staged, if
:func:`reconciler.verdicts.rank_copies` ranks them and the log dirs surely belong to one broker. What looks like
duplicates is often a whole disk that somebody copied, or an old disk that was never removed: a log dir with the other's
directory.id, a log dir that its broker did not register, or a log dir full of duplicates. There no copy is chosen, and
the plan says why. Where only the rank of the copies is not known, the operator names the one that
stays. Source: DESIGN §3, §6; USERS pain 18.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from layout import checkpoint, meta_properties, partition_metadata
from layout.errors import LayoutError
from layout.ours import BROKER_TEMPORARY, LEFTOVERS, sum_of
from layout.scheme import Scheme, namespace_path
from layout.topic import Namespace, namespace_of
from logstore.rows import Kind, MetadataState
from reconciler.desired import BrokerKey, RegisteredLogDir, registered_log_dirs
from reconciler.next_steps import Call, step_of_fleet
from reconciler.plan.evidence import RepairView, ScannedLogDir, last_epoch
from reconciler.plan.plan import Action, ActionKind, KeptCopy, LeftAlone
from reconciler.text import count, moment, size
from reconciler.verdicts import Copy, Judged, Ranking, Row, Verdict, broker_of, rank_copies

_HARMLESS = (
    "For what the file lacks, a broker recovers the log from its beginning, takes the first segment for the log start "
    "and learns the high watermark anew"
)


def checkpoint_actions(
    log_dir: ScannedLogDir, rows: Sequence[Row], view: RepairView, *, staging: bool
) -> Iterator[Action | LeftAlone]:
    """Decide about the offset checkpoints of one log dir.

    Args:
        log_dir: as scanned.
        rows: its rows of the kind ``checkpoint_entry``.
        view: the evidence.
        staging: whether the plan stages a replica of this log dir; staging writes the checkpoints anew.
    """
    by_file: dict[str, list[Row]] = {}
    for row in rows:
        by_file.setdefault(row["name"], []).append(row)
    for file, found in by_file.items():
        data = view.files.get((log_dir.path, file))
        if data is None:
            yield _left(found[0], found[0]["problem"] or "it cannot be read")
        elif found[0]["metadata_state"] is not None:
            yield _rebuild(log_dir, found[0], data)
        elif staging:
            waits = "staging a duplicate writes it anew, so plan again after"
            yield _left(found[0], f"{len(found)} of its entries are stale; {waits}")
        else:
            yield _drop(log_dir, found, data)


def _left(row: Row, reason: str) -> LeftAlone:
    """Leave a file of the root of a log dir alone."""
    return LeftAlone(row["log_dir"], row["name"], _verdict_of(row).value, reason)


def _verdict_of(row: Row) -> Verdict:
    """Return the verdict of the case table on a file of the root of a log dir."""
    if row["kind"] == Kind.LEFTOVER:
        return Verdict.LEFTOVER
    return Verdict.CHECKPOINT_ENTRY if row["metadata_state"] is None else Verdict.DAMAGED


def _repair(
    kind: ActionKind,
    row: Row,
    why: str,
    data: bytes,
    written: bytes | None,
    *,
    drops: tuple[str, ...] = (),
    lost: tuple[str, ...] = (),
) -> Action:
    """Make the repair of a file of the root of a log dir, which is about no replica."""
    return Action(
        *(kind, row["log_dir"], row["name"], "", -1, None, None),
        *(_verdict_of(row).value, why),
        expects=sum_of(data),
        writes=sum_of(written),
        drops=drops,
        lost=lost,
    )


def _rebuild(log_dir: ScannedLogDir, row: Row, data: bytes) -> Action | LeftAlone:
    salvaged, problem = checkpoint.salvage(data), row["problem"] or ""
    if salvaged.version not in (None, 0):
        reason = f"{problem}; its first line is {salvaged.version}, so it may be of a format that is not known here"
        return _left(row, reason)
    stale = [key for key in salvaged.entries if _surely_gone(log_dir, key)]
    kept = len(salvaged.entries) - len(stale)
    evidence = (
        f"{problem}. What stays: {count(kept, 'entry', 'entries')}; what is lost: {count(len(salvaged.lost), 'line')}; "
        f"what goes, without a directory here: {count(len(stale), 'entry', 'entries')}. {_HARMLESS}"
    )
    written, drops = checkpoint.rebuilt(data, frozenset(stale)), _entries(stale)
    return _repair(ActionKind.REBUILD_CHECKPOINT, row, evidence, data, written, drops=drops, lost=salvaged.lost)


def _entries(keys: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    return tuple(f"{topic} {partition}" for topic, partition in sorted(keys))


def _drop(log_dir: ScannedLogDir, rows: Sequence[Row], data: bytes) -> Action | LeftAlone:
    gone = [key for row in rows if _surely_gone(log_dir, key := (row["topic"], row["partition"]))]
    if not gone:
        reason = f"{len(rows)} of its entries look stale, but not everything in the log dir can be listed"
        return _left(rows[0], reason)
    try:
        written = checkpoint.pruned(data, rows[0]["name"], frozenset(gone))
    except LayoutError as error:
        return _left(rows[0], str(error))
    evidence = (
        f"{count(len(gone), 'entry', 'entries')} of partitions that have no directory here; a replica that is created "
        "there under the same name would begin with offsets that are another's"
    )
    return _repair(ActionKind.DROP_CHECKPOINT_ENTRIES, rows[0], evidence, data, written, drops=_entries(gone))


def _surely_gone(log_dir: ScannedLogDir, key: tuple[str, int]) -> bool:
    """Whether a partition surely has no directory in a log dir, nor below a directory that could not be listed."""
    if key in log_dir.held or any(topic is None for topic, _ in log_dir.held):
        return False
    if log_dir.scheme is Scheme.BY_TOPIC_ID:
        return not log_dir.foreign
    try:
        folder = namespace_path(Namespace.parse(namespace_of(key[0])))
    except LayoutError:
        folder = ""
    return not any(f"{folder}/".startswith(f"{name}/") for name in log_dir.foreign)


def leftover_action(row: Row, view: RepairView) -> Action | LeftAlone:
    """Decide about a temporary file in the root of a log dir."""
    name = row["name"]
    target = name.removesuffix(BROKER_TEMPORARY)
    data, whole = (view.files.get((row["log_dir"], path)) for path in (name, target))
    if name not in LEFTOVERS:
        return _left(row, f"nothing here can tell whether {target} is whole without it")
    if data is None:
        return _left(row, "it cannot be read")
    problem = _not_whole(target, whole)
    if problem is not None:
        return _left(row, f"{problem}, so this may be all that is left of it")
    evidence = f"a write of {target} that did not finish; {target} itself is whole, and nobody reads this"
    return _repair(ActionKind.REMOVE_LEFTOVER, row, evidence, data, None)


def _not_whole(target: str, data: bytes | None) -> str | None:
    """Return why a file may still need its temporary file, as a clause; None: it is whole."""
    if not data:
        return f"{target} is {'missing or not readable' if data is None else 'empty'}"
    try:
        if target == meta_properties.FILE_NAME:
            meta_properties.parse(data)
        else:
            checkpoint.parse_offsets(data, target)
    except LayoutError as error:
        return str(error)
    return None


def _is_damaged(row: Row) -> bool:
    """Whether a row of the kind ``checkpoint_entry`` is about a file that does not parse."""
    return row["metadata_state"] in (MetadataState.MALFORMED, MetadataState.UNREADABLE)


MANY, MOST_SHARE = 10, 0.3
"""A log dir with more duplicates than both this number and this share of its replicas counts as a copied disk."""


@dataclass(frozen=True, slots=True)
class UndecidedDuplicate:
    """A replica that is live more than once, and nothing tells which copy is the better one: a person decides.

    Attributes:
        paths: of the copies, at least two.
        reason: why the better one is not known, a clause.
    """

    paths: tuple[str, ...]
    reason: str


def duplicates(view: RepairView, kept: Collection[str] = ()) -> Iterator[Action | LeftAlone | UndecidedDuplicate]:
    """Decide about each replica that is live more than once on its broker.

    Args:
        view: the evidence.
        kept: paths of copies that the operator keeps, whatever their rank.
    """
    known = registered_log_dirs(dict(view.states))
    rows_of = [each.observed for each in view.judged if each.observed is not None]
    broken = {row["log_dir"] for row in rows_of if row["kind"] == Kind.CHECKPOINT_ENTRY and _is_damaged(row)}
    groups: dict[tuple[BrokerKey, str, int], list[Judged]] = {}
    for judged in view.live:
        row = judged.observed
        if row is not None and row["topic"] is not None and view.copies_of(row) > 1:
            groups.setdefault((broker_of(row), row["topic"], row["partition"]), []).append(judged)
    many = _copied_log_dirs(groups.values(), view)
    left: dict[tuple[str, str], list[Sequence[Row]]] = {}
    of_others: set[str] = set()
    for group in groups.values():
        rows = [judged.observed for judged in group if judged.observed is not None]
        other = _not_one_broker(rows, known, many)
        of_others |= {other} if other else set()
        problem = other or _cannot_be_ranked(rows, broken)
        ranking = problem or _chosen(rows, kept) or _ranked(rows, group[0].wanted, view)
        if isinstance(ranking, str):
            if problem is None:
                yield UndecidedDuplicate(tuple(map(_path_of, rows)), ranking)
            places = " and ".join(dict.fromkeys(row["log_dir"] for row in rows))
            left.setdefault((places, ranking), []).append(rows)
            continue
        for worse, why in ranking.worse:
            yield _stage(worse.of, ranking.best.of, group[0].row.wanted_topic_id or None, why, view)
    for (places, reason), found in left.items():
        more = f", and {count(len(found) - 1, 'more replica')}" if len(found) > 1 else ""
        sentence = f"live twice{more}, in {places}, and which copy is the better one cannot be told: {reason}"
        log_dirs = tuple(sorted({row["log_dir"] for rows in found for row in rows}))
        step = step_of_fleet("DUPLICATE_DIRECTORY_ID", Call(log_dirs)) if reason in of_others else None
        shown = "" if step is None else step.text or ""
        yield LeftAlone(found[0][0]["log_dir"], found[0][0]["name"], Verdict.DUPLICATE.value, sentence, shown)


def _copied_log_dirs(groups: Iterable[Sequence[Judged]], view: RepairView) -> dict[str, str]:
    """Find log dirs with so many duplicates that they are rather copies of another disk, with a reason (DESIGN §6)."""
    times = Counter(judged.observed["log_dir"] for group in groups for judged in group if judged.observed is not None)
    return {
        path: f"{number:,} of the {len(view.log_dirs[path].held):,} replicas in {path} are live elsewhere too, so it "
        "is rather a copy of another disk than one of this broker's own; give the log dirs of its log.dirs alone"
        for path, number in times.items()
        if number > MANY and number > MOST_SHARE * len(view.log_dirs[path].held)
    }


def _not_one_broker(rows: Sequence[Row], known: Collection[RegisteredLogDir], many: Mapping[str, str]) -> str | None:
    """Return why the log dirs of some copies may not belong to one broker, as a clause; None: no reason."""
    ids = [row["directory_id"] for row in rows if row["directory_id"] is not None]
    if len(set(ids)) < len(ids) and len({row["log_dir"] for row in rows}) == len(rows):
        return f"two of their log dirs carry directory.id {ids[0]}, so one is a copy of the other"
    broker = broker_of(rows[0])
    registered = {each.directory_id for each in known if (each.cluster, each.node) == (broker.cluster, broker.node)}
    for row in rows:
        if registered and row["directory_id"] is not None and row["directory_id"] not in registered:
            return (
                f"the broker did not register {row['log_dir']} with its controller, so it may not be one of its disks"
            )
    return next((many[row["log_dir"]] for row in rows if row["log_dir"] in many), None)


def _cannot_be_ranked(rows: Sequence[Row], broken: Collection[str]) -> str | None:
    """Return why copies cannot be ranked, as a clause; None: they can."""
    log_dirs = [row["log_dir"] for row in rows]
    if len(set(log_dirs)) < len(log_dirs):
        return "two of them lie in one log dir and share its checkpoints; move one of them out by hand"
    damaged = sorted(set(log_dirs) & set(broken))
    if damaged:
        return f"an offset checkpoint of {damaged[0]} is damaged; apply what repairs it, and plan again"
    if any(row["metadata_state"] == MetadataState.UNREADABLE for row in rows):
        return "one of them cannot be read"
    return None


def _path_of(row: Row) -> str:
    return posixpath.join(row["log_dir"], row["name"])


def _chosen(rows: Sequence[Row], kept: Collection[str]) -> Ranking[Row] | str | None:
    """Rank copies as the operator decided; None: nothing was decided about them."""
    chosen = [row for row in rows if _path_of(row) in kept]
    if len(chosen) > 1:
        return "--keep names more than one of them"
    if not chosen:
        return None
    copies = {_path_of(row): Copy(row, row["topic_id"] or "", None, None, assigned=False) for row in rows}
    best = copies.pop(_path_of(chosen[0]))
    why = f"--keep names the copy that stays, {_look_of(best.of)}"
    return Ranking(best, tuple((copy, f"{why}, beside this one, {_look_of(copy.of)}") for copy in copies.values()))


def _look_of(row: Row) -> str:
    """Return what a person compares copies by."""
    return f"of {size(row['bytes'])}, last changed {moment(row['modified_ms'])}"


def _ranked(rows: Sequence[Row], wanted: Row | None, view: RepairView) -> Ranking[Row] | str:
    assigned = None if wanted is None else wanted["directory_id"]
    copies: list[Copy[Row]] = [
        Copy(
            row,
            row["topic_id"] or "",
            last_epoch(row, view.files),
            -1 if row["end_offset"] is None else row["end_offset"],
            assigned is not None and row["directory_id"] == assigned,
        )
        for row in rows
    ]
    return rank_copies(copies, (wanted["topic_id"] or "") if wanted else "")


def _stage(worse: Row, best: Row, wanted_topic_id: str | None, why: str, view: RepairView) -> Action | LeftAlone:
    path = f"{worse['name']}/{partition_metadata.FILE_NAME}"
    if (worse["log_dir"], path) not in view.files:
        reason = "it is live twice, and this copy cannot be read"
        return LeftAlone(worse["log_dir"], worse["name"], Verdict.DUPLICATE.value, reason)
    evidence = (
        f"live in two log dirs, with which a broker does not start; {why}; {best['log_dir']}/{best['name']} stays, and "
        "this copy can be restored until it is purged"
    )
    in_order = worse["metadata_state"] in (MetadataState.OK, MetadataState.CONTRADICTS)
    keeps_id = best["topic_id"] if best["metadata_state"] in (MetadataState.OK, MetadataState.CONTRADICTS) else None
    return Action(
        ActionKind.STAGE_DUPLICATE,
        worse["log_dir"],
        worse["name"],
        worse["topic"],
        worse["partition"],
        worse["topic_id"] if in_order else None,
        wanted_topic_id,
        Verdict.DUPLICATE.value,
        evidence,
        inode=worse["inode"],
        created_ms=view.created.get((worse["log_dir"], worse["name"])),
        expects=sum_of(view.files[worse["log_dir"], path]),
        keeps=KeptCopy(best["log_dir"], best["name"], best["inode"], keeps_id),
    )


def not_twice(kept: Collection[str], view: RepairView) -> Iterator[LeftAlone]:
    """Yield a finding for each path of ``--keep`` that is no copy of a replica that is live twice."""
    rows = (each.observed for each in view.live if each.observed is not None)
    known = {posixpath.join(row["log_dir"], row["name"]) for row in rows if view.copies_of(row) > 1}
    for path in sorted(set(kept) - known):
        log_dir, name = posixpath.split(path)
        reason = "it is no copy of a replica that is live twice, so --keep decides nothing"
        yield LeftAlone(log_dir, name, "", reason)
