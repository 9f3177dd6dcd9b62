"""The job as spark-submit runs it: arguments, what it leaves, what it prints, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S

pytest.importorskip("pyspark", reason="PySpark is not installed")

from reconciler.audit.spark import job as spark_job


@pytest.mark.spark
def test_the_job_prints_the_path_of_the_summary_and_nothing_else(
    spark: Any, tmp_path: Path, two_disks: list[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    arguments = ["--trees", *two_disks, "--out", str(out), "--master", "local[1]"]
    program = [sys.executable, "-m", "reconciler.audit.spark.job", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (1, f"{out}/summary.json\n", "")
    # Without metadata a duplicate is shown all the same, and the replica beside it is not compared.
    assert json.loads((out / "summary.json").read_text())["totals"] == {"DUPLICATE": 2, "NOT_COMPARED": 1}


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (["--out", "."], 2, "there is nothing to audit"),
        (["--out", "/nowhere", "--trees", "/a"], 2, "/nowhere is no folder"),
        (["--out", ".", "--inventories", "/nowhere.parquet"], 3, "/nowhere.parquet"),
        (["--out", ".", "--trees", "/a", "--metadata", "/nowhere"], 2, "/nowhere: no such file"),
    ],
)
def test_what_is_wrong_is_one_sentence_before_spark_starts(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, shown: str
) -> None:
    assert spark_job.main(arguments) == code
    captured = capsys.readouterr()
    assert shown in captured.err
    assert (captured.out, captured.err.count("\n")) == ("", 1)
