"""What the log dirs of one broker must agree on."""

from __future__ import annotations

import pytest

from layout.ids import DirectoryId
from layout.log_dir_set import FailedLogDir, LogDirSet, Requirement, startup_problems
from layout.meta_properties import MetaProperties

ONE, TWO = DirectoryId(b"\x01" * 16), DirectoryId(b"\x02" * 16)


def test_every_log_dir_is_normal_empty_or_failed() -> None:
    identity = MetaProperties(1, "c", 1)
    found = LogDirSet({"/a": identity, "/b": None, "/c": FailedLogDir("EIO")})
    assert (found.normal, found.empty, found.failed) == ({"/a": identity}, frozenset({"/b"}), {"/c": "EIO"})


def test_cluster_and_node_are_the_first_that_are_known() -> None:
    found = LogDirSet({"/a": None, "/b": MetaProperties(0), "/c": MetaProperties(0, "c", 7)})
    assert (found.cluster_id, found.node_id) == ("c", 7)


def test_log_dirs_that_agree_give_no_problem() -> None:
    found = LogDirSet({"/a": MetaProperties(1, "c", 1, ONE), "/b": MetaProperties(1, "c", 1, TWO)}, "/a")
    assert startup_problems(found, Requirement.KRAFT, "c", 1) == []


def test_a_file_that_does_not_name_its_cluster_or_node_contradicts_nobody() -> None:
    found = LogDirSet({"/a": MetaProperties(0), "/b": MetaProperties(0, "c", 1)})
    assert startup_problems(found, Requirement.VERSION_0, "c", 1) == []


def test_a_failed_or_empty_log_dir_is_no_problem_by_itself() -> None:
    found = LogDirSet({"/a": MetaProperties(0, "c", 1), "/b": None, "/c": FailedLogDir("EIO")})
    assert startup_problems(found) == []


def problem(found: LogDirSet, requirement: Requirement = Requirement.NONE, **expected: object) -> str:
    """The only problem there is."""
    problems = startup_problems(found, requirement, **expected)  # type: ignore[arg-type]
    assert len(problems) == 1
    return problems[0]


def test_two_clusters_or_two_nodes_are_a_problem_that_names_the_second_file() -> None:
    found = LogDirSet({"/a": MetaProperties(1, "c", 1), "/b": MetaProperties(1, "d", 1)})
    assert problem(found) == "/b/meta.properties: cluster.id is 'd', expected 'c'"
    found = LogDirSet({"/a": MetaProperties(1, "c", 1), "/b": MetaProperties(1, "c", 2)})
    assert problem(found) == "/b/meta.properties: the node id is 2, expected 1"


def test_another_cluster_or_node_than_expected_is_a_problem() -> None:
    found = LogDirSet({"/a": MetaProperties(1, "c", 1)})
    assert "expected 'x'" in problem(found, cluster_id="x")
    assert "expected 0" in problem(found, node_id=0)


def test_a_directory_id_used_twice_names_both_log_dirs() -> None:
    found = LogDirSet({"/a": MetaProperties(1, "c", 1, ONE), "/b": MetaProperties(1, "c", 1, ONE)})
    assert problem(found).startswith("/b/") and problem(found).endswith("is also that of /a")


@pytest.mark.parametrize("reserved", [DirectoryId.MIGRATING, DirectoryId.UNASSIGNED, DirectoryId.LOST])
def test_a_reserved_directory_id_is_a_problem(reserved: DirectoryId) -> None:
    assert "reserved" in problem(LogDirSet({"/a": MetaProperties(1, "c", 1, reserved)}))


@pytest.mark.parametrize(
    ("requirement", "log_dirs", "words"),
    [
        (Requirement.VERSION_0, {"/a": MetaProperties(1, "c", 1)}, "version 1 is not expected"),
        (Requirement.ONE_NORMAL, {"/a": None}, "no readable meta.properties"),
        (Requirement.METADATA_LOG_DIR, {"/a": None}, "no metadata log dir is given"),
        (Requirement.NONE_EMPTY, {"/a": None}, "/a: no meta.properties"),
    ],
)
def test_each_requirement_is_a_problem_only_where_it_is_asked(
    requirement: Requirement, log_dirs: dict[str, MetaProperties | FailedLogDir | None], words: str
) -> None:
    assert words in problem(LogDirSet(log_dirs), requirement)
    assert startup_problems(LogDirSet(log_dirs)) == []


def test_a_failed_metadata_log_dir_is_always_a_problem() -> None:
    assert problem(LogDirSet({"/a": FailedLogDir("EIO")}, "/a")) == "metadata log dir /a: EIO"


def test_all_problems_come_at_once() -> None:
    found = LogDirSet({"/a": MetaProperties(1, "c", 1, ONE), "/b": MetaProperties(1, "d", 2, ONE), "/e": None})
    assert len(startup_problems(found, Requirement.KRAFT | Requirement.VERSION_0)) == 7
