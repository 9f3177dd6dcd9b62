"""Options that several commands share, so that they are spelled and explained alike. Loads nothing but click."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from reconciler.cli.frame.output import Format

Function = TypeVar("Function", bound=Callable[..., Any])


def output_options(*formats: Format) -> Callable[[Function], Function]:
    """The options ``--format`` and ``-o``, alike in every command that has data."""

    def decorate(function: Function) -> Function:
        function = click.option(
            "-o", "--output", metavar="FILE", help="Write the data to this file. [default: standard output]"
        )(function)
        return click.option(
            "--format",
            "form",
            type=click.Choice([each.value for each in formats]),
            default=Format.TABLE.value,
            show_default=True,
            help="How the data is written.",
        )(function)

    return decorate


def metadata_option(function: Function) -> Function:
    """The option ``--metadata``, alike in every command that compares."""
    return click.option(
        "--metadata",
        "specs",
        metavar="SOURCE",
        multiple=True,
        help="A KRaft metadata directory or snapshot, a ZooKeeper snapshot, a LeaderAndIsr request as JSON, output of "
        "kafka-topics --describe, or a saved state; kraft:, zk-snapshot:, request:, describe: or parquet: before the "
        "path says which, and wire: a request as bytes. zk:HOST:PORT/chroot asks a live ZooKeeper, kafka:HOST:PORT a "
        "live cluster. Once for each cluster; 'none' for no metadata. [default: what lies at or below the given "
        "folders]",
    )(function)


def scan_options(function: Function) -> Function:
    """The options ``--jobs`` and ``--sizes``, of every command that scans."""
    function = click.option(
        "--sizes/--no-sizes", default=True, help="Add up the files of each directory. [default: --sizes]"
    )(function)
    return click.option(
        "--jobs",
        type=click.IntRange(1, 64),
        metavar="N",
        help="Processes that look, beside the one that gathers what they find. [default: as many as pay]",
    )(function)
