"""``logstore audit``: compares log dirs with the cluster's metadata, and gives each replica a verdict.

This module has the order of an audit; the case table decides, and an engine joins.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow.fs

from reconciler.audit import (
    AUDIT_SCHEMA_VERSION,
    FINDING_SCHEMA,
    SUMMARY_FILE,
    TOPICS_FILE,
    Accepted,
    AuditResult,
    BrokerCalls,
    EarlierRun,
    by_urgency,
    render_report,
    with_inventories,
    with_next,
    with_policy,
    write_findings,
    write_summary,
)
from reconciler.audit import spark as spark_engine
from reconciler.cli.frame import (
    NO_METADATA,
    AuditJob,
    Exit,
    Format,
    Inputs,
    check_output,
    choose_metadata,
    destination,
    fallback_records,
    fit_address_space,
    open_page,
    parse_duration_option,
    read_policy,
    refuse_inside,
    run_embedded,
    run_spark,
    say,
    say_incomplete,
    sort_inputs,
    write_rows,
)
from reconciler.cli.monitoring import MetricsFile
from reconciler.cli.pages import next_lines, show_audit
from reconciler.errors import HistoryError, UsageError
from reconciler.history import (
    Run,
    append_run,
    check_history,
    earlier_runs,
    keep_delta_tables,
    last_audit,
    remove_old_days,
)
from reconciler.metrics import read_audit
from reconciler.next_steps import Call
from reconciler.sources import is_saved_state
from reconciler.text import count
from reconciler.verdicts import BENIGN, URGENCY, Verdict

TREND_RUNS = 20
"""Earlier runs that a report shows."""

_MEMORY = re.compile(r"\d{1,9}(\.\d{1,9})?\s*([KMGT]i?B|B)", re.IGNORECASE)


def run(
    *,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    form: str,
    output: str | None,
    report: str | None,
    history: str | None,
    history_days: int | None,
    incremental: bool,
    all_rows: bool,
    previous: str | None,
    chosen: tuple[Verdict, ...],
    accepted: tuple[str, ...],
    inventory_gap: str,
    limit: int | None,
    jobs: int | None,
    sizes: bool,
    memory: str | None,
    spark: bool,
    master: str | None,
    fallback_folder: str | None,
    metrics_path: str | None,
    most_topics: int,
    **broker: str | None,
) -> Exit:
    """Compare log dirs with the cluster's metadata, and give each replica a verdict."""
    _check_options(memory=memory, spark=spark, master=master, jobs=jobs, report=report)
    _check_incremental(incremental, history, spark=spark)
    gap_ms, rules = parse_duration_option("--inventory-gap", inventory_gap), read_policy(broker["policy"])
    if not spark:
        fit_address_space()
    on_cluster = spark and report is not None and spark_engine.runs_on_cluster(master)
    # Executors read copies of what lies in a store, so these go where executors see them.
    inputs = sort_inputs(paths, _made(str(report), filter(os.path.isdir, paths)) if on_cluster else None)
    check_output(Format(form), output, inputs.log_dirs, inputs.inventories.files)
    metrics = MetricsFile(metrics_path, "audit", inputs.log_dirs)
    earlier = _open_history(history, history_days, inputs)
    last = last_audit(str(history)) if incremental else None
    topics = None if previous is None else _topics_of(previous, report)
    now_ms = time.time_ns() // 1_000_000
    states = choose_metadata(specs, inputs, now_ms)
    call = Call((), () if NO_METADATA in specs else specs, fallback_folder, **broker)
    fallback = fallback_records(fallback_folder)
    with _folder(report, inputs) as folder:
        job = AuditJob(inputs, states, folder, now_ms, sizes, all_rows, topics, gap_ms, fallback)
        job = replace(job, with_basis=history is not None, earlier=None if last is None else last[1])
        result = (
            run_spark(job, master=master, memory=_heap(memory))
            if spark
            else run_embedded(job, jobs=jobs, memory_limit=memory)
        )
        result = with_policy(_with_inputs(result, inputs, accepted, sizes=sizes), rules)
        if report is not None:
            _write_report(result, report, call, earlier)
        failure = None if history is None else _append(result, folder, history, history_days)
        listed = _listed(chosen, Format(form), all_rows)
        say(f"{result.scope} ({result.engine})")
        if incremental:
            say(_kept(result, None if last is None else last[0]))
        for note in result.notes:
            say(f"note: {note}")
        metrics.take(read_audit, result, most_topics)
        try:
            _show(result, Format(form), output, listed, limit=limit, call=call)
        finally:
            # The findings come first: they are what was asked for, and the history may be on a full disk.
            if failure is not None:
                say_incomplete(failure)
    return metrics.written(Exit.CLEAN if result.is_clean else Exit.FINDINGS)


def _with_inputs(result: AuditResult, inputs: Inputs, accepted: Iterable[str], *, sizes: bool) -> AuditResult:
    """Add what the inventories show by themselves and what is accepted; bytes that nobody counted are left out."""
    result = with_inventories(result, inputs.inventories)
    result = replace(result, accepted=tuple(map(Accepted, dict.fromkeys(accepted))))
    if not sizes and not inputs.inventories.paths:
        result = replace(result, bytes={}, disk_bytes={})  # no bytes were counted, which differs from zero bytes
    return result


def _check_options(
    *, memory: str | None, spark: bool, master: str | None, jobs: int | None, report: str | None
) -> None:
    """Refuse options that do not fit together, before anything is read."""
    if memory is not None and not _MEMORY.fullmatch(memory):
        raise UsageError(f"--memory {memory}: a number and a unit are expected, for example 4GB")
    if master is not None and not spark:
        raise UsageError("--master goes with --spark")
    if spark and report is None and spark_engine.runs_on_cluster(master):
        raise UsageError("a cluster needs --report with a folder that this machine and all executors see")
    if spark and jobs is not None:
        raise UsageError("--jobs is for the audit without --spark, which lists trees on all cores that Spark has")


def _check_incremental(incremental: bool, history: str | None, *, spark: bool) -> None:
    if incremental and history is None:
        raise UsageError("--incremental goes with --history, which has the last run")
    if incremental and spark:
        raise UsageError("--incremental is for the audit without --spark, which judges every broker in each run")


def _kept(result: AuditResult, last: Run | None) -> str:
    """Say how many brokers an incremental audit did not judge again."""
    if last is None:
        return "the history has no run of this release that could be continued: every broker was judged"
    brokers, again = count(len(result.basis), "broker"), count(len(result.basis) - result.kept)
    return f"{again} of {brokers} judged again; the findings of the others are those of run {last.run_id}"


def _heap(memory: str | None) -> str | None:
    """Convert a size of ``--memory`` to Spark's notation, which knows whole numbers only."""
    if memory is None:
        return None
    number, unit = re.fullmatch(r"([\d.]+)\s*(\w+)", memory).groups()  # type: ignore[union-attr]
    power = "BKMGT".index(unit[0].upper())
    return f"{max(1, round(float(number) * (1024 if 'i' in unit.lower() else 1000) ** power / 2**20))}m"


def _topics_of(previous: str, report: str | None) -> str:
    """Find the topics of an earlier audit."""
    if report is not None and os.path.realpath(previous) == os.path.realpath(report):
        raise UsageError("--previous and --report name the same folder, which would overwrite what to compare with")
    _refuse_odd_bytes("--previous", previous)
    path = os.path.abspath(os.path.join(previous, TOPICS_FILE))
    if not os.path.exists(path):
        raise UsageError(f"{path}: no such file; --previous takes the folder of an earlier --report")
    return path


def _refuse_odd_bytes(option: str, path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{option} {path}: engines open no path that is not UTF-8: name another folder") from error


@contextmanager
def _folder(report: str | None, inputs: Inputs) -> Iterator[str]:
    """Provide the folder for the findings: the folder of the report, or a temporary one."""
    # An engine spills there too; where no other folder is writable, it is the current directory.
    refuse_inside(tempfile.gettempdir(), inputs.log_dirs, "set TMPDIR to another place for temporary files")
    if report is None:
        with tempfile.TemporaryDirectory(prefix="logstore-audit-") as folder:
            yield folder
        return
    yield _made(report, inputs.log_dirs)


def _made(report: str, log_dirs: Iterable[str]) -> str:
    """Make the folder of the report, which is in none of the log dirs, and return its absolute path."""
    _refuse_odd_bytes("--report", report)
    refuse_inside(report, log_dirs)
    if is_saved_state(report):
        raise UsageError(f"{report} holds a saved desired state, which a report would spoil: name another folder")
    try:
        pyarrow.fs.LocalFileSystem().create_dir(report, recursive=True)
    except OSError as error:
        raise UsageError(f"{report} cannot be made: {os.strerror(error.errno) if error.errno else error}") from error
    if not os.access(report, os.W_OK | os.X_OK):
        raise UsageError(f"{report} cannot be written to: name another folder with --report")
    # Absolute, because an engine gives a meaning to some beginnings of a name, such as ~ or s3:.
    return os.path.abspath(report)


def _open_history(history: str | None, days: int | None, inputs: Inputs) -> Sequence[EarlierRun]:
    """Check the folder of a history before any work is done, and read the runs that a report shows."""
    if history is None:
        if days is not None:
            raise UsageError("--history-days goes with --history")
        return ()
    _refuse_odd_bytes("--history", history)
    refuse_inside(history, inputs.log_dirs)
    check_history(history)
    above = os.path.dirname(os.path.abspath(history))
    if not os.access(history if os.path.isdir(history) else above, os.W_OK | os.X_OK):
        raise UsageError(f"--history {history} cannot be written to: name another folder")
    return earlier_runs(history, TREND_RUNS)


def _append(result: AuditResult, folder: str, history: str, days: int | None) -> str | None:
    """Add the run to its history; return why that failed, one sentence, or None."""
    try:
        run = append_run(history, result, os.path.join(folder, TOPICS_FILE))
        say(f"this is run {run.run_id} of the history {history}")
        keep_delta_tables(history)
        removed = [] if days is None else remove_old_days(history, days, result.audited_ms)
    except HistoryError as error:
        return str(error)
    if removed:
        say(f"removed from the history: {count(len(removed), 'day')}, {removed[0]} to {removed[-1]}")
    return None


def _write_report(result: AuditResult, folder: str, call: Call, earlier: Sequence[EarlierRun]) -> None:
    with destination(os.path.join(folder, SUMMARY_FILE)) as out:
        write_summary(result, out, call)
    with destination(os.path.join(folder, "report.html")) as out:
        out.write(render_report(result, call, earlier).encode())


def _listed(chosen: Collection[Verdict], form: Format, all_rows: bool) -> Sequence[Verdict]:
    """Choose the verdicts to show: the named ones, else all; a table leaves out verdicts that ask for no action."""
    if chosen:
        return [verdict for verdict in URGENCY if verdict in chosen]
    if form is Format.TABLE and not all_rows:
        return [verdict for verdict in URGENCY if verdict not in BENIGN]
    return URGENCY if all_rows else [verdict for verdict in URGENCY if verdict is not Verdict.OK]


def _show(
    result: AuditResult,
    form: Format,
    output: str | None,
    verdicts: Sequence[Verdict],
    *,
    limit: int | None,
    call: Call,
) -> None:
    if form is Format.TABLE:
        with open_page(output) as opened:
            show_audit(result, opened, verdicts, limit)
        for line in next_lines(result, verdicts, call):
            say(line)
        return
    with destination(output) as out:
        if form is Format.JSON:
            write_findings(result, out, verdicts, call)
        else:
            rows = by_urgency(result, verdicts)
            if form is Format.NDJSON:
                rows = with_next(rows, BrokerCalls(result, call))
            write_rows(form, rows, FINDING_SCHEMA, AUDIT_SCHEMA_VERSION, out)
