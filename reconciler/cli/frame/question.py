"""The broker that a command asks about: the options that name its release and mode, and their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reconciler.cli.frame.lifecycle import say
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.desired import DesiredState
    from reconciler.preflight import BrokerAsked, KafkaRelease, SeenBroker

Function = TypeVar("Function", bound=Callable[..., Any])

DEFAULT_RELEASE = "3.9"
"""The release that is asked about where nothing tells it."""

_MODES = ("kraft", "zookeeper", "migration")
_PATCHES_DIFFER = ((3, 2), (3, 6), (3, 7))
"""Releases whose patches start in different ways; metadata tell none of a patch."""


def broker_options(function: Function) -> Function:
    """Add ``--kafka``, ``--mode`` and ``--metadata-log-dir``, alike in every command that asks about a start."""
    for option in (
        click.option(
            "--metadata-log-dir",
            metavar="DIR",
            help="As in metadata.log.dir. [default: the first LOG_DIR, as for a broker]",
        ),
        click.option(
            "--mode",
            type=click.Choice(_MODES),
            help="Where the broker takes its metadata from; migration is ZooKeeper mode with migration to KRaft "
            "enabled. [default: as meta.properties tells, else kraft]",
        ),
        click.option(
            "--kafka",
            metavar="RELEASE",
            help="Release of the broker, for example 3.7.1. [default: the oldest that a broker of a KRaft cluster's "
            f"metadata can have, else {DEFAULT_RELEASE}]",
        ),
    ):
        function = option(function)
    return function


def passed_on_options(function: Function) -> Function:
    """Add the same options to a command that asks nothing about a start, and prints commands that do.

    The command takes them as ``**broker``, and gives them to its ``Call``.
    """
    why = "Passed on to the commands that are printed, as 'logstore doctor' takes it."
    for option in (
        click.option("--metadata-log-dir", metavar="DIR", help=why),
        click.option("--mode", type=click.Choice(_MODES), help=why),
        click.option("--kafka", "release", metavar="RELEASE", callback=_checked_release, help=why),
    ):
        function = option(function)
    return function


def _checked_release(_: click.Context, __: click.Parameter, release: str | None) -> str | None:
    check_question(release, None)
    return release


def check_question(kafka: str | None, mode: str | None) -> None:
    """Refuse a release or a mode that does not exist before anything is read.

    Raises:
        UsageError: there is no such release, none that is known, or it does not have the mode.
    """
    from layout.errors import InvalidQuestionError
    from reconciler.preflight import BrokerAsked, BrokerMode, KafkaRelease, check_known

    if kafka is None:
        return
    try:
        release = KafkaRelease.parse(kafka)
        check_known(release)
        if mode is not None:
            BrokerAsked.of(release, BrokerMode(mode))
    except InvalidQuestionError as error:
        raise UsageError(str(error)) from error


def say_assumed_release(kafka: str | None, states: Iterable[DesiredState]) -> None:
    """Say which release is assumed, and by what, unless one was named."""
    if kafka is None:
        say(_assumed(states)[1])


def broker_in_question(
    kafka: str | None, mode: str | None, seen: SeenBroker, states: Iterable[DesiredState] = ()
) -> BrokerAsked:
    """Choose the broker in question.

    Args:
        kafka: its release; None: the oldest that a broker of the metadata can have.
        mode: its mode; None: the identities decide, where version 0 is ZooKeeper's and 1 KRaft's.
        seen: its log dirs.
        states: the metadata.

    Raises:
        UsageError: the release does not have the mode that was named.
    """
    from layout.errors import InvalidQuestionError
    from layout.meta_properties import MetaProperties
    from reconciler.preflight import BrokerAsked, BrokerMode, KafkaRelease

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
            say(
                f"meta.properties is of version {written}, and {error}: the answer is for a broker in {says} mode. "
                "Name the broker's own release with --kafka"
            )
        return BrokerAsked.of(release, other)


def _assumed(states: Iterable[DesiredState]) -> tuple[KafkaRelease, str]:
    """Return the release that the metadata speak of, or else a likely one, and what it was taken from."""
    from reconciler.preflight import NEWEST_RELEASE, KafkaRelease, release_of_level

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
