"""A store driven at random against a model of a few dictionaries: whatever the order, the two say the same.

Three log dirs that are ours, namespaced, a clock that is moved by hand, and all that a store can do: make, give an ID,
stage, restore, purge, move between disks, write offsets, create and delete namespaces, move and rename topics; then
close or crash (the lock goes, what was written stays) and open again. After each step every look-up is compared, and at
each opening what lies on the disks as well.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.ids import TopicId
from layout.topic import TopicPartition, namespace_of
from logstore import (
    DELETE_DELAY,
    STALE_DELAY,
    InconsistentTopicIdError,
    InvalidNamespaceError,
    KafkaError,
    LogStoreError,
    NameTakenError,
    Settings,
    UnknownReplicaError,
)
from logstore.clock import ManualClock
from logstore.namespaces import create_namespace, delete_namespace, list_namespaces, rename_topic
from logstore.purge import PurgeRules, purge
from logstore.staging import Staged
from logstore.store import LogStore
from tests.logstore.engine import HOUR_MS, NOW_MS, formatted, identity, opened

NAMESPACES = ["", "org", "org:apache"]
NAMES = ["orders", "payments", "clicks"]
IDS = [TopicId.from_halves(7, number) for number in (1, 2, 3)]
LOG_DIRS = 3
DELAYS = Settings({"": {STALE_DELAY: 2 * HOUR_MS, DELETE_DELAY: HOUR_MS}, "org:": {STALE_DELAY: 5 * HOUR_MS}})
MEMORY = Path("/dev/shm")


@dataclass
class Held:
    """A replica as the model has it, live or staged."""

    log_dir: int
    topic_id: TopicId | None
    content: str
    offset: int | None = None
    at: TopicPartition | None = None
    due_ms: int = 0


@dataclass
class Model:
    """What a store should say."""

    live: dict[TopicPartition, Held] = field(default_factory=dict)
    staged: list[Held] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=set)

    def topics(self) -> set[str]:
        return {partition.topic for partition in self.live}


topics = st.builds(
    lambda namespace, name: f"{namespace}:{name}" if namespace else name,
    st.sampled_from(NAMESPACES),
    st.sampled_from(NAMES),
)
partitions = st.builds(TopicPartition, topics, st.integers(0, 1))
choices = st.integers(0, 999)
topic_ids = st.sampled_from([None, *IDS])
numbers = st.integers(0, LOG_DIRS - 1)


class StoreMachine(RuleBasedStateMachine):
    """Each rule does one thing to both, and expects the same refusal of the store that the model foresees."""

    @initialize()
    def open_first(self) -> None:
        """Format the log dirs in memory, where there is such a place."""
        self.folder = Path(tempfile.mkdtemp(prefix="logstore-machine-", dir=MEMORY if MEMORY.is_dir() else None))
        self.paths = [formatted(self.folder / f"d{n}", n, scheme="namespaced") for n in range(LOG_DIRS)]
        self.clock = ManualClock(NOW_MS)
        self.model = Model()
        self.count = 0
        self.store: LogStore = self._opened()
        self.create_namespace("org")
        self.create_what_is_missing(1)

    def teardown(self) -> None:
        """Close and forget all."""
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

    def _opened(self) -> LogStore:
        return opened(*self.paths, clock=self.clock, settings=DELAYS)

    def _refused(self, error: type[Exception], action: object) -> None:
        assert callable(action)
        try:
            action()
        except error:
            return
        raise AssertionError(f"{error.__name__} was expected")

    def _fill(self, log_dir: int, path: str) -> str:
        """Write something into a replica, as a broker does, that no other has."""
        self.count += 1
        content = f"records {self.count}\n"
        (self.paths[log_dir] / path / "00000000000000000000.log").write_text(content)
        return content

    def _pick(self, at: TopicPartition, choice: int) -> TopicPartition:
        """One that is live, four times out of five."""
        live = sorted(self.model.live)
        return live[choice % len(live)] if live and choice % 5 else at

    # Replicas

    @rule(seed=choices)
    def create_what_is_missing(self, seed: int) -> None:
        """So that there is something to work on."""
        for number, name in enumerate(NAMES):
            for namespace in ["", *sorted(self.model.namespaces)]:
                at = TopicPartition(f"{namespace}:{name}" if namespace else name, (seed + number) % 2)
                if at not in self.model.live:
                    self.create(at, [None, *IDS][(seed + number) % 4], None)

    @rule(at=partitions, topic_id=topic_ids, named=st.none() | numbers)
    def create(self, at: TopicPartition, topic_id: TopicId | None, named: int | None) -> None:
        """Make a replica, anywhere or on one log dir."""
        directory_id = None if named is None else identity(named).directory_id

        def make() -> object:
            return self.store.create(at, topic_id, directory_id=directory_id)

        if at in self.model.live:
            self._refused(NameTakenError, make)
        elif at.namespace and at.namespace not in self.model.namespaces:
            self._refused(InvalidNamespaceError, make)
        else:
            counts = [sum(held.log_dir == n for held in self.model.live.values()) for n in range(LOG_DIRS)]
            made = self.store.create(at, topic_id, directory_id=directory_id)
            log_dir = self.paths.index(Path(made.log_dir))
            assert log_dir == named if named is not None else counts[log_dir] == min(counts)
            self.model.live[at] = Held(log_dir, topic_id, self._fill(log_dir, made.path))

    @rule(other=partitions, choice=choices, topic_id=st.sampled_from(IDS))
    def assign_topic_id(self, other: TopicPartition, choice: int, topic_id: TopicId) -> None:
        """Give an ID; one that is there is never replaced."""
        at = self._pick(other, choice)
        held = self.model.live.get(at)
        if held is None:
            self._refused(UnknownReplicaError, lambda: self.store.assign_topic_id(at, topic_id))
        elif held.topic_id not in (None, topic_id):
            self._refused(InconsistentTopicIdError, lambda: self.store.assign_topic_id(at, topic_id))
        else:
            assert self.store.assign_topic_id(at, topic_id).topic_id == topic_id
            held.topic_id = topic_id

    @rule(
        others=st.lists(st.tuples(partitions, choices), max_size=7),
        setting=st.sampled_from([STALE_DELAY, DELETE_DELAY]),
    )
    def stage(self, others: list[tuple[TopicPartition, int]], setting: str) -> None:
        """Stage some, and ask for some that are not there."""
        wanted = [self._pick(at, choice) for at, choice in others]
        outcome = self.store.stage(wanted, "STALE_ID", "by the machine", setting=setting)
        here = {at for at in wanted if at in self.model.live}
        assert {staged.partition for staged in outcome.staged} == here
        assert {refused.candidate.partition for refused in outcome.refused} == set(wanted) - here
        for at in here:
            self._goes(at, self.clock.now_ms() + DELAYS.of(at.topic, setting))

    def _goes(self, at: TopicPartition, due_ms: int) -> None:
        held = self.model.live.pop(at)
        held.at, held.due_ms = at, due_ms
        self.model.staged.append(held)

    @precondition(lambda self: self.model.staged)
    @rule(choice=choices)
    def restore(self, choice: int) -> None:
        """Bring one back, where nothing stands in its way."""
        found = self.store.staged()
        staged = found[choice % len(found)]
        held = self._held_by(staged)
        at = held.at
        assert at is not None
        if at in self.model.live:
            self._refused(NameTakenError, lambda: self.store.restore(staged))
        elif at.namespace and at.namespace not in self.model.namespaces:
            self._refused(InvalidNamespaceError, lambda: self.store.restore(staged))
        else:
            assert self.store.restore(staged).topic_id == held.topic_id
            self.model.staged.remove(held)
            self.model.live[at] = held

    def _held_by(self, staged: Staged) -> Held:
        """A moved replica and its original have the same content, so the other fields must tell them apart."""
        content = (Path(staged.log_dir) / staged.location / "00000000000000000000.log").read_text()
        reported = (content, staged.log_dir, staged.due_ms, staged.partition, _offset_in(staged))
        for held in self.model.staged:
            if (held.content, str(self.paths[held.log_dir]), held.due_ms, held.at, held.offset) == reported:
                return held
        raise AssertionError(f"nobody staged {reported}")

    @rule(later_ms=st.sampled_from([0, HOUR_MS, 6 * HOUR_MS]))
    def purge(self, later_ms: int) -> None:
        """What is due by then goes for ever, and nothing else."""
        self.clock.advance(later_ms)
        report = purge(self.store.log_dirs, PurgeRules(self.clock.now_ms()), workers=1, look_at_processes=False)
        due = [held for held in self.model.staged if held.due_ms <= self.clock.now_ms()]
        assert report.directories == len(due)
        self.model.staged = [held for held in self.model.staged if held not in due]

    @rule(other=partitions, choice=choices, to=numbers)
    def move_to_another_disk(self, other: TopicPartition, choice: int, to: int) -> None:
        """The copy lives on, and the original is staged."""
        at = self._pick(other, choice)
        directory_id = identity(to).directory_id
        assert directory_id is not None
        held = self.model.live.get(at)
        if held is None:
            self._refused(UnknownReplicaError, lambda: self.store.move(at, directory_id))
            return
        assert self.store.move(at, directory_id).log_dir == str(self.paths[to])
        if held.log_dir != to:
            self._goes(at, self.clock.now_ms() + DELAYS.of(at.topic, DELETE_DELAY))
            self.model.live[at] = Held(to, held.topic_id, held.content, held.offset)

    @rule(other=partitions, choice=choices, offset=st.integers(0, 1 << 40))
    def write_offsets(self, other: TopicPartition, choice: int, offset: int) -> None:
        """A recovery point, of a replica that is here."""
        at = self._pick(other, choice)
        held = self.model.live.get(at)
        if held is None:
            self._refused(
                UnknownReplicaError, lambda: self.store.write_offsets(RECOVERY_POINT_CHECKPOINT, {at: offset})
            )
        else:
            self.store.write_offsets(RECOVERY_POINT_CHECKPOINT, {at: offset})
            held.offset = offset

    # Namespaces and names

    @rule(namespace=st.sampled_from(NAMESPACES[1:]))
    def create_namespace(self, namespace: str) -> None:
        """With all its tiers."""
        if namespace in self.model.namespaces:
            self._refused(InvalidNamespaceError, lambda: create_namespace(self.store, namespace))
        else:
            create_namespace(self.store, namespace)
            self.model.namespaces |= {namespace, *([namespace_of(namespace)] if namespace_of(namespace) else [])}

    @rule(namespace=st.sampled_from(NAMESPACES[1:]), recursive=st.booleans())
    def delete_namespace(self, namespace: str, recursive: bool) -> None:
        """Empty, or with all that is in it."""
        inside = [at for at in self.model.live if f"{at.namespace}:".startswith(f"{namespace}:")]
        below = [each for each in self.model.namespaces if each.startswith(f"{namespace}:")]
        if namespace not in self.model.namespaces or (not recursive and (inside or below)):
            self._refused(InvalidNamespaceError, lambda: delete_namespace(self.store, namespace, recursive=recursive))
            return
        delete_namespace(self.store, namespace, recursive=recursive)
        for at in inside:
            self._goes(at, self.clock.now_ms() + DELAYS.of(at.topic, STALE_DELAY))
        self.model.namespaces -= {namespace, *below}

    @rule(other=partitions, choice=choices, new_topic=topics)
    def rename_topic(self, other: TopicPartition, choice: int, new_topic: str) -> None:
        """To another name or namespace; offsets come along."""
        topic = self._pick(other, choice).topic
        own = [at for at in self.model.live if at.topic == topic]
        namespace = namespace_of(new_topic)
        if not own:
            self._refused(UnknownReplicaError, lambda: rename_topic(self.store, topic, new_topic))
        elif new_topic in self.model.topics():
            self._refused(NameTakenError, lambda: rename_topic(self.store, topic, new_topic))
        elif namespace and namespace not in self.model.namespaces:
            self._refused(InvalidNamespaceError, lambda: rename_topic(self.store, topic, new_topic))
        else:
            rename_topic(self.store, topic, new_topic)
            for at in own:
                self.model.live[TopicPartition(new_topic, at.partition)] = self.model.live.pop(at)

    # Time, and the end of a process

    @rule(milliseconds=st.sampled_from([1, HOUR_MS, 3 * HOUR_MS, -HOUR_MS]))
    def time_goes_by(self, milliseconds: int) -> None:
        """Or backwards."""
        self.clock.advance(milliseconds)

    @rule(crash=st.booleans())
    def open_again(self, crash: bool) -> None:
        """After a clean stop, or after the process was killed."""
        if crash:
            for log_dir in self.store.log_dirs:
                log_dir.abandon()
        else:
            self.store.close()
        self.store = self._opened()
        self._compare_disks()

    def _compare_disks(self) -> None:
        for at, held in self.model.live.items():
            replica = self.store.get(at)
            path = self.paths[held.log_dir] / replica.path
            assert (path / "00000000000000000000.log").read_text() == held.content
            names = {"00000000000000000000.log", *(["partition.metadata"] if held.topic_id is not None else [])}
            assert {file.name for file in path.iterdir()} == names, "nothing of the engine's is left in a live replica"
        for n, log_dir in enumerate(self.store.log_dirs):
            reported = dict(log_dir.checkpoints.entries(RECOVERY_POINT_CHECKPOINT))
            known = {
                (at.topic, at.partition): held.offset
                for at, held in self.model.live.items()
                if held.log_dir == n and held.offset is not None
            }
            assert reported == known

    @invariant()
    def they_say_the_same(self) -> None:
        """Every look-up, after every step."""
        if not hasattr(self, "store"):
            return
        assert {replica.partition for replica in self.store.replicas()} == set(self.model.live)
        assert self.store.duplicates == []
        assert self.store.offline == {}
        assert list_namespaces(self.store) == sorted(self.model.namespaces)
        for at, held in self.model.live.items():
            replica = self.store.get(at)
            assert (replica.topic_id, replica.log_dir) == (held.topic_id, str(self.paths[held.log_dir]))
            for topic_id in IDS:
                fenced = held.topic_id not in (None, topic_id)
                answer = KafkaError.INCONSISTENT_TOPIC_ID if fenced else KafkaError.NONE
                assert self.store.fence(at, topic_id) == answer
        for topic_id in IDS:
            having = {at.topic for at, held in self.model.live.items() if held.topic_id == topic_id}
            found = self.store.topic_of(topic_id)
            assert found in having if having else found is None
        self._compare_staged()

    def _compare_staged(self) -> None:
        staged_now = self.store.staged()
        assert [staged.problem for staged in staged_now if staged.problem is not None] == []
        seen = [
            (staged.partition, staged.topic_id, staged.due_ms, staged.log_dir, _offset_in(staged))
            for staged in staged_now
        ]
        known = [
            (held.at, held.topic_id or TopicId.ZERO, held.due_ms, str(self.paths[held.log_dir]), held.offset)
            for held in self.model.staged
        ]
        assert sorted(map(repr, seen)) == sorted(map(repr, known))


def _offset_in(staged: Staged) -> int | None:
    assert staged.record is not None
    return staged.record.checkpoints.get(RECOVERY_POINT_CHECKPOINT)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


def test_a_refusal_of_the_store_is_one_of_its_own_errors() -> None:
    refusals = (NameTakenError, InvalidNamespaceError, UnknownReplicaError, InconsistentTopicIdError)
    assert all(issubclass(refusal, LogStoreError) for refusal in refusals)
