"""The drill of a troubled broker: a sound one ends each scene well, and a mistake is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.broker import broker as handling
from reconciler.broker import carry_out, leader_and_isr, restorable, snapshot
from reconciler.broker.decision import Decision, Outcome, remember
from reconciler.broker.judgement import OfflineReplica
from reconciler.broker.memory import BrokerMemory
from reconciler.broker.stop_replica import decide_stop_replica
from reconciler.protocol import LeaderAndIsrRequest
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_troubled
from reconciler.simulator.runs.coverage import EXPECTED
from tests.reconciler.simulator.drills.counting import counted

SEEDS = 40

_decides, _then = leader_and_isr._LeaderAndIsrDecision, leader_and_isr._Then
_answer, _look_for_staged = _decides._answer, _decides._look_for_staged
_left_out, _look_at = carry_out._left_out, restorable._look_at


def test_a_sound_broker_ends_each_scene_well_and_a_seed_always_plays_the_same() -> None:
    found = counted(drill_troubled, 2 * SEEDS, 0)
    assert found.keys() == {each for each in EXPECTED if each.startswith("drill_troubled ")}
    assert counted(drill_troubled, 3, 0) == counted(drill_troubled, 3, 0)


def _by_name_only(store: Any, entries: Any, topic: Any, partition: int) -> KafkaError:
    return store.fence(TopicPartition(topic.topic, partition), topic.topic_id)


def _never_forgotten(*asked: Any) -> Decision:
    decision = decide_stop_replica(*asked)
    decision.forgotten.clear()
    return decision


def _none_where_unlisted(self: Any, key: Any) -> Any:
    return _look_for_staged(self, key) if key in self.present.restorable else (None, None)


def _none_where_unread(log_dir: Any, staged: Any, *more: Any) -> Any:
    return None if staged.unread else _look_at(log_dir, staged, *more)


def _kept_back_forgotten(memory: BrokerMemory, *done: Any) -> list[int]:
    answers = remember(memory, *done)
    memory.kept_back.clear()
    return answers


def _every_epoch_remembered(memory: BrokerMemory, decision: Decision, outcome: Outcome) -> list[int]:
    answers = remember(memory, decision, outcome)
    if isinstance(decision.request, LeaderAndIsrRequest):
        for topic in decision.request.topics:
            memory.epochs[topic.topic] = {each.partition: each.leader_epoch for each in topic.partitions}
    return answers


def _good_on_a_failed_disk(self: Any, topic: Any, state: Any, judged: Any, *more: Any, **rest: Any) -> Any:
    if isinstance(judged, OfflineReplica):
        return KafkaError.NONE, _then.REMEMBER
    return _answer(self, topic, state, judged, *more, **rest)


def _though_a_disk_failed(decided: Any, outcome: Outcome, *, some_offline: bool) -> Any:
    return _left_out(decided, outcome, some_offline=False)


def _beside_what_stays(decided: Any, outcome: Outcome, *, some_offline: bool) -> Any:
    return _left_out(decided, Outcome(), some_offline=some_offline)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(snapshot, "_fence", _by_name_only), "to stop replicas by another name"),
        (lambda patch: patch.setattr(handling, "decide_stop_replica", _never_forgotten), "remembered of what is stop"),
        (lambda patch: patch.setattr(_decides, "_look_for_staged", _none_where_unlisted), "cannot be listed"),
        (lambda patch: patch.setattr(restorable, "_look_at", _none_where_unread), "cannot be read"),
        (lambda patch: patch.setattr(handling, "remember", _kept_back_forgotten), "disk that is away|want again"),
        (lambda patch: patch.setattr(handling, "remember", _every_epoch_remembered), "what is remembered"),
        (lambda patch: patch.setattr(_decides, "_answer", _good_on_a_failed_disk), "once more|want again"),
        (lambda patch: patch.setattr(carry_out, "_left_out", _though_a_disk_failed), "a disk failed just now"),
        (lambda patch: patch.setattr(carry_out, "_left_out", _beside_what_stays), "UNKNOWN_SERVER_ERROR"),
        (
            lambda patch: patch.setattr(_decides, "_stage_stale_copies", lambda _: []),
            "re-created while a disk was away",
        ),
    ],
    ids=[
        *("by name only", "never forgotten", "unlisted", "unread", "kept back", "epochs", "failed disk", "made anew"),
        *("made beside", "copies"),
    ],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_troubled, SEEDS, 0)
