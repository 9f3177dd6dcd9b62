"""A scene of a disk that fails beside a sound one: what lies there is known, and nothing is made anew in its place."""

from __future__ import annotations

from random import Random
from typing import Final

from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError, LogStore, LogStoreError, OfflineLogDirError
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import Bench
from reconciler.simulator.drills.scenes.scene import AT, expect, made, restarted

_OTHER: Final = TopicPartition("clicks", 0)


def failed(bench: Bench, random: Random) -> None:
    """Let the disk of one of two replicas fail, and come back."""
    topic_id, other_id = TopicId(random.randbytes(16)), TopicId(random.randbytes(16))
    made(bench, topic_id, random)
    made(bench, other_id, random, _OTHER)
    log_dir, other = bench.store.get(AT).log_dir, bench.store.get(_OTHER).log_dir
    expect("whether the second replica is made on the other disk", other != log_dir, True)
    number = bench.log_dirs.index(log_dir)
    bench.lose(number)
    _notice(bench.store, random)
    for _ in range(2):
        expect("what is offline", list(bench.store.offline), [log_dir])
        _ask(bench.store, topic_id, other_id)
        bench.store.reload()
    restarted(bench, crash=random.random() < 0.5)
    expect("what is offline after an open", list(bench.store.offline), [log_dir])
    expect("what is known of a disk that was never seen", bench.store.find(AT), None)
    bench.crash()
    bench.disks.come_back(number)
    bench.open()
    found = bench.store.get(AT)
    expect("what a disk brings back", (found.log_dir, found.topic_id), (log_dir, topic_id))


def _notice(store: LogStore, random: Random) -> None:
    """Come upon the failure, by a change or by a look."""
    if random.random() < 0.5:
        store.reload()
        return
    try:
        if random.random() < 0.5:
            store.write_offsets(OFFSET_CHECKPOINTS[0], {AT: 1})
        else:
            store.stage([AT], "STALE_ID", "a drill")
    except LogStoreError:
        return
    raise BrokenInvariantError(f"a replica on a disk that failed is changed: {store.get(AT)}")


def _ask(store: LogStore, topic_id: TopicId, other_id: TopicId) -> None:
    """Ask the store as requests do, and try to make the replica anew."""
    strange = TopicId(bytes(reversed(topic_id.to_bytes())))
    answers = [store.fence(AT, each) for each in (None, topic_id, strange)]
    expect("the answers of a replica on a failed disk", answers, [KafkaError.KAFKA_STORAGE_ERROR] * 3)
    answers = [store.fence(_OTHER, each) for each in (None, other_id, strange)]
    expect("those of another one", answers, [KafkaError.NONE, KafkaError.NONE, KafkaError.INCONSISTENT_TOPIC_ID])
    try:
        replica = store.create(AT, topic_id)
    except OfflineLogDirError:
        return
    raise BrokenInvariantError(f"{AT} lies on a disk that failed, and is made anew as {replica}")
