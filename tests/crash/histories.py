"""Runs a short history, and then everything that could have happened to it: a crash at any step, a failure of any step.

A history builds a tree, acts on it through a disk, and says what has to hold of whatever is left after a restart. The
drivers are :func:`crash_everywhere`, :func:`fail_everywhere` and :func:`crash_after_failures`. They stop at the first
thing that is wrong, and tell it with the log of steps, what was lost, and the tree.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, takewhile
from typing import TypeAlias

from logstore.fs import Disk
from tests.crash.crash_states import BOUND, CrashState, crash_states
from tests.crash.failing_disk import FailingDisk
from tests.crash.images import Tree, difference, digest, listing, read_tree, write_image, write_tree
from tests.crash.recording_disk import RecordingDisk
from tests.crash.steps import describe

Story: TypeAlias = Callable[[], list[str]]
"""What happened, as lines; made only when a failure is reported."""

_Case: TypeAlias = tuple[CrashState, int, Story]
"""A state, how many crashes led to it, and how."""

Done: TypeAlias = Callable[[str], None]
"""Says that the history counts on what it has done so far; with what, in words that its ``check`` knows."""

Driver: TypeAlias = Callable[..., "Tried"]
"""One of the drivers, with its scratch directory and the count of cases seen to: what the fixtures give."""

_AT_RANDOM = re.compile(r"[0-9a-f]{32}(?=-(?:delete|stray|future)(?:/|$))")
"""The part of Kafka's names that is drawn at random, so that no two runs have it alike."""

NUMBERS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EXDEV)


class WrongError(AssertionError):
    """A history broke one of its promises."""


@dataclass(frozen=True, slots=True)
class History:
    """A short run of the engine, and what must hold whatever happens to it.

    Attributes:
        name: in messages.
        build: makes the first tree in an empty directory.
        act: changes it through the disk, and calls ``done`` whenever a call has returned to its caller.
        recover: what a restart does; through this disk as well.
        check: looks at what is there after the restart, and raises if it is wrong; it gets what was done by the crash.
        disks: directories of the first tree that stand for a file system of their own.
        errors: number → what ``act`` may raise when a step fails with it.
        leftover: whether a path may be left lying where the disk refuses for good what would have removed it.
        counted: what counts of a tree when trees are held against each other after a failure; gives the same for trees
            that come to the same.
        many_ends: after a failure there is more right than the tree before and the tree after, as when a batch was
            cut short or another way was found; then only ``check`` decides.
    """

    name: str
    build: Callable[[str], None]
    act: Callable[[str, Disk, Done], None]
    check: Callable[[str, tuple[str, ...]], None]
    recover: Callable[[str, Disk], None] = lambda root, disk: None
    disks: tuple[str, ...] = ()
    errors: Mapping[int, type[Exception]] = field(default_factory=lambda: dict.fromkeys(NUMBERS, OSError))
    leftover: Callable[[str], bool] = lambda path: False
    counted: Callable[[Tree], Tree] = lambda tree: tree
    many_ends: bool = False


@dataclass(frozen=True, slots=True)
class Tried:
    """How much was tried: steps of the history itself; distinct states after a crash, or failures, of all depths."""

    steps: int
    cases: int


class _Scratch:
    """Where histories run and restart: all at one path, each in a fresh directory that is removed afterwards.

    A record may name a disk by its path. At one path the states of several runs are the same where they differ in
    nothing else, and each is tried once; and a restart finds its disks where they were, as it does after a real crash.
    """

    def __init__(self, folder: str) -> None:
        self.folder = tempfile.mkdtemp(dir=folder)
        self.root = f"{self.folder}/disks"
        self._restarted: dict[bytes, Tree] = {}

    def built(self, history: History) -> str:
        os.mkdir(self.root)
        history.build(self.root)
        return self.root

    def restarted(self, history: History, tree: Tree) -> Tree:
        """What a restart makes of a tree."""
        key = digest(tree)
        if key not in self._restarted:
            root = f"{self.folder}/restarted"
            write_tree(tree, root)
            history.recover(root, Disk())
            self._restarted[key] = read_tree(root)
            shutil.rmtree(root)
        return self._restarted[key]


def crash_everywhere(
    history: History,
    folder: str,
    *,
    recorder: type[RecordingDisk] = RecordingDisk,
    bound: int = BOUND,
    crashes: int = 2,
) -> Tried:
    """Crash after every step, with every combination of what was not synced lost or kept, and restart each time.

    After each restart ``check`` has to hold, and a second restart must change nothing. The restart is crashed at every
    step in its turn, as often as ``crashes`` says.

    Args:
        history: what to run.
        folder: where there is room for scratch directories; in memory, for speed.
        recorder: another class breaks the disk on purpose, to see that it is found out.
        bound: on combinations, as in :func:`tests.crash.crash_states.selections`.
        crashes: how many crashes follow each other at most; from the second on they hit the restart.

    Raises:
        WrongError: a promise was broken; the message has everything.
    """
    crasher = _Crasher(history, _Scratch(folder), recorder, bound, crashes)
    root = crasher.scratch.built(history)
    disk = recorder(root, history.disks)
    history.act(root, disk, disk.done)
    crasher.try_all(disk, f"crash of {history.name!r}")
    return Tried(len(disk.log), len(crasher.seen))


def crash_after_failures(
    history: History, folder: str, *, numbers: Sequence[int] = (errno.EIO, errno.ENOSPC), bound: int = BOUND
) -> Tried:
    """Let step 0, 1, 2 ... fail, once, and crash at every step of what the engine does about that, as above.

    This is where a sync that failed and is taken for done shows.

    Raises:
        WrongError: a promise was broken; the message has everything.
    """
    crasher = _Crasher(history, _Scratch(folder), RecordingDisk, bound, 1)
    steps = 0
    for number in numbers:
        for at in count():
            root = crasher.scratch.built(history)
            disk = RecordingDisk(root, history.disks)
            failing = FailingDisk(at, number, inner=disk)
            with suppress(history.errors[number]):
                history.act(root, failing, disk.done)
            name = f"failure of step {at + 1} ({failing.failed}) of {history.name!r} with {errno.errorcode[number]}"
            crasher.try_all(disk, f"{name}, and crash")
            if failing.failed is None:
                break
        steps = max(steps, at)
    return Tried(steps, len(crasher.seen))


@dataclass(slots=True)
class _Crasher:
    """Tries states that a crash may leave, each once."""

    history: History
    scratch: _Scratch
    recorder: type[RecordingDisk]
    bound: int
    crashes: int
    seen: set[tuple[bytes, tuple[str, ...]]] = field(default_factory=set)
    checked: set[tuple[bytes, tuple[str, ...]]] = field(default_factory=set)
    """What a restart made of them; most come to the same, and need no second look."""
    restarts: dict[tuple[bytes, frozenset[frozenset[str]]], tuple[bytes, RecordingDisk | None]] = field(
        default_factory=dict
    )
    """What a restart made of a tree, by the tree and what is one file in it, and its steps where they are crashed too.

    A restart sees what lies on the disks, and not what was done before the crash. So it is known for a tree that was
    restarted before; again it is made only for a check of what it leaves against other things that were done.
    """
    last: RecordingDisk | None = None
    """What the history was run on the last time."""

    def try_all(self, disk: RecordingDisk, title: str) -> None:
        """Try what a crash may leave at any moment of the log, and of the restarts that follow; clear the disk."""
        disk.assert_nothing_else_changed()
        shutil.rmtree(self.scratch.root)
        waiting = deque(self._unseen(disk, (), 1, lambda: ["", title], self._first_new_moment(disk)))
        self.last = disk
        while waiting:
            state, depth, story = waiting.popleft()
            goes_on = depth < self.crashes
            key = state.digest, state.image.links()
            after, restarted = self.restarts.get(key, (b"", None))
            if (after, state.done) not in self.checked or (goes_on and restarted is None):
                after, restarted = self._restart(state, story)
                self.restarts[key] = after, restarted if goes_on else None
            if goes_on and restarted is not None:
                before = partial(_and_again, story)
                waiting.extend(self._unseen(restarted, state.done, depth + 1, before))

    def _restart(self, state: CrashState, story: Story) -> tuple[bytes, RecordingDisk]:
        """Restart from a state, and check what that leaves, of which it gives the digest, and the steps it took."""
        root = self.scratch.root
        write_image(state.image, root)
        restarted = self.recorder(root, self.history.disks)
        try:
            self.history.recover(root, restarted)
            tree = restarted.assert_nothing_else_changed()
            found = (digest(tree), state.done)
            if found not in self.checked:
                self.checked.add(found)
                _check(self.history, root, state.done, tree)
        except Exception as error:
            raise WrongError("\n".join([*story(), "", f"{type(error).__name__}: {error}"])) from error
        shutil.rmtree(root)
        return found[0], restarted

    def _first_new_moment(self, disk: RecordingDisk) -> int:
        """The first moment whose states are not those of the last run, which took the same steps up to there."""
        if self.last is None or disk.start != self.last.start:
            return 0
        steps = takewhile(lambda pair: pair[0] == pair[1], zip(disk.log, self.last.log, strict=False))
        return sum(1 for _ in steps) + 1

    def _unseen(
        self, disk: RecordingDisk, done: tuple[str, ...], depth: int, before: Story, first: int = 0
    ) -> Iterator[_Case]:
        for state in crash_states(disk.start, disk.log, self.bound, first=first):
            after = replace(state, done=done + state.done)
            if after.key not in self.seen:
                self.seen.add(after.key)
                yield after, depth, partial(_story_of, disk, state, before)


def _check(history: History, root: str, done: Sequence[str], first: Tree) -> None:
    """Check what a restart has left, which is given, and restart again."""
    history.check(root, tuple(done))
    history.recover(root, Disk())
    changed = difference(first, read_tree(root))
    assert not changed, "\n".join(["a second restart, or the check, changed something:", *changed])


def _story_of(disk: RecordingDisk, state: CrashState, before: Story) -> list[str]:
    """The story of a crash, as lines."""
    steps = describe(disk.log, disk.start.paths())
    lines = before()
    lines[-1] += f" after {state.steps} of {len(steps)} steps; {len(state.lost)} lost:"
    for number, text in enumerate(steps[: state.steps]):
        how = state.lost.get(number)
        mark = "" if how is None else f"    <-- LOST{how and ', ' + how}"
        lines.append(f"  {number + 1:3} {text}{mark}")
    return [*lines, "what lay there then:", *(f"  {line}" for line in listing(state.tree))]


def _and_again(before: Story) -> list[str]:
    return [*before(), "", "restarted, and crashed again"]


def fail_everywhere(
    history: History, folder: str, *, numbers: Sequence[int] = NUMBERS, inner: type[Disk] = Disk
) -> Tried:
    """Let step 0, 1, 2 ... fail until none does, once alone and once for good, with each number.

    Each time: what is raised is what the history says of the number, and a sentence; no descriptor is left open; the
    tree is as it was before the failing call or as it is after it, at the latest after a restart; and after a restart
    ``check`` holds and another one changes nothing.

    Args:
        history: what to run.
        folder: where there is room for scratch directories.
        numbers: of the errors.
        inner: the disk that does what does not fail.

    Raises:
        WrongError: a promise was broken; the message has everything.
    """
    scratch = _Scratch(folder)
    root = scratch.built(history)
    trees = [read_tree(root)]
    history.act(root, inner(), lambda text: trees.append(read_tree(root)))
    trees.append(read_tree(root))
    shutil.rmtree(root)
    checked: set[tuple[bytes, tuple[str, ...]]] = set()
    cases = steps = 0
    for number in numbers:
        for lasting in (False, True):
            for at in count():
                disk = FailingDisk(at, number, lasting=lasting, inner=inner())
                if not _fail_once(history, scratch, disk, trees, checked):
                    break
                cases += 1
            steps = max(steps, at)
    return Tried(steps, cases)


def _fail_once(
    history: History,
    scratch: _Scratch,
    disk: FailingDisk,
    trees: list[Tree],
    checked: set[tuple[bytes, tuple[str, ...]]],
) -> bool:
    """Run the history on a disk that may fail; False: it did not. What a restart leaves is checked once of each."""
    root = scratch.built(history)
    done: list[str] = []
    descriptors = _open_descriptors()
    error: Exception | None = None
    try:
        history.act(root, disk, done.append)
    except Exception as raised:
        error = raised.with_traceback(None)
        if not isinstance(raised, history.errors[disk.number]):
            raise WrongError(_failure(history, disk, done, f"raised {raised!r}")) from raised
    right = trees[-1:] if error is None else trees[len(done) : len(done) + 2]
    wrong = [
        *_wrong_words(error, disk),
        *(f"left open: {path}" for path in sorted(_open_descriptors() - descriptors)),
        *([] if history.many_ends else _wrong_tree(history, root, scratch, right, disk)),
    ]
    if wrong:
        raise WrongError(_failure(history, disk, done, "\n".join([f"raised {error!r}", *wrong]))) from error
    try:
        history.recover(root, Disk())
        tree = read_tree(root)
        left = (digest(tree), tuple(done))
        if left not in checked:
            checked.add(left)
            _check(history, root, done, tree)
    except Exception as found:
        lines = [f"raised {error!r}", "after a restart this is wrong:", f"{type(found).__name__}: {found}"]
        raise WrongError(_failure(history, disk, done, "\n".join([*lines, *listing(read_tree(root))]))) from found
    shutil.rmtree(root)
    return disk.failed is not None


def _wrong_words(error: Exception | None, disk: FailingDisk) -> list[str]:
    if error is None:
        return []
    if disk.failed is None:
        return ["no step failed"]
    if isinstance(error, OSError):
        return [] if error.errno == disk.number else ["that is another error than the disk's"]
    text = str(error)
    return [] if len(text.split()) > 3 and "Errno" not in text else ["that is no clear sentence"]


def _wrong_tree(history: History, root: str, scratch: _Scratch, right: list[Tree], disk: FailingDisk) -> list[str]:
    """How the tree differs from all that would be right; and from what a restart makes of these, after a restart."""

    def counts(tree: Tree) -> Tree:
        return {
            _AT_RANDOM.sub("<at random>", path): what
            for path, what in history.counted(tree).items()
            if not (disk.lasting and history.leftover(path))
        }

    if counts(read_tree(root)) in [counts(tree) for tree in right]:
        return []
    history.recover(root, Disk())
    found = counts(read_tree(root))
    expected = [counts(each) for tree in right for each in (tree, scratch.restarted(history, tree))]
    if found in expected:
        return []
    closest = min((difference(tree, found) for tree in expected), key=len)
    return ["even after a restart the tree is neither what was before nor what should be after:", *closest]


def _failure(history: History, disk: FailingDisk, done: list[str], what: str) -> str:
    for_good = ", for good" if disk.lasting else ""
    cause = f"step {disk.at + 1} ({disk.failed}) failed with {errno.errorcode[disk.number]}{for_good}"
    return f"{history.name!r}: {cause}; done before: {done or 'nothing'}\n{what}"


def _open_descriptors() -> set[str]:
    """What this process holds open: number and path."""
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{descriptor} {os.readlink(f'/proc/self/fd/{descriptor}')}")
        except FileNotFoundError:
            continue
    return found
