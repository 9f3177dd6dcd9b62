"""Plans and what was done by them: tables for people, and JSON that any name survives."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from logstore.repair import RepairStatus, UndoOutcome
from logstore.repair.undo import Undone
from reconciler.cli.frame import Format
from reconciler.cli.pages import show_plan, write_outcome, write_undone
from reconciler.cli.pages.plan_pages import SCHEMA_VERSION
from reconciler.plan import Action, ActionKind, AppliedAction, ApplyOutcome, LeftAlone, Plan, PlannedLogDir

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


def test_metadata_that_is_not_whole_is_not_called_full(capsys: pytest.CaptureFixture[str]) -> None:
    source = {"source": "kraft", "location": "/m", "completeness": "FULL"}
    show_plan(replace(plan(), metadata=(source,)))
    assert "metadata: kraft /m, completeness FULL, " in capsys.readouterr().out
    show_plan(replace(plan(), metadata=({**source, "ends_early": "it is cut"},)))
    assert "metadata: kraft /m, ends_early it is cut, " in capsys.readouterr().out


def test_a_plan_without_actions_shows_the_verdicts_alone(capsys: pytest.CaptureFixture[str]) -> None:
    show_plan(plan())
    assert capsys.readouterr().out.splitlines() == [
        *("metadata: kraft /m, as of a time that it does not say", "", "Verdicts: OK 1,200"),
    ]


@pytest.mark.parametrize("form", [Format.JSON, Format.NDJSON])
def test_an_outcome_as_json_keeps_names_that_are_not_utf8(form: Format, tmp_path: Path) -> None:
    outcome = ApplyOutcome([AppliedAction(STAGE, RepairStatus.DONE, "staged")], ["/d/j"], notes=["a note"])
    write_outcome(outcome, form, str(tmp_path / "out"))
    document = json.loads((tmp_path / "out").read_bytes())
    row = document["results"][0] if form is Format.JSON else document
    assert (row["name"], row["status"], row["detail"]) == (STAGE.name, "done", "staged")


def test_an_outcome_without_actions_says_so(tmp_path: Path) -> None:
    write_outcome(ApplyOutcome(), Format.TABLE, str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "There was nothing to do.\n"


NOTHING = "There is nothing that can be repaired."
REPAIR = Action(
    *(ActionKind.REMOVE_LEFTOVER, "/d", "meta.properties.tmp", "", -1, None, None, "LEFTOVER", "why it goes"),
    expects="0" * 64,
    writes="missing",
)


def test_a_plan_of_repairs_has_a_line_for_each_action_and_for_what_is_left_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    left = (LeftAlone("/d", ".", "ABSENT", "not trusted"), LeftAlone("/d", "t-0", "DAMAGED", "odd"))
    show_plan(plan(REPAIR, left=left), nothing=NOTHING)
    shown = capsys.readouterr().out
    assert "/d: 1 action\n" in shown and "staged in" not in shown
    assert "remove_leftover  LEFTOVER  meta.properties.tmp  why it goes" in shown
    assert "/d      not trusted" in shown and "/d/t-0  odd" in shown
    assert not [title for title in ("REPLICA", "SIZE", "UNDO", "NEXT") if title in shown], "columns of nothing"


def test_a_plan_of_repairs_without_any_says_so_and_shows_what_is_left_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_plan(plan(), nothing=NOTHING)
    assert capsys.readouterr().out == f"{NOTHING}\n"
    show_plan(plan(left=LEFT), nothing=NOTHING)
    assert "a reason" in capsys.readouterr().out


def test_the_outcome_of_a_repair_is_a_table_or_json(tmp_path: Path) -> None:
    outcome = ApplyOutcome([AppliedAction(REPAIR, RepairStatus.SKIPPED, "it has changed")], [], ["/d/b"])
    write_outcome(outcome, Format.TABLE, str(tmp_path / "t"))
    assert "skipped  remove_leftover  /d/meta.properties.tmp  it has changed" in (tmp_path / "t").read_text()
    write_outcome(outcome, Format.JSON, str(tmp_path / "j"))
    document = json.loads((tmp_path / "j").read_text())
    (row,) = document.pop("results")
    assert document == {
        "schema_version": SCHEMA_VERSION,
        "journals": [],
        "backups": ["/d/b"],
        "notes": [],
        "undo": [],
        "next": [],
    }
    assert {key: row[key] for key in ("status", "kind", "log_dir", "name", "detail", "why")} == {
        "status": "skipped",
        "kind": "remove_leftover",
        "log_dir": "/d",
        "name": "meta.properties.tmp",
        "detail": "it has changed",
        "why": "why it goes",
    }


def test_an_undo_shows_paths_that_are_not_utf8(tmp_path: Path) -> None:
    undone = [UndoOutcome("/d\udcff", [Undone("t-0/partition.metadata", RepairStatus.DONE)], True)]
    write_undone(undone, Format.JSON, str(tmp_path / "j"))
    assert json.loads((tmp_path / "j").read_text())["results"][0]["log_dir"] == "/d\udcff"
    write_undone(undone, Format.TABLE, str(tmp_path / "t"))
    assert "/d\\xff/t-0/partition.metadata" in (tmp_path / "t").read_text()
