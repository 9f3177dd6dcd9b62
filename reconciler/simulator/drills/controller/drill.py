"""Drills a controller in short scenes, each of which comes to something that a history seldom meets.

::

    deleted     a topic with an ID: its replicas are asked for by the ID, also beside a new topic of the name
    marked      a topic without an ID, whose controller dies in the middle of the deletion
    fewer       a partition that is deleted, while its topic stays
    recreated   a topic that was deleted and created again before the controller looked
    renamed     a topic that has another name and the same ID
    reassigned  a partition that moves: old replicas stay until the whole target is in sync
    dropped     a dropped replica that could not be deleted, and may be assigned again
    cancelled   a reassignment that is cancelled
    returned    a broker that comes back, with replicas or with nothing: one FULL request
    unreadable  a topic whose node cannot be read: no FULL request
    restarted   a broker that was restarted unseen, with a controller or without
    failed      a failed disk, and its broker's restart
    in_sync     in-sync sets that a leader may have, and may not
    elected     leaders in sync, preferred ones, and unclean ones
    stopping    brokers that stop in order
    fenced      a controller that was replaced and does not know it

What is right is known from how the scene is made, and read from ZooKeeper and from what the brokers hold; the brokers
themselves check each request. Source: KIP516-5, KIP516-10, KIP4-1, CREATE-4; Kafka 2.8.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from reconciler.simulator.drills.controller.deleted import deleted, fewer, marked, recreated, renamed
from reconciler.simulator.drills.controller.leaders import elected, fenced, in_sync, stopping
from reconciler.simulator.drills.controller.moved import cancelled, dropped, reassigned
from reconciler.simulator.drills.controller.returns import failed, restarted, returned, unreadable

_TOPICS: Final = (deleted, marked, fewer, recreated, renamed)
_REPLICAS: Final = (reassigned, dropped, cancelled, returned, unreadable)
_LEADERS: Final = (restarted, failed, in_sync, elected, stopping, fenced)


def drill_controller(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill three scenes as a seed says; ``reach`` counts which; their length does not hang on ``steps``.

    Raises:
        BrokenInvariantError: one does not end as it should.
    """
    random = Random(f"{seed}/drill of a controller")
    for scene in (random.choice(_TOPICS), random.choice(_REPLICAS), random.choice(_LEADERS)):
        scene(random)
        reach(f"drill_controller {scene.__name__}")
