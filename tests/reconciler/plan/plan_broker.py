"""Brokers on disk with a case for every action of a plan, and the metadata that they are compared with."""

from __future__ import annotations

import copy
import json
import os
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

from layout import meta_properties, partition_metadata
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from logstore.clock import ManualClock
from logstore.log_dir import LogDir, ReadOnlyLogDir
from logstore.scan import scan_all
from logstore.staging import choose_placement, staging_path
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.plan import (
    ApplyOptions,
    ApplyOutcome,
    Plan,
    PlanChoice,
    PlanOrigin,
    PlanView,
    Policy,
    apply_plan,
    encode_plan,
    make_plan,
    parse_plan,
)
from reconciler.plan import file as plan_file
from reconciler.plan.gate_inputs import EarlierRuns
from reconciler.verdicts import Judged

ORDERS, OLD, CLICKS, GONE, UNUSED = (TopicId(bytes(range(start, start + 16))) for start in (0, 40, 80, 120, 160))
CLUSTER = "c1"
NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
HOST = "a-host"


class PlanBroker:
    """Two log dirs of broker 1; what the metadata wants of it is added with :meth:`wanted`."""

    def __init__(self, folder: Path, scheme: str | None = None) -> None:
        self.log_dirs = [folder / "d1", folder / "d2"]
        self.directory_ids = [DirectoryId.from_halves(77, number) for number in (1, 2)]
        self.clock = ManualClock(NOW_MS)
        for path, directory_id in zip(self.log_dirs, self.directory_ids, strict=True):
            identity = MetaProperties(1, CLUSTER, 1, directory_id, scheme)
            if scheme is not None:
                LogDir.format(str(path), identity).close()
                continue
            path.mkdir()
            (path / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))
        self.builder = DesiredBuilder()

    @property
    def paths(self) -> list[str]:
        return [str(path) for path in self.log_dirs]

    def replica(self, name: str, topic_id: TopicId | None = ORDERS, *, disk: int = 0, size: int = 100) -> Path:
        """A partition dir with one segment."""
        path = self.log_dirs[disk] / name
        path.mkdir(parents=True)
        (path / "00000000000000000000.log").write_bytes(bytes(size))
        if topic_id is not None:
            (path / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(topic_id))
        written_at(path, self.clock.now_ms() - 2 * HOUR_MS)
        return path

    def stray(self, name: str, topic_id: TopicId | None, *, disk: int = 0, size: int = 100) -> Path:
        """A stray replica of a broker."""
        return self.replica(f"{name}.{uuid.uuid4().hex}-stray", topic_id, disk=disk, size=size)

    def wanted(self, topic: str, topic_id: TopicId | None, *partitions: int, **more: Any) -> None:
        """The metadata wants these partitions here, in sync on brokers 1 and 2, and led by the first in sync."""
        nodes = more.pop("nodes", (1, 2))
        more.setdefault("leader", next(iter(more.get("isr", nodes)), -1))
        text = None if topic_id is None else str(topic_id)
        for partition in partitions:
            self.builder.partition(topic, text, partition, nodes, **{"isr": nodes, **more})

    def in_order(self, number: int = 20) -> None:
        """So many replicas that are wanted and there, spread over both disks."""
        self.wanted("clicks", CLICKS, *range(number))
        for partition in range(number):
            self.replica(f"clicks-{partition}", CLICKS, disk=partition % 2)

    def settle(self) -> None:
        """Give files that the engine wrote the time of the broker's clock, as its machine would have."""
        for disk in self.log_dirs:
            for folder in (disk, disk.with_name(f"{disk.name}.deleting")):
                for path in folder.rglob("*"):
                    if not path.is_symlink() and path.stat().st_mtime * 1000 > self.clock.now_ms():
                        os.utime(path, (self.clock.now_ms() / 1000,) * 2)

    def state(self, **identity: Any) -> DesiredState:
        fields = {"cluster_id": CLUSTER, "timestamp_ms": self.clock.now_ms() - HOUR_MS, "digest": "d" * 64, **identity}
        return self.builder.build(MetadataIdentity("kraft", "/metadata", **fields))

    def view(self, *states: DesiredState, any_cluster: bool = False) -> PlanView:
        """The present contents of the disks, judged by these states, or by :meth:`state`."""
        self.settle()
        staging = {}
        for path in self.paths:
            if (Path(path) / meta_properties.FILE_NAME).exists():
                with ReadOnlyLogDir.open(path) as log_dir:
                    staging[path] = staging_path(log_dir, choose_placement(log_dir))
        seen = list(scan_all(self.paths))
        return PlanView.of(seen, staging, states or [self.state()], self.clock.now_ms(), any_cluster=any_cluster)

    def plan(self, choice: PlanChoice | None = None, *, memory: EarlierRuns | None = None, states: Any = ()) -> Plan:
        """A plan, which its file gives back; without gates where nothing else is asked for."""
        asked = choice or PlanChoice(Policy.kip516())
        made = make_plan(self.view(*states), asked, PlanOrigin(self.clock.now_ms(), HOST, "a user"), memory)
        assert parse_plan(encode_plan(made)) == replace(made, left_alone=(), counts={})
        return made

    def apply(self, plan: Plan, **how: Any) -> ApplyOutcome:
        self.settle()
        return apply_plan(plan, ApplyOptions(**{"host": HOST, "user": "a user", "clock": self.clock, **how}))

    def verdicts(self) -> dict[str, str]:
        """Name → verdict, for everything that is not in order."""
        return {_name(each): each.verdict.value for each in self.view().judged if each.verdict != "OK"}


def written_at(path: Path, ms: int) -> None:
    """Make a partition dir one whose files were all written at this time."""
    for file in path.iterdir():
        os.utime(file, (ms / 1000, ms / 1000))


def _name(judged: Judged) -> str:
    row = judged.observed or judged.wanted or {}
    return str(row["name"]) if judged.observed else f"{row['topic']}-{row['partition']}"


def lines(plan: Plan) -> list[tuple[str, str]]:
    """Kind and name of each action."""
    return [(action.kind.value, action.name) for action in plan.actions]


def statuses(outcome: ApplyOutcome) -> list[tuple[str, str]]:
    """Name and status of each action."""
    return [(each.action.name, each.status.value) for each in outcome.results]


def without(plan: Plan, *numbers: int) -> bytes:
    """The plan's file with the lines of some actions taken out, as an editor does it."""
    text = encode_plan(plan).decode().splitlines(keepends=True)
    marked = [number for number, line in enumerate(text) if line.startswith('    {"kind"')]
    gone = {marked[number] for number in numbers}
    return "".join(line for number, line in enumerate(text) if number not in gone).encode()


def edited(plan: Plan, **fields: Any) -> bytes:
    """The plan's file with fields of its first action changed, as JSON."""
    document = json.loads(encode_plan(plan))
    document["actions"][0].update(fields)
    return json.dumps(document).encode()


def sealed_again(document: dict[str, Any]) -> dict[str, Any]:
    """The same with fingerprints that fit, as somebody makes them who knows how; what cannot be summed stays."""
    found = copy.deepcopy(document)
    head = {key: value for key, value in found.items() if key not in plan_file._NOT_IN_HEAD}
    found["fingerprint"] = plan_file._sum(head)
    for action in found["actions"] if isinstance(found.get("actions"), list) else ():
        if isinstance(action, dict):
            own = {key: value for key, value in action.items() if key != "fingerprint"}
            action["fingerprint"] = plan_file._of_action(found["fingerprint"], own)
    return found
