"""What brokers do at start with one directory: those that this log dir can belong to, and what the metadata make of it.

``meta.properties`` tells the mode, the metadata of a KRaft cluster the release. :mod:`reconciler.preflight` has the
rules; with metadata all of them are applied to the log dir, so that a replica that nobody wants here is known as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout.directory_name import DirectoryKind, DirectoryName
from layout.errors import BrokerEffect
from logstore.log_dir import read_identity
from logstore.rows import MetadataState
from logstore.scan import read_metadata_file
from reconciler.cli.frame import PathInLogDir
from reconciler.desired import DesiredState, Mode, by_cluster
from reconciler.preflight import (
    BrokerAsked,
    KafkaRelease,
    StartEffect,
    look_at_broker,
    preflight,
    release_of_level,
    start_with_directory,
    start_with_metadata,
)

BROKERS = (
    BrokerAsked(KafkaRelease(2, 8), Mode.ZOOKEEPER),
    BrokerAsked(KafkaRelease(3, 5), Mode.ZOOKEEPER),
    BrokerAsked(KafkaRelease(3, 9), Mode.ZOOKEEPER),
    BrokerAsked(KafkaRelease(3, 5), Mode.KRAFT),
    BrokerAsked(KafkaRelease(3, 9), Mode.KRAFT),
    BrokerAsked(KafkaRelease(4, 3), Mode.KRAFT),
)
"""The releases and modes that are explained where nothing tells more, because their answers differ."""

_DIRECTORY_IDS_SINCE = KafkaRelease(3, 7)
_ACTIONS = {
    StartEffect.STARTUP_ABORTS: "the broker does not start",
    StartEffect.LOG_DIR_OFFLINE: "the log dir goes offline",
    StartEffect.DELETED: "loaded, and deleted after a delay",
    StartEffect.OLD_RECORDS: "loaded as the new topic's replica",
    StartEffect.RENAMED_TO_STRAY: "loaded, and renamed to a stray",
    StartEffect.REPLACED: "loaded, and takes the current replica's place",
    StartEffect.NOT_SERVED: "loaded as the current replica",
    StartEffect.UNKNOWN: "it cannot be told from here",
}
"""What a broker does by the effect of a finding; a note leaves what the directory alone tells."""

_NOTED = ("unwanted", "future", "future_alone", "future_promoted", "stray")
"""Rules whose notes say more of a directory than its name and its file do."""


@dataclass(frozen=True, slots=True)
class AtStart:
    """What one release of Kafka does with the path at its start."""

    kafka: str
    """Release and mode, for example ``3.9 KRaft``."""
    action: str
    sentence: str


def starts_of(path: str, name: DirectoryName, brokers: Sequence[BrokerAsked]) -> tuple[AtStart, ...]:
    """Say what each broker does with a directory, by its name and its ``partition.metadata`` alone."""
    read = read_metadata_file(path)
    # Only a malformed file needs the effect; every other state says more than its effect.
    effect = read.effect if read.state is MetadataState.MALFORMED else BrokerEffect.NONE
    answers = []
    for asked in brokers:
        answer = start_with_directory(name.text, asked.release, asked.mode)
        if name.kind is DirectoryKind.STAGED or (answer.starts and name.kind is not DirectoryKind.INTERNAL):
            answer = start_with_metadata(
                name.kind, read.state.value, asked.release, asked.mode, effect=effect, version=read.version
            )
        answers.append(AtStart(_shown(asked), str(answer.action), answer.sentence))
    return tuple(answers)


def with_metadata(
    starts: Sequence[AtStart], home: PathInLogDir, brokers: Sequence[BrokerAsked], states: Sequence[DesiredState]
) -> tuple[AtStart, ...]:
    """Say what each broker does with a directory given the metadata: what preflight finds comes before what it is.

    Raises:
        RefusedError: the metadata does not fit the log dir.
    """
    seen = look_at_broker([home.log_dir])
    wanted = by_cluster(states, {row["cluster_id"] for row in seen.rows() if row["cluster_id"]})
    answers = []
    for start, asked in zip(starts, brokers, strict=True):
        of_this = (each for each in preflight(seen, asked, wanted).findings if each.place.name == home.name)
        finding = next((each for each in of_this if each.effect in _ACTIONS or each.rule in _NOTED), None)
        if finding is None:
            answers.append(start)
        else:
            action = "loaded, and cut back" if finding.rule == "future_alone" else _ACTIONS.get(finding.effect)
            answers.append(AtStart(start.kafka, action or start.action, finding.problem))
    return tuple(answers)


def possible_brokers(home: PathInLogDir | None, states: Sequence[DesiredState]) -> tuple[BrokerAsked, ...]:
    """Return the brokers that a log dir can belong to, one of each release and mode whose answers differ.

    Its ``meta.properties`` tells the mode, and since 3.7 it has a directory ID. The metadata of a KRaft cluster tells
    the oldest release of its brokers.
    """
    mode, is_late = _by_identity(home)
    if mode is None:
        mode = next((state.identity.mode for state in states if state.identity.mode is not None), None)
    levels = (state.identity.metadata_version for state in states)
    release = next((release_of_level(level) for level in levels if level is not None), None)
    if mode is Mode.KRAFT and release is not None:
        return (BrokerAsked(release, Mode.KRAFT),)
    return tuple(
        each for each in BROKERS if mode in (None, each.mode) and (not is_late or each.release >= _DIRECTORY_IDS_SINCE)
    )


def _by_identity(home: PathInLogDir | None) -> tuple[Mode | None, bool]:
    """Return the mode that ``meta.properties`` tells, and whether a broker of 3.7 or later has written to it."""
    identity = None if home is None else read_identity(home.log_dir).identity
    if identity is None or identity.scheme is not None:
        return None, False
    return (Mode.KRAFT if identity.version == 1 else Mode.ZOOKEEPER), identity.directory_id is not None


def _shown(asked: BrokerAsked) -> str:
    return f"{asked.release.major}.{asked.release.minor} {asked.mode}"
