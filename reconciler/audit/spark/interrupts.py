"""Signals that interrupt a program end the jobs that Spark runs for it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CANCELS_EVERY_S = 0.5


@contextmanager
def cancelled_by_signals(spark: SparkSession) -> Iterator[None]:
    """Let a signal that interrupts this program cancel what Spark runs, while the block runs in the main thread.

    PySpark waits for the end of a job before it lets an interrupt through, and its own handler of Ctrl-C calls the JVM
    on the connection that waits.
    """
    interrupted, ended = Event(), Event()

    def interrupt(*_: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            Thread(target=_cancel_jobs, args=(spark, ended), daemon=True).start()
        raise KeyboardInterrupt

    try:
        with _handling_signals(interrupt):
            yield
    except Exception as error:
        if interrupted.is_set():
            raise KeyboardInterrupt from error  # what PySpark makes of a job that was cancelled
        raise
    finally:
        ended.set()


def _cancel_jobs(spark: SparkSession, ended: Event) -> None:
    """Cancel every job until the end, because one may begin behind the signal."""
    while not ended.is_set():
        spark.sparkContext.cancelAllJobs()
        ended.wait(_CANCELS_EVERY_S)


@contextmanager
def _handling_signals(handler: Callable[..., None]) -> Iterator[None]:
    """Put a handler in the place of those that the program has for the signals that end it."""
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    heeded = [number for number, former in before.items() if callable(former)]
    for number in heeded:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])
