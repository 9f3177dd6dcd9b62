"""A change of many steps that was planned and not yet begun: what would be done, and what the store would hold then.

Planning looks and refuses, and changes nothing; a dry run shows :meth:`PlannedChange.lines` and stops there. The steps
of one log dir go by kind: directories are made, then things are renamed, then files are rewritten, and so on.
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

SHOWN = 5
"""Of many things that are in the way, how many a message names."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What a change would do.

    Attributes:
        intent: every step.
        replicas: each replica as it is and as it will be; None: it will be staged.
        log_dirs: path of each log dir that takes part, by its number in the intent.
        notes: what else to know, one sentence each.
    """

    intent: Intent
    replicas: tuple[tuple[Replica, Replica | None], ...]
    log_dirs: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def lines(self) -> Iterator[tuple[str, str]]:
        """Every step in words, in its order: path of the log dir, and what is done there."""
        for step in self.intent.steps:
            yield self.log_dirs[step.at], describe(step)


def describe(step: IntentStep) -> str:
    """What a step does, in words; paths are below the log dir."""
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
    """Gathers the steps of a change, log dir by log dir."""

    operation: str
    sentence: str
    _steps: dict[str, tuple[LogDir, list[IntentStep]]] = field(default_factory=dict)
    replicas: list[tuple[Replica, Replica | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, log_dir: LogDir, *steps: IntentStep) -> None:
        """Add steps to those of a log dir; the number of the log dir in them is filled in later."""
        if steps:
            self._steps.setdefault(log_dir.path, (log_dir, []))[1].extend(steps)

    def planned(self) -> PlannedChange:
        """All of it."""
        members = [log_dir for log_dir, _ in self._steps.values()]
        steps = tuple(step._replace(at=number) for number, (_, own) in enumerate(self._steps.values()) for step in own)
        keys = tuple(log_dir_key(log_dir) for log_dir in members)
        unique = (members[0].disk if members else Disk()).unique()
        intent = Intent(unique, self.operation, self.sentence, keys, steps)
        return PlannedChange(intent, tuple(self.replicas), tuple(each.path for each in members), tuple(self.notes))


def check_ours(store: OpenStore, what: str) -> None:
    """Refuse what a real broker would not understand, if any log dir is one's (KIP37-2).

    Raises:
        ChangeRefusedError: the message names the log dir.
    """
    for log_dir in store.log_dirs:
        log_dir.check_ours(what)


def check_all_online(store: OpenStore, what: str) -> None:
    """Refuse what would leave the replicas of an offline log dir behind.

    Raises:
        OfflineLogDirError: some log dir is offline.
    """
    for path, reason in store.offline.items():
        raise OfflineLogDirError(f"{what} needs every log dir, and {path} is offline ({reason})")


def check_not_doubled(store: OpenStore, topics: Iterable[str]) -> None:
    """Refuse to touch replicas that are live in two log dirs.

    Raises:
        ChangeRefusedError: there are such replicas of these topics.
    """
    wanted = frozenset(topics)
    doubled = [f"{each.log_dir}/{each.path}" for each in store.doubled if each.partition.topic in wanted]
    if doubled:
        raise ChangeRefusedError(f"{listed(doubled)}: live in another log dir too; repair that first")


@contextmanager
def looking(log_dir: LogDir, what: str) -> Iterator[None]:
    """Looking at a log dir while a change of it is planned.

    Args:
        log_dir: is looked at.
        what: names the change in messages, for example ``orders cannot be renamed``.

    Raises:
        OfflineLogDirError: it is offline, or the disk failed just now.
        ChangeFailedError: the system refused.
    """
    log_dir.check_online()
    try:
        yield
    except OSError as error:
        raise log_dir.failed(what, error) from error


def listed(things: Sequence[str]) -> str:
    """The first few of many things, and how many there are."""
    more = f" and {len(things) - SHOWN} more" if len(things) > SHOWN else ""
    return ", ".join(things[:SHOWN]) + more


def moved(replica: Replica, partition: TopicPartition, path: str) -> Replica:
    """A replica under another name or at another place of the same log dir."""
    return replace(replica, partition=partition, path=path)
