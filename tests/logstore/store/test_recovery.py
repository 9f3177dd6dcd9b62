from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from layout import partition_metadata
from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.ours import LedgerEvent, StagedRecord, encode_header, encode_mark, encode_staged, parse_ledger
from layout.scheme import LEDGER_FILE, MARKER_FILE, UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore import ChangeRefusedError, OfflineLogDirError
from logstore.fs import TEMPORARY, Disk
from logstore.log_dir import FallbackRecords, Ledgers, LogDir
from logstore.staging import list_staged, stage
from logstore.store import recover, recovery
from tests.logstore.engine import (
    NOW_MS,
    ORDERS_ID,
    OTHER_ID,
    DiskThat,
    candidate,
    contents,
    contents_as_told,
    fill,
    formatted,
    full_disk,
    ledger_events,
    open_descriptors,
    picture,
    read_offsets,
    write_ledger,
    write_offsets,
)

UNIQUE = "0123456789abcdef0123456789abcdef"


NAME = f"{ORDERS_ID}_0"


def record(topic: str = "orders", partition: int = 0, path: str = "orders-0", offset: int = 42) -> StagedRecord:
    offsets = {RECOVERY_POINT_CHECKPOINT: offset}
    return StagedRecord(topic, partition, ORDERS_ID, path, "STALE_ID", "", NOW_MS, NOW_MS, offsets)


def root_of(path: Path) -> Path:
    """The staging root of a log dir, which is made."""
    root = path / "deleting" if (path / "deleting").exists() else Path(f"{path}.deleting")
    root.mkdir(exist_ok=True)
    return root


def recovered(path: Path, fallback: FallbackRecords | None = None) -> list[str]:
    """Recover an unclean log dir, and make sure that a second look finds nothing."""
    (path / UNCLEAN_FILE).touch()
    with LogDir.open(str(path)) as log_dir:
        done = recover(log_dir, fallback)
    assert not (path / UNCLEAN_FILE).exists()
    before = contents_as_told(path)
    with LogDir.open(str(path)) as log_dir:
        assert recover(log_dir, fallback) == []
    assert contents_as_told(path) == before
    return done


@pytest.fixture(params=["ours", "broker"])
def path(request: pytest.FixtureRequest, log_dir: Any, our_log_dir: Path) -> Path:
    found: Path = our_log_dir if request.param == "ours" else log_dir.path
    return found


def test_a_recovery_that_is_refused_is_done_again_at_the_next_open(
    our_log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise ChangeRefusedError("it is in use")

    (our_log_dir / UNCLEAN_FILE).touch()
    monkeypatch.setattr(recovery, "list_staged", refused)
    with LogDir.open(str(our_log_dir)) as log_dir, pytest.raises(ChangeRefusedError):
        recover(log_dir)
    assert (our_log_dir / UNCLEAN_FILE).exists()


def test_where_nothing_was_left_nothing_is_done(path: Path) -> None:
    fill(path / "orders-0")
    before = contents(path)
    assert recovered(path) == []
    assert contents(path) == before


def test_a_live_replica_of_which_a_line_speaks_stays_live_and_gets_its_offsets_back(path: Path) -> None:
    fill(path / "orders-0")
    before = contents(path / "orders-0")
    write_ledger(root_of(path), {NAME: record()})
    assert recovered(path) == ["orders-0 was about to be staged or restored, and is live"]
    assert contents(path / "orders-0") == before
    assert read_offsets(path) == {("orders", 0): 42}
    assert LedgerEvent.STAGED not in ledger_events(root_of(path)).values()


def test_all_that_are_live_again_are_told_in_one_sentence(path: Path) -> None:
    records = {}
    for number in range(3):
        fill(path / f"t-{number}")
        records[f"{ORDERS_ID}_{number}"] = record("t", number, f"t-{number}", number)
    write_ledger(root_of(path), records)
    assert recovered(path) == ["t-0 was about to be staged or restored, and is live, and so are 2 others"]
    assert read_offsets(path) == {("t", number): number for number in range(3)}


def test_a_line_in_the_folder_for_spare_records_is_settled_too(path: Path, tmp_path: Path) -> None:
    fill(path / "orders-0")
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    root_of(path)
    with LogDir.open(str(path)) as log_dir, fallback.ledger(log_dir.path, make=True) as other:
        assert other is not None
        other.stage({NAME: record()})
    assert recovered(path, fallback) == ["orders-0 was about to be staged or restored, and is live"]
    assert read_offsets(path) == {("orders", 0): 42}
    assert list((tmp_path / "spare").rglob(LEDGER_FILE)) == []


def test_an_offset_that_is_there_is_newer_than_the_lines(path: Path) -> None:
    fill(path / "orders-0")
    write_offsets(path, {("orders", 0): 50})
    write_ledger(root_of(path), {NAME: record()})
    recovered(path)
    assert read_offsets(path) == {("orders", 0): 50}


def test_a_replica_that_is_staged_and_has_a_successor_under_its_name_is_not_taken_for_live(path: Path) -> None:
    fill(root_of(path) / NAME)
    fill(path / "orders-0")
    write_ledger(root_of(path), {NAME: record()})
    assert recovered(path) == []
    assert ledger_events(root_of(path)) == {NAME: LedgerEvent.STAGED}
    assert not (path / RECOVERY_POINT_CHECKPOINT).exists()


@pytest.mark.parametrize("events", [(LedgerEvent.RESTORED,), (LedgerEvent.PURGING,), (LedgerEvent.PURGED,)])
def test_a_replica_of_which_a_later_line_says_more_is_not_given_old_offsets(
    path: Path, events: tuple[LedgerEvent, ...]
) -> None:
    fill(path / "orders-0")
    write_ledger(root_of(path), {NAME: record()}, *((event, NAME) for event in events))
    assert recovered(path) == []
    assert not (path / RECOVERY_POINT_CHECKPOINT).exists()
    assert ledger_events(root_of(path)).get(NAME) in (None, events[-1])


@pytest.mark.parametrize(
    "said",
    [
        encode_staged(NAME, record())[:-1],
        b"\0" * 600,
        encode_staged(NAME, record())[:100],
        encode_staged(NAME, record("payments", 3, "payments-3")),
        encode_staged(NAME, record("orders", 1, "orders-1")),
        encode_staged(NAME, record()._replace(topic_id=OTHER_ID)),
        encode_staged(NAME, record()).replace(b"orders-0", b"orders/0"),
    ],
)
def test_a_line_that_is_torn_or_speaks_of_another_gives_nothing(path: Path, said: bytes) -> None:
    fill(path / "orders-0")
    before = contents(path / "orders-0")
    (root_of(path) / LEDGER_FILE).write_bytes(encode_header() + said)
    assert recovered(path) == []
    assert contents(path / "orders-0") == before
    assert not (path / RECOVERY_POINT_CHECKPOINT).exists()


@pytest.mark.parametrize("torn", [1, 20, 120])
def test_what_a_crash_tore_is_made_empty_and_what_was_durable_stays(path: Path, torn: int) -> None:
    fill(root_of(path) / NAME)
    write_ledger(root_of(path), {NAME: record()})
    file = root_of(path) / LEDGER_FILE
    with file.open("ab") as end:
        end.write(encode_staged(f"{NAME}.2", record())[:torn])
    recovered(path)
    assert parse_ledger(file.read_bytes()).torn == []
    assert ledger_events(root_of(path)) == {NAME: LedgerEvent.STAGED}


def a_link(file: Path) -> None:
    file.symlink_to("/etc/passwd")


def of_a_later_release(file: Path) -> None:
    text = b'["logstore-ledger",2]'
    file.write_bytes(b"%08x %b\n" % (crc32(text), text))


@pytest.mark.parametrize("make", [os.mkfifo, a_link, Path.mkdir, of_a_later_release])
def test_a_ledger_that_cannot_be_used_is_left_and_all_else_is_sorted_out(
    path: Path, make: Callable[[Path], Any], caplog: pytest.LogCaptureFixture
) -> None:
    passwd = Path("/etc/passwd").read_bytes()
    fill(root_of(path) / NAME)
    make(root_of(path) / LEDGER_FILE)
    (path / f"meta.properties{TEMPORARY}").touch()
    (path / UNCLEAN_FILE).touch()
    before = contents(root_of(path))
    with LogDir.open(str(path)) as log_dir:
        assert len(recover(log_dir)) == 1
    assert f"what is staged in {root_of(path)} is left as it is: {root_of(path)}/{LEDGER_FILE} is" in caplog.text
    assert (path / UNCLEAN_FILE).exists(), "it is recovered again, once the ledger can be used"
    assert contents(root_of(path)) == before
    assert Path("/etc/passwd").read_bytes() == passwd


def test_damaged_lines_stay_for_everybody_to_be_told(path: Path) -> None:
    fill(path / "orders-0")
    file = root_of(path) / LEDGER_FILE
    data = encode_header() + encode_staged(NAME, record()).replace(b"STALE", b"stale")
    file.write_bytes(data + encode_mark(len(data)))
    assert recovered(path) == []
    assert len(parse_ledger(file.read_bytes()).damaged) == 1


def test_temporary_files_of_ours_go_and_others_stay(path: Path) -> None:
    fill(path / "orders-0")
    brokers = {
        *("meta.properties.tmp", f"{RECOVERY_POINT_CHECKPOINT}.tmp", "bootstrap.checkpoint.tmp", "note.tmp"),
        *("orders-0/partition.metadata.tmp", "orders-0/leader-epoch-checkpoint.tmp"),
    }
    ours = ("meta.properties", RECOVERY_POINT_CHECKPOINT, ".logstore_intent", "orders-0/partition.metadata")
    for name in (*brokers, *(f"{name}{TEMPORARY}" for name in ours)):
        (path / name).write_text("x")
    assert len(recovered(path)) == 4
    assert {str(file.relative_to(path)) for file in path.rglob("*.tmp")} == brokers


def test_a_replica_that_was_being_made_goes_from_ours_and_is_left_to_a_broker(path: Path) -> None:
    draft = path / f"orders-0.{UNIQUE}-delete"
    draft.mkdir()
    (draft / "partition.metadata").write_text("half")
    done = recovered(path)
    is_ours = (path / "deleting").exists()
    assert draft.exists() != is_ours
    assert len(done) == is_ours


@pytest.mark.parametrize("event", [LedgerEvent.PURGING, LedgerEvent.PURGED])
def test_an_empty_directory_that_a_purge_announced_is_its_end(path: Path, event: LedgerEvent) -> None:
    root = root_of(path)
    names = [f"{ORDERS_ID}_{number}" for number in range(4)]
    for name in (names[0], names[2], names[3]):
        (root / name).mkdir()
    fill(root / names[1])
    records = {name: record(partition=number, path=f"orders-{number}") for number, name in enumerate(names[:3])}
    write_ledger(root, records, (event, names[0]), (event, names[1]))
    assert recovered(path) == [f"{names[0]} was purged, and its empty directory is removed"]
    assert {entry.name for entry in root.iterdir() if entry.is_dir()} == {*names[1:]}, "a staged replica may be empty"


def test_an_empty_replica_that_was_staged_on_a_full_disk_has_a_record_elsewhere_and_stays(
    our_log_dir: Path, tmp_path: Path
) -> None:
    (our_log_dir / "orders-0").mkdir()
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(our_log_dir), disk=full_disk()) as log_dir:
        outcome = stage(log_dir, [candidate(topic_id=None)], NOW_MS, fallback=fallback)
    assert recovered(our_log_dir, fallback) == []
    assert (our_log_dir / "deleting" / outcome.staged[0].name).is_dir()


def test_offsets_of_what_is_staged_go_and_those_of_a_newer_live_replica_stay(path: Path) -> None:
    for topic in ("orders", "payments"):
        fill(path / f"{topic}-0")
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, [candidate(), candidate("payments-0", TopicPartition("payments", 0))], NOW_MS)
    fill(path / "payments-0")
    write_offsets(path, {("orders", 0): 1, ("payments", 0): 2, ("other", 0): 3})
    recovered(path)
    assert read_offsets(path) == {("payments", 0): 2, ("other", 0): 3}


def test_offsets_of_a_live_replica_stay_where_its_path_is_by_another_topic_id_than_that_of_the_staged_one(
    tmp_path: Path,
) -> None:
    path = formatted(tmp_path / "x", scheme="by-topic-id")
    for topic_id in (ORDERS_ID, OTHER_ID):
        metadata = partition_metadata.encode_json(topic_id, "orders", 0)
        fill(path / topic_id.hex[:2] / f"{topic_id.hex}_0", metadata)
        if topic_id == ORDERS_ID:
            with LogDir.open(str(path)) as log_dir:
                stage(log_dir, [candidate(f"{topic_id.hex[:2]}/{topic_id.hex}_0")], NOW_MS)
    write_offsets(path, {("orders", 0): 7})
    recovered(path)
    assert read_offsets(path) == {("orders", 0): 7}


@pytest.mark.parametrize("again", [False, True])
def test_what_lies_in_one_place_is_not_judged_by_the_lines_of_another(
    log_dir: Any, tmp_path: Path, again: bool
) -> None:
    path, stray = log_dir.path, f"orders-0.{UNIQUE}-stray"
    fill(path / stray)
    fill(root_of(path) / NAME if again else path / "orders-0")
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    if again:
        write_ledger(root_of(path), {NAME: record()})
    with LogDir.open(str(path)) as opened, fallback.ledger(opened.path, make=True) as other:
        assert other is not None
        other.stage({stray: record()})
    assert recovered(path, fallback) == []
    with LogDir.open(str(path)) as opened:
        found = {each.name: each.record for each in list_staged(opened, fallback)}
    assert found == dict.fromkeys((stray, NAME) if again else (stray,), record())
    assert not (path / RECOVERY_POINT_CHECKPOINT).exists()


def test_the_lines_of_one_place_give_no_offsets_to_what_lives_while_another_place_holds_the_replica(
    log_dir: Any,
) -> None:
    path, stray = log_dir.path, f"orders-0.{UNIQUE}-stray"
    fill(path / stray)
    fill(path / "orders-0")
    write_ledger(path, {stray: record()})
    write_ledger(root_of(path), {NAME: record()})
    assert recovered(path) == []
    assert not (path / RECOVERY_POINT_CHECKPOINT).exists()


@pytest.mark.parametrize("scheme", ["namespaced", "by-topic-id"])
def test_replicas_of_the_other_schemes_are_looked_into_as_well(tmp_path: Path, scheme: str) -> None:
    path = formatted(tmp_path / "x", scheme=scheme)
    where = "org/orders-0" if scheme == "namespaced" else f"{ORDERS_ID.hex[:2]}/{ORDERS_ID.hex}_0"
    fill(path / where)
    if scheme == "namespaced":
        (path / "org" / MARKER_FILE).touch()
    topic = "org:orders" if scheme == "namespaced" else "orders"
    write_ledger(path / "deleting", {NAME: record(topic, 0, where)})
    recovered(path)
    assert LedgerEvent.STAGED not in ledger_events(path / "deleting").values()
    assert read_offsets(path) == {(topic, 0): 42}


def test_a_replica_whose_topic_has_another_name_by_now_gets_its_offsets_under_that(tmp_path: Path) -> None:
    path = formatted(tmp_path / "x", scheme="by-topic-id")
    where = f"{ORDERS_ID.hex[:2]}/{ORDERS_ID.hex}_0"
    fill(path / where, partition_metadata.encode_json(ORDERS_ID, "sales:orders", 0))
    write_ledger(path / "deleting", {NAME: record("orders", 0, where)})
    recovered(path)
    assert read_offsets(path) == {("sales:orders", 0): 42}


def test_a_link_that_looks_like_a_replica_is_not_entered(path: Path, tmp_path: Path) -> None:
    fill(tmp_path / "elsewhere")
    (path / "orders-0").symlink_to(tmp_path / "elsewhere")
    write_ledger(root_of(path), {NAME: record()})
    assert recovered(path) == []
    assert ledger_events(root_of(path)) == {NAME: LedgerEvent.STAGED}


def test_a_staging_root_that_is_a_link_is_not_entered(our_log_dir: Path, tmp_path: Path) -> None:
    (our_log_dir / "deleting").rmdir()
    (tmp_path / "elsewhere" / f"{ORDERS_ID}_0").mkdir(parents=True)
    (our_log_dir / "deleting").symlink_to(tmp_path / "elsewhere")
    write_ledger(tmp_path / "elsewhere", {NAME: record()}, (LedgerEvent.PURGING, NAME))
    before = picture(tmp_path / "elsewhere")
    assert recovered(our_log_dir) == []
    assert picture(tmp_path / "elsewhere") == before


def test_a_recovery_that_the_system_refuses_leaves_the_mark(our_log_dir: Path) -> None:
    (our_log_dir / UNCLEAN_FILE).touch()
    (our_log_dir / f"orders-0.{UNIQUE}-delete").mkdir()
    for number in (errno.EACCES, errno.EIO):
        with (
            pytest.raises(Exception, match="what a crash left cannot be sorted out"),
            LogDir.open(str(our_log_dir), disk=DiskThat(number, {"rmdir"})) as log_dir,
        ):
            recover(log_dir)
        assert (our_log_dir / UNCLEAN_FILE).exists()


def test_a_disk_that_fails_meanwhile_is_offline(our_log_dir: Path) -> None:
    (our_log_dir / f"orders-0.{UNIQUE}-delete").mkdir()
    with LogDir.open(str(our_log_dir), disk=DiskThat(errno.EIO, {"rmdir"})) as log_dir:
        with pytest.raises(OfflineLogDirError):
            recover(log_dir)
        assert log_dir.offline is not None


@pytest.mark.parametrize("has_checkpoint_room", [False, True])
def test_a_full_disk_is_opened_and_what_found_no_room_is_done_by_the_next_one(
    path: Path, has_checkpoint_room: bool
) -> None:
    fill(path / "orders-0")
    write_ledger(root_of(path), {NAME: record()})  # without the space that is kept
    (path / UNCLEAN_FILE).touch()
    if not has_checkpoint_room:
        write_offsets(path, {("other", 0): 1})
    with LogDir.open(str(path), disk=full_disk()) as log_dir:
        if has_checkpoint_room:
            log_dir.disk = Disk()  # but there is none for the ledger, which is opened already
            log_dir.ledgers = Ledgers(full_disk())
        recover(log_dir)
    assert (path / UNCLEAN_FILE).exists(), "there is more to do once there is room"
    assert recovered(path) == ["orders-0 was about to be staged or restored, and is live"]
    assert read_offsets(path)[("orders", 0)] == 42


@pytest.fixture
def mounted_draft(our_log_dir: Path, tmp_path: Path) -> Iterator[Path]:
    """A draft with somebody's directory mounted in it, of the same file system."""
    point = our_log_dir / f"orders-0.{UNIQUE}-delete" / "mounted"
    point.mkdir(parents=True)
    fill(tmp_path / "precious")
    subprocess.run(["mount", "--bind", str(tmp_path / "precious"), str(point)], check=True)
    yield our_log_dir
    subprocess.run(["umount", str(point)], check=True)


@pytest.mark.root
def test_what_is_mounted_in_a_draft_is_not_removed_and_the_log_dir_opens(mounted_draft: Path, tmp_path: Path) -> None:
    before = contents(tmp_path / "precious")
    recovered(mounted_draft)
    assert contents(tmp_path / "precious") == before


def test_what_was_done_is_logged_in_a_sentence_each(our_log_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    (our_log_dir / f"orders-0.{UNIQUE}-delete").mkdir()
    (our_log_dir / f"meta.properties{TEMPORARY}").touch()
    done = recovered(our_log_dir)
    assert [f"{our_log_dir}: {sentence}" for sentence in done] == [record.getMessage() for record in caplog.records]
    assert len(done) == 2


def test_no_descriptor_is_left_behind(path: Path) -> None:
    before = open_descriptors()
    fill(path / "orders-0")
    write_ledger(root_of(path), {NAME: record()})
    recovered(path)
    assert open_descriptors() == before
