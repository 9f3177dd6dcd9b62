"""The signals that end a command, and what a command does about them instead of what Python would.

A signal that is nothing to the process stays nothing to it: whoever started it with ``nohup`` wants it to outlive the
terminal, and a shell script starts what runs behind it deaf to Ctrl-C.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def on_signals(act: Callable[[int], object]) -> Iterator[None]:
    """While this lasts, a signal that would end the command calls ``act`` with its number. For the main thread."""
    former = {number: signal.getsignal(number) for number in ENDING}
    heeded = [number for number, handler in former.items() if handler is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, lambda caught, _: act(caught))
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, former[number])


def interrupt_on_signals() -> None:
    """Let every signal that would end the command interrupt it as Ctrl-C does, with all that is done on the way out."""
    for number in ENDING[1:]:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
