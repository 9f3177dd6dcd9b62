from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.log_dir import ExpectedIdentity
from logstore.rows import ROW_SCHEMA, MetadataState
from logstore.scan import LiveReplica, Observation, scan, scan_all, scan_live, walk
from logstore.scan import scanner as scan_module


def _rows(seen: Observation) -> list[dict[str, Any]]:
    seen.rows.validate(full=True)
    assert seen.rows.schema.equals(ROW_SCHEMA, check_metadata=True)
    rows: list[dict[str, Any]] = seen.rows.to_pylist()
    first, *others = rows
    assert (first["kind"], first["name"], first["metadata_state"]) == ("log_dir", ".", seen.state.value)
    assert first["problem"] == seen.problem
    assert "log_dir" not in {row["kind"] for row in others}
    return others


def test_one_pass_reports_everything_that_lies_in_a_log_dir(log_dir: Any) -> None:
    log_dir.replica("orders-0", x__log=10)
    log_dir.replica("lost+found", None)
    log_dir.file("recovery-point-offset-checkpoint", "0\n2\norders 0 8\ngone 1 5\n")
    log_dir.file("recovery-point-offset-checkpoint.tmp", "half")
    log_dir.file("replication-offset-checkpoint", "broken")
    seen = scan(str(log_dir))
    kinds = sorted((row["kind"], row["name"], row["metadata_state"]) for row in _rows(seen))
    assert kinds == [
        ("checkpoint_entry", "recovery-point-offset-checkpoint", None),
        ("checkpoint_entry", "replication-offset-checkpoint", "malformed"),
        ("foreign", "lost+found", None),
        ("leftover", "recovery-point-offset-checkpoint.tmp", None),
        ("live", "orders-0", "ok"),
    ]
    live = next(row for row in _rows(seen) if row["kind"] == "live")
    assert (live["cluster_id"], live["node_id"], live["directory_id"]) == ("C", 1, log_dir.directory_id)
    assert (live["log_dir"], live["end_offset"], live["bytes"]) == (str(log_dir), 8, 53)
    assert (seen.state, seen.problem, seen.lock) == (MetadataState.OK, None, None)


@pytest.mark.parametrize("path", ["none", "file", "file/below", "nul\0", "x" * 300])
def test_what_is_no_directory_is_absent_and_has_exactly_one_row(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    seen = scan(f"{tmp_path}/{path}")
    assert (seen.state, seen.identity) == (MetadataState.ABSENT, None)
    assert seen.problem
    assert _rows(seen) == []


def test_a_fifo_or_a_device_in_place_of_a_log_dir_blocks_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "a FIFO, not a directory" in (scan(f"{tmp_path}/fifo").problem or "")
    assert "a character device" in (scan("/dev/zero").problem or "")


def test_a_log_dir_without_identity_is_not_empty_and_its_entries_are_listed(log_dir: Any) -> None:
    log_dir.replica("orders-0")
    (log_dir.path / "meta.properties").unlink()
    seen = scan(str(log_dir))
    (row,) = _rows(seen)
    assert seen.state == MetadataState.MISSING
    assert (row["name"], row["cluster_id"], row["node_id"], row["directory_id"]) == ("orders-0", None, None, None)


def test_another_log_dir_than_expected_is_absent_with_both_values(log_dir: Any) -> None:
    seen = scan(str(log_dir), expected=ExpectedIdentity(node_id=2))
    assert seen.state == MetadataState.ABSENT
    assert "node.id is 1, and 2 was expected" in (seen.problem or "")


def test_a_log_dir_that_cannot_be_listed_is_unreadable_and_accuses_no_checkpoint(
    log_dir: Any, monkeypatch: Any
) -> None:
    log_dir.file("recovery-point-offset-checkpoint", "0\n1\norders 0 8\n")
    log_dir.file("replication-offset-checkpoint", "broken")
    scandir = os.scandir

    def refusing(path: str) -> Any:
        if path == f"{log_dir}/":
            raise OSError(5, "Input/output error")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    seen = scan(str(log_dir))
    assert (seen.state, _rows(seen)) == (MetadataState.UNREADABLE, [])
    assert "Input/output error" in (seen.problem or "")


def test_a_link_to_a_log_dir_may_be_given_but_none_in_it_is_followed(log_dir: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "partition.metadata").write_text("version: 0\ntopic_id: " + log_dir.topic_id)
    (log_dir.path / "orders-0").symlink_to(outside)
    (log_dir.path / "self").symlink_to(log_dir.path)
    (tmp_path / "way").symlink_to(log_dir.path)
    seen = scan(f"{tmp_path}/way")
    assert {row["topic_id"] for row in _rows(seen)} == {None}
    assert {row["name"] for row in _rows(seen)} == {"orders-0", "self"}


def test_names_that_are_not_utf8_are_rows_too(log_dir: Any) -> None:
    for name in (b"caf\xe9-0", b"\xff\xfe"):
        os.mkdir(os.fsencode(str(log_dir)) + b"/" + name)
    rows = {row["name"]: row for row in _rows(scan(str(log_dir)))}
    assert (rows["caf\\xe9-0"]["kind"], rows["caf\\xe9-0"]["topic"]) == ("live", "caf\\xe9")
    assert rows["\\xff\\xfe"]["kind"] == "foreign"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_in_place_of_metadata_is_not_read(log_dir: Any) -> None:
    os.mknod(log_dir.replica("orders-0", None) / "partition.metadata", 0o020600, os.makedev(1, 5))
    (row,) = _rows(scan(str(log_dir)))
    assert row["metadata_state"] == "unreadable"
    assert "a character device" in row["problem"]


def test_a_live_broker_may_rename_delete_and_create_while_a_scan_looks(log_dir: Any) -> None:
    for number in range(200):
        log_dir.replica(f"still-{number}", x__log=1)
    stop = threading.Event()

    def broker() -> None:
        number = 0
        while not stop.is_set():
            path = log_dir.replica(f"moving-{number}", x__log=1)
            path.rename(f"{path}.{'0' * 32}-delete")
            shutil.rmtree(f"{path}.{'0' * 32}-delete")
            number += 1

    thread = threading.Thread(target=broker)
    thread.start()
    try:
        for _ in range(20):
            rows = _rows(scan(str(log_dir)))
            still = [row for row in rows if row["name"].startswith("still-")]
            assert len(still) == 200
            assert {row["metadata_state"] for row in still} == {"ok"}
    finally:
        stop.set()
        thread.join()


def test_scan_all_keeps_the_log_dirs_of_a_broker_together_and_reads_epochs_of_duplicates(
    new_log_dir: Any, tmp_path: Path
) -> None:
    made = [new_log_dir(tmp_path / str(n)).identity(node_id=n % 2) for n in range(4)]
    for log_dir in made:
        (log_dir.replica("orders-0") / "leader-epoch-checkpoint").write_text("0\n1\n6 0\n")
    absent = f"{tmp_path}/none"
    seen = list(scan_all([*map(str, made), absent, str(made[0])]))
    assert [Path(each.log_dir).name for each in seen] == ["0", "2", "1", "3", "none"]
    assert [[row["leader_epoch"] for row in _rows(each)] for each in seen] == [[6], [6], [6], [6], []]
    assert list(scan_all([])) == []


@pytest.mark.parametrize("jobs", [None, 0, 1, 2])
def test_scan_all_reports_the_same_with_any_number_of_processes(new_log_dir: Any, tmp_path: Path, jobs: Any) -> None:
    made = [new_log_dir(tmp_path / f"{n:02}").identity(node_id=n) for n in range(10)]
    for number, log_dir in enumerate(made):
        log_dir.replica(f"orders-{number}", x__log=number)
    seen = list(scan_all(list(map(str, made)), jobs=jobs))
    assert [each.identity.node_id for each in seen if each.identity] == list(range(10))
    assert [_rows(each)[0]["bytes"] for each in seen] == [43 + n for n in range(10)]


@pytest.mark.parametrize("jobs", [0, 1])
def test_whole_log_dirs_are_spread_over_two_processes_or_more(
    new_log_dir: Any, tmp_path: Path, monkeypatch: Any, jobs: int
) -> None:
    made = [str(new_log_dir(tmp_path / f"{n}").identity(node_id=n)) for n in range(6)]
    fork, forked = os.fork, list[int]()

    def noted() -> int:
        forked.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", noted)
    assert len(list(scan_all(made, jobs=jobs))) == 6
    assert len(forked) == 0
    assert len(list(scan_all(made, jobs=2))) == 6
    assert len(forked) == 2


def test_a_scan_forks_nothing_unless_it_is_asked_to(log_dir: Any, monkeypatch: Any) -> None:
    for number in range(6):
        log_dir.replica(f"orders-{number}")
    monkeypatch.setattr(walk, "DIRECTORIES_PER_UNIT", 2)
    monkeypatch.setattr(os, "fork", None)
    assert len(_rows(scan(str(log_dir)))) == 6
    with pytest.raises(TypeError):
        scan(str(log_dir), jobs=1)


@pytest.mark.parametrize("jobs", [0, 2])
def test_the_live_replicas_are_those_of_a_scans_rows(new_log_dir: Any, tmp_path: Path, jobs: int) -> None:
    paths = []
    for number in range(5):
        each = new_log_dir(tmp_path / f"{number}").identity(node_id=1)
        each.replica(f"orders-{number}")
        each.replica("old-1", None)
        each.replica("odd-2", b"version: x")
        each.replica(f"gone-0.{'0a' * 16}-delete")
        each.file("note.txt")
        each.replica("caf\udce9-0")
        os.symlink(each.path / "old-1", each.path / "linked-0")
        paths.append(str(each))
    (tmp_path / "4" / "meta.properties").unlink()
    found = scan_live([*paths, f"{tmp_path}/none"], jobs=jobs)
    expected = list[tuple[str, MetadataState, str | None, list[LiveReplica]]]()
    columns = ("topic", "partition", "topic_id", "name", "metadata_state", "inode")
    for path in [*paths, f"{tmp_path}/none"]:
        seen = scan(path)
        live = [row for row in _rows(seen) if row["kind"] == "live" and row["topic"] is not None]
        replicas: Any = [tuple(row[name] for name in columns) for row in live]
        is_known = seen.state is MetadataState.OK
        expected.append((path, seen.state, seen.problem, sorted(replicas) if is_known else []))
    assert [(*each[:3], sorted(each.replicas)) for each in found] == expected
    assert [len(each.replicas) for each in found] == [5, 5, 5, 5, 0, 0]


def test_live_replicas_of_a_log_dir_that_cannot_be_listed_are_not_known(log_dir: Any, monkeypatch: Any) -> None:
    log_dir.replica("orders-0")

    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(scan_module, "walk", refused)
    (found,) = scan_live([str(log_dir)])
    assert (found.state, found.replicas) == (MetadataState.UNREADABLE, [])
    assert found.problem is not None
    assert found.problem.startswith("the log dir cannot be read")


def test_what_is_imported_before_workers_look_leaves_arrow_out() -> None:
    code = "import sys, logstore.scan.scanner; print('pyarrow' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_many_small_log_dirs_are_spread_and_a_large_one_stands_alone(
    new_log_dir: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    names = [str(new_log_dir(tmp_path / f"{n}").identity(node_id=n)) for n in range(6)]
    monkeypatch.setattr(scan_module, "_links", lambda path: 10_000 if path == names[2] else 5)
    batches = list(scan_module._batches([[name] for name in names]))
    assert batches == [[[names[0]], [names[1]]], [[names[2]]], [[names[3]], [names[4]], [names[5]]]]
    monkeypatch.setattr(scan_module, "LOG_DIR_ROWS_AT_ONCE", 2)
    assert [len(batch) for batch in scan_module._batches([[name] for name in names])] == [2, 1, 2, 1]


@settings(max_examples=30)
@given(
    entries=st.dictionaries(
        st.binary(min_size=1, max_size=30).filter(
            lambda name: not {b"/"[0], 0} & set(name) and name not in (b".", b"..")
        ),
        st.sampled_from(["directory", "file", "link", "fifo"]),
        max_size=8,
    )
)
def test_whatever_lies_in_a_log_dir_gives_one_row_and_no_error(
    entries: dict[bytes, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any")
    for name, what in entries.items():
        full = os.fsencode(path) + b"/" + name
        if what == "directory":
            os.mkdir(full)
        elif what == "file":
            os.close(os.open(full, os.O_CREAT | os.O_WRONLY))
        elif what == "link":
            os.symlink("nowhere", full)
        else:
            os.mkfifo(full)
    seen = scan(str(path))
    assert seen.state == MetadataState.MISSING
    assert len(_rows(seen)) == len(entries)


def test_a_checkpoint_entry_of_a_replica_that_is_a_link_lacks_nothing(log_dir: Any, tmp_path: Path) -> None:
    log_dir.file("recovery-point-offset-checkpoint", "0\n2\norders 0 8\ngone 1 5\n")
    (log_dir.path / "orders-0").symlink_to(tmp_path / "elsewhere")
    rows = scan(str(log_dir)).rows.to_pylist()
    assert [row["topic"] for row in rows if row["kind"] == "checkpoint_entry"] == ["gone"]
