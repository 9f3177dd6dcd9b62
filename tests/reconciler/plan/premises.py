"""A broker's disks and its cluster's metadata as files, in which one premise after another can be made wrong.

Broker 1 has two registered disks with twelve replicas that are wanted, and one, ``moved-0``, that was given to other
brokers long ago. The metadata is whole, committed, of an hour ago, and newer than everything on the disks: a plan
stages ``moved-0``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from layout import meta_properties, partition_metadata
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.ours import RunJournal, encode_run_journal, run_journal_name
from logstore.scan import scan_all
from reconciler.desired import MetadataIdentity
from reconciler.plan import (  # fmt: skip
    Gate,
    GatesShutError,
    Plan,
    PlanChoice,
    PlanOrigin,
    PlanView,
    make_plan,
    read_history,
)
from reconciler.sources import load
from tools.writers import (
    log_batch,
    no_op_record,
    partition_record,
    register_broker_record,
    remove_topic_record,
    topic_record,
    write_metadata_dir,
)
from tools.writers.kraft_writer import leader_change_batch

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
NOW_MS = 1_790_000_000_000
CLUSTER = "a-cluster"
DISKS = tuple(DirectoryId.from_halves(77, number) for number in (1, 2))
ELSEWHERE = {node: DirectoryId.from_halves(78, node) for node in (2, 3)}
START = 100
"""The offset at which the snapshot ends and the log begins."""


def topic_id(name: str) -> TopicId:
    """An ID for a topic of this name."""
    return TopicId(name.encode().rjust(16, b"-")[:16])


@dataclass
class World:
    """The premises of a plan; a field is what a wrong premise changes."""

    folder: Path
    as_of_ms: int = NOW_MS - HOUR_MS
    now_ms: int = NOW_MS
    choice: PlanChoice = field(default_factory=PlanChoice)
    voters: Sequence[int] = (1,)
    brokers: tuple[tuple[int, bool], ...] = ((1, False), (2, False), (3, False))
    """Node, and whether it is fenced."""
    replicas: Sequence[int] = (2, 3)
    isr: Sequence[int] = (2, 3)
    leader: int = 2
    names_cluster: bool = True
    placed: bool = True
    """Whether the metadata places wanted replicas where they lie, or elsewhere on the broker's disks."""
    directory_ids: list[DirectoryId] = field(default_factory=lambda: list(DISKS))
    extra: list[tuple[str, TopicId | None]] = field(default_factory=list)
    """Further replicas on the first disk: name, and topic ID."""
    ids_on_disk: dict[str, TopicId] = field(default_factory=dict)
    """Topic IDs other than the metadata's, by the name of the replica that holds one."""
    fresh: list[str] = field(default_factory=list)
    """Names of replicas that were written to half an hour after the metadata's newest record."""
    removed: list[str] = field(default_factory=list)
    """Topics that the log removes."""
    on_log: list[Callable[[Path], object]] = field(default_factory=list)
    """What befalls the log's only segment."""
    journals: list[dict[str, str]] = field(default_factory=list)
    """The metadata of plans that were applied here before."""
    journal_ms: int = NOW_MS - 20 * HOUR_MS
    future_file: bool = False
    future_checkpoint: bool = False

    @property
    def disks(self) -> list[Path]:
        return [self.folder / f"disk{number}" for number in range(1, len(self.directory_ids) + 1)]

    def build(self) -> list[str]:
        """Write the disks and the metadata; return what a plan is made of: the metadata's path, and the disks."""
        for path, directory_id in zip(self.disks, self.directory_ids, strict=True):
            path.mkdir(parents=True)
            identity = MetaProperties(1, CLUSTER, 1, directory_id)
            (path / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))
        for number in range(12):
            self._replica(
                self.disks[number % 2], f"t{number}-0", self.ids_on_disk.get(f"t{number}-0", topic_id(f"t{number}"))
            )
        self._replica(self.disks[0], "moved-0", topic_id("moved"))
        for name, chosen in self.extra:
            self._replica(self.disks[0], name, chosen)
        for number in range(2, len(self.directory_ids)):
            self._replica(self.disks[number], "moved-1", topic_id("moved"))
        if self.future_file:
            os.utime(self.disks[1] / "t1-0" / "partition.metadata", (NOW_MS / 1000 + 200_000,) * 2)
        for path in self.disks:  # as old as the metadata, for they say what time it was at least
            os.utime(path / meta_properties.FILE_NAME, (NOW_MS / 1000 - 7200,) * 2)
        if self.future_checkpoint:
            path = self.disks[1] / "replication-offset-checkpoint"
            path.write_text("0\n0\n")
            os.utime(path, (NOW_MS / 1000 + 200_000,) * 2)
        for number, source in enumerate(self.journals):
            journal = RunJournal(f"{number:016x}" * 4, "h", "u", self.journal_ms, self.journal_ms, (source,), ())
            name = run_journal_name(journal.started_ms, journal.plan)
            (self.disks[0] / name).write_bytes(encode_run_journal(journal))
        return [self._write_metadata(), *map(str, self.disks)]

    def _replica(self, disk: Path, name: str, chosen: TopicId | None) -> None:
        path = disk / name
        path.mkdir()
        (path / "00000000000000000000.log").write_bytes(bytes(10))
        if chosen is not None:
            (path / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(chosen))
        for file in path.iterdir():
            before_ms = min(self.as_of_ms or NOW_MS, NOW_MS) - 3 * HOUR_MS
            ms = self.as_of_ms + HOUR_MS // 2 if name in self.fresh else before_ms
            os.utime(file, (ms / 1000, ms / 1000))

    def _write_metadata(self) -> str:
        registered = {1: DISKS, **{node: (ELSEWHERE[node],) for node in ELSEWHERE}}
        records = [
            register_broker_record(node, fenced=fenced, directory_ids=registered[node]) for node, fenced in self.brokers
        ]
        for number in range(12):
            here = DISKS[number % 2 if self.placed else 1 - number % 2]
            chosen = topic_id(f"t{number}")
            records += [
                topic_record(f"t{number}", chosen),
                partition_record(chosen, 0, [1, 2], directories=[here, ELSEWHERE[2]]),
            ]
        records += [topic_record("moved", topic_id("moved"))]
        for index in range(3):
            records += [partition_record(topic_id("moved"), index, self.replicas, isr=self.isr, leader=self.leader)]
        cluster = CLUSTER if self.names_cluster else None
        folder = write_metadata_dir(
            self.folder / "controller",
            **{"snapshot": records, "end_offset": START, "timestamp_ms": self.as_of_ms, "cluster_id": cluster},
        )
        segment = Path(folder) / f"{START:020d}.log"
        batches = [leader_change_batch(START, epoch=2, timestamp_ms=self.as_of_ms, voters=self.voters)]
        for group in ([remove_topic_record(topic_id(name)) for name in self.removed], [no_op_record()] * 20):
            if group:
                offset = START + 1 + (len(self.removed) if group[0] == no_op_record() else 0)
                batches.append(log_batch(group, offset, epoch=2, timestamp_ms=self.as_of_ms))
        segment.write_bytes(b"".join(batches))
        for befall in self.on_log:
            befall(segment)
        return folder

    def identity(self) -> MetadataIdentity:
        """The identity of the metadata, once it is built."""
        return load(str(self.folder / "controller"))[0].identity

    def plan(self) -> Plan:
        """Build everything and plan, as the command line does. Raises GatesShutError."""
        metadata, *disks = self.build()
        view = PlanView.of(list(scan_all(disks)), {}, load(metadata), self.now_ms)
        return make_plan(view, self.choice, PlanOrigin(self.now_ms, "h", "u"), read_history(disks).memory())

    def shut(self) -> list[Gate]:
        """The gates that are shut, each once, in order; none where the plan is made."""
        try:
            self.plan()
        except GatesShutError as error:
            return list(dict.fromkeys(refusal.gate for refusal in error.refusals))
        return []


@dataclass(frozen=True)
class Premise:
    """One wrong premise.

    Attributes:
        gate: the gate that it must shut.
        spoil: makes a world wrong in this way.
        about: what it is about; two premises about one thing exclude each other.
    """

    gate: Gate
    spoil: Callable[[World], object]
    about: frozenset[str] = frozenset()


def set_to(**fields: object) -> Callable[[World], None]:
    """Make a spoiler that sets fields of a world."""

    def spoil(world: World) -> None:
        for name, value in fields.items():
            setattr(world, name, value)

    return spoil


def holds(name: str, chosen: TopicId | None, *, fresh: bool = False) -> Callable[[World], None]:
    """Make a spoiler that puts one more replica on the first disk."""

    def spoil(world: World) -> None:
        world.extra.append((name, chosen))
        world.fresh += [name] if fresh else []

    return spoil


def on_log(befall: Callable[[Path], object]) -> Callable[[World], None]:
    """Make a spoiler of the log's segment."""
    return lambda world: world.on_log.append(befall)


def applied(**source: object) -> Callable[[World], None]:
    """Make a spoiler that notes an earlier plan from KRaft metadata in the journal."""
    texts = {"source": "kraft", "cluster_id": CLUSTER, **{key: str(value) for key, value in source.items()}}
    return lambda world: world.journals.append(texts)


def applied_later(world: World) -> None:
    """Note an earlier plan of which the journal knows only a later time."""
    applied(timestamp_ms=world.as_of_ms + 2 * HOUR_MS)(world)


def _recreated(world: World) -> None:
    world.ids_on_disk["t1-0"] = topic_id("t1-new")
    world.fresh.append("t1-0")


def _picked_one_of_many(world: World) -> None:
    world.extra += [(f"gone{number}-0", topic_id(f"gone{number}")) for number in range(8)]
    world.choice = replace(world.choice, topics=("[!g]*",))


def _picked_by_need(world: World) -> None:
    world.extra += [(f"lost{number}-0", topic_id(f"lost{number}")) for number in range(8)]
    world.choice = replace(world.choice, need=1)


def _few_are_allowed(world: World) -> None:
    world.extra += [("few-0", topic_id("few"))]
    world.choice = replace(world.choice, policy=replace(world.choice.policy, most_count=1))


def _internal(world: World) -> None:
    world.extra.append(("my-state-0", topic_id("my-state")))
    world.choice = replace(world.choice, internal=("my-*",))


def _copied_disk(world: World) -> None:
    world.directory_ids.append(DISKS[0])


def _remove(world: World) -> None:
    world.voters, world.removed = (1, 2, 3), ["t3"]


PREMISES: dict[str, Premise] = {
    "a topic created since": Premise(Gate.NEWER, holds("new-0", topic_id("new"), fresh=True)),
    "a topic re-created since": Premise(Gate.NEWER, _recreated),
    "a replica moved here since": Premise(Gate.NEWER, holds("moved-2", topic_id("moved"), fresh=True)),
    "a replica written to since": Premise(Gate.NEWER, lambda world: world.fresh.append("moved-0")),
    "a log cut in its last batch": Premise(
        Gate.INCOMPLETE, on_log(lambda log: log.write_bytes(log.read_bytes()[:-3])), frozenset({"log"})
    ),
    "a log that ends in zeros": Premise(
        Gate.INCOMPLETE, on_log(lambda log: log.write_bytes(log.read_bytes() + bytes(4096))), frozenset({"log"})
    ),
    "a log with a damaged end": Premise(
        Gate.INCOMPLETE, on_log(lambda log: log.write_bytes(log.read_bytes()[:-1] + b"\xff")), frozenset({"log"})
    ),
    "a snapshot without its log": Premise(
        Gate.INCOMPLETE, on_log(lambda log: log.unlink()), frozenset({"log", "removal"})
    ),
    "no time": Premise(Gate.TIME, set_to(as_of_ms=0), frozenset({"time"})),
    "a time in the future": Premise(Gate.TIME, set_to(as_of_ms=NOW_MS + 10 * DAY_MS), frozenset({"time"})),
    "old metadata": Premise(Gate.AGE, set_to(as_of_ms=NOW_MS - 25 * HOUR_MS), frozenset({"time"})),
    "records that may never have been committed": Premise(Gate.UNCOMMITTED, _remove, frozenset({"removal"})),
    "all topics but those that make the share too large": Premise(
        Gate.SHARE, _picked_one_of_many, frozenset({"choice"})
    ),
    "the need for one of many that look unwanted": Premise(
        Gate.SHARE, _picked_by_need, frozenset({"choice", "picked"})
    ),
    "one more than may look unwanted": Premise(Gate.COUNT, _few_are_allowed),
    "a disk that nobody registered": Premise(
        Gate.LOG_DIR,
        lambda world: world.directory_ids.__setitem__(0, DirectoryId.from_halves(79, 1)),
        frozenset({"disk"}),
    ),
    "another disk under a copied meta.properties": Premise(Gate.LOG_DIR, _copied_disk, frozenset({"disk"})),
    "a disk with nothing that belongs there": Premise(Gate.LOG_DIR, set_to(placed=False), frozenset({"disk"})),
    "in sync on a broker that is not registered": Premise(
        Gate.LIVE_COPY, set_to(replicas=(4, 2), isr=(4,), leader=4), frozenset({"copies"})
    ),
    "in sync on fenced brokers": Premise(
        Gate.LIVE_COPY, set_to(brokers=((1, False), (2, True), (3, True))), frozenset({"copies"})
    ),
    "a partition without a leader": Premise(Gate.LIVE_COPY, set_to(leader=-1), frozenset({"copies"})),
    "nothing in sync": Premise(Gate.SOLE_COPY, set_to(isr=(), leader=-1), frozenset({"copies"})),
    "no ID and an unknown name": Premise(Gate.NO_ID, holds("nameless-0", None)),
    "a topic of Kafka": Premise(Gate.INTERNAL, holds("__offsets-0", topic_id("__offsets"))),
    "the schemas": Premise(Gate.INTERNAL, holds("_schemas-0", topic_id("_schemas"))),
    "the offsets of Connect": Premise(Gate.INTERNAL, holds("connect-offsets-0", topic_id("offsets"))),
    "a topic that was named internal": Premise(Gate.INTERNAL, _internal),
    "an offset below an earlier one": Premise(Gate.WENT_BACK, applied(epoch=2, offset=4078)),
    "an epoch below an earlier one": Premise(Gate.WENT_BACK, applied(epoch=3, offset=90)),
    "a time below an earlier one": Premise(Gate.WENT_BACK, applied_later, frozenset({"time"})),
    "a clock behind a journal": Premise(
        Gate.CLOCK, lambda world: (applied()(world), set_to(journal_ms=NOW_MS + HOUR_MS)(world))
    ),
    "a clock behind the disk": Premise(Gate.CLOCK, set_to(future_file=True)),
    "a clock behind a checkpoint": Premise(Gate.CLOCK, set_to(future_checkpoint=True)),
    "metadata that names no cluster": Premise(Gate.CLUSTER, set_to(names_cluster=False)),
    "metadata that shrank": Premise(Gate.SHRUNK, applied(topics=40, replicas=80)),
}

PICKED = frozenset(
    {Gate.NEWER, Gate.UNCOMMITTED, Gate.LOG_DIR, Gate.SOLE_COPY, Gate.LIVE_COPY, Gate.NO_ID, Gate.INTERNAL}
)
"""Gates that only what was picked can shut; the safest set for a need leaves out what would shut them."""


def exclude_each_other(one: Premise, two: Premise) -> bool:
    """Whether two premises cannot both be wrong, or the one leaves nothing that the other could condemn."""
    gates = {one.gate, two.gate}
    by_need = any("picked" in each.about for each in (one, two)) and bool(gates & PICKED)
    # Metadata without a time is neither older nor newer than anything.
    timeless = PREMISES["no time"] in (one, two) and Gate.NEWER in gates
    return bool(one.about & two.about) or by_need or timeless
