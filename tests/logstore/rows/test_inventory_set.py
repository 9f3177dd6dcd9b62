"""Several inventories together: of several scans of one log dir the newest counts, and a bad file costs only itself."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from logstore.rows import (
    ROW_SCHEMA,
    InventoryForm,
    InventorySet,
    LogDirOnHost,
    read_inventory,
    read_inventory_set,
    write_inventory,
)


def rows(log_dir: str, scanned_ms: int | None, *, host: str | None = "one", node: int = 1) -> list[dict[str, object]]:
    """The rows of a log dir with one replica."""
    place = {"host": host, "cluster_id": "C", "node_id": node, "log_dir": log_dir}
    return [
        {**place, "name": ".", "kind": "log_dir", "scanned_ms": scanned_ms},
        {**place, "name": "orders-0", "kind": "live", "topic": "orders", "partition": 0},
    ]


def written(path: Path, *log_dirs: list[dict[str, object]], form: InventoryForm = InventoryForm.PARQUET) -> str:
    with path.open("wb") as out:
        write_inventory([pa.Table.from_pylist(each, ROW_SCHEMA) for each in log_dirs], out, form)
    return str(path)


def test_the_newest_scan_of_a_log_dir_counts_in_whichever_order_they_are_given(tmp_path: Path) -> None:
    old, new = written(tmp_path / "old", rows("/d", 1)), written(tmp_path / "new", rows("/d", 2))
    for paths in ([old, new], [new, old]):
        found = read_inventory_set(paths)
        assert (found.paths, found.older, found.superseded) == ((new,), (old,), {})
        assert [row["scanned_ms"] for row in found.log_dirs] == [2]
        assert found.remarks == (
            f"1 older inventory does not count, because its log dirs were scanned again since: {old}",
        )


def test_a_file_counts_for_the_log_dirs_that_were_not_scanned_again(tmp_path: Path) -> None:
    old = written(tmp_path / "old", rows("/d/1", 1), rows("/d/2", 1))
    new = written(tmp_path / "new", rows("/d/2", 2))
    found = read_inventory_set([old, new])
    assert (found.paths, found.older) == ((old, new), ())
    assert found.superseded == {old: {LogDirOnHost("one", "/d/2")}}
    assert found.remarks == (f"{old} does not count for log dirs that were scanned again since: /d/2",)
    assert [(row["log_dir"], row["scanned_ms"]) for row in found.log_dirs] == [("/d/1", 1), ("/d/2", 2)]


@pytest.mark.parametrize("form", list(InventoryForm))
def test_what_does_not_count_is_left_out_of_the_rows(tmp_path: Path, form: InventoryForm) -> None:
    path = written(tmp_path / "one", rows("/d/1", 1, host=None), rows("/d/2", 1), form=form)
    kept = read_inventory(path, {LogDirOnHost("one", "/d/2"), LogDirOnHost("two", "/d/1")})
    assert [row["log_dir"] for row in kept.to_pylist()] == ["/d/1", "/d/1"]
    assert read_inventory(path, {LogDirOnHost("", "/d/1")}).column("log_dir").unique().to_pylist() == ["/d/2"]


@pytest.mark.parametrize("other", [{"host": "two"}, {"node": 2}])
def test_another_host_or_broker_with_the_same_path_has_another_log_dir(
    tmp_path: Path, other: dict[str, object]
) -> None:
    paths = [written(tmp_path / "a", rows("/d", 1)), written(tmp_path / "b", rows("/d", 2, **other))]  # type: ignore[arg-type]
    found = read_inventory_set(paths)
    assert (found.paths, found.older, found.remarks) == (tuple(paths), (), ())


def test_of_two_scans_of_one_moment_the_first_counts_and_one_without_a_time_is_the_oldest(tmp_path: Path) -> None:
    first, second = written(tmp_path / "1", rows("/d", 5)), written(tmp_path / "2", rows("/d", 5))
    timeless = written(tmp_path / "3", rows("/d", None))
    assert read_inventory_set([timeless, first, second]).paths == (first,)


def test_a_log_dir_that_is_scanned_now_is_newer_than_every_inventory(tmp_path: Path) -> None:
    path = written(tmp_path / "old", rows("/d/1", 1), rows("/d/2", 1))
    found = read_inventory_set([path], [LogDirOnHost("one", "/d/1"), LogDirOnHost("two", "/d/2")])
    assert found.superseded == {path: {LogDirOnHost("one", "/d/1")}}


def test_a_file_that_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    good, bad = written(tmp_path / "good", rows("/d", 1)), tmp_path / "bad"
    bad.write_bytes(Path(good).read_bytes()[:-10])
    found = read_inventory_set([str(bad), good])
    assert (found.paths, list(found.unreadable)) == ((good,), [str(bad)])
    assert "scan again" in found.unreadable[str(bad)]
    assert found.files == (good, str(bad))


def test_of_many_older_scans_ten_are_named(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{number:02}", rows("/d", number)) for number in range(13)]
    (remark,) = read_inventory_set(paths).remarks
    assert remark.startswith("12 older inventories do not count, because their log dirs were scanned again since: ")
    assert remark.endswith(f"{paths[9]}, …")


def test_no_inventories_are_an_empty_set() -> None:
    assert read_inventory_set([]) == InventorySet()
