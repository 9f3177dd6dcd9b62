"""The one reader of ``partition.metadata``: its state, the topic ID that it holds, and what is wrong with it.

:func:`read_metadata_file` reads one file with all checks. A scan reads those of 100,000 directories, and the replicas
of one topic have the same 43 bytes, so there a dictionary from the whole content to the topic ID answers nearly always,
after three system calls (:func:`read_topic_id`, :func:`read_topic_ids_fast`). Another form, damage, a FIFO, a link or a
file that is too large take the slow path, with all checks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from layout import partition_metadata
from layout.errors import BrokerEffect, DamagedFileError
from layout.ids import TopicId
from layout.partition_metadata import EmptyFileError, PartitionMetadata, ZeroTopicIdError
from logstore.errors import UnreadableFileError
from logstore.fs import READ_FLAGS, read_small_file, when_refused
from logstore.rows import MetadataState
from logstore.tunables import FIRST_READ_BYTES

METADATA_LIMIT = 1 << 16
"""Largest ``partition.metadata`` in bytes. A broker writes 43, and reads no more than two lines."""

TopicIdFound: TypeAlias = tuple[str | None, str | None, str | None, str | None]
"""Topic ID, state, problem: the columns of these names; and the topic that the file names, in the few forms that do."""

_FILE = partition_metadata.FILE_NAME
_BELOW = "/" + _FILE
_OK = MetadataState.OK.value


class VanishedError(Exception):
    """A directory vanished after the listing of its log dir: a live broker renames and deletes."""


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """What ``partition.metadata`` of one directory says, or why it says nothing."""

    state: MetadataState = MetadataState.OK
    """OK also where the file contradicts its directory: that is for :func:`layout.partition_metadata.contradiction`."""
    effect: BrokerEffect = BrokerEffect.NONE
    """Effect of the bytes on releases from 3.7; also set where only this program can read the form of the file."""
    problem: str | None = None
    """One clause, without the name of the file."""
    found: PartitionMetadata | None = None

    @property
    def topic_id(self) -> TopicId | None:
        """The topic ID; None: the file holds no readable one."""
        return None if self.found is None else self.found.topic_id

    @property
    def version(self) -> int:
        """The version of the file; 0 where there is none."""
        return 0 if self.found is None else self.found.version


def read_metadata_file(folder: str = "", directory: int | None = None) -> MetadataFile:
    """Read ``partition.metadata`` with all checks. Never raises: the answer holds the problem.

    Args:
        folder: path of the directory that holds it; empty: the open directory itself.
        directory: descriptor of the open directory that a relative path starts from.
    """
    try:
        data = read_small_file(f"{folder}{_BELOW}" if folder else _FILE, METADATA_LIMIT, directory)
    except UnreadableFileError as error:
        return MetadataFile(MetadataState.UNREADABLE, BrokerEffect.LOG_DIR_OFFLINE, str(error))
    return judge_metadata(data)


def judge_metadata(data: bytes | None) -> MetadataFile:
    """Judge the bytes of a ``partition.metadata``; None: there is no such file. Never raises."""
    if data is None:
        return MetadataFile(MetadataState.MISSING)
    try:
        found = partition_metadata.parse(data)
    except EmptyFileError as error:
        return MetadataFile(MetadataState.EMPTY, error.effect, error.problem)
    except ZeroTopicIdError as error:
        return MetadataFile(MetadataState.ZERO_ID, error.effect, error.problem)
    except DamagedFileError as error:
        return MetadataFile(MetadataState.MALFORMED, error.effect, error.problem)
    problem = None if found.effect is BrokerEffect.NONE else f"it is in the {found.form} form, which no broker reads"
    return MetadataFile(MetadataState.OK, found.effect, problem, found)


def read_topic_id(path: str, topic: str | None, partition: int | None, known: dict[bytes, str]) -> TopicIdFound:
    """Read ``partition.metadata`` of the directory at ``path``.

    Args:
        path: of the directory.
        topic: full topic name of the directory, to compare with the file; None: the directory's name leaves it open.
        partition: partition number of the directory; None as for ``topic``.
        known: content → topic ID text; new contents are added, only from files as a broker writes them.

    Raises:
        VanishedError: the directory is gone.
    """
    try:
        descriptor = os.open(path + _BELOW, READ_FLAGS)
        try:
            data = os.read(descriptor, FIRST_READ_BYTES)
        finally:
            os.close(descriptor)
    except OSError:
        return _read_slowly(path, topic, partition)
    text = known.get(data) or _learn(data, known)
    return _read_slowly(path, topic, partition) if text is None else (text, _OK, None, None)


def read_topic_ids_fast(folder: str, names: Iterable[str], known: dict[bytes, str]) -> list[str] | None:
    """Read ``partition.metadata`` of several directories, if all of the files are as a broker writes them.

    The folder's path ends in ``/``; ``known`` is as for :func:`read_topic_id`.

    Returns:
        The topic ID texts; None: one file has another form, so call :func:`read_topic_id` for each.
    """
    topic_ids: list[str] = []
    try:
        for name in names:
            descriptor = os.open(folder + name + _BELOW, READ_FLAGS)
            try:
                data = os.read(descriptor, FIRST_READ_BYTES)
            finally:
                os.close(descriptor)
            text = known.get(data) or _learn(data, known)
            if text is None:
                return None
            topic_ids.append(text)
    except OSError:
        return None
    return topic_ids


def _learn(data: bytes, known: dict[bytes, str]) -> str | None:
    """Add a new content to the dictionary, if it is as a broker writes it."""
    raw = partition_metadata.fast_topic_id(data)
    if raw is None:
        return None
    text = known[data] = str(TopicId(raw))
    return text


def unreadable(obstacle: str) -> TopicIdFound:
    """Give the topic ID columns of a directory that cannot be read, for a reason in a clause."""
    return None, MetadataState.UNREADABLE.value, when_refused(obstacle), None


def check_against_name(found: TopicIdFound, of_name: TopicId | None) -> TopicIdFound:
    """Compare the topic ID in a directory's name with the one in its file, if both have one."""
    topic_id, state, problem, topic = found
    if of_name is None or of_name.is_zero:
        return found
    if topic_id is not None and topic_id != str(of_name):
        contradiction = f"{_FILE} holds topic ID {topic_id}, and the directory's name {of_name}"
        return topic_id, MetadataState.CONTRADICTS.value, contradiction, topic
    return str(of_name), state, problem, topic


def _read_slowly(path: str, topic: str | None, partition: int | None) -> TopicIdFound:
    """Read the file with all checks, and describe its damage."""
    read = read_metadata_file(path)
    if read.found is None:
        return None, read.state.value, _in_words(read, path), None
    contradiction = _contradiction(read.found, topic, partition)
    if contradiction is None:
        return str(read.found.topic_id), _OK, None, read.found.topic
    problem = f"{_FILE} contradicts its directory: {contradiction}"
    return str(read.found.topic_id), MetadataState.CONTRADICTS.value, problem, None


def _in_words(read: MetadataFile, path: str) -> str | None:
    """Say why there is no topic ID; None: there is no file."""
    if read.state is MetadataState.MISSING:
        if not os.path.lexists(path):
            raise VanishedError
        return None
    if read.state is MetadataState.UNREADABLE:
        return unreadable(f"{_FILE} {read.problem}")[2]
    return f"{_FILE}: {read.problem}; {read.effect}"


def _contradiction(found: PartitionMetadata, topic: str | None, partition: int | None) -> str | None:
    """Compare the file with its directory, as far as the directory's name gives topic and partition."""
    topic = found.topic if topic is None else topic
    partition = found.partition if partition is None else partition
    if topic is None or partition is None:
        return None
    return partition_metadata.contradiction(found, topic, partition)
