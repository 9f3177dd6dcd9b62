"""A planned change of many steps: what would be done, and which replicas the store would hold then.

Planning reads and refuses, and changes nothing; a dry run shows :meth:`PlannedChange.lines` and stops there. The steps
of one log dir are ordered by kind: directories are made, then entries are renamed, then files are rewritten, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from layout.ours import (
    Intent,
    IntentStep,
    MakeDirectory,
    RemoveDirectory,
    Rename,
    RenameEntries,
    Rewrite,
    Stage,
    Unstage,
)
from layout.topic import TopicPartition
from logstore.errors import ChangeRefusedError, OfflineLogDirError
from logstore.fs import Disk
from logstore.journal import log_dir_key
from logstore.log_dir import LogDir
from logstore.store import OpenStore, Replica

MOST_NAMED = 5
"""How many of many obstacles a message names."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What a change would do.

    Attributes:
        intent: every step.
        replicas: each replica as it is, and as it will be; None: it will be staged.
        log_dirs: path of each log dir that takes part, by its number in the intent.
        notes: further consequences, one sentence each.
    """

    intent: Intent
    replicas: tuple[tuple[Replica, Replica | None], ...]
    log_dirs: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def lines(self) -> Iterator[tuple[str, str]]:
        """Describe every step in order: path of the log dir, and what is done there."""
        for step in self.intent.steps:
            yield self.log_dirs[step.at], describe(step)


def describe(step: IntentStep) -> str:
    """Describe a step in words; paths are below the log dir."""
    match step:
        case MakeDirectory(_, path, tier):
            return f"make the {'tier' if tier else 'directory'} {path}"
        case RemoveDirectory(_, path, tier):
            return f"remove the {'tier' if tier else 'directory'} {path}"
        case Rename(_, path, new_path):
            return f"rename {path} to {new_path}"
        case Rewrite(_, path):
            return f"rewrite {path}"
        case RenameEntries(_, topic, new_topic):
            return f"rename the checkpoint entries of {topic} to {new_topic}"
        case Stage(_, path, topic, partition):
            return f"stage {path}, which is {TopicPartition(topic, partition)}"
        case Unstage(_, path):
            return f"bring back {path}"


@dataclass(slots=True)
class ChangePlanner:
    """Collects the steps of a change, log dir by log dir."""

    operation: str
    sentence: str
    _steps: dict[str, tuple[LogDir, list[IntentStep]]] = field(default_factory=dict)
    replicas: list[tuple[Replica, Replica | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, log_dir: LogDir, *steps: IntentStep) -> None:
        """Add steps of one log dir; :meth:`planned` fills in the number of the log dir."""
        if steps:
            self._steps.setdefault(log_dir.path, (log_dir, []))[1].extend(steps)

    def planned(self) -> PlannedChange:
        """Put the plan together."""
        members = [log_dir for log_dir, _ in self._steps.values()]
        steps = tuple(step._replace(at=number) for number, (_, own) in enumerate(self._steps.values()) for step in own)
        keys = tuple(log_dir_key(log_dir) for log_dir in members)
        unique = (members[0].disk if members else Disk()).unique()
        intent = Intent(unique, self.operation, self.sentence, keys, steps)
        return PlannedChange(intent, tuple(self.replicas), tuple(each.path for each in members), tuple(self.notes))


def check_ours(store: OpenStore, what: str) -> None:
    """Refuse a change that a real broker would not understand, if any log dir belongs to one (KIP37-2).

    Raises:
        ChangeRefusedError: the message names the log dir.
    """
    for log_dir in store.log_dirs:
        log_dir.check_ours(what)


def check_all_online(store: OpenStore, what: str) -> None:
    """Refuse a change that would leave the replicas of an offline log dir behind.

    Raises:
        OfflineLogDirError: some log dir is offline.
    """
    for path, reason in store.offline.items():
        raise OfflineLogDirError(f"{what} needs every log dir, and {path} is offline ({reason})")


def check_no_duplicates(store: OpenStore, topics: Iterable[str]) -> None:
    """Refuse to touch replicas that are live in two log dirs.

    Raises:
        ChangeRefusedError: there are such replicas of these topics.
    """
    wanted = frozenset(topics)
    doubled = [f"{each.log_dir}/{each.path}" for each in store.duplicates if each.partition.topic in wanted]
    if doubled:
        raise ChangeRefusedError(f"{first_few(doubled)}: live in another log dir too; repair that first")


@contextmanager
def reading_log_dir(log_dir: LogDir, what: str) -> Iterator[None]:
    """Turn the system's errors into the engine's while a log dir is read to plan a change.

    Args:
        log_dir: that is read.
        what: names the change in messages, for example ``orders cannot be renamed``.

    Raises:
        OfflineLogDirError: the log dir is offline, or its disk failed just now.
        ChangeFailedError: the system refused.
    """
    log_dir.check_online()
    try:
        yield
    except OSError as error:
        raise log_dir.failed(what, error) from error


def first_few(things: Sequence[str]) -> str:
    """Name the first few of many things, and how many more there are."""
    more = f" and {len(things) - MOST_NAMED} more" if len(things) > MOST_NAMED else ""
    return ", ".join(things[:MOST_NAMED]) + more


def moved_replica(replica: Replica, partition: TopicPartition, path: str) -> Replica:
    """Describe a replica under another name or path in the same log dir."""
    return replace(replica, partition=partition, path=path)
