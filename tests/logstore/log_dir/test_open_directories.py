"""Directories that stay open while a batch works in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logstore.log_dir import LogDir, OpenDirectories
from logstore.log_dir.open_directories import MOST_OPEN
from tests.logstore.engine import DiskThat, formatted, open_descriptors


@pytest.fixture
def disk() -> DiskThat:
    return DiskThat()


@pytest.fixture
def log_dir(tmp_path: Path, disk: DiskThat) -> LogDir:
    return LogDir.open(str(formatted(tmp_path / "d")), disk=disk)


def test_no_more_than_some_stay_open_and_none_afterwards(log_dir: LogDir) -> None:
    for number in range(MOST_OPEN + 20):
        os.mkdir(f"{log_dir.path}/{number}")
    before = open_descriptors()
    with OpenDirectories(log_dir) as opened:
        for number in range(MOST_OPEN + 20):
            assert opened.at(str(number)).path == f"{log_dir.path}/{number}"
        assert open_descriptors() == before + MOST_OPEN
    assert open_descriptors() == before
    log_dir.close()


def test_it_says_what_is_there_on_any_level(log_dir: LogDir) -> None:
    os.makedirs(f"{log_dir.path}/org/apache")
    with OpenDirectories(log_dir) as opened:
        assert opened.holds("org/apache")
        assert opened.holds("meta.properties")
        assert not opened.holds("org/kafka")
        assert not opened.holds("net/kafka")
        assert not opened.has("meta.properties/x")
    log_dir.close()


def test_few_are_synced_one_by_one_and_many_by_one_barrier(log_dir: LogDir, disk: DiskThat) -> None:
    for number in range(20):
        os.mkdir(f"{log_dir.path}/{number}")
    with OpenDirectories(log_dir) as opened:
        disk.calls.clear()
        opened.sync(["1", "2", "1", ""])
        assert disk.calls == {"sync": 3}
        disk.calls.clear()
        opened.sync(map(str, range(20)))
        assert disk.calls == {"sync_file_system": 1}
    log_dir.close()
