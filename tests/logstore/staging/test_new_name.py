"""A staged replica whose topic has another name by now: it comes back under that name, known by its topic ID."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from layout import partition_metadata
from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT
from layout.ids import TopicId
from layout.ours import LedgerEvent
from layout.scheme import MARKER_FILE, Scheme, partition_path
from layout.topic import TopicPartition
from logstore import (
    ChangeFailedError,
    ChangeRefusedError,
    DamagedRecordError,
    InvalidArgumentError,
    InvalidNamespaceError,
    NameTakenError,
)
from logstore.fs import TEMPORARY, Disk
from logstore.log_dir import FallbackRecords, LogDir
from logstore.staging import (
    Placement,
    Staged,
    list_staged,
    note_event,
    planned_restore,
    restore,
    settle_live,
    settle_name,
    stage,
)
from logstore.store import recover
from tests.logstore.engine import (
    NOW_MS,
    ORDERS,
    ORDERS_ID,
    OTHER_ID,
    SHIPPED,
    FullDisk,
    candidate,
    contents,
    contents_but_ledgers,
    fill,
    formatted,
    ledger_entries,
    ledger_events,
    opened,
    read_offsets,
    write_offsets,
)

SALES, MOVED = TopicPartition("sales", 0), TopicPartition("net:orders", 0)
DRAFT = partition_metadata.FILE_NAME + TEMPORARY


def named(partition: TopicPartition, topic_id: TopicId = ORDERS_ID) -> bytes:
    return partition_metadata.encode_json(topic_id, partition.topic, partition.partition)


@dataclass
class Case:
    """A log dir with one staged replica, which has offsets."""

    path: Path
    new: TopicPartition
    home: str
    metadata: bytes
    before: object

    @property
    def file(self) -> Path:
        return self.path / self.home / partition_metadata.FILE_NAME

    @property
    def root(self) -> Path:
        return self.path / "deleting"

    def staged(self, log_dir: LogDir) -> Staged:
        (staged,) = list_staged(log_dir)
        return staged


def a_case(folder: Path, scheme: Scheme, *, metadata: bytes | None = None) -> Case:
    path = formatted(folder / "data", scheme=scheme.value)
    if scheme is Scheme.NAMESPACED:
        for tier in ("org", "net"):
            (path / tier).mkdir()
            (path / tier / MARKER_FILE).touch()
    old, new = {
        Scheme.FLAT: (ORDERS, SALES),
        Scheme.NAMESPACED: (TopicPartition("org:orders", 0), MOVED),
        Scheme.BY_TOPIC_ID: (ORDERS, MOVED),
    }[scheme]
    lay = partition_path(scheme, old, ORDERS_ID)
    metadata = named(old) if metadata is None else metadata
    fill(path / lay, metadata)
    write_offsets(path, {(old.topic, 0): 42, ("payments", 0): 7})
    write_offsets(path, {(old.topic, 0): 40}, HIGH_WATERMARK_CHECKPOINT)
    before = contents(path / lay)
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, [candidate(lay, old)], NOW_MS)
    return Case(path, new, partition_path(scheme, new, ORDERS_ID), metadata, before)


@pytest.fixture(params=list(Scheme))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return a_case(tmp_path, request.param)


@pytest.fixture
def flat(tmp_path: Path) -> Case:
    return a_case(tmp_path, Scheme.FLAT)


def test_path_file_and_offsets_get_the_new_name_and_the_rest_stays_as_it_was(case: Case) -> None:
    # KIP37-3, KIP516-13
    write_offsets(case.path, {("payments", 0): 7, (case.new.topic, 0): 999})  # of a topic that had that name before
    with LogDir.open(str(case.path)) as log_dir:
        staged = case.staged(log_dir)
        planned = planned_restore(log_dir, staged, case.new, ORDERS_ID)
        assert restore(log_dir, staged, partition=case.new, topic_id=ORDERS_ID) == planned
        assert (planned.partition, planned.path) == (case.new, case.home)
        assert list_staged(log_dir) == []
    assert list(ledger_events(case.root).values()) == [LedgerEvent.RESTORED]
    assert case.file.read_bytes() == named(case.new)
    assert read_offsets(case.path) == {(case.new.topic, 0): 42, ("payments", 0): 7}
    assert read_offsets(case.path, HIGH_WATERMARK_CHECKPOINT) == {(case.new.topic, 0): 40}
    case.file.write_bytes(case.metadata)
    assert contents(case.path / case.home) == case.before
    case.file.write_bytes(named(case.new))
    with opened(case.path) as store:
        assert [(each.partition, each.topic_id) for each in store.replicas()] == [(case.new, ORDERS_ID)]


def test_what_has_the_former_name_by_now_is_left_alone_with_its_offsets(flat: Case) -> None:
    fill(flat.path / "orders-0", named(ORDERS, OTHER_ID))
    write_offsets(flat.path, {("orders", 0): 5})
    before = contents(flat.path / "orders-0")
    with opened(flat.path) as store:
        (staged,) = store.staged()
        wrong: Any = str(ORDERS_ID)
        with pytest.raises(InvalidArgumentError, match="topic_id"):
            store.restore(staged, SALES, wrong)
        store.restore(staged, SALES, ORDERS_ID)
        assert {each.partition: each.topic_id for each in store.replicas()} == {ORDERS: OTHER_ID, SALES: ORDERS_ID}
    assert contents(flat.path / "orders-0") == before
    assert read_offsets(flat.path) == {("orders", 0): 5, ("sales", 0): 42}


def test_what_has_the_new_name_by_now_is_in_the_way(case: Case) -> None:
    fill(case.path / case.home, named(case.new, OTHER_ID))
    with opened(case.path) as store:
        (staged,) = store.staged()
        with pytest.raises(NameTakenError):
            store.restore(staged, case.new, ORDERS_ID)
        assert store.staged() == [staged]


@pytest.mark.parametrize("topic_id", [None, OTHER_ID, TopicId.ZERO])
def test_without_the_topic_id_of_the_replica_another_name_is_refused(flat: Case, topic_id: TopicId | None) -> None:
    before = contents(flat.path)
    with LogDir.open(str(flat.path)) as log_dir:
        with pytest.raises(ChangeRefusedError, match="is orders-0, and not sales-0"):
            restore(log_dir, flat.staged(log_dir), partition=SALES, topic_id=topic_id)
        with pytest.raises(ChangeRefusedError, match="is orders-0, and not sales-1"):
            restore(log_dir, flat.staged(log_dir), partition=TopicPartition("sales", 1), topic_id=ORDERS_ID)
        assert restore(log_dir, flat.staged(log_dir)).partition == ORDERS
    assert contents(flat.path) != before


def test_a_replica_without_a_topic_id_is_known_by_its_name_alone(our_log_dir: Path) -> None:
    fill(our_log_dir / "orders-0", None)
    with LogDir.open(str(our_log_dir)) as log_dir:
        stage(log_dir, [candidate(topic_id=None)], NOW_MS)
        (staged,) = list_staged(log_dir)
        with pytest.raises(ChangeRefusedError, match="is orders-0, and not sales-0"):
            restore(log_dir, staged, partition=SALES, topic_id=TopicId.ZERO)


def test_a_name_that_its_log_dir_cannot_hold_is_refused(tmp_path: Path, flat: Case) -> None:
    with LogDir.open(str(flat.path)) as log_dir, pytest.raises(ChangeRefusedError, match="no directories for tiers"):
        planned_restore(log_dir, flat.staged(log_dir), MOVED, ORDERS_ID)
    other, gone = a_case(tmp_path / "other", Scheme.NAMESPACED), TopicPartition("com:orders", 0)
    with LogDir.open(str(other.path)) as log_dir, pytest.raises(InvalidNamespaceError, match="namespace com was"):
        planned_restore(log_dir, other.staged(log_dir), gone, ORDERS_ID)


@pytest.mark.parametrize("placement", [Placement.SIBLING, Placement.IN_PLACE], ids=str)
def test_in_a_real_broker_s_log_dir_the_topic_id_says_what_it_is_as_well(tmp_path: Path, placement: Placement) -> None:
    # Somebody had renamed its directory by hand when it was staged.
    path = formatted(tmp_path / "data")
    identity = path / "meta.properties"
    identity.write_text("".join(line for line in identity.read_text().splitlines(True) if "logstore" not in line))
    (path / "deleting").rmdir()
    fill(path / "ordres-0")
    before = contents(path / "ordres-0")
    with LogDir.open(str(path)) as log_dir:
        assert not log_dir.is_ours
        stage(log_dir, [candidate("ordres-0", TopicPartition("ordres", 0))], NOW_MS, placement=placement)
        (staged,) = list_staged(log_dir)
        with pytest.raises(DamagedRecordError):
            restore(log_dir, staged, partition=TopicPartition("__cluster_metadata", 0), topic_id=ORDERS_ID)
        assert restore(log_dir, staged, partition=ORDERS, topic_id=ORDERS_ID).path == "orders-0"
    assert contents(path / "orders-0") == before


@pytest.mark.parametrize("metadata", [SHIPPED, b"", named(ORDERS, OTHER_ID), named(TopicPartition("orders", 7))])
def test_a_file_without_a_name_or_that_is_left_to_repair_stays_as_it_is(tmp_path: Path, metadata: bytes) -> None:
    kept = a_case(tmp_path, Scheme.FLAT)
    (staged,) = kept.root.glob("*_0")
    (staged / partition_metadata.FILE_NAME).write_bytes(metadata)
    with LogDir.open(str(kept.path)) as log_dir:
        restore(log_dir, kept.staged(log_dir), partition=SALES, topic_id=ORDERS_ID)
    assert kept.file.read_bytes() == metadata


def test_under_the_scheme_by_topic_id_a_file_without_a_name_gets_it(tmp_path: Path) -> None:
    case = a_case(tmp_path, Scheme.BY_TOPIC_ID, metadata=SHIPPED)
    with LogDir.open(str(case.path)) as log_dir:
        restore(log_dir, case.staged(log_dir), partition=MOVED, topic_id=ORDERS_ID)
    assert case.file.read_bytes() == named(MOVED)


def test_a_record_that_found_no_room_gets_its_new_name_where_it_lies(our_log_dir: Path, tmp_path: Path) -> None:
    fill(our_log_dir / "orders-0", named(ORDERS))
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(our_log_dir), disk=FullDisk()) as log_dir:
        stage(log_dir, [candidate()], NOW_MS, fallback=fallback)
    with LogDir.open(str(our_log_dir)) as log_dir:
        (staged,) = list_staged(log_dir, fallback)
        with pytest.raises(ChangeRefusedError, match="list again"):
            restore(log_dir, staged, partition=SALES, topic_id=ORDERS_ID)
        assert list_staged(log_dir, fallback) == [staged]
        (file,) = (our_log_dir / "deleting").glob("*/partition.metadata")
        assert file.read_bytes() == named(ORDERS)
        restore(log_dir, staged, partition=SALES, topic_id=ORDERS_ID, fallback=fallback)
        assert fallback.read(log_dir.path) is None
    assert (our_log_dir / "sales-0" / partition_metadata.FILE_NAME).read_bytes() == named(SALES)


def test_what_a_purge_has_begun_since_it_was_listed_gets_no_name_that_makes_it_whole_again(flat: Case) -> None:
    with LogDir.open(str(flat.path)) as log_dir:
        staged = flat.staged(log_dir)
        with log_dir.root.below("deleting") as root:
            note_event(log_dir, root, FallbackRecords(None), LedgerEvent.PURGING, [staged.name], durable=True)
        with pytest.raises(ChangeRefusedError, match="list again"):
            restore(log_dir, staged, partition=SALES, topic_id=ORDERS_ID)
        assert flat.staged(log_dir).may_be_partly_purged


def test_a_directory_without_a_line_gets_its_name_too(flat: Case) -> None:
    (flat.root / ".logstore_ledger").unlink()
    with LogDir.open(str(flat.path)) as log_dir:
        assert restore(log_dir, flat.staged(log_dir), partition=SALES, topic_id=ORDERS_ID).path == "sales-0"
    assert flat.file.read_bytes() == named(SALES)


# What a failure or a crash leaves


class NoRename(Disk):
    """Refuses to make a directory live."""

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        if new_name == "sales-0":
            raise PermissionError(errno.EACCES, "no")
        super().rename(source, name, target, new_name)


def test_a_restore_that_is_refused_leaves_its_former_name(flat: Case) -> None:
    before = contents_but_ledgers(flat.root)
    with LogDir.open(str(flat.path), disk=NoRename()) as log_dir:
        staged = flat.staged(log_dir)
        with pytest.raises(ChangeFailedError, match="nothing was changed"):
            restore(log_dir, staged, partition=SALES, topic_id=ORDERS_ID)
        assert flat.staged(log_dir) == staged
    assert contents_but_ledgers(flat.root) == before
    assert [entry.record for entry in ledger_entries(flat.root).values()] == [staged.record]


@pytest.mark.parametrize("has_line", [True, False])
def test_a_draft_is_finished_or_removed_as_the_ledger_says(flat: Case, has_line: bool) -> None:
    (name,) = (each.name for each in flat.root.glob("*_0"))
    (flat.root / name / DRAFT).write_bytes(named(SALES))
    with LogDir.open(str(flat.path)) as log_dir:
        record = flat.staged(log_dir).record
        assert record is not None
        if has_line:
            with log_dir.root.below("deleting") as root:
                log_dir.ledgers.of(root).rename(name, record._replace(topic="sales", path="sales-0"))
        done = recover(log_dir)
        assert done[0].startswith(f"{name} was about to be restored under another name, and is staged as ")
        assert not (flat.root / name / DRAFT).exists()
        assert restore(log_dir, flat.staged(log_dir)).path == ("sales-0" if has_line else "orders-0")
    file = flat.path / ("sales-0" if has_line else "orders-0") / partition_metadata.FILE_NAME
    assert file.read_bytes() == named(SALES if has_line else ORDERS)


def test_where_nothing_is_under_way_there_is_nothing_to_settle(flat: Case) -> None:
    with LogDir.open(str(flat.path)) as log_dir, log_dir.root.below("deleting") as root:
        staged = flat.staged(log_dir)
        assert not settle_name(log_dir, root, staged.name, staged.record)


@pytest.mark.parametrize(
    ("held", "drafted", "is_done"), [(ORDERS, SALES, True), (SALES, ORDERS, False), (None, SALES, False)]
)
def test_a_draft_in_a_live_replica_is_finished_only_where_it_has_the_name_of_the_path(
    our_log_dir: Path, held: TopicPartition | None, drafted: TopicPartition, is_done: bool
) -> None:
    replica = fill(our_log_dir / "sales-0", None if held is None else named(held))
    (replica / DRAFT).write_bytes(named(drafted))
    with LogDir.open(str(our_log_dir)) as log_dir, log_dir.root.below("sales-0") as directory:
        assert settle_live(log_dir, directory, "sales-0") is is_done
    assert not (replica / DRAFT).exists()
    found = replica / partition_metadata.FILE_NAME
    assert found.exists() is (held is not None)
    assert held is None or found.read_bytes() == named(SALES)
