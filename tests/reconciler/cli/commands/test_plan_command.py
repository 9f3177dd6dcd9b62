"""``logstore plan`` from end to end: what it shows, keeps and refuses; it never changes anything."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from logstore.log_dir import LogDir
from reconciler.cli.frame import parse_share, parse_size, user_name
from reconciler.errors import UsageError
from reconciler.plan import parse_plan
from reconciler.text import size
from tests.reconciler.cli.conftest import CLUSTER, OLD_ORDERS, ORDERS, make_log_dir
from tools.writers import topic_record, write_metadata_dir

Run = Callable[..., Result]
HALF = ("--max-share", "50%")


@pytest.fixture
def plan(cluster, run: Run) -> Callable[..., Result]:
    """Plans for both brokers: partition 1 on broker 2 lies there under the old topic ID."""
    return lambda *args: run("plan", *cluster.log_dirs, "--metadata", cluster.metadata, *args)


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def taken(cluster) -> str:
    """What the stale replica takes on the disk, as a page shows it."""
    files = (cluster.log_dir(2) / "orders-1").iterdir()
    return size(sum(512 * file.stat().st_blocks for file in files))


def test_a_plan_is_shown_with_its_evidence_and_nothing_is_changed(cluster, plan: Callable[..., Result]) -> None:
    before = tree(cluster.folder)
    result = plan(*HALF)
    assert (result.exit_code, tree(cluster.folder)) == (1, before), result.output
    for word in (
        "stage",
        "orders-1",
        taken(cluster),
        "STALE_ID",
        str(OLD_ORDERS),
        "broker-2.deleting",
        "logstore restore",
    ):
        assert word in result.stdout
    assert "Verdicts: OK 3, STALE_ID 1" in result.stdout
    assert "A purge may take what is staged from" in result.stdout
    assert "1 action planned, and nothing was changed" in result.stderr
    assert result.stderr.splitlines()[-1].endswith(" --output plan.json")


def test_a_plan_is_kept_in_a_file_that_the_next_command_takes(plan: Callable[..., Result], tmp_path: Path) -> None:
    result = plan(*HALF, "-o", tmp_path / "plan.json")
    assert (result.exit_code, f"    logstore apply {tmp_path}/plan.json\n" in result.stderr) == (1, True)
    (action,) = parse_plan((tmp_path / "plan.json").read_bytes()).actions
    assert (action.name, action.bytes) == ("orders-1", 1043)


def test_json_goes_to_standard_output(plan: Callable[..., Result]) -> None:
    result = plan(*HALF, "--format", "json")
    (action,) = parse_plan(result.stdout.encode()).actions
    (same,) = parse_plan(plan(*HALF, "-o", "-").stdout.encode()).actions
    assert (action.name, action.inode) == (same.name, same.inode)
    assert json.loads(result.stdout)["totals"] == {"stage": {"actions": 1, "bytes": action.disk_bytes}}


def test_what_is_in_order_needs_no_plan(cluster, run: Run) -> None:
    result = run("plan", cluster.log_dir(1), "--metadata", cluster.metadata)
    assert (result.exit_code, "there is nothing to do" in result.stderr) == (0, True)


def test_a_refused_plan_is_shown_with_every_gate_and_the_command_that_opens_them(
    cluster, plan: Callable[..., Result], run: Run, tmp_path: Path
) -> None:
    (cluster.log_dir(1) / "__x-0").mkdir()
    (cluster.log_dir(1) / "__x-0" / "00000000000000000000.log").touch()
    kept = tmp_path / "plan.json"
    result = plan("--topic", "*", "--topic", "or*", "--max-share", "10%", "-o", kept)
    assert (result.exit_code, kept.exists()) == (3, False), result.output
    assert "orders-1" in result.stdout and "STALE_ID" in result.stdout and "Verdicts: OK 3" in result.stdout
    refused = [line for line in result.stderr.splitlines() if "refused: " in line]
    overrides = ("--allow newer", "--max-share 34%", "--max-share 50%", "--allow no-id", "--allow internal")
    for line, override in zip(refused, overrides, strict=True):
        assert line.endswith(f"(override: {override})")
    assert f"nothing is written to {kept}" in result.stderr
    command = result.stderr.splitlines()[-1].strip()
    assert "--max-share 10%" not in command and command.count("--max-share") == 1
    words = shlex.split(command)
    assert words[:2] == ["logstore", "plan"] and words[-8:] == [
        *("--allow", "newer", "--max-share", "50%", "--allow", "no-id", "--allow", "internal"),
    ]
    again = run(*words[1:])
    assert (again.exit_code, kept.exists()) == (1, True), again.output


def test_a_copied_log_dir_is_left_out_and_no_option_is_named_that_lets_it_in(cluster, run: Run, tmp_path: Path) -> None:
    copied = make_log_dir(tmp_path / "copied", 2, {})
    asked = ("--metadata", cluster.metadata, *HALF, "-o", tmp_path / "plan.json")
    result = run("plan", cluster.log_dir(2), copied, *asked, "--allow", "log-dir")
    assert (result.exit_code, (tmp_path / "plan.json").exists()) == (3, False), result.output
    assert f"{copied} does not look like a log dir of this broker" in result.stderr
    files = [f"{path}/meta.properties" for path in (cluster.log_dir(2), copied)]
    assert shlex.split(result.stderr.splitlines()[-1]) == ["grep", "-H", "=", *files]
    assert run("plan", cluster.log_dir(2), *asked).exit_code == 1
    assert run("apply", tmp_path / "plan.json").exit_code == 0


@pytest.mark.parametrize("words", [("--format", "json"), ("--json",)])
def test_a_refused_plan_is_no_json_that_could_be_applied(plan: Callable[..., Result], words: tuple[str, ...]) -> None:
    result = plan(*words)
    assert (result.exit_code, result.stdout) == (3, "")
    assert " --format json " in result.stderr.splitlines()[-1], "the plan that is printed in its place is asked for so"
    for word in ("1 of 2 replicas of broker 2", "50 %", "--max-share 50%"):
        assert word in result.stderr


def test_problems_of_the_metadata_are_told(cluster, run: Run, tmp_path: Path) -> None:
    kafka = write_metadata_dir(tmp_path / "k", log=[[topic_record("a", ORDERS)]], cluster_id=CLUSTER, timestamp_ms=5)
    (segment,) = Path(kafka).glob("*.log")
    segment.write_bytes(segment.read_bytes() + b"torn")
    for command in ("plan", "preflight"):
        result = run(command, *cluster.log_dirs, "--metadata", kafka)
        assert f"note: {kafka}: {segment.name}: at offset 2: " in result.stderr


def test_no_metadata_is_refused(cluster, run: Run) -> None:
    result = run("plan", *cluster.log_dirs, "--metadata", "none")
    assert (result.exit_code, "--allow empty" in result.stderr) == (3, True)


def test_metadata_of_another_cluster_is_refused_and_may_be_allowed(cluster, run: Run, tmp_path: Path) -> None:
    other = make_log_dir(tmp_path / "other", 1, {"orders-0": ORDERS}, "another-cluster")
    asked = ("plan", other, "--metadata", cluster.metadata)
    result = run(*asked)
    assert (result.exit_code, "--allow cluster" in result.stderr) == (3, True), result.stderr
    assert run(*asked, "--allow", "cluster").exit_code == 0


def test_picks_narrow_the_plan(plan: Callable[..., Result]) -> None:
    asked = HALF
    assert plan(*asked, "--topic", "ord*", "--verdict", "stale_id").exit_code == 1
    assert plan(*asked, "--topic", "other").exit_code == 0
    assert plan(*asked, "--verdict", "STRAY").exit_code == 0


def test_a_need_that_cannot_be_met_is_reported(cluster, plan: Callable[..., Result]) -> None:
    result = plan(*HALF, "--need", "2G")
    assert (result.exit_code, f"2.0 GB are needed, and no more than {taken(cluster)}" in result.stderr) == (1, True)


def test_a_running_broker_is_reported_of_because_its_data_will_change(cluster, plan: Callable[..., Result]) -> None:
    with LogDir.open(str(cluster.log_dir(2))):
        result = plan(*HALF)
    assert (result.exit_code, "--changed-data" in result.stderr) == (1, True)


def test_several_sightings_give_a_note_first(plan: Callable[..., Result]) -> None:
    result = plan("--sightings", "2")
    assert (result.exit_code, "note_sighting" in result.stdout) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--need", "much"), "--need"),
        (("--need", "0"), "--need"),
        (("--max-share", "130%"), "--max-share"),
        (("--max-share", "nan"), "--max-share"),
        (("--max-age", "soon"), "--max-age"),
        (("--delay", "-1h"), "--delay"),
        (("--allow", "everything"), "--allow"),
        (("--verdict", "NICE"), "--verdict"),
        (("--sightings", "0"), "--sightings"),
        (("--apart", "soon"), "--apart"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(
    plan: Callable[..., Result], arguments: tuple[str, ...], said: str
) -> None:
    result = plan(*arguments)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_an_inventory_cannot_be_planned_for(cluster, run: Run, tmp_path: Path) -> None:
    inventory = tmp_path / "one.parquet"
    run("scan", cluster.log_dir(1), "--format", "parquet", "-o", inventory)
    result = run("plan", inventory)
    assert (result.exit_code, "needs the log dirs" in result.stderr) == (2, True)


def test_replicas_are_staged_in_the_place_that_was_asked_for(
    cluster, plan: Callable[..., Result], run: Run, tmp_path: Path
) -> None:
    out = str(tmp_path / "plan.json")
    result = plan(*HALF, "--staging", "in-place", "-o", out)
    # These log dirs have directory IDs, which no broker gave them that is too old for -stray.
    assert (result.exit_code, "3.6.1" in result.stderr) == (1, False)
    planned = json.loads(Path(out).read_bytes())["log_dirs"]
    assert [each["staging"] for each in planned] == [each["path"] for each in planned]
    applied = run("apply", out)
    assert applied.exit_code == 0, applied.stderr
    staged = json.loads(run("staged", *cluster.log_dirs, "--format", "json").stdout)["rows"]
    assert [each["location"].endswith("-stray") for each in staged] == [True]
    assert not any(Path(f"{path}.deleting").exists() for path in cluster.log_dirs)


@pytest.mark.parametrize(("place", "warned"), [("in-place", True), ("sibling", False)])
def test_a_broker_that_may_be_too_old_to_know_strays_is_warned_of(
    cluster, plan: Callable[..., Result], place: str, warned: bool
) -> None:
    for path in cluster.log_dirs:
        file = Path(path) / "meta.properties"
        file.write_text("".join(line for line in file.read_text().splitlines(True) if "directory.id" not in line))
    result = plan(*HALF, "--staging", place)
    said = "A broker before 3.6.1 does not know that form, and would not start" in result.stderr
    assert (result.exit_code, said) == (1, warned), result.output


def test_a_place_that_cannot_be_had_is_a_refusal(cluster, plan: Callable[..., Result]) -> None:
    Path(f"{cluster.log_dirs[1]}.deleting").write_text("in the way")
    result = plan(*HALF, "--staging", "sibling")
    assert result.exit_code == 3
    assert "Leave out --staging" in result.stderr


def test_what_is_staged_through_a_link_to_a_log_dir_is_found_by_its_own_name_and_by_the_link(
    cluster, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "kafka"
    link.symlink_to(cluster.log_dir(2))
    kept = tmp_path / "plan.json"
    assert run("plan", link, "--metadata", cluster.metadata, *HALF, "-o", kept).exit_code == 1
    assert run("apply", kept).exit_code == 0
    assert Path(f"{cluster.log_dir(2)}.deleting").is_dir() and [path.name for path in link.parent.iterdir()] == [
        "kafka"
    ]
    by_link, by_name = (run("staged", path).stdout for path in (link, cluster.log_dir(2)))
    assert f"../broker-2.deleting/{OLD_ORDERS}_1" in by_name and by_link == by_name
    assert run("restore", link, "--all").exit_code == 0
    assert (cluster.log_dir(2) / "orders-1").is_dir()


def test_no_plan_is_written_into_a_log_dir(cluster, plan: Callable[..., Result]) -> None:
    result = plan("-o", cluster.log_dir(1) / "plan.json")
    assert (result.exit_code, (cluster.log_dir(1) / "plan.json").exists()) == (2, False)


def test_sizes_and_shares_are_read() -> None:
    assert [parse_size(text) for text in ("200G", "1.5T", "7", "10 kB", "3MiB")] == [
        *(200 * 10**9, 1_500_000_000_000, 7, 10_000, 3_000_000),
    ]
    assert [parse_share(text) for text in ("30%", "0.3", "100 %", "0")] == [0.3, 0.3, 1.0, 0.0]
    with pytest.raises(UsageError):
        parse_size("1e9")


def test_behind_sudo_the_one_who_called_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "root")
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert user_name() == "root"
    monkeypatch.setenv("SUDO_USER", "ada")
    assert user_name() == "root (sudo by ada)"
