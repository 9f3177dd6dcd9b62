"""The records of one replica over a disk that forgets unsynced changes, their lines, and their leader epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from logstore import ChangeFailedError, LogStoreError, OfflineLogDirError
from logstore.fs.crash_disk import MachineDisks
from logstore.store import LogStore, StoreOptions
from reconciler.simulator.kernel import Record, World
from reconciler.simulator.machine import (
    SEGMENT_FILE,
    BrokerSettings,
    decode_records,
    records_in,
)
from reconciler.simulator.machine.broker import open_store
from reconciler.simulator.machine.host import MachineClock
from reconciler.simulator.machine.replica_log import EpochStarts, ReplicaLog, encode_record
from tests.reconciler.simulator.machine.brokers import ORDERS, A, B

RECORDS = [Record(offset, offset // 2, A, f"v{offset}") for offset in range(6)]


class Machine:
    """One disk with one replica."""

    def __init__(self, root: Path, passes: Callable[[], None] = lambda: None) -> None:
        self.disks = MachineDisks(str(root), 1, passes)
        self.clock = MachineClock(World(1).timers("m"))
        self.store = self._open()
        self.store.create(ORDERS, A)
        self.log = self.open_log()

    def _open(self) -> LogStore:
        return open_store(
            self.disks.log_dirs,
            1,
            disk=self.disks.disk,
            clock=self.clock,
            settings=BrokerSettings(),
            say=lambda text: None,
        )

    def open_log(self) -> ReplicaLog:
        return ReplicaLog(self.store.log_dirs[0], self.store.get(ORDERS))

    def crash(self, seed: int) -> ReplicaLog:
        """Cut the power, start again, and open the log."""
        self.store.abandon()
        self.disks.crash(Random(seed))
        self.store = self._open()
        self.log = self.open_log()
        return self.log

    @property
    def bytes(self) -> bytes:
        return Path(self.disks.log_dirs[0], "orders-0", SEGMENT_FILE).read_bytes()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path)
    yield found
    found.store.abandon()
    found.disks.close()


def test_a_new_replica_has_no_records_and_no_segment(machine: Machine) -> None:
    assert (machine.log.end, machine.log.read(0, 10), machine.log.recovery_point) == (0, (), 0)
    assert not machine.log.flush()
    assert not Path(machine.disks.log_dirs[0], "orders-0", SEGMENT_FILE).exists()


def test_records_are_read_as_they_were_appended_also_after_a_restart(machine: Machine) -> None:
    machine.log.append(RECORDS[:2])
    machine.log.append(RECORDS[2:])
    assert machine.log.read(1, 3) == tuple(RECORDS[1:3])
    machine.store.close()
    machine.store = LogStore.open(machine.disks.log_dirs, StoreOptions(disk=machine.disks.disk, jobs=0))
    again = machine.open_log()
    assert again.read(0, 10) == tuple(RECORDS)
    assert again.epochs.end_of(1, again.end) == (1, 4)


@pytest.mark.parametrize("wrong", [[RECORDS[1]], [RECORDS[0], RECORDS[2]]])
def test_records_that_do_not_go_on_where_the_log_ends_are_refused(machine: Machine, wrong: list[Record]) -> None:
    with pytest.raises(ValueError, match="ends at 0"):
        machine.log.append(wrong)
    assert machine.log.end == 0


@pytest.mark.parametrize("seed", range(30))
def test_a_crash_leaves_what_was_flushed_and_some_of_the_rest(machine: Machine, seed: int) -> None:
    machine.log.append(RECORDS[:3])
    assert machine.log.flush()
    machine.log.append(RECORDS[3:4])
    machine.log.append(RECORDS[4:])
    log = machine.crash(seed)
    assert 3 <= log.end <= 6
    assert log.read(0, 10) == tuple(RECORDS[: log.end])
    assert len(machine.bytes) == sum(len(line) + 1 for line in machine.bytes.splitlines())


def test_some_crash_loses_and_some_keeps_and_some_tears_what_was_not_flushed(tmp_path: Path) -> None:
    ends, torn = set(), set()
    for seed in range(40):
        (tmp_path / str(seed)).mkdir()
        machine = Machine(tmp_path / str(seed))
        machine.log.append(RECORDS[:1])
        machine.log.flush()
        machine.log.append(RECORDS[1:3])
        log = machine.crash(seed)
        ends.add(log.end)
        torn.add(log.torn > 0)
        machine.store.abandon()
        machine.disks.close()
    assert {1, 3} <= ends
    assert torn == {True, False}


@pytest.mark.parametrize("seed", range(20))
def test_after_a_cut_and_new_records_a_crash_never_mixes_the_two(machine: Machine, seed: int) -> None:
    machine.log.append(RECORDS)
    machine.log.flush()
    assert machine.log.truncate(2)
    new = [Record(2, 9, A, "new"), Record(3, 9, A, "newer")]
    machine.log.append(new)
    found = machine.crash(seed).read(0, 10)
    was, would_be = tuple(RECORDS), (*RECORDS[:2], *new)
    assert found in [was[:end] for end in range(2, 7)] + [would_be[:end] for end in range(2, 5)]


@pytest.mark.parametrize("seed", range(10))
def test_a_cut_that_was_flushed_stays(machine: Machine, seed: int) -> None:
    machine.log.append(RECORDS)
    machine.log.flush()
    assert machine.log.truncate(2)
    assert machine.log.recovery_point == 2
    assert machine.log.epochs.last == 0
    assert machine.log.flush()
    assert machine.crash(seed).read(0, 10) == tuple(RECORDS[:2])


def test_a_cut_behind_the_end_does_nothing(machine: Machine) -> None:
    machine.log.append(RECORDS)
    assert not machine.log.truncate(6)
    assert machine.log.truncate(0)
    assert (machine.log.end, machine.bytes) == (0, b"")


def test_checkpoints_say_where_to_begin_but_never_behind_the_end(machine: Machine) -> None:
    machine.log.append(RECORDS[:2])
    machine.log.flush()
    machine.store.write_offsets(RECOVERY_POINT_CHECKPOINT, {ORDERS: 5})
    machine.store.write_offsets(HIGH_WATERMARK_CHECKPOINT, {ORDERS: 1})
    log = machine.crash(1)
    assert (log.recovery_point, log.checkpointed) == (2, 1)


def test_on_a_full_disk_a_record_is_there_or_not_but_never_half(machine: Machine) -> None:
    machine.log.append(RECORDS[:2])
    before = machine.bytes
    machine.disks.fill(0)
    with pytest.raises(ChangeFailedError):
        machine.log.append(RECORDS[2:])
    assert (machine.bytes, machine.log.end) == (before, 2)
    machine.disks.make_room(0)
    machine.log.append(RECORDS[2:])
    assert machine.open_log().read(0, 10) == tuple(RECORDS)


def test_a_disk_that_fails_takes_its_log_dir_offline(machine: Machine) -> None:
    machine.log.append(RECORDS[:2])
    machine.disks.fail(0, Random(1))
    with pytest.raises(OfflineLogDirError):
        machine.log.append(RECORDS[2:])
    assert machine.store.offline
    assert machine.log.end == 2


def test_what_was_staged_is_never_written_to(machine: Machine) -> None:
    machine.log.append(RECORDS[:2])
    machine.store.stage([ORDERS], "STALE_ID", "a test")
    with pytest.raises(ChangeFailedError):
        machine.log.append(RECORDS[2:])
    staged = machine.store.staged()[0]
    back = machine.store.restore(staged)
    assert ReplicaLog(machine.store.log_dirs[0], back).read(0, 10) == tuple(RECORDS[:2])


# KIP37-5
def test_the_first_records_are_deleted_for_good_and_the_log_goes_on_from_there(machine: Machine) -> None:
    machine.log.append(RECORDS)
    assert machine.log.delete_before(3)
    assert not machine.log.delete_before(3)
    assert not machine.log.delete_before(2)
    assert (machine.log.start, machine.log.end, machine.log.recovery_point) == (3, 6, 6)
    assert machine.log.read(0, 10) == tuple(RECORDS[3:])
    assert machine.log.epochs.end_of(1, 6) == (1, 4)
    machine.log.append([Record(6, 3, A, "v6")])
    machine.log.flush()
    machine.log.truncate(5)
    again = machine.crash(1)
    assert (again.start, again.read(0, 10)) == (3, tuple(RECORDS[3:5]))
    path = Path(machine.disks.log_dirs[0], "orders-0")
    assert [file.name for file in path.glob("*.log")] == ["00000000000000000003.log"]
    assert records_in(str(path)) == RECORDS[3:5]


def test_a_log_of_which_all_records_were_deleted_still_knows_where_it_ends(machine: Machine) -> None:
    machine.log.append(RECORDS)
    machine.log.delete_before(6)
    assert (machine.log.epochs.last, machine.log.epochs.last_start) == (2, 6)
    again = machine.crash(1)
    assert (again.start, again.end, again.read(0, 10)) == (6, 6, ())
    again.append([Record(6, 3, A, "v6")])
    assert records_in(str(Path(machine.disks.log_dirs[0], "orders-0"))) == [Record(6, 3, A, "v6")]


@pytest.mark.parametrize("start", [0, 2, 9])
def test_a_log_that_begins_anew_has_no_records_wherever_that_is(machine: Machine, start: int) -> None:
    machine.log.append(RECORDS)
    machine.log.delete_before(2)
    machine.log.restart(start)
    assert (machine.log.start, machine.log.end, machine.log.epochs.last) == (start, start, -1)
    assert (machine.crash(1).start, machine.log.end) == (start, start)


def test_a_cut_before_the_beginning_begins_anew_there(machine: Machine) -> None:
    machine.log.append(RECORDS)
    machine.log.delete_before(4)
    assert machine.log.truncate(1)
    assert (machine.log.start, machine.log.end) == (1, 1)


def test_records_are_old_from_the_first_on_up_to_one_that_is_not(machine: Machine) -> None:
    times = [5, 6, 4, 9, 1, -1]
    machine.log.append([Record(number, 0, A, f"v{number}", time_ms) for number, time_ms in enumerate(times)])
    assert [machine.log.older_than(time_ms, 6) for time_ms in (5, 6, 7, 10)] == [0, 1, 3, 5]
    assert machine.log.older_than(10, 2) == 2


class _PowerCutError(Exception):
    """The machine stops."""


def test_a_power_cut_at_each_step_of_a_deletion_leaves_the_old_log_or_the_new_one(tmp_path: Path) -> None:
    starts = set()
    for seed in range(40):
        left: list[int] = []

        def passes(left: list[int] = left) -> None:
            if left:
                left[0] -= 1
                if left[0] < 0:
                    raise _PowerCutError

        (tmp_path / str(seed)).mkdir()
        machine = Machine(tmp_path / str(seed), passes)
        machine.log.append(RECORDS)
        machine.log.flush()
        left.append(seed // 4)
        with suppress(_PowerCutError):
            machine.log.delete_before(4)
        left.clear()
        log = machine.crash(seed)
        starts.add(log.start)
        assert (log.start, log.read(0, 10)) in ((0, tuple(RECORDS)), (4, tuple(RECORDS[4:])))
        assert (log.epochs.last, len(list(Path(machine.disks.log_dirs[0], "orders-0").glob("*.log")))) == (2, 1)
        machine.store.abandon()
        machine.disks.close()
    assert starts == {0, 4}


def test_a_disk_that_is_full_keeps_the_log_as_it_is(machine: Machine) -> None:
    machine.log.append(RECORDS)
    machine.disks.fill(0)
    with pytest.raises(LogStoreError):
        machine.log.delete_before(3)
    assert machine.log.read(0, 10) == tuple(RECORDS)
    assert (machine.crash(1).start, machine.log.start) == (0, 0)


LINE_RECORDS = [Record(0, 0, A, "order 17"), Record(1, 0, None, ""), Record(2, 4, B, "größer  ")]
LINES = [encode_record(record) for record in LINE_RECORDS]


def test_records_come_back_as_they_were() -> None:
    records, ends = decode_records(b"".join(LINES))
    assert records == LINE_RECORDS
    assert ends == [len(LINES[0]), len(LINES[0] + LINES[1]), len(b"".join(LINES))]


def test_a_line_can_be_read_by_a_person() -> None:
    assert LINES[0].decode().split(" ", 1)[1] == f"0 0 -1 {A} order 17\n"


@pytest.mark.parametrize("cut", range(1, len(LINES[2])))
def test_what_was_cut_short_is_left_out(cut: int) -> None:
    assert decode_records(b"".join(LINES)[:-cut])[0] == LINE_RECORDS[:2]


@pytest.mark.parametrize("place", range(len(LINES[1])))
def test_nothing_counts_behind_a_byte_that_was_lost(place: int) -> None:
    damaged = LINES[1][:place] + b"\0" + LINES[1][place + 1 :]
    assert decode_records(LINES[0] + damaged + LINES[2])[0] == LINE_RECORDS[:1]


def test_a_whole_record_that_stands_in_the_wrong_place_is_none() -> None:
    assert decode_records(LINES[0] + LINES[2]) == ([LINE_RECORDS[0]], [len(LINES[0])])


def test_a_line_whose_checksum_is_right_but_which_says_nothing_is_none() -> None:
    for text in (b"0 0", b"x 0 - v", b"0 0 not-an-id v", b"\xff 0 - v"):
        import zlib

        assert decode_records(b"%08x %b\n" % (zlib.crc32(text), text)) == ([], [])


def test_a_value_with_a_line_break_is_refused() -> None:
    with pytest.raises(ValueError, match="line break"):
        encode_record(Record(0, 0, A, "two\nlines"))


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange_to_be_read(data: bytes) -> None:
    records, ends = decode_records(LINES[0] + data)
    assert records[0] == LINE_RECORDS[0]
    assert len(ends) == len(records)


def starts(*epochs: int) -> EpochStarts:
    """Of a log whose records have these epochs."""
    return EpochStarts(Record(offset, epoch, None, "v") for offset, epoch in enumerate(epochs))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (0, (0, 2)),
        (1, (0, 2)),
        (2, (2, 3)),
        (5, (5, 4)),
        (6, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(asked: int, answer: tuple[int, int]) -> None:
    assert starts(0, 0, 2, 5).end_of(asked, 4) == answer


def test_an_epoch_before_all_that_are_known_ends_where_they_begin() -> None:
    assert starts(3, 3).end_of(1, 2) == (1, 0)


def test_a_log_without_records_knows_of_no_epoch() -> None:
    empty = EpochStarts()
    assert (empty.last, empty.last_start, empty.end_of(0, 0)) == (-1, -1, (-1, -1))


def test_a_leader_that_wrote_nothing_yet_knows_its_own_epoch() -> None:
    found = starts(0, 0)
    found.assign(1, 2)
    assert (found.last, found.last_start) == (1, 2)
    assert found.end_of(0, 2) == (0, 2)
    assert found.end_of(1, 2) == (1, 2)


def test_an_epoch_that_wrote_nothing_gives_way_to_the_next_one() -> None:
    found = starts(0, 0)
    found.assign(1, 2)
    found.assign(4, 2)
    assert found.end_of(2, 3) == (0, 2)


def test_an_epoch_that_is_known_is_not_moved() -> None:
    found = starts(0, 0)
    found.assign(0, 2)
    assert found.last_start == 0


def test_what_begins_behind_a_cut_is_forgotten() -> None:
    found = starts(0, 0, 2, 5)
    found.cut(2)
    assert (found.last, found.end_of(2, 2)) == (0, (-1, -1))
