"""What is closed to this user alone, and what the broker may not read either."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from logstore.scan import is_closed

KAFKA, OTHER = 92, 4711
"""Users who are not root."""


@pytest.fixture
def owned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log dir in which nothing may be read; names that end in ``.other`` belong to another user than the rest."""
    for name in ("1/orders-0", "1/orders-0.other", "1/deleting", "1.deleting"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "1" / "link").symlink_to("orders-0")
    (tmp_path / "1" / "meta.properties").touch()
    lstat, stat = os.lstat, os.stat

    def owner(status: os.stat_result, path: str) -> SimpleNamespace:
        return SimpleNamespace(st_mode=status.st_mode, st_uid=OTHER if path.endswith(".other") else KAFKA)

    monkeypatch.setattr(os, "lstat", lambda path: owner(lstat(path), str(path)))
    monkeypatch.setattr(os, "stat", lambda path: owner(stat(path), str(path)))
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    return tmp_path / "1"


@pytest.mark.parametrize("name", ["meta.properties", "orders-0"])
def test_what_the_owner_of_the_log_dir_may_read_is_closed_to_others_alone(
    owned: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_closed(str(owned), name)
    monkeypatch.setattr(os, "geteuid", lambda: KAFKA)
    assert not is_closed(str(owned), name), "the broker may not read it either"


@pytest.mark.parametrize("name", [".", "deleting", "../1.deleting"])
def test_the_log_dir_itself_and_what_no_broker_reads_are_closed_whoever_owns_them(
    owned: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_closed(str(owned), name)
    monkeypatch.setattr(os, "geteuid", lambda: KAFKA)
    assert is_closed(str(owned), name)


def test_what_belongs_to_somebody_else_than_the_log_dir_is_closed_to_the_broker_too(
    owned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_closed(str(owned), "orders-0.other")
    lstat = os.lstat
    monkeypatch.setattr(os, "stat", lambda path: SimpleNamespace(st_mode=lstat(path).st_mode, st_uid=0))
    assert is_closed(str(owned), "orders-0.other"), "a broker that runs as root may read everything"


def test_what_is_not_there_or_is_a_link_is_not_closed(owned: Path) -> None:
    assert not any(is_closed(str(owned), name) for name in ("absent", "link", "a\0b"))


def test_what_lies_where_nobody_may_look_is_closed_as_the_directory_above_it_is(
    owned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstat = os.lstat

    def refused(path: str) -> os.stat_result:
        if path.endswith("partition.metadata") or path.endswith("orders-7"):
            raise PermissionError(13, "Permission denied", path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", refused)
    names = ("orders-0", "orders-0.other")
    assert [is_closed(str(owned), f"{name}/partition.metadata") for name in names] == [True, False]
    assert is_closed(str(owned), "orders-7"), "the log dir itself may not be entered"


def test_what_may_be_read_is_not_closed(owned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: True)
    assert not is_closed(str(owned), "orders-0")
