"""The audit over Spark Connect, where a session has no SparkContext: a process of its own, and a server in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("grpc", reason="the packages of Spark Connect are not installed")

from logstore.rows import ROW_SCHEMA
from logstore.scan import scan_all
from reconciler.sources import save_state
from tests.spark.answers import orders
from tests.spark.cluster import LIGHT

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from reconciler.audit import spark_findings
from reconciler.audit.spark import audit, open_session
from reconciler.sources import load
from tests.fleets import NOW_MS

disks, inventory, metadata, folder = sys.argv[1:]
states = load(metadata)
with open_session() as spark:
    print(type(spark).__module__)
    for trees, inventories in (([disks], []), ([disks], [inventory])):
        result = audit(spark, trees, inventories, states, folder, now_ms=NOW_MS)
        print(dict(result.totals), len(result.fleet))
    found = spark_findings(spark, [inventory], [metadata], now_ms=NOW_MS)
    print(sorted((row["verdict"], row["broker"], row["topic"], row["partition"]) for row in found.collect()))
    print(spark_findings(spark, []).collect(), spark_findings(spark, [inventory], all_rows=True).count())
    print(dict(audit(spark, [disks], [inventory], [], folder, now_ms=NOW_MS).totals))
"""


@pytest.mark.spark
def test_trees_inventories_and_findings_go_over_connect(tmp_path: Path, two_disks: list[str]) -> None:
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    (tmp_path / "metadata").mkdir()
    save_state(orders(), str(tmp_path / "metadata"))
    (scanned,) = (observation.rows for observation in scan_all([two_disks[1]]))
    elsewhere = [row | {"node_id": 2, "log_dir": "/other"} for row in scanned.to_pylist()]
    rows = pa.Table.from_pylist(elsewhere, schema=ROW_SCHEMA)
    pq.write_table(rows, tmp_path / "inventory.parquet")
    (tmp_path / "out").mkdir()
    arguments = [str(tmp_path / "disks"), str(tmp_path / "inventory.parquet"), f"parquet:{tmp_path}/metadata"]
    server = f"--driver-java-options '{LIGHT}' --conf spark.sql.shuffle.partitions=2 --conf spark.ui.enabled=false"
    environ = os.environ | {
        "SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": f"{server} pyspark-shell", "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments, str(tmp_path / "out")],
        cwd=ROOT, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.stdout.splitlines() == [
        "pyspark.sql.connect.session",
        "{'OK': 1, 'DUPLICATE': 2, 'MISSING': 1} 1",
        "{'OK': 1, 'DUPLICATE': 2, 'NOT_ASSIGNED': 2, 'MISSING': 1} 2",
        "[('NOT_ASSIGNED', 2, 'orders', 0), ('NOT_ASSIGNED', 2, 'orders', 1)]",
        "[] 2",
        "{'DUPLICATE': 2, 'NOT_COMPARED': 3}",
    ], ran.stderr[-3000:]
