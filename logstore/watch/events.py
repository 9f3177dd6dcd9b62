"""The watchdog side of a watch: which names in which directories something happened to. Hints, never the truth.

One non-recursive watch for each directory, with a filter of events; recursive watches of watchdog 7.1 stop delivering
anything at some 8,000 directories. An event only puts a name into a set, so a burst of them costs a set. When
the kernel's queue overflows, watchdog says so in its log and nowhere else, so a log handler listens there. A watch
follows the inode and not the path: it is for the caller to see that a directory went, or is another one now. What lies
under a name, and what it means, is left to ``watched_log_dir``.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

OVERFLOW_LOGGER = "watchdog.observers.inotify_c"
"""Where watchdog warns that the kernel dropped events."""

_EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileClosedEvent,
]


@dataclass(slots=True)
class Hints:
    """What happened since the last time somebody asked."""

    names: dict[str, set[str]] = field(default_factory=dict)
    """Directory, as it was given → names of entries in it."""
    overflow: bool = False
    """Events were lost: anything may have changed."""

    def __bool__(self) -> bool:
        return bool(self.names) or self.overflow


class WatchEvents:
    """Collects hints. :meth:`wake` may be called from any thread and from a signal handler, the rest by one thread."""

    def __init__(self) -> None:
        # A Condition with its own kind of lock, which one thread may take twice: a signal handler may call wake().
        self._changed = threading.Condition()
        self._hints = Hints()
        self._woken = False
        self._observer: BaseObserver | None = None
        self._watches: dict[str, ObservedWatch] = {}
        self._overflow_handler = _OverflowHandler(self)

    def start(self) -> None:
        """Start watchdog's threads; a missing directory is told of only by an observer that runs."""
        self._observer = Observer()
        self._observer.start()
        logging.getLogger(OVERFLOW_LOGGER).addHandler(self._overflow_handler)

    def stop(self) -> None:
        """End watchdog's threads, and wait for them."""
        logging.getLogger(OVERFLOW_LOGGER).removeHandler(self._overflow_handler)
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
        self._observer = None
        self._watches.clear()

    def watch(self, directory: str) -> None:
        """Watch a directory from now on, anew if it is watched already.

        Raises:
            OSError: there is none, or the system has no watch left (``fs.inotify.max_user_watches``).
        """
        assert self._observer is not None, "start() comes first"
        self.unwatch(directory)
        # Watchdog does not follow a link, and a log dir may be one.
        real = os.path.realpath(directory)
        handler = _Handler(self, directory, real)
        self._watches[directory] = self._observer.schedule(handler, real, event_filter=_EVENTS)

    def unwatch(self, directory: str) -> None:
        """Watch it no longer, and forget what happened in it; nothing happens when it was not watched."""
        watch = self._watches.pop(directory, None)
        if watch is not None and self._observer is not None:
            self._observer.unschedule(watch)
        with self._changed:
            self._hints.names.pop(directory, None)

    def is_watched(self, directory: str) -> bool:
        """Whether events of this directory still arrive, as far as watchdog knows: it notices when one is deleted."""
        watch = self._watches.get(directory)
        if watch is None or self._observer is None:
            return False
        return any(emitter.watch == watch and emitter.is_alive() for emitter in self._observer.emitters)

    def take(self) -> Hints:
        """What happened since the last time."""
        with self._changed:
            taken, self._hints = self._hints, Hints()
            self._woken = False
            return taken

    def wait(self, seconds: float) -> bool:
        """Wait until something happened or :meth:`wake` was called, at most so long; True: one of these."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._hints) or self._woken, max(0.0, seconds))

    def wait_for_more(self, seconds: float) -> None:
        """Let events gather; :meth:`wake` ends that."""
        with self._changed:
            self._changed.wait_for(lambda: self._woken, seconds)

    def wake(self) -> None:
        """End any waiting."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def hint(self, directory: str, name: str) -> None:
        """Something happened to this entry of a watched directory."""
        with self._changed:
            if not self._hints:
                self._changed.notify_all()
            self._hints.names.setdefault(directory, set()).add(name)

    def overflowed(self) -> None:
        """Events were lost."""
        with self._changed:
            self._hints.overflow = True
            self._changed.notify_all()


class _Handler(FileSystemEventHandler):
    """Turns the events of one directory into hints."""

    def __init__(self, events: WatchEvents, directory: str, real: str) -> None:
        self._events, self._directory, self._real = events, directory, real

    def dispatch(self, event: FileSystemEvent) -> None:
        """Take the names out of an event, of a rename both; called by watchdog's thread."""
        for path in (event.src_path, event.dest_path):
            folder, _, name = os.fsdecode(path).rpartition("/")
            if name and folder == self._real.rstrip("/"):
                self._events.hint(self._directory, name)


class _OverflowHandler(logging.Handler):
    """Hears of lost events."""

    def __init__(self, events: WatchEvents) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Whatever watchdog warns of there, events may be missing."""
        self._events.overflowed()
