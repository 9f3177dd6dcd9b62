"""Checkpoints keep what is whole, lose only what is surely stale, and leftovers go only beside the whole file."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout.ours import RepairKind, sum_of
from tests.reconciler.plan.repair_broker import Broker, done, reason

POINT, CLEANER = "recovery-point-offset-checkpoint", "cleaner-offset-checkpoint"
REBUILD, DROP, REMOVE = "rebuild_checkpoint", "drop_checkpoint_entries", "remove_leftover"


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    made = Broker(tmp_path)
    made.replica("orders-0")
    return made


def test_a_checkpoint_that_does_not_parse_keeps_its_whole_lines(broker: Broker) -> None:
    broker.file(POINT, "0\n4\norders 0 5\n\0\0\ngone 1 7\norders 0")
    (action,) = broker.plan(metadata=False).actions
    assert (action.kind, action.path, action.drops) == (REBUILD, POINT, ("gone 1",))
    assert action.lost == ("\\x00\\x00", "orders 0")
    assert action.writes == sum_of(b"0\n1\norders 0 5\n")
    assert "learns the high watermark anew" in action.evidence


def test_a_checkpoint_of_another_version_is_not_taken_for_damage(broker: Broker) -> None:
    broker.file(POINT, "1\n1\norders 0 5\n")
    plan = broker.plan(metadata=False)
    assert plan.actions == ()
    assert "format that is not known" in reason(plan, POINT)


def test_a_checkpoint_that_is_no_file_is_left_alone(broker: Broker) -> None:
    (broker.log_dirs[0] / POINT).mkdir()
    plan = broker.plan(metadata=False)
    assert plan.actions == ()


def test_entries_without_a_directory_are_dropped_and_listed(broker: Broker) -> None:
    broker.file(POINT, "0\n4\norders 0 5\ngone 1 7\nlost 0 1\nmoving 3 9\n")
    broker.replica(f"moving-3.{'0' * 32}-future")
    (action,) = broker.plan(metadata=False).actions
    assert (action.kind, action.drops) == (DROP, ("gone 1", "lost 0"))
    assert action.writes == sum_of(b"0\n2\norders 0 5\nmoving 3 9\n")


def test_an_entry_of_the_other_log_dir_is_stale_in_this_one(broker: Broker) -> None:
    broker.file(POINT, "0\n1\norders 0 5\n", disk=1)
    (action,) = broker.plan(metadata=False).actions
    assert (action.log_dir, action.drops) == (str(broker.log_dirs[1]), ("orders 0",))


def test_negative_partitions_can_be_dropped_too(broker: Broker) -> None:
    broker.file(POINT, "0\n1\norders -1 5\n")
    assert [action.drops for action in broker.plan(metadata=False).actions] == [("orders -1",)]


def test_what_may_lie_in_a_tier_that_cannot_be_listed_is_not_called_stale(tmp_path: Path) -> None:
    broker = Broker(tmp_path, "namespaced")
    for tier in ("org", "org/apache"):
        (broker.log_dirs[0] / tier).mkdir()
        (broker.log_dirs[0] / tier / ".logstore_tier").touch()
    (broker.log_dirs[0] / "org" / "linked").symlink_to(tmp_path)
    broker.file(POINT, "0\n3\norg:linked:orders 0 1\norg:apache:orders 0 2\norders 0 3\n")
    (action,) = broker.plan(metadata=False).actions
    assert action.drops == ("orders 0", "org:apache:orders 0")


def test_by_topic_id_no_entry_is_stale_while_a_directory_does_not_tell_its_topic(tmp_path: Path) -> None:
    broker = Broker(tmp_path, "by-topic-id")
    broker.replica("51/517c94f62e40467e96d3438ddad69e58_0", None)
    broker.file(POINT, "0\n1\norders 0 1\n")
    plan = broker.plan(metadata=False)
    assert plan.actions == ()
    assert "not everything" in reason(plan, POINT)


def test_entries_wait_while_a_duplicate_of_the_log_dir_is_staged(broker: Broker) -> None:
    broker.replica("twice-0", epoch=1)
    broker.replica("twice-0", disk=1, epoch=2)
    broker.file(POINT, "0\n1\ngone 1 7\n")
    plan = broker.plan(metadata=False)
    assert done(plan) == [("stage_duplicate", "twice-0")]
    assert "plan again after" in reason(plan, POINT)
    assert done(broker.plan(metadata=False, only=[RepairKind.DROP_CHECKPOINT_ENTRIES])) == [(DROP, POINT)]


def test_a_leftover_goes_beside_the_whole_file_it_was_to_become(broker: Broker) -> None:
    broker.file(CLEANER, "0\n0\n")
    broker.file(f"{CLEANER}.tmp", "0\n")
    broker.file("meta.properties.tmp", "")
    assert done(broker.plan(metadata=False)) == [(REMOVE, f"{CLEANER}.tmp"), (REMOVE, "meta.properties.tmp")]


@pytest.mark.parametrize(("target", "said"), [(None, "missing"), ("", "empty"), ("7\n1\nx\n", "version 7")])
def test_a_leftover_that_may_be_all_there_is_stays(broker: Broker, target: str | None, said: str) -> None:
    broker.file(f"{CLEANER}.tmp", "0\n0\n")
    if target is not None:
        broker.file(CLEANER, target)
    plan = broker.plan(metadata=False, only=[RepairKind.REMOVE_LEFTOVER])
    assert plan.actions == ()
    assert said in reason(plan, f"{CLEANER}.tmp")


def test_a_leftover_whose_target_nothing_here_can_check_stays(broker: Broker) -> None:
    broker.file("bootstrap.checkpoint", "x")
    broker.file("bootstrap.checkpoint.tmp", "x")
    assert "nothing here can tell" in reason(broker.plan(metadata=False), "bootstrap.checkpoint.tmp")
