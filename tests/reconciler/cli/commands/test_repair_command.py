"""``logstore repair`` from end to end: plan, review, apply, undo; and everything that it refuses."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from layout import meta_properties, partition_metadata
from layout.ids import DirectoryId
from layout.meta_properties import MetaProperties
from layout.ours import is_run_journal
from logstore.log_dir import LogDir
from reconciler.plan import REPAIRS, ActionKind, parse_plan
from tests.reconciler.cli.conftest import CLUSTER, ORDERS, make_log_dir, save_metadata

Run = Callable[..., Result]
METADATA = partition_metadata.FILE_NAME


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file, but for the lock and the journals, which stay."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path): path.read_bytes() for path in files if not is_run_journal(path.name)}


@pytest.fixture
def damaged(cluster):
    """Broker 1 lost one ``partition.metadata`` and has an empty one."""
    (cluster.log_dir(1) / "orders-0" / METADATA).unlink()
    (cluster.log_dir(1) / "orders-1" / METADATA).write_bytes(b"")
    return cluster


@pytest.fixture
def plan_file(damaged, run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    assert run("repair", damaged.log_dir(1), "--metadata", damaged.metadata, "-o", path).exit_code == 1
    return path


def test_a_plan_is_shown_and_kept_and_nothing_is_changed(damaged, run: Run, tmp_path: Path) -> None:
    before = snapshot(damaged.log_dir(1))
    result = run("repair", damaged.log_dir(1), "--metadata", damaged.metadata, "-o", tmp_path / "plan.json")
    assert (result.exit_code, snapshot(damaged.log_dir(1))) == (1, before)
    assert f"{damaged.log_dir(1)}: 2 actions\n" in result.stdout
    assert "write_partition_metadata" in result.stdout and " orders-0/partition.metadata " in result.stdout
    assert "nothing was changed" in result.stderr and "logstore repair --apply" in result.stderr
    assert not (damaged.log_dir(1) / ".lock").exists()
    assert len(parse_plan((tmp_path / "plan.json").read_bytes()).actions) == 2


@pytest.fixture
def doubled(tmp_path: Path) -> list[Path]:
    """Two disks of broker 1, with one replica live in both."""
    disks = [make_log_dir(tmp_path / f"disk-{number}", 1, {"orders-0": ORDERS}) for number in range(2)]
    for number, disk in enumerate(disks):
        identity = MetaProperties(1, CLUSTER, 1, DirectoryId.from_halves(77, number))
        (disk / "meta.properties").write_bytes(meta_properties.encode(identity, "today"))
    return disks


def test_a_copy_that_is_staged_needs_a_clock_that_is_not_behind(doubled: list[Path], run: Run, tmp_path: Path) -> None:
    disks, plan_file = doubled, tmp_path / "repair.json"
    for disk in disks:
        os.utime(disk / "orders-0" / METADATA, (time.time() + 86_400,) * 2)
    kept = disks[0] / "orders-0"
    assert run("repair", *disks, "--metadata", "none", "--keep", kept, "-o", plan_file).exit_code == 1
    refused = run("repair", "--apply", plan_file)
    assert (refused.exit_code, "in the future: set this machine's clock" in refused.stderr) == (3, True)
    assert "(override: --any-clock)" in refused.stderr
    assert run("repair", *disks, "--any-clock").exit_code == 2
    assert [(disk / "orders-0").exists() for disk in disks] == [True, True]
    assert run("repair", "--apply", plan_file, "--any-clock").exit_code == 0
    assert [(disk / "orders-0").exists() for disk in disks] == [True, False]


def test_a_duplicate_of_which_nothing_tells_the_better_copy_is_decided_by_what_is_printed(
    doubled: list[Path], run: Run, tmp_path: Path
) -> None:
    disks = doubled
    metadata = save_metadata(tmp_path / "metadata")
    found = run("repair", *disks, "--metadata", metadata)
    assert (found.exit_code, "There is nothing that can be repaired" in found.stdout) == (1, True)
    (printed,) = [line.strip() for line in found.stderr.splitlines() if line.strip().startswith("logstore repair")]
    words = shlex.split(printed)[1:]
    plan_file = tmp_path / "repair.json"
    assert run(*words[:-1], plan_file).exit_code == 1
    assert run("repair", "--apply", plan_file).exit_code == 0
    assert [(disk / "orders-0").exists() for disk in disks] == [True, False]


def test_the_undo_of_files_says_that_it_brings_no_worse_copy_back(
    doubled: list[Path], run: Run, tmp_path: Path
) -> None:
    (doubled[0] / "recovery-point-offset-checkpoint").write_text("0\n1\ngone 0 5\n")
    plan_file = tmp_path / "repair.json"
    kept = doubled[0] / "orders-0"
    assert run("repair", *doubled, "--metadata", "none", "--keep", kept, "-o", plan_file).exit_code == 1
    applied = run("repair", "--apply", plan_file)
    assert applied.exit_code == 0, applied.output
    assert "undo: to put the files back as they were; the worse copy of 1 replica stays staged:" in applied.stderr


def test_apply_repairs_and_undo_takes_it_back(damaged, run: Run, plan_file: Path) -> None:
    before = snapshot(damaged.log_dir(1))
    result = run("repair", "--apply", plan_file)
    assert (result.exit_code, result.stdout.count("done")) == (0, 2), result.output
    for name in ("orders-0", "orders-1"):
        assert (damaged.log_dir(1) / name / METADATA).read_bytes() == partition_metadata.encode(ORDERS)
    assert run("repair", damaged.log_dir(1), "--metadata", damaged.metadata).exit_code == 0
    again = run("repair", "--apply", plan_file)
    assert (again.exit_code, again.stdout.count("already")) == (0, 2)
    (backup,) = damaged.log_dir(1).glob(".logstore_repair.*.json")
    assert str(backup) in result.stderr
    assert len(list(damaged.log_dir(1).glob(".logstore_run.*.ndjson"))) == 1, "the second run changed nothing"
    undone = run("repair", "--undo", backup)
    assert (undone.exit_code, snapshot(damaged.log_dir(1))) == (0, before), undone.output


def test_json_goes_to_standard_output_and_can_be_applied(damaged, run: Run, tmp_path: Path) -> None:
    result = run("repair", damaged.log_dir(1), "--metadata", damaged.metadata, "--format", "json")
    document = json.loads(result.stdout)
    assert (document["schema_version"], len(document["actions"])) == (1, 2)
    (tmp_path / "p").write_text(result.stdout)
    applied = run("repair", "--apply", tmp_path / "p", "--format", "json")
    outcome = json.loads(applied.stdout)
    assert [each["status"] for each in outcome["results"]] == ["done", "done"]
    (backup,) = outcome["backups"]
    undone = json.loads(run("repair", "--undo", backup, "--format", "json").stdout)
    assert {each["status"] for each in undone["results"]} == {"done"}


def test_a_dash_sends_the_plan_to_standard_output(damaged, run: Run) -> None:
    result = run("repair", damaged.log_dir(1), "--metadata", damaged.metadata, "-o", "-")
    assert len(json.loads(result.stdout)["actions"]) == 2


def test_what_is_in_order_needs_no_repair(cluster, run: Run) -> None:
    result = run("repair", cluster.log_dir(1), "--metadata", cluster.metadata)
    assert (result.exit_code, result.stdout) == (0, "There is nothing that can be repaired.\n")


def test_another_topic_id_is_explained_and_replaced_only_on_purpose(cluster, run: Run, tmp_path: Path) -> None:
    where = (cluster.log_dir(2), "--metadata", cluster.metadata)
    result = run("repair", *where)
    assert result.exit_code == 1
    assert "nothing that can be repaired" in result.stdout
    assert "deleting partition.metadata is the wrong cure" in result.stdout
    adopted = run("repair", *where, "--adopt-topic-id", "orders", "-o", tmp_path / "plan.json")
    assert (adopted.exit_code, "replace_topic_id" in adopted.stdout) == (1, True)
    assert run("repair", "--apply", tmp_path / "plan.json").exit_code == 0
    assert (cluster.log_dir(2) / "orders-1" / METADATA).read_bytes() == partition_metadata.encode(ORDERS)


def test_a_plan_for_a_running_broker_is_refused_and_nothing_is_changed(damaged, run: Run, plan_file: Path) -> None:
    before = snapshot(damaged.log_dir(1))
    with LogDir.open(str(damaged.log_dir(1))):
        result = run("repair", "--apply", plan_file)
    assert (result.exit_code, "in use by" in result.stderr) == (3, True)
    assert snapshot(damaged.log_dir(1)) == before


def test_a_plan_that_was_edited_is_refused(damaged, run: Run, plan_file: Path) -> None:
    plan_file.write_text(plan_file.read_text().replace(str(ORDERS), "UXyU9i5ARn6W00ON2taeWA"))
    result = run("repair", "--apply", plan_file)
    assert (result.exit_code, "fingerprint" in result.stderr) == (3, True)


def test_a_plan_for_another_log_dir_is_refused(damaged, run: Run, plan_file: Path) -> None:
    properties = damaged.log_dir(1) / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=7"))
    result = run("repair", "--apply", plan_file)
    assert (result.exit_code, "another log dir lies here" in result.stderr) == (3, True)


def test_what_was_skipped_makes_the_run_partly_failed(damaged, run: Run, plan_file: Path) -> None:
    (damaged.log_dir(1) / "orders-0" / METADATA).write_bytes(b"changed")
    result = run("repair", "--apply", plan_file)
    assert (result.exit_code, "skipped" in result.stdout, "done" in result.stdout) == (4, True, True)


def test_an_undo_of_what_has_changed_keeps_the_backup(damaged, run: Run, plan_file: Path) -> None:
    run("repair", "--apply", plan_file)
    (damaged.log_dir(1) / "orders-0" / METADATA).write_bytes(b"changed")
    (backup,) = damaged.log_dir(1).glob(".logstore_repair.*.json")
    result = run("repair", "--undo", backup)
    assert (result.exit_code, backup.exists()) == (4, True)
    assert "stays, because" in result.stderr


def test_an_undo_that_is_interrupted_names_the_command_that_does_the_rest(
    damaged, run: Run, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    run("repair", "--apply", plan_file)
    (backup,) = damaged.log_dir(1).glob(".logstore_repair.*.json")
    with monkeypatch.context() as patched:
        patched.setattr("reconciler.cli.commands.repair.undo_repair", interrupted)
        result = run("repair", "--undo", backup)
    assert result.exit_code == 130
    command = result.stderr.strip().rpartition("The same command does the rest: ")[2]
    assert run(*shlex.split(command)[1:]).exit_code == 0
    assert not backup.exists()


def test_several_backups_are_undone_at_once(damaged, run: Run, tmp_path: Path) -> None:
    (damaged.log_dir(2) / "orders-0" / METADATA).write_bytes(b"garbage")
    plan = tmp_path / "plan.json"
    run("repair", *damaged.log_dirs, "--metadata", damaged.metadata, "-o", plan)
    # Two brokers in one plan: broker 2 holds its other partition under the old topic ID, so nothing there is certain.
    assert {each.log_dir for each in parse_plan(plan.read_bytes()).actions} == {str(damaged.log_dir(1))}
    (damaged.log_dir(2) / "meta.properties.tmp").touch()
    run("repair", *damaged.log_dirs, "--metadata", damaged.metadata, "-o", plan)
    assert run("repair", "--apply", plan).exit_code == 0
    backups = sorted((damaged.folder / "disks").glob("*/.logstore_repair.*.json"))
    assert len(backups) == 2
    first = backups[0].read_bytes()
    assert run("repair", "--undo", *backups).exit_code == 0
    assert not list((damaged.folder / "disks").glob("*/.logstore_repair.*.json"))
    backups[0].write_bytes(first)
    again = run("repair", "--undo", *backups)
    assert (again.exit_code, f"{backups[1]} is not there" in again.stderr) == (4, True)
    assert not backups[0].exists(), "what is left is undone, though one of them was undone before"
    assert run("repair", "--undo", *backups).exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give log dirs"),
        (("LOG_DIR", "--apply", "p"), "one of them only"),
        (("--apply", "p", "--undo", "b"), "one of them only"),
        (("--apply", "p", "--only", "remove_leftover"), "applied as it is"),
        (("--apply", "absent.json"), "no such file"),
        (("/absent",), "No such file"),
    ],
)
def test_what_does_not_fit_together_is_a_usage_error(cluster, run: Run, arguments: tuple[str, ...], said: str) -> None:
    given = [str(cluster.log_dir(1)) if each == "LOG_DIR" else each for each in arguments]
    result = run("repair", *given)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize("kind", sorted(REPAIRS))
def test_a_plan_can_be_held_to_one_kind(damaged, run: Run, kind: ActionKind) -> None:
    result = run("repair", damaged.log_dir(1), "--metadata", damaged.metadata, "--only", kind.value)
    is_there = kind is ActionKind.WRITE_PARTITION_METADATA
    assert (result.exit_code, kind in result.stdout) == (int(is_there), is_there)


def test_an_inventory_cannot_be_repaired(cluster, run: Run, tmp_path: Path) -> None:
    inventory = tmp_path / "one.parquet"
    run("scan", cluster.log_dir(1), "--format", "parquet", "-o", inventory)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1")
    refused = run("repair", torn, cluster.log_dir(1))
    said = f"logstore: {torn} is an inventory: a repair needs the log dirs themselves\n"
    assert (refused.exit_code, refused.stderr) == (2, said), "it is not read first, and no word is of what it holds"
    result = run("repair", inventory)
    assert (result.exit_code, "needs the log dirs" in result.stderr) == (2, True)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[" * 10000])
def test_what_is_no_plan_is_refused_in_a_sentence(tmp_path: Path, run: Run, content: bytes) -> None:
    (tmp_path / "p").write_bytes(content)
    result = run("repair", "--apply", tmp_path / "p")
    assert (result.exit_code, "make a new plan" in result.stderr) == (3, True)
    assert "Traceback" not in result.output


def test_what_is_no_backup_is_refused_in_a_sentence(cluster, run: Run) -> None:
    result = run("repair", "--undo", cluster.log_dir(1) / "meta.properties")
    assert (result.exit_code, "not named" in result.stderr) == (3, True)


def test_no_plan_is_written_into_a_log_dir(damaged, run: Run) -> None:
    target = damaged.log_dir(1) / "plan.json"
    result = run("repair", damaged.log_dir(1), "--metadata", damaged.metadata, "-o", target)
    assert (result.exit_code, target.exists()) == (2, False)


def test_help_shows_examples_and_names_the_wrong_cure(run: Run) -> None:
    result = run("repair", "--help")
    assert "--apply plan.json" in result.stdout
    assert "Never delete partition.metadata" in result.stdout
    assert os.linesep in result.stdout
