"""What the owner of a log dir may not do with the files in it, by their permissions."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logstore.scan import Denied, denied_files, look_into_directories
from logstore.scan.closed import judge_file, knows_owner

SEGMENT = "00000000000000000000.log"


def judged(folder: Path, name: str, owner: int, *, is_written: bool = True) -> tuple[bool, Denied]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        log_dir: Any = SimpleNamespace(st_uid=owner)
        assert knows_owner(log_dir)
        return judge_file(descriptor, name, log_dir, is_written=is_written)
    finally:
        os.close(descriptor)


@pytest.fixture
def of_root(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let this user be root; the result is another one."""
    monkeypatch.setattr(import_module("logstore.scan.closed"), "_ROOT", os.geteuid())
    return os.geteuid() + 1


@pytest.mark.parametrize(
    ("mode", "to_read", "to_write"),
    [
        (0o666, Denied.NOTHING, Denied.NOTHING),
        (0o664, Denied.NOTHING, Denied.NOTHING),
        (0o644, Denied.NOTHING, Denied.CHANGE),
        (0o640, Denied.NOTHING, Denied.CHANGE),
        (0o600, Denied.READ, Denied.READ),
    ],
)
def test_a_file_that_root_left_is_denied_to_the_owner_as_its_mode_says(
    tmp_path: Path, of_root: int, mode: int, to_read: Denied, to_write: Denied
) -> None:
    (tmp_path / SEGMENT).touch()
    (tmp_path / SEGMENT).chmod(mode)
    assert judged(tmp_path, SEGMENT, of_root, is_written=False) == (True, to_read)
    assert judged(tmp_path, SEGMENT, of_root) == (True, to_write)


def test_a_file_of_a_third_user_may_be_the_brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_root: int
) -> None:
    (tmp_path / SEGMENT).touch(0o600)
    third = os.stat_result((0o100600, 1, 1, 1, of_root + 1, of_root + 1, 0, 0, 0, 0))
    monkeypatch.setattr(os, "stat", lambda *_, **__: third)
    assert judged(tmp_path, SEGMENT, of_root) == (True, Denied.NOTHING)


def test_the_owner_is_told_of_a_file_that_it_may_read_and_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("logstore.scan.closed"), "_ROOT", -1)
    (tmp_path / SEGMENT).touch()
    assert judged(tmp_path, SEGMENT, os.geteuid()) == (True, Denied.NOTHING)
    monkeypatch.setattr(os, "access", lambda _, what, **__: not what & os.W_OK)
    assert judged(tmp_path, SEGMENT, os.geteuid()) == (True, Denied.CHANGE)
    assert judged(tmp_path, SEGMENT, os.geteuid(), is_written=False) == (True, Denied.NOTHING)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_of_each_directory_the_first_file_is_kept_and_of_the_log_dir_what_a_broker_opens_first(tmp_path: Path) -> None:
    for name in (".lock", "meta.properties", "orders-0/00000000000000000005.log", f"orders-0/{SEGMENT}", "notes"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(0o644)
    assert denied_files(str(tmp_path)) == {}, "a log dir of root's denies nothing"
    for path in (tmp_path, tmp_path / "orders-0"):
        os.chown(path, 12345, -1)
    assert denied_files(str(tmp_path)) == {Denied.CHANGE: ".lock"}
    (seen,) = look_into_directories(str(tmp_path))
    assert (seen.denied, seen.denied_files) == (Denied.NOTHING, {Denied.CHANGE: SEGMENT})
    (tmp_path / "meta.properties").chmod(0o600)
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").touch(0o600)
    assert denied_files(str(tmp_path)) == {Denied.CHANGE: ".lock", Denied.READ: "meta.properties"}
    (seen,) = look_into_directories(str(tmp_path))
    assert seen.denied_files == {Denied.CHANGE: SEGMENT, Denied.READ: "leader-epoch-checkpoint"}
