"""What is seen ahead of a purge: the usual is handed over whole, and anything else wants a closer look."""

from __future__ import annotations

import marshal
import os
import shutil
from collections.abc import Callable

import pytest

from layout.directory_name import parse_staged
from layout.ours import STAGED_RECORD
from logstore.log_dir import FileHolder
from logstore.purge import PurgeRules
from logstore.purge.judge_staged import Due, Seen
from logstore.purge.purge_wire import seen
from logstore.purge.remove_staged import Removal
from logstore.purge.seen_ahead import look_at_all
from tests.logstore.purge.test_remove_staged import DUE_MS, NAME, Case, case

__all__ = ["case"]

LOG = "00000000000000000000.log"


def _seen(case: Case, rules: PurgeRules | None = None) -> Seen | int | None:
    """What another process would have handed over."""
    staging = case.staging(rules)
    with staging.root:
        (look,) = marshal.loads(marshal.dumps(look_at_all(staging, [parse_staged(NAME)])))
    return seen(look)


def test_a_usual_directory_is_handed_over_with_its_files_their_bytes_and_its_record(case: Case) -> None:
    (case.directory / LOG).write_bytes(bytes(300_000))
    names = case.names()
    found = _seen(case)
    assert isinstance(found, Seen)
    assert case.names() == names
    assert set(found.names) == names - {STAGED_RECORD}
    assert found.weights == [512 * (case.directory / name).stat().st_blocks for name in found.names]
    assert found.inode == case.directory.stat().st_ino
    staging = case.staging()
    with staging.root:
        judged = Removal(staging, case.log_dir.disk).empty(parse_staged(NAME))
    assert isinstance(judged, Due)
    assert found.record == judged.record
    assert sum(found.weights) == judged.bytes


def test_one_whose_time_has_not_come_is_told_by_its_time(case: Case) -> None:
    assert _seen(case, PurgeRules(DUE_MS - 1)) == DUE_MS


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
    "unusual",
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
def test_anything_unusual_wants_a_closer_look(case: Case, unusual: Callable[[Case], None]) -> None:
    rules = PurgeRules(DUE_MS, step_bytes=200_000)
    assert isinstance(_seen(case, rules), Seen)
    unusual(case)
    assert _seen(case, rules) is None


def test_one_that_is_not_meant_wants_a_closer_look(case: Case) -> None:
    assert _seen(case, PurgeRules(DUE_MS, only=lambda _: False)) is None


def test_each_directory_of_a_batch_has_a_look_of_its_own(case: Case) -> None:
    staging = case.staging()
    with staging.root:
        looks = look_at_all(staging, [parse_staged(f"{NAME}.2"), parse_staged(NAME)])
    assert looks[0] is None
    assert isinstance(looks[1], tuple)
