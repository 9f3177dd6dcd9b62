from __future__ import annotations

from pathlib import Path
from typing import Any

from logstore.scan import Observation, scan, scan_all
from logstore.scan.census import Census
from logstore.scan.duplicates import with_leader_epochs


def _epochs(observations: list[Observation]) -> dict[tuple[str, str], int | None]:
    return {
        (Path(seen.log_dir).name, row["name"]): row["leader_epoch"]
        for seen in observations
        for row in seen.rows.to_pylist()
        if row["kind"] == "live"
    }


def _census(seen: Observation) -> Census:
    census = Census()
    census.add([seen.rows[name].to_pylist() for name in ("name", "kind", "topic", "partition")])
    return census


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
    assert set(_epochs(list(scan_all([str(log_dir)]))).values()) == {None}


def test_without_duplicates_the_observations_are_the_same(log_dir: Any) -> None:
    log_dir.replica("foo-0")
    seen = scan(str(log_dir))
    assert with_leader_epochs([(seen, _census(seen))])[0] is seen


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
