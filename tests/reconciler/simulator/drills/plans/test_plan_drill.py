"""The drill of plans: what a sound code does is by the rules, and a mistake in it is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from unittest.mock import ANY

import pytest

from logstore.store import LogStore
from reconciler.plan import ApplyOptions, Plan, revalidate
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_plans
from tests.reconciler.simulator.drills.counting import counted

applying, SEEDS = import_module("reconciler.plan.apply"), 60

_check, _restore = applying._check, LogStore.restore


def test_a_sound_plan_is_applied_by_the_rules_and_every_change_is_come_to() -> None:
    reached = counted(drill_plans, SEEDS, 40)
    changes = ("none", "rewritten", "grown", "replaced", "gone")
    expected = {f"drill_plan {kind}_{change}" for kind in ("stage", "restore") for change in changes}
    expected |= {f"drill_plan copy_{which}_{what}" for which in ("better", "worse") for what in ("gone", "other_id")}
    expected |= {f"drill_plan refused_{why}" for why in ("machine", "age", "log_dir")}
    assert reached.keys() >= expected | {f"drill_plan {each}" for each in ("stage_held", "stage_other_id", "copy_none")}


def test_a_seed_always_plays_the_same() -> None:
    assert counted(drill_plans, 4, 40) == counted(drill_plans, 4, 70)


def _of_any_machine(plan: Plan, how: ApplyOptions) -> None:
    _check(plan, replace(how, any_host=True))


def _of_any_log_dir(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(applying, "strangers", lambda *_, **__: ())


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(revalidate, "_is_there", lambda *_: True), "replaced"),
        (lambda patch: patch.setattr(revalidate, "_data_changed", lambda _: None), r"\((rewritten|grown)\) is done"),
        (lambda patch: patch.setattr(revalidate, "_text", lambda _: ANY), r"\(other_id\) is done"),
        (lambda patch: patch.setattr(revalidate, "check_better_copy", lambda *_: None), r"\(better_\w+\) is done"),
        (lambda patch: patch.setattr(revalidate, "why_forbidden", lambda *_: None), r"\(held\) is done"),
        (lambda patch: patch.setattr(applying, "_check", _of_any_machine), "because of the machine"),
        (lambda patch: patch.setattr(applying, "too_old", lambda *_: ()), "because of the age"),
        (_of_any_log_dir, "because of the log_dir"),
        (
            lambda patch: patch.setattr(LogStore, "restore", lambda store, staged, *_: _restore(store, staged)),
            "lies in",
        ),
    ],
    ids=[
        "another directory",
        "changed data",
        "another ID",
        "better copy",
        "holds",
        "machine",
        "age",
        "log dir",
        "former name",
    ],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_plans, SEEDS, 40)
