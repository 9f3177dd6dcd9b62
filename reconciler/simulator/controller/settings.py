"""The settings of a controller, and the errors that it raises; times are in ms of simulated time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from logstore import check_fields
from reconciler.errors import ReconcilerError, UsageError
from reconciler.simulator.placement import Placement


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of one controller.

    Attributes:
        topic_ids: KIP-516 is in force: topics get IDs, requests carry them and a type, deletions are immediate. False:
            as before the inter-broker protocol is bumped (KIP516-10, KIP516-11).
        placement: by whose rules the replicas of new partitions are placed.
        unclean_elections: a replica that is out of sync may lead when no other can, where no config of the topic or
            its namespace says otherwise; Kafka's default is no.
        retry_ms: first pause before a request is sent again; it doubles with each try.
        most_retry_ms: the longest such pause.
        deletion_retry_ms: first pause before replicas that could not be deleted are tried again; where tries are
            limited, the pause doubles with each try.
        most_deletion_retry_ms: the longest such pause.
        collection_attempts: how often the replicas of a deleted topic, and replicas dropped by a reassignment, are
            tried before they are left to the next FULL request (KIP516-10).
        id_seed: topic IDs are drawn from this seed and from the topic's creation, so that one seed gives one history.
        crash_before: asked before each step that others can see, with a label such as ``write state of orders-0`` or
            ``send LeaderAndIsr to 2``; True: the controller crashes there, with every earlier step done and no later
            one.
        crashed: called after such a crash, so that the rest of the machine can crash too.

    Raises:
        UsageError: one is of another type, or a number is negative.
    """

    topic_ids: bool = True
    placement: Placement = Placement.ZOOKEEPER
    unclean_elections: bool = False
    retry_ms: int = 100
    most_retry_ms: int = 3_200
    deletion_retry_ms: int = 1_000
    most_deletion_retry_ms: int = 60_000
    collection_attempts: int = 10
    id_seed: int = 0
    crash_before: Callable[[str], bool] = lambda step: False
    crashed: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        pauses = ("retry_ms", "most_retry_ms", "deletion_retry_ms", "most_deletion_retry_ms", "collection_attempts")
        check_fields(self, UsageError, dict.fromkeys(pauses, (0, math.inf)))


class ControllerError(ReconcilerError):
    """Root of the errors of a simulated controller."""


class IllegalTransitionError(ControllerError):
    """A partition or a replica cannot go from its state to the requested one."""


class ControllerMovedError(ControllerError):
    """Another controller has written since: this controller is fenced, and its write was not done."""


class ControllerCrashError(ControllerError):
    """The settings ask for a crash at this step."""
