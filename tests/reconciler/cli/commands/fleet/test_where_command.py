"""``logstore where`` from end to end."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import Result

from reconciler.cli.frame import read_inputs, sort_inputs, sort_paths
from reconciler.whereabouts import COPY_VERSION, Copy
from tests.object_store import BUCKET, ObjectStore
from tests.reconciler.cli.conftest import OLD_ORDERS, ORDERS, Cluster

Run = Callable[..., Result]


@pytest.fixture
def inventory(run: Run, cluster: Cluster) -> str:
    path = str(cluster.folder / "brokers.parquet")
    assert run("scan", *cluster.log_dirs, "--format", "parquet", "-o", path).exit_code == 0
    return path


def copies(result: Result) -> list[tuple[object, ...]]:
    names = ("broker", "name", "kind", "topic_id", "verdict", "wanted_on")
    return [tuple(copy[name] for name in names) for copy in json.loads(result.stdout)["copies"]]


def test_each_copy_says_what_it_is_and_where_it_is_wanted(run: Run, cluster: Cluster, inventory: str) -> None:
    asked = ("--metadata", cluster.metadata, "--format", "json")
    result = run("where", "orders-1", inventory, *asked)
    assert result.exit_code == 1
    assert copies(result) == [
        (1, "orders-1", "live", str(ORDERS), "OK", [1, 2]),
        (2, "orders-1", "live", str(OLD_ORDERS), "STALE_ID", []),
    ]
    stale = json.loads(run("where", OLD_ORDERS, inventory, *asked).stdout)
    assert (stale["schema_version"], stale["asked"], stale["log_dirs"]) == (COPY_VERSION, str(OLD_ORDERS), 2)
    assert [copy["metadata_topic_id"] for copy in stale["copies"]] == [str(ORDERS)]
    # What lies on the disks is the same, whether they are scanned now or an inventory is read.
    assert copies(run("where", "orders-1", *cluster.log_dirs, *asked)) == copies(result)


def test_a_topic_that_is_as_it_should_be_is_clean_and_one_that_is_wanted_and_gone_is_missing(
    run: Run, cluster: Cluster
) -> None:
    asked = ("--metadata", cluster.metadata, "--format", "json")
    assert run("where", "orders-0", *cluster.log_dirs, *asked).exit_code == 0
    shutil.rmtree(cluster.log_dir(2) / "orders-0")
    result = run("where", ORDERS, *cluster.log_dirs, *asked)
    assert result.exit_code == 1
    assert (2, None, None, None, "MISSING", [1, 2]) in copies(result)


def test_without_metadata_it_says_what_lies_there_alone(run: Run, inventory: str) -> None:
    result = run("where", "orders", inventory)
    assert result.exit_code == 0
    assert "name a source with --metadata" in result.stderr
    head, titles, *rows = result.stdout.splitlines()
    assert head.startswith("orders: 4 copies on 2 brokers, topic IDs ")
    assert "VERDICT" not in titles
    assert [row.split()[:3] for row in rows if row.startswith("orders")] == [
        ["orders-0", "1", "live"], ["orders-0", "2", "live"], ["orders-1", "1", "live"], ["orders-1", "2", "live"],
    ]  # fmt: skip


def test_the_table_says_why_a_copy_is_not_as_it_is_wanted(run: Run, cluster: Cluster, inventory: str) -> None:
    shown = run("where", "orders-1", inventory, "--metadata", cluster.metadata).stdout
    assert "STALE_ID: orders-1 of broker 2 in " in shown
    assert f"the disk holds topic ID {OLD_ORDERS}" in shown
    assert [line.split()[0] for line in shown.splitlines()[2:5]] == ["WHERE:", "OK", "STALE_ID"] or "nowhere" in shown


def test_the_formats_for_programs_have_the_same_fields(run: Run, cluster: Cluster, inventory: str) -> None:
    asked = ("orders-1", inventory, "--metadata", cluster.metadata)
    whole = json.loads(run("where", *asked, "--format", "json").stdout)["copies"]
    lines = [json.loads(line) for line in run("where", *asked, "--format", "ndjson").stdout.splitlines()]
    assert lines == [{"schema_version": COPY_VERSION, **copy} for copy in whole]
    rows = list(csv.DictReader(io.StringIO(run("where", *asked, "--format", "csv").stdout)))
    assert list(rows[0]) == [field.name for field in fields(Copy)]
    assert [row["wanted_on"] for row in rows] == ["1 2", ""]


def test_what_lies_nowhere_is_said_with_what_may_be_meant(run: Run, cluster: Cluster, inventory: str) -> None:
    result = run("where", "oders", inventory)
    assert result.exit_code == 1
    assert "oders lies in none of 2 log dirs; did you mean orders?" in result.stderr
    assert run("where", "a/b", inventory).exit_code == 2


def test_an_inventory_that_cannot_be_read_leaves_the_answer_incomplete(
    run: Run, inventory: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    result = run("where", "orders", inventory, tmp_path / "bad.parquet", "--format", "json")
    assert result.exit_code == 4
    assert len(json.loads(result.stdout)["copies"]) == 4
    assert "bad.parquet is damaged" in result.stderr
    assert run("where", "orders", tmp_path / "bad.parquet").exit_code == 3
    assert run("where", "orders", tmp_path / "not-there").exit_code == 2
    assert run("where", "orders", inventory, tmp_path / "not-there").exit_code == 4


def test_paths_are_sorted_without_a_look_into_the_inventories(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    given = sort_paths([*cluster.log_dirs, str(tmp_path / "bad.parquet")])
    assert (list(given.log_dirs), list(given.inventories)) == (cluster.log_dirs, [str(tmp_path / "bad.parquet")])


def test_inventories_in_a_store_give_the_same_answer_and_are_listed_once(
    run: Run, cluster: Cluster, inventory: str, s3: ObjectStore
) -> None:
    prefix = f"s3://{BUCKET}/inventories/"
    assert run("scan", *cluster.log_dirs, "-o", prefix).exit_code == 0
    listings: list[str] = []

    def noted(method: str, path: str) -> bool:
        if path.strip("/") == BUCKET:
            listings.append(method)
        return False

    s3.refusing = noted
    given = sort_paths([prefix])
    once = len(listings)
    assert copies(run("where", "orders", prefix, "--format", "json")) == copies(
        run("where", "orders", inventory, "--format", "json")
    )
    assert len(listings) == 2 * once > 0
    assert len(read_inputs(given).inventories.paths) == len(sort_inputs([prefix]).inventories.paths) == 2
