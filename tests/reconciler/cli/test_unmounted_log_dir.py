"""A log dir whose disk is not mounted is an empty mount point: no verb leaves anything on the disk below."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from reconciler.protocol.json_messages import encode_json
from tests.reconciler.protocol.control_requests import stop_replica

Run = Callable[..., Result]

VERBS = {
    "apply": ("apply", "{folder}/plan.json", "--any-host"),
    "audit": ("audit", "{disk}", "--metadata", "{metadata}"),
    "convert": ("convert", "{disk}", "--to", "by-topic-id"),
    "doctor": ("doctor", "{disk}", "--metadata", "{metadata}"),
    "explain": ("explain", "{disk}/orders-1", "--metadata", "{metadata}"),
    "namespace": ("namespace", "create", "org", "{disk}"),
    "plan": ("plan", "{disk}", "--metadata", "{metadata}"),
    "policy": ("policy", "check", "{folder}/policy.toml", "{disk}", "--metadata", "{metadata}"),
    "preflight": ("preflight", "{disk}", "--metadata", "{metadata}"),
    "purge": ("purge", "{disk}"),
    "purge --dry-run": ("purge", "{disk}", "--dry-run"),
    "reconcile": ("reconcile", "{folder}/request.json", "{disk}", "--allow", "cluster"),
    "repair": ("repair", "{disk}", "--metadata", "{metadata}"),
    "repair --apply": ("repair", "--apply", "{folder}/repair.json", "--any-host"),
    "restore": ("restore", "{disk}", "--all"),
    "restore --dry-run": ("restore", "{disk}", "--all", "--dry-run"),
    "scan": ("scan", "{disk}"),
    "staged": ("staged", "{disk}"),
    "where": ("where", "orders", "{disk}", "--metadata", "{metadata}"),
}


@pytest.fixture
def disk(run: Run, cluster, tmp_path: Path) -> Path:
    """Of broker 2, with a plan and a repair for it; then its content is gone, as behind a mount that is missing."""
    disk: Path = cluster.log_dir(2)
    (disk / "orders-0" / "partition.metadata").unlink()
    for verb, file in (("plan", "plan.json"), ("repair", "repair.json")):
        allowed = ("--max-share", "100%") if verb == "plan" else ()
        run(verb, disk, "--metadata", cluster.metadata, "-o", tmp_path / file, *allowed)
    (tmp_path / "request.json").write_bytes(encode_json(stop_replica("orders", 0), 4))
    (tmp_path / "policy.toml").write_text("foreign = ['lost+found']\n")
    shutil.rmtree(disk)
    disk.mkdir()
    return disk


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("stranger", [None, "lost+found"])
def test_no_verb_leaves_anything_on_an_unmounted_mount_point(
    run: Run, cluster, disk: Path, tmp_path: Path, verb: str, stranger: str | None
) -> None:
    if stranger is not None:
        (disk / stranger).mkdir()
    places = {"disk": disk, "folder": tmp_path, "metadata": cluster.metadata}
    result = run(*(word.format(**places) for word in VERBS[verb]))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "there is no such file" not in result.stderr, "the plan for this verb was not made"
    assert os.listdir(disk) == ([] if stranger is None else [stranger])
    assert not os.path.lexists(f"{disk}.deleting")


def test_a_plan_for_an_unmounted_disk_is_refused_with_what_comes_next(
    run: Run, cluster, disk: Path, tmp_path: Path
) -> None:
    result = run("apply", tmp_path / "plan.json")
    assert result.exit_code == 3
    what, _, command = result.stderr.strip().partition(". See what is there now, and what comes first: logstore ")
    assert f"{disk} is not the log dir that it was made for" in what
    assert command == f"doctor {disk} --metadata {cluster.metadata}"
    assert "is not there or not the expected one" in " ".join(run(*command.split()).stdout.split())


def test_a_question_at_the_end_of_a_problem_gets_no_stop(run: Run, cluster) -> None:
    away = cluster.log_dir(1)
    shutil.rmtree(away)
    result = run("preflight", *cluster.log_dirs)
    assert "is its disk mounted? Next: " in result.stderr and "?." not in result.stderr
