"""Runs an audit: scans the trees, hands rows and metadata to an engine, and turns its failures into sentences.

The engines are :mod:`reconciler.audit.embedded` and :mod:`reconciler.audit.spark`; each is loaded only when it is used,
so that neither needs the dependencies of the other.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from logstore.log_dir import FallbackRecords
from logstore.rows import InventoryForm, InventorySet, LogDirOnHost, inventory_content, inventory_form, read_inventory
from reconciler.audit import AuditResult, EarlierAudit
from reconciler.cli.frame.address_space import is_limited
from reconciler.cli.frame.inputs import Inputs
from reconciler.cli.frame.lifecycle import PartlyFailedError, say_warnings
from reconciler.cli.frame.output import show_busy, with_progress
from reconciler.desired import DesiredState
from reconciler.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class AuditJob:
    """The parameters of an audit that both engines take."""

    inputs: Inputs
    states: Sequence[DesiredState]
    folder: str
    """The existing folder for the findings."""
    now_ms: int
    sizes: bool
    all_rows: bool
    previous: str | None
    """``topics.parquet`` of an earlier audit."""
    gap_ms: int
    """The greatest span between an inventory and the metadata that is no finding."""
    fallback: FallbackRecords
    """What is staged in the trees, and has its record on another disk."""
    with_basis: bool = False
    """Whether the result tells what the verdicts rest on, for the next incremental audit."""
    earlier: EarlierAudit | None = None
    """The audit whose findings are kept where nothing changed that they rest on."""
    store: str | None = None
    """A URI by which files go to the executors of a cluster and back; None: they see the folder, or there are none."""


_SPILL_IS_FULL = "failed to offload data block"
"""What DuckDB says in an error about memory where the folder for what does not fit there has no room."""

_INTERRUPTED = "Query interrupted"
"""What DuckDB says in an error of its own where a signal ends a query."""


def run_embedded(job: AuditJob, *, jobs: int | None, memory_limit: str | None) -> AuditResult:
    """Scan the trees with at most ``jobs`` processes, and join on this machine within ``memory_limit``.

    Raises:
        RefusedError: the metadata does not fit the log dirs.
        PartlyFailedError: the engine gave up for lack of memory or disk space, or because rows cannot be read.
    """
    from logstore.scan import scan_all

    log_dirs = job.inputs.log_dirs
    began = time.monotonic()
    observations = scan_all(log_dirs, sizes=job.sizes, jobs=jobs, fallback=job.fallback)
    tables = [seen.rows for seen in with_progress(observations, len(log_dirs), "scanning log dirs")]
    scan_s = time.monotonic() - began if log_dirs else None
    inventories = job.inputs.inventories
    parquet, arrow = _by_form(inventories)
    tables += [read_inventory(inventories.readable(path), inventories.ignored(path)) for path in arrow]
    with show_busy("comparing"):
        result = run_join(
            tables,
            parquet,
            job.states,
            job.folder,
            now_ms=job.now_ms,
            all_rows=job.all_rows,
            previous=job.previous,
            memory_limit=memory_limit,
            gap_ms=job.gap_ms,
            inventoried=bool(arrow),
            superseded=_superseded(inventories),
            contents=_contents(job, parquet),
            earlier=job.earlier,
        )
    return replace(result, scan_s=scan_s)


def run_join(
    tables: Sequence[pa.Table], parquet: Sequence[str], states: Sequence[DesiredState], folder: str, **how: Any
) -> AuditResult:
    """Join rows and metadata on this machine; the arguments are those of :func:`reconciler.audit.audit`.

    Raises:
        RefusedError, PartlyFailedError: as :func:`run_embedded` says.
    """
    import duckdb

    from reconciler.audit import audit

    try:
        return audit(tables, parquet, states, folder, threads=1 if is_limited() else None, **how)
    except RuntimeError as error:
        if _INTERRUPTED in str(error):
            raise KeyboardInterrupt from error
        raise
    except duckdb.Error as error:
        raise PartlyFailedError(f"the audit was not finished: {_reason(error, folder)}") from error


def run_spark(job: AuditJob, *, master: str | None, memory: str | None = None) -> AuditResult:
    """Let Spark list the trees and join, on this machine or on a cluster.

    ``memory``: the heap of the driver in Spark's notation; None: what the user has set for Spark, else 3g.

    Raises:
        EngineUnavailableError: there is no Java or no PySpark.
        RefusedError: the metadata does not fit the log dirs.
        UsageError: an inventory is not Parquet, or the JVM runs already and cannot have the memory.
    """
    from reconciler.audit.spark import open_session

    parquet, arrow = _by_form(job.inputs.inventories)
    if arrow:
        raise UsageError(f"{arrow[0]} is an Arrow file, and Spark reads Parquet: leave out --spark, or scan to parquet")
    with ExitStack() as stack:
        with show_busy("starting Spark"):
            spark = stack.enter_context(open_session(master, memory=memory))
        from reconciler.audit.spark import audit

        with show_busy("comparing"), say_warnings("reconciler.audit"):
            return audit(
                spark,
                job.inputs.log_dirs,
                parquet,
                job.states,
                job.folder,
                now_ms=job.now_ms,
                sizes=job.sizes,
                all_rows=job.all_rows,
                previous=job.previous,
                gap_ms=job.gap_ms,
                fallback=job.fallback,
                superseded=_superseded(job.inputs.inventories),
                contents=_contents(job, parquet),
                earlier=job.earlier,
                store=job.store,
                stored=_stored(job.inputs.inventories, job.store),
            )


def fit_address_space() -> None:
    """Let Arrow get by with one thread where the address space is limited, because each further one reserves more."""
    if not is_limited():
        return
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _reason(error: Exception, folder: str) -> str:
    """Say in one line why DuckDB gave up, and what to do where that is known."""
    reason, spill = str(error).splitlines()[0], tempfile.gettempdir()
    if _SPILL_IS_FULL in reason:
        return (
            f"no space is left in {spill} for what does not fit in memory: make room there, set TMPDIR to another "
            "place, or give the join more memory with --memory"
        )
    if os.strerror(errno.ENOSPC) in reason:
        return f"no space is left in {folder} or in {spill}: make room, or set TMPDIR and --report to other places"
    if "out of memory" in reason.lower():
        return f"{reason}: give it more with --memory, or leave that out"
    return reason


def _contents(job: AuditJob, parquet: Sequence[str]) -> dict[str, str] | None:
    """Fingerprint the inventories, where what the verdicts rest on is asked for."""
    return {path: inventory_content(path) for path in parquet} if job.with_basis else None


def _by_form(inventories: InventorySet) -> tuple[list[str], list[str]]:
    """Split inventories into the paths of Parquet files, which engines read themselves, and the Arrow files' names."""
    forms = {path: inventory_form(inventories.readable(path)) for path in inventories.paths}
    parquet = [_for_engine(inventories, path) for path, form in forms.items() if form is InventoryForm.PARQUET]
    return parquet, [path for path, form in forms.items() if form is InventoryForm.ARROW]


def _for_engine(inventories: InventorySet, path: str) -> str:
    # Absolute, because an engine gives a meaning to some first characters of a name, such as ~.
    return os.path.abspath(inventories.readable(path))


def _stored(inventories: InventorySet, store: str | None) -> dict[str, str]:
    """Name the inventories that Spark reads in their own store, by the paths that :func:`_by_form` gives to an engine.

    It reads a store of the kind that it hands files over by; those of another kind, and of this machine, go there.
    """
    if store is None:
        return {}
    kind = f"{store.partition(':')[0]}://"
    read = (path for path in inventories.paths if path.startswith(kind) and "?" not in path)
    return {_for_engine(inventories, path): path for path in read}


def _superseded(inventories: InventorySet) -> dict[str, Collection[LogDirOnHost]]:
    """Name what does not count in inventories by the paths that :func:`_by_form` gives to an engine."""
    return {_for_engine(inventories, path): ignored for path, ignored in inventories.superseded.items()}
