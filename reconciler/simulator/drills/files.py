"""Drills the primitive changes of a disk: what was said to be durable is there after any crash, and nothing else.

A store does its changes one after the other, so a later sync often makes durable what an earlier one left out. Here
each change stands alone: files that are replaced, created, removed and copied, directories that are made and renamed,
with a fault in the middle of many, and often a crash right behind. Source: DESIGN §5.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from random import Random
from typing import Final

from logstore import ChangeRefusedError, LogStoreError
from logstore.fs import (
    Batch,
    Directory,
    Disk,
    copy_replica,
    make_directory,
    remove_file,
    rename_exclusively,
    replace_file,
    sync_all,
    write_new_file,
)
from logstore.fs.crash_disk import MachineDisks, memory_folder
from reconciler.simulator.checks import BrokenInvariantError, bytes_of
from reconciler.simulator.drills.bench import PowerCut
from reconciler.simulator.drills.fault import Fault

_STEPS_PER_CHANGE: Final = 20
"""Steps of a drill for each change of a disk."""

_LONGEST: Final = 12
"""Changes of a disk in a long change of the game."""

_FOLDERS: Final = ("a", "b")
_NAMES: Final = tuple(f"{folder}/n{number}" for folder in _FOLDERS for number in range(4))
_PLACES: Final = ("x", "y")
"""Folders of directories."""

_CRASH: Final = 0.6
"""How likely the power goes right behind a change that is done."""

_THERE: Final = 0.8
"""How likely a file is removed that is there, and not just any."""

_MORE_THAN_A_PIPE: Final = 1 << 17

_Content = bytes | None


def drill_files(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill the primitives as a seed says; ``reach`` counts what they come to.

    Raises:
        BrokenInvariantError: something that was said to be durable is not there, or something else is.
    """
    random = Random(f"{seed}/drill of files")
    fault = Fault(random, _LONGEST, lambda what: reach(f"drill_file_fault {what}"))
    with ExitStack() as stack:
        disks = stack.enter_context(MachineDisks.in_memory(1, seed, fault.passes))
        game = _Game(disks, random, fault)
        for _ in range(steps // _STEPS_PER_CHANGE):
            reach(f"drill_file {game.play()}")
    _whole_writes()
    _order_of_syncs(random)


class _Game:
    """Files and directories of one disk, each with what it may be; None: it is not there."""

    def __init__(self, disks: MachineDisks, random: Random, fault: Fault) -> None:
        self._disks, self._random, self._fault = disks, random, fault
        self._root = f"{os.path.dirname(disks.log_dirs[0])}"
        self._files: dict[str, set[_Content]] = {name: {None} for name in _NAMES}
        self._drafts: set[str] = set()
        """Files that nothing reads yet: after a fault they may hold anything."""
        self._directories: dict[str, set[str | None]] = {}
        self._numbers = 0
        with Directory.open(self._root) as root:
            for folder in (*_FOLDERS, *_PLACES):
                make_directory(disks.disk, root, folder).close()
            self._fill(root)
        self._crash()

    def _fill(self, root: Directory) -> None:
        """Make half of the files and a directory in each place, so that a short drill has something to change."""
        for name in self._random.sample(_NAMES, len(_NAMES) // 2):
            data = self._data()
            with root.below(name[0]) as folder:
                write_new_file(self._disks.disk, folder, name[2:], data, durable=True)
            self._files[name] = {data}
        for place in _PLACES:
            self._make(root, place)

    def play(self) -> str:
        """Make one change, perhaps cut short, and look at what is left; gives what it was."""
        moves = {
            "replace": self._replace,
            "remove": self._remove,
            "create": self._create,
            "batch": self._replace_many,
            "batch_create": self._create_many,
            "directory": self._make_directory,
            "rename": self._rename,
            "copy": self._copy,
        }
        name = self._random.choice(sorted(moves))
        self._fault.arm()
        try:
            with Directory.open(self._root) as root:
                moves[name](root)
        except (PowerCut, OSError):
            self._fault.disarm()
            self._crash()
            return name
        except LogStoreError as error:
            raise BrokenInvariantError(f"a change is refused, and should not be: {name}: {error}") from error
        self._fault.disarm()
        self._drafts.clear()
        self._look()
        if self._random.random() < _CRASH:
            self._crash()
        return name

    def _data(self) -> bytes:
        """Draw bytes, sometimes zeros alone, which a copy leaves as a hole; no file has another one's."""
        self._numbers += 1
        return bytes(self._numbers) if self._random.random() < 0.2 else b"%d" % self._numbers

    def _free(self, most: int) -> list[str]:
        free = [name for name in _NAMES if self._files[name] == {None}]
        return self._random.sample(free, min(len(free), most))

    def _becoming(self, contents: dict[str, _Content], act: Callable[[], object]) -> None:
        """Do what gives files these contents."""
        for name, content in contents.items():
            self._files.setdefault(name, {None}).add(content)
        act()
        for name, content in contents.items():
            self._files[name] = {content}

    def _replace(self, root: Directory) -> None:
        name, data = self._random.choice(_NAMES), self._data()
        with root.below(name[0]) as folder:
            self._becoming({name: data}, lambda: replace_file(self._disks.disk, folder, name[2:], data))

    def _remove(self, root: Directory) -> None:
        """Remove a file, seldom one that is gone already."""
        there = [name for name in _NAMES if self._files[name] != {None}]
        name = self._random.choice(there if there and self._random.random() < _THERE else _NAMES)
        with root.below(name[0]) as folder:
            self._becoming({name: None}, lambda: remove_file(self._disks.disk, folder, name[2:]))

    def _create(self, root: Directory) -> None:
        free, data = self._free(1), self._data()
        if not free:
            return
        (name,) = free
        self._drafts.add(name)
        with root.below(name[0]) as folder:
            self._becoming({name: data}, lambda: write_new_file(self._disks.disk, folder, name[2:], data, durable=True))

    def _replace_many(self, root: Directory) -> None:
        chosen = self._random.sample(_NAMES, self._random.choice((1, 2, 7)))
        contents = {name: self._data() if self._random.random() < 0.7 else None for name in chosen}
        with Batch(self._disks.disk, root) as batch:
            self._becoming(contents, lambda: batch.replace(list(contents.items())))

    def _create_many(self, root: Directory) -> None:
        contents = {name: self._data() for name in self._free(self._random.choice((2, 3, 7)))}
        self._drafts |= contents.keys()
        with Batch(self._disks.disk, root) as batch:
            self._becoming(dict(contents), lambda: batch.create(list(contents.items())))

    def _make_directory(self, root: Directory) -> None:
        self._make(root, self._random.choice(_PLACES))

    def _make(self, root: Directory, folder: str) -> None:
        self._numbers += 1
        name = f"d{self._numbers}"
        self._directories[name] = {None, folder}
        with root.below(folder) as parent:
            make_directory(self._disks.disk, parent, name).close()
        self._directories[name] = {folder}

    def _rename(self, root: Directory) -> None:
        """Rename a directory into the other folder, sometimes to a name that is taken there."""
        if not self._directories:
            return
        name = self._random.choice(sorted(self._directories))
        (folder,) = may_be = self._directories[name]
        target = _PLACES[folder == _PLACES[0]]
        taken = [other for other, places in self._directories.items() if places == {target}]
        with root.below(str(folder)) as source, root.below(target) as other:
            if taken and self._random.random() < 0.5:
                self._refused_rename(source, name, other, self._random.choice(taken))
                return
            may_be.add(target)
            rename_exclusively(self._disks.disk, source, name, other, name)
            sync_all(self._disks.disk, [other, source])
        self._directories[name] = {target}

    def _refused_rename(self, source: Directory, name: str, target: Directory, taken: str) -> None:
        self._fault.disarm()
        with suppress(FileExistsError):
            rename_exclusively(self._disks.disk, source, name, target, taken)
            raise BrokenInvariantError(f"{name} is renamed to {taken}, and that is there already")

    def _copy(self, root: Directory) -> None:
        """Copy a folder's files, some of which end in zeros, sometimes onto a disk that writes other bytes."""
        source_name, target_name = self._random.choice(_FOLDERS), f"c{self._numbers}"
        contents = dict[str, _Content]()
        for name in _NAMES:
            (content,) = self._files[name]
            if name[0] == source_name and content is not None:
                contents[f"{target_name}/{name[2:]}"] = content
        self._numbers += 1
        self._drafts |= contents.keys()
        with root.below(source_name) as source:
            if any(content and any(content) for content in contents.values()):
                _wrong_bytes(source)
            with make_directory(self._disks.disk, root, target_name) as target:

                def act() -> None:
                    copy_replica(source, target, self._disks.disk)
                    self._disks.disk.sync(target.descriptor)

                self._becoming(contents, act)

    def _crash(self) -> None:
        self._disks.crash(self._random)
        self._look()
        self._drafts.clear()

    def _look(self) -> None:
        """Compare all of it, and know from then on what it is."""
        for name, may_be in list(self._files.items()):
            found = bytes_of(f"{self._root}/{name}")
            if found not in may_be and name not in self._drafts:
                raise BrokenInvariantError(f"{name} holds {found!r:.90}, and should hold {may_be!r:.300}")
            self._files[name] = {found}
        for name, places in list(self._directories.items()):
            lies = [folder for folder in _PLACES if os.path.isdir(f"{self._root}/{folder}/{name}")]
            if len(lies) > 1 or (lies[0] if lies else None) not in places:
                raise BrokenInvariantError(f"directory {name} lies in {lies}, and should in {places}")
            self._directories[name] = set(lies)
            if not lies:
                del self._directories[name]


class _WrongDisk(Disk):
    """A disk that writes other bytes than it was given, and says nothing."""

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of them, the first one changed."""
        super().write(descriptor, bytes([data[0] ^ 1]) + data[1:])


class _Recorder(Disk):
    """A disk that notes what is synced, by inode."""

    def __init__(self) -> None:
        self.synced = list[int]()

    def sync(self, descriptor: int) -> None:
        """Note it."""
        self.synced.append(os.fstat(descriptor).st_ino)


def _wrong_bytes(source: Directory) -> None:
    """A copy that does not read back as it was written is refused."""
    with memory_folder() as folder, Directory.open(folder) as target:
        try:
            copy_replica(source, target, _WrongDisk())
        except ChangeRefusedError:
            return
    raise BrokenInvariantError("a copy is taken for good, and a disk wrote other bytes of it")


def _whole_writes() -> None:
    """A write that the system takes in part goes on until all is taken, or fails; a pipe takes what it holds."""
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        with suppress(BlockingIOError):
            Disk().write(writing, bytes(_MORE_THAN_A_PIPE))
            raise BrokenInvariantError("a write of which a part was taken is said to be done")
    finally:
        os.close(reading)
        os.close(writing)


def _order_of_syncs(random: Random) -> None:
    """Directories are synced in the order that was asked for, once each."""
    with memory_folder() as folder, ExitStack() as stack, Directory.open(folder) as root:
        disk = _Recorder()
        opened = [stack.enter_context(make_directory(Disk(), root, name)) for name in "abc"]
        asked = random.choices(opened, k=5)
        sync_all(disk, asked)
        wanted = list(dict.fromkeys(os.fstat(each.descriptor).st_ino for each in asked))
    if disk.synced != wanted:
        raise BrokenInvariantError(f"directories are synced in the order {disk.synced}, and {wanted} was asked for")
