"""``logstore runbook``: the list, a page, and what is near a name that does not exist."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import Result

from reconciler.cli.guide import RUNBOOKS, read_page

Run = Callable[..., Result]


def test_without_a_name_every_runbook_is_listed_with_its_line(run: Run) -> None:
    shown = run("runbook")
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.output.splitlines() if line.startswith("  ")] == list(RUNBOOKS)
    assert all(read_page(name).title in shown.output for name in RUNBOOKS)


def test_its_steps_are_numbered_and_its_commands_stand_whole(run: Run) -> None:
    shown = run("runbook", "disk-full")
    assert shown.exit_code == 0
    assert "\n1. Stop the broker" in shown.output
    assert "\n     logstore plan /disks/*/kafka --metadata SRC -o plan.json\n" in shown.output
    assert run("help", "disk-full").output == shown.output


@pytest.mark.parametrize(
    ("typed", "near"),
    [("full-disk", "disk-full"), ("strays", "strays-after-reassignment"), ("kraft", "zookeeper-to-kraft")],
)
def test_a_name_that_does_not_exist_names_the_nearest(run: Run, typed: str, near: str) -> None:
    shown = run("runbook", typed)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert f"did you mean {near}" in shown.stderr
