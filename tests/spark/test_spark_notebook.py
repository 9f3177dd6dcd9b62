"""Findings as a DataFrame, and the lines of the page about Spark that a notebook takes."""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from logstore import InventoryError
from logstore.rows import ROW_SCHEMA, InventoryForm, write_inventory
from logstore.scan import scan_all
from reconciler.audit import FINDING_SCHEMA, embedded, spark_findings
from reconciler.audit.spark import notebook
from reconciler.errors import UsageError
from reconciler.sources import save_state
from tests.fleets import NOW_MS, random_fleet
from tests.pages import programs
from tests.spark.answers import findings_of, jobs_begun, orders


def rows_of(frame: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())


@pytest.mark.spark
def test_findings_are_a_frame_of_the_callers_session_that_is_evaluated_when_it_is_asked(
    spark: Any, tmp_path: Path
) -> None:
    rows, states = random_fleet(7)
    saved = []
    for number, state in enumerate(states):
        (tmp_path / f"state-{number}").mkdir()
        save_state(state, str(tmp_path / f"state-{number}"))
        saved.append(f"parquet:{tmp_path}/state-{number}")
    inventory = str(tmp_path / "rows.parquet")
    pq.write_table(rows, inventory)
    before = jobs_begun(spark)
    found = spark_findings(spark, [inventory], saved, now_ms=NOW_MS)
    assert jobs_begun(spark) == before
    (tmp_path / "duck").mkdir()
    duck = embedded.audit([], [inventory], states, str(tmp_path / "duck"), now_ms=NOW_MS)
    assert rows_of(found) == findings_of(duck)
    assert found.sparkSession is spark
    assert spark.catalog.listTables() == []


@pytest.mark.spark
def test_the_columns_are_those_that_the_module_lists(spark: Any) -> None:
    table = re.findall(r"^\| (\w+) \| (\w+) \|", inspect.getdoc(notebook) or "", re.MULTILINE)[1:]
    found = spark_findings(spark, [])
    assert found.dtypes == table
    assert found.columns == FINDING_SCHEMA.names
    assert found.collect() == []


@pytest.mark.spark
def test_where_no_inventory_can_be_read_there_is_an_error_and_no_empty_frame(spark: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 and no more")
    for given in ([str(bad)], [str(tmp_path / "nowhere")], [str(bad), str(tmp_path / "nowhere.parquet")]):
        with pytest.raises(InventoryError, match=r"is no inventory|is damaged"):
            spark_findings(spark, given)


@pytest.mark.spark
def test_an_inventory_that_cannot_be_read_or_is_older_is_left_out_with_a_warning(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    tables = [observation.rows for observation in scan_all(two_disks)]
    old, bad = (str(tmp_path / f"{name}.parquet") for name in ("old", "bad"))
    new = tmp_path / "folder" / "day=1" / "new.parquet"
    new.parent.mkdir(parents=True)
    # As an older release wrote it.
    pq.write_table(pa.concat_tables(tables).drop_columns(["segments", "clean_shutdown"]), new)
    earlier = [row | {"scanned_ms": 1} for row in tables[0].to_pylist()]
    pq.write_table(pa.Table.from_pylist(earlier, schema=ROW_SCHEMA), old)
    Path(bad).write_bytes(b"PAR1 and no more")
    with pytest.warns(UserWarning) as warned:
        found = spark_findings(spark, [bad, old, str(tmp_path / "folder")], all_rows=True)
    shown = [str(each.message) for each in warned]
    assert len(shown) == 2
    assert bad in shown[0]
    assert "1 older inventory does not count" in shown[1]
    assert sorted(row["name"] for row in found.collect()) == ["orders-0", "orders-0", "orders-1"]


def test_an_arrow_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with open(tmp_path / "rows.arrow", "wb") as out:
        write_inventory([], out, InventoryForm.ARROW)
    with pytest.raises(UsageError, match="is an Arrow file, and Spark reads Parquet: scan with --format parquet"):
        spark_findings(None, [str(tmp_path / "rows.arrow")])


@pytest.mark.spark
def test_the_lines_for_a_notebook_run(
    spark: Any, tmp_path: Path, two_disks: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "metadata").mkdir()
    save_state(orders(), str(tmp_path / "metadata"))
    for number, observation in enumerate(scan_all(two_disks), 1):
        pq.write_table(observation.rows, tmp_path / f"{number}.parquet")
    (program,) = programs("spark_findings(")
    program = program.replace("/shared", str(tmp_path)).replace("/disks/1/kafka", os.path.dirname(two_disks[0]))
    names: dict[str, Any] = {"spark": spark}
    exec(program, names)
    assert [tuple(row) for row in names["found"].where("verdict = 'MISSING'").select("broker", "name").collect()] == [
        (1, None)
    ]
    assert names["wanted"].count() == 1
    shown = capsys.readouterr().out
    assert "|         C|     1|    1|" in shown
    assert "orders" not in shown
