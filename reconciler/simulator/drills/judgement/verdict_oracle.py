"""Says what each row of a drawn scan is, in other words than the case table: by what speaks for it and against it.

The case table lists conditions in an order, over columns of a join. Here each kind of thing is asked one question after
another, of plain values. Source: DESIGN §3; KIP516-5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from reconciler.desired import BrokerKey
from reconciler.simulator.drills.judgement.drawn import DAMAGED, NOW_MS, DrawnCluster
from reconciler.verdicts import Copy, Doubt, Verdict

_SKEW_MS: Final = 2_000

_ALONE: Final = {
    "internal": Verdict.OK,
    "foreign": Verdict.FOREIGN,
    "leftover": Verdict.LEFTOVER,
    "checkpoint_entry": Verdict.CHECKPOINT_ENTRY,
}
"""What a row is by its kind alone."""

UNWANTED: Final = (Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC)
"""What a live replica is that nobody wants where it lies."""

Place = tuple[str, str]
"""A log dir, and a name in it."""


class ExpectedVerdict(NamedTuple):
    """A verdict, and the doubt in which it is."""

    verdict: Verdict
    doubt: Doubt | None = None


class VerdictOracle:
    """Judges the rows of a drawn scan."""

    def __init__(self, drawn: DrawnCluster) -> None:
        self._drawn, self._metadata = drawn, drawn.metadata
        self.rows: Sequence[dict[str, Any]] = list(drawn.rows())
        self._live: dict[tuple[BrokerKey, str, int], list[dict[str, Any]]] = {}
        for row in self.rows:
            if row["kind"] == "live":
                self._live.setdefault((broker(row), row["topic"], row["partition"]), []).append(row)

    def of_rows(self) -> dict[Place, ExpectedVerdict]:
        """Say what each row is."""
        return {(row["log_dir"], row["name"]): self.of_row(row) for row in self.rows}

    def of_absent(self) -> dict[tuple[BrokerKey, str, int], ExpectedVerdict]:
        """Say what each replica is that is wanted on a scanned broker and live on none of its disks."""
        found = {}
        for each in {one.broker for one in self._drawn.log_dirs}:
            for topic, number in self._metadata.assigned if self._metadata.speaks_for(each) else ():
                at = self._metadata.wanted(topic, number, each.node)
                if at is not None and (each, topic, number) not in self._live:
                    home = at.homes.get(each.node) if each.node in at.replicas else None
                    found[each, topic, number] = self._of_nothing(each, home, is_moving=each.node in at.moving)
        return found

    def _of_nothing(self, of: BrokerKey, home: str | None, *, is_moving: bool) -> ExpectedVerdict:
        if is_moving:
            return ExpectedVerdict(Verdict.IN_FLIGHT)
        own = [each for each in self._drawn.log_dirs if each.broker == of]
        as_of_ms = self._metadata.identity.timestamp_ms
        is_early = as_of_ms is not None and min(each.head["scanned_ms"] for each in own) < as_of_ms
        is_known = home is None or home in [each.head["directory_id"] for each in own if each.is_sound]
        doubt = Doubt.SCANNED_BEFORE_METADATA if is_early else None
        return ExpectedVerdict(Verdict.MISSING if is_known else Verdict.ABSENT, doubt)

    def of_row(self, row: Mapping[str, Any]) -> ExpectedVerdict:
        """Say what one row is."""
        kind = row["kind"]
        if kind == "log_dir":
            return ExpectedVerdict(Verdict.OK if row["metadata_state"] == "ok" else Verdict.ABSENT)
        if kind in _ALONE:
            return ExpectedVerdict(_ALONE[kind])
        if row["metadata_state"] in DAMAGED:
            return ExpectedVerdict(Verdict.DAMAGED)
        if kind == "staged":
            return ExpectedVerdict(Verdict.STAGED if row["due_ms"] > NOW_MS else Verdict.STAGED_DUE)
        if kind == "delete":
            return ExpectedVerdict(Verdict.MARKED_DELETE)
        if kind == "stray":
            return ExpectedVerdict(Verdict.STRAY, self._in_doubt(row) if self.is_unwanted_stray(row) else None)
        return self._of_future(row) if kind == "future" else self._of_live(row)

    def is_unwanted_stray(self, row: Mapping[str, Any]) -> bool:
        """Whether the metadata surely does not want a stray: it places the topic elsewhere, or does not know it."""
        topic_id, owner = row["topic_id"], self._metadata.owner(row["topic_id"])
        if topic_id is None or not self._metadata.speaks_for(broker(row)):
            return False
        if self._metadata.wanted(owner, row["partition"], broker(row).node) is not None:
            return False
        return owner is not None or self._metadata.is_complete

    def _in_doubt(self, row: Mapping[str, Any]) -> Doubt | None:
        """It was written to after the metadata, or so shortly before that clocks do not tell."""
        as_of_ms = self._metadata.identity.timestamp_ms
        late = as_of_ms is not None and (row["modified_ms"] or 0) + _SKEW_MS > as_of_ms
        return Doubt.CHANGED_SINCE_METADATA if late and row["modified_ms"] else None

    def _of_future(self, row: Mapping[str, Any]) -> ExpectedVerdict:
        speaks, metadata = self._metadata.speaks_for(broker(row)), self._metadata
        if (broker(row), row["topic"], row["partition"]) not in self._live:
            return ExpectedVerdict(Verdict.FUTURE_ABANDONED if speaks else Verdict.NOT_COMPARED)
        owner = metadata.owner(row["topic_id"])
        nobody_wants = metadata.wanted(owner, row["partition"], broker(row).node) is None
        may_be_known = row["topic_id"] is None and row["topic"] in metadata.ids
        if speaks and metadata.is_complete and nobody_wants and not may_be_known:
            return ExpectedVerdict(Verdict.FUTURE_ABANDONED, self._in_doubt(row))
        return ExpectedVerdict(Verdict.FUTURE)

    def _of_live(self, row: Mapping[str, Any]) -> ExpectedVerdict:
        of, topic, topic_id, metadata = broker(row), row["topic"], row["topic_id"], self._metadata
        if len(self._live[of, topic, row["partition"]]) > 1:
            return ExpectedVerdict(Verdict.DUPLICATE)
        if not metadata.speaks_for(of):
            return ExpectedVerdict(Verdict.NOT_COMPARED)
        if metadata.owner(topic_id) not in (None, topic):
            return ExpectedVerdict(Verdict.RENAMED)
        id_of_name = metadata.ids.get(topic)
        if topic_id and id_of_name and topic_id != id_of_name:
            return ExpectedVerdict(Verdict.STALE_ID, self._in_doubt(row))
        at = metadata.wanted(topic, row["partition"], of.node)
        if at is not None and of.node in at.moving:
            return ExpectedVerdict(Verdict.IN_FLIGHT)
        if at is not None:
            return ExpectedVerdict(Verdict.NO_ID if id_of_name and not topic_id else Verdict.OK)
        if not metadata.is_complete:
            return ExpectedVerdict(Verdict.NOT_COMPARED)
        return ExpectedVerdict(
            Verdict.NOT_ASSIGNED if topic in metadata.ids else Verdict.UNKNOWN_TOPIC, self._in_doubt(row)
        )

    def given_an_id(self, epochs: Mapping[Place, int | None]) -> set[Place]:
        """Name the live replicas that get the topic ID of their name.

        Nothing else of the topic on the broker has another ID, and neither the replica's last leader epoch, of
        ``epochs``, nor data that is live under another name says that it is of another topic.
        """
        found, every = set[Place](), self.of_rows()
        for row in self.rows:
            place, of, name, number = (row["log_dir"], row["name"]), broker(row), row["topic"], row["partition"]
            if every[place].verdict is not Verdict.NO_ID:
                continue
            wanted, at = self._metadata.ids[name], self._metadata.assigned[name, number]
            on_broker = [each for each in self.rows if broker(each) == of and each["topic_id"]]
            others = [each for each in on_broker if each["topic"] == name and each["topic_id"] != wanted]
            elsewhere = [
                each
                for each in on_broker
                if (each["topic_id"], each["partition"]) == (wanted, number)
                and every[each["log_dir"], each["name"]].verdict is Verdict.RENAMED
            ]
            if not others and not elsewhere and (epochs.get(place) or 0) <= at.epoch:
                found.add(place)
        return found

    def wanted_again(self) -> set[Place]:
        """Name the staged replicas that are wanted where they lie, and whose place no replica has that stays."""
        found, every = set[Place](), self.of_rows()
        for row in self.rows:
            place = row["log_dir"], row["name"]
            owner = self._metadata.owner(row["topic_id"])
            is_wanted = self._metadata.speaks_for(broker(row))
            is_wanted &= self._metadata.wanted(owner, row["partition"], broker(row).node) is not None
            if every[place].verdict not in (Verdict.STAGED, Verdict.STAGED_DUE) or owner is None or not is_wanted:
                continue
            in_place = self._live.get((broker(row), owner, row["partition"]), ())
            if all(every[one["log_dir"], one["name"]].verdict in UNWANTED for one in in_place):
                found.add(place)
        return found


def broker(row: Mapping[str, Any]) -> BrokerKey:
    """Whose disk a row is of."""
    return BrokerKey(row["cluster_id"] or "", -1 if row["node_id"] is None else row["node_id"])


def better_copy(copies: Sequence[Copy[str]], wanted_id: str) -> Copy[str] | None:
    """The copy that is surely better than each other one, by the first thing in which they differ; None: none is."""
    return next((one for one in copies if all(other is one or _beats(one, other, wanted_id) for other in copies)), None)


def _beats(one: Copy[str], other: Copy[str], wanted_id: str) -> bool:
    if one.topic_id != other.topic_id:
        return bool(wanted_id) and one.topic_id == wanted_id
    if one.epoch is None or other.epoch is None or one.epoch != other.epoch:
        return one.epoch is not None and other.epoch is not None and one.epoch > other.epoch
    if one.offset is None or other.offset is None or one.offset != other.offset:
        return one.offset is not None and other.offset is not None and one.offset > other.offset
    return one.assigned and not other.assigned
