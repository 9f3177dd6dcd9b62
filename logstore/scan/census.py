"""Which replicas lie in a log dir, gathered while it is looked at, for questions that concern all of them together.

Is a replica live in two directories? Does a checkpoint name one that has none? Both are nearly always answered with no
by comparing names, which costs much less than to go through the rows again. A replica stands here as a broker spells
it: ``topic-partition``, which no two replicas share.
"""

from __future__ import annotations

from logstore.rows import Columns, Kind

_LIVE, _FUTURE = Kind.LIVE.value, Kind.FUTURE.value


class Census:
    """The replicas of one log dir."""

    __slots__ = ("directories", "future", "live")

    def __init__(self) -> None:
        self.live: set[str] = set()
        """Those that have a live directory."""
        self.future: set[str] = set()
        """Those that have a future directory."""
        self.directories = 0
        """The number of live directories of known topics; more than are in ``live`` where one replica has several."""

    def add(self, columns: Columns) -> None:
        """Count the rows of some directories, whose first columns are name, kind, topic and partition."""
        names, kinds, topics, partitions = columns[:4]
        spelt = [f"{topic}-{partition}" for topic, partition in zip(topics, partitions, strict=True)]
        if set(kinds) == {_LIVE} and None not in topics:
            # The names are there already, and new texts would take as much memory again.
            self.live.update(names if spelt == names else spelt)
            self.directories += len(spelt)
            return
        for kind, topic, replica in zip(kinds, topics, spelt, strict=True):
            if topic is None:
                continue
            if kind == _LIVE:
                self.live.add(replica)
                self.directories += 1
            elif kind == _FUTURE:
                self.future.add(replica)

    def __contains__(self, replica: object) -> bool:
        """Whether a (topic, partition) has a live or a future directory."""
        match replica:
            case (str(topic), int(partition)):
                spelt = f"{topic}-{partition}"
                return spelt in self.live or spelt in self.future
            case _:
                return False
