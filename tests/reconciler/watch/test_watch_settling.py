"""Verdicts that are held back until the metadata has caught up with the disk."""

from __future__ import annotations

from reconciler.desired import BrokerKey
from reconciler.watch import VerdictChange
from reconciler.watch.settling import Settling


def change(before: str, after: str, name: str | None = "t-0") -> VerdictChange:
    log_dir = None if name is None else "/d"
    return VerdictChange(log_dir, name, BrokerKey("c", 1), "t", 0, None, None, before, after, "")


def shown(changes: list[VerdictChange]) -> list[tuple[str, str]]:
    return [(each.before, each.after) for each in changes]


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


def test_a_new_topic_is_not_called_unknown_before_the_metadata_was_read_again() -> None:
    clock = Clock()
    settling = Settling(clock, settle_s=2.0)
    assert settling.take([change("", "UNKNOWN_TOPIC")], newer_than=10.0) == []
    assert settling.is_waiting
    clock.now = 100.0
    assert settling.settled(read_at=9.0) == []
    assert shown(settling.take([change("UNKNOWN_TOPIC", "OK")], newer_than=10.0)) == [("", "OK")]
    assert not settling.is_waiting and settling.settled(read_at=101.0) == []


def test_what_the_metadata_still_does_not_know_after_it_was_read_again_is_reported() -> None:
    clock = Clock()
    settling = Settling(clock, settle_s=2.0)
    settling.take([change("", "UNKNOWN_TOPIC")], newer_than=10.0)
    clock.now = 11.0
    assert settling.settled(read_at=10.5) == []
    clock.now = 12.0
    assert shown(settling.settled(read_at=10.5)) == [("", "UNKNOWN_TOPIC")]


def test_a_topic_that_is_deleted_is_not_missing_on_the_way() -> None:
    settling = Settling(Clock(), settle_s=2.0)
    assert settling.take([change("OK", "MISSING"), change("", "MARKED_DELETE", "t-0.x-delete")], 10.0) == [
        change("", "MARKED_DELETE", "t-0.x-delete")
    ]
    assert shown(settling.take([change("MISSING", "", None)], 10.0)) == [("OK", "")]


def test_a_replica_that_is_back_was_never_away_and_one_that_newer_metadata_still_wants_is_missing() -> None:
    clock = Clock()
    settling = Settling(clock, settle_s=2.0)
    settling.take([change("OK", "MISSING")], 10.0)
    assert settling.take([change("MISSING", "OK")], 10.0) == []
    settling.take([change("OK", "MISSING")], 10.0)
    clock.now = 12.0
    # A live cluster is asked at intervals, and may have been told meanwhile that the topic is to be deleted.
    assert settling.is_waiting and settling.settled(read_at=9.0) == []
    assert shown(settling.settled(read_at=11.0)) == [("OK", "MISSING")]
    assert not settling.is_waiting
