"""Every command that changes a disk, killed at every one of its steps, ends where one ends that nobody kills.

The command line itself runs, in a process of its own (:mod:`tests.crash.killed_command`), on copies of one tree. After
the kill it runs again, and where there is an undo, that follows; then names, contents and modes of everything are what
they are without a kill. Only a journal of a run may differ: it says which run did what.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from layout import checkpoint
from layout.ids import TopicId
from layout.ours import is_backup_name, is_run_journal, parse_backup, parse_ledger, parse_run_journal
from layout.scheme import LEDGER_FILE
from layout.topic import TopicPartition
from logstore.namespaces import create_namespace
from logstore.store import LogStore
from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.plan import ALLOWABLE
from reconciler.protocol.json_messages import encode_json
from reconciler.sources import parquet
from tests.crash.killed_command import CommandLine, Outcome
from tests.crash.replicas import free_name
from tests.logstore.changes import fill_store, two_disks
from tests.reconciler.cli.conftest import CLUSTER, make_log_dir
from tests.reconciler.protocol.control_requests import FULL, leader_and_isr, state, stop_replica, topic

HOUR_MS = 3_600_000
SEEDS = 12
WANTED, OLD, GONE = TopicId(b"wanted-wanted-id"), TopicId(b"old-old-old--id."), TopicId(b"gone-gone-gone-i")
STRAY = f"orders-3.{'0' * 32}-stray"
RECOVERY, CLEANER = checkpoint.RECOVERY_POINT_CHECKPOINT, "cleaner-offset-checkpoint"

Contents: TypeAlias = dict[str, tuple[int, bytes | str | None]]
"""Path → mode, and the bytes, the target of a link, or None for a directory."""

_OF_PLAN = re.compile(r"\.logstore_repair\.[0-9a-f]+\.json$")
_AT_RANDOM = re.compile(r"[0-9a-f]{32}(?=-(?:delete|stray|future)(?:/|$))")


@dataclass(frozen=True)
class Disks:
    """A folder with the log dirs ``one`` and ``two`` in ``disks``, and the files that commands are given beside it."""

    folder: Path
    line: CommandLine

    @property
    def log_dirs(self) -> list[Path]:
        return [self.folder / "disks" / name for name in ("one", "two")]

    def file(self, name: str) -> Path:
        return self.folder / name

    def run(self, *arguments: object, kill_at: int | None = None) -> Outcome:
        outcome = self.line.run(*arguments, kill_at=kill_at)
        assert "Traceback" not in outcome.said and "bug in logstore" not in outcome.said, outcome.said
        return outcome

    def done(self, *arguments: object, codes: Sequence[int] = (0,)) -> Outcome:
        outcome = self.run(*arguments)
        assert outcome.code in codes, outcome.said
        return outcome


Command: TypeAlias = Callable[[Disks], list[object]]
"""What is killed; it may first do what has to be done anew on every copy, such as making a plan."""


@dataclass(frozen=True)
class Verb:
    """A command that is killed, and what surrounds it.

    Attributes:
        build: makes the tree; no command that notes inodes may have run on it.
        command: what is killed, and runs again.
        undo: follows where there is one; gives the arguments of all commands of it.
        again: exit codes of the second run. A change of names that recovery has finished may be refused there.
    """

    build: Callable[[Disks], None]
    command: Command
    undo: Callable[[Disks], list[object]] | None = None
    again: Sequence[int] = (0,)


@pytest.fixture(scope="module")
def line() -> Iterator[CommandLine]:
    """The clock stands an hour ahead, so that nothing on the disks is younger than the metadata."""
    with CommandLine(time.time_ns() // 1_000_000 + HOUR_MS) as started:
        yield started


@pytest.fixture
def disks(scratch: str, line: CommandLine) -> Disks:
    return Disks(Path(scratch), line)


def contents(folder: Path) -> Contents:
    """All that lies there; of a backup all but the inodes, which each copy has anew; a journal counts as there."""
    found: Contents = {}
    for path in sorted(folder.rglob("*")):
        name, mode = _AT_RANDOM.sub("<random>", str(path.relative_to(folder))), path.lstat().st_mode
        name = "/".join(map(free_name, _OF_PLAN.sub(".logstore_repair.<plan>.json", name).split("/")))
        assert name not in found, f"{path} is there twice"
        if path.is_symlink():
            found[name] = mode, os.readlink(path)
        elif stat.S_ISDIR(mode):
            found[name] = mode, None
        elif path.name == LEDGER_FILE:
            found[name] = mode, staged_by(path)
        else:
            found[name] = mode, path.read_bytes()
        if is_backup_name(path.name):
            backup = parse_backup(path.read_bytes())
            found[name] = mode, repr([(each.path, each.before, each.after) for each in backup.files])
        if is_run_journal(path.name):
            parse_run_journal(path.read_bytes())
            found[name] = mode, "a journal"
    return found


def without_journals(found: Contents) -> Contents:
    """The same without the journals of runs, which stay after an undo, one for each run that changed something."""
    return {name: what for name, what in found.items() if what[1] != "a journal"}


def staged_by(ledger: Path) -> str:
    """The records of what lies staged beside a ledger, and of what a purge has begun to remove there."""
    entries = parse_ledger(ledger.read_bytes()).entries
    there = {free_name(name): entry for name, entry in entries.items() if (ledger.parent / name).is_dir()}
    said = {_AT_RANDOM.sub("<random>", name): (each.event.value, each.record) for name, each in there.items()}
    return "\n".join(f"{name} is {event}: {record}" for name, (event, record) in sorted(said.items()))


def differences(expected: Contents, found: Contents) -> list[str]:
    names = sorted(expected.keys() | found.keys())
    return [
        f"{name}: {expected.get(name)!r:.3000} without a kill, {found.get(name)!r:.3000} after one"
        for name in names
        if expected.get(name) != found.get(name)
    ]


def sweep(disks: Disks, verb: Verb) -> int:
    """Kill the command at each of its steps; return how many there are."""
    here, kept = disks.folder / "disks", disks.folder / "kept"
    here.mkdir()
    verb.build(disks)
    shutil.copytree(here, kept, symlinks=True)

    def fresh() -> list[object]:
        shutil.rmtree(here)
        shutil.copytree(kept, here, symlinks=True)
        return verb.command(disks)

    def finished() -> list[Contents]:
        ends = [contents(here)]
        if verb.undo is not None:
            disks.done(*verb.undo(disks))
            ends.append(contents(here))
        return ends

    steps = disks.done(*fresh()).steps
    expected = finished()
    for step in range(steps):
        arguments = fresh()
        killed = disks.run(*arguments, kill_at=step)
        assert killed.code is None, f"step {step} of {steps} is not taken again: {killed.said}"
        again = disks.run(*arguments)
        try:
            assert again.code in verb.again, again.said
            for expected_end, found in zip(expected, finished(), strict=True):
                assert not (wrong := differences(expected_end, found)), "\n".join(wrong)
        except AssertionError as error:
            raise AssertionError(f"killed before step {step} of {steps}: {error}") from error
    return steps


# A broker's log dirs


def broker(disks: Disks) -> None:
    """Two stale replicas, one of a topic that is gone, one without a topic ID, a stray, and four that are wanted."""
    one, two = disks.log_dirs
    wanted = {f"kept-{number}": WANTED for number in range(4)}
    make_log_dir(one, 1, {"orders-0": OLD, "gone-0": GONE, "orders-1": None, STRAY: OLD, **wanted})
    make_log_dir(two, 1, {"orders-2": OLD})
    (two / "meta.properties").write_text((one / "meta.properties").read_text().replace("AE0", "AE1"))
    entries = {("orders", 0): 7, ("gone", 0): 8, ("kept", 0): 9}
    (one / RECOVERY).write_bytes(checkpoint.encode_offsets(entries))
    builder = DesiredBuilder()
    for partition in range(3):
        builder.partition("orders", str(WANTED), partition, [1, 2], isr=[1, 2], leader=2)
    for partition in range(4):
        builder.partition("kept", str(WANTED), partition, [1, 2], isr=[1, 2], leader=2)
    identity = MetadataIdentity("kraft", "a test", CLUSTER, offset=42, timestamp_ms=disks.line.now_ms)
    disks.file("metadata").mkdir()
    parquet.save_state(builder.build(identity), str(disks.file("metadata")))


def plan(disks: Disks, *options: str) -> Path:
    path = disks.file("plan.json")
    path.unlink(missing_ok=True)
    allowed = [option for gate in ALLOWABLE for option in ("--allow", gate.value)]
    disks.done(
        *("plan", *disks.log_dirs, "--metadata", disks.file("metadata"), "--strays", "--max-share", "100%"),
        *("--delay", "0ms", "-o", path, *allowed, *options),
        codes=(1,),
    )
    return path


def applied(disks: Disks, *options: str) -> None:
    broker(disks)
    disks.done("apply", plan(disks, *options))


def applied_in_place(disks: Disks) -> None:
    applied(disks, *IN_PLACE)


IN_PLACE = ("--staging", "in-place")
APPLY = Verb(broker, lambda disks: ["apply", plan(disks)])
RESTORE = Verb(applied, lambda disks: ["restore", *disks.log_dirs, "--all"], again=(0, 1))
PURGE = Verb(applied, lambda disks: ["purge", *disks.log_dirs])


def applied_for_long(disks: Disks) -> None:
    applied(disks, "--delay", "7d")


def purge_before_due(disks: Disks) -> list[object]:
    staged = [name for each in disks.log_dirs for name in sorted(each.with_suffix(".deleting").glob("*_*"))]
    named = [word for path in staged for word in ("--location", f"../{path.parent.name}/{path.name}")]
    return ["purge", *disks.log_dirs, *named, "--before-due"]


def restore_the_stray(disks: Disks) -> list[object]:
    return ["restore", *disks.log_dirs, "--topic", "orders", "--partition", "3"]


def restore_as_a_stray(disks: Disks) -> list[object]:
    return ["restore", *disks.log_dirs, "--topic", "orders", "--partition", "3", "--as-stray"]


def wanted_again(disks: Disks) -> None:
    """A replica that was staged, and that the metadata wants by now."""
    applied_for_long(disks)
    builder = DesiredBuilder()
    builder.partition("gone", str(GONE), 0, [1, 2], isr=[1, 2], leader=2)
    identity = MetadataIdentity("kraft", "a test", CLUSTER, offset=43, timestamp_ms=disks.line.now_ms)
    parquet.save_state(builder.build(identity), str(disks.file("metadata")))


# A repair and its undo


def damaged(disks: Disks) -> None:
    """What a repair puts right, and beside it what a broker's own half-written files left."""
    broker(disks)
    one, two = disks.log_dirs
    for name in ("kept-1", "kept-2"):
        (one / name / "partition.metadata").write_bytes(b"garbage")
    (one / RECOVERY).write_bytes(b"0\n9\nkept 0 5\nhalf\n")
    (one / f"{RECOVERY}.tmp").write_bytes(b"0\n1\nkept 0 5\n")
    (one / CLEANER).write_bytes(b"0\n2\nkept 0 5\nlost 0 7\n")
    (one / f"{CLEANER}.tmp").write_bytes(b"0\n1\nkept 0 4\n")
    (two / RECOVERY).write_bytes(b"0\n2\norders 2 5\nlost 0 7\n")
    (two / f"{RECOVERY}.tmp").write_bytes(b"0\n0\n")
    (two / "meta.properties.tmp").write_bytes(b"half")


def repair_plan(disks: Disks, *options: object) -> Path:
    path = disks.file("plan.json")
    path.unlink(missing_ok=True)
    disks.done("repair", *disks.log_dirs, "--metadata", disks.file("metadata"), "-o", path, *options, codes=(1,))
    return path


def doubled(disks: Disks) -> None:
    """The damage, and a replica that is live on both disks."""
    damaged(disks)
    one, two = disks.log_dirs
    shutil.copytree(one / "kept-3", two / "kept-3")


def stage_the_copy(disks: Disks) -> list[object]:
    return ["repair", "--apply", repair_plan(disks, "--keep", disks.log_dirs[0] / "kept-3")]


def adopt(disks: Disks) -> list[object]:
    adopted = ("--adopt-topic-id", "orders", "--only", "replace_topic_id")
    return ["repair", "--apply", repair_plan(disks, *adopted)]


def undo(disks: Disks) -> list[object]:
    backups = [path for log_dir in disks.log_dirs for path in sorted(log_dir.glob(".logstore_repair.*.json"))]
    disks.file("backups").write_text("\n".join(map(str, backups)))
    return ["repair", "--undo", *backups]


def repaired_then_undo(disks: Disks) -> list[object]:
    disks.done("repair", "--apply", repair_plan(disks))
    return undo(disks)


REPAIR = Verb(damaged, lambda disks: ["repair", "--apply", repair_plan(disks)], undo)
UNDO = Verb(damaged, repaired_then_undo, again=(0, 3, 4))


# Log dirs of ours


def ours(disks: Disks) -> None:
    """Two topics of two partitions in one namespace, with offsets."""
    made = two_disks(disks.folder / "made")
    with LogStore.open([str(path) for path in made]) as store:
        create_namespace(store, "org")
        fill_store(store, "org:orders", "org:clicks")
    for source, target in zip(made, disks.log_dirs, strict=True):
        source.rename(target)


def flat(disks: Disks) -> None:
    """The same topics without a namespace, and a request that wants one of them re-created and the other gone."""
    made = two_disks(disks.folder / "made", "flat")
    with LogStore.open([str(path) for path in made]) as store:
        fill_store(store, "orders", "clicks")
        store.stage([TopicPartition("clicks", 1)], "STALE_ID", "a test")
    for source, target in zip(made, disks.log_dirs, strict=True):
        source.rename(target)
    states = [state(number, 7) for number in range(2)]
    request = leader_and_isr(FULL, topic("orders", WANTED, *states))
    disks.file("request").write_bytes(encode_json(request, 7))


def on_both(*words: str) -> Command:
    return lambda disks: [*words, *disks.log_dirs]


def by_topic_id(disks: Disks) -> None:
    flat(disks)
    disks.done("convert", "--to", "by-topic-id", *disks.log_dirs)


def to_stop(disks: Disks) -> None:
    """A request that wants both replicas of one topic deleted."""
    flat(disks)
    disks.file("request").write_bytes(encode_json(stop_replica("orders", 0, 1, epoch=7), 3))


def reconcile(disks: Disks) -> list[object]:
    allowed = [word for gate in ("cluster", "sole-copy", "create", "absent", "empty") for word in ("--allow", gate)]
    return ["reconcile", disks.file("request"), *disks.log_dirs, "--max-share", "100%", *allowed]


REFUSED = (0, 2, 3)
VERBS = {
    "apply": APPLY,
    "restore": RESTORE,
    "purge": PURGE,
    "apply in place": Verb(broker, lambda disks: ["apply", plan(disks, *IN_PLACE)]),
    "restore in place": Verb(applied_in_place, RESTORE.command, again=(0, 1)),
    "purge in place": Verb(applied_in_place, PURGE.command),
    "purge before its time": Verb(applied_for_long, purge_before_due, again=(0, 1)),
    "restore of a stray": Verb(broker, restore_the_stray, again=(0, 1)),
    "restore as a stray": Verb(applied_for_long, restore_as_a_stray, again=(0, 3)),
    "apply of what comes back": Verb(wanted_again, lambda disks: ["apply", plan(disks, "--topic", "gone")]),
    "repair --apply": REPAIR,
    "repair of a topic ID that is adopted": Verb(broker, adopt),
    "repair of a copy": Verb(doubled, stage_the_copy),
    "repair --undo": UNDO,
    "convert": Verb(flat, on_both("convert", "--to", "by-topic-id")),
    "convert back": Verb(by_topic_id, on_both("convert", "--to", "flat")),
    "convert to namespaced": Verb(flat, on_both("convert", "--to", "namespaced")),
    "namespace create": Verb(ours, on_both("namespace", "create", "org:apache"), again=REFUSED),
    "namespace move": Verb(ours, on_both("namespace", "move", "org:orders", "--to", ""), again=REFUSED),
    "namespace move whole": Verb(
        ours, on_both("namespace", "move", "--from-namespace", "org", "--to-namespace", "com:shop"), again=REFUSED
    ),
    "namespace rename": Verb(ours, on_both("namespace", "rename", "org:orders", "org:sales"), again=REFUSED),
    "namespace delete": Verb(ours, on_both("namespace", "delete", "org", "--recursive"), again=REFUSED),
    "reconcile": Verb(flat, reconcile),
    "reconcile a StopReplica": Verb(to_stop, reconcile),
}


@pytest.mark.parametrize("name", VERBS)
def test_a_command_that_is_killed_anywhere_and_run_again_ends_as_if_nobody_had_killed_it(
    disks: Disks, name: str, record_property: Callable[[str, object], None]
) -> None:
    steps = sweep(disks, VERBS[name])
    assert steps >= 10, "it has hardly done anything"
    record_property("kills", steps)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_repair_and_its_undo_killed_again_and_again_in_any_order_lose_nothing(disks: Disks, seed: int) -> None:
    chance = random.Random(seed)
    here = disks.folder / "disks"
    here.mkdir()
    damaged(disks)
    for log_dir in disks.log_dirs:
        (log_dir / ".lock").touch()
    before = without_journals(contents(here))
    repair: list[object] = ["repair", "--apply", repair_plan(disks)]
    for _ in range(chance.randint(2, 8)):
        backups = undo(disks)
        is_undo = len(backups) > 2 and chance.random() < 0.5
        # Where the command takes fewer steps than that, it comes to its end.
        disks.run(*(backups if is_undo else repair), kill_at=chance.randrange(60))
    disks.done(*repair)
    repaired = without_journals(contents(here))
    disks.done(*undo(disks))
    assert not differences(before, without_journals(contents(here))), f"seed {seed}"
    disks.done(*repair)
    assert not differences(repaired, without_journals(contents(here))), f"seed {seed}"
