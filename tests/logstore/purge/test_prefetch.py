"""The prefetch of a purge: ordinary directories are handed over whole, and all others are left to be judged again.

The forked process: its results come in order, it waits for its reader, and a purge does without it.
"""

from __future__ import annotations

import marshal
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout.directory_name import parse_staged
from layout.ours import STAGED_RECORD
from logstore.log_dir import FileHolder
from logstore.purge import PurgeRules
from logstore.purge.eligibility import DueDirectory, PrefetchedDirectory
from logstore.purge.encoding import decode_prefetch
from logstore.purge.prefetch import computed_by_child, prefetch_batch
from logstore.purge.remove import Removal
from tests.logstore.engine import open_descriptors
from tests.logstore.purge.test_purge_removal import DUE_MS, NAME, Case, case
from tests.patience import PATIENCE_S

__all__ = ["case"]

LOG = "00000000000000000000.log"


def _prefetched(case: Case, rules: PurgeRules | None = None) -> PrefetchedDirectory | int | None:
    """What another process would have handed over."""
    staging = case.staging(rules)
    with staging.root:
        (look,) = marshal.loads(marshal.dumps(prefetch_batch(staging, [parse_staged(NAME)])))
    return decode_prefetch(look)


def test_an_ordinary_directory_is_handed_over_with_its_files_their_bytes_and_its_record(case: Case) -> None:
    (case.directory / LOG).write_bytes(bytes(300_000))
    names = case.names()
    found = _prefetched(case)
    assert isinstance(found, PrefetchedDirectory)
    assert case.names() == names
    assert set(found.names) == names - {STAGED_RECORD}
    assert found.weights == [512 * (case.directory / name).stat().st_blocks for name in found.names]
    assert found.inode == case.directory.stat().st_ino
    staging = case.staging()
    with staging.root:
        judged = Removal(staging, case.log_dir.disk).empty(parse_staged(NAME))
    assert isinstance(judged, DueDirectory)
    assert found.record == judged.record
    assert sum(found.weights) == judged.bytes


def test_a_directory_that_is_not_due_is_reported_by_its_due_time(case: Case) -> None:
    assert _prefetched(case, PurgeRules(DUE_MS - 1)) == DUE_MS


def _with_a_link(case: Case) -> None:
    (case.directory / "link").symlink_to("/etc/passwd")


def _with_another_name(case: Case) -> None:
    os.link(case.directory / LOG, case.path / "other-name")


def _with_a_fifo(case: Case) -> None:
    os.mkfifo(case.directory / "fifo")


def _with_a_directory(case: Case) -> None:
    (case.directory / "inner").mkdir()


def _with_a_large_file(case: Case) -> None:
    (case.directory / LOG).write_bytes(bytes(300_000))


def _held(case: Case) -> None:
    case.holders[(case.directory / LOG).stat().st_ino] = (FileHolder(1, "java"),)


def _with_a_damaged_record(case: Case) -> None:
    (case.directory / STAGED_RECORD).write_text("{}")


def _without_record(case: Case) -> None:
    (case.directory / STAGED_RECORD).unlink()


def _empty(case: Case) -> None:
    for path in case.directory.iterdir():
        path.unlink()


def _gone(case: Case) -> None:
    shutil.rmtree(case.directory)


def _led_elsewhere(case: Case) -> None:
    case.directory.rename(case.path / "elsewhere")
    case.directory.symlink_to(case.path / "elsewhere")


@pytest.mark.parametrize(
    "out_of_the_ordinary",
    [
        _with_a_link,
        _with_another_name,
        _with_a_fifo,
        _with_a_directory,
        _with_a_large_file,
        _held,
        _with_a_damaged_record,
        _without_record,
        _empty,
        _gone,
        _led_elsewhere,
    ],
)
def test_anything_out_of_the_ordinary_is_left_to_be_judged_again(
    case: Case, out_of_the_ordinary: Callable[[Case], None]
) -> None:
    rules = PurgeRules(DUE_MS, step_bytes=200_000)
    assert isinstance(_prefetched(case, rules), PrefetchedDirectory)
    out_of_the_ordinary(case)
    assert _prefetched(case, rules) is None


def test_one_that_is_not_meant_wants_a_closer_look(case: Case) -> None:
    assert _prefetched(case, PurgeRules(DUE_MS, only=lambda _: False)) is None


def test_each_directory_of_a_batch_has_a_look_of_its_own(case: Case) -> None:
    staging = case.staging()
    with staging.root:
        looks = prefetch_batch(staging, [parse_staged(f"{NAME}.2"), parse_staged(NAME)])
    assert looks[0] is None
    assert isinstance(looks[1], tuple)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = open_descriptors()
    yield
    assert open_descriptors() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@settings(max_examples=25)
@given(units=st.integers(0, 60))
def test_results_come_in_the_order_of_their_units(units: int) -> None:
    assert list(computed_by_child(lambda unit: unit * unit, range(units))) == [unit * unit for unit in range(units)]


def test_results_larger_than_a_pipe_come_whole() -> None:
    assert list(computed_by_child(lambda unit: bytes([unit]) * 3_000_000, range(4))) == [
        bytes([unit]) * 3_000_000 for unit in range(4)
    ]


def test_another_process_works_and_asks_for_the_units() -> None:
    def units() -> Iterator[int]:
        while True:
            yield os.getpid()

    with closing(computed_by_child(lambda asks: (asks, os.getpid()), units())) as results:
        asks, works = next(results)
    assert asks == works != os.getpid()


def test_that_process_waits_until_its_results_are_taken(tmp_path: Path) -> None:
    def work(unit: int) -> bytes:
        (tmp_path / str(unit)).touch()
        return bytes(5_000_000)

    with closing(computed_by_child(work, range(50))) as results:
        next(results)
        time.sleep(0.5)
        assert len(list(tmp_path.iterdir())) <= 3


def test_where_it_dies_there_are_the_results_that_it_had_reported() -> None:
    def work(unit: int) -> int:
        if unit == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return unit

    assert list(computed_by_child(work, range(8))) == [0, 1, 2]


def test_a_death_is_noticed_though_other_threads_start_processes_too() -> None:
    def work(unit: int) -> int:
        time.sleep(0.05 * (unit == 0))  # so that both are started when one dies
        os.kill(os.getpid(), signal.SIGKILL)
        return unit

    def ask(dies: bool) -> list[int]:
        with closing(computed_by_child(work if dies else (lambda unit: unit), range(3))) as results:
            found = list(islice(results, 3))
            both.wait(PATIENCE_S)  # the process of the other still waits to be ended
            return found

    both = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, dies) for dies in (True, False)]
        assert [each.result(PATIENCE_S) for each in asked] == [[], [0, 1, 2]]


def test_work_that_fails_ends_the_results(capfd: pytest.CaptureFixture[str]) -> None:
    assert list(computed_by_child(lambda unit: 1 // unit, [1, 0, 1])) == [1]
    assert capfd.readouterr().err == ""


def test_where_no_process_can_be_started_each_result_is_found_out_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    assert list(computed_by_child(lambda unit: (unit, os.getpid()), range(3))) == [
        (unit, os.getpid()) for unit in range(3)
    ]


def test_where_forking_is_not_safe_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logstore.purge.prefetch.can_fork", lambda: False)
    assert list(computed_by_child(lambda _: os.getpid(), range(1))) == [os.getpid()]


def test_results_that_nobody_takes_hold_nobody_up() -> None:
    with closing(computed_by_child(lambda unit: bytes(5_000_000), range(1000))) as results:
        assert next(results) == bytes(5_000_000)


def test_it_ends_when_the_process_that_asked_is_killed() -> None:
    read, write = os.pipe()
    asking = os.fork()
    if asking == 0:
        with suppress(BaseException):
            process, _ = next(computed_by_child(lambda _: (os.getpid(), bytes(5_000_000)), range(1000)))
            os.write(write, str(process).encode())
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)
    os.waitpid(asking, 0)
    os.close(write)
    looking = os.read(read, 20).decode()
    os.close(read)
    deadline = time.monotonic() + PATIENCE_S
    while _is_alive(looking):
        assert time.monotonic() < deadline, "it goes on though nobody will ever ask"
        time.sleep(0.01)


def _is_alive(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
