"""The names of inventories in a folder of them, and the files that are written there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logstore import InventoryStoreError
from logstore.rows import ROW_SCHEMA, is_layout_folder, parse_scan_name, read_inventory, write_scan
from logstore.rows.inventory_layout import UNKNOWN, name_of_scan

SCANNED_MS = 1_764_115_199_999
"""The last millisecond of 25 November 2025, UTC."""


def log_dir(path: str, scanned_ms: int = SCANNED_MS, **but: object) -> dict[str, object]:
    row = {"host": "one", "cluster_id": "c-1", "node_id": 3, "log_dir": path, "name": ".", "kind": "log_dir"}
    return {**row, "scanned_ms": scanned_ms, **but}


def table(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), ROW_SCHEMA)


OFFLINE = {"cluster_id": None, "node_id": None}


def test_a_name_has_cluster_day_broker_and_time() -> None:
    name = name_of_scan([log_dir("/d/1"), log_dir("/d/2", SCANNED_MS + 5)])
    assert name.startswith(f"cluster=c-1/day=2025-11-25/broker=3/scan-{SCANNED_MS}-")
    parsed = parse_scan_name(f"s3://bucket/below/{name}?region=x")
    assert parsed is not None
    assert (parsed.log_dirs[:2], parsed.scanned_ms) == (("c-1", "3"), SCANNED_MS)


def test_scans_of_the_same_log_dirs_share_all_but_the_time_and_others_do_not() -> None:
    one, two = log_dir("/d/1"), log_dir("/d/2")
    groups = [[one, two], [two, log_dir("/d/1", 7)], [one, log_dir("/d/2", **OFFLINE)]]
    assert len({parse_scan_name(name_of_scan(each)).log_dirs for each in groups}) == 1  # type: ignore[union-attr]
    others = [
        [one],
        [one, log_dir("/d/2", host="two")],
        [log_dir("/d/1", node_id=4), two],
        [log_dir("/d/1", **OFFLINE)],
    ]
    assert len({parse_scan_name(name_of_scan(each)).log_dirs for each in [*others, groups[0]]}) == 5  # type: ignore[union-attr]


def test_what_is_not_known_has_the_word_that_other_programs_know() -> None:
    name = name_of_scan([log_dir("/d/1", **OFFLINE)])
    assert name.startswith(f"cluster={UNKNOWN}/day=2025-11-25/broker={UNKNOWN}/scan-")
    assert parse_scan_name(name) is not None


def test_a_cluster_of_an_odd_name_stays_one_folder() -> None:
    name = name_of_scan([log_dir("/d/1", cluster_id="../a b/ü=")])
    assert name.startswith("cluster=..%2Fa%20b%2F%C3%BC%3D/day=")
    assert parse_scan_name(name) is not None


@pytest.mark.parametrize("path", ["scan-1-0123456789ab.parquet", "one.parquet", "a/day=2025-11-25/x.parquet", ""])
def test_another_name_says_nothing(path: str) -> None:
    assert parse_scan_name(path) is None


def test_the_folders_of_the_layout_are_known_by_their_names(tmp_path: Path) -> None:
    path, _ = write_scan([table(log_dir("/d/1"))], str(tmp_path))
    assert all(map(is_layout_folder, Path(path).relative_to(tmp_path).parts[:-1]))
    assert not any(map(is_layout_folder, ("2025-11-25", "day-0", "day=", "orders=day=1-0")))


def test_a_scan_is_written_whole_under_its_name_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "of % all"
    tables = [table(log_dir("/d/1"), log_dir("/d/1", name="a-0", kind="live")), table(log_dir("/d/2", **OFFLINE))]
    path, rows = write_scan(tables, str(folder))
    assert rows == 3
    assert read_inventory(path).num_rows == 3
    assert [str(each) for each in folder.rglob("*") if each.is_file()] == [path]
    assert pq.read_table(str(folder), columns=["broker", "cluster"]).to_pylist()[0] == {"broker": 3, "cluster": "c-1"}


def test_a_scan_that_ends_early_leaves_no_file(tmp_path: Path) -> None:
    def broken():
        yield table(log_dir("/d/1"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_scan(broken(), str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InventoryStoreError, match=f"^{tmp_path}/file/.*: Not a directory"):
        write_scan([table(log_dir("/d/1"))], str(tmp_path / "file"))
