"""All rules together: the order of findings, the totals, and the answer in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.preflight import StartEffect, look_at_broker
from tests.reconciler.preflight.disks import HEX, ask, asked, effects, identity, kraft_log_dir, log_dir, of_rule, wanted
from tests.reconciler.preflight.scenarios import empty_metadata, of_level


def test_a_clean_broker_is_described_in_a_sentence(tmp_path: Path) -> None:
    answer = ask(kraft_log_dir(tmp_path / "1", ["orders-0"]), states=wanted(0))
    assert (answer.starts, answer.is_clean, answer.totals) == (True, True, {})
    assert answer.sentence == "a broker of release 3.9.0 in KRaft mode would start here"


def test_what_would_happen_is_counted_by_replicas(tmp_path: Path) -> None:
    path = kraft_log_dir(tmp_path / "1", ["orders-0", "orders-5", "orders-6", "orders-7", f"orders-8.{HEX}-delete"])
    answer = ask(path, states=wanted(0))
    assert answer.sentence == (
        "a broker of release 3.9.0 in KRaft mode would start here; 1 replica would be deleted; "
        "3 replicas would be renamed to -stray"
    )
    assert (answer.starts, answer.is_clean) == (True, False)


def test_what_stops_it_comes_first_and_the_rest_waits(tmp_path: Path) -> None:
    path = kraft_log_dir(tmp_path / "1", {"orders-0": None})
    (path / "lost+found").mkdir()
    answer = ask(path, states=wanted(0))
    assert [effect for _, effect in effects(answer)] == [StartEffect.STARTUP_ABORTS, StartEffect.RENAMED_TO_STRAY]
    assert "would not start here, for 1 reason; once it does: 1 replica would be renamed" in answer.sentence


def test_log_dirs_that_go_offline_are_counted_once_each(tmp_path: Path) -> None:
    second = log_dir(tmp_path / "2", ["orders-0", "orders-1"], identity(number=2))
    for name in ("orders-0", "orders-1"):
        (second / name / "partition.metadata").write_bytes(b"x")
    answer = ask([kraft_log_dir(tmp_path / "1"), second])
    assert answer.totals == {StartEffect.LOG_DIR_OFFLINE: 1}
    assert "1 log dir would go offline" in answer.sentence


def test_without_metadata_it_says_what_it_cannot_know(tmp_path: Path) -> None:
    path = kraft_log_dir(tmp_path / "1", ["orders-0"])
    assert "without metadata" in ask(path).sentence
    assert "without metadata" not in ask(path, states=wanted(0)).sentence
    assert "without metadata" not in ask(kraft_log_dir(tmp_path / "2")).sentence


def test_metadata_that_know_no_topic_would_cost_every_replica(tmp_path: Path) -> None:
    path = kraft_log_dir(tmp_path / "1", ["orders-0", "orders-1"])
    answer = ask(path, states=empty_metadata())
    assert answer.totals == {StartEffect.RENAMED_TO_STRAY: 2}
    assert ask(path, "3.5", states=empty_metadata()).totals == {StartEffect.DELETED: 2}
    assert ask(path, "3.9", "migration", empty_metadata()).is_clean


@pytest.mark.parametrize(
    ("level", "release", "starts"),
    [(21, "3.3", False), (21, "3.8", False), (21, "3.9", True), (21, "4.3", True), (7, "3.3", True), (8, "3.3", False),
     (31, "4.2", False), (31, "4.3", True), (0, "3.0", True)],
)  # fmt: skip
def test_a_broker_halts_at_metadata_of_a_later_feature_level(
    tmp_path: Path, level: int, release: str, starts: bool
) -> None:
    answer = ask(kraft_log_dir(tmp_path / "1"), release, states=of_level(level))
    assert answer.starts == starts
    assert [rule for rule, _ in effects(answer)] == ["feature_level_too_new"] * (not starts)


def test_metadata_of_a_later_feature_level_name_the_release_that_brought_it(tmp_path: Path) -> None:
    (found,) = of_rule(ask(kraft_log_dir(tmp_path / "1"), "3.3", states=of_level(21)), "feature_level_too_new")
    assert found.problem.startswith("a test has metadata.version 21, which came with 3.9: 3.3.0 cannot read that level")
    assert not of_rule(ask(kraft_log_dir(tmp_path / "2"), "3.3", "zookeeper", of_level(21)), "feature_level_too_new")


def test_the_answer_speaks_of_the_broker_that_was_asked_about(tmp_path: Path) -> None:
    assert ask(look_at_broker([str(kraft_log_dir(tmp_path / "1"))]), "4.0").asked == asked("4.0")
