"""Changes of verdicts, step by step on a real log dir without events; the result equals that of a fresh start."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import DirectoryId, TopicId
from layout.ours import StagedRecord
from logstore.scan import scan
from logstore.watch import RowChange, WatchedLogDir
from logstore.watch.row_cache import net_changes
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity, by_cluster
from reconciler.verdicts import Verdict, compare
from reconciler.watch import VerdictChange
from reconciler.watch import verdicts as module
from reconciler.watch.verdicts import VerdictWatch
from tests.logstore.engine import write_ledger

A, B, C, OLD = (TopicId(bytes([number] * 16)) for number in (1, 2, 3, 4))
HOMES = [DirectoryId(bytes([number] * 16)) for number in (100, 101)]
NOW_MS = 1_700_000_000_000
FUTURE, STRAY, DELETE = ("." + "a" * 32 + suffix for suffix in ("-future", "-stray", "-delete"))


class Machine:
    """Two log dirs of broker 1, looked at by hand."""

    def __init__(self, folder: Path) -> None:
        self.folders = [folder / "disk-0", folder / "disk-1"]
        self.now_ms = NOW_MS
        for path, home in zip(self.folders, HOMES, strict=True):
            path.mkdir(parents=True)
            text = f"version=1\ncluster.id=C\nnode.id=1\ndirectory.id={home}\n"
            (path / "meta.properties").write_text(text)
        self.disks = {str(path): WatchedLogDir(str(path)) for path in self.folders}
        self.verdicts = VerdictWatch(self.disks, lambda: self.now_ms)
        self.states: list[DesiredState] = []

    def replica(self, name: str, topic_id: TopicId | None = A, disk: int = 0) -> Path:
        path = self.folders[disk] / name
        path.mkdir(parents=True)
        if topic_id is not None:
            (path / "partition.metadata").write_bytes(partition_metadata.encode(topic_id))
        return path

    def start(self, *states: DesiredState) -> list[VerdictChange]:
        self.states = list(states)
        self.looked()
        return flat(self.verdicts.start(by_cluster(states, {"C"})))

    def looked(self) -> list[RowChange]:
        changes = [change for disk in self.disks.values() for batch in disk.sweep(defer=False) for change in batch]
        return net_changes(changes)

    def reported(self) -> set[tuple[str | None, str, str]]:
        return brief(flat(self.verdicts.rows_changed(self.looked())))

    def metadata(self, *states: DesiredState) -> set[tuple[str | None, str, str]]:
        self.states = list(states)
        return brief(flat(self.verdicts.metadata_changed(by_cluster(states, {"C"}))))


def flat(batches: Iterator[list[VerdictChange]]) -> list[VerdictChange]:
    return [change for batch in batches for change in batch]


def brief(changes: list[VerdictChange]) -> set[tuple[str | None, str, str]]:
    return {(change.name or f"{change.topic}-{change.partition}", change.before, change.after) for change in changes}


def state(*partitions: tuple[str, TopicId, int, list[int]], home: DirectoryId | None = None) -> DesiredState:
    builder = DesiredBuilder()
    for topic, topic_id, partition, replicas in partitions:
        homes = [] if home is None else [str(home)] * len(replicas)
        builder.partition(topic, str(topic_id), partition, replicas, directories=homes)
    return builder.build(MetadataIdentity("kraft", "/m", "C"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_at_the_start_all_that_is_not_ok_is_a_change_from_nothing(machine: Machine) -> None:
    machine.replica("good-0")
    machine.replica("stale-0", OLD)
    first = machine.start(state(("good", A, 0, [1]), ("stale", C, 0, [1]), ("missing", B, 0, [1])))
    assert brief(first) == {("stale-0", "", "STALE_ID"), ("missing-0", "", "MISSING")}
    stale = next(change for change in first if change.name == "stale-0")
    assert (stale.disk_topic_id, stale.metadata_topic_id) == (str(OLD), str(C))
    assert (stale.log_dir, stale.broker.node, "re-created" in stale.evidence) == (str(machine.folders[0]), 1, True)
    assert machine.reported() == set()


def test_a_replica_that_goes_is_missing_and_one_that_comes_is_not(machine: Machine) -> None:
    path = machine.replica("a-0")
    machine.start(state(("a", A, 0, [1])))
    shutil.rmtree(path)
    assert machine.reported() == {("a-0", "OK", "MISSING")}
    machine.replica("a-0", disk=1)
    assert machine.reported() == {("a-0", "MISSING", "OK")}
    (machine.folders[1] / "a-0").rename(machine.folders[1] / f"a-0{STRAY}")
    assert machine.reported() == {("a-0", "OK", "MISSING"), (f"a-0{STRAY}", "", "STRAY")}


def test_what_nobody_wants_just_goes(machine: Machine) -> None:
    path = machine.replica("gone-0", B)
    machine.start(state(("a", A, 0, [2])))
    shutil.rmtree(path)
    assert machine.reported() == {("gone-0", "UNKNOWN_TOPIC", "")}


def test_a_second_copy_changes_the_verdict_of_the_first(machine: Machine) -> None:
    machine.replica("a-0")
    machine.start(state(("a", A, 0, [1])))
    path = machine.replica("a-0", disk=1)
    assert machine.reported() == {("a-0", "OK", "DUPLICATE"), ("a-0", "", "DUPLICATE")}
    shutil.rmtree(path)
    assert machine.reported() == {("a-0", "DUPLICATE", "OK"), ("a-0", "DUPLICATE", "")}


def test_a_live_copy_that_goes_leaves_its_future_one_abandoned(machine: Machine) -> None:
    path = machine.replica("a-0")
    machine.replica(f"a-0{FUTURE}", disk=1)
    machine.start(state(("a", A, 0, [1])))
    shutil.rmtree(path)
    assert machine.reported() == {("a-0", "OK", "MISSING"), (f"a-0{FUTURE}", "FUTURE", "FUTURE_ABANDONED")}


def test_a_topic_that_is_recreated_makes_its_replicas_stale(machine: Machine) -> None:
    for partition in range(3):
        machine.replica(f"a-{partition}")
    machine.replica("b-0", B)
    both = [("a", A, partition, [1]) for partition in range(3)] + [("b", B, 0, [1])]
    machine.start(state(*both))
    assert machine.metadata(state(*both)) == set()
    changed = state(*((topic, C if topic == "a" else topic_id, *rest) for topic, topic_id, *rest in both))
    assert machine.metadata(changed) == {(f"a-{partition}", "OK", "STALE_ID") for partition in range(3)}
    assert machine.metadata(state(*both[:2])) >= {("a-2", "STALE_ID", "NOT_ASSIGNED"), ("b-0", "OK", "UNKNOWN_TOPIC")}


def test_metadata_that_goes_leaves_nothing_to_compare_with(machine: Machine) -> None:
    machine.replica("a-0")
    machine.start(state(("a", A, 0, [1]), ("missing", B, 0, [1])))
    assert machine.metadata() == {("a-0", "OK", "NOT_COMPARED"), ("missing-0", "MISSING", "")}
    assert machine.metadata(state(("a", A, 0, [1]))) == {("a-0", "NOT_COMPARED", "OK")}


def test_what_is_in_a_lost_log_dir_is_absent_and_never_missing(machine: Machine) -> None:
    machine.replica("a-0")
    machine.replica("a-1")
    machine.replica("b-0", B, disk=1)
    away = machine.folders[0].with_name("away")
    machine.start(state(("a", A, 0, [1]), ("a", A, 1, [1]), ("b", B, 0, [1]), home=HOMES[0]))
    machine.folders[0].rename(away)
    assert machine.reported() == {(".", "OK", "ABSENT"), ("a-0", "OK", "ABSENT"), ("a-1", "OK", "ABSENT")}
    assert machine.metadata(state(("a", A, 0, [1]), ("b", C, 0, [1]))) == {("b-0", "OK", "STALE_ID")}
    shutil.rmtree(away / "a-1")
    away.rename(machine.folders[0])
    assert machine.reported() == {(".", "ABSENT", "OK"), ("a-0", "ABSENT", "OK"), ("a-1", "ABSENT", "")}


def test_a_copy_on_a_lost_log_dir_is_no_duplicate(machine: Machine) -> None:
    machine.replica("a-0")
    machine.replica("a-0", disk=1)
    machine.start(state(("a", A, 0, [1])))
    machine.folders[1].rename(machine.folders[1].with_name("away"))
    assert machine.reported() == {
        (".", "OK", "ABSENT"), ("a-0", "DUPLICATE", "ABSENT"), ("a-0", "DUPLICATE", "OK"),
    }  # fmt: skip


def test_a_staged_replica_becomes_due_by_time_alone(machine: Machine) -> None:
    path = machine.replica(f"../disk-0.deleting/{A}_0")
    record = StagedRecord(
        topic="a", topic_id=A, partition=0, path="a-0", verdict="STALE_ID", evidence="", staged_ms=NOW_MS,
        due_ms=NOW_MS + 1000,
    )  # fmt: skip
    write_ledger(path.parent, {path.name: record})
    machine.start(state(("other", B, 0, [2])))
    assert flat(machine.verdicts.time_passed()) == []
    machine.now_ms += 2000
    assert {change[1:] for change in brief(flat(machine.verdicts.time_passed()))} == {("STAGED", "STAGED_DUE")}
    assert flat(machine.verdicts.time_passed()) == []


def test_foreign_names_and_checkpoints_are_judged_alone(machine: Machine) -> None:
    machine.start()
    machine.replica("lost+found", None)
    (machine.folders[0] / "replication-offset-checkpoint").write_text("0\n1\ngone 0 5\n")
    (machine.folders[1] / "replication-offset-checkpoint").write_text("broken")
    assert machine.reported() == {
        ("lost+found", "", "FOREIGN"),
        ("replication-offset-checkpoint", "", "CHECKPOINT_ENTRY"),
        ("replication-offset-checkpoint", "", "DAMAGED"),
    }


def fresh(machine: Machine) -> dict[tuple[str | None, str | None, str | None, int | None], Verdict]:
    rows = [row for path in machine.disks for row in scan(path, sizes=False).rows.to_pylist()]
    judged = compare(by_cluster(machine.states, {"C"}), rows, machine.now_ms)
    result = {}
    for each in judged:
        row = each.observed
        key = (row["log_dir"], row["name"]) if row else (None, None)
        result[*key, each.row.topic or None, row["partition"] if row else each.wanted["partition"]] = each.verdict  # type: ignore[index]
    return result


class Chance:
    """Random states and changes of a machine with few names and few IDs, so that all kinds of collisions happen."""

    topics = ("a", "b", "c-d")

    def __init__(self, machine: Machine, seed: int) -> None:
        self.machine, self.random = machine, random.Random(seed)

    def state(self) -> list[DesiredState]:
        if self.random.random() < 0.1:
            return []
        ids = self.random.sample([A, B, C], 3) if self.random.random() < 0.5 else [A, B, C]
        partitions = [
            (topic, topic_id, number, self.random.sample([1, 2, 3], 2))
            for topic, topic_id in zip(self.topics, ids, strict=True)
            if self.random.random() < 0.8
            for number in range(2)
        ]
        return [state(*partitions, home=self.random.choice([None, *HOMES]))]

    def change(self) -> set[str]:
        """Make one change; the names it touches."""
        disk = self.random.randrange(2)
        suffix = self.random.choice(["", "", "", FUTURE, STRAY, DELETE])
        name, other = (f"{self.random.choice(self.topics)}-{self.random.randrange(2)}" for _ in range(2))
        path = self.machine.folders[disk] / (name + suffix)
        if not path.exists():
            self.machine.replica(path.name, self.random.choice([A, B, C, None]), disk)
        elif self.random.random() < 0.5 or path.with_name(other).exists():
            shutil.rmtree(path)
        else:
            path.rename(path.with_name(other))
        return {path.name, other}


class Reader:
    """A reader of the reported changes alone: a verdict for each place, and for each replica that is on no disk."""

    def __init__(self) -> None:
        self.shown: dict[tuple[str | None, str | None, str | None, int | None], str] = {}

    def take(self, changes: list[VerdictChange]) -> None:
        for change in changes:
            here = (change.log_dir, change.name, change.topic, change.partition)
            nowhere = (None, None, change.topic, change.partition)
            is_row = change.log_dir is not None and change.name != "."
            if change.before:
                # A replica that comes from nowhere, or goes there, is reported with its place.
                assert self.shown.pop(nowhere if is_row and here not in self.shown else here) == change.before
            if change.after:
                goes = is_row and change.after in ("MISSING", "ABSENT", "IN_FLIGHT")
                assert (nowhere if goes else here) not in self.shown
                self.shown[nowhere if goes else here] = change.after


@pytest.mark.parametrize("seed", range(10))
def test_after_any_changes_the_reported_verdicts_are_those_of_a_fresh_start(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    machine, reader = Machine(tmp_path), Reader()
    chance = Chance(machine, seed)
    for _ in range(6):
        chance.change()
    reader.take(machine.start(*chance.state()))
    reader.shown |= {key: verdict for key, verdict in fresh(machine).items() if verdict is Verdict.OK}
    for _ in range(30):
        if chance.random.random() < 0.2:
            machine.states = chance.state()
            reader.take(flat(machine.verdicts.metadata_changed(by_cluster(machine.states, {"C"}))))
        else:
            names = {name for _ in range(chance.random.randint(1, 4)) for name in chance.change()}
            changes = [change for disk in machine.disks.values() for change in disk.look_again(names, defer=False)]
            reader.take(flat(machine.verdicts.rows_changed(net_changes(changes))))
        assert reader.shown == fresh(machine)
