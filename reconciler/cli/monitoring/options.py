"""The options about metrics, alike in every command that has them. Loads nothing heavier than click."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def metrics_option(function: Function) -> Function:
    """Add the option ``--metrics``."""
    return click.option(
        "--metrics",
        "metrics_path",
        metavar="FILE",
        help="Leave metrics for Prometheus in this file, replaced as a whole when the command ends. For the textfile "
        "collector of node_exporter it ends with .prom; one for each command of a machine.",
    )(function)


def metrics_topics_option(function: Function) -> Function:
    """Add the option ``--metrics-topics``, for commands that know which topics waste space."""
    return click.option(
        "--metrics-topics",
        "most_topics",
        type=click.IntRange(0, 1000),
        default=10,
        show_default=True,
        metavar="N",
        help="With --metrics: topics with metrics of their own, those that waste most; the rest is one sum.",
    )(function)


def metrics_listen_option(function: Function) -> Function:
    """Add the option ``--metrics-listen``, for a command that goes on."""
    return click.option(
        "--metrics-listen",
        "listen",
        metavar="[HOST:]PORT",
        help="Meanwhile serve metrics for Prometheus at http://HOST:PORT/metrics, and nothing else there. [default of "
        "HOST: 127.0.0.1, which no other machine reaches]",
    )(function)
