from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from layout.directory_name import (
    by_topic_id_name,
    delete_name,
    future_name,
    stray_name,
)
from layout.ids import TopicId
from layout.ours import LedgerEvent, StagedRecord, encode_event, encode_header, encode_staged
from layout.scheme import LEDGER_FILE
from logstore.log_dir import FallbackRecords
from logstore.rows import VARYING
from logstore.scan import (
    Folder,
    NameRule,
    ScanOptions,
    replica,
    replica_created_ms,
    scan,
    scan_directories,
)
from logstore.scan.fast_path import fast_path_columns, scan_fast
from logstore.scan.listing import batches_of
from tests.logstore.engine import write_ledger

UNIQUE = "0123456789abcdef" * 2


def _look(folder: Folder | Any, *names: str, sizes: bool = True, **options: Any) -> list[dict[str, Any]]:
    """Scan some directories; the fast path gives the same rows, or nothing."""
    folder = folder if isinstance(folder, Folder) else Folder("", f"{folder}/")
    rows = scan_directories(ScanOptions(sizes, **options), folder, [(name, 7) for name in names])
    folder.names, folder.inodes = list(names), [7] * len(names)
    for batch in batches_of([folder], len(names)):
        fast = None if batch.replicas is None else scan_fast(ScanOptions(sizes, **options), folder, batch.names)
        if fast is not None:
            columns = fast_path_columns(batch, [fast], options.get("recovery_points", {}))
            assert list(zip(*columns, strict=True)) == [row for row in rows if row[0] in columns[0]]
    return [dict(zip(VARYING, row, strict=True)) for row in rows]


def test_a_live_replica_is_weighed_and_named(log_dir: Any) -> None:
    path = log_dir.replica("orders-3", x__log=5000, x__index=0, x__log__deleted=7, y__swap=1, z__part=1, w__tmp=1)
    (path / "below").mkdir()
    (path / "link").symlink_to("/dev/zero")
    os.mkfifo(path / "fifo")
    os.utime(path / "x.log", ns=(0, 4_000_000_000_123_456_789))
    # Until a file is flushed its blocks are only reserved, and their number may still change.
    for file in path.glob("*.*"):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as flushed:
                os.fsync(flushed.fileno())
    (row,) = _look(log_dir, "orders-3", recovery_points={("orders", 3): 42})
    on_disk = sum(512 * file.stat().st_blocks for file in path.iterdir() if file.is_file() and not file.is_symlink())
    assert row == {
        "name": "orders-3", "kind": "live", "topic": "orders", "partition": 3, "topic_id": log_dir.topic_id,
        "metadata_state": "ok", "problem": None, "bytes": 5000 + 10 + 43, "disk_bytes": on_disk, "files": 7,
        "leftovers": 4, "segments": 1, "modified_ms": 4_000_000_000_123, "inode": 7, "due_ms": None, "end_offset": 42,
    }  # fmt: skip


def test_a_preallocated_index_has_its_length_and_not_its_disk_space(log_dir: Any) -> None:
    path = log_dir.replica("orders-3", None)
    with (path / "x.index").open("wb") as index:
        index.truncate(10 << 20)
    (row,) = _look(log_dir, "orders-3")
    assert row["bytes"] == 10 << 20
    assert row["disk_bytes"] < 1 << 20


def test_without_sizes_the_columns_are_null(log_dir: Any) -> None:
    log_dir.replica("orders-3", x__log=5)
    (row,) = _look(log_dir, "orders-3", sizes=False)
    assert {row[name] for name in ("bytes", "disk_bytes", "files", "leftovers", "modified_ms")} == {None}
    assert row["topic_id"] == log_dir.topic_id


def test_an_empty_directory_weighs_nothing_and_has_no_newest_file(log_dir: Any) -> None:
    log_dir.replica("orders-3", None)
    (row,) = _look(log_dir, "orders-3")
    assert (row["bytes"], row["disk_bytes"], row["files"], row["modified_ms"]) == (0, 0, 0, None)
    assert row["metadata_state"] == "missing"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (future_name("orders", 3, UNIQUE), "future"),
        (delete_name("orders", 3, UNIQUE), "delete"),
        (stray_name("orders", 3, UNIQUE), "stray"),
        ("orders-+3", "live"),
        ("__cluster_metadata-3", "internal"),
    ],
)
def test_every_form_of_a_partition_dir_has_its_kind_and_its_topic_id(log_dir: Any, name: str, kind: str) -> None:
    log_dir.replica(name)
    (row,) = _look(log_dir, name, recovery_points={("orders", 3): 42})
    assert (row["kind"], row["partition"], row["topic_id"]) == (kind, 3, log_dir.topic_id)
    assert row["end_offset"] == (42 if kind in ("live", "future") else None)


def test_a_cut_name_contradicts_nothing(log_dir: Any) -> None:
    topic = "t" * 249
    name = delete_name(topic, 3, UNIQUE)
    text = f'{{"schema_version":0,"id":"{log_dir.topic_id}","name":"{topic}","partition":3}}'
    log_dir.replica(name, text.encode())
    (row,) = _look(log_dir, name)
    assert row["metadata_state"] == "ok"
    assert row["topic"] == "t" * 213


@pytest.mark.parametrize("name", ["lost+found", "deleting", "foo-1a", "-0"])
def test_a_foreign_directory_has_a_reason_and_no_topic_id(log_dir: Any, name: str) -> None:
    log_dir.replica(name, x__log=5)
    (row,) = _look(log_dir, name)
    assert (row["kind"], row["topic"], row["metadata_state"], row["bytes"]) == ("foreign", None, None, 48)
    assert "a broker does not start" in row["problem"]


def test_the_index_cache_is_a_brokers_own_and_no_replica(log_dir: Any) -> None:
    log_dir.replica("remote-log-index-cache", None)
    (row,) = _look(log_dir, "remote-log-index-cache")
    assert (row["kind"], row["metadata_state"], row["problem"]) == ("internal", None, None)


@pytest.mark.parametrize("sizes", [True, False])
def test_what_vanished_has_no_row_and_the_rest_goes_on(log_dir: Any, sizes: bool) -> None:
    log_dir.replica("orders-1")
    log_dir.file("orders-2")
    rows = _look(log_dir, "orders-0", "junk", "orders-1", f"orders-3.{UNIQUE}-delete", sizes=sizes)
    assert [row["name"] for row in rows] == ["orders-1"]
    assert _look(log_dir, "orders-2") == []


def test_a_file_that_vanishes_while_it_is_weighed_is_not_counted(log_dir: Any, monkeypatch: Any) -> None:
    log_dir.replica("orders-0", x__log=5)
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [*listdir(path), "00000000000000000042.log.deleted"])
    (row,) = _look(log_dir, "orders-0")
    assert (row["files"], row["leftovers"], row["bytes"]) == (2, 0, 48)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_a_directory_that_cannot_be_listed_is_unreadable(log_dir: Any, monkeypatch: Any, error: OSError) -> None:
    log_dir.replica("orders-0")
    log_dir.replica("junk")

    def refusing(path: str) -> list[str]:
        raise error

    monkeypatch.setattr(os, "listdir", refusing)
    live, foreign = _look(log_dir, "orders-0", "junk")
    assert (live["metadata_state"], live["bytes"], live["topic_id"]) == ("unreadable", None, None)
    assert (error.strerror or "?") in live["problem"]
    assert (foreign["kind"], foreign["metadata_state"]) == ("foreign", None)


def test_a_topic_in_a_tier_has_its_full_name(log_dir: Any) -> None:
    log_dir.replica("org/orders-1")
    folder = Folder("org/", f"{log_dir}/org/", namespace="org:")
    (row,) = _look(folder, "orders-1", recovery_points={("org:orders", 1): 9})
    assert (row["name"], row["topic"], row["end_offset"]) == ("org/orders-1", "org:orders", 9)


def test_by_topic_id_the_name_gives_the_id_and_the_file_gives_the_topic(log_dir: Any) -> None:
    topic_id = TopicId.parse(log_dir.topic_id)
    prefix, _, name = by_topic_id_name(topic_id, 4).partition("/")
    text = f'{{"schema_version":0,"id":"{topic_id}","name":"org:orders","partition":4}}'
    log_dir.replica(f"{prefix}/{name}", text.encode())
    folder = Folder(f"{prefix}/", f"{log_dir}/{prefix}/", NameRule.BY_TOPIC_ID)
    (row,) = _look(folder, name)
    assert (row["kind"], row["topic"], row["partition"], row["topic_id"]) == ("live", "org:orders", 4, str(topic_id))
    Path(f"{log_dir}/{prefix}/{name}/partition.metadata").write_bytes(
        f"version: 0\ntopic_id: {log_dir.other_id}".encode()
    )
    (row,) = _look(folder, name)
    assert row["metadata_state"] == "contradicts"


def _staged(log_dir: Any, said: bytes | None) -> dict[str, Any]:
    name = f"{log_dir.topic_id}_3"
    path = log_dir.replica(f"deleting/{name}")
    if said is not None:
        (path.parent / LEDGER_FILE).write_bytes(encode_header() + said)
    (row,) = _look(Folder("deleting/", f"{log_dir}/deleting/", NameRule.STAGED), name)
    assert (row["name"], row["kind"], row["partition"]) == (f"deleting/{name}", "staged", 3)
    assert row["topic_id"] == log_dir.topic_id
    return row


def _record(topic_id: str, partition: int = 3, topic: str = "orders") -> StagedRecord:
    return StagedRecord(topic, partition, TopicId.parse(topic_id), f"{topic}-3", "STALE_ID", "why", 1000, 5000)


def _line(log_dir: Any, topic_id: str, partition: int = 3) -> bytes:
    return encode_staged(f"{log_dir.topic_id}_3", _record(topic_id, partition))


LATER = b'["logstore-ledger",2]'
NO_LINE = ".logstore_ledger has no line about it: nothing says what this was or when it is due"


def test_a_staged_replica_knows_its_topic_and_its_due_time(log_dir: Any) -> None:
    row = _staged(log_dir, _line(log_dir, log_dir.topic_id))
    assert (row["topic"], row["due_ms"], row["problem"]) == ("orders", 5000, None)


def test_a_staged_replica_that_a_purge_has_begun_is_due_as_before(log_dir: Any) -> None:
    purging = encode_event(LedgerEvent.PURGING, f"{log_dir.topic_id}_3")
    row = _staged(log_dir, _line(log_dir, log_dir.topic_id) + purging)
    assert (row["topic"], row["due_ms"], row["problem"]) == ("orders", 5000, None)


def test_one_ledger_is_read_once_for_all_replicas_beside_it(log_dir: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = replica.read_ledger
    monkeypatch.setattr(replica, "read_ledger", lambda folder: (read.append(folder.path), original(folder))[1])
    _staged(log_dir, _line(log_dir, log_dir.topic_id))
    read.clear()
    for number in range(3):
        log_dir.replica(f"deleting/{log_dir.topic_id}_{number}")
    names = [f"{log_dir.topic_id}_{number}" for number in range(4)]
    rows = _look(Folder("deleting/", f"{log_dir}/deleting/", NameRule.STAGED), *names)
    assert [row["due_ms"] for row in rows] == [None, None, None, 5000]
    assert len(read) == 1


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (None, NO_LINE),
        (b"", NO_LINE),
        (b"{}\n", NO_LINE),
        (b"purging", "its line in .logstore_ledger cannot be read"),
        (b"restored", NO_LINE),
        (b"later", ".logstore_ledger is of another release: it says [2]; this release reads schema version 1 only"),
    ],
)
def test_a_staged_replica_without_a_valid_record_is_never_due_and_says_why(
    log_dir: Any, said: bytes | None, reason: str
) -> None:
    name = f"{log_dir.topic_id}_3"
    lines = {
        b"purging": encode_event(LedgerEvent.PURGING, name),
        b"restored": _line(log_dir, log_dir.topic_id) + encode_event(LedgerEvent.RESTORED, name),
        b"later": b"%08x %b\n" % (crc32(LATER), LATER),
    }
    row = _staged(log_dir, said if said is None else lines.get(said, said))
    assert (row["topic"], row["due_ms"]) == (None, None)
    assert row["problem"].startswith(f"{reason}, so no purge takes ")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
def test_a_ledger_that_is_no_plain_file_makes_nothing_due_and_is_named(log_dir: Any, make: Any) -> None:
    (log_dir.path / "deleting").mkdir()
    make(log_dir.path / "deleting" / LEDGER_FILE)
    row = _staged(log_dir, None)
    assert row["due_ms"] is None
    assert row["problem"].startswith(f"{LEDGER_FILE} is a")


@pytest.mark.parametrize(("other", "partition"), [(True, 3), (False, 4)])
def test_a_record_of_another_replica_is_no_record(log_dir: Any, other: bool, partition: int) -> None:
    topic_id = log_dir.other_id if other else log_dir.topic_id
    row = _staged(log_dir, _line(log_dir, topic_id, partition))
    assert row["due_ms"] is None
    assert f"its line in {LEDGER_FILE} is about orders-{partition}, not about this" in row["problem"]


@pytest.mark.parametrize("topic", ["orders", "x" * 249])
def test_a_stray_that_was_staged_in_place_is_staged(log_dir: Any, topic: str) -> None:
    name = stray_name(topic, 3, UNIQUE)
    path = log_dir.replica(name)
    write_ledger(log_dir.path, {name: _record(log_dir.topic_id, topic=topic)})
    (row,) = _look(log_dir, name)
    assert (row["kind"], row["topic"], row["partition"], row["due_ms"]) == ("staged", topic, 3, 5000)
    assert (row["topic_id"], row["metadata_state"], row["problem"]) == (log_dir.topic_id, "ok", None)
    (path / "partition.metadata").unlink()
    (row,) = _look(log_dir, name)
    assert (row["topic_id"], row["metadata_state"]) == (log_dir.topic_id, "missing")


def test_what_found_no_room_in_a_log_dir_is_staged_for_whoever_looks_into_the_other_folder(
    log_dir: Any, tmp_path: Path
) -> None:
    stray = log_dir.replica(stray_name("orders", 3, UNIQUE)).name
    beside = f"../{log_dir.path.name}.deleting/{log_dir.topic_id}_4"
    log_dir.replica(beside)
    fallback = FallbackRecords(str(tmp_path))
    elsewhere = Path(fallback.path_of(str(log_dir.path)))
    elsewhere.mkdir()
    said = {stray: _record(log_dir.topic_id), f"{log_dir.topic_id}_4": _record(log_dir.topic_id, 4)}
    write_ledger(elsewhere, said)

    def seen(fallback: FallbackRecords | None) -> dict[str, tuple[str, int | None, str | None]]:
        rows = scan(str(log_dir.path), fallback=fallback).rows.to_pylist()
        named = {row["name"]: (row["kind"], row["due_ms"], row["problem"]) for row in rows}
        return {name: named[name] for name in (stray, beside)}

    assert seen(fallback) == dict.fromkeys((stray, beside), ("staged", 5000, None))
    assert seen(None)[stray] == seen(FallbackRecords(None))[stray] == ("stray", None, None)
    (elsewhere / LEDGER_FILE).write_bytes(b"%08x %b\n" % (crc32(LATER), LATER))
    assert seen(fallback)[stray] == ("stray", None, None)
    kind, due_ms, problem = seen(fallback)[beside]
    assert (kind, due_ms) == ("staged", None)
    assert problem is not None and problem.startswith(f"{elsewhere}/{LEDGER_FILE} is of another release")


@pytest.mark.parametrize("partition", [3, 4])
def test_a_stray_without_a_record_of_its_own_was_renamed_by_a_broker(log_dir: Any, partition: int) -> None:
    path = log_dir.replica(stray_name("orders", 3, UNIQUE))
    name = path.name if partition == 4 else "another"
    write_ledger(log_dir.path, {name: _record(log_dir.topic_id, partition)})
    (row,) = _look(log_dir, path.name)
    assert (row["kind"], row["topic"], row["due_ms"], row["problem"]) == ("stray", "orders", None, None)


def test_a_replica_lies_there_since_its_partition_metadata_was_written(tmp_path: Path) -> None:
    assert replica_created_ms(str(tmp_path), "orders-0") is None
    (tmp_path / "orders-0").mkdir()
    assert replica_created_ms(str(tmp_path), "orders-0") is None
    file = tmp_path / "orders-0" / "partition.metadata"
    file.touch()
    os.utime(file, (1_700_000_000, 1_600_000_000))
    assert replica_created_ms(str(tmp_path), "orders-0") == 1_600_000_000_000
