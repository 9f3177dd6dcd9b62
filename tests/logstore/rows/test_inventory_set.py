"""Several inventories together: of several scans of one log dir the newest counts, and a bad file costs only itself."""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier

import pyarrow as pa
import pytest

from logstore import StoreDownError
from logstore.rows import (
    ROW_SCHEMA,
    InventoryForm,
    InventorySet,
    LogDirFacts,
    LogDirOnHost,
    read_inventory,
    read_inventory_set,
    write_inventory,
    write_scan,
)
from logstore.rows.inventory_set import Copies
from logstore.rows.same_log_dir import TOGETHER_MS
from logstore.rows.uris import put
from tests.object_store import BUCKET, ObjectStore
from tests.patience import PATIENCE_S


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
    now = [LogDirFacts(host, log_dir, 3, None, None, None) for host, log_dir in (("one", "/d/1"), ("two", "/d/2"))]
    found = read_inventory_set([path], now)
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


def laid(folder: Path, scanned_ms: int, *log_dirs: list[dict[str, object]]) -> str:
    path, _ = write_scan([pa.Table.from_pylist(each, ROW_SCHEMA) for each in log_dirs], str(folder))
    assert f"/scan-{scanned_ms}-" in path
    return path


def test_of_files_that_hold_the_same_log_dirs_by_their_names_only_the_newest_is_read(tmp_path: Path) -> None:
    paths = [laid(tmp_path, day, rows("/d/1", day), rows("/d/2", day + 1)) for day in (3, 1, 2)]
    Path(paths[1]).write_bytes(b"damaged")
    found = read_inventory_set(paths)
    assert (found.paths, found.older, found.unreadable) == ((paths[0],), (paths[1], paths[2]), {})


def test_where_the_newest_cannot_be_read_the_next_one_counts(tmp_path: Path) -> None:
    paths = [laid(tmp_path, day, rows("/d", day)) for day in (1, 2, 3)]
    Path(paths[2]).write_bytes(b"damaged")
    found = read_inventory_set(paths)
    assert (found.paths, found.older, list(found.unreadable)) == ((paths[1],), (paths[0],), [paths[2]])


def test_a_disk_that_was_away_is_the_one_that_the_other_scan_knows(tmp_path: Path) -> None:
    here = rows("/d/2", 1)
    away = [{**rows("/d/2", 2)[0], "cluster_id": None, "node_id": None}]
    first = written(tmp_path / "1", rows("/d/1", 1), here)
    second = written(tmp_path / "2", rows("/d/1", 2), away)
    found = read_inventory_set([first, second])
    assert (found.paths, found.older) == ((second,), (first,))
    third = written(tmp_path / "3", rows("/d/2", 3))
    found = read_inventory_set([second, third])
    assert (found.paths, found.superseded) == ((second, third), {second: {LogDirOnHost("one", "/d/2")}})
    other = written(tmp_path / "4", rows("/d/2", 3, node=2))
    assert read_inventory_set([second, third, other]).superseded == {}


def test_the_newest_scan_counts_under_whichever_name_of_its_host(tmp_path: Path) -> None:
    old = written(tmp_path / "old", rows("/d/1", 1, host="b-7"), rows("/d/2", 1, host="b-7"))
    new = written(tmp_path / "new", rows("/d/1", 2, host="B-7.example.com"))
    for paths in ([old, new], [new, old]):
        found = read_inventory_set(paths)
        assert found.superseded == {old: {LogDirOnHost("b-7", "/d/1")}}
        assert [(row["log_dir"], row["host"]) for row in found.log_dirs if row["log_dir"] == "/d/1"] == [
            ("/d/1", "B-7.example.com")
        ]
        assert found.remarks[-1] == (
            "1 log dir was scanned under two names of one host, and the newest scan counts alone: b-7 and "
            "B-7.example.com"
        )


def test_a_disk_that_is_away_on_a_renamed_host_leaves_nothing_that_counts_under_the_former_name(tmp_path: Path) -> None:
    def with_id(log_dir: str, scanned_ms: int, host: str) -> list[dict[str, object]]:
        first, replica = rows(log_dir, scanned_ms, host=host)
        return [{**first, "directory_id": f"of {log_dir}"}, replica]

    old = written(tmp_path / "old", with_id("/d/1", 1, "former"), with_id("/d/2", 1, "former"))
    away = {**rows("/d/2", TOGETHER_MS + 1, host="new")[0], "cluster_id": None, "node_id": None}
    new = written(tmp_path / "new", with_id("/d/1", TOGETHER_MS + 1, "new"), [away])
    for paths in ([old, new], [new, old]):
        found = read_inventory_set(paths)
        assert (found.paths, found.older) == ((new,), (old,))
        assert {row["host"] for row in found.log_dirs} == {"new"}


def test_a_log_dir_that_is_scanned_now_is_that_of_an_inventory_of_another_host_by_its_directory_id(
    tmp_path: Path,
) -> None:
    (log_dir, replica) = rows("/d", 1, host="former")
    path = written(tmp_path / "old", [{**log_dir, "directory_id": "D"}, replica])
    found = read_inventory_set([path], [LogDirFacts("present", "/d", TOGETHER_MS + 1, "C", 1, "D")])
    assert (found.paths, found.older, found.log_dirs) == ((), (path,), ())
    assert [each.is_certain for each in found.other_places] == [True]


def test_what_lies_in_a_store_is_read_from_a_copy_that_goes_with_the_set(tmp_path: Path, s3: ObjectStore) -> None:
    local = [laid(tmp_path / "x", day, rows("/d", day)) for day in (1, 2)]
    uris = [f"s3://{BUCKET}/{path.removeprefix(f'{tmp_path}/')}" for path in local]
    for path, uri in zip(local, uris, strict=True):
        put(path, uri)
    Path(tmp_path / "bad").write_bytes(b"bad")
    put(str(tmp_path / "bad"), f"s3://{BUCKET}/bad.parquet")
    refused, bad = f"s3://{BUCKET}/refused.parquet", f"s3://{BUCKET}/bad.parquet"
    s3.refusing = lambda method, path: path.endswith("refused.parquet")
    found = read_inventory_set([refused, *uris, bad], (), str(tmp_path))
    assert (found.paths, found.older) == ((uris[1],), (uris[0],))
    assert (
        found.unreadable[refused]
        == f"{refused}: access is denied: give credentials that may list, read and write there"
    )
    assert found.unreadable[bad].startswith(f"{bad} is no inventory")
    copy = found.readable(uris[1])
    assert Path(copy).parent.parent == tmp_path
    assert read_inventory(copy) == read_inventory(local[1])
    del found
    gc.collect()
    assert not Path(copy).parent.exists()


def test_a_store_that_is_down_ends_the_reading(tmp_path: Path) -> None:
    nobody = "?endpoint_override=127.0.0.1:1&scheme=http&region=x"
    with pytest.raises(StoreDownError, match="the store does not answer"):
        read_inventory_set([f"s3://bucket/x.parquet{nobody}"])
    assert list(tmp_path.iterdir()) == []


def test_copies_that_threads_need_together_lie_in_one_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made, all_there = [], Barrier(4)

    def slow(**options: str) -> TemporaryDirectory[str]:
        time.sleep(0.02)  # in which the others would come here too
        made.append(TemporaryDirectory(**options))
        return made[-1]

    def need(copies: Copies) -> None:
        all_there.wait(PATIENCE_S)
        copies.prepare()

    monkeypatch.setattr("tempfile.TemporaryDirectory", slow)
    copies = Copies(str(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(need, [copies] * 4))
    assert len(made) == 1
