"""What the commands about staged directories share: where spare records lie, and how log dirs are opened."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from layout.scheme import UNCLEAN_FILE
from logstore.log_dir import LogDir
from logstore.staging import FallbackRecords
from reconciler.cli.frame import Exit, OpenedLogDirs, fallback_records, log_dirs_in, why_in_use
from reconciler.cli.frame import changes as staging_options
from reconciler.errors import UsageError


def test_spare_records_lie_where_it_is_said_else_in_the_one_place_that_everybody_looks_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging_options, "FALLBACK_FOLDER", str(tmp_path / "usual"))
    assert fallback_records(None).folder is None
    (tmp_path / "usual").mkdir()
    assert fallback_records(None).folder == str(tmp_path / "usual")
    assert fallback_records(str(tmp_path)).folder == str(tmp_path)
    with pytest.raises(UsageError, match="is no directory"):
        fallback_records(str(tmp_path / "missing"))


def test_the_environment_names_the_folder_too(run, cluster, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(staging_options.FALLBACK_VARIABLE, str(tmp_path / "missing"))
    result = run("staged", cluster.log_dirs[0])
    assert result.exit_code == 2
    assert "missing is no directory" in result.stderr


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
