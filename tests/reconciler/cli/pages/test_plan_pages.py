"""Plans, repair plans and their outcomes: tables for people, and JSON that any name survives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layout.ours import LeftAlone as LeftAsItIs
from layout.ours import RepairAction, RepairKind, RepairPlan
from logstore.repair import RepairOutcome, RepairStatus, UndoOutcome
from logstore.repair.apply import Repaired
from logstore.repair.undo import Undone
from reconciler.cli.frame import Format
from reconciler.cli.pages import show_plan, show_repair_plan, write_outcome, write_repair_outcome, write_undone
from reconciler.cli.pages.plan_pages import SCHEMA_VERSION
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
    assert capsys.readouterr().out.splitlines() == [
        *("metadata: kraft /m, as of a time that it does not say", "", "Verdicts: OK 1,200"),
    ]


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


ACTION = RepairAction(RepairKind.REMOVE_LEFTOVER, "/d", "meta.properties.tmp", "why it goes", "0" * 64, "missing")


def test_a_repair_plan_has_a_line_for_each_action_and_for_what_is_left_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_repair_plan(
        RepairPlan(1, (), (), (ACTION,), (LeftAsItIs("/d", ".", "not trusted"), LeftAsItIs("/d", "t-0", "odd")))
    )
    shown = capsys.readouterr().out
    assert "1 action\n" in shown
    assert "remove_leftover  /d/meta.properties.tmp  why it goes" in shown
    assert "/d      not trusted" in shown and "/d/t-0  odd" in shown


def test_an_empty_repair_plan_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show_repair_plan(RepairPlan(1, (), (), ()))
    assert capsys.readouterr().out == "There is nothing that can be repaired.\n"


def test_the_outcome_of_a_repair_is_a_table_or_json(tmp_path: Path) -> None:
    outcome = RepairOutcome([Repaired(ACTION, RepairStatus.SKIPPED, "it has changed")], ["/d/b"])
    write_repair_outcome(outcome, Format.TABLE, str(tmp_path / "t"))
    assert "skipped  remove_leftover  /d/meta.properties.tmp  it has changed" in (tmp_path / "t").read_text()
    write_repair_outcome(outcome, Format.JSON, str(tmp_path / "j"))
    assert json.loads((tmp_path / "j").read_text()) == {
        "schema_version": SCHEMA_VERSION,
        "results": [
            {
                "status": "skipped",
                "kind": "remove_leftover",
                "log_dir": "/d",
                "path": "meta.properties.tmp",
                "detail": "it has changed",
            }
        ],
        "backups": ["/d/b"],
    }


def test_an_undo_shows_paths_that_are_not_utf8(tmp_path: Path) -> None:
    undone = [UndoOutcome("/d\udcff", [Undone("t-0/partition.metadata", RepairStatus.DONE)], True)]
    write_undone(undone, Format.JSON, str(tmp_path / "j"))
    assert json.loads((tmp_path / "j").read_text())["results"][0]["log_dir"] == "/d\\xff"
    write_undone(undone, Format.TABLE, str(tmp_path / "t"))
    assert "/d\\xff/t-0/partition.metadata" in (tmp_path / "t").read_text()


def test_a_repair_without_actions_says_so(tmp_path: Path) -> None:
    write_repair_outcome(RepairOutcome(), Format.TABLE, str(tmp_path / "t"))
    assert (tmp_path / "t").read_text() == "There was nothing to do.\n"
