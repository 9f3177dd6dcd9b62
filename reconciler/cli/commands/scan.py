"""``logstore scan``: lists the content of log dirs, for people and for other programs, and judges nothing.

One log dir is scanned and written at a time, so a fleet of trees needs no more memory than its largest broker. A folder
or a URI takes inventories, one for each broker (:mod:`logstore.rows.inventory_layout`).
"""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from logstore.log_dir import FallbackRecords, read_identity
from logstore.rows import SCHEMA_VERSION, Kind, MetadataState, check_uri, is_uri, path_of_uri, write_scan
from logstore.scan import Observation, scan_all
from reconciler.cli.frame import (
    Exit,
    Format,
    Inputs,
    Page,
    check_output,
    destination,
    fallback_records,
    is_standard,
    open_page,
    refuse_inside,
    say,
    sort_inputs,
    warn,
    with_progress,
    write_rows,
)
from reconciler.cli.monitoring import MetricsFile
from reconciler.errors import UsageError
from reconciler.metrics import Readings, read_scan
from reconciler.text import Column, age, count, size

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ON_TERMINAL = 50


def run(
    *,
    paths: tuple[str, ...],
    form: str,
    output: str | None,
    jobs: int | None,
    sizes: bool,
    limit: int | None,
    fallback_folder: str | None,
    metrics_path: str | None,
) -> Exit:
    """Tell what lies in log dirs: replicas with their topic IDs, and everything else."""
    inputs = sort_inputs(paths)
    format_ = Format(form)
    place, output = _target(output)
    if place is not None:
        _check_place(place, format_, inputs)
    else:
        check_output(format_, output, inputs.log_dirs, inputs.inventories.files)
    metrics = MetricsFile(metrics_path, "scan", inputs.log_dirs)
    scanned = _Scanned(inputs, sizes, jobs, fallback_records(fallback_folder), metrics)
    if place is not None:
        _write_inventories(scanned, inputs.log_dirs, place)
    elif format_ is Format.TABLE:
        _show(scanned, output, limit)
    else:
        _write(scanned, format_, output)
    for problem in scanned.unreadable:
        warn(problem)
    return metrics.written(Exit.PARTLY_FAILED if scanned.unreadable else Exit.CLEAN)


def _target(output: str | None) -> tuple[str | None, str | None]:
    """Split what ``-o`` names: a place for inventories, which is a URI or a folder, or else a plain file."""
    if output is None or is_standard(output):
        return None, output
    path = path_of_uri(output) if is_uri(output) else output
    if path is None:
        return output, None
    return (path, None) if path.endswith("/") or os.path.isdir(path) else (None, path)


def _check_place(output: str, form: Format, inputs: Inputs) -> None:
    """Refuse what cannot become inventories, or a place where none may lie, before anything is scanned.

    Raises:
        UsageError: what is given or asked for does not become inventories, or would lie in a log dir.
        InventoryStoreError: the URI is not one that can be opened.
    """
    if form not in (Format.TABLE, Format.PARQUET):
        raise UsageError(f"-o {output} takes inventories, which are Parquet: leave out --format {form}, or name a file")
    if inputs.inventories.files:
        raise UsageError(f"{inputs.inventories.files[0]} is an inventory already: copy it there as it is")
    import tempfile  # which loads compressions

    refuse_inside(tempfile.gettempdir(), inputs.log_dirs, "set TMPDIR to another place for temporary files")
    if is_uri(output):
        if not output.partition("?")[0].endswith(("/", ".parquet")):
            raise UsageError(f"{output} is neither a folder nor a file of Parquet: end it with / or with .parquet")
        check_uri(output)
        return
    refuse_inside(output, inputs.log_dirs)
    try:
        output.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"-o {output}: Arrow opens no path that is not UTF-8: name another folder") from error


def _write_inventories(scanned: _Scanned, log_dirs: Sequence[str], place: str) -> None:
    """Write an inventory for each broker. A log dir without identity lies with the broker, where there is only one."""
    found = {read_identity(log_dir).identity for log_dir in log_dirs if os.path.isdir(log_dir)}
    brokers = {(each.cluster_id, each.node_id) for each in found if each is not None}

    def broker(table: pa.Table) -> object:
        row = table.slice(0, 1).to_pylist()[0]
        return None if len(brokers) < 2 else (row["cluster_id"], row["node_id"])

    is_file = is_uri(place) and place.partition("?")[0].endswith(".parquet")
    for tables in [iter(scanned)] if is_file else (tables for _, tables in itertools.groupby(scanned, broker)):
        path, rows = write_scan(tables, place)
        say(f"{path}: {count(rows, 'row')}")


class _Scanned:
    """Yields tables of rows, one log dir after the other, and collects further facts about each log dir."""

    def __init__(
        self, inputs: Inputs, sizes: bool, jobs: int | None, fallback: FallbackRecords, metrics: MetricsFile
    ) -> None:
        self._inputs, self._metrics = inputs, metrics
        self._sizes, self._jobs, self._fallback = sizes, jobs, fallback
        self.log_dirs: list[dict[str, Any]] = []
        self.unreadable: list[str] = []

    def __iter__(self) -> Iterator[pa.Table]:
        tables, began = self._tables(), time.monotonic()
        for table in tables:
            self._metrics.take(Readings.scanned, time.monotonic() - began)
            self._metrics.take(read_scan, table)
            yield table
            began = time.monotonic()

    def _tables(self) -> Iterator[pa.Table]:
        log_dirs = self._inputs.log_dirs
        observations = scan_all(log_dirs, sizes=self._sizes, jobs=self._jobs, fallback=self._fallback)
        for seen in with_progress(observations, len(log_dirs), "scanning log dirs"):
            if _is_absent(seen):
                self.unreadable.append(f"{seen.log_dir}: {seen.problem}")
            holder = None if seen.lock is None else str(seen.lock)
            self._know(seen.rows.slice(0, 1).to_pylist()[0], seen.rows.num_rows - 1, holder)
            yield seen.rows
        inventories = self._inputs.inventories
        for row in inventories.log_dirs:
            self._know(dict(row), None, None)
        for path in inventories.paths:
            from logstore.rows import read_inventory

            yield read_inventory(inventories.readable(path), inventories.ignored(path))

    def _know(self, row: dict[str, Any], rows: int | None, holder: str | None) -> None:
        names = ("host", "cluster_id", "node_id", "directory_id", "log_dir", "metadata_state", "problem", "scanned_ms")
        self.log_dirs.append({**{name: row[name] for name in names}, "rows": rows, "lock_held_by": holder})


def _is_absent(seen: Observation) -> bool:
    """Whether nothing is known of a log dir; one that holds nothing may be the mount point of a disk that is away."""
    if seen.state is not MetadataState.MISSING:
        return seen.state in (MetadataState.ABSENT, MetadataState.UNREADABLE)
    others = seen.rows.select(["name", "kind"]).slice(1).to_pylist()
    return all(row["kind"] == Kind.FOREIGN or row["name"].startswith("../") for row in others)


def _write(scanned: _Scanned, form: Format, output: str | None) -> None:
    with destination(output) as out:
        tables = _begun(iter(scanned))
        # After the first rows, because this loads Arrow, which a scan loads while its workers look.
        from logstore.rows import ROW_SCHEMA

        if form is Format.JSON:
            _write_json(tables, scanned.log_dirs, SCHEMA_VERSION, out)
        else:
            write_rows(form, tables, ROW_SCHEMA, SCHEMA_VERSION, out)


def _begun(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Wait for the first table, and yield the same tables."""
    return itertools.chain(list(itertools.islice(tables, 1)), tables)


def _write_json(
    tables: Iterable[pa.Table], log_dirs: Sequence[dict[str, Any]], schema_version: int, out: BinaryIO
) -> None:
    """Write one object; the log dirs come last, because only then are all their facts known."""
    import orjson

    from reconciler.text import write_array

    out.write(b'{"schema_version":%d,"rows":' % schema_version)
    write_array(tables, out)
    out.write(b',"log_dirs":' + orjson.dumps(log_dirs) + b"}\n")


def _show(scanned: _Scanned, output: str | None, limit: int | None) -> None:
    with open_page(output) as opened:
        most = SHOWN_ON_TERMINAL if limit is None and opened.is_terminal else limit
        for table in scanned:
            _show_table(opened, table, scanned.log_dirs, most)


def _show_table(opened: Page, table: pa.Table, known: list[dict[str, Any]], most: int | None) -> None:
    """Show every log dir of a table: a heading, the counts by kind, and the rows, rows with a problem first."""
    from reconciler.text import json_objects

    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in json_objects(table):
        grouped.setdefault((row["host"], row["log_dir"]), []).append(row)
    facts = {(entry["host"], entry["log_dir"]): entry for entry in known}
    for place, rows in grouped.items():
        log_dir = facts.get(place, rows[0])
        opened.line(_heading(log_dir, rows[0]["host"]), "bold")
        below = [row for row in rows if row["kind"] != "log_dir"]
        nothing = "nothing lies here" if log_dir["problem"] is None else "what lies here is not known"
        opened.line(f"  {_kinds(below) or nothing}")
        shown = sorted(below, key=_order)[:most]
        if shown:
            _show_rows(opened, shown)
        if len(shown) < len(below):
            opened.line(f"… and {count(len(below) - len(shown), 'row')} more: --limit N, or another --format")
        opened.line()


def _heading(log_dir: dict[str, Any], host: str) -> str:
    node, cluster, directory = log_dir["node_id"], log_dir["cluster_id"], log_dir["directory_id"]
    parts = [
        f"{host}:{log_dir['log_dir']}",
        "" if node is None else f"broker {node}",
        "" if cluster is None else f"cluster {cluster}",
        "" if directory is None else f"directory.id {directory}",
        f"in use by {log_dir['lock_held_by']}" if log_dir.get("lock_held_by") else "",
        log_dir["problem"] or "",
    ]
    return ", ".join(part for part in parts if part)


def _kinds(rows: list[dict[str, Any]]) -> str:
    """Count the rows of each kind, and add up the space they take where it is known."""
    numbers, weights = Counter(row["kind"] for row in rows), Counter[str]()
    for row in rows:
        if row["disk_bytes"] is not None:
            weights[row["kind"]] += row["disk_bytes"]
    parts = (
        f"{count(number)} {kind.replace('_', ' ')}" + (f" ({size(weights[kind])})" if kind in weights else "")
        for kind, number in numbers.most_common()
    )
    return ", ".join(parts)


def _order(row: dict[str, Any]) -> tuple[bool, str, str, int, str]:
    return row["problem"] is None, row["kind"], row["topic"] or "", row["partition"] or 0, row["name"]


def _show_rows(opened: Page, rows: list[dict[str, Any]]) -> None:
    columns = (
        Column("KIND"), Column("NAME", path=True), Column("TOPIC ID"), Column("SIZE", right=True),
        Column("AGE", right=True), Column("PROBLEM", prose=True),
    )  # fmt: skip
    cells = (
        (
            row["kind"],
            row["name"],
            row["topic_id"] or "",
            size(row["disk_bytes"]),
            age(None if row["modified_ms"] is None else row["scanned_ms"] - row["modified_ms"]),
            row["problem"] or "",
        )
        for row in rows
    )
    opened.table(columns, cells, {"foreign": "red", "stray": "yellow", "delete": "yellow", "leftover": "yellow"})
