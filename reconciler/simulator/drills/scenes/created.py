"""A scene of replicas that are created in one call, some of which cannot be, with a fault in the middle of it."""

from __future__ import annotations

import os
from contextlib import suppress
from random import Random
from typing import Final

from layout import partition_metadata
from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import NameTakenError, Replica
from reconciler.simulator.drills.bench import Bench, FaultKind, PowerCut
from reconciler.simulator.drills.scenes.scene import expect, restarted

_FAULTS: Final = (None, FaultKind.POWER, FaultKind.SYSTEM, FaultKind.SYSTEM, FaultKind.SYSTEM)
_TOPICS: Final = ("orders", "payments", "clicks", "audit")
_CHANGES: Final = 8
"""Changes of a disk for each replica, and as many again."""


def created(bench: Bench, random: Random) -> None:
    """Create some replicas in one call, several times; those that are reported are there, and no others."""
    live = dict[TopicPartition, TopicId]()
    for topic in _TOPICS:
        topic_id, count = TopicId(random.randbytes(16)), random.randint(2, 6)
        wanted = {TopicPartition(topic, number): topic_id for number in range(count)}
        same_path = TopicPartition("other", random.randrange(count))
        if same_path not in live and random.random() < 0.3:
            wanted[same_path] = topic_id  # by its ID it is the same replica
        kind = random.choice(_FAULTS)
        with bench.fault(kind, random.randrange(_CHANGES * (count + 1))):
            found = dict[TopicPartition, object]()
            with suppress(PowerCut):
                found |= bench.store.create_many(wanted)
        if bench.store.offline or not found:
            restarted(bench, crash=True)
            found = {each.partition: each for each in bench.store.replicas() if each.partition in wanted}
        done = {at for at, each in found.items() if isinstance(each, Replica)}
        if not bench.struck:
            # By its topic ID a directory is one replica's, whatever its name; on another disk it is another one.
            may_miss = {same_path} if bench.scheme is Scheme.BY_TOPIC_ID else set[TopicPartition]()
            missing = {at: type(found[at]) for at in wanted.keys() - done}
            expect("what is not created", missing, dict.fromkeys(may_miss & missing.keys(), NameTakenError))
        live |= dict.fromkeys(done, topic_id)
        _look(bench, live)
    restarted(bench, crash=random.random() < 0.5)
    _look(bench, live)


def _look(bench: Bench, wanted: dict[TopicPartition, TopicId]) -> None:
    """What is live is what was created, in a directory of its own, and each directory of a replica is live."""
    live = {each.partition: f"{each.log_dir}/{each.path}" for each in bench.store.replicas()}
    expect("what is live", live.keys(), wanted.keys())
    expect("how many directories they have", len(set(live.values())), len(live))
    for at, path in live.items():
        with open(f"{path}/{partition_metadata.FILE_NAME}", encoding="utf-8") as file:
            expect(f"whether {path} has its topic ID", str(wanted[at]) in file.read(), True)
    if bench.scheme is not Scheme.BY_TOPIC_ID:
        found = {
            f"{log_dir}/{name}"
            for log_dir in bench.log_dirs
            for name in os.listdir(log_dir)
            if name.startswith(_TOPICS) and not name.endswith("-delete")
        }
        expect("what lies where replicas do", found, {path for at, path in live.items() if at.topic in _TOPICS})
