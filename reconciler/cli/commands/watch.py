"""``logstore watch``: writes one line of NDJSON for each verdict that changes, until it is ended.

This module has the lines, and the three ways to end without failure: a signal, the end of its time, or a
reader that is gone. :mod:`logstore.watch` finds what changed, and :mod:`reconciler.watch` what that means.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from typing import BinaryIO

import orjson

from logstore.rows import utf8
from logstore.watch import Watch, WatchTimes
from reconciler.cli.frame import (
    NO_METADATA,
    Exit,
    Inputs,
    abandon_output,
    choose_metadata,
    destination,
    is_output_unread,
    say,
    say_warnings,
    sort_log_dirs,
)
from reconciler.cli.monitoring import WatchMetrics, metrics_endpoint, parse_address
from reconciler.cli.signals import on_signals
from reconciler.text import count
from reconciler.verdicts import Doubt, Times, doubt_of
from reconciler.watch import VerdictChange, VerdictWatch, WatchedMetadata, machine_ms, verdict_changes

SCHEMA_VERSION = 1
"""Version of a line; raised whenever a field changes its meaning or goes."""

MOST_WEIGHED = 1000
"""When more verdicts change at once, only this many directories are weighed; of others bytes and doubt are null."""

_TICK_S = 1.0


def run(
    *,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    initial: bool,
    interval: float,
    seconds: float | None,
    listen: str | None,
) -> Exit:
    """Watch log dirs and the cluster's metadata, and write a line for each verdict that changes."""
    with suppress(KeyboardInterrupt):
        _run(paths, specs, initial=initial, interval=interval, seconds=seconds, listen=listen)
    return Exit.CLEAN


def _run(
    paths: Sequence[str],
    specs: Sequence[str],
    *,
    initial: bool,
    interval: float,
    seconds: float | None,
    listen: str | None,
) -> None:
    if listen is not None:
        parse_address(listen)
    inputs = sort_log_dirs(paths, ", in which nothing ever changes: give log dirs")
    metadata = _metadata(specs, inputs)
    until = None if seconds is None else time.monotonic() + seconds
    watch = Watch(inputs.log_dirs, WatchTimes(interval=interval))
    with say_warnings("logstore"), _stopped_by_signals(watch), watch, destination(None) as out:
        if watch.is_stopped:
            return
        verdicts = VerdictWatch(watch.log_dirs, machine_ms)
        batches = verdict_changes(watch, metadata, tick_s=_TICK_S, verdicts=verdicts)
        metrics = None if listen is None else WatchMetrics(watch, verdicts, metadata)
        try:
            with nullcontext() if metrics is None else _served(str(listen), metrics):
                _write_changes(watch, _measured(batches, metrics), out, initial, until)
        except BrokenPipeError:
            abandon_output()


def _metadata(specs: Sequence[str], inputs: Inputs) -> WatchedMetadata:
    """Load the metadata as an audit does; a source that was found without being named is watched where it lies."""
    states = choose_metadata(specs, inputs, time.time_ns() // 1_000_000)
    watched = list(specs) if specs else [state.identity.location for state in states]
    return WatchedMetadata([] if NO_METADATA in specs else watched, states, say)


@contextmanager
def _served(listen: str, metrics: WatchMetrics) -> Iterator[None]:
    """Serve the metrics while the block runs, and say where."""
    with metrics_endpoint(listen, metrics.current) as url:
        say(f"metrics: {url}")
        yield


def _measured(batches: Iterator[list[VerdictChange]], metrics: WatchMetrics | None) -> Iterator[list[VerdictChange]]:
    """Yield the batches, and let the metrics have each before it is written."""
    is_first = True
    for changes in batches:
        if metrics is not None:
            metrics.take(changes, is_first=is_first)
        is_first = False
        yield changes


def _write_changes(
    watch: Watch, batches: Iterator[list[VerdictChange]], out: BinaryIO, initial: bool, until: float | None
) -> None:
    is_shown, left = initial, MOST_WEIGHED
    first = next(batches)
    # Said only now: whatever changes after this sentence differs from the first verdicts, and is a line.
    known = sum(len(disk.known) for disk in watch.log_dirs.values())
    say(f"watching {count(len(watch.log_dirs), 'log dir')} with {count(known, 'entry', 'entries')}")
    for changes in chain([first], batches):
        for change in changes if is_shown else ():
            # The count starts again only after all verdicts that changed at once.
            sizes, left = (_sizes_of(change, watch), left - 1) if left else (None, 0)
            out.write(_line(change, sizes))
            out.flush()
            if watch.is_stopped:
                return
        is_shown, left = True, left if changes else MOST_WEIGHED
        is_unread = out is getattr(sys.stdout, "buffer", None) and is_output_unread()
        if is_unread or (until is not None and time.monotonic() >= until):
            return


def _sizes_of(change: VerdictChange, watch: Watch) -> tuple[int, int, int | None] | None:
    if not change.after or change.log_dir is None or change.key is None:
        return None
    return watch.log_dirs[change.log_dir].sizes_of(change.key)


def _line(change: VerdictChange, sizes: tuple[int, int, int | None] | None) -> bytes:
    length, allocated, modified_ms = sizes or (None, None, None)
    doubt = None
    if change.condemned_as_of_ms is not None and modified_ms is not None:
        doubt = doubt_of(Doubt.CHANGED_SINCE_METADATA, Times(modified_ms, change.condemned_as_of_ms))
    line = {
        "schema_version": SCHEMA_VERSION,
        "time_ms": time.time_ns() // 1_000_000,
        "log_dir": change.log_dir,
        "name": change.name,
        "cluster_id": change.broker.cluster or None,
        "broker": change.broker.node if change.broker.node >= 0 else None,
        "topic": change.topic,
        "partition": change.partition,
        "disk_topic_id": change.disk_topic_id,
        "metadata_topic_id": change.metadata_topic_id,
        "before": str(change.before),
        "after": str(change.after),
        "bytes": length,
        "disk_bytes": allocated,
        "evidence": change.evidence,
        "doubt": doubt,
    }
    text = {name: utf8(value) if isinstance(value, str) else value for name, value in line.items()}
    return orjson.dumps(text) + b"\n"


@contextmanager
def _stopped_by_signals(watch: Watch) -> Iterator[None]:
    """Stop the watch between two lines at the first signal; a second signal interrupts at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int) -> None:
        watch.stop()
        signal.signal(number, signal.default_int_handler)

    with on_signals(stop):
        yield
