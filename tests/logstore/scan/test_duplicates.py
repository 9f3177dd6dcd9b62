from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from logstore.rows.rows import Value
from logstore.scan import LEADER_EPOCH_LIMIT, Observation, scan, scan_all
from logstore.scan.duplicates import ReplicaSet, with_leader_epochs


def _epochs(observations: list[Observation]) -> dict[tuple[str, str], int | None]:
    return {
        (Path(seen.log_dir).name, row["name"]): row["leader_epoch"]
        for seen in observations
        for row in seen.rows.to_pylist()
        if row["kind"] == "live"
    }


def _replicas_of(seen: Observation) -> ReplicaSet:
    replicas = ReplicaSet()
    replicas.add([seen.rows[name].to_pylist() for name in ("name", "kind", "topic", "partition")])
    return replicas


def test_epochs_are_read_for_replicas_that_are_live_twice_and_for_no_others(new_log_dir: Any, tmp_path: Path) -> None:
    one, two = (new_log_dir(tmp_path / name).identity() for name in ("one", "two"))
    for log_dir, text in ((one, "0\n2\n3 0\n7 10\n"), (two, "0\n1\n5 0\n")):
        (log_dir.replica("orders-0") / "leader-epoch-checkpoint").write_text(text)
        (log_dir.replica(f"{log_dir.path.name}-0") / "leader-epoch-checkpoint").write_text("0\n1\n9 0\n")
    seen = list(scan_all([str(one), str(two)]))
    assert _epochs(seen) == {
        ("one", "orders-0"): 7,
        ("two", "orders-0"): 5,
        ("one", "one-0"): None,
        ("two", "two-0"): None,
    }
    for observation in seen:
        observation.rows.validate(full=True)


def test_two_spellings_of_one_replica_in_one_log_dir_are_duplicates(log_dir: Any) -> None:
    for name in ("foo-0", "foo-00"):
        (log_dir.replica(name) / "leader-epoch-checkpoint").write_text("0\n1\n4 0\n")
    assert set(_epochs(list(scan_all([str(log_dir)]))).values()) == {4}


def test_an_epoch_that_cannot_be_read_stays_null(log_dir: Any) -> None:
    (log_dir.replica("foo-0") / "leader-epoch-checkpoint").write_text("broken")
    (log_dir.replica("foo-00") / "leader-epoch-checkpoint").symlink_to("/dev/zero")
    log_dir.replica("foo-000")
    (log_dir.replica("foo-0000") / "leader-epoch-checkpoint").write_text("0\n1\n4 0\n")
    os.truncate(log_dir.path / "foo-0000" / "leader-epoch-checkpoint", LEADER_EPOCH_LIMIT + 1)
    assert set(_epochs(list(scan_all([str(log_dir)]))).values()) == {None}


def test_without_duplicates_the_observations_are_the_same(log_dir: Any) -> None:
    log_dir.replica("foo-0")
    seen = scan(str(log_dir))
    assert with_leader_epochs([(seen, _replicas_of(seen))])[0] is seen


def test_a_directory_of_another_kind_is_no_second_copy(new_log_dir: Any, tmp_path: Path) -> None:
    one, two = (new_log_dir(tmp_path / name).identity() for name in ("one", "two"))
    one.replica("foo-0")
    two.replica(f"foo-0.{'0123456789abcdef' * 2}-future")
    (one.path / "foo-0" / "leader-epoch-checkpoint").write_text("0\n1\n4 0\n")
    assert set(_epochs(list(scan_all([str(one), str(two)]))).values()) == {None}


def test_a_link_to_a_replica_that_lies_on_another_disk_too_makes_it_live_twice(
    new_log_dir: Any, tmp_path: Path
) -> None:
    one, two = (new_log_dir(tmp_path / name).identity() for name in ("one", "two"))
    (one.replica("foo-0") / "leader-epoch-checkpoint").write_text("0\n1\n4 0\n")
    (two.path / "foo-0").symlink_to(tmp_path / "elsewhere")
    assert _epochs(list(scan_all([str(one), str(two)])))["one", "foo-0"] == 4


def _replica_set(*rows: Sequence[Value]) -> ReplicaSet:
    """A replica set of rows: name, kind, topic, partition."""
    replicas = ReplicaSet()
    replicas.add([list(column) for column in zip(*rows, strict=True)])
    return replicas


def test_live_and_future_directories_hold_a_replica_and_others_do_not() -> None:
    replicas = _replica_set(
        ("a-0", "live", "a", 0),
        ("b-1.x-future", "future", "b", 1),
        ("c-2.x-delete", "delete", "c", 2),
        ("deleting/x_3", "staged", "d", 3),
        ("junk", "foreign", None, None),
    )
    assert ("a", 0) in replicas
    assert ("b", 1) in replicas
    assert [replica in replicas for replica in (("a", 1), ("c", 2), ("d", 3), "a-0", None)] == [False] * 5
    assert (replicas.live, replicas.directories) == ({"a-0"}, 1)


def test_plainly_spelt_names_are_kept_and_no_new_texts_made() -> None:
    names = ["orders-0", "orders-1"]
    replicas = ReplicaSet()
    replicas.add([names, ["live"] * 2, ["orders"] * 2, [0, 1]])
    assert {id(name) for name in replicas.live} == {id(name) for name in names}


def test_a_replica_that_is_spelt_in_two_ways_has_two_directories() -> None:
    replicas = _replica_set(("a-0", "live", "a", 0), ("a-00", "live", "a", 0))
    assert (replicas.live, replicas.directories) == ({"a-0"}, 2)


def test_names_in_tiers_and_by_topic_id_are_counted_under_their_topics() -> None:
    replicas = _replica_set(
        ("org/a-0", "live", "org:a", 0), ("51/517c_4", "live", "b", 4), ("52/528d_5", "live", None, 5)
    )
    assert (replicas.live, replicas.directories) == ({"org:a-0", "b-4"}, 2)


def test_topics_that_end_like_a_partition_are_not_mixed_up() -> None:
    replicas = _replica_set(("a-1-2", "live", "a-1", 2))
    assert ("a-1", 2) in replicas
    assert ("a", 12) not in replicas


def test_rows_are_added_to_those_before() -> None:
    replicas = _replica_set(("a-0", "live", "a", 0))
    replicas.add([["b-0"], ["live"], ["b"], [0]])
    replicas.add([[], [], [], []])
    assert (replicas.live, replicas.directories) == ({"a-0", "b-0"}, 2)
