"""What is known of a log dir: compact, and the same as what was put in."""

from __future__ import annotations

import pytest

from logstore.rows import Kind, plain_row
from logstore.watch import RowChange, RowState, name_of_key
from logstore.watch.row_cache import ReplicasWithDirectory, RowCache, key_and_state, net_changes

LIVE = RowState("live", "orders", 0, "ID", "ok")


@pytest.mark.parametrize(
    ("key", "seen"),
    [
        ("orders-0", LIVE),
        ("orders-00", LIVE),
        ("a-b-7", RowState("live", "a-b", 7, "ID", "ok")),
        ("org/apache/orders-0", RowState("live", "org:apache:orders", 0, "ID", "ok")),
        ("orders-0." + "a" * 32 + "-stray", RowState("stray", "orders", 0, "ID", "ok")),
        ("../data.deleting/x_0", RowState("staged", None, 0, "ID", "ok", None, 5)),
        ("lost+found", RowState("foreign", problem="no partition")),
        ("\udcff-0", RowState("live", "\udcff", 0)),
    ],
)
def test_what_was_put_in_comes_out_again(key: str, seen: RowState) -> None:
    known = RowCache()
    assert known.put(key, seen) == (None, seen)
    assert known.put(key, seen) is None
    assert known.get(key) == seen
    assert dict(known.items()) == {key: seen}
    if seen.replica:
        assert known.of_replica(*seen.replica) == [(key, seen)]
    assert known.put(key, None) == (seen, None)
    assert (known.get(key), len(known)) == (None, 0)
    assert known.of_replica("orders", 0) == []


def test_all_directories_of_a_partition_are_found_by_it() -> None:
    known = RowCache()
    rows = {"orders-0": LIVE, "orders-00": LIVE, "orders-0.x-future": LIVE._replace(kind="future")}
    for key, seen in rows.items():
        known.put(key, seen)
    known.put("orders-1", LIVE._replace(partition=1))
    assert dict(known.of_replica("orders", 0)) == rows
    known.put("orders-00", None)
    assert {key for key, _ in known.of_replica("orders", 0)} == {"orders-0", "orders-0.x-future"}


def test_the_replicas_of_a_topic_share_what_their_names_do_not_tell() -> None:
    known = RowCache()
    for partition in range(100):
        known.put(f"orders-{partition}", LIVE._replace(partition=partition))
    assert len({id(kept) for kept in known._rows.values()}) == 1
    known.put("orders-3", None)
    known.compact()
    assert known.get("orders-4") == LIVE._replace(partition=4)


def test_a_name_that_becomes_another_kind_is_found_as_what_it_is_now() -> None:
    known = RowCache()
    known.put("orders-0", LIVE)
    known.put("orders-0", RowState("foreign", problem="a link"))
    assert known.of_replica("orders", 0) == []
    known.put("orders-0", LIVE)
    assert known.of_replica("orders", 0) == [("orders-0", LIVE)]


def test_entries_of_one_checkpoint_have_keys_of_their_own_and_one_name() -> None:
    rows = [plain_row("recovery", Kind.CHECKPOINT_ENTRY, topic="t", partition=number) for number in range(2)]
    keys = [key_and_state(row)[0] for row in rows]
    assert len(set(keys)) == 2
    assert {name_of_key(key) for key in keys} == {"recovery"}


def test_a_partition_is_held_by_a_live_or_a_future_directory() -> None:
    known = RowCache()
    known.put("a-0", RowState("live", "a", 0))
    known.put("b-0.x-future", RowState("future", "b", 0))
    known.put("c-0.x-stray", RowState("stray", "c", 0))
    held = ReplicasWithDirectory(known)
    assert [(topic, 0) in held for topic in "abc"] == [True, True, False]
    assert "a-0" not in held
    assert (set(held), len(held)) == ({("a", 0), ("b", 0)}, 2)


def test_many_changes_of_a_row_are_one_from_the_first_to_the_last() -> None:
    other = LIVE._replace(topic_id="OTHER")
    changes = [
        RowChange("/d", "a-0", None, LIVE),
        RowChange("/d", "b-0", None, LIVE),
        RowChange("/d", "a-0", LIVE, other),
        RowChange("/d", "b-0", LIVE, None),
    ]
    assert net_changes(changes) == [RowChange("/d", "a-0", None, other)]
