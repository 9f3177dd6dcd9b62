"""The invariants over replicas: each is broken once in every way that it is there for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from layout.ids import TopicId
from layout.ours import LedgerEvent, StagedRecord, encode_event, encode_header, encode_mark, encode_staged
from layout.scheme import LEDGER_FILE
from tests.crash.images import Tree, read_tree, write_tree
from tests.crash.replicas import (
    FALLBACK,
    assert_each_is_told,
    assert_each_lies_once,
    assert_nothing_staged_is_lost,
    assert_restorable,
    begun,
    entries,
    records,
    replicas,
    unfounded,
)

ID, OTHER = TopicId.parse("UXyU9i5ARn6W00ON2taeWA"), TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")
SEGMENT = "00000000000000000000.log"
RECORD = StagedRecord("orders", 0, ID, "orders-0", "STALE_ID", "", 1000, 2000)


def replica(path: str, topic_id: TopicId | None = ID, data: bytes = b"x", record: StagedRecord | None = None) -> Tree:
    tree: Tree = {path: None, f"{path}/{SEGMENT}": data, f"{path}/leader-epoch-checkpoint": b"0\n0\n"}
    if topic_id is not None:
        tree[f"{path}/partition.metadata"] = f"version: 0\ntopic_id: {topic_id}".encode()
    return tree | ({} if record is None else told(path, record))


def told(path: str, record: StagedRecord, *events: LedgerEvent, by: str = "") -> Tree:
    """The ledger that speaks of a staged directory, beside it or in another folder."""
    folder, _, name = path.rpartition("/")
    lines = [encode_header(), encode_staged(name, record), *(encode_event(event, name) for event in events)]
    return {f"{by or folder}/{LEDGER_FILE}": b"".join([*lines, encode_mark(sum(map(len, lines)))])}


def log_dir(*parts: Tree) -> Tree:
    tree: Tree = {"d": None, "d.deleting": None, "d/deleting": None, "d/51": None, "e": None, "d/meta.properties": b""}
    for part in parts:
        tree.update(part)
    return tree


LIVE = replica("d/orders-0")
BY_ID = f"d/51/{ID.hex}_0"


@pytest.mark.parametrize(
    "path",
    [
        *("e/orders-0", f"d/deleting/{ID}_0", f"d/deleting/{ID}_0.2", f"d.deleting/{ID}_0", BY_ID),
        f"d/orders-0.{'a' * 32}-stray",
    ],
)
def test_a_replica_is_the_same_wherever_it_lies_and_whatever_it_is_called(path: str) -> None:
    assert_each_lies_once(log_dir(LIVE), log_dir(replica(path, record=RECORD)))


def test_a_replica_without_a_topic_id_goes_by_its_name() -> None:
    zero = TopicId.parse("A" * 22)
    record = StagedRecord("orders", 0, zero, "orders-0", "NO_ID", "", 1, 2)
    before = log_dir(replica("d/orders-0", None))
    assert_each_lies_once(before, log_dir(replica(f"d/deleting/{zero}_0", None, record=record)))


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (log_dir(), "is gone"),
        (log_dir(replica("d/orders-0", OTHER)), "is gone"),
        (log_dir(replica("d/orders-1")), "is gone"),
        (log_dir(replica("d/orders-0", data=b"y")), "gone or changed"),
        (log_dir(LIVE, replica("e/orders-0")), "lies in 2 places: d/orders-0, e/orders-0"),
        (log_dir(LIVE, {"d/orders-0/more": b""}), "gone or changed"),
        (log_dir(LIVE, replica("d/more-0", OTHER)), "0 new replicas were expected"),
    ],
)
def test_a_replica_that_is_gone_doubled_changed_or_new_is_found(after: Tree, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        assert_each_lies_once(log_dir(LIVE), after)


def test_what_was_due_may_be_gone_wholly_or_in_part_and_what_is_created_is_new() -> None:
    staged = f"d/deleting/{ID}_0"
    before = log_dir(replica(staged, record=RECORD))
    gone = list(replicas(before).values())
    partly = replica(staged, record=RECORD)
    del partly[f"{staged}/leader-epoch-checkpoint"]
    for after in (before, log_dir(), log_dir(partly)):
        assert_each_lies_once(before, after, may_go=gone)
    assert_each_lies_once(log_dir(LIVE), log_dir(LIVE, replica("d/new-0", OTHER)), new=1)
    with pytest.raises(AssertionError, match="gone or changed"):
        assert_each_lies_once(log_dir(LIVE, replica("e/x-1", OTHER)), log_dir(LIVE), may_go=replicas(LIVE).values())


STAGED = f"d/deleting/{ID}_0"


def test_a_line_speaks_of_a_directory_that_is_there_and_only_while_it_is_staged() -> None:
    staged = log_dir(replica(STAGED, record=RECORD))
    assert records(staged) == {STAGED: RECORD}
    assert unfounded(staged) == []
    restored = log_dir(replica(STAGED), told(STAGED, RECORD, LedgerEvent.RESTORED))
    assert (entries(restored), records(restored)) == ({}, {})
    begins = log_dir(replica(STAGED), told(STAGED, RECORD, LedgerEvent.PURGING))
    assert (records(begins), begun(begins)) == ({}, [STAGED])
    kept = log_dir(replica(STAGED), told(STAGED, RECORD, LedgerEvent.PURGING, LedgerEvent.KEPT))
    assert (records(kept), begun(kept)) == ({STAGED: RECORD}, [])
    without = log_dir(told(STAGED, RECORD))
    assert (records(without), unfounded(without)) == ({}, [STAGED])
    assert unfounded(log_dir(told(STAGED, RECORD, LedgerEvent.RESTORED))) == []


def test_a_ledger_in_the_folder_for_fallback_records_speaks_of_the_disk_that_it_is_named_after() -> None:
    for disk, found in (("d", {STAGED: RECORD}), ("e", {})):
        elsewhere = told(STAGED, RECORD, by=f"e/{FALLBACK}/{disk}")
        assert records(log_dir(replica(STAGED), elsewhere)) == found


def test_a_staged_directory_of_which_no_valid_line_speaks_is_found() -> None:
    before = log_dir(LIVE)
    assert_each_is_told(before, log_dir(replica(STAGED, record=RECORD)))
    assert_each_is_told(before, log_dir(replica(STAGED), told(STAGED, RECORD, LedgerEvent.PURGING)))
    untold: list[Tree] = [
        replica(STAGED),
        {**replica(STAGED), **told(STAGED, RECORD, LedgerEvent.RESTORED)},
        {**replica(STAGED), **told(f"{STAGED}.2", RECORD)},
        {STAGED: None},
        replica(f"d/orders-0.{'a' * 32}-stray"),
    ]
    for after in untold:
        with pytest.raises(AssertionError, match="is there, and no line says what it was"):
            assert_each_is_told(before, log_dir(after))
    stray = log_dir(replica(f"d/orders-0.{'a' * 32}-stray"))
    assert_each_is_told(stray, stray)


def test_a_line_that_is_damaged_after_a_crash_is_found_and_one_that_is_torn_is_not() -> None:
    ((file, data),) = told(STAGED, RECORD).items()
    assert isinstance(data, bytes)
    torn = log_dir(replica(STAGED), {file: data + b"half a line"})
    assert_each_is_told(torn, torn)
    damaged = log_dir(replica(STAGED), {file: data.replace(b"orders-0", b"orders-1")})
    with pytest.raises(AssertionError, match=r"line 2 of the ledger in d/deleting is damaged"):
        assert_each_is_told(damaged, damaged)
    with pytest.raises(AssertionError, match="no line says what it was"):
        assert_each_is_told(log_dir(replica(STAGED, record=RECORD)), damaged)


def test_what_is_staged_and_not_due_stays_or_comes_back() -> None:
    staged = f"d/deleting/{ID}_0"
    before = log_dir(replica(staged, record=RECORD))
    for after in (before, log_dir(LIVE), log_dir(replica(staged + ".2", record=RECORD))):
        assert_nothing_staged_is_lost(before, after, 1999)
    assert_nothing_staged_is_lost(before, log_dir(), 2000)
    with pytest.raises(AssertionError, match="is gone, and was due only at 2000; now it is 1999"):
        assert_nothing_staged_is_lost(before, log_dir(), 1999)
    sooner = StagedRecord("orders", 0, ID, "orders-0", "STALE_ID", "", 1000, 1001)
    with pytest.raises(AssertionError, match="has another record"):
        assert_nothing_staged_is_lost(before, log_dir(replica(staged, record=sooner)), 1000)
    announced = log_dir(replica(staged), told(staged, RECORD, LedgerEvent.PURGING))
    with pytest.raises(AssertionError, match="can only be purged any more"):
        assert_nothing_staged_is_lost(before, announced, 1000)


@pytest.mark.parametrize("staged", [f"d/deleting/{ID}_0", f"d.deleting/{ID}_0", f"d/orders-0.{'a' * 32}-stray"])
def test_what_is_staged_must_come_back_byte_for_byte(tmp_path: Path, staged: str) -> None:
    root, copy = str(tmp_path / "root"), str(tmp_path / "copy")
    tree = log_dir(replica(staged, record=RECORD))
    write_tree(tree, root)

    def restore(below: str, path: str, leave: str = "", spoil: str = "", said: bool = True) -> None:
        os.rename(f"{below}/{path}", f"{below}/d/orders-0")
        ((file, data),) = told(path, RECORD, *([LedgerEvent.RESTORED] if said else [])).items()
        assert isinstance(data, bytes)
        Path(below, file).write_bytes(data)
        if leave:
            os.mkdir(f"{below}/{path}")
        if spoil:
            os.unlink(f"{below}/d/orders-0/{spoil}")

    assert assert_restorable(root, copy, restore, log_dir(LIVE)) == 1
    assert assert_restorable(root, copy, restore, log_dir(LIVE), skip=[staged]) == 0
    assert read_tree(root) == tree
    wrong = [
        ("still lies there", lambda below, path: restore(below, path, leave="yes")),
        ("is not what it was", lambda below, path: restore(below, path, spoil="partition.metadata")),
        ("is not there", lambda below, path: None),
        ("still says that it is staged", lambda below, path: restore(below, path, said=False)),
    ]
    for reason, wrongly in wrong:
        with pytest.raises(AssertionError, match=reason):
            assert_restorable(root, copy, wrongly, log_dir(LIVE))
        shutil.rmtree(copy)
