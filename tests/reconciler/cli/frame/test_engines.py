"""The parameters that an engine gets, and the sentences for its failures."""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from logstore.log_dir import FallbackRecords
from logstore.rows import InventoryForm, inventory
from logstore.scan import scan
from reconciler.audit import embedded
from reconciler.cli.frame import (
    AuditJob,
    Inputs,
    PartlyFailedError,
    fit_address_space,
    run_embedded,
    run_join,
    run_spark,
    sort_inputs,
)
from reconciler.errors import UsageError
from reconciler.sources import load


def job(cluster, inputs: Inputs, **changes) -> AuditJob:
    values = {"all_rows": False, "previous": None, "sizes": True, "now_ms": 0, "gap_ms": 86_400_000} | changes
    values["fallback"] = FallbackRecords(None)
    return AuditJob(inputs, load(cluster.metadata), str(cluster.folder), **values)


def written(cluster, node: int, form: InventoryForm) -> str:
    path = cluster.folder / f"{node}.{form}"
    with path.open("wb") as out:
        inventory.write_inventory([scan(str(cluster.log_dir(node))).rows], out, form)
    return str(path)


def test_trees_and_inventories_of_both_forms_give_the_same_audit(cluster) -> None:
    ways = [
        cluster.log_dirs,
        [cluster.log_dirs[0], written(cluster, 2, InventoryForm.PARQUET)],
        [written(cluster, 1, InventoryForm.ARROW), cluster.log_dirs[1]],
        [written(cluster, 1, InventoryForm.ARROW), written(cluster, 2, InventoryForm.PARQUET)],
    ]
    for paths in ways:
        result = run_embedded(job(cluster, sort_inputs(paths)), jobs=1, memory_limit="1GB")
        assert dict(result.totals) == {"OK": 3, "STALE_ID": 1}


def test_without_a_limit_of_the_address_space_arrow_keeps_its_threads() -> None:
    before = pa.cpu_count(), pa.io_thread_count()
    fit_address_space()
    assert (pa.cpu_count(), pa.io_thread_count()) == before


@pytest.mark.parametrize(("says", "raised"), [("Query interrupted", KeyboardInterrupt), ("other", RuntimeError)])
def test_an_interrupt_in_the_middle_of_a_query_is_an_interrupt_and_no_bug(
    cluster, monkeypatch: pytest.MonkeyPatch, says: str, raised: type[BaseException]
) -> None:
    def judge(*_: object, **__: object) -> None:
        raise RuntimeError(says)

    monkeypatch.setattr(embedded, "judge", judge)
    with pytest.raises(raised):
        run_embedded(job(cluster, sort_inputs(cluster.log_dirs)), jobs=1, memory_limit=None)
    with pytest.raises(raised):
        run_join([scan(cluster.log_dirs[0]).rows], [], load(cluster.metadata), str(cluster.folder), now_ms=0)


def test_an_engine_that_gives_up_is_reported_in_a_sentence(cluster) -> None:
    with pytest.raises(PartlyFailedError, match="the audit was not finished: "):
        run_embedded(job(cluster, sort_inputs(cluster.log_dirs), previous="/nowhere"), jobs=1, memory_limit=None)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("IO Error: {...}: No space left on device", "make room, or set TMPDIR and --report to other places"),
        ("Out of Memory Error: could not allocate block", "give it more with --memory"),
    ],
)
def test_an_engine_without_room_says_what_to_do(
    cluster, monkeypatch: pytest.MonkeyPatch, error: str, sentence: str
) -> None:
    def give_up(*_: object, **__: object) -> None:
        raise duckdb.Error(error)

    monkeypatch.setattr(embedded, "audit", give_up)
    with pytest.raises(PartlyFailedError, match=sentence):
        run_embedded(job(cluster, sort_inputs(cluster.log_dirs)), jobs=1, memory_limit=None)


def test_a_join_that_has_no_room_to_spill_says_which_folder_is_full(
    cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def spill(*_: object, **__: object) -> None:
        with duckdb.connect() as connection:
            for name, value in (("temp_directory", tmp_path), ("memory_limit", "16MB"), ("threads", 1)):
                connection.execute(f"SET {name} = '{value}'")
            connection.execute("SET max_temp_directory_size = '1MB'")
            connection.execute(
                "CREATE TABLE t AS SELECT md5(i::VARCHAR) AS text FROM range(1_000_000) r(i) ORDER BY text"
            )

    monkeypatch.setattr(embedded, "audit", spill)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(PartlyFailedError, match=f"no space is left in {tmp_path} for what .* TMPDIR .* --memory$"):
        run_embedded(job(cluster, sort_inputs(cluster.log_dirs)), jobs=1, memory_limit=None)


def test_spark_is_not_started_for_an_inventory_that_it_cannot_read(cluster) -> None:
    with pytest.raises(UsageError, match="is an Arrow file, and Spark reads Parquet"):
        run_spark(job(cluster, sort_inputs([written(cluster, 1, InventoryForm.ARROW)])), master=None)
