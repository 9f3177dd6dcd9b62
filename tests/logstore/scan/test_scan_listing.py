from __future__ import annotations

import fcntl
import os
import socket
import time
from typing import Any

import pytest

from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.directory_name import DirectoryKind
from layout.scheme import MARKER_FILE, Scheme
from logstore.log_dir import LOCK_FILE
from logstore.rows import VARYING, MetadataState
from logstore.scan import KNOWN_FILES, Listing, list_log_dir


def _rows(listing: Listing) -> dict[str, dict[str, Any]]:
    return {str(row[0]): dict(zip(VARYING, row, strict=True)) for row in listing.rows}


def _names(listing: Listing) -> set[str]:
    return {folder.prefix + name for folder in listing.places for name in folder.names}


def test_directories_come_with_their_inodes_and_known_files_give_no_row(log_dir: Any) -> None:
    for name in KNOWN_FILES:
        log_dir.file(name)
    inode = log_dir.replica("orders-0").stat().st_ino
    listing = list_log_dir(str(log_dir), None)
    assert [(folder.prefix, folder.names, folder.inodes) for folder in listing.places] == [("", ["orders-0"], [inode])]
    assert listing.rows == []


@pytest.mark.parametrize("name", [*OFFSET_CHECKPOINTS, "meta.properties", "bootstrap.checkpoint"])
def test_what_an_unfinished_write_left_is_a_leftover(log_dir: Any, name: str) -> None:
    log_dir.file(f"{name}.tmp")
    assert _rows(list_log_dir(str(log_dir), None))[f"{name}.tmp"]["kind"] == "leftover"


@pytest.mark.parametrize(
    ("is_held", "age", "kinds"),
    [(True, 5, []), (True, 3600, ["leftover"]), (False, 5, ["leftover"])],
    ids=["written by a broker", "older than any write", "with no broker that could write it"],
)
def test_a_file_that_a_running_broker_may_be_writing_is_no_leftover(
    log_dir: Any, is_held: bool, age: int, kinds: list[str]
) -> None:
    temporary, changed = log_dir.file("replication-offset-checkpoint.tmp"), time.time() - age
    os.utime(temporary, (changed, changed))
    with log_dir.file(LOCK_FILE).open("r+b") as lock:
        if is_held:
            fcntl.lockf(lock, fcntl.LOCK_EX)
        rows = _rows(list_log_dir(str(log_dir), None))
    assert [row["kind"] for row in rows.values()] == kinds


def test_a_strange_plain_file_is_foreign_and_harmless(log_dir: Any) -> None:
    log_dir.file("notes.txt")
    row = _rows(list_log_dir(str(log_dir), None))["notes.txt"]
    assert row["kind"] == "foreign"
    assert "a broker ignores" in row["problem"]


def test_what_is_neither_file_nor_directory_is_foreign_also_under_a_known_name(log_dir: Any) -> None:
    os.mkfifo(log_dir.path / "recovery-point-offset-checkpoint")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{log_dir}/orders-0")
        rows = _rows(list_log_dir(str(log_dir), None))
    assert rows["recovery-point-offset-checkpoint"]["problem"] == "a FIFO in place of a file that a broker reads"
    assert rows["orders-0"]["kind"] == "foreign"
    assert "a socket" in rows["orders-0"]["problem"]


def test_a_directory_under_a_known_name_is_looked_at_like_any_other(log_dir: Any) -> None:
    (log_dir.path / "cleaner-offset-checkpoint").mkdir()
    assert _names(list_log_dir(str(log_dir), None)) == {"cleaner-offset-checkpoint"}


def test_links_are_rows_by_their_names_and_are_not_followed(log_dir: Any, tmp_path: Any) -> None:
    (tmp_path / "elsewhere").mkdir()
    for name in ("orders-7", "junk", ".lock"):
        (log_dir.path / name).symlink_to(tmp_path / "elsewhere")
    listing = list_log_dir(str(log_dir), None)
    rows = _rows(listing)
    assert _names(listing) == set()
    assert (rows["orders-7"]["kind"], rows["orders-7"]["topic"], rows["orders-7"]["partition"]) == ("live", "orders", 7)
    assert rows["orders-7"]["metadata_state"] == "unreadable"
    assert rows["junk"]["kind"] == rows[".lock"]["kind"] == "foreign"
    assert all("symbolic link" in row["problem"] for row in rows.values())


def test_a_real_brokers_staged_replicas_lie_beside_its_log_dir(log_dir: Any, tmp_path: Any) -> None:
    staged = f"{log_dir.topic_id}_0"
    (tmp_path / "data.deleting" / staged).mkdir(parents=True)
    listing = list_log_dir(str(log_dir), None)
    assert _names(listing) == {f"../data.deleting/{staged}"}
    assert listing.places[1].parse(staged).kind is DirectoryKind.STAGED


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink(os.path.dirname(path), path), lambda path: None])
def test_anything_but_a_directory_beside_the_log_dir_is_passed_over(log_dir: Any, make: Any) -> None:
    make(f"{log_dir}.deleting")
    assert len(list_log_dir(str(log_dir), None).places) == 1


def test_deleting_is_a_staging_directory_only_in_a_log_dir_that_is_ours(log_dir: Any) -> None:
    staged = f"{log_dir.topic_id}_0"
    (log_dir.path / "deleting" / staged).mkdir(parents=True)
    assert _names(list_log_dir(str(log_dir), None)) == {"deleting"}
    assert _names(list_log_dir(str(log_dir), Scheme.FLAT)) == {f"deleting/{staged}"}


def test_tiers_are_followed_by_their_marker_whatever_their_name(log_dir: Any) -> None:
    for tier in ("org", "org/apache-1"):
        (log_dir.path / tier).mkdir()
        (log_dir.path / tier / MARKER_FILE).touch()
    log_dir.replica("org/apache-1/orders-0")
    log_dir.replica("payments-2")
    listing = list_log_dir(str(log_dir), Scheme.NAMESPACED)
    assert _names(listing) == {"payments-2", "org/apache-1/orders-0"}
    assert {folder.prefix: folder.namespace for folder in listing.places}["org/apache-1/"] == "org:apache-1:"
    assert listing.rows == []


def test_prefixes_of_the_by_topic_id_scheme_are_followed(log_dir: Any) -> None:
    # UXyU9i5ARn6W00ON2taeWA in hex.
    name = "517c94f62e40467e96d3438ddad69e58_4"
    (log_dir.path / "51" / name).mkdir(parents=True)
    (log_dir.path / "zz").mkdir()
    listing = list_log_dir(str(log_dir), Scheme.BY_TOPIC_ID)
    assert _names(listing) == {f"51/{name}", "zz"}
    below = next(folder for folder in listing.places if folder.prefix == "51/")
    assert below.parse(name).partition == 4
    assert below.parse("52" + name[2:]).kind is DirectoryKind.FOREIGN


def test_a_folder_that_cannot_be_listed_is_reported_and_the_log_dir_goes_on(log_dir: Any, monkeypatch: Any) -> None:
    (log_dir.path / "deleting").mkdir()
    log_dir.replica("orders-0")
    scandir = os.scandir

    def refusing(path: str) -> Any:
        if path.endswith("deleting/"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    listing = list_log_dir(str(log_dir), Scheme.FLAT)
    assert _names(listing) == {"orders-0"}
    row = _rows(listing)["deleting"]
    assert "what lies in it is not known" in row["problem"]
    assert row["metadata_state"] == MetadataState.UNREADABLE, "it is ours, and no stranger's"


def test_a_log_dir_that_cannot_be_listed_is_an_error(log_dir: Any) -> None:
    with pytest.raises(FileNotFoundError):
        list_log_dir(f"{log_dir}/none", None)
