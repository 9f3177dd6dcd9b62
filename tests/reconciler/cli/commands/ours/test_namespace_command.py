"""``logstore namespace`` from end to end. KIP37-3, KIP516-13."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from layout.scheme import INTENT_FILE, UNCLEAN_FILE
from logstore.fs import Disk
from logstore.log_dir import LogDir
from tests.logstore.changes import filled_disks, lies, look
from tests.logstore.engine import opened
from tests.reconciler.cli.conftest import make_log_dir

Run = Callable[..., Result]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Two disks of a broker with a topic."""
    return filled_disks(tmp_path)


def test_a_namespace_is_created_listed_filled_and_deleted(paths: list[Path], run: Run) -> None:
    created = run("namespace", "create", "org:apache", *paths)
    assert (created.exit_code, created.stdout) == (0, "")
    assert created.stderr == "logstore: create namespace org:apache: done, 4 steps in 2 log dirs\n"
    assert run("namespace", "move", "orders", *paths, "--to", "org:apache").exit_code == 0
    listed = run("namespace", "list", *paths)
    assert [line.split() for line in listed.stdout.splitlines()] == [
        ["NAMESPACE", "TOPICS", "REPLICAS"],
        ["org", "0", "0"],
        ["org:apache", "1", "2"],
    ]
    refused = run("namespace", "delete", "org", *paths)
    assert refused.exit_code == 3
    assert "topics in it: org:apache:orders" in refused.stderr
    assert run("namespace", "delete", "org", *paths, "--recursive", "--delay", "7d").exit_code == 0
    assert run("namespace", "list", *paths).stdout == ""
    with opened(*paths) as store:
        records = [staged.record for staged in store.staged()]
    assert {record.due_ms - record.staged_ms for record in records if record} == {7 * 86_400_000}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_change_is_summed_up_where_the_list_of_its_steps_has_no_room(paths: list[Path], run: Run) -> None:
    result = run("namespace", "create", "org:apache", *paths, "--format", "json", "-o", "/dev/full")
    assert result.exit_code == 4
    assert "/dev/full is incomplete: No space left" in result.stderr
    assert result.stderr.endswith("logstore: create namespace org:apache: done, 4 steps in 2 log dirs\n")


def test_of_a_change_that_is_interrupted_in_the_middle_it_is_said_that_it_does_not_stay_so(
    paths: list[Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(disk: Disk, source: int, name: str, *to: Any) -> None:
        if name == "orders-1":
            raise KeyboardInterrupt
        rename(disk, source, name, *to)

    rename = Disk.rename
    command = ("namespace", "rename", "orders", "purchases", *paths)
    with monkeypatch.context() as patched:
        patched.setattr(Disk, "rename", interrupted)
        result = run(*command)
    assert lies(paths) == ["orders-0 in purchases-0", "orders-1 in orders-1"]
    assert result.exit_code == 130
    assert f"interrupted in the middle of a change: {paths[0]}, {paths[1]} must not be used like this" in result.stderr
    again = run(*command)
    assert lies(paths) == ["orders-0 in purchases-0", "orders-1 in purchases-1"]
    assert again.stderr.startswith("logstore: a change that was cut short here has been brought to its end\n")
    assert "brought to its end" not in run(*command).stderr


def test_a_topic_is_renamed_and_moved_to_the_default_namespace(paths: list[Path], run: Run) -> None:
    run("namespace", "create", "org", *paths)
    assert run("namespace", "rename", "orders", "org:purchases", *paths).exit_code == 0
    assert lies(paths) == ["orders-0 in org/purchases-0", "orders-1 in org/purchases-1"]
    assert run("namespace", "move", "org:purchases", *paths, "--to", "").exit_code == 0
    assert lies(paths) == ["orders-0 in purchases-0", "orders-1 in purchases-1"]


def test_a_whole_namespace_is_moved_after_a_dry_run_that_shows_how(paths: list[Path], run: Run) -> None:
    run("namespace", "create", "org:apache", *paths)
    run("namespace", "move", "orders", *paths, "--to", "org:apache")
    command = ("namespace", "move", *paths, "--from-namespace", "org", "--to-namespace", "com:shop")
    before = look(paths)
    dry = run(*command, "--dry-run")
    assert (dry.exit_code, look(paths)) == (0, before)
    assert "rename org/apache to com/shop/apache" in dry.stdout
    assert "move namespace org to com:shop: this would take" in dry.stderr
    assert run(*command).exit_code == 0
    assert lies(paths) == ["orders-0 in com/shop/apache/orders-0", "orders-1 in com/shop/apache/orders-1"]
    alone = run("namespace", "move", "orders", "--to", "com:shop")
    assert (alone.exit_code, "name the topic and then every log dir" in alone.stderr) == (2, True)


def test_a_dry_run_shows_every_step_in_any_format_and_takes_none(paths: list[Path], run: Run) -> None:
    before = look(paths)
    command = ("namespace", "rename", "orders", "purchases", *paths, "--dry-run")
    table = run(*command)
    assert table.exit_code == 0
    assert f"LOG DIR: … is {paths[1].parent}\n" in table.stdout
    assert f"…/{paths[1].name}  rename orders-1 to purchases-1" in table.stdout
    assert "this would take 6 steps in 2 log dirs; nothing was changed" in table.stderr
    document = json.loads(run(*command, "--format", "json").stdout)
    assert (document["schema_version"], document["operation"], document["dry_run"]) == (1, "rename-topic", True)
    lines = [json.loads(line) for line in run(*command, "--format", "ndjson").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(run(*command, "--format", "csv").stdout)))
    assert [row["step"] for row in rows] == [line["step"] for line in lines] == [s["step"] for s in document["steps"]]
    assert look(paths) == before
    done = json.loads(run(*command[:-1], "--format", "json").stdout)
    assert (done["steps"], done["dry_run"]) == (document["steps"], False)
    assert lies(paths) == ["orders-0 in purchases-0", "orders-1 in purchases-1"]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("create", "a b"), 2, "is no namespace"),
        (("create", ""), 3, "default namespace"),
        (("delete", "net"), 3, "there is no namespace net"),
        (("delete", "net", "--delay", "soon"), 3, "is no duration"),
        (("move", "nothing", "--to", "net"), 2, "no log dir of this store has"),
        (("move", "orders", "--to", "net"), 3, "was not created"),
        (("move", "--from-namespace", "net", "--to", "org"), 3, "there is no namespace net"),
        (("move", "--from-namespace", "net", "--to", ""), 3, "neither deleted nor moved"),
        (("rename", "orders", "a/b"), 2, "is no topic name"),
        (("rename", "orders", "orders"), 3, "has that name already"),
        (("list", "--below", "net"), 2, "there is no namespace 'net'"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    paths: list[Path], run: Run, arguments: tuple[str, ...], code: int, text: str
) -> None:
    before = look(paths)
    result = run("namespace", *arguments, *paths)
    assert (result.exit_code, text in result.stderr) == (code, True), result.stderr
    assert result.stderr.count("\n") == 1
    assert look(paths) == before


def test_a_real_brokers_log_dir_is_refused(tmp_path: Path, run: Run) -> None:
    real = make_log_dir(tmp_path / "real", 1, {"orders-0": None})
    for arguments in (("create", "org", real), ("list", real), ("rename", "orders", "x", real)):
        result = run("namespace", *arguments)
        assert result.exit_code == 3
        assert "a real broker's log dir" in result.stderr


def test_a_list_takes_no_lock_and_a_change_does(paths: list[Path], run: Run) -> None:
    with LogDir.open(str(paths[0])):
        assert run("namespace", "list", *paths).exit_code == 0
        result = run("namespace", "create", "org", *paths)
        assert result.exit_code == 3
        assert "is in use" in result.stderr


@pytest.mark.parametrize("name", [INTENT_FILE, UNCLEAN_FILE])
def test_a_dry_run_does_not_sort_out_what_a_crash_left(paths: list[Path], run: Run, name: str) -> None:
    (paths[1] / name).write_bytes(b"")
    result = run("namespace", "create", "org", *paths, "--dry-run")
    assert result.exit_code == 3
    assert "was cut short by a crash" in result.stderr
    assert (paths[1] / name).exists()


def test_a_list_says_that_a_change_is_not_finished(paths: list[Path], run: Run) -> None:
    (paths[1] / INTENT_FILE).write_bytes(b"")
    result = run("namespace", "list", *paths)
    assert (result.exit_code, "was cut short by a crash" in result.stderr) == (1, True)
