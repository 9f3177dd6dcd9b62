"""A candidate for staging is checked again, and only a replica that has not changed is staged."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout.ids import TopicId
from layout.partition_metadata import encode, encode_json
from logstore.fs import Directory
from logstore.staging import Candidate
from logstore.staging.candidate import revalidate, unchanged_inode
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


@pytest.mark.parametrize(
    "metadata", [encode(ORDERS_ID), encode_json(ORDERS_ID, "orders", 0)], ids=["as shipped", "as JSON"]
)
def test_what_a_broker_or_this_engine_wrote_need_not_be_opened(tmp_path: Path, metadata: bytes) -> None:
    replica = fill(tmp_path / "orders-0", metadata)
    with Directory.open(str(tmp_path)) as parent:
        inode = replica.stat().st_ino
        assert unchanged_inode(candidate(), parent, "orders-0") == inode
        assert unchanged_inode(candidate(inode=inode), parent, "orders-0") == inode
        assert unchanged_inode(candidate(inode=inode + 1), parent, "orders-0") is None


@pytest.mark.parametrize(
    "metadata",
    [
        encode(OTHER_ID),
        encode_json(OTHER_ID, "orders", 0),
        encode_json(ORDERS_ID, "orders", 1),
        encode_json(ORDERS_ID, "payments", 0),
        encode_json(ORDERS_ID, "orders", 0) + b"\n",
        encode_json(ORDERS_ID, "orders", 0)[:-1],
        b"",
        b"{",
    ],
)
def test_of_a_file_with_any_other_bytes_nothing_is_sure(tmp_path: Path, metadata: bytes) -> None:
    fill(tmp_path / "orders-0", metadata)
    with Directory.open(str(tmp_path)) as parent:
        assert unchanged_inode(candidate(), parent, "orders-0") is None
