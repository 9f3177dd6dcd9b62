"""Copies of a partition that is live on two disks: staged one by one, and what is left is the live replica."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.log_dir import LogDir
from tests.logstore.engine import ORDERS, ORDERS_ID, OTHER_ID, fill, formatted, opened

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
        copies = sorted([store.get(ORDERS), *store.doubled], key=lambda copy: copy.log_dir)
        outcome = store.stage_copies({copies[which]: WHY})
        assert [staged.topic_id for staged in outcome.staged] == [(OTHER_ID, ORDERS_ID)[which]]
        assert store.get(ORDERS) == copies[1 - which]
        assert store.doubled == []
    with opened(*paths) as store:
        assert store.get(ORDERS).topic_id == (ORDERS_ID, OTHER_ID)[which]
        assert (len(store), store.doubled) == (1, [])


def test_a_copy_that_is_another_directory_by_now_is_refused(paths: list[Path]) -> None:
    with opened(*paths) as store:
        (copy,) = store.doubled
        (Path(copy.log_dir) / "orders-0").rename(Path(copy.log_dir) / "clicks-0")
        fill(Path(copy.log_dir) / "orders-0")
        outcome = store.stage_copies({copy: WHY})
        assert outcome.staged == []
        assert "another directory" in outcome.refused[0].reason
        assert store.doubled == [copy]


def test_a_copy_on_a_disk_that_is_offline_is_refused(paths: list[Path]) -> None:
    with opened(*paths) as store:
        (copy,) = store.doubled
        log_dir: LogDir = next(each for each in store.log_dirs if each.path == copy.log_dir)
        log_dir.go_offline("it failed")
        outcome = store.stage_copies({copy: WHY})
        assert (outcome.staged, len(outcome.refused)) == ([], 1)
        assert "offline" in outcome.refused[0].reason
