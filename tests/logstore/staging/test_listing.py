from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from layout.ids import TopicId
from layout.ours import LedgerEvent, StagedRecord, encode_event, encode_header, encode_mark, encode_staged
from layout.scheme import LEDGER_FILE
from layout.topic import TopicPartition
from logstore import DamagedRecordError, OfflineLogDirError
from logstore.errors import FailedReadError
from logstore.fs import Directory
from logstore.log_dir import FallbackRecords, LogDir, ReadOnlyLogDir
from logstore.log_dir import ledger as ledger_module
from logstore.staging import (
    BROKERS_STRAY,
    Placement,
    RootLedger,
    damaged_lines,
    find_staged,
    list_staged,
    listing,
    placement,
    read_staged,
    records,
    restored_path,
    staged_names,
    topic_id_in,
)
from tests.logstore.engine import (
    NOW_MS,
    ORDERS,
    ORDERS_ID,
    OTHER_ID,
    fill,
    formatted,
    open_descriptors,
    picture,
)

UNIQUE = "0123456789abcdef0123456789abcdef"
NAME = f"{ORDERS_ID}_0"


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


def put(path: Path, name: str = NAME, *lines: bytes, folder: str = "deleting") -> Path:
    """Put a staged directory in place by hand, and durable lines into the ledger, by default one that fits it."""
    staged = fill(path / folder / name)
    ledger = path / folder / LEDGER_FILE
    data = ledger.read_bytes() if ledger.exists() else encode_header()
    data += b"".join(lines or [encode_staged(name, record())])
    ledger.write_bytes(data + encode_mark(len(data)))
    return staged


def line(*values: object) -> bytes:
    """A line with a sound checksum, whatever it says."""
    text = json.dumps(values).encode("ascii")
    return b"%08x %b\n" % (crc32(text), text)


def changed(place: int, value: object) -> bytes:
    """The line of the replica with another value in one place."""
    values = json.loads(encode_staged(NAME, record())[9:])
    return line(*values[:place], value, *values[place + 1 :])


def listed(path: Path) -> list[Any]:
    with LogDir.open(str(path)) as log_dir:
        return list_staged(log_dir)


def test_nothing_staged_is_an_empty_list_and_nothing_is_made(log_dir: Any) -> None:
    before = picture(log_dir.path.parent)
    assert listed(log_dir.path) == []
    after = picture(log_dir.path.parent)
    assert before.keys() == after.keys()


def test_no_directory_is_opened_whose_line_says_what_it_is(our_log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{ORDERS_ID}_{number}" for number in range(9)]
    for number, name in enumerate(names):
        reported = record(partition=number, path=f"orders-{number}")
        put(our_log_dir, name, b"damaged\n" if number == 7 else encode_staged(name, reported))
    opened = []
    original = Directory.child

    def child(self: Directory, name: str) -> Directory:
        opened.append(name)
        return original(self, name)

    with LogDir.open(str(our_log_dir)) as log_dir:
        monkeypatch.setattr(Directory, "child", child)
        found = list_staged(log_dir)
    assert [each.name for each in found] == names
    assert [each.name for each in found if each.record is None] == [names[7]]
    assert [name for name in opened if name in names] == [names[7]]


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
    ("said", "problem"),
    [
        (b"\n", "has no line in .logstore_ledger, so"),
        (b"x" * 200 + b"\n", "does not match its checksum"),
        (encode_staged(NAME, record())[:40] + b"\n", "does not match its checksum"),
        (encode_staged(NAME, record()).replace(b"STALE", b"stale"), "does not match its checksum"),
        (line(), "it is no array"),
        (b"%08x %b\n" % (crc32(b"[" * 50_000), b"[" * 50_000), "it is no array"),
        (line("staged", NAME), "12 values were expected, not 2"),
        (encode_staged(NAME, record(topic_id=OTHER_ID)), "speaks of topic ID"),
        (encode_staged(NAME, record(partition=1, path="orders-1")), "partition 1"),
        (changed(5, "../orders-0"), "path is '../orders-0'"),
        (changed(5, "/etc"), "path is '/etc'"),
        (changed(9, 1e300), "another type"),
        (changed(9, 5), "due_ms 5 lies before"),
        (changed(10, "org"), "namespace is 'org'"),
        (changed(11, {"meta.properties": 1}), "is no offset checkpoint"),
        (encode_event(LedgerEvent.PURGING, NAME), "its line in .logstore_ledger cannot be read"),
        (encode_staged(NAME, record()) + encode_event(LedgerEvent.RESTORED, NAME), "has no line"),
        (encode_staged(f"{NAME}.2", record()), "has no line"),
    ],
)
def test_a_line_that_is_damaged_or_lies_is_never_due(our_log_dir: Path, said: bytes, problem: str) -> None:
    put(our_log_dir, NAME, said)
    (found,) = listed(our_log_dir)
    assert found.record is None
    assert problem in found.problem
    assert f"deleting/{NAME}" in found.problem
    assert (found.due_ms, found.is_due(1 << 62)) == (None, False)
    assert found.topic_id == ORDERS_ID, "its own metadata still says which topic it was"


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        (b"", []),
        (b"%08x purge\n" % crc32(b"pu"), [": it does not match its checksum"]),
        (line("exploded", NAME), [": it holds 'exploded', which is no event"]),
    ],
)
def test_a_damaged_line_is_told_by_file_and_number_and_costs_that_line_alone(
    our_log_dir: Path, said: bytes, reported: list[str]
) -> None:
    put(our_log_dir)
    put(our_log_dir, f"{NAME}.2", said, encode_staged(f"{NAME}.2", record()))
    file = our_log_dir / "deleting" / LEDGER_FILE
    with LogDir.open(str(our_log_dir)) as log_dir:
        assert damaged_lines(log_dir) == [f"line 4 of {file} cannot be read{reason}" for reason in reported]
        first, second = list_staged(log_dir)
    assert [first.problem, second.problem] == [None, None]
    assert (first.in_doubt, second.in_doubt) == (bool(reported), False)


def test_what_a_purge_has_begun_is_told_and_what_it_kept_is_as_before(our_log_dir: Path) -> None:
    purging, kept = (encode_event(event, NAME) for event in (LedgerEvent.PURGING, LedgerEvent.KEPT))
    put(our_log_dir, NAME, encode_staged(NAME, record()), purging)
    (found,) = listed(our_log_dir)
    assert (found.record, found.may_be_partly_purged, found.is_due(0)) == (record(), True, True)
    (our_log_dir / "deleting" / LEDGER_FILE).write_bytes(
        encode_header() + encode_staged(NAME, record()) + purging + kept
    )
    (found,) = listed(our_log_dir)
    assert (found.record, found.may_be_partly_purged, found.is_due(0)) == (record(), False, False)


@pytest.mark.parametrize("torn", [1, 20, 200])
def test_what_a_crash_tore_says_nothing_and_is_not_told(our_log_dir: Path, torn: int) -> None:
    put(our_log_dir)
    with (our_log_dir / "deleting" / LEDGER_FILE).open("ab") as file:
        file.write(encode_staged(f"{NAME}.2", record())[:torn] + bytes(4096))
    before = picture(our_log_dir)
    with LogDir.open(str(our_log_dir)) as log_dir:
        assert damaged_lines(log_dir) == []
        assert [each.problem for each in list_staged(log_dir)] == [None]
    assert picture(our_log_dir) == before, "looking changes nothing"


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "link", "socket", "too large"])
def test_a_ledger_that_is_no_file_is_reported_and_never_waited_for(
    our_log_dir: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(our_log_dir)
    file = our_log_dir / "deleting" / LEDGER_FILE
    (tmp_path / "record").write_bytes(file.read_bytes())
    if kind == "too large":
        monkeypatch.setattr(ledger_module, "LEDGER_LIMIT", 10)
    else:
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
    assert (found.record, found.unread) == (None, False)
    assert (f"{file} " in found.problem) is (kind != "missing"), found.problem


def test_a_ledger_of_a_later_release_is_not_guessed_at(our_log_dir: Path) -> None:
    put(our_log_dir, NAME, line("logstore-ledger", 2), encode_staged(NAME, record()))
    (found,) = listed(our_log_dir)
    file = our_log_dir / "deleting" / LEDGER_FILE
    later = "is of another release: it says [2]; this release reads schema version 1 only"
    assert (found.record, found.problem) == (
        None,
        f"{our_log_dir}/deleting/{NAME}: {file} {later}, so nothing says what it was",
    )


def test_a_ledger_that_the_disk_does_not_give_is_told_apart_from_one_that_says_nothing(
    our_log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise FailedReadError("cannot be read (Input/output error)")

    put(our_log_dir)
    with LogDir.open(str(our_log_dir)) as log_dir:
        monkeypatch.setattr(ledger_module, "read_small_file", fails)
        (found,) = list_staged(log_dir)
    assert (found.record, found.unread) == (None, True)
    assert found.problem is not None
    assert re.search(r"ledger cannot be read \(Input/output error\), so nothing says", found.problem)


def test_a_folder_that_was_moved_with_its_ledger_says_the_same(our_log_dir: Path, tmp_path: Path) -> None:
    put(our_log_dir)
    before = listed(our_log_dir)
    other = formatted(tmp_path / "other", 2)
    (other / "deleting").rmdir()
    (our_log_dir / "deleting").rename(other / "deleting")
    (found,) = listed(other)
    assert (found.record, found.name, found.inode) == (before[0].record, before[0].name, before[0].inode)


def test_names_that_nothing_of_ours_has_are_passed_over(our_log_dir: Path) -> None:
    for name in ("orders-0", f"{ORDERS_ID}_0.1", f"{ORDERS_ID}_00", "lost+found", f"orders-0.{UNIQUE}-stray"):
        put(our_log_dir, name)
    (our_log_dir / "deleting" / f"{ORDERS_ID}_7").write_text("a file")
    (our_log_dir / "deleting" / f"{ORDERS_ID}_8").symlink_to("/tmp")
    assert listed(our_log_dir) == []


def test_what_is_staged_is_sorted_and_a_second_copy_stands_beside_the_first(our_log_dir: Path) -> None:
    for name in (f"{ORDERS_ID}_0.2", f"{ORDERS_ID}_0"):
        put(our_log_dir, name)
    assert [found.name for found in listed(our_log_dir)] == [f"{ORDERS_ID}_0", f"{ORDERS_ID}_0.2"]


def test_strays_that_a_broker_left_are_reported_without_a_due_time(log_dir: Any) -> None:
    name = f"orders-0.{UNIQUE}-stray"
    log_dir.replica(name)
    (found,) = listed(log_dir.path)
    assert (found.name, found.partition, found.record, found.is_due(1 << 62)) == (name, ORDERS, None, False)
    assert found.topic_id == ORDERS_ID
    assert "a broker left it" in found.problem


def test_a_stray_whose_topic_id_the_disk_does_not_give_is_still_there(
    log_dir: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise FailedReadError("cannot be read (Input/output error)")

    stray = log_dir.replica(f"orders-0.{UNIQUE}-stray")
    monkeypatch.setattr(records, "read_small_file", fails)
    (found,) = listed(log_dir.path)
    assert (found.unread, found.topic_id, found.inode) == (True, None, os.stat(stray).st_ino)
    assert found.problem == BROKERS_STRAY


def test_a_stray_that_cannot_be_opened_is_told_with_the_reason_and_without_an_inode(
    log_dir: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    log_dir.replica(f"orders-0.{UNIQUE}-stray")
    monkeypatch.setattr(listing, "topic_id_in", fails)
    (found,) = listed(log_dir.path)
    assert (found.unread, found.inode, found.partition) == (False, 0, ORDERS)
    assert "Permission denied" in str(found.problem)


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


def test_in_a_log_dir_that_is_ours_a_stray_is_listed_as_in_a_brokers(our_log_dir: Path, log_dir: Any) -> None:
    name = f"orders-0.{UNIQUE}-stray"
    fill(our_log_dir / name)
    fill(log_dir.path / name)
    (ours,), (brokers,) = listed(our_log_dir), listed(log_dir.path)
    assert ours._replace(log_dir=brokers.log_dir, inode=brokers.inode) == brokers
    assert (ours.placement, ours.topic_id, ours.partition) == (Placement.IN_PLACE, ORDERS_ID, ORDERS)


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


@pytest.mark.parametrize("event", [LedgerEvent.PURGED, LedgerEvent.PURGING, LedgerEvent.RESTORED])
def test_a_directory_that_goes_while_it_is_listed_is_not_reported(
    our_log_dir: Path, monkeypatch: pytest.MonkeyPatch, event: LedgerEvent
) -> None:
    put(our_log_dir)
    gone = put(our_log_dir, f"{NAME}.2")
    real = Directory.directory_inodes

    def then_it_goes(directory: Directory) -> list[tuple[str, int]]:
        names = real(directory)
        if gone.exists():
            gone.rename(our_log_dir.parent / "gone")
            with (our_log_dir / "deleting" / LEDGER_FILE).open("ab") as file:
                file.write(encode_event(event, gone.name))
        return names

    monkeypatch.setattr(Directory, "directory_inodes", then_it_goes)
    assert [each.name for each in listed(our_log_dir)] == [NAME]


def test_a_directory_that_a_crash_has_brought_back_is_reported(our_log_dir: Path) -> None:
    put(our_log_dir, NAME, encode_staged(NAME, record()), encode_event(LedgerEvent.PURGED, NAME))
    (found,) = listed(our_log_dir)
    assert (found.name, found.may_be_partly_purged, found.record) == (NAME, True, record())


def test_a_line_without_its_directory_is_nothing(our_log_dir: Path) -> None:
    put(our_log_dir, NAME, encode_staged(NAME, record()), encode_staged(f"{NAME}.2", record()))
    assert [each.name for each in listed(our_log_dir)] == [NAME]


def test_looking_needs_no_lock_so_a_broker_may_run(our_log_dir: Path) -> None:
    put(our_log_dir)
    with LogDir.open(str(our_log_dir)), ReadOnlyLogDir.open(str(our_log_dir)) as view:
        assert len(find_staged(view)) == 1


def test_a_ledger_in_the_other_folder_is_read_too(our_log_dir: Path, tmp_path: Path) -> None:
    put(our_log_dir)
    fill(our_log_dir / "deleting" / f"{NAME}.2")
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(our_log_dir)) as log_dir:
        with fallback.ledger(log_dir.path, make=True) as other:
            assert other is not None
            other.stage({f"{NAME}.2": record()})
        assert [each.problem for each in list_staged(log_dir, fallback)] == [None, None]
        assert [each.name for each in list_staged(log_dir) if each.problem] == [f"{NAME}.2"]


def spoiled_of_a_later_release(file: Path) -> None:
    file.write_bytes(line("logstore-ledger", 2))


@pytest.mark.parametrize("spoil", [spoiled_of_a_later_release, lambda file: (file.unlink(), file.mkdir())])
def test_a_ledger_in_the_other_folder_that_cannot_be_read_costs_what_it_tells_alone(
    our_log_dir: Path, tmp_path: Path, spoil: Callable[[Path], Any]
) -> None:
    put(our_log_dir)
    fill(our_log_dir / "deleting" / f"{NAME}.2")
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(our_log_dir)) as log_dir:
        with fallback.ledger(log_dir.path, make=True) as other:
            assert other is not None
            other.stage({f"{NAME}.2": record()})
        (file,) = (tmp_path / "spare").rglob(LEDGER_FILE)
        spoil(file)
        first, second = list_staged(log_dir, fallback)
    assert (first.problem, second.record) == (None, None)
    assert f"{file} is " in (second.problem or "")


def test_no_descriptor_is_left_behind(our_log_dir: Path) -> None:
    put(our_log_dir)
    put(our_log_dir, f"{NAME}.2", b"damaged\n")
    before = open_descriptors()
    listed(our_log_dir)
    assert open_descriptors() == before


def test_one_directory_is_described_as_in_the_list_and_its_own_metadata_is_asked_only_without_a_record(
    our_log_dir: Path,
) -> None:
    put(our_log_dir)
    with ReadOnlyLogDir.open(str(our_log_dir)) as view, Directory.open(str(our_log_dir / "deleting")) as root:
        ledger = RootLedger(view, root, FallbackRecords(None))
        (entry,) = staged_names(root, Placement.INSIDE)
        assert [read_staged(view, Placement.INSIDE, root, ledger, entry)] == find_staged(view)
        with root.child(NAME) as directory:
            assert topic_id_in(directory) == ORDERS_ID
            (our_log_dir / "deleting" / NAME / "partition.metadata").write_text("damaged")
            assert topic_id_in(directory) is None
        assert read_staged(view, Placement.INSIDE, root, ledger, entry).topic_id == ORDERS_ID
