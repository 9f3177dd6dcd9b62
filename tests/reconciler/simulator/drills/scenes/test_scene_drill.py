"""The drill of scenes: a sound store ends each of them well, and a mistake is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore.staging import bring_back, new_name
from logstore.store import LogStore, recovery
from logstore.store.index import ReplicaIndex
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_scenes
from tests.reconciler.simulator.drills.counting import counted

SEEDS = 40


def test_a_sound_store_ends_each_scene_well_and_a_seed_always_plays_the_same() -> None:
    scenes = ("copies", "successor", "unreadable", "renamed")
    assert counted(drill_scenes, SEEDS, 0).keys() == {f"drill_scene {each}" for each in scenes}
    assert counted(drill_scenes, 4, 0) == counted(drill_scenes, 4, 0)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (
            lambda patch: patch.setattr(ReplicaIndex, "drop_copy", lambda self, at, *_: self.drop(at)),
            "what is live is",
        ),
        (lambda patch: patch.setattr(recovery, "_holds_live", lambda *_: False), "offsets of the successor"),
        (lambda patch: patch.setattr(LogStore, "_without_id", lambda self, at, _: self.get(at)), "is written over"),
        (lambda patch: patch.setattr(new_name, "_renamed_metadata", lambda *_: None), "its name|holds no name"),
        (lambda patch: patch.setattr(new_name, "note_new_name", lambda *_: None), "renamed replica|is live as"),
        (lambda patch: patch.setattr(bring_back, "give_new_name", lambda *_, **__: None), "its name|renamed|holds no"),
    ],
    ids=["copies", "successor", "unreadable", "no name", "no line", "former name"],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_scenes, SEEDS, 0)
