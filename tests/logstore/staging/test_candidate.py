"""A candidate for staging is checked again, and only a replica that has not changed is staged."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout.ids import TopicId
from logstore.fs import Directory
from logstore.staging import Candidate
from logstore.staging.candidate import revalidate
from tests.logstore.engine import ORDERS_ID, OTHER_ID, candidate, fill


def change(path: Path, said: Candidate) -> str | None:
    with Directory.open(str(path)) as directory:
        return revalidate(said, directory)


def test_what_is_as_it_was_said_to_be_has_not_changed(tmp_path: Path) -> None:
    replica = fill(tmp_path / "orders-0")
    assert change(replica, candidate()) is None
    assert change(replica, candidate(inode=replica.stat().st_ino)) is None


def test_another_directory_of_the_same_name_is_recognized_by_its_inode(tmp_path: Path) -> None:
    assert "another directory" in (change(fill(tmp_path / "orders-0"), candidate(inode=1)) or "")


@pytest.mark.parametrize(
    ("metadata", "said", "found"),
    [
        (f"version: 0\ntopic_id: {OTHER_ID}".encode(), ORDERS_ID, str(OTHER_ID)),
        (None, ORDERS_ID, "not readable"),
        (b"damaged", ORDERS_ID, "not readable"),
        (f"version: 0\ntopic_id: {OTHER_ID}".encode(), None, "none was expected"),
    ],
)
def test_another_topic_id_is_reported_with_both(
    tmp_path: Path, metadata: bytes | None, said: TopicId | None, found: str
) -> None:
    replica = fill(tmp_path / "orders-0", metadata)
    assert found in (change(replica, candidate(topic_id=said)) or "")
