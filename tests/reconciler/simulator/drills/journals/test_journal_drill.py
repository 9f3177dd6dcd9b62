"""The drill of journals: sound code ends each change wholly, and a mistake is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layout.ours import Intent, IntentStep, inverse_steps
from logstore.journal import journal
from logstore.namespaces import rename
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_journals
from reconciler.simulator.runs.coverage import EXPECTED
from tests.reconciler.simulator.drills.counting import counted

SEEDS, STEPS = 150, 40


def test_sound_code_ends_each_change_wholly_and_a_seed_always_plays_the_same() -> None:
    found = counted(drill_journals, SEEDS, STEPS)
    assert found.keys() <= {each for each in EXPECTED if each.startswith("drill_journal")}
    assert counted(drill_journals, 5, STEPS) == counted(drill_journals, 5, STEPS)


def undone_on_the_first_disk(self: journal._Change, cause: Exception) -> bool:
    self.forward([inverse_steps(self.intent.of(0)), *((),) * (len(self.members) - 1)], resuming=True)
    self.drop_files(given_up=True)
    return True


def announced_backwards(self: journal._Change) -> None:
    for number, log_dir in reversed(list(enumerate(self.members))):
        assert log_dir is not None
        with log_dir.changing("announced"):
            self._announce_in(log_dir, self.intent if number == 0 else self.intent.only([number]))


def emptied_though_given_up(self: journal._Change, *, given_up: bool) -> None:
    word = self.intent.only(())
    self._each_by_itself(self.members[1:], lambda log_dir: journal._write(log_dir, word))


def begun_by_all(number: int, key: str, intent: Intent, copies: dict[str, Intent]) -> tuple[IntentStep, ...]:
    return intent.of(number) if key in copies else ()


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(journal._Change, "undo", undone_on_the_first_disk), "the disks hold"),
        (lambda patch: patch.setattr(journal._Change, "announce", announced_backwards), "the disks hold"),
        (lambda patch: patch.setattr(journal._Change, "_leave_word", emptied_though_given_up), "the disks hold"),
        (lambda patch: patch.setattr(journal._Change, "all_offline", lambda *_: None), "was interrupted"),
        (lambda patch: patch.setattr(journal, "_part", begun_by_all), "the disks hold"),
        (lambda patch: patch.setattr(rename, "check_not_on_its_way", lambda *_: None), "should be refused"),
    ],
    ids=["undo", "order of files", "word", "interrupt", "part", "on its way"],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_journals, SEEDS, STEPS)
