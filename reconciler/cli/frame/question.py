"""The broker that a command asks about: the options that name its release and mode, and their defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.preflight import BrokerAsked, SeenBroker

Function = TypeVar("Function", bound=Callable[..., Any])

DEFAULT_RELEASE = "3.9"
_MODES = ("kraft", "zookeeper", "migration")


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
            default=DEFAULT_RELEASE,
            show_default=True,
            help="Release of the broker, for example 3.7.1.",
        ),
    ):
        function = option(function)
    return function


def check_question(kafka: str, mode: str | None) -> None:
    """Refuse a release or a mode that does not exist before anything is read.

    Raises:
        UsageError: there is no such release, or it does not have the mode.
    """
    from layout.errors import InvalidQuestionError
    from reconciler.preflight import BrokerAsked, BrokerMode, KafkaRelease

    try:
        release = KafkaRelease.parse(kafka)
        if mode is not None:
            BrokerAsked.of(release, BrokerMode(mode))
    except InvalidQuestionError as error:
        raise UsageError(str(error)) from error


def broker_in_question(kafka: str, mode: str | None, seen: SeenBroker) -> BrokerAsked:
    """Choose the broker in question; without ``--mode`` the identities decide: version 0 is ZooKeeper's, 1 KRaft's."""
    from layout.errors import InvalidQuestionError
    from layout.meta_properties import MetaProperties
    from reconciler.preflight import BrokerAsked, BrokerMode, KafkaRelease

    release = KafkaRelease.parse(kafka)
    if mode is not None:
        return BrokerAsked.of(release, BrokerMode(mode))
    versions = {each.identity.version for each in seen.log_dirs if isinstance(each.identity, MetaProperties)}
    likely = BrokerMode.ZOOKEEPER if versions == {0} else BrokerMode.KRAFT
    other = BrokerMode.KRAFT if likely is BrokerMode.ZOOKEEPER else BrokerMode.ZOOKEEPER
    try:
        return BrokerAsked.of(release, likely)
    except InvalidQuestionError:
        return BrokerAsked.of(release, other)
