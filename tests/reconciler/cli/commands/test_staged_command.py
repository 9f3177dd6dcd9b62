"""``logstore staged`` from end to end."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from layout import partition_metadata
from layout.directory_name import stray_name
from layout.scheme import LEDGER_FILE
from logstore.log_dir import LogDir
from reconciler.cli.commands.staged import SCHEMA_VERSION
from tests.logstore.engine import ledger_entries, write_ledger
from tests.reconciler.cli.commands.test_purge_command import FAR_AWAY_MS, LONG_AGO_MS, stage_replica
from tests.reconciler.cli.conftest import OLD_ORDERS, ORDERS, long_written

Run = Callable[..., Result]
STRAY = f"orders-7.{'0' * 32}-stray"


@pytest.fixture
def log_dir(cluster) -> str:
    """Of broker 1: one replica is due, one waits, and a broker left a stray."""
    stage_replica(cluster.log_dirs[0], 0)
    stage_replica(cluster.log_dirs[0], 1, FAR_AWAY_MS)
    (Path(cluster.log_dirs[0]) / STRAY).mkdir()
    return cluster.log_dirs[0]


def rows(run: Run, *args: object) -> list[dict[str, object]]:
    return list(json.loads(run("staged", *args, "--format", "json").stdout)["rows"])


def test_each_one_says_what_it_was_when_it_goes_and_where_it_would_go_back_to(run: Run, log_dir: str) -> None:
    by_state = {row["state"]: row for row in rows(run, log_dir)}
    assert set(by_state) == {"due", "staged", "stray"}
    assert by_state["due"] == {
        "log_dir": log_dir,
        "location": f"../broker-1.deleting/{ORDERS}_0",
        "state": "due",
        "topic": "orders",
        "partition": 0,
        "topic_id": str(ORDERS),
        "bytes": 8192,
        "files": 2,
        "staged_ms": LONG_AGO_MS,
        "due_ms": LONG_AGO_MS,
        "verdict": "NOT_ASSIGNED",
        "returns_to": "orders-0",
        "problem": None,
        "held": None,
    }
    assert (by_state["stray"]["topic"], by_state["stray"]["returns_to"]) == ("orders", "orders-7")


def test_the_table_reads_well_and_overdue_ones_stand_out(run: Run, log_dir: str) -> None:
    result = run("staged", log_dir)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{log_dir}: 3 directories, 8.2 kB of them due\n")
    assert "1970-01-01 00:16:40 UTC (overdue by " in result.stdout
    assert "(in " in result.stdout
    assert "a broker left it" in result.stdout


def test_the_command_that_is_printed_for_a_stray_gives_it_a_due_time(
    run: Run, cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log_dir = cluster.log_dirs[0]
    (Path(log_dir) / STRAY).mkdir()
    (Path(log_dir) / STRAY / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(OLD_ORDERS))
    long_written(Path(log_dir))
    (printed,) = [line for line in run("staged", log_dir).stderr.splitlines() if line.startswith("    ")]
    assert printed.strip() == f"logstore plan {log_dir} --metadata SOURCE --strays -o plan.json"
    planned = run(*shlex.split(printed.replace("SOURCE", cluster.metadata))[1:])
    assert run("apply", "plan.json").exit_code == 0, planned.output
    assert [row["state"] for row in rows(run, log_dir)] == ["staged"]
    assert "plan" not in run("staged", log_dir).stderr


def test_ndjson_and_csv_have_a_line_for_each(run: Run, log_dir: str) -> None:
    lines = [json.loads(line) for line in run("staged", log_dir, "--format", "ndjson").stdout.splitlines()]
    assert {line["schema_version"] for line in lines} == {SCHEMA_VERSION}
    read = list(csv.DictReader(io.StringIO(run("staged", log_dir, "--format", "csv").stdout)))
    assert [row["location"] for row in read] == [line["location"] for line in lines]
    assert len(lines) == 3


def test_no_cell_of_csv_is_a_formula_to_a_spreadsheet(run: Run, log_dir: str) -> None:
    Path(log_dir, stray_name("=1+1", 0, "0" * 32)).mkdir()
    read = list(csv.DictReader(io.StringIO(run("staged", log_dir, "--format", "csv").stdout)))
    assert any(row["location"].startswith("'=1+1-0.") for row in read)
    assert not [cell for row in read for cell in row.values() if cell[:1] in ("=", "+", "-", "@")]


def test_what_could_not_be_read_is_not_called_empty(run: Run, cluster, tmp_path: Path) -> None:
    (tmp_path / "unmounted").mkdir()
    unknown = run("staged", tmp_path / "unmounted")
    assert (unknown.exit_code, unknown.stdout) == (4, "")
    beside = run("staged", tmp_path / "unmounted", cluster.log_dirs[0])
    assert (beside.exit_code, beside.stdout) == (4, "nothing is staged in 1 log dir of 2\n")
    assert run("staged", cluster.log_dirs[0]).stdout == "nothing is staged\n"


def test_it_takes_no_lock_and_leaves_no_trace(run: Run, log_dir: str) -> None:
    os.unlink(f"{log_dir}/.lock")
    assert len(rows(run, log_dir)) == 3
    assert not os.path.exists(f"{log_dir}/.lock")
    with LogDir.open(log_dir):
        assert len(rows(run, log_dir)) == 3


def test_a_damaged_record_and_a_taken_home_are_reported(run: Run, log_dir: str) -> None:
    staging = Path(f"{log_dir}.deleting")
    (second,) = (each.record for name, each in ledger_entries(staging).items() if name == f"{ORDERS}_1")
    assert second is not None
    write_ledger(staging, {f"{ORDERS}_1": second})
    (Path(log_dir) / "orders-1").mkdir()
    found = {row["location"]: row for row in rows(run, log_dir)}
    damaged = found[f"../broker-1.deleting/{ORDERS}_0"]
    assert (damaged["state"], damaged["returns_to"], damaged["due_ms"]) == ("damaged", None, None)
    assert f"has no line in {LEDGER_FILE}" in str(damaged["problem"])
    assert "is there already" in str(found[f"../broker-1.deleting/{ORDERS}_1"]["problem"])


def test_one_that_cannot_be_weighed_has_no_bytes(run: Run, log_dir: str, tmp_path: Path) -> None:
    directory = Path(f"{log_dir}.deleting/{ORDERS}_0")
    directory.rename(tmp_path / "moved")
    directory.symlink_to(tmp_path / "moved")
    assert [row["location"] for row in rows(run, log_dir)] == [f"../broker-1.deleting/{ORDERS}_1", STRAY]


def test_nothing_staged_is_said_and_an_absent_log_dir_is_not_empty(run: Run, cluster, tmp_path: Path) -> None:
    assert run("staged", cluster.log_dirs[1]).stdout == "nothing is staged\n"
    assert run("staged", tmp_path / "missing").exit_code == 2
    both = run("staged", cluster.log_dirs[1], tmp_path / "missing")
    assert both.exit_code == 4
    assert "missing" in both.stderr


@pytest.mark.parametrize("verb", ["staged", "purge"])
def test_an_inventory_is_refused_in_a_sentence_and_not_read(run: Run, cluster, tmp_path: Path, verb: str) -> None:
    torn = tmp_path / "host.of-inventories"
    torn.write_bytes(b"PAR1 and nothing that could be read")
    for path, said in ((torn, "is an inventory"), ("s3://no-such-bucket/inventories/", "lies in a store")):
        result = run(verb, cluster.log_dirs[0], path)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{path} {said}" in result.stderr


def test_a_record_outside_the_log_dir_is_found_in_the_folder_that_is_named(run: Run, log_dir: str, tmp_path) -> None:
    with LogDir.open(log_dir) as opened:
        from logstore.log_dir import FallbackRecords

        fallback = FallbackRecords(str(tmp_path))
        staging = Path(f"{log_dir}.deleting")
        known = {name: each.record for name, each in ledger_entries(staging).items() if each.record is not None}
        with fallback.ledger(opened.path, make=True) as elsewhere:
            assert elsewhere is not None
            elsewhere.stage({f"{ORDERS}_0": known.pop(f"{ORDERS}_0")})
        write_ledger(staging, known)
    location = f"../broker-1.deleting/{ORDERS}_0"
    assert next(row for row in rows(run, log_dir) if row["location"] == location)["state"] == "damaged"
    found = rows(run, log_dir, "--spare-records", tmp_path)
    assert next(row for row in found if row["location"] == location)["state"] == "due"
    for command in (["scan", log_dir], ["audit", log_dir, "--metadata", "none"]):
        alone = run(*command, "--format", "json", "--all" if command[0] == "audit" else "--sizes")
        named = run(*command, "--format", "json", "--spare-records", tmp_path)
        assert "has no line about it" in alone.stdout
        assert "has no line about it" not in named.stdout
