"""Does the steps of a change, each of them idempotent: repeated after a crash, it does what is left of it.

The steps of one log dir are done in batches, one for each sequence of steps of the same kind. A batch is durable before
the next begins: directories exist before anything is renamed into them, renames are done before files are rewritten at
their new paths, and a directory is removed after everything has left it durably. Within a batch a crash may lose or
keep each effect by itself, because each step looks at what is on the disk.

*Resuming* means that it is not known what was done before. A step that finds its work done only syncs it again, because
the former run may not have done that. A step that finds neither the state before nor the state after logs that and
leaves it. In the first run this is an error, and the change is undone. Source: DESIGN §5; KIP37-3, KIP516-12.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from layout import meta_properties
from layout.ids import TopicId
from layout.ours import (
    IntentStep,
    MakeDirectory,
    RemoveDirectory,
    Rename,
    RenameEntries,
    Rewrite,
    Stage,
    Unstage,
    step_bytes,
)
from layout.scheme import MARKER_FILE
from layout.topic import TopicPartition
from logstore.errors import ChangeRefusedError
from logstore.fs import Batch, read_small_file, remove_file, write_new_file
from logstore.log_dir import META_PROPERTIES_LIMIT, FallbackRecords, LogDir, read_identity
from logstore.staging import Candidate, list_staged, restore, stage
from logstore.tunables import FILES_AT_ONCE

logger = logging.getLogger(__name__)

_LIMIT = META_PROPERTIES_LIMIT


@dataclass(frozen=True, slots=True)
class StepRun:
    """What the steps of one log dir share.

    Attributes:
        log_dir: that the steps change.
        resuming: it is not known what was done before.
        fallback: the fallback records.
    """

    log_dir: LogDir
    resuming: bool
    fallback: FallbackRecords

    def unexpected(self, sentence: str) -> None:
        """Handle a state that is neither the one before the step nor the one after it: when resuming, log it.

        Raises:
            ChangeRefusedError: this is the first run, so the plan of the change no longer holds.
        """
        if not self.resuming:
            raise ChangeRefusedError(f"{self.log_dir.path}: {sentence}, so somebody else changes this log dir")
        logger.warning("%s: %s; it is left as it is", self.log_dir.path, sentence)


def do_steps(
    log_dir: LogDir, steps: Iterable[IntentStep], what: str, *, resuming: bool, fallback: FallbackRecords
) -> None:
    """Do steps of one log dir, durably.

    Args:
        log_dir: that the steps change.
        steps: in their order.
        what: names the change in messages, for example ``create namespace org``.
        resuming: it is not known what was done before.
        fallback: the fallback records.

    Raises:
        OfflineLogDirError: the disk fails; some steps may be done.
        ChangeFailedError, ChangeRefusedError: the system refuses, or the log dir is not in the expected state. Some
            steps may be done: the caller undoes them.
    """
    run = StepRun(log_dir, resuming, fallback)
    for kind, batch in groupby(steps, key=type):
        with log_dir.changing(f"cannot {what}"):
            _DO[kind](run, list(batch))


def _make_directories(run: StepRun, steps: Sequence[MakeDirectory]) -> None:
    """Make directories, parents first; a namespace directory gets its marker before it can be taken for another."""
    disk = run.log_dir.disk
    with Batch(run.log_dir.disk, run.log_dir.root) as opened:
        touched: list[str] = []
        for step in steps:
            folder, _, name = step.path.rpartition("/")
            with suppress(FileExistsError):
                disk.mkdir(opened.at(folder).descriptor, name)
            touched.append(folder)
            if step.tier:
                if not opened.at(step.path).holds(MARKER_FILE):
                    write_new_file(disk, opened.at(step.path), MARKER_FILE, b"", durable=False)
                touched.append(step.path)
            opened.at(step.path)
        opened.sync(touched)


def _remove_directories(run: StepRun, steps: Sequence[RemoveDirectory]) -> None:
    """Remove directories, children first. A directory that is not empty stays, with its marker."""
    disk = run.log_dir.disk
    with Batch(run.log_dir.disk, run.log_dir.root) as opened:
        parents = [step.path.rpartition("/")[0] for step in steps]
        for step in steps:
            folder, _, name = step.path.rpartition("/")
            try:
                parent = opened.at(folder)
                with parent.child(name) as directory:
                    others = [entry for entry, _ in directory.entries() if not step.tier or entry != MARKER_FILE]
                    if not others and step.tier:
                        remove_file(disk, directory, MARKER_FILE, durable=False)
            except FileNotFoundError:
                continue
            if others:
                run.unexpected(f"{step.path} cannot be removed, because it holds {others[0]!r:.60}")
            else:
                opened.forget(step.path)
                disk.rmdir(parent.descriptor, name)
        # A directory that is gone needs no sync: the sync of its parent makes its removal durable.
        opened.sync([folder for folder in parents if opened.has(folder)])


def _rename_directories(run: StepRun, steps: Sequence[Rename]) -> None:
    """Rename directories. Those that gained an entry are synced before those that lost one."""
    with Batch(run.log_dir.disk, run.log_dir.root) as opened:
        for step in steps:
            if not run.resuming or _is_to_be_renamed(run, step, opened):
                opened.rename(step.path, step.new_path)
        targets = [step.new_path.rpartition("/")[0] for step in steps]
        sources = [step.path.rpartition("/")[0] for step in steps]
        # While undoing or repeating, a directory may be gone that a later step has removed.
        opened.sync([folder for folder in (*targets, *sources) if not run.resuming or opened.has(folder)])


def _is_to_be_renamed(run: StepRun, step: Rename, opened: Batch) -> bool:
    """Whether the directory still has its former path."""
    here, there = opened.holds(step.path), opened.holds(step.new_path)
    if here == there:
        state = "both are there" if here else "neither is there"
        run.unexpected(f"{step.path} was to become {step.new_path}, and {state}")
    return here and not there


def _rewrite_files(run: StepRun, steps: Sequence[Rewrite]) -> None:
    """Rewrite files batch by batch. A file that has its new bytes already is only synced again."""
    for start in range(0, len(steps), FILES_AT_ONCE):
        some = steps[start : start + FILES_AT_ONCE]
        with Batch(run.log_dir.disk, run.log_dir.root) as opened:
            changes = [(step.path, step_bytes(step.new)) for step in some if _is_to_be_rewritten(run, step, opened)]
            folders = [step.path.rpartition("/")[0] for step in some]
            opened.replace(changes, (folder for folder in folders if opened.has(folder)))
    if any(step.path == meta_properties.FILE_NAME for step in steps):
        found = read_identity(run.log_dir.path).identity
        if found is not None:
            run.log_dir.identity = found


def _is_to_be_rewritten(run: StepRun, step: Rewrite, opened: Batch) -> bool:
    """Whether the file still holds the former bytes."""
    folder, _, name = step.path.rpartition("/")
    try:
        data = read_small_file(name, _LIMIT, opened.at(folder).descriptor)
    except FileNotFoundError:
        data = None
    if data == step_bytes(step.old):
        return True
    if data is None and run.resuming:
        return False  # while undoing: its directory was not renamed, or has its former name again
    if data != step_bytes(step.new):
        run.unexpected(f"{step.path} {'is not there' if data is None else 'holds other bytes than it did'}")
    return False


def _rename_entries(run: StepRun, steps: Sequence[RenameEntries]) -> None:
    """Rename checkpoint entries in memory, then in the files.

    While undoing, lack of space is no error: the files on disk are then still the former ones.
    """
    run.log_dir.checkpoints.rename({step.topic: step.new_topic for step in steps})
    if run.resuming:
        run.log_dir.write_checkpoints()
    else:
        run.log_dir.checkpoints.write(run.log_dir.disk)


def _stage_replicas(run: StepRun, steps: Sequence[Stage]) -> None:
    """Stage replicas, all at one time. When resuming, a replica that is gone from its path is staged already."""
    if run.resuming:
        with Batch(run.log_dir.disk, run.log_dir.root) as opened:
            steps = [step for step in steps if opened.holds(step.path)]
    if steps:
        outcome = stage(run.log_dir, map(_candidate, steps), steps[0].staged_ms, fallback=run.fallback)
        for refused in outcome.refused:
            run.unexpected(refused.reason)


def _candidate(step: Stage) -> Candidate:
    topic_id = TopicId.parse(step.topic_id) if step.topic_id else None
    partition = TopicPartition(step.topic, step.partition)
    return Candidate(step.path, partition, topic_id, step.verdict, step.evidence, step.due_ms - step.staged_ms)


def _unstage_replicas(run: StepRun, steps: Sequence[Unstage]) -> None:
    """Restore staged replicas, found by their records. A replica that is not found was not staged."""
    wanted = {(step.path, step.topic, step.partition, step.staged_ms) for step in steps}
    for staged in list_staged(run.log_dir, run.fallback):
        record = staged.record
        if record is not None and (record.path, record.topic, record.partition, record.staged_ms) in wanted:
            restore(run.log_dir, staged, fallback=run.fallback)


_DO: dict[type[IntentStep], Callable[[StepRun, Any], None]] = {
    MakeDirectory: _make_directories,
    RemoveDirectory: _remove_directories,
    Rename: _rename_directories,
    Rewrite: _rewrite_files,
    RenameEntries: _rename_entries,
    Stage: _stage_replicas,
    Unstage: _unstage_replicas,
}
