"""``logstore-spark-audit``: the audit as spark-submit runs it, with the options of ``logstore audit``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from reconciler.audit.spark import session
from reconciler.cli import __main__, spark_audit
from tests.patience import PATIENCE_S

JOB = str(Path(__file__).parents[3] / "tools" / "spark_audit.py")


def replica(log_dir: Path, name: str) -> None:
    (log_dir / name).mkdir(parents=True)
    (log_dir / "meta.properties").write_text("version=1\ncluster.id=C\nnode.id=1\n")
    (log_dir / name / "partition.metadata").write_text("version: 0\ntopic_id: UXyU9i5ARn6W00ON2taeWA")
    (log_dir / name / "00000000000000000000.log").write_bytes(b"x" * 100)


@pytest.mark.spark
def test_spark_submit_takes_the_job_with_the_options_of_an_audit(tmp_path: Path) -> None:
    replica(tmp_path / "disks" / "one", "orders-0")
    replica(tmp_path / "disks" / "two", "orders-0")
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None or shutil.which("java") is None:
        pytest.skip("there is no PySpark or no Java")
    submit = str(Path(spec.origin).parent / "bin" / "spark-submit")
    report = tmp_path / "report"
    arguments = [str(tmp_path / "disks"), "--metadata", "none", "--report", str(report)]
    environ = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(Path(JOB).parents[1])}
    done = subprocess.run(
        [submit, "--master", "local[1]", JOB, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env=os.environ | environ,
    )
    assert done.returncode == 1, done.stderr
    assert "2 log dirs of 1 broker (spark)" in done.stdout
    # Without metadata a duplicate is shown all the same.
    assert json.loads((report / "summary.json").read_text())["totals"] == {"DUPLICATE": 2}


def test_the_job_is_an_audit_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(__main__, "main", lambda: called.append(sys.argv[1:]))
    monkeypatch.setattr(sys, "argv", ["logstore-spark-audit", "/disks", "--all"])
    spark_audit()
    assert called == [["audit", "--spark", "/disks", "--all"]]


def test_under_spark_submit_a_job_without_a_folder_for_its_report_is_refused(
    cluster, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    refused = run("audit", "--spark", *cluster.log_dirs)
    assert refused.exit_code == 2
    assert "a cluster needs --report with a folder that this machine and all executors see" in refused.stderr


@pytest.mark.spark
@pytest.mark.parametrize(
    ("option", "instead"),
    [(["--master", "spark://h:7077"], "--master"), (["--memory", "2GB"], "--driver-memory")],
)
def test_what_spark_submit_has_chosen_is_not_chosen_again_without_a_word(
    tmp_path: Path, cluster, run, monkeypatch: pytest.MonkeyPatch, option: list[str], instead: str
) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    monkeypatch.setattr(session, "_running", lambda: None)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    asked = ("audit", "--spark", *option, cluster.log_dirs[0], "--report", tmp_path / "report")
    refused = run(*asked, "--metadata", cluster.metadata)
    assert (refused.exit_code, f"give spark-submit {instead} instead" in refused.stderr) == (2, True)


def test_the_help_says_what_differs_in_a_job_of_spark(run) -> None:
    shown = " ".join(run("audit", "--help").stdout.split())
    assert "logstore-spark-audit is this command with --spark, as a job, and takes the same options." in shown
    assert "--jobs does not go with --spark" in shown
