"""How plans and outcomes are written: tables for people, JSON that any name survives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logstore.repair import RepairStatus
from reconciler.cli.frame import Format
from reconciler.cli.pages import show_plan, write_outcome
from reconciler.plan import Action, ActionKind, AppliedAction, ApplyOutcome, Plan
from reconciler.plan.plan import LeftAlone, PlannedLogDir

LOG_DIR = PlannedLogDir("/d", "c", 1, None, "/d.deleting")
STAGE = Action(ActionKind.STAGE, "/d", "a\udcff-0", "a", 0, None, None, "STRAY", "why", 1, 2000, 0, 0, "undo it")
LEFT = (LeftAlone("/d", "x", "FOREIGN", "a reason", "ls"), LeftAlone("", "t-0", "MISSING", "nowhere", "look"))


def plan(*actions: Action, left: tuple[LeftAlone, ...] = ()) -> Plan:
    return Plan(0, "h", "u", 0, {}, (LOG_DIR,), ({"source": "kraft", "location": "/m"},), actions, left, {"OK": 1200})


def test_a_plan_shows_where_it_stages_what_it_leaves_and_its_sums(capsys: pytest.CaptureFixture[str]) -> None:
    show_plan(plan(STAGE, left=LEFT))
    text = capsys.readouterr().out
    for words in (
        *("metadata: kraft /m", "/d: 1 action, 2.0 kB; staged in /d.deleting", "undo it", "Left alone", "/d/x"),
        *("a reason", "t-0", "Verdicts: OK 1,200", "stage: 1 action, 2.0 kB", "from 1970-01-01 00:00:00 UTC on"),
    ):
        assert words in text
    assert "\\xff" in text


def test_a_plan_without_actions_shows_the_verdicts_alone(capsys: pytest.CaptureFixture[str]) -> None:
    show_plan(plan())
    assert capsys.readouterr().out.splitlines() == ["metadata: kraft /m", "", "Verdicts: OK 1,200"]


@pytest.mark.parametrize("form", [Format.JSON, Format.NDJSON])
def test_an_outcome_as_json_keeps_names_that_are_not_utf8(form: Format, tmp_path: Path) -> None:
    outcome = ApplyOutcome([AppliedAction(STAGE, RepairStatus.DONE, "staged")], ["/d/j"], ["a note"])
    write_outcome(outcome, form, str(tmp_path / "out"))
    document = json.loads((tmp_path / "out").read_bytes())
    row = document["results"][0] if form is Format.JSON else document
    assert (row["name"], row["status"], row["detail"]) == (STAGE.name, "done", "staged")


def test_an_outcome_without_actions_says_so(tmp_path: Path) -> None:
    write_outcome(ApplyOutcome(), Format.TABLE, str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "There was nothing to do.\n"
