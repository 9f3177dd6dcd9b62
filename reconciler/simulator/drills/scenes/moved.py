"""A scene of a replica that moves to another disk, with faults in the middle of it and of what finishes it.

Whatever goes wrong, the replica is live on one disk alone, with all its files and checkpoint entries, and nothing of
the move is left but the original, which is staged.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Final

from layout import partition_metadata
from layout.ids import TopicId
from logstore import DELETE_DELAY, Settings
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import Bench, FaultKind
from reconciler.simulator.drills.kept_replicas import NUMBER_FILE
from reconciler.simulator.drills.looking import offsets_of
from reconciler.simulator.drills.scenes.scene import AT, NUMBER, Offsets, expect, made, restarted, tried

_SHORTEST: Final = 12
_LONGEST: Final = 62
"""Changes of a disk in a move; in the first ones a draft of the copy is written, and a crash leaves nothing of it."""

_OPENS: Final = (8, 34)
"""Changes of a disk in an open that drops a copy, and in one that finishes a move."""

_FAULTS: Final = (None, FaultKind.POWER, FaultKind.POWER, FaultKind.POWER, FaultKind.SYSTEM)
_LEFT: Final = ("-delete", "-future")
"""What a copy is called; a broker removes what is named as the first of these, so it may stay in a log dir of one."""


def moved(bench: Bench, random: Random) -> None:
    """Move a replica, and look at what became of it once everything is back."""
    topic_id = TopicId(random.randbytes(16))
    _, offsets = made(bench, topic_id, random)
    if random.random() < 0.5:
        restarted(bench, crash=False)
    source = bench.store.get(AT).log_dir
    (target,) = [each for each in bench.store.log_dirs if each.path != source]
    directory_id = target.identity.directory_id
    assert directory_id is not None, "each log dir of a bench has one"
    now_ms = bench.clock.now_ms()
    kind = random.choice(_FAULTS)
    is_done = tried(bench, kind, random.randrange(_SHORTEST, _LONGEST), lambda: bench.store.move(AT, directory_id))
    if is_done:
        expect("where a moved replica is live", bench.store.get(AT).log_dir, target.path)
    crash = (kind is FaultKind.POWER and not is_done) or random.random() < 0.7
    if random.random() < 0.4:
        _open_while_away(bench, random, source, crash=crash)
        crash = random.random() < 0.5
    for _ in range(random.choice((0, 2, 4)) if crash else 0):
        bench.crash()
        tried(bench, FaultKind.POWER, random.randrange(random.choice(_OPENS)), bench.open)
    for _ in range(2):
        restarted(bench, crash=crash)
        crash = random.random() < 0.5
        found = bench.store.get(AT)
        expect(
            "where a moved replica is live",
            found.log_dir in ((target.path,) if is_done else (source, target.path)),
            True,
        )
        _look(bench, topic_id, offsets)
        staged = [(each.log_dir, each.record.due_ms) for each in bench.store.staged() if each.record is not None]
        due_ms = now_ms + Settings({}).of(AT.topic, DELETE_DELAY)
        expect("what is staged, and due when", staged, [(source, due_ms)] if found.log_dir == target.path else [])


def _open_while_away(bench: Bench, random: Random, source: str, *, crash: bool) -> None:
    """Open and close the store while a disk, mostly the source's, is away or fails; it is back at the next open."""
    number = bench.log_dirs.index(source) if random.random() < 0.7 else random.randrange(len(bench.log_dirs))
    if crash:
        bench.crash()
    else:
        bench.close()
    if random.random() < 0.5:
        bench.lose(number)
        bench.open()
        found = bench.store.find(AT)
        if found is not None and found.log_dir == bench.log_dirs[number]:
            raise BrokenInvariantError(f"{AT} is said to be live in {found.log_dir}, which is away")
    else:
        bench.disks.fail_after(number, random.randrange(random.choice(_OPENS)), random)
        bench.open()
        bench.disks.disarm()
    if random.random() < 0.5:
        bench.crash()
    else:
        bench.close()
    bench.disks.come_back(number)
    bench.open()


def _look(bench: Bench, topic_id: TopicId, offsets: Offsets) -> None:
    """The replica is live once, whole, and nothing is left of a copy."""
    found = bench.store.get(AT)
    expect("how often a moved replica is live beside that", bench.store.duplicates, [])
    expect("its topic ID", found.topic_id, topic_id)
    entries = {log_dir: offsets_of(log_dir, AT) for log_dir in bench.log_dirs}
    expect("the entries of a moved replica", entries, {each: {} for each in bench.log_dirs} | {found.log_dir: offsets})
    path = f"{found.log_dir}/{found.path}"
    expect("its files", sorted(os.listdir(path)), sorted((NUMBER_FILE, partition_metadata.FILE_NAME)))
    expect("its number", Path(path, NUMBER_FILE).read_bytes(), NUMBER)
    for log_dir in bench.log_dirs:
        left = [each for each in os.listdir(log_dir) if each.endswith(_LEFT[bench.scheme is None :])]
        expect(f"what is left of a copy in {log_dir}", left, [])
