"""Decide what shows that a replica without a readable topic ID is of the topic that the metadata wants. Pure.

Without its file, a replica of a topic that was deleted and made anew while the broker was away looks like one of the
present topic: both begin at leader epoch 0, and none of the two epochs tells them apart where the disk's is not above
the metadata's. So it takes evidence, which is one of these:

* The metadata counts the replica as in sync. No broker that is away is in sync with a topic that is made meanwhile.
* Another replica of the topic on this broker holds the ID, and the broker runs in KRaft mode. Such a broker deletes or
  renames what is of a deleted topic when it learns of that, and before it makes a replica of the new one.
* At least half of a ZooKeeper broker's replicas lack the file: its release writes none, or not for followers.
Source: FACTS §6.1, §6.2, §6.5.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.verdicts.join import Judged, Row

NOTHING_SHOWS = (
    "nothing shows that its data is of the present topic and not of an older one of this name: the metadata does not "
    "count it as in sync, and a leader epoch that is not above the metadata's tells nothing"
)
"""The evidence beside a topic ID that is written although :func:`shown_present` finds nothing, a clause."""


def epoch_above(on_disk: int | None, wanted: Row | None) -> str | None:
    """Say in a clause that a last leader epoch is one that the metadata has not reached; None: it is not."""
    in_metadata = None if wanted is None else wanted["leader_epoch"]
    if on_disk is None or in_metadata is None or on_disk <= in_metadata:
        return None
    return (
        f"its last leader epoch is {on_disk} and the metadata's is {in_metadata}, so it may be data of a topic that "
        "was deleted and made anew"
    )


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What the other replicas of a broker tell about one without topic ID.

    Attributes:
        holders: number of live replicas of its topic that hold the wanted ID.
        on_kraft: whether the broker runs in KRaft mode.
        live: number of the broker's live replicas.
        without_file: number of those without ``partition.metadata``.
    """

    holders: int
    on_kraft: bool
    live: int
    without_file: int


def shown_present(judged: Judged, beside: Neighbours) -> str | None:
    """Say in a clause what shows that a replica's data is of the topic that the metadata wants; None: nothing does."""
    if judged.wanted is not None and judged.wanted["in_sync"]:
        return "the metadata counts it as in sync"
    if beside.holders and beside.on_kraft:
        return f"{beside.holders} other of this broker's replicas of the topic hold it"
    if not beside.on_kraft and 2 * beside.without_file >= beside.live:
        return f"{beside.without_file:,} of this broker's {beside.live:,} replicas lack the file as well"
    return None
