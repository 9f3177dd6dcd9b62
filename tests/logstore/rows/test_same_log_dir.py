"""One log dir at two places: what makes it one, and what a copy of a disk looks like."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.rows import LogDirOnHost, OtherPlace, describe_other_places, find_other_places, on_host
from logstore.rows.same_log_dir import TOGETHER_MS, is_one_host

NOW = 10 * TOGETHER_MS


def seen(host: str | None, log_dir: str, scanned_ms: int | None, directory_id: str | None = "D", **other: Any) -> Any:
    place = {"host": host, "log_dir": log_dir, "cluster_id": "C", "node_id": 1}
    return place | {"directory_id": directory_id, "scanned_ms": scanned_ms} | other


def places(*scans: Any, together: bool = False) -> list[OtherPlace]:
    """Find the other places, where each log dir was scanned by itself, or all of them at once."""
    return find_other_places(scans, {on_host(row): {0 if together else n} for n, row in enumerate(scans)})


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("b-7", "b-7.example.com", True),
        ("B-7.example.com", "b-7", True),
        ("b-7", "b-7", True),
        ("b-7", "b-70.example.com", False),
        ("b-7.eu.example.com", "b-7.us.example.com", False),
        ("", "b-7", False),
    ],
)
def test_two_names_are_of_one_host_where_one_is_the_other_without_its_domain(
    one: str, other: str, are_one: bool
) -> None:
    assert is_one_host(one, other) is are_one


@pytest.mark.parametrize("directory_id", ["D", None])
def test_a_log_dir_under_two_names_of_its_host_is_one_with_or_without_a_directory_id(directory_id: str | None) -> None:
    (found,) = places(seen("b.example.com", "/d", NOW, directory_id), seen("b", "/d", NOW, directory_id))
    assert (found.older, found.newer) == (LogDirOnHost("b", "/d"), LogDirOnHost("b.example.com", "/d"))
    assert found.is_two_names
    assert found.is_certain


def test_without_a_directory_id_a_log_dir_on_another_host_is_another_one() -> None:
    assert places(seen("new", "/d", NOW, None), seen("old", "/d", 0, None)) == []


@pytest.mark.parametrize("other", [{"cluster_id": "C2"}, {"node_id": 2}, {"cluster_id": None, "node_id": None}])
def test_log_dirs_of_two_brokers_and_of_none_are_never_one(other: dict[str, Any]) -> None:
    assert places(seen("b.example.com", "/d", NOW), seen("b", "/d", 0, **other)) == []
    assert places(seen("new", "/d", NOW), seen("old", "/d", 0, **other)) == []


@pytest.mark.parametrize(
    ("newer_ms", "older_ms", "is_certain"),
    [(NOW, NOW - TOGETHER_MS, True), (NOW, NOW - TOGETHER_MS + 1, False), (NOW, None, False), (0, NOW, False)],
)
def test_a_host_was_renamed_where_the_former_name_was_not_scanned_lately(
    newer_ms: int, older_ms: int | None, is_certain: bool
) -> None:
    (found,) = places(seen("new", "/d", newer_ms), seen("old", "/d", older_ms))
    assert (found.is_certain, found.directory_id) == (is_certain, "D")


AWAY = {"cluster_id": None, "node_id": None, "directory_id": None}


@pytest.mark.parametrize("names", [("new", "old"), ("b.example.com", "b")])
def test_a_disk_that_is_away_is_the_one_that_was_there_under_the_former_name_of_its_host(
    names: tuple[str, str],
) -> None:
    new, old = names
    living = seen(new, "/d/1", NOW, "A"), seen(old, "/d/1", 0, "A")
    found = places(living[0], seen(new, "/d/2", NOW, **AWAY), living[1], seen(old, "/d/2", 0, "B"))
    assert [(each.older, each.newer) for each in found] == [
        (LogDirOnHost(old, path), LogDirOnHost(new, path)) for path in ("/d/1", "/d/2")
    ]
    assert (found[1].cluster_id, found[1].node_id, found[1].directory_id) == ("C", 1, None)
    if new == "new":
        assert describe_other_places(found)[0] == (
            "1 log dir was scanned under a former name of the host, as its other log dirs tell, and cannot tell now "
            "what it is; the newest scan counts alone: old is new now"
        )
        assert len(describe_other_places(found)) == 2


@pytest.mark.parametrize(
    "there",
    [
        [seen("old", "/d/3", 0, "B")],  # at another path
        [seen("other", "/d/2", 0, "B")],  # on a host that was not renamed
        [seen("old", "/d/2", NOW - TOGETHER_MS + 1, "B")],  # scanned lately
        [seen("old", "/d/2", 0, "B"), seen("old", "/d/2", 0, "E", node_id=2)],  # one of two
    ],
)
def test_a_disk_that_is_away_is_no_other_one(there: list[Any]) -> None:
    living = seen("new", "/d/1", NOW, "A"), seen("old", "/d/1", 0, "A")
    found = places(living[0], seen("new", "/d/2", NOW, **AWAY), living[1], *there)
    assert [each.older.log_dir for each in found] == ["/d/1"]


def test_a_disk_that_was_away_before_gives_up_nothing_newer() -> None:
    living = seen("b.example.com", "/d/1", NOW, "A"), seen("b", "/d/1", 0, "A")
    found = places(*living, seen("b", "/d/2", NOW, "B"), seen("b.example.com", "/d/2", 0, **AWAY))
    assert [each.older.log_dir for each in found] == ["/d/1"]


def test_a_disk_that_one_scan_found_twice_is_there_twice() -> None:
    both = (seen("h", "/d/1", NOW), seen("h", "/d/2", 0))
    assert places(*both, together=True) == []
    assert [(each.older.log_dir, each.newer.log_dir) for each in places(*both)] == [("/d/2", "/d/1")]


def test_of_three_places_the_newest_stands_for_all() -> None:
    found = places(seen("c", "/d", NOW), seen("b", "/d", NOW // 2), seen("a", "/d", 0))
    assert [(each.older.host, each.newer.host) for each in found] == [("b", "c"), ("a", "c")]
    assert describe_other_places(found) == [
        "2 log dirs were found at another place before, as the directory.id tells, because the host was renamed or the "
        "disk moved, and the newest scan counts alone: b is c now, a is c now"
    ]


def test_a_sentence_names_what_changed_once_and_ten_of_many() -> None:
    moved = places(seen("h", "/new", NOW), seen("h", "/old", 0))
    assert describe_other_places(moved)[0].endswith("alone: /old is /new of h now")
    elsewhere = places(seen("i", "/new", NOW), seen("h", "/old", 0))
    assert describe_other_places(elsewhere)[0].endswith("alone: h:/old is i:/new now")
    unclear = places(seen("new", "/d", NOW), seen("old", "/d", NOW))
    assert describe_other_places(unclear) == [
        "1 log dir was found at two places about the same time, by the directory.id: one may be a copy, and the newest "
        "scan counts alone: old:/d and new:/d"
    ]
    disks = [(f"/d/{n}", str(n)) for n in range(12)]
    renamed = places(
        *(seen("new", *disk[:1], NOW, disk[1]) for disk in disks), *(seen("old", d, 0, i) for d, i in disks)
    )
    assert describe_other_places(renamed)[0].endswith("alone: old is new now")
    many = places(*(row for d, i in disks for row in (seen(f"new-{i}", d, NOW, i), seen(f"old-{i}", d, 0, i))))
    assert describe_other_places(many)[0].endswith("old-9 is new-9 now, …")
