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

from logstore.rows import check_uri, fetch, is_uri, join_uri, put
from reconciler.audit import (
    AUDIT_SCHEMA_VERSION,
    FINDING_SCHEMA,
    SCRATCH_PREFIX,
    SUMMARY_FILE,
    TOPICS_FILE,
    Accepted,
    AuditResult,
    BrokerCalls,
    EarlierAudit,
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
from reconciler.audit.report import PAGE_FILE, HeldAtUri, check_replaceable, held_at, put_report
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
    of_this_machine,
    open_page,
    parse_duration_option,
    read_policy,
    refuse_inside,
    report_closed,
    run_embedded,
    run_spark,
    say,
    say_incomplete,
    sort_inputs,
    warn,
    warn_unfinished,
    write_rows,
)
from reconciler.cli.monitoring import MetricsFile
from reconciler.cli.pages import next_lines, show_audit
from reconciler.errors import HistoryError, UsageError
from reconciler.history import (
    Removal,
    Run,
    append_run,
    check_history,
    describe_runs_to_come,
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
    report, output, previous, history = map(of_this_machine, (report, output, previous, history))
    _check_options(memory=memory, spark=spark, master=master, jobs=jobs, report=report)
    if incremental and history is None:
        raise UsageError("--incremental goes with --history, which has the last run")
    gap_ms, rules = parse_duration_option("--inventory-gap", inventory_gap), read_policy(broker["policy"])
    if not spark:
        fit_address_space()
    inputs, store = _sort_for_cluster(paths, report if spark and spark_engine.runs_on_cluster(master) else None)
    replaced = _check_places(report, Format(form), output, inputs)
    metrics = MetricsFile(metrics_path, "audit", inputs.log_dirs)
    earlier = _open_history(history, history_days, inputs)
    now_ms = time.time_ns() // 1_000_000
    states = choose_metadata(specs, inputs, now_ms)
    call = Call((), () if NO_METADATA in specs else specs, fallback_folder, **broker)
    fallback = fallback_records(fallback_folder)
    with (
        _topics_of(previous, report) as topics,
        _folder(report, inputs) as folder,
        _last_of(history if incremental else None, now_ms) as last,
    ):
        job = AuditJob(inputs, states, folder, now_ms, sizes, all_rows, topics, gap_ms, fallback)
        job = replace(job, with_basis=history is not None, earlier=None if last is None else last[1], store=store)
        result = (
            run_spark(job, master=master, memory=_heap(memory))
            if spark
            else run_embedded(job, jobs=jobs, memory_limit=memory)
        )
        _say_unsure(result, inputs)
        result = with_policy(_with_inputs(result, inputs, accepted, sizes=sizes), rules)
        failures = _left(result, folder, report, call, earlier, replaced=replaced)
        failures += _append(result, folder, history, history_days)
        say(f"{result.scope} ({result.engine})")
        for note in [*([_kept(result, last)] if incremental else []), *(f"note: {note}" for note in result.notes)]:
            say(note)
        metrics.take(read_audit, result, most_topics)
        try:
            with _placed(output) as file:
                _show(result, Format(form), file, _listed(chosen, Format(form), all_rows), limit=limit, call=call)
        finally:
            # The findings come first: they are what was asked for, and the history may be on a full disk.
            for failure in failures:
                say_incomplete(failure)
    return metrics.written(Exit.CLEAN if result.is_clean else Exit.FINDINGS)


def _sort_for_cluster(paths: Sequence[str], report: str | None) -> tuple[Inputs, str | None]:
    """Sort what was given; return also the URI of a report by which files go to executors, None for a folder.

    ``report``: the report of an audit by a cluster, else None.
    """
    if report is None:
        return sort_inputs(paths), None
    if is_uri(report):
        inputs = sort_inputs(paths)
        spark_engine.check_store(report, inputs.log_dirs)
        return inputs, report
    # Executors read copies of what lies in a store, so these go where executors see them.
    return sort_inputs(paths, _made(report, filter(os.path.isdir, paths))), None


def _say_unsure(result: AuditResult, inputs: Inputs) -> None:
    """Say of what on this machine a finding tells nothing true: it is closed to this user, or half of a change."""
    warn_unfinished(inputs.log_dirs)
    if Verdict.DAMAGED in result.totals:
        given = set(map(os.path.abspath, inputs.log_dirs))
        found = result.of_verdict(Verdict.DAMAGED, ["log_dir", "name"]).to_pylist()
        report_closed((row["log_dir"], row["name"]) for row in found if row["log_dir"] in given)


def _with_inputs(result: AuditResult, inputs: Inputs, accepted: Iterable[str], *, sizes: bool) -> AuditResult:
    """Add what the inventories show by themselves and what is accepted; bytes that nobody counted are left out."""
    result = with_inventories(result, inputs.inventories)
    result = replace(result, accepted=tuple(map(Accepted, dict.fromkeys(accepted))))
    # Inventories do not say whether their scans counted bytes, but replicas without any would have no file at all.
    counted = any((*result.bytes.values(), *result.disk_bytes.values())) if inputs.inventories.paths else sizes
    if not counted:
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
        raise UsageError(
            "a cluster needs --report with a folder that this machine and all executors see, or with the URI of one in "
            "a store that this machine and Spark reach"
        )
    if spark and jobs is not None:
        raise UsageError("--jobs is for the audit without --spark, which lists trees on all cores that Spark has")


def _kept(result: AuditResult, last: tuple[Run, EarlierAudit] | None) -> str:
    """Say how many brokers an incremental audit did not judge again."""
    if last is None:
        return "the history has no run of this release that could be continued: every broker was judged"
    known = sum(each.node >= 0 for each in result.basis)  # log dirs of no known broker are judged in every run
    brokers, again = count(known, "broker"), count(known - result.kept)
    return f"{again} of {brokers} judged again; the findings of the others are those of run {last[0].run_id}"


def _heap(memory: str | None) -> str | None:
    """Convert a size of ``--memory`` to Spark's notation, which knows whole numbers only."""
    if memory is None:
        return None
    number, unit = re.fullmatch(r"([\d.]+)\s*(\w+)", memory).groups()  # type: ignore[union-attr]
    power = "BKMGT".index(unit[0].upper())
    return f"{max(1, round(float(number) * (1024 if 'i' in unit.lower() else 1000) ** power / 2**20))}m"


def _check_places(report: str | None, form: Format, output: str | None, inputs: Inputs) -> HeldAtUri | None:
    """Refuse places that cannot be written to, before any work is done; return what the report replaces at its URI.

    Raises:
        InventoryStoreError: a URI is not well formed, or its store cannot be reached.
        UsageError: as :func:`check_output`; or files lie at the URI of the report, and would be read with the new ones.
    """
    if output is not None and is_uri(output):
        check_uri(output)
    else:
        check_output(form, output, inputs.log_dirs, inputs.inventories.files)
    if report is None or not is_uri(report):
        return None
    held = held_at(report)
    replaced = check_replaceable(report, held, time.time_ns() // 1_000_000)
    for left in held.exchanges:
        warn(f"{join_uri(report, left)} is of an audit that runs, or was killed: remove it once none runs")
    if replaced is not None:
        say(replaced)
    return held


@contextmanager
def _topics_of(previous: str | None, report: str | None) -> Iterator[str | None]:
    """Provide the topics of an earlier audit, which may lie in a store; None: there is none to compare with."""
    if previous is None:
        yield None
        return
    if is_uri(previous):
        with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX) as folder:
            path = os.path.join(folder, TOPICS_FILE)
            fetch(join_uri(previous, TOPICS_FILE), path)
            yield path
        return
    if report is not None and os.path.realpath(previous) == os.path.realpath(report):
        raise UsageError("--previous and --report name the same folder, which would overwrite what to compare with")
    _refuse_odd_bytes("--previous", previous)
    path = os.path.abspath(os.path.join(previous, TOPICS_FILE))
    if not os.path.exists(path):
        raise UsageError(f"{path}: no such file; --previous takes the folder of an earlier --report")
    yield path


def _refuse_odd_bytes(option: str, path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{option} {path}: engines open no path that is not UTF-8: name another folder") from error


@contextmanager
def _folder(report: str | None, inputs: Inputs) -> Iterator[str]:
    """Provide the folder for the findings: the folder of the report, or a temporary one, also for a report at a URI."""
    # An engine spills there too; where no other folder is writable, it is the current directory.
    refuse_inside(tempfile.gettempdir(), inputs.log_dirs, "set TMPDIR to another place for temporary files")
    if report is None or is_uri(report):
        with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX) as folder:
            yield folder
        return
    made = _made(report, inputs.log_dirs)
    held = os.listdir(made) if os.access(made, os.R_OK) else []
    for left in sorted(name for name in held if name.startswith(SCRATCH_PREFIX)):
        warn(f"{os.path.join(made, left)} is of an audit that runs, or was killed: remove it once none runs")
    yield made


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


@contextmanager
def _placed(output: str | None) -> Iterator[str | None]:
    """Give the file that ``-o`` names; for a URI, a temporary one that is put there when it is whole."""
    if output is None or not is_uri(output):
        yield output
        return
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX) as folder:
        path = os.path.join(folder, "findings")
        yield path
        put(path, output)
    say(f"the data is at {output}")


def _left(
    result: AuditResult,
    folder: str,
    report: str | None,
    call: Call,
    earlier: Sequence[EarlierRun],
    *,
    replaced: HeldAtUri | None,
) -> list[str]:
    """Complete the report in its folder, and put it to its URI; return why that failed, in a sentence."""
    if report is None:
        return []
    _write_report(result, folder, call, earlier)
    if replaced is None:
        return []
    files = [os.path.join(above, name) for above, _, names in os.walk(folder) for name in names]
    names = sorted(os.path.relpath(path, folder) for path in files if not _is_internal(path))
    failure = put_report(folder, names, report, replaced)
    if failure is not None:
        return [failure]
    say(f"the report is at {report}")
    return []


def _is_internal(path: str) -> bool:
    """Whether a file is Spark's own: its marks and checksums lie beside the findings."""
    return os.path.basename(path).startswith(("_", "."))


def _open_history(history: str | None, days: int | None, inputs: Inputs) -> Sequence[EarlierRun]:
    """Check the folder of a history before any work is done, and read the runs that a report shows."""
    if history is None:
        if days is not None:
            raise UsageError("--history-days goes with --history")
        return ()
    if not is_uri(history):
        _refuse_odd_bytes("--history", history)
        refuse_inside(history, inputs.log_dirs)
    check_history(history)
    above = os.path.dirname(os.path.abspath(history))
    if not is_uri(history) and not os.access(history if os.path.isdir(history) else above, os.W_OK | os.X_OK):
        raise UsageError(f"--history {history} cannot be written to: name another folder")
    now_ms = time.time_ns() // 1_000_000
    if left_out := describe_runs_to_come(history, now_ms):
        warn(left_out)
    return earlier_runs(history, TREND_RUNS, now_ms)


@contextmanager
def _last_of(history: str | None, now_ms: int) -> Iterator[tuple[Run, EarlierAudit] | None]:
    """Provide the last run of a history, which may lie in a store; None: there is none to continue."""
    if history is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX) as copies:
        yield last_audit(history, now_ms, copies)


def _append(result: AuditResult, folder: str, history: str | None, days: int | None) -> list[str]:
    """Add the run to its history, if it has one; return why that failed, in a sentence."""
    if history is None:
        return []
    try:
        run = append_run(history, result, os.path.join(folder, TOPICS_FILE))
        say(f"this is run {run.run_id} of the history {history}")
        keep_delta_tables(history)
        removal = Removal([]) if days is None else remove_old_days(history, days, result.audited_ms)
    except HistoryError as error:
        return [str(error)]
    if gone := removal.days:
        say(f"removed from the history: {count(len(gone), 'day')}, {gone[0]} to {gone[-1]}")
    if removal.kept is not None and not removal.is_news:
        say(f"note: {removal.kept}")
    return [removal.kept] if removal.kept is not None and removal.is_news else []


def _write_report(result: AuditResult, folder: str, call: Call, earlier: Sequence[EarlierRun]) -> None:
    with destination(os.path.join(folder, SUMMARY_FILE)) as out:
        write_summary(result, out, call)
    with destination(os.path.join(folder, PAGE_FILE)) as out:
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
        for line in next_lines(result, verdicts, call, os.uname().nodename):
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
