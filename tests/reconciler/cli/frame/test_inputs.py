"""What the given paths are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logstore import InventoryError
from logstore.rows import InventoryForm, inventory
from logstore.scan import scan
from reconciler.cli.frame import sort_inputs
from reconciler.errors import RefusedError, UsageError


def inventory_of(log_dir: str, path: Path) -> str:
    with path.open("wb") as out:
        inventory.write_inventory([scan(log_dir).rows], out, InventoryForm.PARQUET)
    return str(path)


def test_a_folder_of_disks_stands_for_its_log_dirs(cluster) -> None:
    inputs = sort_inputs([str(cluster.folder / "disks")])
    assert list(inputs.log_dirs) == cluster.log_dirs
    assert (inputs.folders, inputs.places) == ((str(cluster.folder / "disks"),), 2)


def test_a_log_dir_that_is_given_twice_is_looked_at_once(cluster) -> None:
    one = cluster.log_dirs[0]
    os.symlink(one, cluster.folder / "link")
    assert sort_inputs([one, f"{one}/", str(cluster.folder / "link"), str(cluster.folder / "disks")]).places == 2


def test_inventories_and_trees_go_together(cluster) -> None:
    path = inventory_of(cluster.log_dirs[0], cluster.folder / "one.parquet")
    inputs = sort_inputs([path, cluster.log_dirs[1]])
    assert (inputs.inventories, inputs.log_dirs) == ((path,), (cluster.log_dirs[1],))
    assert [row["node_id"] for row in inputs.inventoried] == [1]


def test_some_paths_that_are_absent_stay_among_the_log_dirs(cluster) -> None:
    absent = str(cluster.folder / "absent")
    assert sort_inputs([cluster.log_dirs[0], absent]).log_dirs == (cluster.log_dirs[0], absent)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("absent", "absent: No such file or directory"), ("file", "is a file, and neither a log dir nor an inventory")],
)
def test_when_nothing_can_be_looked_at_there_is_no_run(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "file").write_text("hello")
    with pytest.raises(UsageError, match=sentence):
        sort_inputs([str(tmp_path / name)])


def test_a_fifo_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="neither a directory nor a plain file"):
        sort_inputs([str(tmp_path / "fifo")])


def test_two_inventories_of_one_log_dir_are_refused_because_replicas_would_count_twice(cluster) -> None:
    paths = [inventory_of(cluster.log_dirs[0], cluster.folder / f"{name}.parquet") for name in ("old", "new")]
    with pytest.raises(RefusedError, match=r"old\.parquet and .*new\.parquet both tell of log dir .*broker-1"):
        sort_inputs(paths)


def test_one_inventory_that_is_given_twice_counts_once(cluster) -> None:
    path = inventory_of(cluster.log_dirs[0], cluster.folder / "one.parquet")
    assert sort_inputs([path, path]).inventories == (path,)


def test_a_damaged_inventory_ends_the_run(cluster) -> None:
    path = Path(inventory_of(cluster.log_dirs[0], cluster.folder / "one.parquet"))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InventoryError, match="scan again"):
        sort_inputs([str(path), cluster.log_dirs[1]])


def test_an_inventory_beside_its_own_tree_is_refused(cluster) -> None:
    path = inventory_of(cluster.log_dirs[0], cluster.folder / "one.parquet")
    with pytest.raises(RefusedError, match="which is given itself too"):
        sort_inputs([path, str(cluster.folder / "disks")])


def test_an_empty_path_is_told_as_one() -> None:
    with pytest.raises(UsageError, match="a path is empty"):
        sort_inputs([""])
