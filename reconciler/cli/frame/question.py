"""The broker that a command asks about: its release and mode, given, or taken from the disks and the metadata."""

from __future__ import annotations

from collections.abc import Iterable

from layout.errors import InvalidQuestionError
from layout.meta_properties import MetaProperties
from reconciler.cli.frame.lifecycle import say, warn
from reconciler.cli.frame.options import DEFAULT_RELEASE
from reconciler.desired import DesiredState
from reconciler.errors import UsageError
from reconciler.preflight import (
    NEWEST_RELEASE,
    BrokerAsked,
    BrokerMode,
    KafkaRelease,
    SeenBroker,
    release_of_level,
)

_PATCHES_DIFFER = ((3, 2), (3, 6), (3, 7))
"""Releases whose patches start in different ways; metadata tell none of a patch."""


def say_assumed_release(kafka: str | None, states: Iterable[DesiredState]) -> None:
    """Say which release is assumed, and by what, unless one was named."""
    if kafka is None:
        say(_assumed(states)[1])


def broker_in_question(
    kafka: str | None, mode: str | None, seen: SeenBroker, states: Iterable[DesiredState] = ()
) -> BrokerAsked:
    """Choose the broker in question, of the release and mode that were given.

    The release is else the oldest that a broker of the metadata can have; the mode is else that of the identities:
    version 0 is ZooKeeper's, and 1 KRaft's.

    Raises:
        UsageError: the release does not have the mode that was named.
    """
    release = _assumed(states)[0] if kafka is None else KafkaRelease.parse(kafka)
    if mode is not None:
        try:
            return BrokerAsked.of(release, BrokerMode(mode))
        except InvalidQuestionError as error:
            raise UsageError(f"{error}; --kafka names another release") from error
    versions = {each.identity.version for each in seen.log_dirs if isinstance(each.identity, MetaProperties)}
    likely = BrokerMode.ZOOKEEPER if versions == {0} else BrokerMode.KRAFT
    other = BrokerMode.KRAFT if likely is BrokerMode.ZOOKEEPER else BrokerMode.ZOOKEEPER
    try:
        return BrokerAsked.of(release, likely)
    except InvalidQuestionError as error:
        if versions:
            written = "0, as a broker with ZooKeeper writes it" if versions == {0} else "1, as a KRaft broker writes it"
            says = "KRaft" if other is BrokerMode.KRAFT else "ZooKeeper"
            warn(
                f"meta.properties is of version {written}, and {error}: the answer is for a broker in {says} mode. "
                "Name the broker's own release with --kafka"
            )
        return BrokerAsked.of(release, other)


def _assumed(states: Iterable[DesiredState]) -> tuple[KafkaRelease, str]:
    """Return the release that the metadata speak of, or else a likely one, and what it was taken from."""
    for identity in (state.identity for state in states):
        if identity.metadata_version is not None:
            level = f"{identity.location} has metadata.version {identity.metadata_version}"
            release = release_of_level(identity.metadata_version)
            if release is None:
                newest = f"{NEWEST_RELEASE.major}.{NEWEST_RELEASE.minor}"
                return NEWEST_RELEASE, f"--kafka {newest} is assumed, the newest known here: {level}, which is of none"
            shown = f"{release.major}.{release.minor}"
            patch = f", of {shown} the first" if (release.major, release.minor) in _PATCHES_DIFFER else ""
            return release, f"--kafka {shown} is assumed{patch}: {level}, which came with it"
    likely = f"--kafka {DEFAULT_RELEASE} is assumed: nothing that was read says of which release the broker is"
    return KafkaRelease.parse(DEFAULT_RELEASE), likely
