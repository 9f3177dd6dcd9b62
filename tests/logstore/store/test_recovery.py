from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.ours import StagedRecord, staged_record
from layout.scheme import MARKER_FILE, UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore import OfflineLogDirError
from logstore.fs import TEMPORARY
from logstore.log_dir import LogDir
from logstore.staging import FallbackRecords, stage
from logstore.store import recover
from tests.logstore.engine import (
    NOW_MS,
    ORDERS_ID,
    DiskThat,
    candidate,
    contents,
    fill,
    formatted,
    full_disk,
    open_descriptors,
    read_offsets,
    write_offsets,
)

UNIQUE = "0123456789abcdef0123456789abcdef"


def record(topic: str = "orders", partition: int = 0, path: str = "orders-0", offset: int = 42) -> bytes:
    offsets = {RECOVERY_POINT_CHECKPOINT: offset}
    return staged_record.encode_record(
        StagedRecord(topic, partition, ORDERS_ID, path, "STALE_ID", "", NOW_MS, NOW_MS, offsets)
    )


def recovered(path: Path, fallback: FallbackRecords | None = None) -> list[str]:
    """Recover an unclean log dir, and make sure that a second look finds nothing."""
    (path / UNCLEAN_FILE).touch()
    with LogDir.open(str(path)) as log_dir:
        done = recover(log_dir, fallback)
    assert not (path / UNCLEAN_FILE).exists()
    before = contents(path)
    with LogDir.open(str(path)) as log_dir:
        assert recover(log_dir, fallback) == []
    assert contents(path) == before
    return done


@pytest.fixture(params=["ours", "broker"])
def path(request: pytest.FixtureRequest, log_dir: Any, our_log_dir: Path) -> Path:
    found: Path = our_log_dir if request.param == "ours" else log_dir.path
    return found


def test_where_nothing_was_left_nothing_is_done(path: Path) -> None:
    fill(path / "orders-0")
    before = contents(path)
    assert recovered(path) == []
    assert contents(path) == before


def test_a_live_replica_with_a_record_stays_live_and_gets_its_offsets_back(path: Path) -> None:
    fill(path / "orders-0")
    before = contents(path / "orders-0")
    (path / "orders-0" / "staged.json").write_bytes(record())
    assert recovered(path) == ["orders-0 was about to be staged or restored, and is live"]
    assert contents(path / "orders-0") == before
    assert read_offsets(path) == {("orders", 0): 42}


def test_an_offset_that_is_there_is_newer_than_the_records(path: Path) -> None:
    fill(path / "orders-0")
    write_offsets(path, {("orders", 0): 50})
    (path / "orders-0" / "staged.json").write_bytes(record())
    recovered(path)
    assert read_offsets(path) == {("orders", 0): 50}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 600,
        record()[:100],
        record("payments", 3, "payments-3"),
        record("orders", 1, "orders-1"),
        b"x" * (1 << 21),
        b'{"schema_version": 1, "records": {}}',
    ],
)
def test_a_record_in_a_live_replica_that_is_torn_or_of_another_gives_nothing_and_goes(path: Path, data: bytes) -> None:
    fill(path / "orders-0")
    (path / "orders-0" / "staged.json").write_bytes(data)
    assert len(recovered(path)) == 1
    assert not (path / "orders-0" / "staged.json").exists()
    assert not (path / RECOVERY_POINT_CHECKPOINT).exists()


@pytest.mark.parametrize("make", [os.mkfifo, lambda file: os.symlink("/etc/passwd", file)])
def test_something_else_in_place_of_that_record_goes_and_nothing_behind_it(path: Path, make: Any) -> None:
    passwd = Path("/etc/passwd").read_bytes()
    fill(path / "orders-0")
    make(path / "orders-0" / "staged.json")
    recovered(path)
    assert sorted(os.listdir(path / "orders-0")) == [
        "00000000000000000000.log",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert Path("/etc/passwd").read_bytes() == passwd


def test_a_directory_in_place_of_that_record_is_logged_and_recovered_again(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(path / "orders-0")
    (path / "orders-0" / "staged.json").mkdir()
    (path / UNCLEAN_FILE).touch()
    with LogDir.open(str(path)) as log_dir:
        recover(log_dir)
    assert "cannot be removed (Is a directory)" in caplog.text
    assert (path / UNCLEAN_FILE).exists()


def test_temporary_files_of_ours_go_and_others_stay(path: Path) -> None:
    fill(path / "orders-0")
    brokers = {
        *("meta.properties.tmp", f"{RECOVERY_POINT_CHECKPOINT}.tmp", "bootstrap.checkpoint.tmp", "note.tmp"),
        *("orders-0/partition.metadata.tmp", "orders-0/leader-epoch-checkpoint.tmp"),
    }
    ours = ("meta.properties", RECOVERY_POINT_CHECKPOINT, ".logstore_intent", "orders-0/partition.metadata")
    for name in (*brokers, *(f"{name}{TEMPORARY}" for name in ours)):
        (path / name).write_text("x")
    assert len(recovered(path)) == 4
    assert {str(file.relative_to(path)) for file in path.rglob("*.tmp")} == brokers


def test_a_replica_that_was_being_made_goes_from_ours_and_is_left_to_a_broker(path: Path) -> None:
    draft = path / f"orders-0.{UNIQUE}-delete"
    draft.mkdir()
    (draft / "partition.metadata").write_text("half")
    done = recovered(path)
    is_ours = (path / "deleting").exists()
    assert draft.exists() != is_ours
    assert len(done) == is_ours


def test_an_empty_staged_directory_is_the_end_of_a_purge(path: Path) -> None:
    root = path / "deleting" if (path / "deleting").exists() else Path(f"{path}.deleting")
    (root / f"{ORDERS_ID}_0").mkdir(parents=True)
    fill(root / f"{ORDERS_ID}_1")
    assert len(recovered(path)) == 1
    assert os.listdir(root) == [f"{ORDERS_ID}_1"]


def test_an_empty_replica_that_was_staged_on_a_full_disk_has_a_record_elsewhere_and_stays(
    our_log_dir: Path, tmp_path: Path
) -> None:
    (our_log_dir / "orders-0").mkdir()
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(our_log_dir), disk=full_disk()) as log_dir:
        outcome = stage(log_dir, [candidate(topic_id=None)], NOW_MS, fallback=fallback)
    assert recovered(our_log_dir, fallback) == []
    assert (our_log_dir / "deleting" / outcome.staged[0].name).is_dir()


def test_offsets_of_what_is_staged_go_and_those_of_a_newer_live_replica_stay(path: Path) -> None:
    for topic in ("orders", "payments"):
        fill(path / f"{topic}-0")
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, [candidate(), candidate("payments-0", TopicPartition("payments", 0))], NOW_MS)
    fill(path / "payments-0")
    write_offsets(path, {("orders", 0): 1, ("payments", 0): 2, ("other", 0): 3})
    recovered(path)
    assert read_offsets(path) == {("payments", 0): 2, ("other", 0): 3}


@pytest.mark.parametrize("scheme", ["namespaced", "by-topic-id"])
def test_replicas_of_the_other_schemes_are_looked_into_as_well(tmp_path: Path, scheme: str) -> None:
    path = formatted(tmp_path / "x", scheme=scheme)
    where = "org/orders-0" if scheme == "namespaced" else f"{ORDERS_ID.hex[:2]}/{ORDERS_ID.hex}_0"
    fill(path / where)
    if scheme == "namespaced":
        (path / "org" / MARKER_FILE).touch()
    topic = "org:orders" if scheme == "namespaced" else "orders"
    (path / where / "staged.json").write_bytes(record(topic, 0, where))
    recovered(path)
    assert not (path / where / "staged.json").exists()
    assert read_offsets(path) == {(topic, 0): 42}


def test_a_link_that_looks_like_a_replica_is_not_entered(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "staged.json").write_bytes(record())
    (path / "orders-0").symlink_to(tmp_path / "elsewhere")
    assert recovered(path) == []
    assert (tmp_path / "elsewhere" / "staged.json").exists()


def test_a_staging_root_that_is_a_link_is_not_entered(our_log_dir: Path, tmp_path: Path) -> None:
    (our_log_dir / "deleting").rmdir()
    (tmp_path / "elsewhere" / f"{ORDERS_ID}_0").mkdir(parents=True)
    (our_log_dir / "deleting").symlink_to(tmp_path / "elsewhere")
    assert recovered(our_log_dir) == []
    assert os.listdir(tmp_path / "elsewhere") == [f"{ORDERS_ID}_0"]


def test_a_recovery_that_the_system_refuses_leaves_the_mark(our_log_dir: Path) -> None:
    (our_log_dir / UNCLEAN_FILE).touch()
    (our_log_dir / f"orders-0.{UNIQUE}-delete").mkdir()
    for number in (errno.EACCES, errno.EIO):
        with (
            pytest.raises(Exception, match="what a crash left cannot be sorted out"),
            LogDir.open(str(our_log_dir), disk=DiskThat(number, {"rmdir"})) as log_dir,
        ):
            recover(log_dir)
        assert (our_log_dir / UNCLEAN_FILE).exists()


def test_a_disk_that_fails_meanwhile_is_offline(our_log_dir: Path) -> None:
    (our_log_dir / f"orders-0.{UNIQUE}-delete").mkdir()
    with LogDir.open(str(our_log_dir), disk=DiskThat(errno.EIO, {"rmdir"})) as log_dir:
        with pytest.raises(OfflineLogDirError):
            recover(log_dir)
        assert log_dir.offline is not None


def test_a_full_disk_is_opened_and_what_found_no_room_is_done_by_the_next_one(path: Path) -> None:
    fill(path / "orders-0")
    (path / "orders-0" / "staged.json").write_bytes(record())
    (path / UNCLEAN_FILE).touch()
    with LogDir.open(str(path), disk=full_disk()) as log_dir:
        recover(log_dir)
    assert (path / UNCLEAN_FILE).exists(), "there is more to do once there is room"
    assert recovered(path) == ["orders-0 was about to be staged or restored, and is live"]
    assert read_offsets(path) == {("orders", 0): 42}


@pytest.fixture
def mounted_draft(our_log_dir: Path, tmp_path: Path) -> Iterator[Path]:
    """A draft with somebody's directory mounted in it, of the same file system."""
    point = our_log_dir / f"orders-0.{UNIQUE}-delete" / "mounted"
    point.mkdir(parents=True)
    fill(tmp_path / "precious")
    subprocess.run(["mount", "--bind", str(tmp_path / "precious"), str(point)], check=True)
    yield our_log_dir
    subprocess.run(["umount", str(point)], check=True)


@pytest.mark.root
def test_what_is_mounted_in_a_draft_is_not_removed_and_the_log_dir_opens(mounted_draft: Path, tmp_path: Path) -> None:
    before = contents(tmp_path / "precious")
    recovered(mounted_draft)
    assert contents(tmp_path / "precious") == before


def test_what_was_done_is_logged_in_a_sentence_each(our_log_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    (our_log_dir / f"orders-0.{UNIQUE}-delete").mkdir()
    (our_log_dir / f"meta.properties{TEMPORARY}").touch()
    done = recovered(our_log_dir)
    assert [f"{our_log_dir}: {sentence}" for sentence in done] == [record.getMessage() for record in caplog.records]
    assert len(done) == 2


def test_no_descriptor_is_left_behind(path: Path) -> None:
    before = open_descriptors()
    fill(path / "orders-0")
    (path / "orders-0" / "staged.json").write_bytes(record())
    recovered(path)
    assert open_descriptors() == before
