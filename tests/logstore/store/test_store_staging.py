"""Replicas staged and restored through a store: copies of duplicates, disks that are full or offline."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from layout.topic import TopicPartition
from logstore.log_dir import LogDir
from tests.logstore.engine import ORDERS, ORDERS_ID, OTHER_ID, DiskThat, fill, formatted, opened

WHY = ("STALE_ID", "it was re-created")


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Two log dirs of one broker, each with a copy of orders-0: the first under another ID than the second."""
    found = [formatted(tmp_path / f"disk{number}", number) for number in (1, 2)]
    for path, topic_id in zip(found, (OTHER_ID, ORDERS_ID), strict=True):
        fill(path / "orders-0", f"version: 0\ntopic_id: {topic_id}".encode())
    return found


@pytest.mark.parametrize("which", [0, 1])
def test_the_copy_that_is_left_is_the_live_replica(paths: list[Path], which: int) -> None:
    with opened(*paths) as store:
        copies = sorted([store.get(ORDERS), *store.duplicates], key=lambda copy: copy.log_dir)
        outcome = store.stage_copies({copies[which]: WHY})
        assert [staged.topic_id for staged in outcome.staged] == [(OTHER_ID, ORDERS_ID)[which]]
        assert store.get(ORDERS) == copies[1 - which]
        assert store.duplicates == []
    with opened(*paths) as store:
        assert store.get(ORDERS).topic_id == (ORDERS_ID, OTHER_ID)[which]
        assert (len(store), store.duplicates) == (1, [])


def test_a_copy_that_is_another_directory_by_now_is_refused(paths: list[Path]) -> None:
    with opened(*paths) as store:
        (copy,) = store.duplicates
        (Path(copy.log_dir) / "orders-0").rename(Path(copy.log_dir) / "clicks-0")
        fill(Path(copy.log_dir) / "orders-0")
        outcome = store.stage_copies({copy: WHY})
        assert outcome.staged == []
        assert "another directory" in outcome.refused[0].reason
        assert store.duplicates == [copy]


def test_a_copy_on_a_disk_that_is_offline_is_refused(paths: list[Path]) -> None:
    with opened(*paths) as store:
        (copy,) = store.duplicates
        log_dir: LogDir = next(each for each in store.log_dirs if each.path == copy.log_dir)
        log_dir.go_offline("it failed")
        outcome = store.stage_copies({copy: WHY})
        assert (outcome.staged, len(outcome.refused)) == ([], 1)
        assert "offline" in outcome.refused[0].reason


def test_a_full_disk_takes_as_many_as_it_has_names_for_and_the_others_stay_live(tmp_path: Path) -> None:
    path = formatted(tmp_path / "disk")
    partitions = [TopicPartition("t", number) for number in range(7)]
    for partition in partitions:
        fill(path / str(partition))
    disk = DiskThat(errno.ENOSPC)
    with opened(path, disk=disk) as store:
        store.create(ORDERS, ORDERS_ID)
        store.stage([ORDERS], *WHY)  # the log dir is marked, and the ledger is made
        disk.fails, disk.after = {"rename"}, 3
        outcome = store.stage(partitions, *WHY)
        assert [staged.partition for staged in outcome.staged] == partitions[:3]
        assert "has no room for one more name" in outcome.refused[0].reason
        assert [partition for partition in partitions if store.find(partition)] == partitions[3:]


def test_a_replica_on_a_disk_that_is_offline_is_refused_with_the_reason(paths: list[Path]) -> None:
    with opened(paths[0]) as store:
        store.log_dirs[0].go_offline("it failed")
        (refused,) = store.stage([ORDERS], *WHY).refused
        assert (refused.candidate.partition, refused.reason) == (ORDERS, "it failed")
