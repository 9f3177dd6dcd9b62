"""The drill of a controller: a sound one ends each scene well, and a mistake is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore import KafkaError
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.controller import brokers, deletion, state_machines, topics
from reconciler.simulator.controller.brokers import BrokerChanges
from reconciler.simulator.controller.deletion import GONE, Deletions, DroppedReplicas
from reconciler.simulator.controller.reassignment import Reassignments
from reconciler.simulator.controller.requests import Channels, RequestBatch
from reconciler.simulator.controller.state_machines import ElectedLeader
from reconciler.simulator.controller.store import ClusterNodes
from reconciler.simulator.drills import drill_controller
from reconciler.simulator.runs.coverage import EXPECTED
from reconciler.simulator.zookeeper import Check, topic_path
from tests.reconciler.simulator.drills.counting import counted

SEEDS = 40


def test_a_sound_controller_ends_each_scene_well_and_a_seed_always_plays_the_same() -> None:
    expected = {each for each in EXPECTED if each.startswith("drill_controller ")}
    assert counted(drill_controller, SEEDS, 0).keys() == expected
    assert counted(drill_controller, 4, 0) == counted(drill_controller, 4, 0)


_finish_topic = Deletions._finish_topic


def _unmarks_first(self: Deletions, topic: str, partitions: list) -> None:
    self._core.nodes.unmark(topic)
    _finish_topic(self, topic, partitions)


def _same_name(self: ClusterNodes, topic: str) -> Check:
    return Check(topic_path(topic), self._session.get(topic_path(topic)).version)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(topics, "GONE", GONE | {KafkaError.KAFKA_STORAGE_ERROR}), "holds"),
        (
            lambda patch: patch.setattr(deletion, "GONE", GONE | {KafkaError.KAFKA_STORAGE_ERROR}),
            "topic and mark are there while|holds",
        ),
        (lambda patch: patch.setattr(Deletions, "_finish_topic", _unmarks_first), "there at the end"),
        (lambda patch: patch.setattr(ClusterNodes, "_same_topic", _same_name), "node of a re-created topic"),
        (lambda patch: patch.setattr(DroppedReplicas, "_retry_later", lambda *_: None), "holds"),
        (
            lambda patch: patch.setattr(Reassignments, "_is_complete", lambda *_: True),
            "on its way|sync|answer|loses it",
        ),
        (lambda patch: patch.setattr(Reassignments, "_loses_all_in_sync", lambda *_: False), "drop every replica"),
        (lambda patch: patch.setattr(RequestBatch, "_every", lambda *_: []), "a FULL request that does not name it"),
        (lambda patch: patch.setattr(Channels, "_again", lambda *_: None), "holds|came back|requests to broker"),
        (lambda patch: patch.setattr(BrokerChanges, "log_dirs_failed", lambda _: None), "beside a failed disk"),
        (lambda patch: patch.setattr(brokers, "_may_join", lambda *_: True), "with a replica on a failed disk|isr"),
        (lambda patch: patch.setattr(ClusterNodes, "restarted", lambda *_: set()), "in sync after a restart"),
        (
            lambda patch: patch.setattr(
                state_machines, "preferred_election", lambda replicas, isr, _: ElectedLeader(replicas[0], tuple(isr))
            ),
            "preferred leader out of sync",
        ),
        (
            lambda patch: patch.setattr(
                state_machines,
                "shutdown_election",
                lambda replicas, isr, live, _: state_machines.offline_election(replicas, isr, live),
            ),
            "after it|stopping broker",
        ),
    ],
    ids=[
        *("collected", "deleted", "mark first", "name alone", "not again", "too early", "all in sync", "not every"),
        *("lost", "not asked", "joins", "not seen", "preferred", "stopping"),
    ],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_controller, SEEDS, 0)
