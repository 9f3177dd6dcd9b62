"""``--policy`` of the commands that plan, stage, list and purge: rules win, also those laid down later."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from layout import partition_metadata
from reconciler.cli import logstore
from reconciler.cli.frame import read_policy
from reconciler.plan import Plan, parse_plan
from tests.reconciler.cli.commands.test_purge_command import FAR_AWAY_MS, below, stage_replica
from tests.reconciler.cli.conftest import OLD_ORDERS, ORDERS, Cluster, long_written

Run = Callable[..., Result]
NEVER = "[[never_touch]]\ntopics = ['ord*']\nreason = 'auditors read it'\n"
HOLD = "[[hold]]\ntopics = ['orders']\nreason = 'case 7'\n"
ENDED = f"{HOLD}until = 2001-01-01\n"
DAY_MS = 86_400_000


class Desk:
    """An operator's folder with a policy and a plan."""

    def __init__(self, cluster: Cluster, run: Run) -> None:
        self.cluster, self.run = cluster, run
        self.policy, self.file = cluster.folder / "policy.toml", cluster.folder / "plan.json"

    def rules(self, text: str) -> None:
        self.policy.write_text(text, encoding="utf-8")

    def plan(self, *args: object, share: str = "50%") -> Result:
        asked = ("--metadata", self.cluster.metadata, "--max-share", share, "--policy", self.policy, "-o", self.file)
        return self.run("plan", *self.cluster.log_dirs, *asked, *args)

    @property
    def planned(self) -> Plan:
        return parse_plan(self.file.read_bytes())

    def outcome(self, *args: object) -> tuple[int, list[dict[str, Any]]]:
        applied = self.run("apply", self.file, "--json", *args)
        assert applied.exit_code in (0, 4), applied.output
        return applied.exit_code, json.loads(applied.stdout)["results"]

    def staged(self, *args: object) -> list[dict[str, Any]]:
        return list(json.loads(self.run("staged", *self.cluster.log_dirs, "--json", *args).stdout)["rows"])


@pytest.fixture
def desk(cluster: Cluster, run: Run) -> Desk:
    return Desk(cluster, run)


@pytest.mark.parametrize(
    ("text", "why"), [(NEVER, "never touched: auditors read it"), (HOLD, "held: case 7")], ids=["never", "hold"]
)
def test_what_a_rule_forbids_is_left_alone_with_its_reason_and_line(desk: Desk, text: str, why: str) -> None:
    desk.rules(text)
    made = desk.plan("--json")
    assert made.exit_code == 0, made.output
    (left,) = json.loads(desk.file.read_bytes())["left_alone"]
    assert (left["name"], left["verdict"]) == ("orders-1", "STALE_ID")
    assert left["reason"] == f"{why} ({desk.policy}:1)"
    assert left["next"].startswith(f"logstore policy check {desk.policy} {desk.cluster.log_dirs[1]}")
    assert desk.planned.policy["policy_file"] == str(desk.policy)
    assert why in desk.planned.policy["never_touch" if text is NEVER else "hold"]


def test_a_hold_that_has_ended_forbids_nothing(desk: Desk) -> None:
    desk.rules(ENDED)
    assert desk.plan().exit_code == 1
    assert desk.outcome()[0] == 0
    assert [row["state"] for row in desk.staged("--policy", desk.policy)] == ["staged"]


def test_what_is_staged_waits_as_long_as_the_first_delay_for_its_topic_says(desk: Desk) -> None:
    desk.rules("[[delay]]\ntopics = ['o*']\ndelay = '30d'\n[[delay]]\ntopics = ['orders']\ndelay = '1d'\n")
    assert desk.plan("--delay", "2d").exit_code == 1
    (action,) = desk.planned.actions
    assert action.due_ms == desk.planned.created_ms + 30 * DAY_MS
    code, _ = desk.outcome()
    (row,) = desk.staged()
    assert (code, row["due_ms"] - row["staged_ms"]) == (0, 30 * DAY_MS)


def test_a_stray_waits_as_long_too(desk: Desk) -> None:
    stray = desk.cluster.log_dir(1) / f"gone-0.{'0' * 32}-stray"
    stray.mkdir()
    (stray / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(OLD_ORDERS))
    long_written(desk.cluster.log_dir(1))
    desk.rules("[[delay]]\ntopics = ['gone']\ndelay = '30d'\n")
    made = desk.plan("--strays", "--topic", "gone")
    assert made.exit_code == 1, made.output
    assert desk.outcome()[0] == 0
    (row,) = [row for row in desk.staged() if row["topic"] == "gone"]
    assert row["due_ms"] - row["staged_ms"] == 30 * DAY_MS


def test_the_gates_have_the_numbers_of_the_policy_and_an_option_counts_more(desk: Desk, run: Run) -> None:
    desk.rules("[gates]\nmax_share = '50%'\nmax_age = '2h'\nmax_count = 7\nmax_shrink = '10%'\n")
    asked = ("plan", *desk.cluster.log_dirs, "--metadata", desk.cluster.metadata, "--policy", desk.policy)
    made = run(*asked, "--json")
    assert made.exit_code == 1, made.output
    numbers = {"max_age_ms": "7200000", "max_shrink": "0.1", "max_share": "0.5", "max_count": "7"}
    assert numbers.items() <= json.loads(made.stdout)["policy"].items()
    refused = run(*asked, "--max-share", "20%")
    assert (refused.exit_code, "where 20 % is the most" in refused.stderr) == (3, True)


def test_a_hold_that_was_laid_after_the_plan_wins_as_it_is_applied(desk: Desk) -> None:
    desk.rules("foreign = ['lost+found']\n")
    assert desk.plan().exit_code == 1
    desk.rules(HOLD)
    code, (result,) = desk.outcome()
    assert (code, result["status"]) == (4, "skipped")
    assert result["detail"] == f"the policy forbids it: held: case 7 ({desk.policy}:1)"
    assert (desk.cluster.log_dir(2) / "orders-1").exists() and desk.staged() == []
    (desk.cluster.folder / "other.toml").write_text(ENDED)
    assert desk.outcome("--policy", desk.cluster.folder / "other.toml")[0] == 0


def test_a_plan_whose_policy_is_gone_is_not_applied(desk: Desk, run: Run) -> None:
    desk.rules(NEVER.replace("ord*", "others"))
    assert desk.plan().exit_code == 1
    desk.policy.unlink()
    refused = run("apply", desk.file)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"policy {desk.policy}: there is no such file; name the present one with --policy" in refused.stderr
    assert (desk.cluster.log_dir(2) / "orders-1").exists()


@pytest.mark.parametrize("text", [NEVER, HOLD], ids=["never", "hold"])
def test_no_purge_takes_what_is_held_though_it_is_due_and_named(desk: Desk, run: Run, text: str) -> None:
    home = desk.cluster.log_dirs[0]
    location = stage_replica(home, 0)
    desk.rules(text)
    planned, kept = (run("purge", home, "--policy", desk.policy, *more) for more in (["--dry-run"], []))
    assert (kept.exit_code, planned.stdout) == (0, kept.stdout), kept.output
    assert f"keep {location}: the policy keeps it: " in kept.stdout
    assert kept.stdout.splitlines()[-1] == f"{home}: 0 directories, 0 B; 1 due and kept by the policy"
    named = run("purge", home, "--policy", desk.policy, "--location", location, "--before-due")
    assert (named.exit_code, below(home)) == (1, {f"{ORDERS}_0"})
    assert f"nothing was purged: the policy {desk.policy} keeps {location}" in named.stderr
    assert f"    logstore policy check {desk.policy} {home}\n" in named.stderr
    desk.rules(ENDED)
    assert run("purge", home, "--policy", desk.policy).exit_code == 0
    assert below(home) == set()


def test_what_is_held_is_listed_so_whether_it_is_due_or_not(desk: Desk, run: Run) -> None:
    home = desk.cluster.log_dirs[0]
    for partition, delay_ms in ((0, 0), (1, FAR_AWAY_MS)):
        stage_replica(home, partition, delay_ms)
    desk.rules(HOLD)
    assert [(row["state"], row["held"]) for row in desk.staged()] == [("due", None), ("staged", None)]
    rows = desk.staged("--policy", desk.policy)
    assert [(row["state"], row["held"]) for row in rows] == [("held", f"held: case 7 ({desk.policy}:1)")] * 2
    table = run("staged", home, "--policy", desk.policy).stdout
    assert table.splitlines()[0] == f"{home}: 2 directories, 0 B of them due"
    assert "case 7" in table


def test_a_repair_leaves_alone_what_is_never_touched_and_mends_what_is_held(desk: Desk, run: Run) -> None:
    home = desk.cluster.log_dir(1)
    (home / "orders-0" / partition_metadata.FILE_NAME).write_text("torn")
    asked = ("repair", home, "--metadata", desk.cluster.metadata, "--json", "--policy", desk.policy)
    found = {}
    for name, text in (("never", NEVER), ("hold", HOLD)):
        desk.rules(text)
        found[name] = json.loads(run(*asked).stdout)
    assert (found["never"]["actions"], len(found["hold"]["actions"])) == ([], 1)
    assert [each["reason"] for each in found["never"]["left_alone"]] == [
        f"never touched: auditors read it ({desk.policy}:1)"
    ]


def test_a_duplicate_that_is_held_is_not_staged_and_another_waits_as_its_rule_says(desk: Desk, run: Run) -> None:
    second = desk.cluster.folder / "disks" / "second"
    second.mkdir()
    properties = (desk.cluster.log_dir(1) / "meta.properties").read_text().replace("AAAAAAAAAE0", "AAAAAAAAAE9")
    (second / "meta.properties").write_text(properties)
    (second / "orders-0").mkdir()
    for file in (desk.cluster.log_dir(1) / "orders-0").iterdir():
        (second / "orders-0" / file.name).write_bytes(file.read_bytes())
    asked = ("repair", desk.cluster.log_dir(1), second, "--metadata", desk.cluster.metadata, "--json")
    chosen = ("--keep", desk.cluster.log_dir(1) / "orders-0", "--policy", desk.policy)
    desk.rules("[[delay]]\ntopics = ['orders']\ndelay = '30d'\n")
    made = json.loads(run(*asked, *chosen).stdout)
    (action,) = [each for each in made["actions"] if each["kind"] == "stage_duplicate"]
    assert action["due_ms"] - made["created_ms"] == 30 * DAY_MS
    desk.rules(HOLD)
    held = json.loads(run(*asked, *chosen).stdout)
    assert [each for each in held["actions"] if each["kind"] == "stage_duplicate"] == []
    assert "held: case 7" in held["left_alone"][0]["reason"]


def test_a_foreign_name_that_is_allowed_is_not_left_for_a_person(desk: Desk) -> None:
    (desk.cluster.log_dir(2) / "lost+found").mkdir()
    for names, left in (("other", 1), ("lost*", 0)):
        desk.rules(f"foreign = ['{names}']\n")
        assert desk.plan().exit_code == 1
        found = json.loads(desk.file.read_bytes())
        assert sum(each["verdict"] == "FOREIGN" for each in found["left_alone"]) == left
        assert found["counts"]["FOREIGN"] == 1


def test_settings_and_a_variable_name_the_policy_for_every_command(desk: Desk) -> None:
    home = desk.cluster.log_dirs[0]
    stage_replica(home, 0)
    desk.rules(HOLD)
    settings = desk.cluster.folder / "logstore.toml"
    settings.write_text(f"policy = '{desk.policy}'\n")
    for words, variables in ((["--settings", str(settings)], {}), ([], {"LOGSTORE_POLICY": str(desk.policy)})):
        kept = CliRunner().invoke(logstore, [*words, "purge", home], env=variables)
        assert (kept.exit_code, "1 due and kept by the policy" in kept.stdout) == (0, True), kept.output
    assert below(home) == {f"{ORDERS}_0"}


def test_a_mistake_in_the_policy_is_told_before_anything_is_done(desk: Desk, run: Run) -> None:
    stage_replica(desk.cluster.log_dirs[0], 0)
    desk.rules("[[hold]]\ntopics = ['orders']\nreson = 'case 7'\n")
    for verb in ("purge", "staged"):
        refused = run(verb, desk.cluster.log_dirs[0], "--policy", desk.policy)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"logstore: {desk.policy}:3: 'reson' is no key of hold"), refused.stderr
    assert below(desk.cluster.log_dirs[0]) == {f"{ORDERS}_0"}
    with_folder = run("plan", desk.cluster.log_dirs[0], "--policy", desk.cluster.folder)
    assert (with_folder.exit_code, len(with_folder.stderr.splitlines())) == (2, 1)


def test_without_a_policy_no_rule_is_there(tmp_path: Path) -> None:
    assert read_policy(None).rules == ()
    (tmp_path / "empty.toml").touch()
    assert read_policy(str(tmp_path / "empty.toml")).path == str(tmp_path / "empty.toml")


def test_foreign_names_that_the_policy_allows_leave_an_audit_clean(desk: Desk, run: Run) -> None:
    home = desk.cluster.log_dir(1)
    for name in ("lost+found", "backups"):
        (home / name).mkdir()
    asked = ("audit", home, "--metadata", desk.cluster.metadata, "--policy", desk.policy)

    def audit(names: str) -> tuple[int, dict[str, Any]]:
        desk.rules(f"foreign = [{names}]\n")
        result = run(*asked, "--json")
        return result.exit_code, json.loads(result.stdout)

    code, none = audit("'other'")
    assert (code, none["totals"]["FOREIGN"], none["allowed"]) == (1, 2, {})
    code, one = audit("'lost+found'")
    assert (code, one["allowed"], len(one["next"])) == (1, {"FOREIGN": 1}, 1)
    assert "backups" in one["next"][0]["command"]
    assert {each["name"]: each["next"] is None for each in one["findings"]} == {
        "lost+found": True,
        "backups": False,
    }
    code, both = audit("'lost+found', 'backup*'")
    assert (code, both["totals"]["FOREIGN"], both["allowed"]) == (0, 2, {"FOREIGN": 2})
    assert both["next"] == []
    table = run(*asked)
    assert table.exit_code == 0
    assert f"note: the policy {desk.policy} allows 2 of 2 FOREIGN findings: backups, lost+found" in table.stderr


def test_a_doctor_advises_no_purge_of_what_is_held(desk: Desk, run: Run) -> None:
    home = desk.cluster.log_dirs[1]
    given = (home, "--metadata", desk.cluster.metadata, "--max-share", "90%", "--delay", "0s", "-o", desk.file)
    assert (run("plan", *given).exit_code, run("apply", desk.file).exit_code) == (1, 0)
    desk.rules(HOLD)
    found = {}
    for name, more in (("free", ()), ("held", ("--policy", desk.policy))):
        looked = run("doctor", home, "--metadata", desk.cluster.metadata, "--json", *more)
        (found[name],) = json.loads(looked.stdout)["brokers"]
    assert [(each["staged"], each["due"]) for each in (found["free"], found["held"])] == [(0, 1), (1, 0)]
    due = "delete for ever the 1 staged whose time has come"
    assert [any(due in step["why"] for step in each["next"]) for each in found.values()] == [True, False]
    commands = [step["command"] for step in found["held"]["next"] if step["command"]]
    assert commands and all(f"--policy {desk.policy}" in each for each in commands if each.startswith("logstore"))


def test_doctor_plans_nothing_for_what_a_hold_keeps_and_says_so(desk: Desk, run: Run) -> None:
    desk.rules(HOLD)
    asked = ("doctor", desk.cluster.log_dirs[1], "--metadata", desk.cluster.metadata, "--json")
    (free,), (held,) = (json.loads(run(*asked, *more).stdout)["brokers"] for more in ((), ("--policy", desk.policy)))
    verbs = [[str(step["command"]).split()[1] for step in each["next"] if step["command"]] for each in (free, held)]
    assert "plan" in verbs[0] and "plan" not in verbs[1]
    (kept,) = (step for step in held["next"] if "policy keeps it" in step["why"])
    assert f"held: case 7 ({desk.policy}:1)" in kept["why"] and kept["later"]
    assert free["totals"] == held["totals"]
