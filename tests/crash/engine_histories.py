"""Shared by the histories of the engine: a broker of two disks, how it is opened, and what must hold of it afterwards.

The broker's log dirs are ``one/data`` and ``two/data``, each on a file system of its own. They are ours, in one of the
schemes, or a real broker's, with the staging root beside the log dir or, where a file has that name, in place.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from unittest.mock import patch

from layout import checkpoint, meta_properties, partition_metadata
from layout.directory_name import DirectoryKind, parse
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.ours import StagedRecord, encode_header, encode_mark, encode_staged, move_record
from layout.scheme import INTENT_FILE, LEDGER_FILE, MARKER_FILE, STAGING_DIR, UNCLEAN_FILE, Scheme, partition_path
from layout.topic import TopicPartition
from logstore import DELETE_DELAY, STALE_DELAY, ChangeFailedError, LogStoreError, OfflineLogDirError, Settings
from logstore.clock import ManualClock
from logstore.fs import TEMPORARY, Disk
from logstore.log_dir import FallbackRecords
from logstore.staging import StagingOutcome
from logstore.store import LogStore, StoreOptions, recover_all
from logstore.store.open import open_log_dirs
from tests.crash.failing_disk import DiskAround
from tests.crash.histories import Done, History
from tests.crash.images import Tree, difference, digest, read_tree, write_tree
from tests.crash.replicas import (
    assert_each_is_told,
    assert_each_lies_once,
    assert_restorable,
    below,
    free_name,
    is_staged,
    records,
    replicas,
    staging_home,
    unfounded,
)

DISKS = ("one", "two")
ONE, TWO = "one/data", "two/data"
ONE_ID, TWO_ID = DirectoryId.from_halves(1001, 1), DirectoryId.from_halves(1002, 1)
NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
ORDERS_ID, CLICKS_ID = TopicId.parse("UXyU9i5ARn6W00ON2taeWA"), TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")
SETTINGS = Settings({"": {STALE_DELAY: HOUR_MS, DELETE_DELAY: HOUR_MS}})
RECOVERY, HIGH_WATERMARK = checkpoint.RECOVERY_POINT_CHECKPOINT, checkpoint.HIGH_WATERMARK_CHECKPOINT
SEGMENT = "00000000000000000000.log"
STRAY = "STRAY"
"""The verdict on what a broker set aside, of which it keeps no offsets."""
SPACE = 700
"""Bytes that a ledger keeps behind its last line, here: so few are used up and added to, and images are small."""
NO_MARK = f"no room for {UNCLEAN_FILE}"
"""Among what was done: the engine went on without the mark, because the disk was full."""

ERRORS: dict[int, type[Exception]] = {
    **dict.fromkeys((errno.ENOSPC, errno.EACCES, errno.EXDEV), LogStoreError),
    **dict.fromkeys((errno.EIO, errno.EROFS), OfflineLogDirError),
}
"""What a failing disk may come to. That the disk is offline when it should be, and only then, :func:`using` sees to."""

Extra = Callable[[Tree, Tree, tuple[str, ...]], None]
"""What else must hold: of the tree before, the tree after, and what was done by the crash."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of broker; ``scheme`` is None for a real one."""

    name: str
    scheme: Scheme | None = Scheme.FLAT
    in_place: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def paths_by(self) -> Scheme:
        return self.scheme or Scheme.FLAT

    def path(self, at: TopicPartition, topic_id: TopicId | None = ORDERS_ID, log_dir: str = ONE) -> str:
        """Where a replica lives, below the root."""
        return f"{log_dir}/{partition_path(self.paths_by, at, topic_id)}"


OURS = Kind("ours")
NAMESPACED = Kind("ours, namespaced", Scheme.NAMESPACED)
BY_ID = Kind("ours, by topic ID", Scheme.BY_TOPIC_ID)
SIBLING = Kind("a broker's, staged beside it", None)
IN_PLACE = Kind("a broker's, staged in place", None, in_place=True)


@dataclass(slots=True)
class Broker:
    """A broker as it lies on its disks before a history; filled by its methods."""

    kind: Kind
    tree: Tree = field(default_factory=dict)
    offsets: dict[str, dict[str, dict[tuple[str, int], int]]] = field(default_factory=dict)
    """Log dir → checkpoint → entries."""
    lines: dict[str, list[bytes]] = field(default_factory=dict)
    """Staging root → the lines of its ledger."""

    def __post_init__(self) -> None:
        for disk, log_dir, own_id in zip(DISKS, (ONE, TWO), (ONE_ID, TWO_ID), strict=True):
            identity = MetaProperties(1, "C", 1, own_id, self.kind.scheme)
            self.tree |= {disk: None, log_dir: None, f"{log_dir}/.lock": b""}
            self.tree[f"{log_dir}/{meta_properties.FILE_NAME}"] = meta_properties.encode(identity, "today")
            if self.kind.scheme is not None:
                self.tree[f"{log_dir}/{STAGING_DIR}"] = None
            elif self.kind.in_place:
                self.tree[f"{log_dir}.{STAGING_DIR}"] = b"in the way of a staging root"

    def tier(self, *paths: str) -> Broker:
        """Tiers of namespaces, in both log dirs."""
        for log_dir in (ONE, TWO):
            for path in paths:
                self.tree |= {f"{log_dir}/{path}": None, f"{log_dir}/{path}/{MARKER_FILE}": b""}
        return self

    def live(
        self, at: TopicPartition, topic_id: TopicId | None = ORDERS_ID, log_dir: str = ONE, *, data: bytes = b"data"
    ) -> Broker:
        """A live replica with offsets in two checkpoints."""
        path = self.kind.path(at, topic_id, log_dir)
        for parent in parents(path):
            self.tree.setdefault(parent, None)
        self._files(path, at, topic_id, data)
        self._enter(log_dir, at)
        return self

    def staged(
        self, at: TopicPartition, due_ms: int, topic_id: TopicId = ORDERS_ID, log_dir: str = ONE, *, data: bytes = b"x"
    ) -> Broker:
        """A staged replica with its record, staged an hour before it is due."""
        name = f"{topic_id}_{at.partition}"
        root = f"{log_dir}/{STAGING_DIR}" if self.kind.scheme is not None else f"{log_dir}.{STAGING_DIR}"
        if self.kind.in_place:
            root, name = log_dir, stray_name(at)
        home = partition_path(self.kind.paths_by, at, topic_id)
        kept = {RECOVERY: 5 + at.partition, HIGH_WATERMARK: 50 + at.partition}
        staged_ms = due_ms - HOUR_MS
        record = StagedRecord(at.topic, at.partition, topic_id, home, "STALE_ID", "it was", staged_ms, due_ms, kept)
        self.tree[root] = None
        self._files(f"{root}/{name}", at, topic_id, data)
        self.lines.setdefault(root, [encode_header()]).append(encode_staged(name, record))
        return self

    def stray(self, at: TopicPartition, log_dir: str = ONE) -> Broker:
        """A replica that the broker itself set aside, of which no line speaks."""
        self._files(f"{log_dir}/{stray_name(at)}", at, ORDERS_ID, b"x")
        return self

    def done(self) -> Tree:
        """The whole tree."""
        tree = dict(self.tree)
        for log_dir, files in self.offsets.items():
            for file, entries in files.items():
                tree[f"{log_dir}/{file}"] = checkpoint.encode_offsets(entries)
        for root, lines in self.lines.items():
            written = b"".join(lines)
            tree[f"{root}/{LEDGER_FILE}"] = written + encode_mark(len(written)) + bytes(SPACE)
        return tree

    def _files(self, path: str, at: TopicPartition, topic_id: TopicId | None, data: bytes) -> None:
        self.tree |= {path: None, f"{path}/{SEGMENT}": data + b" %d" % at.partition}
        self.tree[f"{path}/leader-epoch-checkpoint"] = b"0\n0\n"
        if topic_id is not None:
            ours = self.kind.scheme is not None
            encoded = (
                partition_metadata.encode_json(topic_id, at.topic, at.partition)
                if ours
                else partition_metadata.encode(topic_id)
            )
            self.tree[f"{path}/{partition_metadata.FILE_NAME}"] = encoded

    def _enter(self, log_dir: str, at: TopicPartition) -> None:
        for file, base in ((RECOVERY, 5), (HIGH_WATERMARK, 50)):
            self.offsets.setdefault(log_dir, {}).setdefault(file, {})[at.topic, at.partition] = base + at.partition


def parents(path: str) -> list[str]:
    """All directories above a path, the topmost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def stray_name(at: TopicPartition) -> str:
    """A name that a broker gives to a replica that it sets aside."""
    return f"{at.local_topic}-{at.partition}.{at.partition:032x}-stray"


def orders(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def opened(root: str, disk: Disk | None = None, *, now_ms: int = NOW_MS, fallback: str | None = None) -> LogStore:
    """Open the broker below a root."""
    spares = None if fallback is None else f"{root}/{fallback}"
    options = StoreOptions(ManualClock(now_ms), SETTINGS, disk or Disk(), spares, jobs=0)
    return LogStore.open([f"{root}/{ONE}", f"{root}/{TWO}"], options)


@contextmanager
def using(root: str, disk: Disk, *, fallback: str | None = None) -> Iterator[LogStore]:
    """Open the broker to act on it: a disk that failed is offline afterwards, a disk that only refused is not."""
    with opened(root, disk, fallback=fallback) as store:
        if store.offline:
            raise OfflineLogDirError("; ".join(store.offline.values()))
        try:
            yield store
        except OfflineLogDirError as error:
            assert store.offline, f"nothing is offline after: {error}"
            raise
        except LogStoreError as error:
            assert not store.offline, f"{store.offline} after: {error}"
            raise


def wanted(outcome: StagingOutcome, store: LogStore) -> StagingOutcome:
    """What is refused here is so for one of two reasons: its disk is offline, or has no room for its name or line."""
    if any("has no room for one more " in refused.reason for refused in outcome.refused):
        assert outcome.staged, "where there is none for the first, that is an error"
        raise ChangeFailedError(outcome.refused[0].reason)
    if outcome.refused:
        assert store.offline, outcome.refused[0].reason
        raise OfflineLogDirError(outcome.refused[0].reason)
    return outcome


def recover(root: str, disk: Disk, fallback: str | None = None) -> None:
    """What a restart does to the disks. That it then reads them, and finds all in order, is a matter for the check."""
    log_dirs, offline = open_log_dirs([f"{root}/{ONE}", f"{root}/{TWO}"], disk)
    try:
        assert not offline, offline
        recover_all(log_dirs, FallbackRecords(None if fallback is None else f"{root}/{fallback}", disk))
    finally:
        for log_dir in log_dirs:
            log_dir.close()


def restore_by_path(
    root: str, path: str, fallback: str | None = None, prepare: Callable[[LogStore], object] = lambda store: None
) -> None:
    """Bring back the staged directory of that path below the root, by listing what there is."""
    log_dir = log_dir_of(path)
    with opened(root, fallback=fallback) as store:
        here = [each for each in store.staged() if (each.log_dir, each.name) == (f"{root}/{log_dir}", base(path))]
        assert len(here) == 1, f"{path} is not listed as staged"
        prepare(store)
        store.restore(here[0])
    tree = read_tree(root)
    record = here[0].record
    assert record is not None
    at = TopicPartition(record.topic, record.partition)
    expected = {} if record.verdict == STRAY else expected_offsets(at)
    assert offsets_of(tree, log_dir, at) == expected, f"{path} came back without its offsets"


def base(path: str) -> str:
    return path.rpartition("/")[2]


def expected_offsets(at: TopicPartition) -> dict[str, int]:
    """What the checkpoints of a broker hold for a replica from the first."""
    return {RECOVERY: 5 + at.partition, HIGH_WATERMARK: 50 + at.partition}


def offsets_of(tree: Tree, log_dir: str, at: TopicPartition) -> dict[str, int]:
    """What the checkpoints of a log dir hold for a replica."""
    found = {}
    for file in checkpoint.OFFSET_CHECKPOINTS:
        data = tree.get(f"{log_dir}/{file}")
        if isinstance(data, bytes):
            entries = checkpoint.parse_offsets(data, file)
            if (at.topic, at.partition) in entries:
                found[file] = entries[at.topic, at.partition]
    return found


def assert_offsets(root: str, tree: Tree, new: Sequence[TopicPartition] = ()) -> None:
    """Every live replica has its offsets in the checkpoints of its log dir; nothing else stands there."""
    live: dict[str, set[tuple[str, int]]] = {ONE: set(), TWO: set()}
    with opened(root) as store:
        assert not store.offline, store.offline
        assert not store.duplicates, store.duplicates
        for replica in store.replicas():
            log_dir = replica.log_dir.removeprefix(f"{root}/")
            live[log_dir].add((replica.partition.topic, replica.partition.partition))
            if replica.partition not in new:
                found = offsets_of(tree, log_dir, replica.partition)
                assert found == expected_offsets(replica.partition), f"{replica.partition} in {log_dir} has {found}"
    for log_dir, known in live.items():
        for file in checkpoint.OFFSET_CHECKPOINTS:
            data = tree.get(f"{log_dir}/{file}")
            entries = checkpoint.parse_offsets(data, file) if isinstance(data, bytes) else {}
            assert entries.keys() <= known, f"{log_dir}/{file} holds {entries.keys() - known}, which are not live"


def litter(tree: Tree) -> list[str]:
    """What nobody will ask for again, by path: marks, drafts, half-made moves, intents."""
    ours = {path.rpartition("/")[0] for path, what in tree.items() if _is_ours(path, what)}
    found = []
    for path in tree:
        folder, _, name = path.rpartition("/")
        kind = parse(name).kind
        if (
            name in (UNCLEAN_FILE, INTENT_FILE, move_record.MOVE_RECORD)
            or name.endswith(TEMPORARY)
            or (kind is DirectoryKind.FUTURE)
            or (kind is DirectoryKind.DELETE and folder in ours)
        ):
            found.append(path)
    return found


def _is_ours(path: str, what: object) -> bool:
    return base(path) == meta_properties.FILE_NAME and isinstance(what, bytes) and b"logstore.scheme" in what


def assert_sound(
    root: str,
    before: Tree,
    *,
    new: Sequence[TopicPartition] = (),
    taken: Callable[[Tree], Sequence[str]] = lambda after: (),
    due: Sequence[str] = (),
    fallback: str | None = None,
    prepare: Callable[[LogStore], object] = lambda store: None,
) -> Tree:
    """What must hold whatever was done: nothing is gone or doubled, all that is staged can come back, no litter.

    Args:
        root: of the broker.
        before: the tree of the start.
        new: what may have been created.
        taken: staged directories of replicas that are live in another log dir, whole and byte for byte the same.
        due: staged directories that may be gone, wholly or in part.
        fallback: the folder for fallback records.
        prepare: what has to be done before anything is restored.
    """
    found = read_tree(root)
    after = without(found, [*drafts_of_brokers(found), *([] if fallback is None else [fallback])])
    copied = tuple(taken(after))
    for path in copied:
        assert below(after, path) == below(before, home_of(after, path)), f"{path} is not what it was"
    assert_each_lies_once(without(before, due), without(after, (*copied, *due)))
    assert_each_is_told(before, found)
    assert not litter(after), f"left over: {', '.join(litter(after))}"
    missing = [path for path in unfounded(found) if path not in due]
    assert not missing, f"said to be staged, and not there: {', '.join(missing)}"
    assert_offsets(root, after, new)

    def restore(below: str, path: str) -> None:
        restore_by_path(below, path, fallback, prepare)

    assert_restorable(root, f"{root}.copy", restore, originals(before), skip=copied, home_now=home_by_scheme)
    return after


def without(tree: Tree, folders: Sequence[str]) -> Tree:
    """A tree without some of its directories."""
    prefixes = tuple(f"{path}/" for path in folders)
    return {path: what for path, what in tree.items() if not f"{path}/".startswith(prefixes)} if prefixes else tree


def drafts_of_brokers(tree: Tree) -> list[str]:
    """In a real broker's log dir, what was never finished has the name of what the broker deletes at its next start."""
    drafts = {path for path in tree if parse(base(path)).kind is DirectoryKind.DELETE}
    return sorted(drafts - set(litter(tree)))


def _is_draft_of_broker(kind: Kind, path: str) -> bool:
    return kind.scheme is None and any(parse(part).kind is DirectoryKind.DELETE for part in path.split("/"))


def log_dir_of(path: str) -> str:
    """The log dir that a staged directory belongs to."""
    found = staging_home(path)
    assert found is not None, f"{path} is no staged directory"
    return found


def home_of(tree: Tree, path: str) -> str:
    """Where a staged directory was, by its record."""
    return f"{log_dir_of(path)}/{records(tree)[path].path}"


def home_by_scheme(tree: Tree, home: str, record: StagedRecord) -> str:
    """Where a replica belongs, by what its log dir says of itself."""
    log_dir = next(each for each in (ONE, TWO) if home.startswith(f"{each}/"))
    data = tree[f"{log_dir}/{meta_properties.FILE_NAME}"]
    assert isinstance(data, bytes)
    scheme = meta_properties.parse(data).scheme
    if scheme is None:
        return home
    return (
        f"{log_dir}/{partition_path(Scheme(scheme), TopicPartition(record.topic, record.partition), record.topic_id)}"
    )


def originals(before: Tree) -> Tree:
    """The tree as if everything that was staged from the first were live."""
    tree, known = dict(before), records(before)
    for path in before:
        if is_staged(path):
            home = known[path].path if path in known else base(path).partition(".")[0]
            tree |= {f"{log_dir_of(path)}/{home}/{name}": what for name, what in below(before, path).items()}
    return tree


def _marked_copy(tree: Tree, root: str) -> str:
    """Copy the disks, and leave the mark in both log dirs for which there was no room."""
    copy = f"{root}.marked"
    write_tree(tree | {f"{log_dir}/{UNCLEAN_FILE}": b"" for log_dir in (ONE, TWO)}, copy)
    return copy


def history(
    name: str,
    broker: Broker,
    act: Callable[[LogStore, Done], None],
    extra: Extra = lambda before, after, done: None,
    *,
    new: Sequence[TopicPartition] = (),
    taken: Callable[[Tree], Sequence[str]] = lambda after: (),
    due: Sequence[str] = (),
    started: Callable[[Tree, Tree], Tree] = lambda before, after: before,
    fallback: str | None = None,
    prepare: Callable[[LogStore], object] = lambda store: None,
    many_ends: bool = False,
) -> History:
    """A history of the engine: what is done with an open store, and what else must hold than :func:`assert_sound`.

    ``started`` gives the tree of the start as it counts by now, where an unharmed replica may look different.
    """
    before = broker.done()

    def build(root: str) -> None:
        os.rmdir(root)
        write_tree(before, root)

    def run(root: str, disk: Disk, done: Done) -> None:
        # The same names in every run, so that states of several runs are seen to be the same.
        names = (uuid.UUID(int=number) for number in count(1))
        with patch("uuid.uuid4", lambda: next(names)), using(root, disk, fallback=fallback) as store:
            act(store, done)

    checked: set[tuple[bytes, tuple[str, ...]]] = set()
    sound: dict[bytes, Tree] = {}

    def soundness_of(root: str, tree: Tree, key: bytes) -> Tree:
        """What is asked of a tree whatever was done is asked once of each."""
        if key not in sound:
            sound[key] = assert_sound(
                root, started(before, tree), new=new, taken=taken, due=due, fallback=fallback, prepare=prepare
            )
        return sound[key]

    def check(root: str, done: tuple[str, ...]) -> None:
        tree = read_tree(root)
        key = digest(tree), done
        if key in checked:
            return
        if NO_MARK in done:
            _assert_only_litter(root, without(tree, (*taken(tree), *due)), without(started(before, tree), due))
            copy = _marked_copy(tree, root)
            recover(copy, Disk(), fallback)
            check(copy, tuple(text for text in done if text != NO_MARK))
            shutil.rmtree(copy)
        else:
            extra(before, soundness_of(root, tree, key[0]), done)
        checked.add(key)

    return History(
        f"{name}, {broker.kind}",
        build,
        run,
        check,
        partial(recover, fallback=fallback),
        disks=DISKS,
        errors=ERRORS,
        leftover=partial(_is_draft_of_broker, broker.kind),
        counted=counted,
        many_ends=many_ends,
    )


def counted(tree: Tree) -> Tree:
    """What counts of a tree when it is held against another one.

    A mark and a directory that is made at need do not; offset checkpoints are sets of entries; and of a ledger the
    records count of what is staged, under the name that it has where no line speaks of that. A record may name a disk
    by its path, which differs in each run.
    """
    found: Tree = {}
    for real, what in tree.items():
        path = "/".join(map(free_name, real.split("/")))
        assert path not in found, f"{real} is there twice"
        if base(path) in (UNCLEAN_FILE, LEDGER_FILE, STAGING_DIR) or len(base(path)) == 2:
            continue
        if isinstance(what, bytes) and base(path) in checkpoint.OFFSET_CHECKPOINTS:
            found[path] = b"\n".join(sorted(what.split(b"\n")))
        elif not path.endswith(f".{STAGING_DIR}"):
            found[path] = what
    for path, record in records(tree).items():
        evidence = re.sub('moved to [^"]*', "moved", record.evidence)
        found[f"{path.rpartition('/')[0]}/{free_name(base(path))}/its record"] = repr(
            record._replace(evidence=evidence)
        ).encode()
    return found


def _assert_only_litter(root: str, tree: Tree, before: Tree) -> None:
    """On a disk too full for the mark, nobody looks for what a crash left. But all of it is litter, and nothing lost.

    It may be the draft of a new replica, of a checkpoint or of a ledger, checkpoint entries of what is staged, and
    lines that mean nothing. Whoever marks the log dirs, which the next one to change them does, has all of it sorted
    out at the open after that; ``check`` goes on to make sure of it.
    """
    with opened(root) as store:
        assert not store.offline, store.offline
        assert not store.duplicates, store.duplicates
    drafts = [path for path in tree if parse(base(path)).kind is DirectoryKind.DELETE]
    rest = without(tree, drafts)
    assert_each_lies_once(before, without(rest, litter(rest)))
    files = (LEDGER_FILE, partition_metadata.FILE_NAME, *checkpoint.OFFSET_CHECKPOINTS)
    for path in litter(rest):
        is_draft = base(path) in {f"{file}{TEMPORARY}" for file in files}
        assert is_draft, f"{path} is no litter of a kind that may be left"


class MarkNotingDisk(DiskAround):
    """Says in the history when the disk was too full for the mark, so that the check knows that nobody will look."""

    def __init__(self, inner: Disk, done: Done) -> None:
        super().__init__(inner)
        self._done, self._marking = done, False

    def create(self, parent: int, name: str) -> int:
        self._marking = name == UNCLEAN_FILE
        with self._noted():
            return self.inner.create(parent, name)

    def write(self, descriptor: int, data: bytes) -> None:
        with self._noted():
            self.inner.write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        with self._noted():
            self.inner.sync(descriptor)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self._marking and error.errno == errno.ENOSPC:
                self._done(NO_MARK)
            self._marking = False
            raise


def wholly_or_not_at_all(scenario: History) -> History:
    """The same history, with a check that what lies there is what was there before, or what is there after it."""
    ends: list[Tree] = []

    def check(root: str, done: tuple[str, ...]) -> None:
        if not ends:
            for acts in (False, True):
                clean = f"{root}.clean"
                os.mkdir(clean)
                scenario.build(clean)
                if acts:
                    scenario.act(clean, Disk(), lambda text: None)
                ends.append(counted(read_tree(clean)))
                shutil.rmtree(clean)
        found = counted(read_tree(root))
        right = [ends[1]] if done else ends
        wrong = [] if found in right else min((difference(end, found) for end in right), key=len)
        assert found in right, "\n".join(["it is neither what was before nor what should be after:", *wrong])
        scenario.check(root, done)

    return replace(scenario, check=check)


def noting(scenario: History) -> History:
    """The same history, which also says when the disk was too full for the mark; for crashes after failures."""

    def act(root: str, disk: Disk, done: Done) -> None:
        scenario.act(root, MarkNotingDisk(disk, done), done)

    return replace(scenario, act=act)


def is_live(tree: Tree, path: str) -> bool:
    """Whether a replica lies there."""
    return path in replicas(tree)


def staged_of(tree: Tree, at: TopicPartition) -> list[str]:
    """Where a partition lies staged."""
    return [
        path for path, record in records(tree).items() if (record.topic, record.partition) == (at.topic, at.partition)
    ]
