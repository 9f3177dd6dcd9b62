"""The drill of purges: sound code takes what is due and nothing else, and a mistake is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layout.directory_name import DirectoryName
from logstore.fs import Directory
from logstore.log_dir import StagingBeside
from logstore.log_dir.ledger import LedgerFile
from logstore.purge import eligibility, remove, run, throttle
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_purging
from reconciler.simulator.drills.purging import Obstacle
from reconciler.simulator.drills.purging.one_shot import OneShot
from tests.reconciler.simulator.drills.counting import counted

SEEDS, STEPS = 80, 40


def test_sound_code_takes_what_is_due_and_a_seed_always_plays_the_same() -> None:
    first = counted(drill_purging, 30, STEPS)
    assert first == counted(drill_purging, 30, STEPS)
    assert {f"drill_purge {obstacle}" for obstacle in Obstacle} <= set(first)
    assert first["drill_purge_fault power"] and first["drill_purge_fault system"]


def volatile_note(patch: pytest.MonkeyPatch) -> None:
    sound = LedgerFile.note

    def note(self: LedgerFile, *what: object, durable: bool) -> None:
        sound(self, *what, durable=False)  # type: ignore[arg-type]

    patch.setattr(LedgerFile, "note", note)


def same_inode(patch: pytest.MonkeyPatch) -> None:
    sound = remove.Removal.remove

    def removed(self: remove.Removal, due: eligibility.DueDirectory) -> bool:
        with Directory.open(self.staging.root.path) as root, root.child(due.name) as directory:
            due.inode = directory.key[1]
        return sound(self, due)

    patch.setattr(remove.Removal, "remove", removed)


def whole_weight(patch: pytest.MonkeyPatch) -> None:
    for module in (eligibility, remove):
        patch.setattr(module, "weight_of", lambda status: status.st_blocks * 512)


def veto_passed_over(patch: pytest.MonkeyPatch) -> None:
    sound = eligibility.StagingRoot.judge

    def judge(self: eligibility.StagingRoot, name: DirectoryName, inode: int) -> object:
        veto, self.rules.veto = self.rules.veto, None
        judged, self.rules.veto = sound(self, name, inode), veto
        if veto is not None:
            veto(self._staged(name, inode))
        return judged

    patch.setattr(eligibility.StagingRoot, "judge", judge)


def clock_taken_at_its_word(patch: pytest.MonkeyPatch) -> None:
    def take(self: throttle._Bucket, amount: float, now_ms: int) -> float:
        self._level += self.rate * (now_ms - self._filled_ms) / 1000 - amount
        self._filled_ms = now_ms
        return max(0.0, -self._level / self.rate)

    patch.setattr(throttle._Bucket, "take", take)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (volatile_note, "is said to be whole"),
        (lambda patch: patch.setattr(run._LogDirPurger, "_unconfirmed", lambda *_: None), "a crash brings it back"),
        (lambda patch: patch.setattr(run, "_is_begun", lambda due: due.removed), "is said to be whole"),
        (lambda patch: patch.setattr(run, "_is_begun", lambda due: True), "is said to be half purged"),
        (same_inode, "is another directory by now"),
        (whole_weight, "bytes are freed, not"),
        (veto_passed_over, "no purge may take it"),
        (clock_taken_at_its_word, "a second waits for"),
        (lambda patch: patch.setattr(StagingBeside, "is_locked", property(lambda _: True)), "no purge may take it"),
    ],
    ids=[
        *("purging not synced", "removal not synced", "touched said to be whole", "whole not said"),
        *("another directory removed", "other names counted", "wanted again purged", "clock put back", "not locked"),
    ],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_purging, SEEDS, STEPS)


def test_an_event_comes_once_after_so_many_changes_and_not_at_all_when_it_is_forgotten() -> None:
    came = list[str]()
    one_shot = OneShot(lambda: came.append("change"))
    one_shot.announce(1, lambda: came.append("event"))
    for _ in range(3):
        one_shot.passes()
    assert came == ["change", "event", "change", "change"]
    one_shot.announce(0, lambda: came.append("event"))
    one_shot.forget()
    one_shot.passes()
    assert came[4:] == ["change"]
