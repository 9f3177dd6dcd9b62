"""Where a topic lies: what is asked for, the newest scan of each log dir, and the verdicts of a whole comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from logstore.rows import ROW_SCHEMA, InventoryForm, fitting_rows
from reconciler.desired import by_cluster
from reconciler.errors import RefusedError, UsageError
from reconciler.sources import save_state
from reconciler.sources.parquet import load
from reconciler.verdicts import compare
from reconciler.whereabouts import Copy, Found, Subject, copies_of, nearest, related_topics, search
from tests.fleets import IDS, NOW_MS, TOPICS, random_fleet
from tests.logstore.rows.test_inventory import written

ID = IDS[0]


def scan(at_ms: int, *names: str, log_dir: str = "/disks/1", topic_id: str = ID) -> pa.Table:
    """The rows of one log dir of broker 1, with live partitions of those names."""
    common: dict[str, Any] = {"host": "h", "cluster_id": "c", "node_id": 1, "log_dir": log_dir, "scanned_ms": at_ms}
    made = [{**common, "name": ".", "kind": "log_dir", "metadata_state": "ok"}]
    for name in names:
        topic, _, partition = name.rpartition("-")
        replica = {"kind": "live", "topic": topic, "partition": int(partition), "topic_id": topic_id}
        made.append({**common, "name": name, **replica})
    return pa.Table.from_pylist(made, ROW_SCHEMA)


def names(found: Found) -> list[str]:
    return sorted(row["name"] for row in found.rows)


@pytest.mark.parametrize("text", ["", "a/b", "org::x", "x" * 250])
def test_what_no_topic_can_be_called_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a topic, a topic ID or a partition such as orders-0 is expected"):
        Subject.parse(text)


def test_a_text_is_asked_for_as_all_that_it_can_mean() -> None:
    assert Subject.parse("org:orders-7") == Subject("org:orders-7", None, ("org:orders", 7))
    assert Subject.parse("orders-7").topics == {"orders", "orders-7"}
    # Unused bits of the last character are dropped, and padding too, so each topic ID is sought in its one form.
    assert Subject.parse(f"{ID[:-1]}B==").topic_id == ID
    subject = Subject.parse("t-1")
    rows = [
        {"topic": topic, "partition": number, "topic_id": None} for topic, number in (("t", 1), ("t", 2), ("t-1", 5))
    ]
    assert [subject.fits(row) for row in rows] == [True, False, True]


def test_the_newest_scan_says_what_lies_there_and_the_oldest_since_when(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / "monday", InventoryForm.PARQUET, scan(1000, "t-0", "t-1")),
        written(tmp_path / "wednesday", InventoryForm.ARROW, scan(3000, "t-1", "t-2")),
        written(tmp_path / "tuesday", InventoryForm.PARQUET, scan(2000, "t-0", "t-1"), scan(2000, "t-5", log_dir="/2")),
    ]
    found = search({"topic": ["t"]}, paths, [])
    assert names(found) == ["t-1", "t-2", "t-5"]
    assert len(found.log_dirs) == 2
    copies = copies_of(Subject.parse("t"), found, (), (), NOW_MS)
    assert [(copy.name, copy.since_ms, copy.scanned_ms) for copy in copies] == [
        ("t-1", 1000, 3000), ("t-2", 3000, 3000), ("t-5", 2000, 2000),
    ]  # fmt: skip
    assert {(copy.verdict, copy.wanted_on) for copy in copies} == {(None, None)}


def test_a_newer_scan_whose_disk_was_away_shows_that_nothing_is_known_now(tmp_path: Path) -> None:
    row = {"host": "h", "log_dir": "/disks/1", "scanned_ms": 2000, "name": ".", "kind": "log_dir"}
    away = pa.Table.from_pylist([{**row, "metadata_state": "absent"}], ROW_SCHEMA)
    paths = [
        written(tmp_path / "monday", InventoryForm.PARQUET, scan(1000, "t-0")),
        written(tmp_path / "tuesday", InventoryForm.PARQUET, away),
    ]
    assert names(search({"topic": ["t"]}, paths, [])) == []


def test_a_copy_on_a_renamed_host_is_one_and_was_seen_since_the_host_had_its_former_names(tmp_path: Path) -> None:
    def of(host: str, scanned_ms: int) -> pa.Table:
        rows = scan(scanned_ms, "t-0").to_pylist()
        return pa.Table.from_pylist([{**row, "host": host, "directory_id": "D"} for row in rows], ROW_SCHEMA)

    day = 24 * 3_600_000
    paths = [
        written(tmp_path / str(number), InventoryForm.PARQUET, of(host, number * day))
        for number, host in ((2, "b"), (3, "b.example.com"), (1, "a"))
    ]
    found = search({"topic": ["t"]}, paths, [])
    (copy,) = copies_of(Subject.parse("t"), found, (), (), NOW_MS)
    assert (copy.host, copy.since_ms, copy.scanned_ms) == ("b.example.com", day, 3 * day)
    assert [row["host"] for row in found.log_dirs] == ["b.example.com"]
    assert {each.older.host for each in found.other_places} == {"a", "b"}


def test_a_log_dir_that_was_scanned_just_now_is_newer_than_any_inventory(tmp_path: Path) -> None:
    path = written(tmp_path / "ahead", InventoryForm.PARQUET, scan(9000, "t-0", "t-1"))
    assert names(search({"topic": ["t"]}, [path], [scan(2000, "t-1")])) == ["t-1"]


def test_an_inventory_that_cannot_be_read_costs_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"PAR1 and no more")
    path = written(tmp_path / "good", InventoryForm.PARQUET, scan(1000, "t-0"))
    found = search({"topic": ["t"]}, [str(tmp_path / "bad"), path], [])
    assert names(found) == ["t-0"]
    assert list(found.unreadable) == [str(tmp_path / "bad")]


@pytest.mark.parametrize("seed", range(12))
def test_a_copy_has_the_verdict_that_a_comparison_of_everything_gives_it(tmp_path: Path, seed: int) -> None:
    table, states = random_fleet(seed)
    path = written(tmp_path / "inventory", InventoryForm.PARQUET, table)
    for number, state in enumerate(states):
        (tmp_path / str(number)).mkdir()
        save_state(state, str(tmp_path / str(number)))
    saved = [load(str(tmp_path / str(number))) for number in range(len(states))]
    rows = table.to_pylist()
    try:
        clusters = by_cluster(states, {row["cluster_id"] for row in rows if row["cluster_id"]})
    except RefusedError:
        return
    whole = [each for each in compare(clusters, rows, NOW_MS) if (each.observed or {}).get("kind") != "log_dir"]
    for text in (*TOPICS[:3], *IDS, "t-1"):
        try:
            subject = Subject.parse(text)
        except UsageError:
            continue
        expected = sorted(
            (str(row.get("log_dir")), str(row.get("name")), row["topic"], row["partition"], each.verdict, each.evidence)
            for each in whole
            if (row := each.observed or each.wanted) is not None and subject.fits(row)
        )
        for given in (states, saved):
            found = search(subject.values, [path], [])
            neighbours = search({"topic": related_topics(subject, found, given)}, [path], []).rows
            copies = copies_of(subject, found, neighbours, given, NOW_MS)
            if given:
                assert sorted(map(judged, copies)) == expected


def judged(copy: Copy) -> tuple[Any, ...]:
    return str(copy.log_dir), str(copy.name), copy.topic, copy.partition, copy.verdict, copy.evidence


def test_a_misspelled_name_is_near_to_what_there_is(tmp_path: Path) -> None:
    path = written(
        tmp_path / "inventory", InventoryForm.PARQUET, scan(1000, "orders-0", "org:clicks-0", "user-orders-0")
    )
    scanned = [fitting_rows(scan(1000, "odours-0"), {"topic": ["odours"]})]

    def near(text: str) -> list[str]:
        return nearest(Subject.parse(text), [path], scanned, ["payments"])

    assert near("odrers") == ["odours", "orders"]
    assert near("oders-0") == ["orders", "odours"]
    assert near("clicks") == ["org:clicks"]
    assert near("Orders") == ["orders", "user-orders"]
    assert near("payment") == ["payments"]
    assert near("nothing") == []
    assert near(f"x{ID[1:]}") == [ID]
