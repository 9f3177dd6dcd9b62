"""Plans and outcomes as people and programs see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layout.ours import LeftAlone, RepairAction, RepairKind, RepairPlan
from logstore.repair import RepairOutcome, RepairStatus, UndoOutcome
from logstore.repair.apply import Repaired
from logstore.repair.undo import Undone
from reconciler.cli.frame import Format
from reconciler.cli.pages import show_repair_plan, write_repair_outcome, write_undone
from reconciler.cli.pages.plan_pages import SCHEMA_VERSION

ACTION = RepairAction(RepairKind.REMOVE_LEFTOVER, "/d", "meta.properties.tmp", "why it goes", "0" * 64, "missing")


def test_a_plan_has_a_line_for_each_action_and_for_what_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    show_repair_plan(
        RepairPlan(1, (), (), (ACTION,), (LeftAlone("/d", ".", "not trusted"), LeftAlone("/d", "t-0", "odd")))
    )
    shown = capsys.readouterr().out
    assert "1 action\n" in shown
    assert "remove_leftover  /d/meta.properties.tmp  why it goes" in shown
    assert "/d      not trusted" in shown and "/d/t-0  odd" in shown


def test_an_empty_plan_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show_repair_plan(RepairPlan(1, (), (), ()))
    assert capsys.readouterr().out == "There is nothing that can be repaired.\n"


def test_an_outcome_is_a_table_or_json(tmp_path: Path) -> None:
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


def test_nothing_to_do_is_said(tmp_path: Path) -> None:
    write_repair_outcome(RepairOutcome(), Format.TABLE, str(tmp_path / "t"))
    assert (tmp_path / "t").read_text() == "There was nothing to do.\n"
