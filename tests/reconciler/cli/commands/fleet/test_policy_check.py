"""``logstore policy check``: what a policy file means for these disks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from reconciler.cli import logstore
from reconciler.cli.pages import CheckedPolicy, show_policy, write_policy
from reconciler.plan import PlanChoice
from reconciler.policy import PolicyRules
from tests.reconciler.cli.commands.test_plan_command import tree
from tests.reconciler.cli.commands.test_purge_command import FAR_AWAY_MS, stage_replica
from tests.reconciler.cli.conftest import Cluster

Run = Callable[..., Result]
DELAY = "[[delay]]\ntopics = ['orders']\ndelay = '30d'\n"
HOLD = "[[hold]]\ntopics = ['ord*']\nreason = 'case 7'\n"
DAY_MS = 86_400_000


@pytest.fixture
def check(cluster: Cluster, run: Run) -> Callable[..., Result]:
    """Checks a text as the policy of both brokers; of broker 1 one replica is staged and due, one waits."""
    for partition, delay_ms in ((0, 0), (1, FAR_AWAY_MS)):
        stage_replica(cluster.log_dirs[0], partition, delay_ms)

    def checked(text: str, *args: object) -> Result:
        (cluster.folder / "policy.toml").write_text(text, encoding="utf-8")
        asked = ("--metadata", cluster.metadata, *args)
        return run("policy", "check", cluster.folder / "policy.toml", *cluster.log_dirs, *asked)

    return checked


def read(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_without_a_hold_it_says_what_would_be_staged_and_how_long_it_waits(check: Callable[..., Result]) -> None:
    result = check(f"[gates]\nmax_share = '60%'\n{DELAY}", "--json")
    assert result.exit_code == 0, result.output
    found = read(result)
    (rule,) = found["rules"]
    numbers = (rule["live"], rule["staged"], rule["in_metadata"], rule["delay_ms"], rule["names_nothing"])
    assert numbers == (2, 2, 1, 30 * DAY_MS, False)
    (group,) = found["would_be_staged"]
    assert (group["replicas"], group["first_due_ms"]) == (1, found["checked_ms"] + 30 * DAY_MS)
    assert group["from"].endswith("policy.toml:3")
    assert [(each["replicas"], each["due"], each["reason"]) for each in found["staged"]] == [(2, 1, None)]
    numbers_of = {each["gate"]: (each["number"], each["from"].rpartition("/")[2]) for each in found["gates"]}
    assert numbers_of == {
        "max_age": ("24h", "the default of a plan"),
        "max_share": ("60%", "policy.toml:2"),
        "max_count": ("1000", "the default of a plan"),
        "max_shrink": ("30%", "the default of a plan"),
    }


def test_what_is_held_is_told_apart_from_what_is_due(check: Callable[..., Result], cluster: Cluster) -> None:
    before = tree(cluster.folder / "disks")
    result = check(f"{DELAY}{HOLD}until = 2999-01-01\n", "--json")
    found = read(result)
    assert (result.exit_code, tree(cluster.folder / "disks")) == (0, before), result.output
    (kept,) = found["would_be_staged"]
    assert (kept["replicas"], kept["reason"], kept["first_due_ms"]) == (1, "case 7", None)
    assert [(each["replicas"], each["due"], each["reason"]) for each in found["staged"]] == [(2, 1, "case 7")]


def test_the_page_fits_a_screen_and_names_the_line_of_each_rule(check: Callable[..., Result]) -> None:
    page = check(f"foreign = ['lost+found']\n{DELAY}{HOLD}")
    assert page.exit_code == 1
    lines = page.stdout.splitlines()
    assert lines[0].endswith("policy.toml: 3 rules") and len(lines) < 25
    words = "\n".join(" ".join(line.split()) for line in lines)
    for said in (
        "delay orders 2 replicas, 2 staged",
        "waits 30 d for its purge (policy.toml:2)",
        "held: case 7 (policy.toml:5)",
        "foreign lost+found nothing – allowed (policy.toml:1)",
        "max_share 30% the default of a plan",
        "Would be staged now: nothing; kept from it: 1 replica",
        "Lies staged: 2 replicas",
    ):
        assert said in words, words
    assert "policy.toml:1: this foreign names nothing here: lost+found" in page.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HOLD}until = 2001-01-01\n", "policy.toml:1: this hold ended at 2001-01-02 00:00:00 UTC: take it out, "),
        (HOLD.replace("ord*", "order"), "policy.toml:1: this hold names nothing here: order"),
        (f"{DELAY}{DELAY}", "policy.toml:4: this delay names nothing here: orders"),
    ],
)
def test_a_rule_that_does_nothing_is_a_finding(check: Callable[..., Result], text: str, said: str) -> None:
    result = check(text, "--json")
    assert (result.exit_code, said in result.stderr) == (1, True), result.stderr
    assert any(said in each for each in read(result)["findings"])


def test_gates_that_are_shut_are_told_and_are_no_mistake_of_the_policy(check: Callable[..., Result]) -> None:
    result = check(f"[gates]\nmax_share = '10%'\n{DELAY}")
    assert result.exit_code == 0, result.output
    assert "a plan for these disks is refused now: " in result.stderr and "where 10 % is the most" in result.stderr


def test_without_log_dirs_the_file_alone_is_checked(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(HOLD, encoding="utf-8")
    result = run("policy", "check", file, "--json")
    assert (result.exit_code, read(result)["staged"], read(result)["rules"][0]["live"]) == (0, None, None)
    assert "held: case 7 (policy.toml:1)" in run("policy", "check", file).stdout
    file.write_text("[[hold]]\ntopics = ['a']\n", encoding="utf-8")
    wrong = run("policy", "check", file)
    assert (wrong.exit_code, wrong.stdout, wrong.stderr) == (
        2,
        "",
        f"logstore: {file}:1: this [[hold]] has no reason\n",
    )
    assert run("policy", "check", tmp_path / "none.toml").exit_code == 2
    assert run("policy", "check", file, "--metadata", "none").exit_code == 2


def test_a_log_dir_that_cannot_be_trusted_is_left_out_and_told(check: Callable[..., Result], cluster: Cluster) -> None:
    (cluster.log_dir(2) / "meta.properties").write_text("torn")
    result = check(DELAY, "--json")
    assert (result.exit_code, f"{cluster.log_dir(2)} is left out: " in result.stderr) == (4, True)
    assert read(result)["rules"][0]["live"] == 0


def test_settings_name_the_metadata_for_the_check_too(cluster: Cluster) -> None:
    (cluster.folder / "policy.toml").write_text(DELAY)
    words = ["policy", "check", str(cluster.folder / "policy.toml"), *cluster.log_dirs, "--json"]
    asked = CliRunner().invoke(logstore, words, env={"LOGSTORE_METADATA": cluster.metadata})
    assert read(asked)["rules"][0]["in_metadata"] == 1
    wrong = CliRunner().invoke(logstore, words, env={"LOGSTORE_POLICY_CHECKED": "1"})
    assert (wrong.exit_code, "LOGSTORE_POLICY_CHECKED: 'logstore policy' has no option --checked" in wrong.stderr) == (
        2,
        True,
    )


def test_a_policy_without_rules_is_a_page_of_its_gates(tmp_path: Path) -> None:
    empty = CheckedPolicy(PolicyRules("p"), PlanChoice(), 0, (), (), (), (), with_disks=False)
    show_policy(empty, str(tmp_path / "page"))
    write_policy(empty, str(tmp_path / "json"))
    assert (tmp_path / "page").read_text().startswith("p: 0 rules\n\nGates of a plan")
    assert json.loads((tmp_path / "json").read_text())["rules"] == []
