"""The signals that end a command: what they call, and that they wait for what is being loaded.

Python raises KeyboardInterrupt wherever it stands. In the middle of an import nobody expects that: a library that can
do without a module goes on as if nobody had pressed Ctrl-C, and a compiled module may end the process with a fault of
memory. So an interrupt that comes then comes again a little later, until nothing is being loaded.

A signal that the process ignores stays ignored: whoever starts a command with ``nohup`` wants it to outlive the
terminal, and a shell script makes its background processes ignore Ctrl-C.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a command."""

_AGAIN_S: Final = 0.01
"""Seconds after which an interrupt comes again that came in the middle of an import."""

_IMPORTING: Final = "<frozen importlib"
"""How the file is named, to Python, of every function that loads modules."""

_waiting: set[int] = set()
"""The signal that came in the middle of an import, until it interrupts."""


def interrupt_after_imports() -> None:
    """Let Ctrl-C interrupt the calling function and all that it calls, but for imports, whose end it waits for."""
    caller = sys._getframe(1)

    def interrupt(number: int, frame: FrameType | None) -> None:
        while frame is not None and frame is not caller:
            if frame.f_code.co_filename.startswith(_IMPORTING):
                _come_again(number)
                return
            frame = frame.f_back
        _waiting.clear()
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


def _come_again(number: int) -> None:
    # The signal itself, because by then it may have another handler, which does not interrupt.
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
    _waiting.add(number)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


def heed_interrupt() -> None:
    """Interrupt now what would be interrupted a little later: it has not begun yet.

    Raises:
        KeyboardInterrupt: a signal came in the middle of an import.
    """
    if _waiting:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _waiting.clear()
        raise KeyboardInterrupt


def interrupt_on_signals() -> None:
    """Let every signal that would end the command interrupt it as Ctrl-C does, with all clean-up on the way out."""
    interrupt = signal.getsignal(signal.SIGINT)
    for number in ENDING_SIGNALS[1:]:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupt if callable(interrupt) else signal.default_int_handler)


def ignore_signals() -> None:
    """Let no signal change the exit code while Python takes apart what was loaded: all is done and said by then."""
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if _waiting:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def on_signals(act: Callable[[int], object]) -> Iterator[None]:
    """Call ``act`` with the number of each signal that would end the command, in the main thread."""
    former = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    heeded = [number for number, handler in former.items() if handler is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, lambda caught, _: act(caught))
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, former[number])
