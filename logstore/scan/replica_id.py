"""Reads the topic ID of a partition dir: the short way for what a broker writes, the long way for everything else.

The replicas of one topic have the same 43 bytes in ``partition.metadata``, so a dictionary from the whole content to
the topic ID answers nearly always, after three system calls. Another form, damage, a FIFO, a link or a file that is
too large take the long way, through ``small_file`` and ``layout``, and come out as a state and a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeAlias

from layout import partition_metadata
from layout.errors import DamagedFileError
from layout.ids import TopicId
from layout.partition_metadata import EmptyFileError, PartitionMetadata, ZeroTopicIdError
from logstore.errors import UnreadableFileError
from logstore.fs import FIRST_READ, READ_FLAGS, read_small_file
from logstore.rows import MetadataState

METADATA_LIMIT = 1 << 16
"""Bytes of ``partition.metadata`` that are read. A broker writes 43, and reads no more than two lines."""

IdFound: TypeAlias = tuple[str | None, str | None, str | None, str | None]
"""Topic ID, state, problem: the columns of that name; and the topic that the file names, which most do not."""

_FILE = partition_metadata.FILE_NAME
_BELOW = "/" + _FILE
_OK, _MISSING, _UNREADABLE = (
    state.value for state in (MetadataState.OK, MetadataState.MISSING, MetadataState.UNREADABLE)
)


class VanishedError(Exception):
    """A directory is gone since its log dir was listed: a live broker renames and deletes."""


def read_topic_id(path: str, topic: str | None, partition: int | None, known: dict[bytes, str]) -> IdFound:
    """Read ``partition.metadata`` of the directory at ``path``.

    Args:
        path: of the directory.
        topic: full name that the directory stands for, held against the file; None: its name does not surely tell.
        partition: number that the directory stands for; None as for ``topic``.
        known: content → topic ID text, filled on the way, and only from files as a broker writes them.

    Raises:
        VanishedError: there is no such directory any more.
    """
    try:
        descriptor = os.open(path + _BELOW, READ_FLAGS)
        try:
            data = os.read(descriptor, FIRST_READ)
        finally:
            os.close(descriptor)
    except OSError:
        return _judge(path, topic, partition)
    text = known.get(data) or _learned(data, known)
    return _judge(path, topic, partition) if text is None else (text, _OK, None, None)


def read_usual_topic_ids(
    folder: str, names: Iterable[str], known: dict[bytes, str], statuses: list[os.stat_result] | None = None
) -> list[str] | None:
    """Read ``partition.metadata`` of several directories, as long as each is as a broker writes it.

    Args:
        folder: where they lie, ending in ``/``.
        names: of the directories.
        known: as for :func:`read_topic_id`.
        statuses: takes up the status of each file: of one that is open, that costs half of what it costs by its path.

    Returns:
        The topic ID texts; None: not all of the files are as usual, so ask :func:`read_topic_id` of each.
    """
    topic_ids: list[str] = []
    try:
        for name in names:
            descriptor = os.open(folder + name + _BELOW, READ_FLAGS)
            try:
                data = os.read(descriptor, FIRST_READ)
                if statuses is not None:
                    statuses.append(os.fstat(descriptor))
            finally:
                os.close(descriptor)
            text = known.get(data) or _learned(data, known)
            if text is None:
                return None
            topic_ids.append(text)
    except OSError:
        return None
    return topic_ids


def _learned(data: bytes, known: dict[bytes, str]) -> str | None:
    """Take up a new content, if it is as a broker writes it."""
    raw = partition_metadata.fast_topic_id(data)
    if raw is None:
        return None
    text = known[data] = str(TopicId(raw))
    return text


def unreadable(obstacle: str) -> IdFound:
    """What is known of the topic ID where the directory cannot be read, with the reason as a clause."""
    return None, _UNREADABLE, f"{obstacle}; a broker takes the log dir offline", None


def held_against_name(found: IdFound, of_name: TopicId | None) -> IdFound:
    """Hold the topic ID that a directory's name carries, if any, against the one that its file holds, if any."""
    topic_id, state, problem, topic = found
    if of_name is None or of_name.is_zero:
        return found
    if topic_id is not None and topic_id != str(of_name):
        contradiction = f"{_FILE} holds topic ID {topic_id}, and the directory's name {of_name}"
        return topic_id, MetadataState.CONTRADICTS.value, contradiction, topic
    return str(of_name), state, problem, topic


def _judge(path: str, topic: str | None, partition: int | None) -> IdFound:
    """Read the file the long way, and say what is wrong with it."""
    try:
        data = read_small_file(path + _BELOW, METADATA_LIMIT)
        if data is None:
            if not os.path.lexists(path):
                raise VanishedError
            return None, _MISSING, None, None
        found = partition_metadata.parse(data)
    except UnreadableFileError as error:
        return unreadable(f"{_FILE} {error}")
    except DamagedFileError as error:
        return None, _damage(error).value, f"{error}; {error.effect}", None
    contradiction = _contradiction(found, topic, partition)
    if contradiction is None:
        return str(found.topic_id), _OK, None, found.topic
    problem = f"{_FILE} contradicts its directory: {contradiction}"
    return str(found.topic_id), MetadataState.CONTRADICTS.value, problem, None


def _damage(error: DamagedFileError) -> MetadataState:
    if isinstance(error, EmptyFileError):
        return MetadataState.EMPTY
    return MetadataState.ZERO_ID if isinstance(error, ZeroTopicIdError) else MetadataState.MALFORMED


def _contradiction(found: PartitionMetadata, topic: str | None, partition: int | None) -> str | None:
    """Hold the file against its directory; what the directory's name does not tell is held against nothing."""
    topic = found.topic if topic is None else topic
    partition = found.partition if partition is None else partition
    if topic is None or partition is None:
        return None
    return partition_metadata.contradiction(found, topic, partition)
