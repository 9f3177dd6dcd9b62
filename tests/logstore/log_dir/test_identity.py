from __future__ import annotations

import os
from typing import Any

import pytest

from layout.scheme import Scheme
from logstore.log_dir import ExpectedIdentity, read_identity
from logstore.rows import MetadataState


def test_the_identity_that_is_there_is_read(log_dir: Any) -> None:
    found = read_identity(str(log_dir))
    assert (found.state, found.problem, found.scheme) == (MetadataState.OK, None, None)
    assert found.identity is not None
    assert (found.identity.cluster_id, found.identity.node_id) == ("C", 1)
    assert str(found.identity.directory_id) == log_dir.directory_id


def test_a_missing_file_is_no_identity(log_dir: Any) -> None:
    (log_dir.path / "meta.properties").unlink()
    found = read_identity(str(log_dir))
    assert (found.identity, found.state) == (None, MetadataState.MISSING)
    assert "whether its disk is mounted" in (found.problem or "")


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", MetadataState.EMPTY),
        (" \n", MetadataState.EMPTY),
        ("version=0\ncluster.id=C\n", MetadataState.EMPTY),  # legal in version 0, but it names nobody
        ("version=1\ncluster.id=C\n", MetadataState.MALFORMED),
        ("version=9\n", MetadataState.MALFORMED),
        ("version=1\ncluster.id=C\nnode.id=1 \n", MetadataState.MALFORMED),  # trailing space (FACTS §2.2)
        ("version=1\ncluster.id=C\nnode.id=1\nlogstore.scheme=spiral\n", MetadataState.MALFORMED),
    ],
)
def test_a_file_that_says_nothing_is_told_from_one_that_is_broken(log_dir: Any, text: str, state: str) -> None:
    log_dir.file("meta.properties", text)
    found = read_identity(str(log_dir))
    assert found.state == state
    assert found.problem
    assert found.scheme is None


def test_a_fifo_in_place_of_the_file_blocks_nobody(log_dir: Any) -> None:
    (log_dir.path / "meta.properties").unlink()
    os.mkfifo(log_dir.path / "meta.properties")
    found = read_identity(str(log_dir))
    assert found.state == MetadataState.UNREADABLE
    assert "a FIFO" in (found.problem or "")


def test_the_scheme_of_a_log_dir_that_is_ours_is_known(log_dir: Any) -> None:
    log_dir.identity(extra="logstore.scheme=by-topic-id\n")
    assert read_identity(str(log_dir)).scheme is Scheme.BY_TOPIC_ID


@pytest.mark.parametrize(
    ("expected", "both"),
    [
        (ExpectedIdentity(cluster_id="D"), ("cluster.id is C", "D was expected")),
        (ExpectedIdentity(node_id=2), ("node.id is 1", "2 was expected")),
        (ExpectedIdentity(directory_id="AAAAAAAAAAAAAAAAAAAAZA"), ("directory.id is s33A", "ZA was expected")),
    ],
)
def test_another_identity_is_absent_and_both_values_are_told(log_dir: Any, expected: Any, both: Any) -> None:
    found = read_identity(str(log_dir), expected)
    assert found.state == MetadataState.ABSENT
    assert all(value in (found.problem or "") for value in both)
    assert found.identity is not None


def test_the_expected_identity_is_no_problem(log_dir: Any) -> None:
    expected = ExpectedIdentity("C", 1, log_dir.directory_id)
    assert read_identity(str(log_dir), expected).state == MetadataState.OK


def test_a_directory_id_that_is_missing_is_not_the_expected_one(log_dir: Any) -> None:
    log_dir.file("meta.properties", "version=1\ncluster.id=C\nnode.id=1\n")
    found = read_identity(str(log_dir), ExpectedIdentity(directory_id=log_dir.directory_id))
    assert found.state == MetadataState.ABSENT
