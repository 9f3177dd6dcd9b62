from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from layout.scheme import UNCLEAN_FILE
from logstore import ChangeRefusedError, LogDirInUseError, NotALogDirError, OfflineLogDirError
from logstore.fs import Disk
from logstore.log_dir import LogDir
from logstore.staging import FallbackRecords
from logstore.store import opening, recover_all
from logstore.store.opening import open_log_dirs
from tests.logstore.engine import DiskThat, formatted, open_descriptors

UNIQUE = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(formatted(tmp_path / name, number)) for number, name in enumerate("abc")]


def closed(log_dirs: list[LogDir]) -> list[str]:
    for log_dir in log_dirs:
        log_dir.close()
    return [log_dir.path for log_dir in log_dirs]


def test_all_are_open_in_the_order_given(paths: list[str]) -> None:
    opened, offline = open_log_dirs(paths[::-1], Disk())
    assert (closed(opened), offline) == (paths[::-1], {})


@pytest.mark.parametrize("other", ["{}", "{}/", "{}/.", "{}/../a", "link"])
def test_two_paths_that_are_one_directory_are_refused_before_any_lock_is_taken(
    paths: list[str], tmp_path: Path, other: str
) -> None:
    # FACTS §1.5
    (tmp_path / "link").symlink_to(paths[0])
    (Path(paths[0]) / ".lock").unlink()
    second = str(tmp_path / "link") if other == "link" else other.format(paths[0])
    with pytest.raises(ChangeRefusedError, match="are one log dir: give it once"):
        open_log_dirs([paths[0], second], Disk())
    assert not (Path(paths[0]) / ".lock").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"node_id": 2}, "node id is 2"), ({}, r"directory.id .* is also that of")],
)
def test_log_dirs_of_different_brokers_and_copies_of_one_are_refused_and_unlocked(
    paths: list[str], tmp_path: Path, change: dict[str, int], reason: str
) -> None:
    formatted(tmp_path / "x", 0 if not change else 9, **change)
    descriptors = open_descriptors()
    with pytest.raises(ChangeRefusedError, match=f"not one broker's: .*{reason}"):
        open_log_dirs([*paths, str(tmp_path / "x")], Disk())
    assert open_descriptors() == descriptors
    closed(open_log_dirs(paths, Disk())[0])


def test_a_refusal_leaves_the_mark_of_a_log_dir_that_was_not_recovered(paths: list[str], tmp_path: Path) -> None:
    (Path(paths[0]) / UNCLEAN_FILE).touch()
    formatted(tmp_path / "x", 9, node_id=2)
    with pytest.raises(ChangeRefusedError):
        open_log_dirs([paths[0], str(tmp_path / "x")], Disk())
    assert (Path(paths[0]) / UNCLEAN_FILE).exists()


def test_one_that_is_in_use_stops_all_and_the_others_are_unlocked_again(paths: list[str]) -> None:
    descriptors = open_descriptors()
    with LogDir.open(paths[2]), pytest.raises(LogDirInUseError):
        open_log_dirs(paths, Disk())
    assert open_descriptors() == descriptors
    closed(open_log_dirs(paths, Disk())[0])


@pytest.mark.parametrize("what", ["absent", "a file", "not formatted"])
def test_one_that_is_no_log_dir_stops_all(paths: list[str], tmp_path: Path, what: str) -> None:
    other = tmp_path / "x"
    if what == "a file":
        other.write_text("x")
    elif what == "not formatted":
        other.mkdir()
    with pytest.raises(NotALogDirError):
        open_log_dirs([*paths, str(other)], Disk())


def test_a_path_that_is_none_is_an_error_and_no_traceback(paths: list[str]) -> None:
    # Kafka's own LogManagerTest.testCreateLogWithInvalidLogDir
    with pytest.raises(NotALogDirError):
        open_log_dirs([*paths, "\0"], Disk())


@pytest.mark.parametrize("damage", ["lock", "identity"])
def test_one_whose_disk_fails_is_offline_with_the_reason_and_the_others_are_open(paths: list[str], damage: str) -> None:
    # FACTS §1.5
    disk: Disk = Disk()
    if damage == "lock":
        Path(paths[1], ".lock").unlink(missing_ok=True)
        for path in (paths[0], paths[2]):
            Path(path, ".lock").touch()
        disk = DiskThat(errno.EIO, {"create"})
    else:
        Path(paths[1], "meta.properties").unlink()
        os.mkfifo(Path(paths[1], "meta.properties"))
    opened, offline = open_log_dirs(paths, disk)
    assert closed(opened) == [paths[0], paths[2]]
    assert list(offline) == [paths[1]]


def test_where_every_disk_fails_there_is_nothing_to_open(paths: list[str]) -> None:
    for path in paths:
        Path(path, ".lock").unlink(missing_ok=True)
    with pytest.raises(OfflineLogDirError, match=r"no log dir can be used: .*Input/output error"):
        open_log_dirs(paths, DiskThat(errno.EIO, {"create"}))
    with pytest.raises(OfflineLogDirError, match="none was given"):
        open_log_dirs([], Disk())


def test_only_log_dirs_that_came_to_no_clean_end_are_recovered(paths: list[str]) -> None:
    for path in paths:
        Path(path, f"orders-0.{UNIQUE}-delete").mkdir()
    Path(paths[1], UNCLEAN_FILE).touch()
    opened, _ = open_log_dirs(paths, Disk())
    recover_all(opened, FallbackRecords(None))
    closed(opened)
    left = [Path(path, f"orders-0.{UNIQUE}-delete").exists() for path in paths]
    assert left == [True, False, True]
    assert not Path(paths[1], UNCLEAN_FILE).exists()


def test_one_whose_disk_fails_while_it_is_recovered_does_not_stop_the_others(paths: list[str]) -> None:
    for path in paths[:2]:
        Path(path, f"orders-0.{UNIQUE}-delete").mkdir()
        Path(path, UNCLEAN_FILE).touch()
    opened, _ = open_log_dirs(paths, DiskThat(errno.EIO, {"rmdir"}, Path(paths[0])))
    recover_all(opened, FallbackRecords(None))
    assert [log_dir.offline is not None for log_dir in opened] == [True, False, False]
    closed(opened)
    assert Path(paths[0], UNCLEAN_FILE).exists()
    assert not Path(paths[1], f"orders-0.{UNIQUE}-delete").exists()


def test_an_interrupt_between_two_log_dirs_unlocks_what_was_open(paths: list[str], monkeypatch: Any) -> None:
    real, count = LogDir.open, []

    def interrupted(path: str, **options: Any) -> LogDir:
        count.append(path)
        if len(count) == 3:
            raise KeyboardInterrupt
        return real(path, **options)

    descriptors = open_descriptors()
    monkeypatch.setattr(opening.LogDir, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_log_dirs(paths, Disk())
    assert open_descriptors() == descriptors
