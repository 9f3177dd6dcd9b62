"""Drills a store in short scenes, each of which comes to something that a game of random changes seldom meets.

::

    copies      a partition that is live on two disks, one copy of which is staged: the other one goes on
    successor   a topic that was re-created beside its staged replica, and a crash: the new one keeps its offsets
    unreadable  a partition.metadata that cannot be read: no topic ID is written over it
    renamed     a replica that is restored under the new name of its topic, with a fault in the middle of it

What is left is read by plain reads of the disk. Source: DESIGN §5; KIP516-2, KIP516-7, KIP516-13, KIP37-3.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from random import Random
from typing import Final

from layout import partition_metadata
from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import InconsistentTopicIdError, LogStoreError, Settings
from logstore.fs import Directory, make_directory
from logstore.fs.crash_disk import memory_folder
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import Bench, FaultKind, PowerCut
from reconciler.simulator.drills.kept_replicas import NUMBER_FILE
from reconciler.simulator.drills.looking import offsets_of

_AT, _NEW = TopicPartition("orders", 0), TopicPartition("clicks", 0)
_NUMBER, _LONGEST = b"1", 30
_Offsets = dict[str, int]


def drill_scenes(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill one scene as a seed says; ``reach`` counts which; its length does not hang on ``steps``.

    Raises:
        BrokenInvariantError: it does not end as it should.
    """
    random = Random(f"{seed}/drill of scenes")
    name, play = random.choice(_SCENES)
    with ExitStack() as stack:
        folder = stack.enter_context(memory_folder())
        scheme = random.choice((Scheme.FLAT, Scheme.NAMESPACED, None) if name != "renamed" else (*Scheme, None))
        bench = Bench(folder, random, 2, scheme, Settings({}))
        stack.callback(bench.end)
        play(bench, random)
    reach(f"drill_scene {name}")


def _expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise BrokenInvariantError(f"{what} is {found!r:.300}, and should be {wanted!r:.300}")


def _made(bench: Bench, topic_id: TopicId, random: Random) -> tuple[str, _Offsets]:
    """Make the replica, with a number and offsets; gives its path, and the offsets."""
    replica = bench.store.create(_AT, topic_id)
    path = f"{replica.log_dir}/{replica.path}"
    bench.write(path, NUMBER_FILE, _NUMBER)
    return path, _with_offsets(bench, random)


def _with_offsets(bench: Bench, random: Random) -> _Offsets:
    offsets = {file: random.randrange(1 << 40) for file in OFFSET_CHECKPOINTS[:3]}
    for file, offset in offsets.items():
        bench.store.write_offsets(file, {_AT: offset})
    return offsets


def _restarted(bench: Bench, *, crash: bool) -> None:
    """Open the store anew, after a crash or in order."""
    if crash:
        bench.crash()
    else:
        bench.close()
    bench.open()


def _copies(bench: Bench, random: Random) -> None:
    path, _ = _made(bench, TopicId(random.randbytes(16)), random)
    (other,) = [each for each in bench.log_dirs if not path.startswith(f"{each}/")]
    bench.close()
    with Directory.open(other) as root:
        make_directory(bench.disks.disk, root, str(_AT)).close()
    for name in sorted(os.listdir(path)):
        with open(f"{path}/{name}", "rb") as file:
            bench.write(f"{other}/{_AT}", name, file.read())
    bench.open()
    copies = [bench.store.get(_AT), *bench.store.duplicates]
    _expect("where a partition with two copies lies", {each.log_dir for each in copies}, set(bench.log_dirs))
    staged = random.choice(copies)
    outcome = bench.store.stage_copies({staged: ("DUPLICATE", "a drill")})
    _expect("what is refused", list(outcome.refused), [])
    for _ in range(2):
        found = bench.store.find(_AT)
        left = (set(bench.log_dirs) - {staged.log_dir}, 0)
        _expect("what is live", ({each.log_dir for each in (found,) if each}, len(bench.store.duplicates)), left)
        _restarted(bench, crash=random.random() < 0.5)


def _successor(bench: Bench, random: Random) -> None:
    _made(bench, TopicId(random.randbytes(16)), random)
    bench.store.stage([_AT], "STALE_ID", "a drill")
    new_id = TopicId(random.randbytes(16))
    log_dir = bench.store.create(_AT, new_id).log_dir
    offsets = _with_offsets(bench, random)
    for _ in range(2):
        _restarted(bench, crash=random.random() < 0.8)
        replica = bench.store.get(_AT)
        _expect("the topic ID of the successor", (replica.topic_id, replica.log_dir), (new_id, log_dir))
        _expect("the offsets of the successor", offsets_of(log_dir, _AT), offsets)


def _unreadable(bench: Bench, random: Random) -> None:
    topic_id = TopicId(random.randbytes(16))
    path, _ = _made(bench, topic_id, random)
    data = random.choice((b"", b"version: 0\n", b"version: 0\ntopic_id: ?", bytes(43), b"{"))
    bench.write(path, partition_metadata.FILE_NAME, data)
    _restarted(bench, crash=random.random() < 0.5)
    wanted = random.choice((topic_id, TopicId(random.randbytes(16))))
    try:
        found = bench.store.assign_topic_id(_AT, wanted)
    except InconsistentTopicIdError:
        with open(f"{path}/{partition_metadata.FILE_NAME}", "rb") as file:
            _expect("a partition.metadata that cannot be read", file.read(), data)
        return
    raise BrokenInvariantError(f"a topic ID is written over {data!r}: {found}")


def _renamed(bench: Bench, random: Random) -> None:
    """Restore under a new name; whatever goes wrong, the replica is staged or live, whole, under one of the names."""
    topic_id = TopicId(random.randbytes(16))
    _, offsets = _made(bench, topic_id, random)
    log_dir = bench.store.get(_AT).log_dir
    bench.store.stage([_AT], "STALE_ID", "a drill")
    kind = random.choice((None, FaultKind.POWER, FaultKind.POWER, FaultKind.SYSTEM))
    (staged,) = [each for each in bench.store.staged() if each.topic_id == topic_id]
    is_done = False
    with bench.fault(kind, random.randrange(_LONGEST)):
        try:
            bench.store.restore(staged, _NEW, topic_id)
            is_done = True
        except PowerCut:
            pass
        except (LogStoreError, LayoutError) as error:
            if not bench.struck:
                raise BrokenInvariantError(f"a replica cannot be restored under a new name: {error}") from error
    _restarted(bench, crash=not is_done or random.random() < 0.7)
    left = [each for each in bench.store.staged() if each.topic_id == topic_id]
    if left and not is_done:
        (found,) = left
        _expect("whether it is staged under one of its names", found.partition in (_AT, _NEW), True)
        at = found.partition or _AT
        bench.store.restore(found, at, topic_id)
        bench.close()
        bench.open()
    live = [at for at in (_AT, _NEW) if bench.store.find(at) is not None]
    if len(live) != 1 or (is_done and live != [_NEW]):
        raise BrokenInvariantError(f"a replica that is restored as {_NEW} is live as {live}")
    _look_at_renamed(bench, log_dir, live[0], offsets)


def _look_at_renamed(bench: Bench, log_dir: str, at: TopicPartition, offsets: Mapping[str, int]) -> None:
    replica = bench.store.get(at)
    path = f"{replica.log_dir}/{replica.path}"
    other = _AT if at == _NEW else _NEW
    _expect("the entries of a renamed replica", (offsets_of(log_dir, at), offsets_of(log_dir, other)), (offsets, {}))
    files = [NUMBER_FILE, partition_metadata.FILE_NAME]
    _expect("the files of a renamed replica", sorted(os.listdir(path)), sorted(files))
    with open(f"{path}/{partition_metadata.FILE_NAME}", encoding="ascii") as file:
        text = file.read()
    if text.startswith("{"):
        fields = json.loads(text)
        _expect("its name in partition.metadata", (fields["name"], fields["partition"]), (at.topic, at.partition))
    elif bench.scheme is not None:
        raise BrokenInvariantError(f"partition.metadata of a log dir that is ours holds no name: {text!r}")


_SCENES: Final[tuple[tuple[str, Callable[[Bench, Random], None]], ...]] = (
    ("copies", _copies),
    ("successor", _successor),
    ("unreadable", _unreadable),
    ("renamed", _renamed),
    ("renamed", _renamed),
)
