"""The drill of KRaft metadata: a sound reader reads what was written, and a mistake is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.metadata import drill_metadata
from reconciler.simulator.drills.metadata.drawn_log import draw_log
from reconciler.sources.kraft import replay, source
from reconciler.sources.kraft.commitment import CommitTracker
from reconciler.sources.kraft.image import BrokerRegistration, MetadataImage
from tests.reconciler.simulator.drills.counting import counted

SEEDS = 75


def test_a_sound_reader_reads_what_was_written_and_every_damage_is_come_to() -> None:
    damages = ("none", "cut", "flipped", "middle", "log of an older epoch")
    assert counted(drill_metadata, SEEDS, 40).keys() == {f"drill_metadata {each}" for each in damages}


def test_a_seed_always_plays_the_same() -> None:
    assert counted(drill_metadata, 2, 40) == counted(drill_metadata, 2, 40)
    assert draw_log(Random(3), 8) == draw_log(Random(3), 8)


def test_the_batches_of_a_drawn_log_follow_one_another() -> None:
    log = draw_log(Random(5), 12)
    assert [each.end for each in log[:-1]] == [each.start for each in log[1:]]
    assert [each.epoch for each in log] == sorted(each.epoch for each in log)
    assert [each.time_ms for each in log] == sorted(each.time_ms for each in log)


def _another_broker(image: MetadataImage, *_: int) -> BrokerRegistration:
    return replace(image.brokers[1])


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(MetadataImage, "_broker", _another_broker), "the brokers is"),
        (lambda patch: patch.setattr(CommitTracker, "see_batch", lambda *_: None), "taken back is"),
        (lambda patch: patch.setattr(replay.Replay, "see_time", lambda *_: None), "the time is None"),
        (lambda patch: patch.setattr(replay, "find_batch", lambda *_: None), "is read, though sound batches"),
        (lambda patch: patch.setattr(source, "_directory_text", lambda _: None), "the replicas is"),
    ],
    ids=["fences", "commitment", "time", "damage in the middle", "directories"],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_metadata, SEEDS, 40)
