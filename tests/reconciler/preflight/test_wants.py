"""What the metadata say of each directory: by topic ID, as a broker asks, and by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout.ids import TopicId
from reconciler.desired import Completeness, DesiredState
from reconciler.preflight import look_at_broker
from reconciler.preflight.wants import UNKNOWN, Wants, ask, is_only_in_sync
from tests.reconciler.preflight.disks import HEX, ORDERS, OTHER, directory_id, log_dir, wanted


def asked(path: Path, states: dict[str, DesiredState]) -> Wants:
    return ask(states, list(look_at_broker([str(path)]).rows()), 0)


@pytest.mark.parametrize(
    ("on_disk", "states", "by_name", "by_topic_id", "stale"),
    [
        (ORDERS, wanted(0), True, True, False),
        (OTHER, wanted(0), True, False, True),
        (None, wanted(0), True, False, False),
        (ORDERS, wanted(1), False, False, False),
        (ORDERS, wanted(0, nodes=(2, 3)), False, False, False),
        # FACTS §6.3: the name is not compared.
        (ORDERS, wanted(0, topic="payments"), False, True, False),
    ],
)
def test_a_replica_is_wanted_by_topic_id_or_by_name(
    tmp_path: Path,
    on_disk: TopicId | None,
    states: dict[str, DesiredState],
    by_name: bool,
    by_topic_id: bool,
    stale: bool,
) -> None:
    path = log_dir(tmp_path / "1", {"orders-0": on_disk})
    want = asked(path, states).about(str(path), "orders-0")
    assert (want.by_name, want.by_topic_id, want.is_stale) == (by_name, by_topic_id, stale)
    assert (want.is_judged, want.is_unwanted) == (True, not by_topic_id)


def test_future_and_delete_dirs_are_asked_about_by_topic_id(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", [f"orders-0.{HEX}-future", f"orders-0.{HEX}-delete", f"orders-1.{HEX}-stray"])
    wants = asked(path, wanted(0))
    found = {
        name: wants.about(str(path), f"orders-{name}").by_topic_id for name in (f"0.{HEX}-future", f"0.{HEX}-delete")
    }
    assert all(found.values())
    assert wants.about(str(path), f"orders-1.{HEX}-stray").is_unwanted


def test_what_incomplete_metadata_do_not_mention_is_not_unwanted(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-7"])
    want = asked(path, wanted(0, completeness=Completeness.INCREMENTAL)).about(str(path), "orders-7")
    assert (want.is_judged, want.by_topic_id, want.is_unwanted) == (True, False, False)


def test_the_log_dir_that_the_controller_assigned_is_told(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-0"])
    for number, here in ((1, True), (2, False)):
        states = wanted(0, directories=(str(directory_id(number)), None))
        assert asked(path, states).about(str(path), "orders-0").assigned_here is here


def test_what_is_wanted_and_lies_nowhere_is_told(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-0"])
    (nowhere,) = asked(path, wanted(0, 1)).nowhere
    assert nowhere.wanted is not None and nowhere.wanted["partition"] == 1


def test_only_a_replica_in_sync_alone_is_the_only_one(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-0"])
    for isr, only in (((1,), True), ((1, 2), False), ((2,), False)):
        assert asked(path, wanted(0, isr=isr)).about(str(path), "orders-0").only_in_sync is only
    assert not is_only_in_sync(None)


def test_without_metadata_nothing_is_known(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "1", ["orders-0"])
    assert asked(path, {}).about(str(path), "orders-0") is UNKNOWN
    assert not UNKNOWN.is_unwanted
