"""Which files are snapshots and segments, and how they are opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from layout.topic import METADATA_DIR
from reconciler.errors import MetadataError
from reconciler.sources.kraft import find_metadata_dir, list_files, open_file
from reconciler.sources.kraft.files import name_snapshot


def test_a_metadata_directory_is_found_by_its_name_or_in_a_log_dir(tmp_path: Path) -> None:
    folder = tmp_path / METADATA_DIR
    folder.mkdir()
    assert find_metadata_dir(str(tmp_path)) == str(folder)
    assert find_metadata_dir(str(folder)) == str(folder)
    assert find_metadata_dir(f"{folder}/") == f"{folder}/"


def test_the_partition_dir_of_any_other_topic_is_no_metadata_directory(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").touch()
    with pytest.raises(MetadataError, match="is no KRaft metadata"):
        find_metadata_dir(str(folder))


def test_only_finished_snapshots_and_segments_are_listed_in_their_order(tmp_path: Path) -> None:
    names = [
        "00000000000000000100-0000000003.checkpoint",
        "00000000000000000090-0000000004.checkpoint",
        "00000000000000000200-0000000003.checkpoint",
        "00000000000000000300-0000000005.checkpoint.deleted",
        "00000000000000000300-0000000005-12345.checkpoint.part",
        "00000000000000000010.log",
        "00000000000000000000.log",
        "00000000000000000000.index",
        "00000000000000000020.log.deleted",
        "00000000000000000100.snapshot",
        "partition.metadata",
        "quorum-state",
    ]
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "00000000000000000400-0000000009.checkpoint").mkdir()
    files = list_files(str(tmp_path))
    # By epoch first: the snapshot of epoch 4 is newer than those of epoch 3, though it ends earlier.
    assert [os.path.basename(snapshot.path) for snapshot in files.snapshots] == [names[1], names[2], names[0]]
    assert [(segment.base_offset, segment.size) for segment in files.segments] == [(0, 1), (10, 1)]
    assert files.problems == []


def test_a_name_that_stops_a_controller_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "bootstrap.checkpoint").touch()
    files = list_files(str(tmp_path))
    assert files.snapshots == []
    assert ["a broker does not start" in problem for problem in files.problems] == [True]


def test_a_file_that_goes_while_the_folder_is_listed_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(b"x")
    (tmp_path / "00000000000000000010.log").write_bytes(b"xyz")
    real = os.scandir

    class Scan:
        def __enter__(self) -> list[os.DirEntry[str]]:
            entries = list(real(tmp_path))
            (tmp_path / "00000000000000000010.log").unlink()
            return entries

        def __exit__(self, *_: object) -> None:
            return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", lambda _: Scan())
        files = list_files(str(tmp_path))
    assert [segment.base_offset for segment in files.segments] == [0]


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MetadataError, match="cannot be listed"):
        list_files(str(tmp_path / "absent"))


def test_a_snapshot_is_named_by_its_file_alone() -> None:
    snapshot = name_snapshot("/backup/00000000000000000100-0000000003.checkpoint")
    assert (snapshot.name.offset, snapshot.name.epoch) == (100, 3)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bootstrap.checkpoint", "stand in its name"),
        ("copy.checkpoint", "stand in its name"),
        ("00000000000000000100-0000000003.checkpoint.deleted", "no finished snapshot"),
        ("00000000000000000100-0000000003-1.checkpoint.part", "no finished snapshot"),
        ("00000000000000000100.log", "no finished snapshot"),
    ],
)
def test_another_name_is_no_snapshot(name: str, said: str) -> None:
    with pytest.raises(MetadataError, match=said):
        name_snapshot(name)


def test_an_opened_file_comes_with_its_size(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    with open_file(str(tmp_path / "file")) as (file, size):
        assert (file.read(), size) == (b"abc", 3)


def test_a_pipe_a_directory_and_a_missing_file_are_errors_and_nobody_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path / "pipe", "no plain file"),
        (tmp_path, "cannot be read|no plain"),
        (tmp_path / "x", "No such"),
    ):
        with pytest.raises(MetadataError, match=said), open_file(str(path)):
            pytest.fail("it was opened")
