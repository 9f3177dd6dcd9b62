"""The drill of an engine: a sound one keeps what it is given, and a mistake in it is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore.log_dir.checkpoints import CheckpointFiles
from logstore.log_dir.ledger import LedgerFile
from logstore.store import LogStore, recovery
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_engine
from reconciler.simulator.drills.looking import path_of
from tests.reconciler.simulator.drills.counting import counted

SEEDS = 30


def test_a_sound_engine_keeps_what_it_is_given_and_a_seed_always_plays_the_same() -> None:
    first = counted(drill_engine, 2, 40)
    assert first == counted(drill_engine, 2, 40)
    assert first["drill stage"] and first["drill create"] and first["drill_fault power"]


def test_a_drill_of_no_steps_does_nothing() -> None:
    assert not counted(drill_engine, 1, 0)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(LedgerFile, "sync", lambda self: None), "no record|should not lie there"),
        (lambda patch: patch.setattr(CheckpointFiles, "give_back", lambda self, *_: None), "checkpoint entries"),
        (lambda patch: patch.setattr(recovery, "_drop_drafts", lambda log_dir: iter(())), "-delete should not lie"),
        (lambda patch: patch.setattr(LogStore, "duplicates", property(lambda self: ["one"])), "the store knows"),
    ],
    ids=["ledger not synced", "offsets not given back", "drafts left", "duplicates"],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_engine, SEEDS, 40)


def test_a_live_replica_lies_by_its_scheme() -> None:
    at, topic_id = TopicPartition("org:orders", 3), TopicId(bytes(range(16)))
    assert path_of(Scheme.NAMESPACED, at, topic_id) == "org/orders-3"
    assert path_of(Scheme.BY_TOPIC_ID, at, topic_id) == "00/000102030405060708090a0b0c0d0e0f_3"
