"""A game with the offset checkpoints of one log dir: a damaged one stays as it is, and newer offsets stay.

The entries are taken out, given back, updated and renamed at random, and beside that in a plain dictionary. Then the
files are written, the power goes, and they are read here by other code than the engine's own. Source: FACTS §2.4;
DESIGN §5.
"""

from __future__ import annotations

from random import Random
from typing import Final

from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.topic import TopicPartition
from logstore import ChangeRefusedError
from logstore.fs import Directory, replace_file
from logstore.fs.crash_disk import MachineDisks
from logstore.log_dir import CheckpointFiles
from reconciler.simulator.checks import BrokenInvariantError

_TOPICS: Final = ("orders", "clicks", "a.b", "payments")
_ALL: Final = tuple(TopicPartition(topic, number) for topic in _TOPICS for number in range(2))
_ROUNDS, _CHANGES = 3, 4

_Entries = dict[tuple[str, int], int]


def play_checkpoints(random: Random) -> str:
    """Play with the checkpoints of one log dir; gives what it was.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    with MachineDisks.in_memory(1, random.getrandbits(32)) as disks:
        path = disks.log_dirs[0].rpartition("/")[0]
        with Directory.open(path) as root:
            game = _Game(disks, root, random)
        for _ in range(_ROUNDS):
            with Directory.open(path) as root:
                files = CheckpointFiles(root)
                game.look_at(files)
                for _ in range(_CHANGES):
                    game.change(files)
                files.write(disks.disk)
            disks.crash(random)
            game.look(path)
    return "checkpoints_damaged" if game.damaged else "checkpoints"


class _Game:
    """What the files should hold.

    Attributes:
        damaged: file → its bytes.
    """

    def __init__(self, disks: MachineDisks, root: Directory, random: Random) -> None:
        self._random = random
        self._entries: dict[str, _Entries] = {file: self._some() for file in OFFSET_CHECKPOINTS}
        self.damaged = dict[str, bytes]()
        for file, entries in self._entries.items():
            lines = [f"{topic} {number} {offset}" for (topic, number), offset in entries.items()]
            data = "".join(f"{line}\n" for line in ("0", len(lines), *lines)).encode()
            if random.random() < 0.25:
                data = random.choice(
                    (data[: data.rindex(b" ")], b"1" + data[1:], data + b"orders\n", b"0\n9\n" + data[4:])
                )
                self.damaged[file] = data
            replace_file(disks.disk, root, file, data)
        for file in self.damaged:
            self._entries[file] = {}

    def _some(self) -> _Entries:
        """Draw entries, one at least: so that a file that is cut short has lost something."""
        chosen = self._random.sample(_ALL, self._random.randint(1, len(_ALL)))
        return {(at.topic, at.partition): self._random.randrange(1000) for at in chosen}

    def change(self, files: CheckpointFiles) -> None:
        """Make one change, there and here."""
        self._random.choice((self._take_out, self._give_back, self._give_back, self._update, self._rename))(files)

    def _take_out(self, files: CheckpointFiles) -> None:
        chosen = self._random.sample(_ALL, 2)
        files.take_out(chosen)
        for entries in self._entries.values():
            for at in chosen:
                entries.pop((at.topic, at.partition), None)

    def _give_back(self, files: CheckpointFiles) -> None:
        """What comes back is older than what is there."""
        at = self._random.choice(_ALL)
        offsets = {file: self._random.randrange(1000) for file in self._random.sample(OFFSET_CHECKPOINTS, 2)}
        files.give_back(at, offsets)
        for file, offset in offsets.items():
            self._entries[file].setdefault((at.topic, at.partition), offset)

    def _update(self, files: CheckpointFiles) -> None:
        file, at = self._random.choice(OFFSET_CHECKPOINTS), self._random.choice(_ALL)
        offset = self._random.randrange(1000)
        try:
            files.update(file, {at: offset})
        except ChangeRefusedError:
            if file not in self.damaged:
                raise BrokenInvariantError(f"{file} is sound, and an offset in it is refused") from None
            return
        if file in self.damaged:
            raise BrokenInvariantError(f"{file} is damaged, and an offset is entered in it")
        self._entries[file][at.topic, at.partition] = offset

    def _rename(self, files: CheckpointFiles) -> None:
        one, other = self._random.sample(_TOPICS, 2)
        new = {one: other, other: one}
        files.rename(new)
        for file, entries in self._entries.items():
            self._entries[file] = {(new.get(topic, topic), number): each for (topic, number), each in entries.items()}

    def look_at(self, files: CheckpointFiles) -> None:
        """Compare what was read of the files, in which a damaged one is empty."""
        self._entries |= {file: {} for file in self.damaged}
        for file, entries in self._entries.items():
            if dict(files.entries(file)) != entries:
                raise BrokenInvariantError(f"{file} is read as {files.entries(file)}, and holds {entries}")

    def look(self, path: str) -> None:
        """Compare the files."""
        for file, entries in self._entries.items():
            with open(f"{path}/{file}", "rb") as opened:
                data = opened.read()
            if file in self.damaged:
                if data != self.damaged[file]:
                    raise BrokenInvariantError(f"{file} is damaged and left for a repair, and is written over")
                continue
            lines = [line.split(" ") for line in data.decode().splitlines()[2:]]
            found = {(topic, int(number)): int(offset) for topic, number, offset in lines}
            if found != entries:
                raise BrokenInvariantError(f"{file} holds {found}, and should hold {entries}")
