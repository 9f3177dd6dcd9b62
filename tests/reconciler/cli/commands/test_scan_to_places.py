"""Inventories that a scan leaves in a folder or an object store, in their layout."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from logstore.rows import list_uri, parse_scan_name, read_inventory
from tests.object_store import BUCKET, ObjectStore

Run = Callable[..., Result]


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("form", ["{}/new/", "{}", "file://{}/new/"])
def test_each_broker_gets_an_inventory(cluster, run: Run, tmp_path: Path, form: str) -> None:
    folder = tmp_path / "inventories"
    folder.mkdir()
    ran = run("scan", *cluster.log_dirs, "-o", form.format(folder))
    assert (ran.exit_code, ran.stdout) == (0, "")
    paths = files_below(folder)
    assert [path.parent.name for path in paths] == ["broker=1", "broker=2"]
    assert sorted(ran.stderr.splitlines()) == [f"logstore: {path}: 3 rows" for path in paths]
    assert [set(read_inventory(str(path))["node_id"].to_pylist()) for path in paths] == [{1}, {2}]


def test_a_disk_that_is_away_lies_with_its_broker(cluster, run: Run, tmp_path: Path) -> None:
    ran = run("scan", cluster.log_dirs[0], tmp_path / "away", "-o", f"{tmp_path}/inventories/")
    assert ran.exit_code == 4
    (path,) = files_below(tmp_path / "inventories")
    assert path.parent.name == "broker=1"
    assert set(read_inventory(str(path))["log_dir"].to_pylist()) == {cluster.log_dirs[0], str(tmp_path / "away")}
    shutil.rmtree(tmp_path / "inventories")
    run("scan", *cluster.log_dirs, tmp_path / "away", "-o", f"{tmp_path}/inventories/")
    assert len(files_below(tmp_path / "inventories")) == 3


def test_a_scan_goes_to_an_object_store(cluster, run: Run, s3: ObjectStore) -> None:
    assert run("scan", *cluster.log_dirs, "-o", f"s3://{BUCKET}/a/").exit_code == 0
    assert run("scan", *cluster.log_dirs, "--format", "parquet", "-o", f"s3://{BUCKET}/b/x.parquet").exit_code == 0
    names = [each.name for each in list_uri(f"s3://{BUCKET}/") or ()]
    assert names[-1] == "b/x.parquet"
    assert [parse_scan_name(name).log_dirs[:2] for name in names[:-1]] == [  # type: ignore[union-attr]
        ("cluster-of-the-tests", "1"),
        ("cluster-of-the-tests", "2"),
    ]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["-o", "s3://fleet/x"], "is neither a folder nor a file of Parquet: end it with / or with .parquet"),
        (["-o", "s3://fleet/x/", "--format", "json"], "takes inventories, which are Parquet: leave out --format json"),
        (["-o", "{0}/"], "lies in the log dir {0}, where nothing is written"),
        (["-o", "x3://fleet/x/"], "begins with x3://, which leads nowhere"),
    ],
)
def test_what_cannot_become_an_inventory_there_is_refused(cluster, run: Run, args: list[str], sentence: str) -> None:
    one = cluster.log_dirs[0]
    ran = run("scan", one, *(each.format(one) for each in args))
    assert ran.exit_code in (2, 4)
    assert sentence.format(one) in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_store_that_refuses_ends_a_scan_with_one_sentence(cluster, run: Run, s3: ObjectStore) -> None:
    ran = run("scan", cluster.log_dirs[0], "-o", "s3://absent/x/")
    assert ran.exit_code == 4
    assert ran.stderr.startswith("logstore: s3://absent/x/cluster=cluster-of-the-tests/day=")
    assert ran.stderr.endswith(": there is no such bucket: check its name, and the endpoint (AWS_ENDPOINT_URL)\n")
    path = cluster.folder / "one.parquet"
    assert run("scan", cluster.log_dirs[0], "--format", "parquet", "-o", path).exit_code == 0
    assert "is an inventory already: copy it" in run("scan", path, "-o", f"s3://{BUCKET}/x/").stderr
