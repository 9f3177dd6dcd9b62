"""What the scenes share: a bench, a replica with a number and offsets, a fault, and what was found compared."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import LogStoreError
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import Bench, FaultKind, PowerCut
from reconciler.simulator.drills.kept_replicas import NUMBER_FILE

AT: Final = TopicPartition("orders", 0)
NUMBER: Final = b"1"
Offsets = dict[str, int]
Scene = Callable[[Bench, Random], None]


def expect(what: str, found: object, wanted: object) -> None:
    """Compare what was found.

    Raises:
        BrokenInvariantError: it is not what was wanted.
    """
    if found != wanted:
        raise BrokenInvariantError(f"{what} is {found!r:.300}, and should be {wanted!r:.300}")


def made(bench: Bench, topic_id: TopicId | None, random: Random, at: TopicPartition = AT) -> tuple[str, Offsets]:
    """Make a replica, with a number and offsets; gives its path, and the offsets."""
    replica = bench.store.create(at, topic_id)
    path = f"{replica.log_dir}/{replica.path}"
    bench.write(path, NUMBER_FILE, NUMBER)
    return path, with_offsets(bench, random, at)


def with_offsets(bench: Bench, random: Random, at: TopicPartition = AT) -> Offsets:
    """Give a live replica checkpoint entries."""
    offsets = {file: random.randrange(1 << 40) for file in OFFSET_CHECKPOINTS[:3]}
    for file, offset in offsets.items():
        bench.store.write_offsets(file, {at: offset})
    return offsets


def restarted(bench: Bench, *, crash: bool) -> None:
    """Open the store anew, after a crash or in order."""
    if crash:
        bench.crash()
    else:
        bench.close()
    bench.open()


def tried(bench: Bench, kind: FaultKind | None, after: int, act: Callable[[], object]) -> bool:
    """Change the store with a fault in the middle of it; gives whether the change was made.

    Raises:
        BrokenInvariantError: it is refused, although nothing went wrong.
    """
    with bench.fault(kind, after):
        try:
            act()
        except PowerCut:
            return False
        except (LogStoreError, LayoutError) as error:
            if not bench.struck:
                raise BrokenInvariantError(f"a change is refused for nothing: {error}") from error
            return False
    return True
