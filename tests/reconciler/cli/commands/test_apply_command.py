"""``logstore apply`` from end to end: a plan carried out, repeated, edited, refused."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from layout.directory_name import stray_name
from logstore.log_dir import LogDir
from logstore.repair import RepairStatus
from reconciler.plan import AppliedAction, ApplyOutcome, Plan
from tests.reconciler.cli.conftest import OLD_ORDERS, ORDERS, long_written, save_metadata

Run = Callable[..., Result]
ASKED = ("--max-share", "70%")


@pytest.fixture
def plan_file(cluster, run: Run, tmp_path: Path) -> Path:
    """Broker 1 has a replica too many, broker 2 one of a re-created topic, which is in two lines."""
    for name in ("orders-7", "orders-8"):
        (cluster.log_dir(1) / name).mkdir()
        (cluster.log_dir(1) / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {ORDERS}")
        long_written(cluster.log_dir(1) / name)
    path = tmp_path / "plan.json"
    result = run("plan", *cluster.log_dirs, "--metadata", cluster.metadata, *ASKED, "-o", path)
    assert result.exit_code == 1, result.output
    return path


def commands(result: Result) -> list[str]:
    """The printed commands, each of which stands on a line of its own."""
    return [line.strip() for line in result.stderr.splitlines() if line.startswith("    ")]


def test_it_says_what_was_done_what_comes_next_and_how_to_take_it_back(cluster, run: Run, plan_file: Path) -> None:
    result = run("apply", plan_file)
    assert (result.exit_code, result.stdout.count("\ndone ")) == (0, 3), result.output
    assert f"staged as ../broker-2.deleting/{OLD_ORDERS}_1" in result.stdout
    for word in ("3 actions: 3 done", "frees no space yet", "journal: ", "undo: to bring orders-7 back, and each of 2"):
        assert word in result.stderr
    one, two = cluster.log_dirs
    assert commands(result) == [
        f"logstore restore {one} --topic orders --partition 7 --topic-id={ORDERS}",
        f"logstore preflight {one} --metadata {cluster.metadata}",
        f"logstore preflight {two} --metadata {cluster.metadata}",
        f"logstore purge {one} {two}",
    ]
    audited = json.loads(run("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--format", "json").stdout)
    assert {finding["verdict"] for finding in audited["findings"]} == {"MISSING", "STAGED"}


def test_where_standard_output_is_closed_nothing_is_changed_before_that_is_said(
    cluster, start: Callable[..., subprocess.CompletedProcess[str]], plan_file: Path
) -> None:
    def live() -> set[str]:
        return {name for log_dir in cluster.log_dirs for name in os.listdir(log_dir) if name.startswith("orders-")}

    before = live()
    refused = start("apply", plan_file, preexec_fn=lambda: os.close(1))
    assert (refused.returncode, live()) == (2, before), refused.stderr
    assert "standard output is closed: give -o FILE" in refused.stderr
    done = start("apply", plan_file, "-o", cluster.folder / "outcome", preexec_fn=lambda: os.close(1))
    assert done.returncode == 0 and live() < before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_outcome_without_room_is_told_beside_how_it_is_undone_and_what_comes_next(
    cluster, run: Run, plan_file: Path
) -> None:
    result = run("apply", plan_file, "-o", "/dev/full")
    assert result.exit_code == 4
    assert "logstore: /dev/full is incomplete: No space left on device\n" in result.stderr
    for word in ("3 actions: 3 done", "journal: ", "undo: to bring orders-7 back", "next: "):
        assert word in result.stderr


def test_applied_again_it_promises_no_later_time_and_json_has_the_same_steps(
    cluster, run: Run, plan_file: Path
) -> None:
    first = run("apply", plan_file)
    assert "UTC on, delete for ever what is staged" in first.stderr
    again = run("apply", plan_file)
    assert "3 already" in again.stderr and "once it is due, delete for ever what is staged" in again.stderr
    document = json.loads(run("apply", plan_file, "--json").stdout)
    assert [step["command"] for step in document["next"] if step["command"]] == commands(again)
    assert document["undo"] == [], "this run has done nothing that could be taken back"


def test_what_comes_next_names_the_metadata_in_full_wherever_the_plan_is_carried_out(
    cluster, run: Run, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cluster.folder)
    metadata = os.path.relpath(cluster.metadata)
    assert run("plan", *cluster.log_dirs, "--metadata", metadata, *ASKED, "-o", "here.json").exit_code == 1
    monkeypatch.chdir("/")
    next_ones = commands(run("apply", cluster.folder / "here.json"))
    assert f"logstore preflight {cluster.log_dir(1)} --metadata {cluster.metadata}" in next_ones


def test_a_plan_that_only_notes_is_made_again_by_later_metadata_before_anybody_starts_a_broker(
    cluster, run: Run, plan_file: Path
) -> None:
    asked = (*ASKED, "--sightings", "2", "--apart", "0h", "--topic", "or*", "--format", "table", "-o", plan_file)
    assert run("plan", *cluster.log_dirs, "--metadata", cluster.metadata, *asked).exit_code == 1
    result = run("apply", plan_file)
    assert (result.exit_code, "3 actions: 3 done" in result.stderr) == (0, True), result.output
    again, carried_out = commands(result)
    disks = " ".join(cluster.log_dirs)
    options = "--topic 'or*' --sightings 2 --apart 0h --max-share 70%"
    assert again == f"logstore plan {disks} --metadata {cluster.metadata} {options} -o {plan_file}"
    assert carried_out == f"logstore apply {plan_file}"
    assert "start the broker" not in result.stderr and "3 replicas are only noted as unwanted" in result.stderr
    shutil.rmtree(cluster.metadata)
    save_metadata(Path(cluster.metadata))
    assert run(*shlex.split(again)[1:]).exit_code == 1
    staged = run(*shlex.split(carried_out)[1:])
    assert "3 actions: 3 done" in staged.stderr and "are staged" in staged.stderr
    assert "start the broker" in staged.stderr and "plan " not in " ".join(commands(staged))


def test_the_undo_of_the_others_names_the_folder_of_records_that_their_plan_could_not_know(
    cluster, run: Run, plan_file: Path
) -> None:
    (cluster.folder / "spare records").mkdir()
    result = run("apply", plan_file, "--spare-records", cluster.folder / "spare records")
    folder = f"--spare-records '{cluster.folder}/spare records'"
    assert f"each of 2 others as UNDO says in the plan, with {folder}:" in result.stderr
    assert commands(result)[0].endswith(folder)


def test_applying_again_changes_nothing_and_is_no_failure(run: Run, plan_file: Path) -> None:
    run("apply", plan_file)
    result = run("apply", plan_file)
    assert (result.exit_code, "3 actions: 3 already" in result.stderr) == (0, True)
    assert "journal" not in result.stderr


def test_lines_that_were_taken_out_in_an_editor_are_left_alone(cluster, run: Run, plan_file: Path) -> None:
    lines = plan_file.read_text().splitlines(keepends=True)
    plan_file.write_text("".join(line for line in lines if '"name": "orders-1"' not in line))
    result = run("apply", plan_file)
    assert (result.exit_code, "2 actions: 2 done" in result.stderr) == (0, True), result.output
    assert (cluster.log_dir(2) / "orders-1").exists()


def test_what_was_skipped_makes_the_run_partly_failed(cluster, run: Run, plan_file: Path) -> None:
    (cluster.log_dir(1) / "orders-7" / "new").write_bytes(b"data")
    result = run("apply", plan_file, "--format", "json")
    assert (result.exit_code, "look again at what was skipped" in result.stderr) == (4, True)
    assert commands(result)[-1] == f"logstore doctor {' '.join(cluster.log_dirs)} --metadata {cluster.metadata}"
    document = json.loads(result.stdout)
    by_name = {each["name"]: each for each in document["results"]}
    assert (document["schema_version"], by_name["orders-7"]["status"]) == (1, "skipped")
    assert "its data has changed" in by_name["orders-7"]["detail"]
    assert run("apply", plan_file, "--changed-data").exit_code == 0


def test_ndjson_has_a_line_for_each_action(run: Run, plan_file: Path, tmp_path: Path) -> None:
    run("apply", plan_file, "--format", "ndjson", "-o", tmp_path / "out")
    assert [json.loads(line)["status"] for line in (tmp_path / "out").read_text().splitlines()] == ["done"] * 3


def test_a_running_broker_is_a_refusal(cluster, run: Run, plan_file: Path) -> None:
    with LogDir.open(str(cluster.log_dir(2))):
        result = run("apply", plan_file)
    assert (result.exit_code, "in use by" in result.stderr) == (3, True)
    assert (cluster.log_dir(1) / "orders-7").exists()


def test_a_plan_edited_into_nonsense_is_refused_in_a_sentence(run: Run, plan_file: Path) -> None:
    plan_file.write_text(plan_file.read_text().replace('"name": "orders-1"', '"name": "../../../etc"'))
    result = run("apply", plan_file)
    assert (result.exit_code, "it was changed" in result.stderr, "Traceback" in result.output) == (3, True, False)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[" * 10000, b"null"])
def test_what_is_no_plan_is_refused_in_a_sentence(tmp_path: Path, run: Run, content: bytes) -> None:
    (tmp_path / "p").write_bytes(content)
    result = run("apply", tmp_path / "p")
    assert (result.exit_code, "make a new plan" in result.stderr, "Traceback" in result.output) == (3, True, False)


def test_a_plan_for_disks_that_are_not_here_is_refused(cluster, run: Run, plan_file: Path) -> None:
    cluster.log_dir(2).rename(cluster.folder / "elsewhere")
    result = run("apply", plan_file)
    assert (result.exit_code, "is not the log dir that it was made for" in result.stderr) == (3, True)
    assert (cluster.log_dir(1) / "orders-7").exists()


@pytest.mark.parametrize(
    ("arguments", "said"), [(("absent.json",), "no such file"), ((".", "--max-age", "x"), "--max-age"), ((".",), ".")]
)
def test_what_cannot_be_read_is_a_usage_error(run: Run, arguments: tuple[str, ...], said: str) -> None:
    result = run("apply", *arguments)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


def test_the_output_does_not_go_over_the_plan_or_into_a_log_dir(cluster, run: Run, plan_file: Path) -> None:
    assert run("apply", plan_file, "-o", plan_file).exit_code == 2
    assert run("apply", plan_file, "-o", cluster.log_dir(1) / "out").exit_code == 2
    assert (cluster.log_dir(1) / "orders-7").exists()


def test_the_folder_of_fallback_records_stays_in_every_command(cluster, run: Run, plan_file: Path) -> None:
    spare = cluster.folder / "spare"
    spare.mkdir()
    result = run("apply", plan_file, "--spare-records", spare)
    undo, *looks, purge = commands(result)
    assert all(command.endswith(f" --spare-records {spare}") for command in (undo, *looks, purge))
    assert {command.split()[1] for command in looks} == {"doctor"}, "a disk may be full, which doctor knows"


def test_a_full_disk_leads_to_a_folder_for_records_and_not_round_in_a_circle(
    cluster, run: Run, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(plan: Plan, how: object) -> ApplyOutcome:
        detail = "orders-7 cannot be staged: No space left on device; nothing was changed"
        return ApplyOutcome([AppliedAction(action, RepairStatus.FAILED, detail) for action in plan.actions])

    monkeypatch.setattr("reconciler.cli.commands.apply.apply_plan", full)
    result = run("apply", plan_file)
    assert result.exit_code == 4
    assert commands(result) == [
        "mkdir -p /var/lib/logstore/spare-records",
        f"logstore apply {plan_file} --spare-records /var/lib/logstore/spare-records",
    ]
    spare = cluster.folder / "spare"
    spare.mkdir()
    again = run("apply", plan_file, "--spare-records", spare)
    assert f"{spare} has no room either" in again.stderr


def test_the_undo_of_a_stray_leaves_it_a_stray(cluster, run: Run, tmp_path: Path) -> None:
    stray = cluster.log_dir(1) / stray_name("gone", 0, "0123456789abcdef0123456789abcdef")
    stray.mkdir()
    (stray / "partition.metadata").write_text(f"version: 0\ntopic_id: {OLD_ORDERS}")
    long_written(stray)
    path = tmp_path / "strays.json"
    planned = run("plan", cluster.log_dir(1), "--metadata", cluster.metadata, *ASKED, "--strays", "-o", path)
    assert planned.exit_code == 1, planned.output
    result = run("apply", path)
    undo = commands(result)[0]
    assert "to leave" in result.stderr
    assert "--as-stray" in undo
    again = run(*shlex.split(undo)[1:])
    assert (again.exit_code, f"leave {stray.name} as a stray" in again.stdout) == (0, True)
    (left,) = json.loads(run("staged", cluster.log_dir(1), "--format", "json").stdout)["rows"]
    assert (left["state"], left["due_ms"], os.listdir(stray)) == ("stray", None, ["partition.metadata"])


@pytest.fixture
def repair_file(cluster, run: Run, tmp_path: Path) -> Path:
    """A plan of 'logstore repair' for one lost partition.metadata."""
    (cluster.log_dir(1) / "orders-0" / "partition.metadata").unlink()
    path = tmp_path / "repair.json"
    assert run("repair", cluster.log_dir(1), "--metadata", cluster.metadata, "-o", path).exit_code == 1
    return path


def test_a_plan_of_repairs_is_carried_out_as_repair_does_it(cluster, run: Run, repair_file: Path) -> None:
    result = run("apply", repair_file)
    assert (result.exit_code, result.stdout.count("done")) == (0, 1), result.output
    assert (cluster.log_dir(1) / "orders-0" / "partition.metadata").read_text() == f"version: 0\ntopic_id: {ORDERS}"
    (backup,) = cluster.log_dir(1).glob(".logstore_repair.*.json")
    assert commands(result) == [
        f"logstore repair --undo {backup}",
        f"logstore doctor {cluster.log_dir(1)} --metadata {cluster.metadata}",
    ]
    again = run("repair", "--apply", repair_file)
    assert (again.exit_code, again.stdout.count("already")) == (0, 1)


def test_a_plan_of_repairs_of_the_future_is_carried_out_under_any_clock_alone(
    cluster, run: Run, repair_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    week_ago = time.time_ns() - 7 * 86_400 * 10**9
    monkeypatch.setattr("time.time_ns", lambda: week_ago)
    for words in (["apply", repair_file], ["repair", "--apply", repair_file]):
        refused = run(*words)
        assert (refused.exit_code, "(override: --any-clock)" in refused.stderr) == (3, True), refused.output
        assert "in the future: set this machine's clock" in refused.stderr
    assert not (cluster.log_dir(1) / "orders-0" / "partition.metadata").exists()
    assert run("apply", repair_file, "--any-clock").exit_code == 0


@pytest.mark.parametrize("option", [["--changed-data"], ["--any-host"], ["--max-age", "3d"], ["--max-age", "0h"]])
def test_an_option_that_no_repair_has_a_use_for_is_refused(
    cluster, run: Run, repair_file: Path, option: list[str]
) -> None:
    result = run("apply", repair_file, *option)
    assert (result.exit_code, f"has no use for {option[0]}" in result.stderr) == (2, True), result.output
    assert not (cluster.log_dir(1) / "orders-0" / "partition.metadata").exists()


def test_what_a_repair_did_is_told_in_every_format(cluster, run: Run, repair_file: Path) -> None:
    result = run("apply", repair_file, "--format", "ndjson")
    (row,) = [json.loads(line) for line in result.stdout.splitlines()]
    assert (row["status"], row["kind"], row["name"]) == (
        *("done", "write_partition_metadata"),
        "orders-0/partition.metadata",
    )
    assert row["why"].startswith("there is no partition.metadata")


def test_lines_may_be_taken_out_of_a_plan_of_repairs_too(cluster, run: Run, repair_file: Path) -> None:
    lines = repair_file.read_text().splitlines(keepends=True)
    repair_file.write_text("".join(line for line in lines if '{"kind"' not in line))
    result = run("apply", repair_file)
    assert (result.exit_code, "There was nothing to do." in result.stdout) == (0, True), result.output
    assert not (cluster.log_dir(1) / "orders-0" / "partition.metadata").exists()
