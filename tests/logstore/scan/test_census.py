from __future__ import annotations

from collections.abc import Sequence

from logstore.rows.columns import Value
from logstore.scan.census import Census


def _census(*rows: Sequence[Value]) -> Census:
    """A census of rows: name, kind, topic, partition."""
    census = Census()
    census.add([list(column) for column in zip(*rows, strict=True)])
    return census


def test_live_and_future_directories_hold_a_replica_and_others_do_not() -> None:
    census = _census(
        ("a-0", "live", "a", 0),
        ("b-1.x-future", "future", "b", 1),
        ("c-2.x-delete", "delete", "c", 2),
        ("deleting/x_3", "staged", "d", 3),
        ("junk", "foreign", None, None),
    )
    assert ("a", 0) in census
    assert ("b", 1) in census
    assert [replica in census for replica in (("a", 1), ("c", 2), ("d", 3), "a-0", None)] == [False] * 5
    assert (census.live, census.directories) == ({"a-0"}, 1)


def test_names_that_are_spelt_as_usual_are_kept_and_no_new_texts_made() -> None:
    names = ["orders-0", "orders-1"]
    census = Census()
    census.add([names, ["live"] * 2, ["orders"] * 2, [0, 1]])
    assert {id(name) for name in census.live} == {id(name) for name in names}


def test_a_replica_that_is_spelt_in_two_ways_has_two_directories() -> None:
    census = _census(("a-0", "live", "a", 0), ("a-00", "live", "a", 0))
    assert (census.live, census.directories) == ({"a-0"}, 2)


def test_names_in_tiers_and_by_topic_id_are_counted_under_their_topics() -> None:
    census = _census(("org/a-0", "live", "org:a", 0), ("51/517c_4", "live", "b", 4), ("52/528d_5", "live", None, 5))
    assert (census.live, census.directories) == ({"org:a-0", "b-4"}, 2)


def test_topics_that_end_like_a_partition_are_not_mixed_up() -> None:
    census = _census(("a-1-2", "live", "a-1", 2))
    assert ("a-1", 2) in census
    assert ("a", 12) not in census


def test_rows_are_added_to_those_before() -> None:
    census = _census(("a-0", "live", "a", 0))
    census.add([["b-0"], ["live"], ["b"], [0]])
    census.add([[], [], [], []])
    assert (census.live, census.directories) == ({"a-0", "b-0"}, 2)
