"""What a broker reads in each directory at its start: names, permissions and small files; nothing is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from layout import checkpoint, partition_metadata
from layout.directory_name import DirectoryKind
from layout.errors import BrokerEffect
from layout.ids import TopicId
from layout.segment_name import Transient
from logstore.rows import MetadataState
from logstore.scan import (
    METADATA_LOG,
    Denied,
    DirectorySeen,
    FileDamage,
    damaged_checkpoints,
    look_into_directories,
    read_metadata_file,
)
from logstore.scan import startup_view as startup_module
from logstore.scan.startup_view import KEPT

ORDERS = TopicId(bytes(range(16)))
LAYOUT_0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[],"data_version":0}'
)


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(ORDERS))
    for offset in (42, 7):
        for suffix in (".log", ".index", ".timeindex"):
            (tmp_path / "orders-0" / f"{offset:020d}{suffix}").write_bytes(b"")
    return tmp_path


def only(log_dir: Path) -> DirectorySeen:
    (seen,) = look_into_directories(str(log_dir))
    return seen


def test_a_directory_in_order_has_nothing_to_report(log_dir: Path) -> None:
    seen = only(log_dir)
    assert (seen.name, seen.shown, seen.kind) == ("orders-0", "orders-0", DirectoryKind.LIVE)
    assert (seen.segments, seen.first_offset, seen.metadata.topic_id) == (2, 7, ORDERS)
    assert not (seen.damage or seen.odd_names or seen.unreadable or seen.links or seen.leftovers or seen.obstacle)


def test_every_directory_and_link_at_the_top_is_listed_by_name_and_no_file(log_dir: Path) -> None:
    (log_dir / "lost+found").mkdir()
    (log_dir / "file-0").write_bytes(b"")
    (log_dir / "link-0").symlink_to("orders-0")
    seen = look_into_directories(str(log_dir))
    assert [(each.name, each.is_link) for each in seen] == [
        ("link-0", True),
        ("lost+found", False),
        ("orders-0", False),
    ]
    assert seen[0].segments == 0 and seen[1].kind is DirectoryKind.FOREIGN


def test_nothing_is_looked_at_in_a_foreign_directory(log_dir: Path) -> None:
    (log_dir / "deleting").mkdir()
    (log_dir / "deleting" / "backup.log").write_bytes(b"")
    assert look_into_directories(str(log_dir))[0].odd_names == []


def test_odd_names_leftovers_links_and_directories_are_distinguished(log_dir: Path) -> None:
    folder = log_dir / "orders-0"
    for name in ("backup.log", "1.log.deleted", "2.log.deleted", "3.log.swap", "notes", "٤٢.log"):
        (folder / name).write_bytes(b"")
    (folder / "x.log.link").symlink_to("/nowhere")
    (folder / "folder.log").mkdir()
    os.mkfifo(folder / "pipe.log")
    seen = only(log_dir)
    assert [name for name, _ in seen.odd_names] == ["backup.log"]
    assert seen.leftovers == {Transient.DELETED: 2, Transient.SWAP: 1}
    assert seen.links == ["x.log.link"]
    assert seen.segments == 3


def test_of_long_lists_only_the_beginning_is_kept(log_dir: Path) -> None:
    for number in range(3 * KEPT):
        (log_dir / "orders-0" / f"x{number}.log").write_bytes(b"")
        (log_dir / "orders-0" / f"link{number}").symlink_to("/nowhere")
    seen = only(log_dir)
    assert (len(seen.odd_names), len(seen.links)) == (KEPT, KEPT)


def test_files_that_may_not_be_read_are_reported(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def access(name: str, mode: int, *, dir_fd: int, effective_ids: bool) -> bool:
        assert mode == os.R_OK and dir_fd >= 0 and effective_ids, "as it would be opened"
        return not name.endswith(".index")

    monkeypatch.setattr(startup_module.os, "access", access)
    assert only(log_dir).unreadable == [f"{7:020d}.index", f"{42:020d}.index"]


def test_a_file_that_vanished_meanwhile_is_not_reported(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def access(name: str, mode: int, *, dir_fd: int, effective_ids: bool) -> bool:
        os.unlink(name, dir_fd=dir_fd)
        return False

    monkeypatch.setattr(startup_module.os, "access", access)
    assert only(log_dir).unreadable == []


def test_a_directory_that_cannot_be_entered_has_an_obstacle(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, flags: int, **_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(startup_module.os, "open", refuse)
    assert only(log_dir).obstacle == "the directory cannot be read: Permission denied"


def test_a_directory_that_vanished_meanwhile_is_not_reported(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: object, flags: int, **_: object) -> int:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(startup_module.os, "open", gone)
    assert look_into_directories(str(log_dir)) == []


@pytest.mark.parametrize(
    ("data", "state", "effect", "version"),
    [
        # FACTS §2.1
        (None, MetadataState.MISSING, BrokerEffect.NONE, 0),
        (b"", MetadataState.EMPTY, BrokerEffect.STARTUP_ABORTS, 0),
        (b"x", MetadataState.MALFORMED, BrokerEffect.LOG_DIR_OFFLINE, 0),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", MetadataState.ZERO_ID, BrokerEffect.LOG_DIR_OFFLINE, 0),
        (b"version: 3\ntopic_id: AAECAwQFBgcICQoLDA0ODw", MetadataState.OK, BrokerEffect.NONE, 3),
        (partition_metadata.encode_json(ORDERS, "orders", 0), MetadataState.OK, BrokerEffect.LOG_DIR_OFFLINE, 0),
        (bytes(1 << 17), MetadataState.UNREADABLE, BrokerEffect.LOG_DIR_OFFLINE, 0),
    ],
)
def test_partition_metadata_is_reported_with_its_effect(
    log_dir: Path, data: bytes | None, state: MetadataState, effect: BrokerEffect, version: int
) -> None:
    file = log_dir / "orders-0" / partition_metadata.FILE_NAME
    file.unlink() if data is None else file.write_bytes(data)
    descriptor = os.open(log_dir / "orders-0", os.O_RDONLY)
    try:
        found = read_metadata_file(directory=descriptor)
    finally:
        os.close(descriptor)
    assert (found.state, found.effect, found.version) == (state, effect, version)
    assert only(log_dir).metadata == found


def test_a_linked_file_is_a_link_and_no_damage(log_dir: Path) -> None:
    for name in (partition_metadata.FILE_NAME, checkpoint.LEADER_EPOCH_CHECKPOINT):
        (log_dir / "orders-0" / name).unlink(missing_ok=True)
        (log_dir / "orders-0" / name).symlink_to("/dev/zero")
    seen = only(log_dir)
    assert seen.links == [checkpoint.LEADER_EPOCH_CHECKPOINT, partition_metadata.FILE_NAME]
    assert (seen.damage, seen.metadata.state) == ([], MetadataState.OK)


@pytest.mark.parametrize(
    ("data", "effect"), [(b"x", BrokerEffect.LOG_DIR_OFFLINE), (b"0\n1\nx 0\n", BrokerEffect.STARTUP_ABORTS)]
)
def test_a_damaged_leader_epoch_checkpoint_is_reported_with_its_effect(
    log_dir: Path, data: bytes, effect: BrokerEffect
) -> None:
    (log_dir / "orders-0" / checkpoint.LEADER_EPOCH_CHECKPOINT).write_bytes(data)
    (damage,) = only(log_dir).damage
    assert (damage.file, damage.effect) == (checkpoint.LEADER_EPOCH_CHECKPOINT, effect)


def test_a_fifo_in_place_of_a_file_is_not_waited_for(log_dir: Path) -> None:
    os.mkfifo(log_dir / "orders-0" / checkpoint.LEADER_EPOCH_CHECKPOINT)
    (damage,) = only(log_dir).damage
    assert "FIFO" in damage.problem


@pytest.mark.parametrize(
    ("data", "layout", "damaged"),
    [
        (LAYOUT_0, 0, False),
        (LAYOUT_0 + b"\nmore", 0, False),
        (b"", None, True),
        (b"{}", None, True),
        (None, None, False),
    ],
)
def test_the_layout_of_quorum_state_is_reported(
    tmp_path: Path, data: bytes | None, layout: int | None, damaged: bool
) -> None:
    (tmp_path / METADATA_LOG).mkdir()
    if data is not None:
        (tmp_path / METADATA_LOG / "quorum-state").write_bytes(data)
    seen = only(tmp_path)
    assert (seen.quorum_layout, bool(seen.damage)) == (layout, damaged)


def test_the_greatest_complete_snapshot_of_the_metadata_log_is_reported(tmp_path: Path) -> None:
    (tmp_path / METADATA_LOG).mkdir()
    names = ("00000000000000000009-0000000001.checkpoint", "00000000000000000030-0000000002.checkpoint")
    for name in (*names, "00000000000000000099-0000000002.checkpoint.part", "bootstrap.checkpoint"):
        (tmp_path / METADATA_LOG / name).write_bytes(b"")
    seen = only(tmp_path)
    assert (seen.last_snapshot, [name for name, _ in seen.odd_names]) == (30, ["bootstrap.checkpoint"])


def test_a_snapshots_name_means_nothing_in_other_directories(log_dir: Path) -> None:
    (log_dir / "orders-0" / "bootstrap.checkpoint").write_bytes(b"")
    seen = only(log_dir)
    assert (seen.odd_names, seen.last_snapshot) == ([], None)


def test_damaged_checkpoints_are_reported_with_their_effects(tmp_path: Path) -> None:
    assert damaged_checkpoints(str(tmp_path)) == []
    for name in checkpoint.OFFSET_CHECKPOINTS:
        (tmp_path / name).write_bytes(b"0\n-1\n")
    (tmp_path / checkpoint.CLEANER_CHECKPOINT).unlink()
    (tmp_path / checkpoint.CLEANER_CHECKPOINT).mkdir()
    assert [each.effect for each in damaged_checkpoints(str(tmp_path))] == [
        *[BrokerEffect.NONE] * 3,
        BrokerEffect.LOG_DIR_OFFLINE,
    ]


def test_a_log_dir_that_cannot_be_listed_raises(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        look_into_directories(str(tmp_path / "absent"))


def test_names_that_are_not_utf8_are_shown_as_the_rows_show_them(tmp_path: Path) -> None:
    os.mkdir(os.fsencode(str(tmp_path)) + b"/caf\xe9-0")
    with open(os.fsencode(str(tmp_path)) + b"/caf\xe9-0/\xe9.log", "wb"):
        pass
    seen = only(tmp_path)
    assert (seen.shown, seen.odd_names[0][0]) == ("caf\\xe9-0", "\\xe9.log")


def test_many_directories_are_all_seen_in_order(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"t-{number:03d}").mkdir()
    assert [each.name for each in look_into_directories(str(tmp_path))] == [f"t-{number:03d}" for number in range(200)]


def test_a_damaged_checkpoint_is_reported_with_its_file_and_problem(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / checkpoint.RECOVERY_POINT_CHECKPOINT)
    assert damaged_checkpoints(str(tmp_path)) == [
        FileDamage(checkpoint.RECOVERY_POINT_CHECKPOINT, "is a FIFO, not a plain file", BrokerEffect.LOG_DIR_OFFLINE)
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
@pytest.mark.parametrize(
    ("owner", "mode", "denied"),
    [
        (92, 0o700, Denied.NOTHING),
        (92, 0o500, Denied.CHANGE),
        (0, 0o700, Denied.READ),
        (0, 0o711, Denied.READ),
        (0, 0o755, Denied.CHANGE),
        (0, 0o770, Denied.NOTHING),  # the broker's user may be in that group
        (0, 0o777, Denied.NOTHING),
        (93, 0o755, Denied.NOTHING),  # it may be the broker's user
    ],
)
def test_root_sees_what_the_owner_of_the_log_dir_may_not_do_in_a_directory(
    log_dir: Path, owner: int, mode: int, denied: Denied
) -> None:
    os.chown(log_dir / "orders-0", owner, owner)
    (log_dir / "orders-0").chmod(mode)
    (seen,) = look_into_directories(str(log_dir))
    assert seen.denied is Denied.NOTHING, "a broker that runs as root may do everything"
    os.chown(log_dir, 92, 92)
    (seen,) = look_into_directories(str(log_dir))
    assert (seen.denied, seen.obstacle) == (denied, None)
