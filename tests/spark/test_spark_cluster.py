"""The audit as a job on a cluster whose executors have no logstore of their own, and what is lost on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from reconciler.sources import save_state
from tests.fleets import many_fleets
from tests.patience import PATIENCE_S
from tests.spark.answers import orders
from tests.spark.cluster import StandaloneCluster
from tools.real_broker.client import until

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    import pyspark

    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    with StandaloneCluster(Path(pyspark.__file__).parent, tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def trees(tmp_path: Path, two_disks: list[str]) -> list[str]:
    """The arguments for the log dirs of six brokers, and metadata that wants three replicas on the first."""
    for node in range(2, 7):
        copied = shutil.copytree(two_disks[1], tmp_path / "disks" / f"of-{node}")
        (copied / "meta.properties").write_text(f"version=1\ncluster.id=C\nnode.id={node}\n")
    (tmp_path / "metadata").mkdir()
    save_state(orders(), str(tmp_path / "metadata"))
    return [str(tmp_path / "disks"), "--metadata", f"parquet:{tmp_path}/metadata"]


@pytest.fixture
def inventories(tmp_path: Path) -> list[str]:
    """The arguments for the inventories of several random fleets and their metadata."""
    rows, states = many_fleets(range(1000, 1006))
    arguments = []
    for number in range(4):
        part = rows.slice(number * rows.num_rows // 4, (number + 1) * rows.num_rows // 4 - number * rows.num_rows // 4)
        pq.write_table(part, tmp_path / f"{number}.parquet")
        arguments.append(str(tmp_path / f"{number}.parquet"))
    for number, state in enumerate(states):
        (tmp_path / f"metadata-{number}").mkdir()
        save_state(state, str(tmp_path / f"metadata-{number}"))
        arguments += ["--metadata", f"parquet:{tmp_path}/metadata-{number}"]
    return arguments


def embedded(arguments: list[str], folder: Path) -> list[bytes]:
    command = [sys.executable, "-m", "reconciler.cli", "audit", *arguments, *in_file(folder / "embedded.json")]
    ran = subprocess.run(command, capture_output=True, check=False)
    assert ran.returncode == 1, ran.stderr.decode()
    return sorted((folder / "embedded.json").read_bytes().splitlines())


def answer(job: subprocess.Popen[bytes], folder: Path) -> list[bytes]:
    out, err = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 1, (out + err).decode()
    return sorted((folder / "spark.json").read_bytes().splitlines())


def in_file(path: Path) -> list[str]:
    return ["--format", "ndjson", "-o", str(path)]


def events(folder: Path, kind: str) -> list[dict[str, object]]:
    """What Spark has noted so far of its own doings."""
    lines = [line for path in folder.rglob("*") if path.is_file() for line in path.read_bytes().splitlines()]
    return [json.loads(line) for line in lines if kind.encode() in line and line.endswith(b"}")]


def test_a_machine_that_vanishes_while_it_lists_trees_costs_no_finding(
    cluster: StandaloneCluster, tmp_path: Path, trees: list[str]
) -> None:
    (cluster.gate / "hold").touch()
    job = cluster.submit(*trees, *in_file(tmp_path / "spark.json"), "--report", str(tmp_path / "report"))
    try:
        until("both executors work", lambda: len(list(cluster.gate.glob("waiting-*"))) == 2, PATIENCE_S)
        cluster.kill_worker("one")
    finally:
        (cluster.gate / "hold").unlink()
    found = answer(job, tmp_path)
    cluster.start_worker("one")
    assert found == embedded(trees, tmp_path)
    assert len(found) > 10


def test_an_executor_that_is_killed_for_its_memory_in_the_middle_of_the_join_costs_no_finding(
    cluster: StandaloneCluster, tmp_path: Path, inventories: list[str]
) -> None:
    log = tmp_path / "events"
    log.mkdir()
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": log.as_uri(), "spark.eventLog.compress": "false"}
    rows = in_file(tmp_path / "spark.json")
    job = cluster.submit(*inventories, *rows, "--report", str(tmp_path / "report"), conf=conf)
    until("the join runs", lambda: len(events(log, "SparkListenerStageCompleted")) > 2, PATIENCE_S)
    os.kill(cluster.executors()[0], signal.SIGKILL)  # as the kernel does where memory runs out
    found = answer(job, tmp_path)
    assert len(events(log, "SparkListenerExecutorRemoved")) == 1
    assert found == embedded(inventories, tmp_path)
    assert len(found) > 100


def test_executors_that_lack_the_package_are_one_sentence_that_says_how_to_give_it(
    cluster: StandaloneCluster, tmp_path: Path, trees: list[str]
) -> None:
    job = cluster.submit(*trees, "--report", str(tmp_path / "report"), brings_package=False)
    out, _ = job.communicate(timeout=PATIENCE_S)  # spark-submit gives both streams of its Python as one
    (said,) = [line for line in out.decode().splitlines() if line.startswith("logstore: Spark did not")]
    assert "No module named 'reconciler'" in said
    assert "--py-files" in said
    assert job.returncode == 3
