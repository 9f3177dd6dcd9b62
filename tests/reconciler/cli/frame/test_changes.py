"""Log dirs that commands open to change them, and the steps of a change."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import Result

from layout.ids import TopicId
from layout.scheme import UNCLEAN_FILE
from logstore.fs import TEMPORARY, Disk
from logstore.log_dir import FallbackRecords, LogDir, ReadOnlyLogDir
from logstore.namespaces import plan_create
from logstore.staging import find_staged
from reconciler.cli.frame import (
    CHANGE_SCHEMA_VERSION,
    Exit,
    Format,
    OpenedLogDirs,
    change_store,
    describe_staged,
    log_dirs_in,
    refuse_unrecovered,
    say_in_use,
    why_in_use,
    write_change,
)
from reconciler.cli.frame.changes import open_store
from reconciler.errors import RefusedError
from tests.logstore.changes import lies, look, two_disks
from tests.reconciler.cli.conftest import ORDERS

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


def test_a_dry_run_shows_the_steps_of_a_change_and_takes_none(tmp_path: Path) -> None:
    paths, out = two_disks(tmp_path), tmp_path / "steps.json"
    before = look(paths)
    how = {"dry_run": True, "form": "json", "output": str(out), "fallback_folder": None}
    assert change_store(tuple(map(str, paths)), lambda store: plan_create(store, "org"), **how) is Exit.CLEAN
    document = json.loads(out.read_text())
    assert (document["schema_version"], document["dry_run"]) == (CHANGE_SCHEMA_VERSION, True)
    assert len(document["steps"]) == len(paths)
    assert look(paths) == before


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Format.TABLE, "LOG DIR  STEPS\n/d           3\n"),
        (Format.CSV, "log_dir,steps\n/d,3\n"),
        (Format.NDJSON, '{"schema_version": 1, "log_dir": "/d", "steps": 3}\n'),
        (Format.JSON, '{\n  "whole": true\n}\n'),
    ],
)
def test_rows_are_written_in_every_text_format(tmp_path: Path, form: Format, text: str) -> None:
    write_change([{"log_dir": "/d", "steps": 3}], ("log_dir", "steps"), form, str(tmp_path / "out"), {"whole": True})
    assert (tmp_path / "out").read_text() == text


def test_a_staged_directory_is_described_by_its_partition_and_its_topic_id(cluster) -> None:
    (cluster.log_dir(1) / f"orders-3.{'0' * 32}-stray").mkdir()
    with ReadOnlyLogDir.open(str(cluster.log_dir(1))) as log_dir:
        (staged,) = find_staged(log_dir)
    assert describe_staged(staged.partition, staged.topic_id) == "orders-3, topic ID unknown"
    assert describe_staged(staged.partition, ORDERS) == f"orders-3, topic ID {ORDERS}"
    assert describe_staged(None, TopicId.ZERO) == "nobody knows what, without a topic ID"


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
    refuse_unrecovered(str(two_disks(tmp_path)[0]))
    (tmp_path / ".logstore_unclean").write_bytes(b"")
    with pytest.raises(RefusedError, match="logstore_unclean"):
        refuse_unrecovered(str(tmp_path))


def test_folders_of_disks_are_opened_up(cluster) -> None:
    assert log_dirs_in((str(cluster.folder / "disks"),)) == tuple(cluster.log_dirs)


def test_who_holds_a_lock_is_reported_without_taking_it(cluster, capsys) -> None:
    assert why_in_use(cluster.log_dirs[0]) is None
    say_in_use(cluster.log_dirs[0])
    assert capsys.readouterr().err == ""
    with LogDir.open(cluster.log_dirs[0]):
        assert str(why_in_use(cluster.log_dirs[0])).startswith(f"{cluster.log_dirs[0]} is in use by ")
        say_in_use(cluster.log_dirs[0])
    said = capsys.readouterr().err
    assert f"{cluster.log_dirs[0]} is in use by " in said and "this is only a look" in said


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
    (path / f"recovery-point-offset-checkpoint{TEMPORARY}").write_text("half")
    with ExitStack() as stack:
        OpenedLogDirs(stack).open([str(path)], FallbackRecords(None))
    assert not (path / f"recovery-point-offset-checkpoint{TEMPORARY}").exists()
    assert not (path / UNCLEAN_FILE).exists()
