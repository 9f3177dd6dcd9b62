"""A game with repairs of one log dir: some of the files, then all of them, then undone, each cut short at will.

What is promised of it::

    cut short    each file holds the damaged bytes or the right ones, and the backup has the damaged ones of each that
                 has changed, whichever run changed it
    done         each file holds the right bytes, also after a crash
    undone       each file holds the damaged bytes, byte for byte, and the backup is gone
    left         a file that has changed since, or whose directory is another one by now or gone, stays as it is with
                 the reason, and the backup stays; when it is as it was again, a second undo does the rest

The backup is read here by other code than the engine's own. Source: DESIGN §6.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Final

from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import LogDir, LogStoreError
from logstore.fs import Directory, make_directory, remove_file, remove_tree, replace_file, write_new_file
from logstore.fs.crash_disk import MachineDisks
from logstore.log_dir import FallbackRecords
from logstore.repair import CheckedRepair, RepairStatus, check_repair, repair_files, undo_repair
from logstore.store import recover_all
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import PowerCut
from reconciler.simulator.drills.fault import CALM_FROM, Fault
from reconciler.simulator.drills.made import make_log_dir
from reconciler.simulator.drills.repairs.damaged import (
    CHECKPOINTS,
    METADATA,
    RepairedFile,
    damaged_checkpoint,
    damaged_metadata,
    leftover,
)

_PARTITIONS: Final = 3
_LONGEST: Final = 24
"""Changes of a disk in a long run of a repair."""

_REFUSED: Final = (8, 13, 18)
"""Changes of a disk before the last sync of the first files that an undo puts back, in a log dir without a mark."""

_AWAY: Final = f"away-0.{'0d' * 16}-stray"
_TAMPERED: Final = b"0\n1\norders 0 7\n"
"""What a broker writes into a file meanwhile."""


def play_repair(random: Random, reach: Callable[[str], None]) -> None:
    """Play with one log dir; ``reach`` counts what it comes to.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    struck = list[str]()
    fault = Fault(random, _LONGEST, struck.append)
    with MachineDisks.in_memory(1, random.getrandbits(32), fault.passes) as disks:
        game = _Game(disks, random, fault, struck)
        some = random.sample(game.files, random.randint(1, len(game.files)))
        game.repair(some)
        if random.random() < 0.7:
            game.repair(game.files)
            some = game.files
        what = game.meddle(some)
        game.undo(some, what)
        if what != "nothing":
            game.put_right()
            game.undo(some, "nothing")
    reach(f"drill_repair undo_{what}")
    for kind in struck:
        reach(f"drill_repair_fault {kind}")


class _Game:
    """One log dir, the files that are damaged, and the backup.

    Attributes:
        files: that are damaged.
    """

    def __init__(self, disks: MachineDisks, random: Random, fault: Fault, struck: list[str]) -> None:
        self._disks, self._random, self._fault, self._struck = disks, random, fault, struck
        self._path, self._fingerprint = disks.log_dirs[0], random.randbytes(32).hex()
        self._backup = f"{self._path}/.logstore_repair.{self._fingerprint[:16]}.json"
        self._struck_before = 0
        self._left: RepairedFile | None = None
        self._away: bytes | None = None
        scheme = random.choice((None, Scheme.FLAT))
        make_log_dir(self._path, disks.disk, random, scheme)
        held = [TopicPartition("orders", number) for number in range(_PARTITIONS)]
        self.files = list[RepairedFile]()
        with Directory.open(self._path) as root:
            for at in held:
                self.files.append(self._made(root, at, is_ours=scheme is not None))
            for file in random.sample(CHECKPOINTS, random.randint(0, 2)):
                self.files.append(damaged_checkpoint(random, file, held))
            if random.random() < 0.3:
                self.files.append(leftover(random))
            for each in self.files:
                if not each.folder and each.before is not None:
                    write_new_file(disks.disk, root, each.path, each.before, durable=True)
        self._held = frozenset((at.topic, at.partition) for at in held)

    def _made(self, root: Directory, at: TopicPartition, *, is_ours: bool) -> RepairedFile:
        with make_directory(self._disks.disk, root, str(at)) as made:
            damaged = damaged_metadata(self._random, at, made.key[1], is_ours=is_ours)
            if damaged.before is not None:
                write_new_file(self._disks.disk, made, METADATA, damaged.before, durable=True)
        return damaged

    def repair(self, some: Sequence[RepairedFile]) -> None:
        """Repair files, whatever goes wrong meanwhile."""
        self._until_done(some, lambda: self._repaired(some))
        for each in some:
            each.may_be = {each.after}
        self._look_anew()

    def _repaired(self, some: Sequence[RepairedFile]) -> None:
        with LogDir.open(self._path, disk=self._disks.disk) as log_dir:
            recover_all([log_dir], FallbackRecords(None))
            checked = list[CheckedRepair]()
            for each in some:
                found = check_repair(log_dir, each.repair, self._held)
                if found is not None:
                    checked.append(found)
            if checked:
                _, failed = repair_files(log_dir, checked, self._fingerprint, 1)
                for error in failed.values():
                    raise error

    def _until_done(
        self, changed: Collection[RepairedFile], act: Callable[[], None], *, is_refused: bool = False
    ) -> None:
        """Change files with a fault in the middle of it perhaps, and after a crash again, until it is done.

        ``is_refused``: at first the system refuses one sync, so that a crash may take back what was said to be done.
        """
        for tries in range(CALM_FROM + 1):
            self._struck_before = len(self._struck)
            for each in changed:
                each.may_be |= {each.before, each.after}
            self._fault.arm(tries)
            if is_refused and tries == 0:
                self._fault.refuse(self._random.choice(_REFUSED))
            try:
                act()
                if not self._is_struck:
                    return
            except (PowerCut, LogStoreError) as error:
                if not self._is_struck:
                    raise BrokenInvariantError(f"nothing went wrong, and what was done fails: {error}") from error
            finally:
                self._fault.disarm()
            self._disks.crash(self._random)
            self._look()

    @property
    def _is_struck(self) -> bool:
        """Whether something went wrong in this try."""
        return len(self._struck) > self._struck_before

    def _look_anew(self) -> None:
        """Look at each file, after a crash perhaps."""
        self._look()
        if self._random.random() < 0.5:
            self._disks.crash(self._random)
            self._look()

    def _look(self) -> None:
        """Compare each file, and what the backup has of it, and know from then on what it is."""
        kept = self._kept()
        for each in self.files:
            now = _bytes_of(f"{self._path}/{each.path}")
            if now not in each.may_be:
                raise BrokenInvariantError(f"{each.path} holds {now!r:.200}, and should one of {each.may_be!r:.400}")
            each.may_be = {now}
            is_changed = now != each.before or each is self._left
            if is_changed and (each.path not in kept or kept[each.path] != each.before):
                raise BrokenInvariantError(f"{each.path} is changed, and the backup does not give its old bytes back")
        if self._is_away and _bytes_of(f"{self._path}/{_AWAY}/{METADATA}") != self._away:
            raise BrokenInvariantError(f"a directory lies in {_AWAY} by now, and an undo has changed it")

    @property
    def _is_away(self) -> bool:
        return os.path.exists(f"{self._path}/{_AWAY}")

    def _kept(self) -> dict[str, bytes | None]:
        """Read the backup: path → old bytes; nothing where there is none, or a crash cut it short."""
        data = _bytes_of(self._backup)
        try:
            files = json.loads(data or b"{}").get("files", [])
        except ValueError:
            return {}
        return {each["path"]: None if each["before"] is None else base64.b64decode(each["before"]) for each in files}

    def meddle(self, repaired: Sequence[RepairedFile]) -> str:
        """Let a broker change one of the files meanwhile, or let its directory be another one; gives what it was."""
        what = self._random.choice(("nothing", "nothing", "changed", "replaced", "replaced", "gone"))
        below = [each for each in repaired if each.folder]
        if what == "nothing" or not below:
            return "nothing"
        self._left = chosen = self._random.choice(below if what != "changed" else repaired)
        with Directory.open(self._path) as root:
            if what == "changed":
                self._write(root, chosen, _TAMPERED)
                return what
            self._disks.disk.rename(root.descriptor, chosen.folder, root.descriptor, _AWAY)
            self._away, chosen.may_be = chosen.after, {None}
            if what == "replaced":
                make_directory(self._disks.disk, root, chosen.folder).close()
                self._write(root, chosen, self._random.choice((chosen.before, chosen.after)))
            self._disks.disk.sync(root.descriptor)
        return what

    def _write(self, root: Directory, damaged: RepairedFile, data: bytes | None) -> None:
        """Let a file hold some bytes, durably; None: let it be gone."""
        disk, name = self._disks.disk, os.path.basename(damaged.path)
        with root.below(damaged.folder) as folder:
            if data is not None:
                replace_file(disk, folder, name, data)
            elif folder.holds(name):
                remove_file(disk, folder, name)
        damaged.may_be = {data}

    def put_right(self) -> None:
        """Take back what was done to a file meanwhile."""
        chosen, disk = self._left, self._disks.disk
        assert chosen is not None, "something was done"
        with Directory.open(self._path) as root:
            if self._is_away:
                if root.holds(chosen.folder):
                    remove_tree(disk, root, chosen.folder)
                disk.rename(root.descriptor, _AWAY, root.descriptor, chosen.folder)
                disk.sync(root.descriptor)
            self._write(root, chosen, chosen.after)
        self._left = None

    def undo(self, repaired: Collection[RepairedFile], what: str) -> None:
        """Undo the repair, whatever goes wrong meanwhile; ``what`` was done to one of the files."""
        back = [each for each in repaired if each is not self._left]
        is_refused = what == "nothing" and self._random.random() < 0.5
        self._until_done(back, lambda: self._undone(repaired, what), is_refused=is_refused)
        for each in back:
            each.may_be = {each.before}
        self._look_anew()

    def _undone(self, repaired: Collection[RepairedFile], what: str) -> None:
        if not os.path.exists(self._backup):
            if self._left is not None:
                raise BrokenInvariantError(f"{self._left.path} is {what}, and its backup is gone")
            return  # an undo that was cut short had come to its end; what the files hold is looked at
        outcome = undo_repair(self._backup, disk=self._disks.disk)
        said = {each.path: each.status for each in outcome.results}
        if said.keys() != {each.path for each in repaired}:
            raise BrokenInvariantError(f"{[each.path for each in repaired]} are repaired, and an undo speaks of {said}")
        if self._is_struck:
            return
        for each in repaired:
            wanted = (RepairStatus.SKIPPED,) if each is self._left else (RepairStatus.DONE, RepairStatus.ALREADY)
            if said[each.path] not in wanted:
                raise BrokenInvariantError(f"{each.path} is {what}, and its undo {said[each.path]}, not {wanted[0]}")
        is_gone = not os.path.exists(self._backup)
        if {outcome.backup_removed, is_gone} != {self._left is None}:
            raise BrokenInvariantError(f"after an undo, before which {what} was done, the backup is gone: {is_gone}")


def _bytes_of(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
