"""What a repair plan does about the files in the root of a log dir: offset checkpoints, and what writes left over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layout import checkpoint, meta_properties
from layout.errors import LayoutError
from layout.ours import LEFTOVERS, LeftAlone, RepairAction, RepairKind, sum_of
from layout.scheme import Scheme, namespace_path
from layout.topic import Namespace, namespace_of
from logstore.rows import MetadataState
from reconciler.plan.repair_ids import Files
from reconciler.plan.repair_view import RepairableLogDir
from reconciler.text import count
from reconciler.verdicts import Row

_TEMPORARY = ".tmp"
_HARMLESS = (
    "For what the file lacks, a broker recovers the log from its beginning, takes the first segment for the log start "
    "and learns the high watermark anew"
)


def checkpoint_actions(
    log_dir: RepairableLogDir, rows: Sequence[Row], files: Files, staging: bool
) -> Iterator[RepairAction | LeftAlone]:
    """What is to be done about the offset checkpoints of one log dir.

    Args:
        log_dir: as it was seen.
        rows: of the kind ``checkpoint_entry`` in it.
        files: the checkpoints' bytes.
        staging: the plan stages a replica of this log dir, which writes its checkpoints anew.
    """
    by_file: dict[str, list[Row]] = {}
    for row in rows:
        by_file.setdefault(row["name"], []).append(row)
    for file, found in by_file.items():
        data = files.get((log_dir.path, file))
        if data is None:
            yield LeftAlone(log_dir.path, file, found[0]["problem"] or "it cannot be read")
        elif found[0]["metadata_state"] is not None:
            yield _rebuild(log_dir, file, data, found[0]["problem"] or "")
        elif staging:
            yield LeftAlone(
                log_dir.path,
                file,
                f"{len(found)} of its entries are stale; staging a duplicate writes it anew, so plan again after",
            )
        else:
            yield _drop(log_dir, file, data, [(row["topic"], row["partition"]) for row in found])


def _rebuild(log_dir: RepairableLogDir, file: str, data: bytes, problem: str) -> RepairAction | LeftAlone:
    salvaged = checkpoint.salvage(data)
    if salvaged.version not in (None, 0):
        reason = f"{problem}; its first line is {salvaged.version}, so it may be of a format that is not known here"
        return LeftAlone(log_dir.path, file, reason)
    stale = [key for key in salvaged.entries if _surely_gone(log_dir, key)]
    kept = len(salvaged.entries) - len(stale)
    evidence = (
        f"{problem}. What stays: {count(kept, 'entry', 'entries')}; what is lost: {count(len(salvaged.lost), 'line')}; "
        f"what goes, without a directory here: {count(len(stale), 'entry', 'entries')}. {_HARMLESS}"
    )
    return RepairAction(
        RepairKind.REBUILD_CHECKPOINT,
        log_dir.path,
        file,
        evidence,
        sum_of(data),
        sum_of(checkpoint.rebuilt(data, frozenset(stale))),
        drops=tuple(f"{topic} {partition}" for topic, partition in sorted(stale)),
        lost=salvaged.lost,
    )


def _drop(
    log_dir: RepairableLogDir, file: str, data: bytes, keys: Sequence[tuple[str, int]]
) -> RepairAction | LeftAlone:
    gone = sorted(key for key in keys if _surely_gone(log_dir, key))
    if not gone:
        reason = f"{len(keys)} of its entries look stale, but not everything in the log dir can be listed"
        return LeftAlone(log_dir.path, file, reason)
    try:
        written = checkpoint.pruned(data, file, frozenset(gone))
    except LayoutError as error:
        return LeftAlone(log_dir.path, file, str(error))
    evidence = (
        f"{count(len(gone), 'entry', 'entries')} of partitions that have no directory here; a replica that is created "
        "there under the same name would begin with offsets that are another's"
    )
    return RepairAction(
        RepairKind.DROP_CHECKPOINT_ENTRIES,
        log_dir.path,
        file,
        evidence,
        sum_of(data),
        sum_of(written),
        drops=tuple(f"{topic} {partition}" for topic, partition in gone),
    )


def _surely_gone(log_dir: RepairableLogDir, key: tuple[str, int]) -> bool:
    """Whether a partition has no directory in a log dir, and none that could not be looked into may be its."""
    if key in log_dir.held or any(topic is None for topic, _ in log_dir.held):
        return False
    if log_dir.scheme is Scheme.BY_TOPIC_ID:
        return not log_dir.foreign
    try:
        folder = namespace_path(Namespace.parse(namespace_of(key[0])))
    except LayoutError:
        folder = ""
    return not any(f"{folder}/".startswith(f"{name}/") for name in log_dir.foreign)


def leftover_action(log_dir: RepairableLogDir, row: Row, files: Files) -> RepairAction | LeftAlone:
    """What is to be done about a temporary file in the root of a log dir."""
    name = row["name"]
    target = name.removesuffix(_TEMPORARY)
    data, whole = files.get((log_dir.path, name)), files.get((log_dir.path, target))
    if name not in LEFTOVERS:
        return LeftAlone(log_dir.path, name, f"nothing here can tell whether {target} is whole without it")
    if data is None:
        return LeftAlone(log_dir.path, name, "it cannot be read")
    problem = _not_whole(target, whole)
    if problem is not None:
        return LeftAlone(log_dir.path, name, f"{problem}, so this may be all that is left of it")
    evidence = f"a write of {target} that did not finish; {target} itself is whole, and nobody reads this"
    return RepairAction(RepairKind.REMOVE_LEFTOVER, log_dir.path, name, evidence, sum_of(data), sum_of(None))


def _not_whole(target: str, data: bytes | None) -> str | None:
    """Why a file cannot do without its temporary file, as a clause; None: it can."""
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


def is_damaged(row: Row) -> bool:
    """Whether a row of the kind ``checkpoint_entry`` tells of a file that does not parse."""
    return row["metadata_state"] in (MetadataState.MALFORMED, MetadataState.UNREADABLE)
