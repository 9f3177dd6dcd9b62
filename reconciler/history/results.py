"""One side of a difference: a run of a history, the folder of a report, or a file that an audit wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.dataset as ds

from logstore.rows import join_uri
from reconciler.audit import (
    AUDIT_SCHEMA_VERSION,
    FINDING_SCHEMA,
    FINDINGS_FILE,
    FLEET_SCHEMA,
    SUMMARY_FILE,
    TOPICS_FILE,
)
from reconciler.errors import UsageError
from reconciler.history.files import first_bytes, is_folder, is_there, locate
from reconciler.history.tables import FINDINGS, FLEET, TOPICS, Run, is_run_id, runs_by_clock
from reconciler.text import count

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")

LATEST, PREVIOUS = "latest", "previous"
"""The newest run of a history that is of no time to come, and the one before it."""

_TOPIC_SCHEMA = pa.schema([pa.field(name, pa.string()) for name in ("cluster", "topic", "topic_id")])


@dataclass(frozen=True, slots=True)
class Result:
    """The findings of one audit, and the topics that its metadata knew."""

    name: str
    """The run's ID, or the path as it was given."""
    findings: Any
    """A table or a dataset in FINDING_SCHEMA."""
    topics: Any = None
    """A dataset with ``cluster``, ``topic`` and ``topic_id``; None: not known."""
    fleet: pa.Table | None = None
    """The findings of the fleet as a whole, in FLEET_SCHEMA; None: not known."""


def open_result(text: str, history: str | None, now_ms: int) -> Result:
    """Open what was named: a path or a URI; or, in a history, a run ID, a day in UTC, ``latest`` or ``previous``.

    Of a day the last run counts. ``now_ms``: which runs are of a time to come, and are opened by ID or day alone.

    Raises:
        UsageError: there is none, or it is no result of an audit.
    """
    if history is not None and (text in (LATEST, PREVIOUS) or is_run_id(text) or _DATE.fullmatch(text)):
        run = _find_run(text, history, now_ms)
        return Result(
            run.run_id,
            _dataset(run.path(FINDINGS), FINDING_SCHEMA),
            _dataset(run.path(TOPICS), _TOPIC_SCHEMA),
            _dataset(run.path(FLEET), FLEET_SCHEMA).to_table() if is_there(run.path(FLEET)) else None,
        )
    if is_folder(text):
        topics, summary = join_uri(text, TOPICS_FILE), join_uri(text, SUMMARY_FILE)
        found = _dataset(join_uri(text, FINDINGS_FILE), FINDING_SCHEMA)
        return Result(
            text,
            found,
            _dataset(topics, _TOPIC_SCHEMA) if is_there(topics) else None,
            _rows(summary, _document(summary), "fleet", FLEET_SCHEMA) if is_there(summary) else None,
        )
    try:
        is_parquet = first_bytes(text, 4) == b"PAR1"
    except OSError as error:
        if history is not None and isinstance(error, FileNotFoundError):
            raise UsageError(f"{text}: there is no such run and no such file") from error
        hint = "" if history else "; a run ID, a date, latest and previous go with --history DIR"
        raise UsageError(f"{text}: {error.strerror}{hint}") from error
    if is_parquet:
        return Result(text, _dataset(text, FINDING_SCHEMA))
    document = _document(text)
    return Result(
        text,
        _rows(text, document, "findings", FINDING_SCHEMA),
        fleet=_rows(text, document, "fleet", FLEET_SCHEMA) if "fleet" in document else None,
    )


def _find_run(text: str, history: str, now_ms: int) -> Run:
    so_far, to_come = runs_by_clock(history, now_ms)
    runs = [*so_far, *to_come]
    named = {each.run_id: each for each in runs} | {each.day: each for each in runs}
    if len(so_far) >= 1:
        named[LATEST] = so_far[-1]
    if len(so_far) >= 2:
        named[PREVIOUS] = so_far[-2]
    if text in named:
        return named[text]
    held = f"{count(len(runs), 'run')}, from {runs[0].run_id} to {runs[-1].run_id}" if runs else "no run at all"
    apart = f", of which {len(to_come)} of a time to come by the clock of this machine" if to_come else ""
    raise UsageError(f"--history {history} has no run {text}; it holds {held}{apart}")


def _dataset(path: str, schema: pa.Schema) -> Any:
    """Open a Parquet file, or a folder of part files; columns that an older release did not write are null."""
    try:
        system, place = locate(path)
        found = ds.dataset(place, format="parquet", filesystem=system)
    except FileNotFoundError as error:  # of which Arrow says the path alone
        hint = "a folder is that of a --report, and runs of a history go with --history"
        raise UsageError(f"{path} is not there: {hint}") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{path} cannot be read: {reason:.200}") from error
    wrong = [
        each.name
        for each in schema
        if each.name in found.schema.names and found.schema.field(each.name).type != each.type
    ]
    if not {"verdict", "name", "log_dir"} <= set(found.schema.names) and schema is FINDING_SCHEMA:
        raise UsageError(f"{path} is no result of an audit: it has none of the columns of findings")
    if wrong:
        raise UsageError(f"{path} is no result of an audit: columns of another type: {', '.join(wrong)}")
    return found.replace_schema(schema)


def _document(path: str) -> Mapping[str, Any]:
    """Read what ``logstore audit --format json`` wrote, or the summary of a report."""
    try:
        document = orjson.loads(first_bytes(path))
    except (OSError, orjson.JSONDecodeError) as error:
        raise UsageError(f"{path} is neither JSON nor Parquet, which 'logstore audit' writes: {error}") from error
    if not isinstance(document, dict) or document.get("schema_version") != AUDIT_SCHEMA_VERSION:
        raise _no_result(path)
    return document


def _rows(path: str, document: Mapping[str, Any], name: str, schema: pa.Schema) -> pa.Table:
    """Read a list of findings in a document."""
    if not isinstance(document.get(name), list):
        raise _no_result(path)
    try:
        return pa.Table.from_pylist(document[name], schema)
    except (pa.ArrowException, AttributeError, TypeError) as error:
        raise UsageError(f"{path} is no result of an audit: its findings cannot be read: {error!s:.200}") from error


def _no_result(path: str) -> UsageError:
    return UsageError(
        f"{path} is no result of an audit that this release reads: give the folder of --report, or what 'logstore "
        "audit --format json' or '--format parquet' wrote"
    )
