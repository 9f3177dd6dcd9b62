"""Log dirs that are only looked at: no lock, no trace, and the same answers as an open one."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout.scheme import Scheme
from logstore import NotALogDirError
from logstore.log_dir import LogDir, LogDirView, ReadOnlyLogDir
from tests.logstore.engine import formatted, open_descriptors, picture


@pytest.mark.parametrize("scheme", ["flat", "namespaced", "by-topic-id"])
def test_it_says_what_an_open_log_dir_says_while_that_one_is_locked(tmp_path: Path, scheme: str) -> None:
    path = formatted(tmp_path / "disk", scheme=scheme)
    with LogDir.open(str(path)) as log_dir, ReadOnlyLogDir.open(str(path)) as view:
        both: list[LogDirView] = [log_dir, view]
        assert len({(each.path, each.root.key, each.scheme, each.is_ours) for each in both}) == 1


def test_a_brokers_log_dir_is_flat_and_not_ours_and_no_lock_file_is_made(log_dir) -> None:
    before = picture(log_dir.path, but=())
    with ReadOnlyLogDir.open(f"{log_dir}/") as view:
        assert (view.path, view.scheme, view.is_ours) == (str(log_dir), Scheme.FLAT, False)
    assert picture(log_dir.path, but=()) == before


def test_what_is_no_log_dir_is_said_in_a_sentence_and_nothing_is_left_open(tmp_path: Path) -> None:
    before = open_descriptors()
    with pytest.raises(NotALogDirError, match=r"no meta\.properties"):
        ReadOnlyLogDir.open(str(tmp_path))
    with pytest.raises(NotALogDirError, match="No such file"):
        ReadOnlyLogDir.open(str(tmp_path / "missing"))
    with pytest.raises(NotALogDirError):
        ReadOnlyLogDir.open("\0")
    assert open_descriptors() == before
