"""What the commands share that change names and layout.

What the commands about staged directories share: where spare records lie, and how log dirs are opened.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import Result

from layout.scheme import UNCLEAN_FILE
from logstore.fs import Disk
from logstore.log_dir import LogDir
from logstore.staging import FallbackRecords
from reconciler.cli.frame import Exit, OpenedLogDirs, log_dirs_in, refuse_unsorted, why_in_use
from reconciler.cli.frame.changes import open_store
from reconciler.errors import RefusedError
from tests.logstore.changes import lies, look, two_disks

Run = Callable[..., Result]


def test_a_full_disk_is_said_and_nothing_was_changed(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    paths = two_disks(tmp_path)
    before = look(paths)
    monkeypatch.setattr(Disk, "mkdir", full)
    result = run("namespace", "create", "org", *paths)
    assert result.exit_code == 4
    assert "cannot create namespace org: No space left on device" in result.stderr
    assert "nothing was changed" in result.stderr
    assert (look(paths), lies(paths)) == (before, [])


def test_what_an_offline_log_dir_has_no_part_in_was_done_in_part(tmp_path: Path, run: Run) -> None:
    paths = two_disks(tmp_path)
    (paths[1] / ".logstore_intent").write_bytes(b"nonsense")
    result = run("namespace", "create", "org", *paths)
    assert (result.exit_code, "is offline" in result.stderr) == (4, True)
    assert ((paths[0] / "org").is_dir(), (paths[1] / "org").exists()) == (True, False)


def test_a_log_dir_that_is_offline_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = two_disks(tmp_path)
    (paths[1] / ".logstore_intent").write_bytes(b"nonsense")
    with open_store(tuple(map(str, paths)), None, dry_run=False) as store:
        assert list(store.offline) == [str(paths[1])]
    assert f"{paths[1]} is offline" in capsys.readouterr().err


def test_only_a_log_dir_without_traces_of_a_change_is_sorted(tmp_path: Path) -> None:
    refuse_unsorted(str(two_disks(tmp_path)[0]))
    (tmp_path / ".logstore_unclean").write_bytes(b"")
    with pytest.raises(RefusedError, match="logstore_unclean"):
        refuse_unsorted(str(tmp_path))


def test_folders_of_disks_are_opened_up(cluster) -> None:
    assert log_dirs_in((str(cluster.folder / "disks"),)) == tuple(cluster.log_dirs)


def test_who_holds_a_lock_is_told_without_taking_it(cluster) -> None:
    assert why_in_use(cluster.log_dirs[0]) is None
    with LogDir.open(cluster.log_dirs[0]):
        assert str(why_in_use(cluster.log_dirs[0])).startswith(f"{cluster.log_dirs[0]} is in use by ")


def test_what_stands_in_the_way_of_one_log_dir_does_not_keep_the_others(cluster, tmp_path: Path, capsys) -> None:
    with LogDir.open(cluster.log_dirs[0]), ExitStack() as stack:
        opened = OpenedLogDirs(stack)
        opened.open([*cluster.log_dirs, str(tmp_path / "missing")], FallbackRecords(None))
        assert [log_dir.path for log_dir in opened.log_dirs] == cluster.log_dirs[1:]
        assert opened.code(1) is Exit.PARTLY_FAILED
        assert opened.code(0) is Exit.REFUSED
    said = capsys.readouterr().err
    assert "in use" in said
    assert "missing" in said


def test_where_nothing_stands_in_the_way_all_is_clean() -> None:
    with ExitStack() as stack:
        assert OpenedLogDirs(stack).code(0) is Exit.CLEAN


def test_what_a_crash_left_is_sorted_out_and_the_mark_goes_when_nothing_is_left_to_do(cluster) -> None:
    path = Path(cluster.log_dirs[0])
    (path / UNCLEAN_FILE).touch()
    (path / "recovery-point-offset-checkpoint.tmp").write_text("half")
    with ExitStack() as stack:
        OpenedLogDirs(stack).open([str(path)], FallbackRecords(None))
    assert not (path / "recovery-point-offset-checkpoint.tmp").exists()
    assert not (path / UNCLEAN_FILE).exists()
