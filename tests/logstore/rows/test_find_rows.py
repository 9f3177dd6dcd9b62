"""A few rows of an inventory are found without reading the others, and are the rows that are there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from logstore import InventoryError
from logstore.rows import ROW_SCHEMA, InventoryForm, find_rows, inventory, inventory_values, read_inventory
from tests.fleets import IDS, TOPICS, many_fleets
from tests.logstore.rows.test_claims import packed
from tests.logstore.rows.test_inventory import written


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "INVENTORY_GROUP_ROWS", 16)


def numbered(topics: int) -> pa.Table:
    """A log dir with one partition of each topic, in no order."""
    numbers = Random(1).sample(range(topics), topics)
    made = [{"name": f"t{number:03}-0", "topic": f"t{number:03}", "partition": 0, "kind": "live"} for number in numbers]
    made.append({"name": ".", "kind": "log_dir"})
    return pa.Table.from_pylist([{"log_dir": "/disks/1", "problem": "x" * 500, **row} for row in made], ROW_SCHEMA)


def test_an_inventory_is_sorted_by_topic_and_holds_what_was_given(tmp_path: Path) -> None:
    table = numbered(100)
    path = written(tmp_path / "inventory", InventoryForm.PARQUET, table)
    found = read_inventory(path)
    assert found.column("topic").to_pylist() == [None, *(f"t{number:03}" for number in range(100))]
    by_name = [("name", "ascending")]
    assert found.sort_by(by_name).equals(table.sort_by(by_name))
    assert pq.ParquetFile(path).num_row_groups == 7


def test_what_is_no_scan_keeps_its_order(tmp_path: Path) -> None:
    table = pa.table({"topic": ["b", None, "a"]})
    with (tmp_path / "findings").open("wb") as out:
        inventory.write_inventory([table], out, InventoryForm.PARQUET, table.schema)
    assert pq.read_table(tmp_path / "findings").equals(table)


@pytest.mark.parametrize("form", list(InventoryForm))
def test_the_rows_that_are_found_are_those_of_the_whole_inventory(tmp_path: Path, form: InventoryForm) -> None:
    path = written(tmp_path / "inventory", form, many_fleets(range(20))[0])
    whole = read_inventory(path)
    for topic, topic_id in [*zip(TOPICS, IDS, strict=False), ("nowhere", IDS[0]), ("", "")]:
        for wanted in (
            {"topic": [topic]},
            {"topic": [topic, "t"], "topic_id": [topic_id], "name": ["."]},
            {"kind": []},
        ):
            fits = [pc.is_in(whole[name], pa.array(values, pa.string())) for name, values in wanted.items()]
            mask = fits[0] if len(fits) == 1 else pc.or_(pc.or_(fits[0], fits[1]), fits[2])
            assert find_rows(path, wanted).equals(whole.filter(mask))
    assert set(inventory_values(path, "topic").to_pylist()) - {None} == set(TOPICS)


def test_only_what_may_hold_a_row_is_read_and_that_is_checked(tmp_path: Path) -> None:
    path = written(tmp_path / "inventory", InventoryForm.PARQUET, numbered(100))
    column = pq.ParquetFile(path).metadata.row_group(6).column(ROW_SCHEMA.get_field_index("name"))
    data = bytearray(Path(path).read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    Path(path).write_bytes(data)
    assert find_rows(path, {"topic": ["t007"], "name": ["."]}).column("name").to_pylist() == [".", "t007-0"]
    assert find_rows(path, {"topic": ["unknown"]}).num_rows == 0
    with pytest.raises(InventoryError, match="is damaged"):
        find_rows(path, {"topic": ["t099"]})


def test_rows_that_would_fill_the_memory_are_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.parquet", 2000, "x" * 2_000_000)
    with pytest.raises(InventoryError, match=r"claims 2,000 rows of 4,0\d\d,\d\d\d,\d\d\d bytes"):
        find_rows(path, {"topic": ["a"]})
    with pytest.raises(InventoryError, match=r"claims 200,000 rows"):
        find_rows(packed(tmp_path / "b.parquet", 200_000, ""), {"topic": ["a"]})


def test_another_file_is_refused_as_an_audit_refuses_it(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other")
    with pytest.raises(InventoryError, match="lacks the columns cluster_id"):
        find_rows(str(tmp_path / "other"), {"topic": ["a"]})


def test_an_inventory_of_an_older_release_is_searched_too(tmp_path: Path) -> None:
    path, table = str(tmp_path / "old"), numbered(3)
    pq.write_table(table.drop_columns(["host", "problem", "segments"]), path)
    (row,) = find_rows(path, {"topic": ["t001"]}).to_pylist()
    assert (row["name"], row["host"], row["problem"], row["segments"]) == ("t001-0", None, None, None)
