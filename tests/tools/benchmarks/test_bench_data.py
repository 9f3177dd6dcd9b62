"""The benchmark's fleet: that it is a fleet as scans and sources give it, and has in it what it promises."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from layout.ids import DirectoryId, TopicId
from logstore.rows import ROW_SCHEMA, Kind, inventory
from reconciler.sources import load
from tools.benchmarks import data as bench_data

ROWS, BROKERS = 15_000, 10


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("fleet"))
    bench_data.generate(folder, ROWS, BROKERS)
    return folder


@pytest.fixture(scope="module")
def rows(fleet: str) -> pa.Table:
    return pa.concat_tables([inventory.read_inventory(path) for path in bench_data.inventories(fleet)])


def test_every_broker_has_an_inventory_that_an_audit_accepts(fleet: str) -> None:
    paths = bench_data.inventories(fleet)
    assert len(paths) == BROKERS
    for path in paths:
        inventory.check_inventory(path)
        assert pq.read_schema(path).names == ROW_SCHEMA.names
        assert pc.count_distinct(inventory.read_inventory(path)["node_id"]).as_py() == 1


def test_every_partition_has_three_replicas_on_different_brokers(fleet: str) -> None:
    (state,) = load(f"parquet:{bench_data.desired(fleet)}")
    table = pq.read_table(Path(bench_data.desired(fleet), "replicas.parquet"))
    assert table.num_rows == state.replicas.num_rows == ROWS
    replicas = table.group_by(["topic", "partition"]).aggregate([("node_id", "count_distinct")])
    assert set(replicas["node_id_count_distinct"].to_pylist()) == {3}


@pytest.mark.parametrize("shape", list(bench_data.SKEWED))
def test_a_fleet_of_another_shape_is_uneven_in_that_alone(tmp_path: Path, shape: str) -> None:
    bench_data.generate(str(tmp_path), 6000, 30, shape)
    wanted = pq.read_table(Path(bench_data.desired(str(tmp_path)), "replicas.parquet"))
    live = sum(pq.read_table(path)["kind"].to_pylist().count("live") for path in bench_data.inventories(str(tmp_path)))
    most = {
        name: max(each["counts"] for each in wanted[name].value_counts().to_pylist()) for name in ("node_id", "topic")
    }
    replicas = wanted.group_by(["topic", "partition"]).aggregate([("node_id", "count_distinct")])
    assert set(replicas["node_id_count_distinct"].to_pylist()) == {3}
    assert abs(wanted.num_rows - 6000) < 300
    assert most["topic"] == (180 if shape == bench_data.TOPIC else 150)
    assert (live < 3200) is (shape == bench_data.ABSENT)
    assert (most["node_id"] > 400) is (shape == bench_data.BROKER)


def test_ids_are_real_ids(rows: pa.Table) -> None:
    for text in set(rows["topic_id"].to_pylist()) - {None}:
        TopicId.parse(text)
    for text in set(rows["directory_id"].to_pylist()) - {None}:
        DirectoryId.parse(text)


def test_every_broker_has_two_log_dirs_and_one_of_them_all_is_absent(rows: pa.Table) -> None:
    log_dirs = rows.filter(pc.field("kind") == "log_dir")
    assert log_dirs.num_rows == 2 * BROKERS
    assert log_dirs["metadata_state"].to_pylist().count("absent") == 1


def test_everything_that_can_lie_on_a_disk_is_planted_but_internal_directories(rows: pa.Table) -> None:
    assert set(rows["kind"].to_pylist()) == {kind.value for kind in Kind} - {"internal"}


def test_a_fleet_is_complete_only_when_it_was_made_to_its_end(fleet: str, tmp_path: Path) -> None:
    assert bench_data.is_complete(fleet)
    assert not bench_data.is_complete(str(tmp_path))


def test_the_same_number_of_rows_makes_the_same_fleet(fleet: str, rows: pa.Table, tmp_path: Path) -> None:
    bench_data.generate(str(tmp_path), ROWS, BROKERS)
    again = pa.concat_tables([inventory.read_inventory(path) for path in bench_data.inventories(str(tmp_path))])
    assert sorted(map(str, again.to_pylist())) == sorted(map(str, rows.to_pylist()))
