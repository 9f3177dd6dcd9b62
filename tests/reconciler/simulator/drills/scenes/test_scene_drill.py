"""The drill of scenes: a sound store ends each of them well, and a mistake is noticed within a few seeds."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from logstore import LogDir
from logstore.log_dir import CheckpointFiles
from logstore.staging import bring_back, new_name
from logstore.store import LogStore, move, recovery
from logstore.store.create import _CreateBatch
from logstore.store.index import ReplicaIndex
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_scenes
from reconciler.simulator.runs.coverage import EXPECTED
from tests.reconciler.simulator.drills.counting import counted

SEEDS = 40


def test_a_sound_store_ends_each_scene_well_and_a_seed_always_plays_the_same() -> None:
    assert counted(drill_scenes, SEEDS, 0).keys() == {each for each in EXPECTED if each.startswith("drill_scene ")}
    assert counted(drill_scenes, 4, 0) == counted(drill_scenes, 4, 0)


def _purges_once(self: LogStore, cancel: threading.Event) -> int | None:
    """Purge, and wait until the last of all is due."""
    due = [each.record.due_ms for each in self.staged() if each.record is not None]
    self.purge(cancel=cancel)
    return max(due, default=None)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (
            lambda patch: patch.setattr(ReplicaIndex, "drop_copy", lambda self, at, *_: self.drop(at)),
            "what is live is",
        ),
        (lambda patch: patch.setattr(recovery, "_holds_live", lambda *_: False), "offsets of the successor"),
        (lambda patch: patch.setattr(LogStore, "_without_id", lambda self, at, _: self.get(at)), "is written over"),
        (
            lambda patch: patch.setattr(new_name, "_renamed_metadata", lambda *_: None),
            "its name|holds no name|renamed replica",
        ),
        (lambda patch: patch.setattr(new_name, "note_new_name", lambda *_: None), "renamed replica|is live as"),
        (lambda patch: patch.setattr(bring_back, "give_new_name", lambda *_, **__: None), "its name|renamed|holds no"),
        (lambda patch: patch.setattr(CheckpointFiles, "take_out", lambda *_: None), "its offsets|is live|entries of"),
        (lambda patch: patch.setattr(move, "_drop", lambda *_: None), "what is left of a copy"),
        (lambda patch: patch.setattr(move, "is_source_live", lambda *_: False), "how often a moved replica is live"),
        (lambda patch: patch.setattr(_CreateBatch, "undo", lambda _: None), "what lies where|what is live"),
        (lambda patch: patch.setattr(LogStore, "_purge_due", _purges_once), "the purger left"),
        (lambda patch: patch.setattr(LogDir, "go_offline", lambda *_: None), "what is offline"),
    ],
    ids=[
        *("copies", "successor", "unreadable", "no name", "no line", "former name", "kept offsets"),
        *("copy stays", "copy is live", "not undone", "purged once", "online"),
    ],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_scenes, SEEDS, 0)
