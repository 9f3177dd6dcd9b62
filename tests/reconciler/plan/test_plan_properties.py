"""For any disks and any metadata, a plan does what it says, once, and can be undone."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from layout import checkpoint, meta_properties, partition_metadata
from layout.ids import TopicId
from layout.scheme import Scheme, partition_path
from layout.topic import TopicPartition
from logstore.namespaces import carry_out, plan_create
from logstore.repair import RepairStatus
from logstore.staging import forget_stray
from logstore.store import LogStore, StoreOptions
from reconciler.broker import Broker as RequestBroker
from reconciler.errors import RefusedError
from reconciler.plan import Action, ActionKind, PlanChoice, Policy, encode_plan, parse_plan
from reconciler.protocol import LeaderAndIsrRequest, PartitionState, RequestType, TopicState
from reconciler.sources.requests import ReceivedRequest, merge
from reconciler.verdicts import Verdict
from tests.logstore.engine import contents
from tests.reconciler.plan.plan_broker import HOST, PlanBroker

TOPICS = ("a", "b", "__consumer_offsets", "with.dots_and-0")
IN_NAMESPACES = ("org:apache:a", "org:b")
IDS = {
    topic: tuple(TopicId(bytes([10 * place + number]) * 16) for number in (1, 2, 3))
    for place, topic in enumerate((*TOPICS, *IN_NAMESPACES))
}
"""Each topic may have had several IDs; no two topics ever have the same."""

DAMAGE = (b"", b"version: 1\ntopic_id: x", b"\xff\xfe", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")

HELD = st.one_of(st.sampled_from([0, 1, 2]), st.none(), st.sampled_from(DAMAGE))
"""What a replica's ``partition.metadata`` says: one of its topic's IDs, nothing, or what cannot be read."""

OFFSETS = (checkpoint.RECOVERY_POINT_CHECKPOINT, checkpoint.HIGH_WATERMARK_CHECKPOINT)
DISK = st.sampled_from([0, 1])


@dataclass(frozen=True)
class World:
    """Disks and metadata: (topic, partition) → what it holds and on which disk it lies."""

    scheme: str | None
    live: dict[tuple[str, int], tuple[int | bytes | None, int]]
    doubled: set[tuple[str, int]]
    strays: dict[tuple[str, int], tuple[int | bytes | None, int]]
    staged: dict[tuple[str, int], int]
    wanted: dict[str, tuple[int | None, dict[int, tuple[int, ...]]]]
    foreign: bool
    offsets: bool
    strays_too: bool


@st.composite
def worlds(draw: st.DrawFn, schemes: tuple[str | None, ...] = (None, "flat", "namespaced", "by-topic-id")) -> World:
    scheme = draw(st.sampled_from(schemes))
    topics = (*TOPICS, *IN_NAMESPACES) if scheme == "namespaced" else TOPICS
    at = st.tuples(st.sampled_from(topics), st.sampled_from([0, 1, 11]))
    placed = st.tuples(HELD, DISK)
    live = draw(st.dictionaries(at, placed, max_size=6))
    assigned = st.dictionaries(
        st.sampled_from([0, 1, 11]), st.sampled_from([(1, 2), (2, 3), (1,), (2, 1)]), min_size=1, max_size=3
    )
    return World(
        scheme,
        live,
        draw(st.sets(st.sampled_from(sorted(live)), max_size=1)) if live else set(),
        draw(st.dictionaries(at, placed, max_size=2)) if scheme is None else {},
        draw(st.dictionaries(at, st.sampled_from([0, 1, 2]), max_size=2)),
        draw(st.dictionaries(st.sampled_from(topics), st.tuples(st.sampled_from([0, 1, None]), assigned), max_size=4)),
        *(draw(st.booleans()) for _ in range(3)),
    )


def directory(topic: str, partition: int) -> str:
    return f"{topic.replace(':', '/')}-{partition}"


def scheme_of(broker: PlanBroker) -> str | None:
    return meta_properties.parse((broker.log_dirs[0] / meta_properties.FILE_NAME).read_bytes()).scheme


def put(broker: PlanBroker, at: tuple[str, int], held: int | bytes | None, disk: int, suffix: str = "") -> None:
    if scheme_of(broker) == "by-topic-id":
        # The directory's name is the ID, so there is no replica without one.
        topic_id = IDS[at[0]][held if isinstance(held, int) else 2]
        path = broker.replica(partition_path(Scheme.BY_TOPIC_ID, TopicPartition(*at), topic_id), None, disk=disk)
        (path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (path / "partition.metadata").write_bytes(partition_metadata.encode_json(topic_id, *at))
        return
    topic_id = IDS[at[0]][held] if isinstance(held, int) else None
    path = broker.replica(directory(*at) + suffix, topic_id, disk=disk, size=10 + at[1])
    (path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    if isinstance(held, bytes):
        (path / "partition.metadata").write_bytes(held)


def put_files(world: World, disk: int, path: Path) -> None:
    """The contents of a log dir besides replicas: foreign files, and offsets of every live replica."""
    if world.foreign:
        (path / "lost+found").mkdir()
        (path / "notes.txt").write_text("mine")
    on_disk = {at: 100 + at[1] for at, (_, where) in world.live.items() if where == disk}
    if world.offsets:
        for name in OFFSETS:
            (path / name).write_bytes(checkpoint.encode_offsets(on_disk))


@contextmanager
def made(world: World) -> Iterator[PlanBroker]:
    """The disks of a world; the engine has staged the staged replicas."""
    with tempfile.TemporaryDirectory() as folder:
        broker = PlanBroker(Path(folder), world.scheme)
        options = StoreOptions(clock=broker.clock, jobs=0)
        if world.scheme == "namespaced":
            with LogStore.open(broker.paths, options) as store:
                for namespace in ("org", "org:apache"):
                    carry_out(store, plan_create(store, namespace))
        for at, which in world.staged.items():
            put(broker, at, which, 0)
        with LogStore.open(broker.paths, options) as store:
            store.stage([each.partition for each in store.replicas()], "STALE_ID", "staged before")
        for at, (held, disk) in world.live.items():
            put(broker, at, held, disk)
        for at in world.doubled:
            put(broker, at, world.live[at][0], 1 - world.live[at][1])
        for number, (at, (held, disk)) in enumerate(world.strays.items()):
            put(broker, at, held, disk, f".{number:032x}-stray")
        for disk, path in enumerate(broker.log_dirs):
            put_files(world, disk, path)
        for topic, (which, assigned) in world.wanted.items():
            for partition, nodes in assigned.items():
                broker.wanted(topic, None if which is None else IDS[topic][which], partition, nodes=nodes)
        yield broker


def choice(world: World) -> PlanChoice:
    return PlanChoice(Policy.kip516(), strays=world.strays_too)


def trees(broker: PlanBroker) -> dict[str, Any]:
    """All bytes below the folder of the disks, without locks and journals; offset checkpoints, whose lines have no
    order, by what they say."""
    found: dict[str, Any] = {}
    for name, look in contents(broker.log_dirs[0].parent).items():
        base = os.path.basename(name)
        if base in OFFSETS:
            found[name] = checkpoint.parse_offsets(look[-1], base)
        elif base not in (".lock", ".logstore_unclean", ".kafka_cleanshutdown") and ".logstore_run." not in name:
            found[name] = look
    return found


def without_places(tree: dict[str, Any]) -> dict[str, Any]:
    """A tree without staging roots, ledgers and the prefix directories of topic IDs, which stay when they are empty."""
    place = re.compile(r".*\.deleting|.*/deleting|.*\.deleting/.*|.*/\.logstore_ledger|d[12]/[0-9a-f]{2}")
    return {name: look for name, look in tree.items() if not place.fullmatch(name)}


def lying(broker: PlanBroker) -> int:
    """How many replicas lie anywhere below the disks."""
    return sum(1 for _ in broker.log_dirs[0].parent.rglob("leader-epoch-checkpoint"))


@settings(max_examples=80)
@given(worlds())
def test_after_a_plan_was_applied_there_is_nothing_left_of_what_it_meant_to_do(world: World) -> None:
    with made(world) as broker:
        before, there = broker.plan(choice(world)), lying(broker)
        outcome = broker.apply(before)
        assert {each.status for each in outcome.results} <= {RepairStatus.DONE}, outcome.results
        for kind in {action.kind for action in before.actions}:
            event(kind.value)
        after = broker.plan(choice(world))
        assert after.actions == ()
        # What a plan leaves alone is what it left alone before, or what the disks were short of.
        held = {(each.verdict, each.row.topic) for each in broker.view().judged}
        unwanted = {Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC}
        assert not {verdict for verdict, _ in held} & unwanted
        assert lying(broker) == there


@settings(max_examples=40)
@given(worlds())
def test_applying_a_plan_twice_changes_nothing_the_second_time(world: World) -> None:
    with made(world) as broker:
        plan = broker.plan(choice(world))
        broker.apply(plan)
        between = trees(broker)
        again = broker.apply(parse_plan(encode_plan(plan)))
        assert {each.status for each in again.results} <= {RepairStatus.ALREADY}, again.results
        assert trees(broker) == between
        assert again.journals == []


def take_back(broker: PlanBroker, action: Action) -> None:
    """Undo one action, by its own undo where that removes a file, and by the engine where it restores."""
    if action.kind is ActionKind.CREATE:
        shutil.rmtree(f"{action.log_dir}/{action.name}")
    elif action.kind is ActionKind.STAGE:
        with LogStore.open(broker.paths, StoreOptions(clock=broker.clock, jobs=0)) as store:
            (found,) = (each for each in store.staged() if (each.log_dir, each.inode) == (action.log_dir, action.inode))
            store.restore(found)
    else:
        words = (action.undo or "").split()
        if words[0] == "rm":
            Path(words[1]).unlink()
            return
        with LogStore.open(broker.paths, StoreOptions(clock=broker.clock, jobs=0)) as store:
            (log_dir,) = (each for each in store.log_dirs if each.path == action.log_dir)
            forget_stray(log_dir, *(each for each in store.staged() if each.name == action.name))


@settings(max_examples=80)
@given(worlds())
def test_what_was_applied_is_taken_back_to_the_last_byte(world: World) -> None:
    with made(world) as broker:
        plan = broker.plan(choice(world))
        actions = [each for each in plan.actions if each.kind is not ActionKind.RESTORE]
        kept = {each.fingerprint for each in actions}
        first = without_places(trees(broker))
        taken_out = [number for number, each in enumerate(plan.actions) if each.fingerprint not in kept]
        text = encode_plan(plan).decode().splitlines(keepends=True)
        lines = [number for number, line in enumerate(text) if line.startswith('    {"kind"')]
        dropped = {lines[number] for number in taken_out}
        edited = parse_plan("".join(line for number, line in enumerate(text) if number not in dropped).encode())
        # A replica that was to be restored may be what a staged one made room for; the rest stands for itself.
        assert broker.apply(edited).is_complete
        for action in sorted(edited.actions, key=lambda each: each.kind is not ActionKind.CREATE):
            take_back(broker, action)
        assert without_places(trees(broker)) == first
        assert broker.plan(choice(world)).actions == plan.actions


@settings(max_examples=40)
@given(worlds())
def test_a_plan_for_another_machine_or_other_disks_changes_nothing(world: World) -> None:
    with made(world) as broker:
        plan = broker.plan(choice(world))
        before = trees(broker)
        (broker.log_dirs[0] / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=1\n")
        with pytest.raises(RefusedError, match="it was made on"):
            broker.apply(plan, host=f"not-{HOST}")
        if plan.actions:
            with pytest.raises(RefusedError, match="is not the log dir that it was made for"):
                broker.apply(plan)
        else:
            assert broker.apply(plan).results == []
        after = trees(broker)
        before.pop("d1/meta.properties")
        after.pop("d1/meta.properties")
        assert after == before


def live(log_dirs: list[Path]) -> dict[str, str | None]:
    """Live replicas on a broker's disks: name → topic ID."""
    with LogStore.open([str(path) for path in log_dirs], StoreOptions(jobs=0)) as store:
        return {str(each.partition): None if each.topic_id is None else str(each.topic_id) for each in store.replicas()}


def as_request(world: World) -> LeaderAndIsrRequest:
    """The metadata of a world as its controller would send it to broker 1."""
    topics = [
        TopicState(
            name,
            None if which is None else IDS[name][which],
            tuple(PartitionState(number, 1, nodes[0], 0, nodes, 0, nodes) for number, nodes in assigned.items()),
        )
        for name, (which, assigned) in world.wanted.items()
    ]
    return LeaderAndIsrRequest(9, 1, tuple(topics), type=RequestType.FULL)


# KIP516-5
@settings(max_examples=40)
@given(worlds(schemes=("flat", "namespaced")))
def test_a_plan_and_a_full_request_of_the_same_metadata_come_to_the_same(world: World) -> None:
    # A plan is not made from metadata without a topic, which a gate refuses.
    assume(world.wanted)
    request = as_request(world)
    with made(world) as broker, tempfile.TemporaryDirectory() as folder:
        copies = [Path(shutil.copytree(path, Path(folder) / path.name)) for path in broker.log_dirs]
        with LogStore.open([str(path) for path in copies], StoreOptions(clock=broker.clock, jobs=0)) as store:
            RequestBroker(store).handle(request)
        state = merge([ReceivedRequest(request, 1, "r.json")], "r.json", "d" * 64)
        broker.apply(broker.plan(choice(world), states=(state,)))
        # A plan is more careful where other replicas of the topic hold another ID; a broker writes the controller's ID.
        bare = {f"{topic}-{number}" for (topic, number), (held, _) in world.live.items() if held is None}
        # And it leaves all that is live twice to repair; a request stages the copies of a topic that was re-created.
        doubled = {f"{topic}-{number}" for topic, number in world.doubled}
        planned, handled = (
            {name: held for name, held in live(paths).items() if name not in doubled}
            for paths in (broker.log_dirs, copies)
        )
        assert doubled <= live(broker.log_dirs).keys()
        assert planned.keys() == handled.keys()
        assert {name for name in planned if planned[name] != handled[name]} <= bare
