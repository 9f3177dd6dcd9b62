"""What a real broker does at start with a directory in its log dir, by release and by mode.

:func:`start_with_directory` judges a directory by its name, :func:`start_with_metadata` a replica by the state of its
``partition.metadata``, :func:`start_unwanted` a replica that the cluster does not want here. An answer is about one
directory only; a broker starts if no answer about any directory prevents it. Rules about several directories
(duplicates, FACTS §1.7) and about ``meta.properties`` (``log_dir_set``) are elsewhere, and so is the question whether
the cluster wants a replica.
Source: FACTS §1.3, §1.6, §2.1, §6.1, §6.3, which cover 2.7 to 4.0, and what was seen of 4.3;
other releases are treated like their neighbours.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from layout.directory_name import REMOTE_LOG_INDEX_CACHE, SUFFIXES, DirectoryKind, parse
from layout.errors import BrokerEffect, InvalidQuestionError
from layout.scheme import STAGING_DIR
from logstore import check_fields
from reconciler.desired import Mode

_RELEASE = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?")


@dataclass(frozen=True, slots=True, order=True)
class KafkaRelease:
    """A release of Apache Kafka; releases compare by age.

    Raises:
        InvalidQuestionError: a part is no number, or negative.
    """

    major: int
    minor: int
    patch: int = 0

    def __post_init__(self) -> None:
        check_fields(self, InvalidQuestionError, dict.fromkeys(("major", "minor", "patch"), (0, math.inf)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``3.9`` or ``3.9.0``.

        Raises:
            InvalidQuestionError: any other text.
        """
        match = _RELEASE.fullmatch(text)
        if match is None:
            raise InvalidQuestionError(f"{text!r:.60} is no Kafka release: something like 3.9 or 3.7.1 is expected")
        return cls(int(match[1]), int(match[2]), int(match[3] or 0))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class StartAction(StrEnum):
    """What a broker does at start with a directory."""

    LOADED = "loaded as the current replica"
    LOADED_AS_FUTURE = "loaded as a future replica"
    DELETED_AFTER_DELAY = "loaded, and deleted after a delay"
    KEPT_AS_STRAY = "loaded, and kept as a stray"
    MOVED_TO_STRAY = "loaded, and renamed to a stray"
    IGNORED = "passed over"
    LOG_DIR_OFFLINE = "the log dir goes offline"
    STARTUP_ABORTS = "the broker does not start"


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """What a broker does at start with one directory, and why."""

    action: StartAction
    sentence: str
    """What happens and why, without a full stop."""

    @property
    def starts(self) -> bool:
        """Whether the broker goes on starting; with its only log dir offline it halts afterwards."""
        return self.action is not StartAction.STARTUP_ABORTS


PARTITION_METADATA_SINCE = KafkaRelease(2, 8)
METADATA_TOPIC_SINCE = KafkaRelease(2, 8)
REMOTE_LOG_INDEX_CACHE_SINCE = KafkaRelease(3, 5)
STRAY_SINCE = KafkaRelease(3, 6, 1)
ANY_METADATA_VERSION_SINCE = KafkaRelease(3, 7)
_KRAFT_SINCE = KafkaRelease(2, 8)
_ZOOKEEPER_UNTIL = KafkaRelease(4, 0)
_KRAFT_DELETES_STRAYS_SINCE = KafkaRelease(3, 0)
_KRAFT_RENAMES_STRAYS_SINCE = KafkaRelease(3, 7)
_NO_ID_IS_STRAY_SINCE = KafkaRelease(3, 7, 1)
MIGRATION_SINCE = KafkaRelease(3, 4)
STORAGE_ERRORS_PASS_SINCE = KafkaRelease(3, 2, 1)
"""Before, an I/O error while ``partition.metadata`` or a leader epoch checkpoint is read at load ends the startup
(KAFKA-13773; seen on 2.8.2)."""
FULL_REQUEST_ASKS_TOPIC_ID_SINCE = KafkaRelease(3, 6, 2)
"""From here on, and not in 3.6.1, a migrating broker tells strays by name *and* topic ID (FACTS §6.2)."""
STRAYS_STAY_OUT_SINCE = _NO_ID_IS_STRAY_SINCE
"""From here on a stray is renamed while it is loaded, before it can be a duplicate (FACTS §1.6, §6.1)."""

_ADVICE = {
    "lost+found": "every ext file system has it at its top: where the log dir is a mount point, give the broker a "
    "directory below the mount point instead, and elsewhere move it out",
    STAGING_DIR: "only a log dir that is ours has its staging directory inside, a broker's has it beside",
}
_OFFLINE = "the whole log dir goes offline, and a broker halts when it is its only one or holds its metadata log"
_OFFLINE_STATES = {"unreadable": "it cannot be read", "zero_id": "it holds the zero ID"}
_ABORTING_STATES = {
    "empty": "it has no two lines",
    "malformed": "it does not parse; were it only for the version, the log dir would go offline instead",
}
_LOADED_STATES = frozenset({"ok", "contradicts"})
_ACTION_OF_EFFECT = {
    BrokerEffect.LOG_DIR_OFFLINE: StartAction.LOG_DIR_OFFLINE,
    BrokerEffect.STARTUP_ABORTS: StartAction.STARTUP_ABORTS,
}


def start_with_directory(text: str, release: KafkaRelease, mode: Mode) -> StartAnswer:
    """Return what a broker does with a directory in its log dir, by the name.

    A namespace directory, a staging directory and a hidden directory are nothing special to a broker: a directory that
    is named like a partition dir is loaded as that partition, and any other stops the broker.

    The name is one component of a path.

    Raises:
        InvalidQuestionError: the release does not have the mode.
    """
    _check_mode(release, mode)
    name = parse(text)
    if name.kind is DirectoryKind.FOREIGN:
        advice = _ADVICE.get(text, "move it out of the log dir")
        return StartAnswer(StartAction.STARTUP_ABORTS, f"{name.problem}: {advice}")
    if text == REMOTE_LOG_INDEX_CACHE and release < REMOTE_LOG_INDEX_CACHE_SINCE:
        sentence = (
            f"releases before {REMOTE_LOG_INDEX_CACHE_SINCE} take it for a partition dir, whose name it does not have"
        )
        return StartAnswer(StartAction.STARTUP_ABORTS, sentence)
    if name.kind is DirectoryKind.INTERNAL and name.topic is not None and release < METADATA_TOPIC_SINCE:
        suffixed = (kind for suffix, kind in SUFFIXES.items() if text.endswith(suffix))
        return _by_kind(next(suffixed, DirectoryKind.LIVE), release, mode)
    return _by_kind(name.kind, release, mode)


def start_with_metadata(
    kind: DirectoryKind,
    state: str,
    release: KafkaRelease,
    mode: Mode,
    *,
    effect: BrokerEffect = BrokerEffect.NONE,
    version: int = 0,
) -> StartAnswer:
    """Return what a broker does with a directory of this kind whose ``partition.metadata`` is in this state.

    Args:
        kind: of the directory; a directory that is no replica is judged by its kind alone.
        state: ``ok``, ``missing``, ``empty``, ``malformed``, ``zero_id``, ``contradicts`` or ``unreadable``. A broker
            reads no name from the file, so it sees no contradiction.
        release: of the broker.
        mode: of the broker.
        effect: what the bytes do to a broker that reads them, if known. It counts more than the state, and covers a
            form that only we read. Without it ``malformed`` has the graver of its two possible answers.
        version: in the file; 3.7 is the first release to accept another than 0.

    Raises:
        InvalidQuestionError: the release does not have the mode, or there is no such state.
    """
    _check_mode(release, mode)
    if state not in {"missing", *_LOADED_STATES, *_OFFLINE_STATES, *_ABORTING_STATES}:
        raise InvalidQuestionError(f"{state!r:.60} is no state of partition.metadata")
    answer = _by_kind(kind, release, mode)
    if answer.action in (StartAction.IGNORED, StartAction.STARTUP_ABORTS) or release < PARTITION_METADATA_SINCE:
        return answer
    if effect in _ACTION_OF_EFFECT:
        return _unreadable(_ACTION_OF_EFFECT[effect], "a broker cannot read these bytes", release)
    if state in _OFFLINE_STATES:
        return _unreadable(StartAction.LOG_DIR_OFFLINE, _OFFLINE_STATES[state], release)
    if state in _ABORTING_STATES:
        return _unreadable(StartAction.STARTUP_ABORTS, _ABORTING_STATES[state], release)
    if state == "missing":
        return _without_id(answer, release, mode)
    if version != 0 and (version < 0 or release < ANY_METADATA_VERSION_SINCE):
        found = f"it has version {version}, which {release} does not accept"
        return _unreadable(StartAction.LOG_DIR_OFFLINE, found, release)
    return answer


def start_unwanted(kind: DirectoryKind, release: KafkaRelease, mode: Mode, *, migrating: bool = False) -> StartAnswer:
    """Return what a broker does with a replica whose topic ID it can read, and that the cluster does not want here.

    Not wanted: the metadata have no such partition of that topic ID, or this broker is not among its replicas. Only
    current and future replicas can be unwanted; any other directory is judged by its kind.

    ``migrating``: a ZooKeeper broker with migration to KRaft enabled.

    Raises:
        InvalidQuestionError: the release does not have the mode, or cannot migrate.
    """
    _check_mode(release, mode)
    if migrating and (mode is Mode.KRAFT or release < MIGRATION_SINCE):
        raise InvalidQuestionError(
            f"Kafka {release} in {mode} mode does not migrate; ZooKeeper brokers of {MIGRATION_SINCE} to 3.9 can"
        )
    answer = _by_kind(kind, release, mode)
    if answer.action not in (StartAction.LOADED, StartAction.LOADED_AS_FUTURE):
        return answer
    if mode is Mode.KRAFT and release >= _KRAFT_RENAMES_STRAYS_SINCE:
        what = "it"
        if release < _NO_ID_IS_STRAY_SINCE and kind is DirectoryKind.FUTURE:
            what = f"{release} takes it for a stray, but moves the current replica beside it, if there is one: that one"
        sentence = f"{what} is renamed to a stray when the first metadata arrive, and no release ever deletes it"
        return StartAnswer(StartAction.MOVED_TO_STRAY, sentence)
    if mode is Mode.KRAFT and release >= _KRAFT_DELETES_STRAYS_SINCE:
        sentence = "it is staged as -delete when the first metadata arrive, and really deleted 60 s later"
        return StartAnswer(StartAction.DELETED_AFTER_DELAY, sentence)
    if migrating and release >= STRAY_SINCE:
        sentence = "it is renamed to a stray by the first FULL request of the KRaft controller, with its future replica"
        return StartAnswer(StartAction.MOVED_TO_STRAY, sentence)
    return StartAnswer(answer.action, "it stays on disk for ever, and takes space")


def _check_mode(release: KafkaRelease, mode: Mode) -> None:
    if mode is Mode.KRAFT and release < _KRAFT_SINCE:
        raise InvalidQuestionError(f"Kafka {release} has no KRaft mode; {_KRAFT_SINCE} is the first that has")
    if mode is Mode.ZOOKEEPER and release >= _ZOOKEEPER_UNTIL:
        raise InvalidQuestionError(f"Kafka {release} has no ZooKeeper mode; 3.9 is the last line that has")


def _by_kind(kind: DirectoryKind, release: KafkaRelease, mode: Mode) -> StartAnswer:
    """Return what a broker does with a directory by its kind alone (FACTS §1.6)."""
    match kind:
        case DirectoryKind.LIVE:
            return StartAnswer(StartAction.LOADED, f"it is the current replica; {_when_unwanted(release, mode)}")
        case DirectoryKind.FUTURE:
            sentence = f"it is on its way from another log dir; {_when_unwanted(release, mode)}"
            return StartAnswer(StartAction.LOADED_AS_FUTURE, sentence)
        case DirectoryKind.DELETE:
            sentence = (
                "it goes with all that is in it when log.segment.delete.delay.ms, by default 60 s, have passed again"
            )
            return StartAnswer(StartAction.DELETED_AFTER_DELAY, sentence)
        case DirectoryKind.STRAY if release < STRAY_SINCE:
            sentence = (
                f"the suffix -stray is known since {STRAY_SINCE}; before, 'stray' must be a partition and is none"
            )
            return StartAnswer(StartAction.STARTUP_ABORTS, sentence)
        case DirectoryKind.STRAY:
            sentence = "it stays where it is with a warning in the log, and no release ever deletes it"
            return StartAnswer(StartAction.KEPT_AS_STRAY, sentence)
        case DirectoryKind.INTERNAL:
            return StartAnswer(StartAction.IGNORED, "it is the broker's own, and no replica of a topic")
        case DirectoryKind.STAGED:
            return StartAnswer(StartAction.IGNORED, "a broker never looks into a staging directory beside its log dir")
        case DirectoryKind.FOREIGN:
            return StartAnswer(StartAction.STARTUP_ABORTS, "its name is not of the form topic-partition")


def _when_unwanted(release: KafkaRelease, mode: Mode) -> str:
    """Return what happens to a replica that the cluster does not want on this broker (FACTS §6.1)."""
    if mode is Mode.KRAFT and release >= _KRAFT_RENAMES_STRAYS_SINCE:
        return "one that the cluster metadata does not want here is renamed to a stray"
    if mode is Mode.KRAFT and release >= _KRAFT_DELETES_STRAYS_SINCE:
        return "one that the cluster metadata does not want here is deleted after 60 s"
    if mode is Mode.ZOOKEEPER and release >= STRAY_SINCE:
        return (
            "one that the cluster does not want here stays on disk, except that a migration to KRaft makes it a stray"
        )
    return "one that the cluster does not want here stays on disk for ever"


def _unreadable(action: StartAction, found: str, release: KafkaRelease) -> StartAnswer:
    """Return what happens when a broker cannot read a topic ID from the file (FACTS §2.1)."""
    consequence = "an error that is none of I/O ends the startup"
    if action is StartAction.LOG_DIR_OFFLINE:
        consequence = _OFFLINE
        if release < STORAGE_ERRORS_PASS_SINCE:
            action = StartAction.STARTUP_ABORTS
            consequence = f"before {STORAGE_ERRORS_PASS_SINCE} that ends the startup"
    return StartAnswer(action, f"partition.metadata: {found}; {consequence}")


def _without_id(answer: StartAnswer, release: KafkaRelease, mode: Mode) -> StartAnswer:
    """Return what happens to a replica without ``partition.metadata``; only KRaft requires it (FACTS §6.1, §6.3)."""
    asked = answer.action in (StartAction.LOADED, StartAction.LOADED_AS_FUTURE)
    if mode is Mode.ZOOKEEPER or not asked or release < _KRAFT_DELETES_STRAYS_SINCE:
        return answer
    if release >= _NO_ID_IS_STRAY_SINCE:
        sentence = (
            "partition.metadata is missing, so it is set aside with all its data and replicated anew from elsewhere"
        )
        return StartAnswer(StartAction.MOVED_TO_STRAY, sentence)
    if release >= _KRAFT_RENAMES_STRAYS_SINCE:
        return StartAnswer(StartAction.STARTUP_ABORTS, f"{release} fails on a replica without partition.metadata")
    sentence = "partition.metadata is missing; the search for strays fails on it, which is logged, and none is handled"
    return StartAnswer(answer.action, sentence)
