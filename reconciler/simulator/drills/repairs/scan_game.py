"""A game with what a scan says of two log dirs of a broker, whose directories and small files are drawn.

::

    topic ID    the one in partition.metadata, else the one in the directory's name
    state       contradicts, where the file names another topic, partition or ID than its directory; else its own
    epoch       of the last records, of each copy of a replica that is live in two directories; else none is read

What a directory is and what its file says is noted while it is drawn, and the rows are compared with that. Source:
FACTS §1.2, §1.4, §2.1, §2.5; KIP516-2.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from layout.ids import TopicId
from layout.scheme import Scheme
from logstore.fs import Directory, Disk, make_directory, write_new_file
from logstore.fs.crash_disk import memory_folder
from logstore.scan import scan_all
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.made import make_log_dir
from reconciler.simulator.drills.repairs.damaged import METADATA

_EPOCHS: Final = "leader-epoch-checkpoint"
_TOPICS: Final = ("orders", "clicks")
_DIRECTORIES: Final = 6
_IS_LEGIBLE: Final = 0.8
"""How likely a leader-epoch-checkpoint is sound."""

_SILENT: Final[Mapping[str, tuple[bytes, ...]]] = {
    "empty": (b"",),
    "malformed": (b"version: 0", b"version: 0\ntopic_id: short", b"{", b"version: -1\ntopic_id: " + b"B" * 22),
    "zero_id": (b"version: 0\ntopic_id: " + b"A" * 22,),
}
"""State of a partition.metadata that holds no topic ID → what may be in it."""


@dataclass(frozen=True, slots=True)
class _Name:
    """The name of a directory, and what it says.

    Attributes:
        path: below the log dir.
        kind: as a scan names it.
        topic: None: the name does not say it.
        is_whole: whether the topic is surely not cut.
        partition: of the replica.
        topic_id: None: the name does not say it.
    """

    path: str
    kind: str
    topic: str | None
    is_whole: bool
    partition: int
    topic_id: TopicId | None


@dataclass(frozen=True, slots=True)
class _File:
    """A partition.metadata, and what it says.

    Attributes:
        data: None: there is none.
        state: of the file alone.
        topic_id: None: it holds none.
        topic: None: it does not name it.
        partition: None: it does not name it.
    """

    data: bytes | None
    state: str
    topic_id: TopicId | None = None
    topic: str | None = None
    partition: int | None = None


def play_scan(random: Random, reach: Callable[[str], None]) -> None:
    """Scan two log dirs; ``reach`` counts what they come to.

    Raises:
        BrokenInvariantError: a row is not as it should be.
    """
    disk, scheme = Disk(), random.choice((None, Scheme.FLAT, Scheme.BY_TOPIC_ID))
    with memory_folder() as folder:
        paths = [f"{folder}/d{number}" for number in range(2)]
        rows, epochs = dict[tuple[str, str], list[Any]](), dict[tuple[str, str], int | None]()
        for path in paths:
            make_log_dir(path, disk, random, scheme)
            for name in {each.path: each for each in (_name(random, scheme) for _ in range(_DIRECTORIES))}.values():
                file = _file(random, name)
                epochs[path, name.path] = _write(random, disk, path, name, file)
                rows[path, name.path] = _expected(name, file)
                reach(f"drill_scan {rows[path, name.path][-1]}")
        live = Counter((topic, number) for kind, topic, number, *_ in rows.values() if kind == "live" and topic)
        for key, row in rows.items():
            is_twice = row[0] == "live" and live[row[1], row[2]] > 1
            row.append(epochs[key] if is_twice else None)
            if is_twice:
                reach("drill_scan copies")
        _compare(paths, rows)


def _name(random: Random, scheme: Scheme | None) -> _Name:
    topic, number, topic_id = random.choice(_TOPICS), random.randrange(2), TopicId(random.randbytes(16))
    if scheme is not None and random.random() < 0.2:
        return _Name(f"deleting/{topic_id}_{number}", "staged", None, False, number, topic_id)
    if scheme is Scheme.BY_TOPIC_ID:
        digits = topic_id.to_bytes().hex()
        return _Name(f"{digits[:2]}/{digits}_{number}", "live", None, False, number, topic_id)
    kind = random.choice(("live", "live", "live", "future", "stray"))
    path = f"{topic}-{random.choice(('', '', '0'))}{number}"
    if kind != "live":
        path += f".{random.randbytes(16).hex()}-{kind}"
    return _Name(path, kind, topic, kind != "stray", number, None)


def _file(random: Random, name: _Name) -> _File:
    if random.random() < 0.3:
        state = random.choice(("missing", *_SILENT))
        return _File(random.choice(_SILENT[state]) if state in _SILENT else None, state)
    other = TopicId(random.randbytes(16))
    topic_id = other if name.topic_id is None else random.choice((name.topic_id, other))
    if random.random() < 0.4:
        return _File(f"version: 0\ntopic_id: {topic_id}".encode(), "ok", topic_id)
    topic = random.choice((name.topic or _TOPICS[0], name.topic or _TOPICS[0], "payments"))
    number = random.choice((name.partition, name.partition, name.partition, 7))
    fields = {"schema_version": 0, "id": str(topic_id), "name": topic, "partition": number}
    return _File(json.dumps(fields).encode(), "ok", topic_id, topic, number)


def _write(random: Random, disk: Disk, path: str, name: _Name, file: _File) -> int | None:
    """Make a directory with its files; gives the leader epoch of its last records, None: nothing says it."""
    folder, _, last = name.path.rpartition("/")
    epochs = sorted(random.sample(range(100), random.randrange(4)))
    is_legible = random.random() < _IS_LEGIBLE
    lines = [f"{epoch} {offset}\n" for offset, epoch in enumerate(epochs)]
    with Directory.open(path) as root:
        if folder and not root.holds(folder):
            make_directory(disk, root, folder).close()
        with root.below(folder) as parent, make_directory(disk, parent, last) as made:
            if file.data is not None:
                write_new_file(disk, made, METADATA, file.data, durable=False)
            text = f"0\n{len(lines) + (not is_legible)}\n{''.join(lines)}"
            write_new_file(disk, made, _EPOCHS, text.encode(), durable=False)
    return epochs[-1] if epochs and is_legible else None


def _expected(name: _Name, file: _File) -> list[Any]:
    """Give what a scan should say: kind, topic, partition, topic ID and state."""
    topic_id, state = file.topic_id or name.topic_id, file.state
    is_other_topic = name.is_whole and file.topic is not None and file.topic != name.topic
    is_other_id = None not in (file.topic_id, name.topic_id) and file.topic_id != name.topic_id
    if is_other_topic or is_other_id or file.partition not in (None, name.partition):
        state = "contradicts"
    topic = name.topic
    if name.kind == "live" and topic is None:
        topic = file.topic if file.partition in (None, name.partition) else None
    return [name.kind, topic, name.partition, None if topic_id is None else str(topic_id), state]


def _compare(paths: list[str], wanted: Mapping[tuple[str, str], list[Any]]) -> None:
    columns = ("kind", "topic", "partition", "topic_id", "metadata_state", "leader_epoch")
    found = {
        (seen.log_dir, row["name"]): [row[each] for each in columns]
        for seen in scan_all(paths, sizes=False, jobs=0)
        for row in seen.rows.to_pylist()
        if row["partition"] is not None
    }
    for key in sorted(wanted.keys() | found.keys()):
        if wanted.get(key) != found.get(key):
            raise BrokenInvariantError(
                f"{'/'.join(key)} is scanned as {found.get(key)}, and should be as {wanted.get(key)}"
            )
