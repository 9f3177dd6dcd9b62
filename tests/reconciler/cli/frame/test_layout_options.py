"""What the commands share that change names and layout."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from logstore.fs import Disk
from reconciler.cli.frame import refuse_unsorted
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
