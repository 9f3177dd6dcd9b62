"""A scene of a replica that is restored under the new name of its topic, with a fault in the middle of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from random import Random
from typing import Final

from layout import partition_metadata
from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import Bench, FaultKind
from reconciler.simulator.drills.kept_replicas import NUMBER_FILE
from reconciler.simulator.drills.looking import offsets_of
from reconciler.simulator.drills.scenes.scene import AT, expect, made, restarted, tried

_NEW: Final = TopicPartition("clicks", 0)
_LONGEST: Final = 30
"""Changes of a disk in a restore under a new name."""


def renamed(bench: Bench, random: Random) -> None:
    """Restore under a new name; whatever goes wrong, the replica is staged or live, whole, under one of the names."""
    topic_id = TopicId(random.randbytes(16))
    _, offsets = made(bench, topic_id, random)
    log_dir = bench.store.get(AT).log_dir
    bench.store.stage([AT], "STALE_ID", "a drill")
    kind = random.choice((None, FaultKind.POWER, FaultKind.POWER, FaultKind.SYSTEM))
    (staged,) = [each for each in bench.store.staged() if each.topic_id == topic_id]
    after = random.randrange(_LONGEST)
    is_done = tried(bench, kind, after, lambda: bench.store.restore(staged, _NEW, topic_id))
    restarted(bench, crash=not is_done or random.random() < 0.7)
    left = [each for each in bench.store.staged() if each.topic_id == topic_id]
    if left and not is_done:
        (found,) = left
        expect("whether it is staged under one of its names", found.partition in (AT, _NEW), True)
        at = found.partition or AT
        bench.store.restore(found, at, topic_id)
        bench.close()
        bench.open()
    live = [at for at in (AT, _NEW) if bench.store.find(at) is not None]
    if len(live) != 1 or (is_done and live != [_NEW]):
        raise BrokenInvariantError(f"a replica that is restored as {_NEW} is live as {live}")
    _look_at_renamed(bench, log_dir, live[0], offsets)


def _look_at_renamed(bench: Bench, log_dir: str, at: TopicPartition, offsets: Mapping[str, int]) -> None:
    replica = bench.store.get(at)
    path = f"{replica.log_dir}/{replica.path}"
    other = AT if at == _NEW else _NEW
    expect("the entries of a renamed replica", (offsets_of(log_dir, at), offsets_of(log_dir, other)), (offsets, {}))
    files = [NUMBER_FILE, partition_metadata.FILE_NAME]
    expect("the files of a renamed replica", sorted(os.listdir(path)), sorted(files))
    with open(f"{path}/{partition_metadata.FILE_NAME}", encoding="ascii") as file:
        text = file.read()
    if text.startswith("{"):
        fields = json.loads(text)
        expect("its name in partition.metadata", (fields["name"], fields["partition"]), (at.topic, at.partition))
    elif bench.scheme is not None:
        raise BrokenInvariantError(f"partition.metadata of a log dir that is ours holds no name: {text!r}")
