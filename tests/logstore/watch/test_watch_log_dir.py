"""One log dir looked at again and again, step by step and without events."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from layout.ids import TopicId
from layout.ours import LedgerEvent, StagedRecord
from layout.scheme import LEDGER_FILE
from logstore.rows import MetadataState, utf8
from logstore.scan import scan
from logstore.watch import LOG_DIR_KEY, LogDirState, RowChange, WatchedLogDir, name_of_key
from logstore.watch import log_dir as module
from tests.logstore.engine import write_ledger

STRAY = "." + "a" * 32 + "-stray"


def watched(log_dir: Any) -> WatchedLogDir:
    disk = WatchedLogDir(str(log_dir))
    swept(disk, defer=False)
    return disk


def swept(disk: WatchedLogDir, *, defer: bool = True) -> list[RowChange]:
    return [change for changes in disk.sweep(defer=defer) for change in changes]


def kinds_of(changes: list[RowChange]) -> dict[str, tuple[str, str]]:
    return {
        change.name: (change.before.kind if change.before else "", change.after.kind if change.after else "")
        for change in changes
    }


def states(changes: list[RowChange]) -> list[str | None]:
    return [change.after.metadata_state if change.after else None for change in changes]


def as_scanned(path: str) -> set[tuple[Any, ...]]:
    columns = ("name", "kind", "topic", "partition", "topic_id", "metadata_state", "problem", "due_ms")
    return {tuple(row[name] for name in columns) for row in scan(path, sizes=False).rows.to_pylist()[1:]}


def as_known(disk: WatchedLogDir) -> set[tuple[Any, ...]]:
    rows = ((name_of_key(key), *seen) for key, seen in disk.known.items())
    return {tuple(utf8(value) if isinstance(value, str) else value for value in row) for row in rows}


@pytest.mark.parametrize("scheme", ["", "logstore.scheme=flat\n", "logstore.scheme=namespaced\n"])
def test_a_sweep_knows_what_a_scan_sees(log_dir: Any, scheme: str) -> None:
    log_dir.identity(extra=scheme)
    for name in ("orders-0", "a" + STRAY, "b-0" + STRAY, "lost+found", "orders-1"):
        log_dir.replica(name)
    log_dir.replica("empty-0", b"")
    log_dir.replica("none-0", None)
    log_dir.replica(f"deleting/{log_dir.topic_id}_0")
    log_dir.replica("org/apache/orders-0")
    for tier in ("org", "org/apache"):
        log_dir.file(f"{tier}/.logstore_tier")
    log_dir.replica(f"../data.deleting/{log_dir.topic_id}_3")
    log_dir.file("replication-offset-checkpoint", "0\n2\norders 0 8\ngone 1 5\n")
    log_dir.file("cleaner-offset-checkpoint", "broken")
    log_dir.file("recovery-point-offset-checkpoint.tmp")
    os.mkdir(os.fsencode(log_dir.path) + b"/\xff-0")
    (log_dir.path / "link-0").symlink_to("orders-0")
    disk = watched(log_dir)
    assert as_known(disk) == as_scanned(str(log_dir))
    assert swept(disk) == []


def test_only_what_is_named_is_read_again(log_dir: Any) -> None:
    log_dir.replica("orders-0")
    log_dir.replica("orders-1")
    disk = watched(log_dir)
    shutil.rmtree(log_dir.path / "orders-0")
    shutil.rmtree(log_dir.path / "orders-1")
    log_dir.replica("orders-2")
    assert kinds_of(disk.look_again(["orders-0", "orders-2"])) == {"orders-0": ("live", ""), "orders-2": ("", "live")}
    assert kinds_of(swept(disk)) == {"orders-1": ("live", "")}


def test_a_rename_is_one_row_gone_and_one_new(log_dir: Any) -> None:
    log_dir.replica("orders-0")
    disk = watched(log_dir)
    (log_dir.path / "orders-0").rename(log_dir.path / f"orders-0{STRAY}")
    assert kinds_of(disk.look_again(["orders-0", f"orders-0{STRAY}"])) == {
        "orders-0": ("live", ""),
        f"orders-0{STRAY}": ("", "stray"),
    }


def test_a_topic_id_that_changes_inside_is_found_by_a_sweep(log_dir: Any) -> None:
    path = log_dir.replica("orders-0")
    disk = watched(log_dir)
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {log_dir.other_id}")
    (change,) = swept(disk)
    assert change.before is not None and change.after is not None
    assert (change.before.topic_id, change.after.topic_id) == (log_dir.topic_id, log_dir.other_id)


def test_a_new_directory_without_topic_id_is_deferred_until_it_is_read_again(log_dir: Any) -> None:
    disk = watched(log_dir)
    path = log_dir.replica("orders-0", None)
    assert disk.look_again(["orders-0"]) == []
    assert disk.deferred == {"orders-0"}
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {log_dir.topic_id}")
    assert states(disk.look_again(["orders-0"], defer=False)) == ["ok"]


def test_a_directory_that_takes_the_place_of_one_with_a_topic_id_is_deferred_as_a_new_one_is(log_dir: Any) -> None:
    """A topic is made anew while its old replica is renamed: both happen before the name is read again."""
    old = log_dir.replica("orders-0")
    disk = watched(log_dir)
    marked = f"orders-0.{'0' * 32}-delete"
    old.rename(log_dir.path / marked)
    path = log_dir.replica("orders-0", None)
    assert [change.key for change in disk.look_again(["orders-0", marked])] == [marked]
    assert disk.deferred == {"orders-0"}
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {log_dir.other_id}")
    (change,) = disk.look_again(disk.deferred, defer=False)
    assert change.before is not None and change.after is not None
    assert (change.before.topic_id, change.after.topic_id) == (log_dir.topic_id, log_dir.other_id)


def test_a_directory_still_without_topic_id_is_reported_when_it_is_read_again(log_dir: Any) -> None:
    disk = watched(log_dir)
    log_dir.replica("orders-0", None)
    assert swept(disk) == []
    assert states(disk.look_again(disk.deferred, defer=False)) == ["missing"]


def test_a_write_that_goes_on_is_no_leftover(log_dir: Any) -> None:
    disk = watched(log_dir)
    temporary = log_dir.file("recovery-point-offset-checkpoint.tmp")
    disk.look_again([temporary.name])
    assert disk.wants_listing
    assert disk.list_files() == []
    temporary.rename(log_dir.path / "recovery-point-offset-checkpoint")
    assert disk.look_again(disk.deferred, defer=False) == []


def test_a_file_and_a_link_are_reported_by_a_listing(log_dir: Any) -> None:
    disk = watched(log_dir)
    log_dir.file("notes.txt")
    (log_dir.path / "link-0").symlink_to("/nowhere")
    assert disk.look_again(["notes.txt", "link-0"]) == []
    assert kinds_of(disk.list_files()) == {"notes.txt": ("", "foreign"), "link-0": ("", "live")}
    (log_dir.path / "notes.txt").unlink()
    assert kinds_of(disk.look_again(["notes.txt"])) == {"notes.txt": ("foreign", "")}


def test_a_checkpoint_that_is_damaged_is_reported_and_taken_back(log_dir: Any) -> None:
    disk = watched(log_dir)
    name = "replication-offset-checkpoint"
    log_dir.file(name, "broken")
    assert disk.look_again([name]) == []
    assert disk.wants_checkpoints
    assert states(disk.read_checkpoints()) == ["malformed"]
    log_dir.file(name, "0\n0\n")
    disk.look_again([name])
    assert kinds_of(disk.read_checkpoints()) == {name: ("checkpoint_entry", "")}


def test_a_checkpoint_entry_loses_its_replica_and_finds_it_again(log_dir: Any) -> None:
    log_dir.replica("orders-0")
    log_dir.file("recovery-point-offset-checkpoint", "0\n1\norders 0 8\n")
    disk = watched(log_dir)
    assert not disk.wants_checkpoints
    shutil.rmtree(log_dir.path / "orders-0")
    disk.look_again(["orders-0"])
    assert disk.wants_checkpoints
    assert kinds_of(disk.read_checkpoints()) == {"recovery-point-offset-checkpoint": ("", "checkpoint_entry")}
    log_dir.replica("orders-0")
    disk.look_again(["orders-0"])
    assert kinds_of(disk.read_checkpoints()) == {"recovery-point-offset-checkpoint": ("checkpoint_entry", "")}


def test_staged_replicas_beside_the_log_dir_are_read_by_their_key(log_dir: Any) -> None:
    disk = watched(log_dir)
    log_dir.replica(f"../data.deleting/{log_dir.topic_id}_3")
    assert disk.staging_root == f"{log_dir}.deleting"
    key = f"{disk.staging_prefix}{log_dir.topic_id}_3"
    assert kinds_of(disk.look_again([key])) == {key: ("", "staged")}
    shutil.rmtree(disk.staging_root)
    assert kinds_of(disk.look_again([key])) == {key: ("staged", "")}


def record(log_dir: Any, due_ms: int) -> StagedRecord:
    return StagedRecord("orders", 3, TopicId.parse(log_dir.topic_id), "orders-3", "STALE_ID", "", 1, due_ms)


@pytest.mark.parametrize("look", ["by name", "sweep"])
def test_a_line_in_the_ledger_changes_the_row_beside_it_and_another_one_changes_it_back(
    log_dir: Any, look: str
) -> None:
    stray, other = "orders-3" + STRAY, "other-3" + STRAY
    for name in (stray, other):
        log_dir.replica(name)
    disk = watched(log_dir)
    events: tuple[tuple[LedgerEvent, str], ...] = ()
    for before, after in (("stray", "staged"), ("staged", "stray")):
        write_ledger(log_dir.path, {stray: record(log_dir, 5)}, *events)
        changes = disk.look_again([LEDGER_FILE]) if look == "by name" else swept(disk)
        assert kinds_of(changes) == {stray: (before, after)}
        events = ((LedgerEvent.RESTORED, stray),)


def test_a_new_due_time_beside_the_log_dir_is_seen_when_its_ledger_is_read_again(log_dir: Any) -> None:
    name = f"{log_dir.topic_id}_3"
    log_dir.replica(f"../data.deleting/{name}")
    log_dir.replica("orders-0")
    root = Path(f"{log_dir}.deleting")
    write_ledger(root, {name: record(log_dir, 5)})
    disk = watched(log_dir)
    key = f"{disk.staging_prefix}{name}"
    for due_ms in (7, 9):
        write_ledger(root, {name: record(log_dir, due_ms)})
        assert disk.look_again([LEDGER_FILE]) == [], "the ledger of the log dir says nothing of it"
        (change,) = disk.look_again([f"{disk.staging_prefix}{LEDGER_FILE}"])
        assert change.name == key
        assert change.after is not None
        assert change.after.due_ms == due_ms


def test_a_ledger_that_is_damaged_or_gone_is_reported_by_the_rows_beside_it(log_dir: Any) -> None:
    name = f"{log_dir.topic_id}_3"
    log_dir.replica(f"../data.deleting/{name}")
    root = Path(f"{log_dir}.deleting")
    write_ledger(root, {name: record(log_dir, 5)})
    disk = watched(log_dir)
    (root / LEDGER_FILE).write_bytes(b"damaged\n")
    (change,) = disk.look_again([f"{disk.staging_prefix}{LEDGER_FILE}"])
    assert change.after is not None
    assert (change.after.due_ms, change.after.topic) == (None, None)
    write_ledger(root, {name: record(log_dir, 5)})
    assert len(disk.look_again([f"{disk.staging_prefix}{LEDGER_FILE}"])) == 1
    (root / LEDGER_FILE).unlink()
    assert len(disk.look_again([f"{disk.staging_prefix}{LEDGER_FILE}"])) == 1


def test_in_a_log_dir_that_is_ours_staging_is_inside(log_dir: Any) -> None:
    log_dir.identity(extra="logstore.scheme=flat\n")
    disk = watched(log_dir)
    assert disk.staging_root == f"{log_dir}/deleting"
    (log_dir.path / "deleting").mkdir()
    assert disk.look_again(["deleting"]) == []
    assert disk.wants_sweep


@pytest.mark.parametrize("scheme", ["namespaced", "by-topic-id"])
def test_a_change_in_a_deeper_scheme_wants_a_sweep(log_dir: Any, scheme: str) -> None:
    log_dir.identity(extra=f"logstore.scheme={scheme}\n")
    disk = watched(log_dir)
    name = "orders-0" if scheme == "namespaced" else f"51/517c94f62e40467e96d3438ddad69e58_{0}"
    log_dir.replica(name)
    disk.look_again([name.partition("/")[0]])
    assert disk.wants_sweep
    assert kinds_of(swept(disk)) == {name: ("", "live")}
    shutil.rmtree(log_dir.path / name)
    assert kinds_of(swept(disk)) == {name: ("live", "")}


@pytest.mark.parametrize("before", [None, "logstore.scheme=flat\n"])
def test_a_log_dir_whose_scheme_becomes_known_or_another_one_is_read_anew(log_dir: Any, before: str | None) -> None:
    log_dir.replica("org/orders-0")
    log_dir.file("org/.logstore_tier")
    log_dir.replica(f"deleting/{log_dir.topic_id}_0")
    identity = log_dir.path / "meta.properties"
    if before is None:
        identity.unlink()
        identity.mkdir()  # no disk refuses root
    else:
        log_dir.identity(extra=before)
    disk = watched(log_dir)
    assert (disk.wants_sweep, disk.state.lost) == (False, False)
    assert disk.check() == [] and not disk.wants_sweep
    if before is None:
        identity.rmdir()
    log_dir.identity(extra="logstore.scheme=namespaced\n")
    assert disk.look_again({"meta.properties", "org", "deleting"}) == [] and disk.wants_sweep
    swept(disk)
    assert as_known(disk) == as_scanned(str(log_dir))
    assert disk.state.state is MetadataState.OK and disk.check() == [] and not disk.wants_sweep


def test_a_log_dir_that_goes_away_is_lost_and_its_rows_stay_known(log_dir: Any) -> None:
    log_dir.replica("orders-0")
    log_dir.replica("orders-1")
    disk = watched(log_dir)
    away = log_dir.path.with_name("away")
    log_dir.path.rename(away)
    (change,) = disk.look_again(["orders-0", "orders-1"])
    assert (change.key, change.after and change.after.metadata_state) == (LOG_DIR_KEY, "absent")
    assert disk.state.lost
    assert set(disk.known) == {"orders-0", "orders-1"}
    assert disk.look_again(["orders-0"]) == disk.check() == disk.read_checkpoints() == disk.list_files() == []
    shutil.rmtree(away / "orders-1")
    away.rename(log_dir.path)
    assert disk.check() == []
    assert disk.wants_sweep and disk.state.lost
    assert kinds_of(swept(disk)) == {".": ("log_dir", "log_dir"), "orders-1": ("live", "")}
    assert not disk.state.lost


def test_a_disk_that_is_not_mounted_is_never_read_as_empty(log_dir: Any) -> None:
    log_dir.replica("orders-0")
    disk = watched(log_dir)
    log_dir.path.rename(log_dir.path.with_name("away"))
    log_dir.path.mkdir()
    assert kinds_of(swept(disk)) == {".": ("log_dir", "log_dir")}
    assert (disk.state.state, disk.state.lost, len(disk.known)) == (MetadataState.MISSING, True, 1)
    assert disk.state.identity is not None


def test_another_log_dir_in_its_place_is_not_taken_for_it(log_dir: Any, new_log_dir: Any) -> None:
    log_dir.replica("orders-0")
    disk = watched(log_dir)
    log_dir.path.rename(log_dir.path.with_name("away"))
    new_log_dir(log_dir.path).identity(directory_id="rlmmBTuTT8mZLbE_z1nBfA").replica("other-0")
    swept(disk)
    assert disk.state.lost
    assert "another log dir lies here" in (disk.state.problem or "")
    assert set(disk.known) == {"orders-0"}


def test_a_directory_id_that_is_added_is_taken_over(log_dir: Any) -> None:
    log_dir.file("meta.properties", "version=1\ncluster.id=C\nnode.id=1\n")
    disk = watched(log_dir)
    log_dir.identity()
    changes = disk.look_again(["meta.properties"])
    assert [change.key for change in changes] == [LOG_DIR_KEY]
    assert disk.state.identity is not None and str(disk.state.identity.directory_id) == log_dir.directory_id


def test_without_any_identity_an_emptied_log_dir_is_lost_too(tmp_path: Path, new_log_dir: Any) -> None:
    plain = new_log_dir(tmp_path / "plain")
    plain.replica("orders-0")
    disk = watched(plain)
    assert not disk.state.lost
    shutil.rmtree(plain.path / "orders-0")
    assert kinds_of(swept(disk)) == {".": ("log_dir", "log_dir")}
    assert disk.state.lost and len(disk.known) == 1
    plain.replica("orders-1")
    assert disk.check() == []
    assert kinds_of(swept(disk)) == {".": ("log_dir", "log_dir"), "orders-0": ("live", ""), "orders-1": ("", "live")}


def test_a_log_dir_that_cannot_be_listed_is_lost(log_dir: Any, monkeypatch: Any) -> None:
    log_dir.replica("orders-0")
    disk = watched(log_dir)

    def refused(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(module, "list_log_dir", refused)
    assert states(swept(disk)) == ["unreadable"]
    assert disk.state.lost and len(disk.known) == 1


def test_bytes_are_added_up_on_demand(log_dir: Any) -> None:
    log_dir.replica("orders-0", x__log=100)
    (log_dir.path / "link-0").symlink_to("orders-0")
    log_dir.replica(f"../data.deleting/{log_dir.topic_id}_3")
    disk = watched(log_dir)
    for key, length in (("orders-0", 143), (f"{disk.staging_prefix}{log_dir.topic_id}_3", 43)):
        files = [file.stat() for file in Path(disk.path, key).iterdir() if file.is_file()]
        found = disk.sizes_of(key)
        assert found is not None and found[:2] == (length, sum(512 * file.st_blocks for file in files))
        assert found[2] is not None and found[2] >= max(file.st_mtime_ns // 1_000_000 for file in files)
    assert disk.sizes_of("link-0") is disk.sizes_of("gone-0") is disk.sizes_of(LOG_DIR_KEY) is None


def test_slices_make_no_difference(log_dir: Any, monkeypatch: Any) -> None:
    for number in range(10):
        log_dir.replica(f"orders-{number}")
    monkeypatch.setattr(module, "SWEEP_AT_ONCE", 3)
    disk = watched(log_dir)
    assert len(disk.known) == 10
    assert swept(disk) == []


def test_a_log_dir_is_lost_until_it_was_read(log_dir: Any) -> None:
    disk = WatchedLogDir(str(log_dir))
    assert disk.state == LogDirState(MetadataState.ABSENT, "it was not looked at yet", None, lost=True)
    log_dir.identity()
    swept(disk)
    assert (disk.state.state, disk.state.problem, disk.state.lost) == (MetadataState.OK, None, False)
