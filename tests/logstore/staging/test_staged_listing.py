from __future__ import annotations

import errno
import itertools
import json
import os
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from layout.ids import TopicId
from layout.ours import StagedRecord, staged_record
from layout.topic import TopicPartition
from logstore import DamagedRecordError, OfflineLogDirError
from logstore.fs import Directory
from logstore.log_dir import LogDir, ReadOnlyLogDir
from logstore.parallel import threads as pace
from logstore.staging import (
    FallbackRecords,
    Placement,
    Staged,
    find_staged,
    list_staged,
    listing,
    placement,
    restored_path,
    stage,
)
from tests.logstore.engine import (
    NOW_MS,
    ORDERS,
    ORDERS_ID,
    OTHER_ID,
    candidate,
    fill,
    formatted,
    open_descriptors,
    picture,
)

UNIQUE = "0123456789abcdef0123456789abcdef"


def record(**changes: Any) -> StagedRecord:
    fields: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "topic_id": ORDERS_ID,
        "path": "orders-0",
        "verdict": "STALE_ID",
        "evidence": "",
        "staged_ms": NOW_MS,
        "due_ms": NOW_MS + 1000,
    }
    return StagedRecord(**{**fields, **changes})


def put(path: Path, data: bytes | None = None, name: str = f"{ORDERS_ID}_0") -> Path:
    """Put a staged directory in place by hand, as somebody else might."""
    staged = fill(path / "deleting" / name)
    (staged / "staged.json").write_bytes(staged_record.encode_record(record()) if data is None else data)
    return staged


def listed(path: Path) -> list[Any]:
    with LogDir.open(str(path)) as log_dir:
        return list_staged(log_dir)


def test_nothing_staged_is_an_empty_list_and_nothing_is_made(log_dir: Any) -> None:
    before = picture(log_dir.path.parent)
    assert listed(log_dir.path) == []
    after = picture(log_dir.path.parent)
    assert before.keys() == after.keys()


@pytest.mark.parametrize("waits", [0, 1000])
def test_while_the_disk_is_waited_for_other_threads_look_and_find_the_same(
    our_log_dir: Path, monkeypatch: pytest.MonkeyPatch, waits: int
) -> None:
    names = [f"{ORDERS_ID}_{number}" for number in range(9)]
    for number, name in enumerate(names):
        reported = record(partition=number, path=f"orders-{number}")
        put(our_log_dir, b"damaged" if number == 7 else staged_record.encode_record(reported), name)
    threads = set()

    def read_staged(*arguments: Any) -> Staged:
        threads.add(threading.get_ident())
        if arguments[3].text == names[4]:
            raise FileNotFoundError
        return original(*arguments)

    original = listing.read_staged
    monkeypatch.setattr(listing, "read_staged", read_staged)
    monkeypatch.setattr(listing, "_PIECE", 1)
    monkeypatch.setattr(pace, "waits", itertools.count(0, waits).__next__)
    found = listed(our_log_dir)
    assert [each.name for each in found] == [*names[:4], *names[5:]]
    assert [each.name for each in found if each.record is None] == [names[7]]
    assert len(threads) > 1 if waits else len(threads) == 1


def test_a_record_says_what_it_was_and_until_when_it_stays(our_log_dir: Path) -> None:
    staged = put(our_log_dir)
    (found,) = listed(our_log_dir)
    assert (found.partition, found.topic_id, found.problem) == (ORDERS, ORDERS_ID, None)
    assert (found.location, found.placement) == (f"deleting/{ORDERS_ID}_0", Placement.INSIDE)
    assert (found.due_ms, found.inode) == (NOW_MS + 1000, staged.stat().st_ino)


def test_it_is_due_when_its_time_has_come_and_not_when_the_clock_went_backwards(our_log_dir: Path) -> None:
    put(our_log_dir)
    (found,) = listed(our_log_dir)
    times = (0, NOW_MS - 1, NOW_MS, NOW_MS + 999, NOW_MS + 1000)
    assert [found.is_due(now) for now in times] == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is no JSON|not JSON|JSON"),
        (b"{", "JSON"),
        (b"[]", "object"),
        (b"\xff\xfe", "UTF-8|JSON"),
        (b"{}", "schema_version"),
        (b"x" * (1 << 21), "larger than"),
        (b"[" * 50_000, "JSON"),
        (b'{"schema_version": ' + b"9" * 5000 + b"}", "JSON|schema_version|digits"),
        (staged_record.encode_record(record(topic_id=OTHER_ID)), "speaks of topic ID"),
        (staged_record.encode_record(record(partition=1, path="orders-1")), "partition 1"),
        (staged_record.encode_record(record()).replace(b'"orders-0"', b'"../orders-0"'), "path"),
        (staged_record.encode_record(record()).replace(b'"orders-0"', b'"/etc"'), "path"),
        (staged_record.encode_record(record()).replace(str(NOW_MS + 1000).encode(), b"1e300"), "due_ms"),
        (staged_record.encode_record(record()).replace(str(NOW_MS + 1000).encode(), b"5"), "due_ms"),
    ],
)
def test_a_record_that_is_damaged_or_lies_is_never_due(our_log_dir: Path, data: bytes, problem: str) -> None:
    put(our_log_dir, data)
    (found,) = listed(our_log_dir)
    assert found.record is None
    assert found.problem is not None
    assert re.search(problem, found.problem), found.problem
    assert (found.due_ms, found.is_due(1 << 62)) == (None, False)
    assert found.topic_id == ORDERS_ID, "its own metadata still says which topic it was"


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "link", "socket"])
def test_a_record_that_is_no_file_is_reported_and_never_waited_for(
    our_log_dir: Path, tmp_path: Path, kind: str
) -> None:
    staged = put(our_log_dir)
    file = staged / "staged.json"
    (tmp_path / "record").write_bytes(file.read_bytes())
    file.unlink()
    if kind == "directory":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "link":
        file.symlink_to(tmp_path / "record")
    elif kind == "socket":
        os.mknod(file, 0o140644)
    (found,) = listed(our_log_dir)
    assert found.record is None
    assert found.problem is not None


def test_names_that_nothing_of_ours_has_are_passed_over(our_log_dir: Path) -> None:
    for name in ("orders-0", f"{ORDERS_ID}_0.1", f"{ORDERS_ID}_00", "lost+found", f"orders-0.{UNIQUE}-stray"):
        put(our_log_dir, name=name)
    (our_log_dir / "deleting" / f"{ORDERS_ID}_7").write_text("a file")
    (our_log_dir / "deleting" / f"{ORDERS_ID}_8").symlink_to("/tmp")
    assert listed(our_log_dir) == []


def test_what_is_staged_is_sorted_and_a_second_copy_stands_beside_the_first(our_log_dir: Path) -> None:
    for name in (f"{ORDERS_ID}_0.2", f"{ORDERS_ID}_0"):
        put(our_log_dir, name=name)
    assert [found.name for found in listed(our_log_dir)] == [f"{ORDERS_ID}_0", f"{ORDERS_ID}_0.2"]


def test_strays_that_a_broker_left_are_reported_without_a_due_time(log_dir: Any) -> None:
    name = f"orders-0.{UNIQUE}-stray"
    log_dir.replica(name)
    (found,) = listed(log_dir.path)
    assert (found.name, found.partition, found.record, found.is_due(1 << 62)) == (name, ORDERS, None, False)
    assert found.topic_id == ORDERS_ID
    assert "a broker left it" in found.problem


def test_a_stray_whose_name_may_be_cut_is_not_taken_at_its_name(log_dir: Any) -> None:
    # FACTS §1.2
    name = f"{'o' * (255 - len(f'-0.{UNIQUE}-stray'))}-0.{UNIQUE}-stray"
    log_dir.replica(name)
    (found,) = listed(log_dir.path)
    assert found.partition is None


def test_names_of_bytes_that_are_not_utf8_are_reported(log_dir: Any) -> None:
    os.mkdir(os.fsencode(log_dir.path) + b"/\xff-0." + UNIQUE.encode() + b"-stray")
    (found,) = listed(log_dir.path)
    assert found.partition == TopicPartition("\udcff", 0)


def test_in_a_log_dir_that_is_ours_a_stray_form_is_no_staged_replica(our_log_dir: Path) -> None:
    fill(our_log_dir / f"orders-0.{UNIQUE}-stray")
    assert listed(our_log_dir) == []


@pytest.mark.parametrize("make", [lambda path: path.write_text("x"), lambda path: path.symlink_to("/tmp")])
def test_something_else_in_place_of_the_staging_root_holds_nothing_and_stops_nobody(log_dir: Any, make: Any) -> None:
    make(Path(f"{log_dir.path}.deleting"))
    log_dir.replica(f"orders-0.{UNIQUE}-stray")
    assert len(listed(log_dir.path)) == 1


@pytest.mark.parametrize(
    ("topic", "partition", "path", "home"),
    [
        ("orders", 0, "orders-0", "orders-0"),
        ("orders", 7, "orders-007", "orders-007"),
        ("two words", 0, "two words-0", "two words-0"),
        ("\udcff", 0, "\udcff-0", "\udcff-0"),
    ],
)
def test_in_a_brokers_log_dir_home_is_where_it_was(
    log_dir: Any, topic: str, partition: int, path: str, home: str
) -> None:
    with LogDir.open(str(log_dir)) as opened:
        assert restored_path(opened, record(topic=topic, partition=partition, path=path)) == home


@pytest.mark.parametrize(
    ("topic", "path"),
    [
        ("orders", "payments-0"),
        ("orders", "orders-1"),
        ("orders", "meta.properties"),
        ("orders", f"orders-0.{UNIQUE}-stray"),
        ("orders", f"orders-0.{UNIQUE}-delete"),
        ("a/b", "a/b-0"),
        ("orders", "sub/orders-0"),
        ("__cluster_metadata", "__cluster_metadata-0"),
    ],
)
def test_a_record_that_claims_another_place_is_not_believed(log_dir: Any, topic: str, path: str) -> None:
    with LogDir.open(str(log_dir)) as opened, pytest.raises(DamagedRecordError, match="another replica's place"):
        restored_path(opened, record(topic=topic, path=path))


@pytest.mark.parametrize(
    ("scheme", "topic", "home"),
    [
        ("flat", "orders", "orders-0"),
        ("namespaced", "org:apache:orders", "org/apache/orders-0"),
        ("by-topic-id", "orders", f"{ORDERS_ID.hex[:2]}/{ORDERS_ID.hex}_0"),
    ],
)
def test_in_ours_home_is_where_the_scheme_has_it_by_now(tmp_path: Path, scheme: str, topic: str, home: str) -> None:
    with LogDir.open(str(formatted(tmp_path / "x", scheme=scheme))) as opened:
        assert restored_path(opened, record(topic=topic, path="anything-else")) == home


@pytest.mark.parametrize(
    ("scheme", "changes"),
    [
        ("flat", {"topic": "org:orders"}),
        ("flat", {"topic": ".."}),
        ("flat", {"topic": "a/b"}),
        ("namespaced", {"topic": "..:orders"}),
        ("namespaced", {"topic": "deleting:orders"}),
        ("by-topic-id", {"topic_id": TopicId.ZERO}),
    ],
)
def test_what_the_scheme_has_no_place_for_has_no_home(tmp_path: Path, scheme: str, changes: dict[str, Any]) -> None:
    path = formatted(tmp_path / "x", scheme=scheme)
    with LogDir.open(str(path)) as opened, pytest.raises(DamagedRecordError, match="has no place"):
        restored_path(opened, record(**changes))


def test_a_shared_record_tells_each_directory_its_own_and_a_strangers_nothing(our_log_dir: Path) -> None:
    candidates = []
    for partition in range(6):
        fill(our_log_dir / f"t-{partition}")
        candidates.append(candidate(f"t-{partition}", TopicPartition("t", partition)))
    with LogDir.open(str(our_log_dir)) as log_dir:
        stage(log_dir, candidates, NOW_MS)
    stranger = our_log_dir / "deleting" / f"{ORDERS_ID}_9"
    stranger.mkdir()
    os.link(our_log_dir / "deleting" / f"{ORDERS_ID}_0" / "staged.json", stranger / "staged.json")
    found = {each.name: each for each in listed(our_log_dir)}
    assert [found[f"{ORDERS_ID}_{n}"].partition for n in range(6)] == [TopicPartition("t", n) for n in range(6)]
    assert "none of" in found[stranger.name].problem


@pytest.mark.parametrize("records", [[], {"x": 1}, {"": None}, "x", {"x": {}}])
def test_a_shared_record_that_is_damaged_is_damaged_for_all(our_log_dir: Path, records: object) -> None:
    put(our_log_dir, json.dumps({"schema_version": 1, "records": records}).encode())
    (found,) = listed(our_log_dir)
    assert found.record is None
    assert found.problem is not None


def test_a_disk_that_fails_while_it_is_listed_goes_offline(our_log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with LogDir.open(str(our_log_dir)) as log_dir:
        monkeypatch.setattr(placement, "open_staging_root", fails)
        with pytest.raises(OfflineLogDirError, match="what is staged cannot be listed"):
            list_staged(log_dir)
        monkeypatch.undo()
        with pytest.raises(OfflineLogDirError):
            list_staged(log_dir)


def test_a_directory_that_vanishes_while_it_is_listed_is_no_error(
    our_log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(our_log_dir)
    put(our_log_dir, name=f"{ORDERS_ID}_0.2")
    subprocess.run(["rm", "-r", str(our_log_dir / "deleting" / f"{ORDERS_ID}_0.2")], check=True)
    real = Directory.entries

    def with_a_ghost(self: Any) -> Any:
        yield from real(self)
        yield f"{ORDERS_ID}_0.3", True

    monkeypatch.setattr(Directory, "entries", with_a_ghost)
    assert len(listed(our_log_dir)) == 1


def test_looking_needs_no_lock_so_a_broker_may_run(our_log_dir: Path) -> None:
    put(our_log_dir)
    with LogDir.open(str(our_log_dir)), ReadOnlyLogDir.open(str(our_log_dir)) as view:
        assert len(find_staged(view)) == 1


def test_a_fallback_record_is_read_where_there_is_none_inside(our_log_dir: Path, tmp_path: Path) -> None:
    (put(our_log_dir) / "staged.json").unlink()
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(our_log_dir)) as log_dir:
        fallback.write(log_dir, f"{ORDERS_ID}_0", staged_record.encode_record(record()))
        (found,) = list_staged(log_dir, fallback)
    assert (found.partition, found.problem) == (ORDERS, None)


def test_no_descriptor_is_left_behind(our_log_dir: Path) -> None:
    put(our_log_dir)
    put(our_log_dir, b"", f"{ORDERS_ID}_0.2")
    before = open_descriptors()
    listed(our_log_dir)
    assert open_descriptors() == before
