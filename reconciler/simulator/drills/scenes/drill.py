"""Drills a store in short scenes, each of which comes to something that a game of random changes seldom meets.

::

    copies      a partition that is live on two disks, one copy of which is staged: the other one goes on
    successor   a topic that was re-created beside its staged replica, and a crash: the new one keeps its offsets
    unreadable  a partition.metadata that cannot be read: no topic ID is written over it
    by_hand     a replica, live or staged, that somebody removed with rm: its successor has no offsets of it
    renamed     a replica that is restored under the new name of its topic, with a fault in the middle of it
    moved       a replica that moves to another disk, with faults in the middle, or a disk away at the next open
    created     replicas that are created in one call, with a fault in the middle, or two with one path
    purger      the thread that purges, while different log dirs have something due at different times
    failed      a disk that fails: what lies there is known, and is not made anew elsewhere

What is left is read by plain reads of the disk. Source: DESIGN §5; KIP516-2, -3, -7, -8, -13; KIP37-3.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Final

from layout.scheme import Scheme
from logstore import Settings
from logstore.fs.crash_disk import memory_folder
from reconciler.simulator.drills.bench import Bench
from reconciler.simulator.drills.scenes.by_name import by_hand, copies, successor, unreadable
from reconciler.simulator.drills.scenes.created import created
from reconciler.simulator.drills.scenes.failed import failed
from reconciler.simulator.drills.scenes.moved import moved
from reconciler.simulator.drills.scenes.purger import purger
from reconciler.simulator.drills.scenes.renamed import renamed
from reconciler.simulator.drills.scenes.scene import Scene

_BY_NAME: Final = (Scheme.FLAT, Scheme.NAMESPACED, None)
_ANY: Final = (*Scheme, None)
_SCENES: Final[tuple[tuple[Scene, tuple[Scheme | None, ...]], ...]] = (
    (copies, _BY_NAME),
    (successor, _BY_NAME),
    (unreadable, _BY_NAME),
    (by_hand, _BY_NAME),
    (renamed, _ANY),
    (moved, _ANY),
    (created, _ANY),
    (purger, _ANY),
    (failed, _ANY),
)
"""Each scene with the schemes of the log dirs in which it can be played."""

_OFTEN: Final = (renamed, moved, moved)
"""Scenes with many places for a fault; a drill plays one of them, and two others."""

_ONCE: Final = [scene for scene, _ in _SCENES if scene not in _OFTEN]


def drill_scenes(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill some scenes as a seed says; ``reach`` counts which; their length does not hang on ``steps``.

    Raises:
        BrokenInvariantError: one does not end as it should.
    """
    random = Random(f"{seed}/drill of scenes")
    schemes = dict(_SCENES)
    for scene in (*random.sample(_ONCE, 2), random.choice(_OFTEN)):
        with ExitStack() as stack:
            folder = stack.enter_context(memory_folder())
            bench = Bench(folder, random, 2, random.choice(schemes[scene]), Settings({}))
            stack.callback(bench.end)
            scene(bench, random)
        reach(f"drill_scene {scene.__name__}")
