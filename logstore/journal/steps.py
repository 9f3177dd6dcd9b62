"""The steps of a change of many steps, each idempotent: done again after a crash, it does what is left of it.

A row of steps of one log dir is done in batches, one for each run of steps of a kind, and a batch is durable before the
next begins: directories are there before anything is renamed into them, everything lies in its place before files are
rewritten there, and a directory is removed when all that left it has left it durably. Within a batch every effect may
be lost or kept by itself at a crash, because each step looks at what is there.

*Resuming* means that nobody knows what was done before: a step that finds its work done passes on (what is there is
synced again, for the one who did it may not have come to that), and one that finds neither the state before nor the
state after says so and leaves it. In the first run that is an error, and the change is undone. Source: DESIGN §5;
KIP37-3, KIP516-12.
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
from logstore.fs import TEMPORARY, barrier, read_small_file, remove_file, rename_exclusively, write_new_file
from logstore.log_dir import META_PROPERTIES_LIMIT, LogDir, OpenDirectories, read_identity
from logstore.staging import Candidate, FallbackRecords, list_staged, restore, stage

logger = logging.getLogger(__name__)

_BATCH = 500
"""Replicas that are staged, or files that are rewritten, behind one barrier."""

_FEW = 4
"""Files up to which each is synced by itself; for more, one barrier over the file system costs less."""

_LIMIT = META_PROPERTIES_LIMIT


@dataclass(frozen=True, slots=True)
class StepRun:
    """Where a row of steps is done, and how.

    Attributes:
        log_dir: all the steps are about it.
        resuming: what was done before is not known.
        spare: where records lie that found no room in the log dir.
    """

    log_dir: LogDir
    resuming: bool
    spare: FallbackRecords

    def odd(self, sentence: str) -> None:
        """What is there is neither what was before the step nor what is after it.

        Raises:
            ChangeRefusedError: this is the first run, so the change rests on something that is not so.
        """
        if not self.resuming:
            raise ChangeRefusedError(f"{self.log_dir.path}: {sentence}, so somebody else changes this log dir")
        logger.warning("%s: %s; it is left as it is", self.log_dir.path, sentence)


def do_steps(
    log_dir: LogDir, steps: Iterable[IntentStep], what: str, *, resuming: bool, spare: FallbackRecords
) -> None:
    """Do a row of steps of one log dir, durably.

    Args:
        log_dir: that all of them are about.
        steps: in their order.
        what: names the change in messages, for example ``create namespace org``.
        resuming: what was done before is not known.
        spare: where records lie that found no room in the log dir.

    Raises:
        OfflineLogDirError: the disk fails; some steps were done.
        ChangeFailedError, ChangeRefusedError: the system refuses, or what is there is not what it should be. Some steps
            were done: the caller undoes them.
    """
    run = StepRun(log_dir, resuming, spare)
    for kind, batch in groupby(steps, key=type):
        with log_dir.changing(f"cannot {what}"):
            _DO[kind](run, list(batch))


def _make_directories(run: StepRun, steps: Sequence[MakeDirectory]) -> None:
    """Parents come before what lies in them. A tier's marker is in it before anybody can take it for something else."""
    disk = run.log_dir.disk
    with OpenDirectories(run.log_dir) as opened:
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
    """What lies in a directory comes before it. One that holds anything else stays, with its marker."""
    disk = run.log_dir.disk
    with OpenDirectories(run.log_dir) as opened:
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
                run.odd(f"{step.path} cannot be removed, because it holds {others[0]!r:.60}")
            else:
                opened.forget(step.path)
                disk.rmdir(parent.descriptor, name)
        # A directory that is gone by now needs no sync: its parent's makes that durable, with all that was in it.
        opened.sync([folder for folder in parents if opened.has(folder)])


def _rename_directories(run: StepRun, steps: Sequence[Rename]) -> None:
    """Directories that gained entries are synced before those that lost them."""
    with OpenDirectories(run.log_dir) as opened:
        sources: dict[str, None] = {}
        targets: dict[str, None] = {}
        for step in steps:
            folder, _, name = step.path.rpartition("/")
            new_folder, _, new_name = step.new_path.rpartition("/")
            if not run.resuming or _is_to_be_renamed(run, step, opened):
                rename_exclusively(run.log_dir.disk, opened.at(folder), name, opened.at(new_folder), new_name)
            sources[folder] = targets[new_folder] = None
        # On the way back, or the second time, a directory may be gone that a later step has removed.
        opened.sync([folder for folder in (*targets, *sources) if not run.resuming or opened.has(folder)])


def _is_to_be_renamed(run: StepRun, step: Rename, opened: OpenDirectories) -> bool:
    """Whether the thing still lies under its former path."""
    here, there = opened.holds(step.path), opened.holds(step.new_path)
    if here == there:
        state = "both are there" if here else "neither is there"
        run.odd(f"{step.path} was to become {step.new_path}, and {state}")
    return here and not there


def _rewrite_files(run: StepRun, steps: Sequence[Rewrite]) -> None:
    """Batch by batch: all the new files beside the old ones, one barrier, then the renames, and a barrier again.

    A rename may become durable before the bytes do, so the barrier stands between them (``durable.replace_file``).
    """
    for start in range(0, len(steps), _BATCH):
        with OpenDirectories(run.log_dir) as opened:
            _rewrite_batch(run, steps[start : start + _BATCH], opened)
    if any(step.path == meta_properties.FILE_NAME for step in steps):
        found = read_identity(run.log_dir.path).identity
        if found is not None:
            run.log_dir.identity = found


def _rewrite_batch(run: StepRun, steps: Sequence[Rewrite], opened: OpenDirectories) -> None:
    disk, written, few = run.log_dir.disk, list[Rewrite](), len(steps) <= _FEW
    try:
        for step in steps:
            if _is_to_be_rewritten(run, step, opened):
                folder, _, name = step.path.rpartition("/")
                written.append(step)
                write_new_file(disk, opened.at(folder), name + TEMPORARY, step_bytes(step.new), durable=few)
        if written and not few:
            barrier(disk, run.log_dir.root, (opened.at(step.path.rpartition("/")[0]) for step in written))
        for step in written:
            folder, _, name = step.path.rpartition("/")
            parent = opened.at(folder).descriptor
            disk.rename(parent, name + TEMPORARY, parent, name)
    except OSError:
        for step in written:
            folder, _, name = step.path.rpartition("/")
            with suppress(OSError):
                disk.unlink(opened.at(folder).descriptor, name + TEMPORARY)
        raise
    opened.sync([step.path.rpartition("/")[0] for step in steps if opened.has(step.path.rpartition("/")[0])])


def _is_to_be_rewritten(run: StepRun, step: Rewrite, opened: OpenDirectories) -> bool:
    """Whether the file still holds the former bytes."""
    folder, _, name = step.path.rpartition("/")
    try:
        data = read_small_file(name, _LIMIT, opened.at(folder).descriptor)
    except FileNotFoundError:
        data = None
    if data == step_bytes(step.old):
        return True
    if data is None and run.resuming:
        return False  # on the way back, when its directory was not renamed or has its former name again
    if data != step_bytes(step.new):
        run.odd(f"{step.path} {'is not there' if data is None else 'holds other bytes than it did'}")
    return False


def _rename_entries(run: StepRun, steps: Sequence[RenameEntries]) -> None:
    """In memory, then in the files. Whoever undoes this has old files already where there was no room for new ones."""
    run.log_dir.checkpoints.rename({step.topic: step.new_topic for step in steps})
    if run.resuming:
        run.log_dir.write_checkpoints()
    else:
        run.log_dir.checkpoints.write(run.log_dir.disk)


def _stage_replicas(run: StepRun, steps: Sequence[Stage]) -> None:
    """A replica that lies no longer where it was is staged already."""
    if run.resuming:
        with OpenDirectories(run.log_dir) as opened:
            steps = [step for step in steps if opened.holds(step.path)]
    for start in range(0, len(steps), _BATCH):
        batch = steps[start : start + _BATCH]
        outcome = stage(run.log_dir, map(_candidate, batch), batch[0].staged_ms, spare=run.spare)
        for refused in outcome.refused:
            run.odd(refused.reason)


def _candidate(step: Stage) -> Candidate:
    topic_id = TopicId.parse(step.topic_id) if step.topic_id else None
    partition = TopicPartition(step.topic, step.partition)
    return Candidate(step.path, partition, topic_id, step.verdict, step.evidence, step.due_ms - step.staged_ms)


def _unstage_replicas(run: StepRun, steps: Sequence[Unstage]) -> None:
    """What was staged is found by its record; what is not found was not staged."""
    wanted = {(step.path, step.topic, step.partition, step.staged_ms) for step in steps}
    for staged in list_staged(run.log_dir, run.spare):
        record = staged.record
        if record is not None and (record.path, record.topic, record.partition, record.staged_ms) in wanted:
            restore(run.log_dir, staged, spare=run.spare)


_DO: dict[type[IntentStep], Callable[[StepRun, Any], None]] = {
    MakeDirectory: _make_directories,
    RemoveDirectory: _remove_directories,
    Rename: _rename_directories,
    Rewrite: _rewrite_files,
    RenameEntries: _rename_entries,
    Stage: _stage_replicas,
    Unstage: _unstage_replicas,
}
