from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.scheme import Scheme
from logstore.log_dir import META_PROPERTIES_LIMIT, ExpectedIdentity, IdentityFound, discover, read_identity
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
def test_an_empty_file_and_a_broken_one_have_different_states(log_dir: Any, text: str, state: str) -> None:
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
def test_another_identity_is_absent_and_both_values_are_given(log_dir: Any, expected: Any, both: Any) -> None:
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


def _mark(path: Path, sign: str = "meta.properties") -> str:
    path.mkdir(parents=True)
    (path / sign).touch()
    return str(path)


@pytest.mark.parametrize("sign", ["meta.properties", *OFFSET_CHECKPOINTS])
def test_each_file_of_a_log_dir_is_a_sign(tmp_path: Path, sign: str) -> None:
    found = _mark(tmp_path / "broker" / "disk", sign)
    assert discover(str(tmp_path)) == [found]


def test_the_metadata_log_is_a_sign(tmp_path: Path) -> None:
    (tmp_path / "data" / "__cluster_metadata-0").mkdir(parents=True)
    assert discover(str(tmp_path)) == [f"{tmp_path}/data"]


def test_a_log_dir_itself_is_found_and_not_searched(tmp_path: Path) -> None:
    log_dir = _mark(tmp_path / "data")
    _mark(tmp_path / "data" / "backup")
    assert discover(log_dir) == [log_dir]


def test_log_dirs_of_different_depths_come_sorted(tmp_path: Path) -> None:
    wanted = [_mark(tmp_path / "b"), _mark(tmp_path / "a" / "x" / "y"), _mark(tmp_path / "c" / "z")]
    assert discover(str(tmp_path)) == sorted(wanted)


def test_six_levels_are_searched_and_no_more(tmp_path: Path) -> None:
    sixth = _mark(tmp_path / "1" / "2" / "3" / "4" / "5" / "6")
    _mark(tmp_path / "one" / "2" / "3" / "4" / "5" / "6" / "7")
    assert discover(str(tmp_path)) == [sixth]


def test_without_any_the_path_itself_comes_back(tmp_path: Path) -> None:
    assert discover(str(tmp_path)) == [str(tmp_path)]
    assert discover(f"{tmp_path}/none") == [f"{tmp_path}/none"]
    assert discover("nul\0") == ["nul\0"]


def test_no_link_is_followed(tmp_path: Path) -> None:
    real = _mark(tmp_path / "real" / "data")
    (tmp_path / "real" / "again").symlink_to(real)
    (tmp_path / "real" / "loop").symlink_to(tmp_path)
    assert discover(str(tmp_path)) == [real]


def test_what_cannot_be_listed_may_be_a_log_dir_but_lost_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _mark(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "lost+found").mkdir()
    scandir = os.scandir

    def refusing(path: str) -> object:
        if path.endswith(("bad", "lost+found")):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert discover(str(tmp_path)) == [str(tmp_path / "bad"), found]


def test_a_file_beyond_the_limit_is_unreadable(log_dir: Any) -> None:
    os.truncate(log_dir.path / "meta.properties", META_PROPERTIES_LIMIT + 1)
    assert read_identity(str(log_dir)).state == MetadataState.UNREADABLE


def test_without_an_identity_there_is_no_scheme() -> None:
    assert IdentityFound(None, MetadataState.MISSING, "gone").scheme is None
