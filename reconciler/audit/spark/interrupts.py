"""Signals that interrupt a program end the jobs that Spark runs for it."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CANCELS_EVERY_S = 0.5
_INTERRUPTED_CALL = "KeyboardInterrupt while sending command."


@contextmanager
def cancelled_by_signals(spark: SparkSession) -> Iterator[None]:
    """Let a signal that interrupts this program cancel what Spark runs, while the block runs in the main thread.

    PySpark waits for the end of a job before it lets an interrupt through, and its own handler of Ctrl-C calls the JVM
    on the connection that waits. What py4j says of a call that was interrupted, with a stack, is not logged.
    """
    interrupted, ended = Event(), Event()
    canceller = Thread(target=_cancel_jobs, args=(spark, ended), daemon=True)

    def interrupt(*_: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            canceller.start()
        raise KeyboardInterrupt

    try:
        with _handling_signals(interrupt), _without(_INTERRUPTED_CALL):
            yield
    except Exception as error:
        if interrupted.is_set():
            raise KeyboardInterrupt from error  # what PySpark makes of a job that was cancelled
        raise
    finally:
        ended.set()
        if interrupted.is_set():
            canceller.join()


def _cancel_jobs(spark: SparkSession, ended: Event) -> None:
    """Cancel every job until the end, because one may begin behind the signal, and once where that is there before."""
    while True:
        spark.sparkContext.cancelAllJobs()
        if ended.wait(_CANCELS_EVERY_S):
            return


@contextmanager
def _without(message: str) -> Iterator[None]:
    """Keep a message that a library logs by the root logger from being logged."""

    def keep(record: logging.LogRecord) -> bool:
        return record.msg != message

    root = logging.getLogger()
    root.addFilter(keep)
    try:
        yield
    finally:
        root.removeFilter(keep)


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
