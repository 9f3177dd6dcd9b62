from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from layout import meta_properties
from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.scheme import MARKER_FILE, STAGING_DIR, UNCLEAN_FILE, Scheme
from layout.topic import TopicPartition
from logstore import (
    ChangeFailedError,
    ChangeRefusedError,
    InvalidNamespaceError,
    KafkaError,
    LogDirInUseError,
    LogStoreError,
    NotALogDirError,
    OfflineLogDirError,
)
from logstore.fs import TEMPORARY, Directory, Disk
from logstore.log_dir import DISK_FAILURES, ExpectedIdentity, LogDir, open_replica_parent
from logstore.log_dir import log_dir as log_dir_module
from logstore.store import recover
from tests.logstore.engine import (
    ORDERS,
    DiskThat,
    fill,
    formatted,
    full_disk,
    identity,
    open_descriptors,
    picture,
    read_offsets,
    write_offsets,
)


def marked(path: Path) -> bool:
    return (path / UNCLEAN_FILE).exists()


@pytest.mark.parametrize("name", ["EIO", "EROFS", "ENXIO", "ENODEV", "ESTALE", "EUCLEAN", "ENOTCONN", "EBADF"])
def test_an_error_of_the_disk_itself_takes_the_log_dir_offline(our_log_dir: Path, name: str) -> None:
    with LogDir.open(str(our_log_dir)) as opened:
        with pytest.raises(OfflineLogDirError), opened.changing("it cannot be changed"):
            raise OSError(getattr(errno, name), "the disk")
        assert opened.offline is not None


def test_the_mark_is_durable_before_the_first_change(our_log_dir: Path) -> None:
    disk = DiskThat()
    with LogDir.open(str(our_log_dir), disk=disk) as opened, opened.changing("nothing changes"):
        assert disk.synced == [str(our_log_dir / UNCLEAN_FILE), str(our_log_dir)]


def test_a_real_brokers_log_dir_is_opened_and_nothing_in_it_changes_but_the_lock(log_dir: Any) -> None:
    log_dir.replica("orders-0")
    before = picture(log_dir.path)
    with LogDir.open(str(log_dir)) as opened:
        assert (opened.is_ours, opened.scheme, opened.was_unclean) == (False, Scheme.FLAT, False)
        assert opened.identity.node_id == 1
    after = picture(log_dir.path)
    del before["."], after["."]
    assert after == before


def test_a_log_dir_that_is_ours_says_so_and_how_it_is_laid_out(tmp_path: Path) -> None:
    for scheme in Scheme:
        path = formatted(tmp_path / scheme, scheme=scheme)
        with LogDir.open(str(path)) as opened:
            assert (opened.is_ours, opened.scheme) == (True, scheme)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda path: None, "no such|No such|cannot be read"),
        (lambda path: path.write_text("x"), "Not a directory"),
        (lambda path: path.mkdir(), "no meta.properties"),
        (lambda path: (path.mkdir(), (path / "meta.properties").write_text("version=7\n")), "version 7"),
        (lambda path: (path.mkdir(), (path / "meta.properties").write_text("")), "empty"),
    ],
)
def test_what_is_no_log_dir_is_refused_with_the_reason(tmp_path: Path, prepare: Any, message: str) -> None:
    prepare(tmp_path / "x")
    descriptors = open_descriptors()
    with pytest.raises(NotALogDirError, match=message):
        LogDir.open(str(tmp_path / "x"))
    assert open_descriptors() == descriptors


def test_a_path_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotALogDirError, match="null byte"):
        LogDir.open(f"{tmp_path}/a\0b")
    with pytest.raises(ChangeRefusedError, match="NUL"):
        LogDir.format(f"{tmp_path}/a\0b", identity())


def test_another_identity_than_the_expected_one_is_another_log_dir(our_log_dir: Path) -> None:
    with pytest.raises(NotALogDirError, match=r"its cluster\.id is C, and D was expected"):
        LogDir.open(str(our_log_dir), expected=ExpectedIdentity(cluster_id="D"))
    LogDir.open(str(our_log_dir), expected=ExpectedIdentity("C", 1)).close()


def test_a_scheme_that_is_not_known_is_never_guessed_at(log_dir: Any) -> None:
    log_dir.identity(extra="logstore.scheme=spiral\n")
    with pytest.raises(NotALogDirError, match="spiral"):
        LogDir.open(str(log_dir))


def test_an_identity_that_cannot_be_read_takes_the_log_dir_offline_as_in_a_broker(our_log_dir: Path) -> None:
    file = our_log_dir / "meta.properties"
    file.unlink()
    os.mkfifo(file)
    descriptors = open_descriptors()
    with pytest.raises(OfflineLogDirError, match="is a FIFO"):
        LogDir.open(str(our_log_dir))
    assert open_descriptors() == descriptors


@pytest.mark.parametrize("number", sorted(DISK_FAILURES))
def test_a_disk_that_fails_while_it_is_opened_is_offline(
    our_log_dir: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fails(path: str) -> Directory:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(log_dir_module.Directory, "open", fails)
    with pytest.raises(OfflineLogDirError, match="cannot be opened") as raised:
        LogDir.open(str(our_log_dir))
    assert raised.value.kafka_error == KafkaError.KAFKA_STORAGE_ERROR


def test_a_lock_that_cannot_be_opened_because_of_the_disk_takes_it_offline(our_log_dir: Path) -> None:
    (our_log_dir / ".lock").unlink()
    with pytest.raises(OfflineLogDirError, match=r"the lock of .* cannot be taken"):
        LogDir.open(str(our_log_dir), disk=DiskThat(errno.EIO, {"create"}))


@pytest.mark.parametrize(("number", "mounted"), [(errno.EIO, False), (errno.EROFS, True)])
def test_a_log_dir_that_was_never_open_is_not_said_to_be_opened_again(
    our_log_dir: Path, number: int, mounted: bool
) -> None:
    (our_log_dir / ".lock").unlink()
    with pytest.raises(OfflineLogDirError) as raised:
        LogDir.open(str(our_log_dir), disk=DiskThat(number, {"create"}))
    said = str(raised.value)
    assert "the log dir is not opened: see to its disk first" in said and "again" not in said
    assert ("mount its file system so that it can be written" in said) is mounted


def test_two_cannot_have_it_open_at_once(our_log_dir: Path) -> None:
    with LogDir.open(str(our_log_dir)), pytest.raises(LogDirInUseError):
        LogDir.open(str(our_log_dir))
    LogDir.open(str(our_log_dir)).close()


def test_a_slash_at_the_end_and_a_relative_path_are_the_same_log_dir(
    our_log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(our_log_dir.parent)
    for path in (f"{our_log_dir}/", our_log_dir.name, f"./{our_log_dir.name}//"):
        with LogDir.open(path) as opened:
            assert opened.path == str(our_log_dir)


# Formatting


def test_formatting_makes_the_path_with_its_parents_a_staging_directory_and_an_identity(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c"
    with LogDir.format(str(path), identity(scheme="namespaced")) as opened:
        assert opened.scheme is Scheme.NAMESPACED
    assert sorted(os.listdir(path)) == [".lock", STAGING_DIR, "meta.properties"]
    assert meta_properties.parse((path / "meta.properties").read_bytes()) == identity(scheme="namespaced")


def test_the_same_identity_gives_the_same_bytes(tmp_path: Path) -> None:
    paths = [formatted(tmp_path / name) for name in ("a", "b")]
    assert len({(path / "meta.properties").read_bytes() for path in paths}) == 1


@pytest.mark.parametrize("name", ["orders-0", "note.txt", "meta.properties", ".kafka_cleanshutdown"])
def test_a_directory_that_holds_something_is_never_formatted(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    before = picture(tmp_path)
    with pytest.raises(ChangeRefusedError, match=name):
        LogDir.format(str(tmp_path), identity())
    assert picture(tmp_path) == before


def test_staged_replicas_whose_log_dir_lost_its_identity_are_not_formatted_over(our_log_dir: Path) -> None:
    fill(our_log_dir / STAGING_DIR / "UXyU9i5ARn6W00ON2taeWA_0")
    (our_log_dir / "meta.properties").unlink()
    with pytest.raises(ChangeRefusedError, match="holds staged replicas"):
        LogDir.format(str(our_log_dir), identity())
    assert not (our_log_dir / "meta.properties").exists()


def test_what_a_crash_in_the_middle_of_formatting_leaves_can_be_formatted(tmp_path: Path) -> None:
    (tmp_path / STAGING_DIR).mkdir()
    (tmp_path / "lost+found").mkdir()
    (tmp_path / f"meta.properties{TEMPORARY}").write_text("half")
    (tmp_path / ".lock").touch()
    formatted(tmp_path)
    assert not (tmp_path / f"meta.properties{TEMPORARY}").exists()


@pytest.mark.parametrize("scheme", [None, "", "spiral", "FLAT"])
def test_an_identity_without_a_scheme_that_is_known_is_no_log_dir_of_ours(tmp_path: Path, scheme: str | None) -> None:
    # No program can make such an identity; it was read from a file of another release.
    line = "" if scheme is None else f"logstore.scheme={scheme}\n"
    read = meta_properties.parse(f"version=1\ncluster.id=C\nnode.id=1\n{line}".encode())
    with pytest.raises(ChangeRefusedError, match="flat, namespaced, by-topic-id are"):
        LogDir.format(str(tmp_path / "x"), read)
    assert not (tmp_path / "x").exists()


def test_a_system_that_refuses_leaves_nothing_that_looks_formatted(tmp_path: Path) -> None:
    descriptors = open_descriptors()
    with pytest.raises(ChangeFailedError, match="cannot be formatted: No space left"):
        LogDir.format(str(tmp_path / "x"), identity(), disk=DiskThat(errno.ENOSPC, {"write"}))
    assert not (tmp_path / "x" / "meta.properties").exists()
    assert open_descriptors() == descriptors
    formatted(tmp_path / "x")


@pytest.mark.parametrize("make", [lambda path: path.write_text("x"), lambda path: path.symlink_to("nowhere")])
def test_a_file_or_a_broken_link_in_place_of_the_log_dir_is_an_error(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "x")
    with pytest.raises(LogStoreError):
        LogDir.format(str(tmp_path / "x"), identity())


def test_a_log_dir_that_another_is_formatting_is_in_use(tmp_path: Path) -> None:
    with Directory.open(str(tmp_path)) as root:
        lock = log_dir_module.Lock.take(root, Disk())
        with pytest.raises(LogDirInUseError):
            LogDir.format(str(tmp_path), identity())
        lock.release()


# Changing, failing, and the mark


def test_the_mark_stands_from_the_first_change_to_a_clean_close(our_log_dir: Path) -> None:
    opened = LogDir.open(str(our_log_dir))
    assert not marked(our_log_dir)
    with opened.changing("x"):
        assert marked(our_log_dir)
    assert marked(our_log_dir)
    opened.close()
    opened.close()
    assert not marked(our_log_dir)


def test_a_crash_leaves_the_mark_and_the_next_one_to_open_sees_it(our_log_dir: Path) -> None:
    opened = LogDir.open(str(our_log_dir))
    with opened.changing("x"):
        pass
    opened.abandon()
    with LogDir.open(str(our_log_dir)) as again:
        assert again.was_unclean


def test_an_open_without_a_recovery_does_not_take_the_mark_away(our_log_dir: Path) -> None:
    (our_log_dir / UNCLEAN_FILE).touch()
    LogDir.open(str(our_log_dir)).close()
    assert marked(our_log_dir)
    opened = LogDir.open(str(our_log_dir))
    with opened.changing("x"):
        pass
    opened.close()
    assert marked(our_log_dir)
    with LogDir.open(str(our_log_dir)) as opened:
        recover(opened)
    assert not marked(our_log_dir)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_nobody_expected_leaves_the_mark(our_log_dir: Path, error: type[BaseException]) -> None:
    with LogDir.open(str(our_log_dir)) as opened, pytest.raises(error), opened.changing("x"):
        raise error
    assert marked(our_log_dir)


def test_a_refusal_changes_nothing_and_leaves_no_mark(our_log_dir: Path) -> None:
    with (
        pytest.raises(ChangeRefusedError),
        LogDir.open(str(our_log_dir)) as opened,
        opened.changing("x"),
    ):
        raise ChangeRefusedError("no")
    assert not marked(our_log_dir)


@pytest.mark.parametrize("number", sorted(DISK_FAILURES))
def test_a_disk_that_fails_goes_offline_and_every_further_change_is_refused(our_log_dir: Path, number: int) -> None:
    # FACTS §1.5
    with LogDir.open(str(our_log_dir)) as opened:
        message = r"x cannot be done: .*offline until it is opened again"
        with pytest.raises(OfflineLogDirError, match=message), opened.changing("x cannot be done"):
            raise OSError(number, os.strerror(number), "orders-0")
        assert opened.offline is not None
        with pytest.raises(OfflineLogDirError), opened.changing("y"):
            pytest.fail("the disk is not touched any more")
    assert marked(our_log_dir)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EPERM, errno.ENOENT, errno.EXDEV, errno.EMFILE])
def test_a_request_that_the_system_refuses_does_not_take_the_disk_offline(our_log_dir: Path, number: int) -> None:
    with LogDir.open(str(our_log_dir)) as opened:
        message = r"x cannot be done: .* \(orders-0\); nothing was changed"
        with pytest.raises(ChangeFailedError, match=message), opened.changing("x cannot be done"):
            raise OSError(number, os.strerror(number), "orders-0")
        assert opened.offline is None
        with opened.changing("y"):
            pass
    assert marked(our_log_dir), "what was undone may not be after a crash, so the next open has to look"


def test_the_first_reason_for_which_it_went_offline_stays(our_log_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    with LogDir.open(str(our_log_dir)) as opened:
        opened.go_offline("first")
        opened.go_offline("second")
        assert opened.offline == "first"
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == ["first"]


def test_an_error_without_a_number_is_given_in_its_own_words(our_log_dir: Path) -> None:
    with LogDir.open(str(our_log_dir)) as opened, pytest.raises(ChangeFailedError, match="odd"), opened.changing("x"):
        raise OSError("odd")


def test_a_full_disk_is_changed_without_a_mark_for_otherwise_it_could_not_be_cleaned(our_log_dir: Path) -> None:
    with LogDir.open(str(our_log_dir), disk=DiskThat(errno.ENOSPC, {"create"})) as opened, opened.changing("x"):
        assert not marked(our_log_dir)


def test_a_mark_that_cannot_be_made_for_another_reason_stops_the_change(our_log_dir: Path) -> None:
    with (
        LogDir.open(str(our_log_dir), disk=DiskThat(errno.EACCES, {"create"})) as opened,
        pytest.raises(ChangeFailedError, match="Permission denied"),
        opened.changing("x"),
    ):
        pytest.fail("nothing is changed without the mark")


def test_a_mark_that_is_a_directory_stops_nobody(our_log_dir: Path) -> None:
    (our_log_dir / UNCLEAN_FILE).mkdir()
    with LogDir.open(str(our_log_dir)) as opened:
        recover(opened)


def test_checkpoints_that_do_not_fit_are_reported_and_written_by_the_next_open(
    our_log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_offsets(our_log_dir, {("orders", 0): 42})
    disk = full_disk()
    with LogDir.open(str(our_log_dir), disk=disk) as opened, opened.changing("x"):
        opened.checkpoints.take_out([ORDERS])
        opened.write_checkpoints()
    assert "cannot be written (No space left on device)" in caplog.text
    assert marked(our_log_dir), "old entries are still there, so somebody has to look"


def test_a_mark_that_found_no_room_at_first_is_made_at_the_end_where_there_is_something_to_recover(
    our_log_dir: Path,
) -> None:
    disk = DiskThat(errno.ENOSPC, {"create"})
    with LogDir.open(str(our_log_dir), disk=disk) as opened:
        with opened.changing("x"):
            opened.leave_unclean = True
        assert not marked(our_log_dir)
        disk.fails.clear()
    assert marked(our_log_dir)


def test_checkpoints_that_did_not_fit_are_written_at_the_end_where_there_is_room_by_then(our_log_dir: Path) -> None:
    write_offsets(our_log_dir, {("orders", 0): 42})
    disk = full_disk()
    with LogDir.open(str(our_log_dir), disk=disk) as opened:
        with opened.changing("x"):
            opened.checkpoints.take_out([ORDERS])
            opened.write_checkpoints()
        disk.fails.clear()
    assert read_offsets(our_log_dir) == {}


def test_checkpoints_on_a_disk_that_fails_take_it_offline(our_log_dir: Path) -> None:
    write_offsets(our_log_dir, {("orders", 0): 42})
    with (
        LogDir.open(str(our_log_dir), disk=DiskThat(errno.EIO, {"write"})) as opened,
        pytest.raises(OfflineLogDirError),
        opened.changing("x"),
    ):
        opened.checkpoints.take_out([ORDERS])
        opened.write_checkpoints()
    assert (our_log_dir / RECOVERY_POINT_CHECKPOINT).read_text().endswith("orders 0 42\n")


def test_a_log_dir_that_was_closed_is_not_changed_any_more(our_log_dir: Path) -> None:
    opened = LogDir.open(str(our_log_dir))
    opened.close()
    with pytest.raises(LogStoreError), opened.changing("x"):
        pytest.fail("it is closed")
    assert not marked(our_log_dir)


def test_no_descriptor_is_left_behind(our_log_dir: Path) -> None:
    before = open_descriptors()
    with LogDir.open(str(our_log_dir)) as opened:
        with pytest.raises(LogDirInUseError):
            LogDir.open(str(our_log_dir))
        with opened.changing("x"):
            pass
    LogDir.open(str(our_log_dir)).abandon()
    assert open_descriptors() == before


class InterruptedDisk(Disk):
    """Is interrupted as soon as anything is removed."""

    def unlink(self, parent: int, name: str) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_while_it_is_closed_does_not_keep_the_lock(our_log_dir: Path) -> None:
    log_dir = LogDir.open(str(our_log_dir), disk=InterruptedDisk())
    with log_dir.changing("nothing"):
        pass
    with pytest.raises(KeyboardInterrupt):
        log_dir.close()
    LogDir.open(str(our_log_dir)).close()


def test_the_parent_of_a_replica_depends_on_the_scheme(tmp_path: Path) -> None:
    for scheme, folder in ((Scheme.FLAT, ""), (Scheme.BY_TOPIC_ID, "51")):
        with LogDir.open(str(formatted(tmp_path / scheme, scheme=scheme))) as opened:
            for _ in range(2):  # the prefix is made, and then found
                with open_replica_parent(opened, folder, ORDERS) as parent:
                    assert parent.path == f"{opened.path}/{folder}".rstrip("/")


def test_a_tier_without_its_marker_is_no_parent(tmp_path: Path) -> None:
    path = formatted(tmp_path / "d", scheme="namespaced")
    partition = TopicPartition("org:orders", 0)
    with LogDir.open(str(path)) as opened:
        for _ in range(2):
            with pytest.raises(InvalidNamespaceError, match="namespace org was not created"):
                open_replica_parent(opened, "org", partition)
            (path / "org").mkdir(exist_ok=True)
        (path / "org" / MARKER_FILE).touch()
        with open_replica_parent(opened, "org", partition) as parent:
            assert parent.path == f"{path}/org"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_where_the_lock_finds_no_room_the_way_to_some_is_named(tmp_path: Path, number: int) -> None:
    path = formatted(tmp_path)
    (path / ".lock").unlink()
    with pytest.raises(
        ChangeFailedError, match="nothing was changed; to make room for that empty file, move a replica"
    ):
        LogDir.open(str(path), disk=DiskThat(number, {"create"}))
    LogDir.open(str(path)).close()
