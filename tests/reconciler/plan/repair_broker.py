"""One broker with two log dirs on disk, and the metadata that it is compared with, for tests of plans of repairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from layout import meta_properties, partition_metadata
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from logstore.clock import ManualClock
from logstore.fs import Disk
from logstore.scan import scan_all
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity, by_cluster
from reconciler.plan import (
    ActionKind,
    ApplyOptions,
    ApplyOutcome,
    Plan,
    PlanOrigin,
    RepairChoice,
    RepairView,
    apply_plan,
    encode_plan,
    parse_plan,
    propose_repair,
)
from tests.reconciler.plan.plan_broker import HOUR_MS, written_at

ORDERS, OLD, OTHER = (TopicId(bytes(range(start, start + 16))) for start in (0, 100, 200))
CLUSTER = "c1"
NOW_MS = 1_700_000_000_000


class RepairBroker:
    """Builds log dirs and metadata, and makes plans."""

    def __init__(self, folder: Path, scheme: str | None = None) -> None:
        self.log_dirs = [folder / "d1", folder / "d2"]
        self.directory_ids = [DirectoryId.from_halves(77, number) for number in (1, 2)]
        for path, directory_id in zip(self.log_dirs, self.directory_ids, strict=True):
            path.mkdir()
            identity = MetaProperties(1, CLUSTER, 1, directory_id, scheme)
            (path / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))
        self.builder = DesiredBuilder()

    def replica(
        self, name: str, metadata: TopicId | bytes | None = ORDERS, *, disk: int = 0, epoch: int | None = None
    ) -> Path:
        """A partition dir, with its leader epoch, which lies there for an hour."""
        path = self.log_dirs[disk] / name
        path.mkdir(parents=True)
        (path / "00000000000000000000.log").write_bytes(bytes(10))
        if metadata is not None:
            data = partition_metadata.encode(metadata) if isinstance(metadata, TopicId) else metadata
            (path / partition_metadata.FILE_NAME).write_bytes(data)
        if epoch is not None:
            (path / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")
        written_at(path, NOW_MS - HOUR_MS)
        return path

    def file(self, name: str, text: str | bytes, *, disk: int = 0) -> Path:
        """A plain file in the root of a log dir."""
        path = self.log_dirs[disk] / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def wanted(
        self,
        topic: str,
        *partitions: int,
        topic_id: TopicId | None = ORDERS,
        nodes: tuple[int, ...] = (1,),
        **more: Any,
    ) -> None:
        """The metadata wants these partitions of a topic here, in sync and led by the first."""
        more = {"isr": nodes, "leader": next(iter(more.get("isr", nodes)), -1), **more}
        for partition in partitions:
            text = None if topic_id is None else str(topic_id)
            self.builder.partition(topic, text, partition, nodes, **more)

    def state(self, **identity: Any) -> DesiredState:
        return self.builder.build(MetadataIdentity("kraft", "/m", CLUSTER, **({"timestamp_ms": NOW_MS} | identity)))

    def view(self, states: Iterable[DesiredState], adopted: frozenset[str] = frozenset()) -> RepairView:
        seen = list(scan_all(list(map(str, self.log_dirs)), sizes=True))
        return RepairView.of(seen, by_cluster(list(states), {CLUSTER}), adopted, NOW_MS)

    def plan(
        self,
        *,
        metadata: bool = True,
        adopt: Iterable[str] = (),
        only: Iterable[ActionKind] = (),
        keep: Iterable[str] = (),
        as_of_ms: int | None = NOW_MS,
    ) -> Plan:
        """The plan; but for what it leaves alone, its file gives it back."""
        choice = RepairChoice(frozenset(only), frozenset(adopt), frozenset(keep))
        states = [self.state(timestamp_ms=as_of_ms)] if metadata else []
        made, _ = propose_repair(self.view(states, choice.adopted), choice, PlanOrigin(NOW_MS, "a-host", "a user"))
        assert parse_plan(encode_plan(made)) == replace(made, left_alone=())
        return made


def applied(plan: Plan, now_ms: int = NOW_MS, *, disk: Disk | None = None, any_clock: bool = False) -> ApplyOutcome:
    """Carry out a plan of repairs, on whatever machine it was made, and however long ago."""
    how = ApplyOptions("another-host", "a user", ManualClock(now_ms), disk or Disk(), any_clock=any_clock)
    return apply_plan(plan, how)


def done(plan: Plan) -> list[tuple[str, str]]:
    """Kind and path of each action."""
    return [(each.kind.value, each.name) for each in plan.actions]


def reason(plan: Plan, name: str) -> str:
    """Why something is left alone."""
    (found,) = [each for each in plan.left_alone if each.name == name]
    return found.reason
