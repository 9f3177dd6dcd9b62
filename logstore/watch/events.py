"""Collect the names that file system events mention, by watchdog. Events are hints, never the truth.

There is one non-recursive watch for each directory, with a filter of events; recursive watches of watchdog 7.1 stop
delivering anything at some 8,000 directories. An event only puts a name into a set, so a burst of events costs little.
When the kernel's queue overflows, watchdog says so in its log and nowhere else, so a log handler listens there. A watch
follows the inode and not the path: the caller must notice that a directory was removed or replaced. ``log_dir`` reads
the entries that are named here.
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
"""The logger to which watchdog writes that the kernel dropped events."""

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
    """What happened since the last :meth:`WatchEvents.take`."""

    names: dict[str, set[str]] = field(default_factory=dict)
    """Directory, as passed to :meth:`WatchEvents.watch` → names of entries in it."""
    overflow: bool = False
    """Events were lost: anything may have changed."""

    def __bool__(self) -> bool:
        return bool(self.names) or self.overflow


class WatchEvents:
    """Collects hints. Any thread and a signal handler may call :meth:`wake`; the other methods belong to one thread."""

    def __init__(self) -> None:
        # A Condition has a lock that one thread may take twice, as it does when a signal handler calls wake().
        self._changed = threading.Condition()
        self._hints = Hints()
        self._woken = False
        self._observer: BaseObserver | None = None
        self._watches: dict[str, ObservedWatch] = {}
        self._overflow_handler = _OverflowHandler(self)

    def start(self) -> None:
        """Start watchdog's threads, before any watch: only a running observer raises for a missing directory."""
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
        """Watch a directory from now on; a directory that is watched already gets a new watch.

        Raises:
            OSError: there is no such directory, or no watch is left (``fs.inotify.max_user_watches``).
        """
        assert self._observer is not None, "start() comes first"
        self.unwatch(directory)
        # Watchdog does not follow a link, and a log dir may be one.
        real = os.path.realpath(directory)
        handler = _Handler(self, directory, real)
        self._watches[directory] = self._observer.schedule(handler, real, event_filter=_EVENTS)

    def unwatch(self, directory: str) -> None:
        """Stop watching a directory, and drop its hints; nothing happens when it is not watched."""
        watch = self._watches.pop(directory, None)
        if watch is not None and self._observer is not None:
            self._observer.unschedule(watch)
        with self._changed:
            self._hints.names.pop(directory, None)

    def is_watched(self, directory: str) -> bool:
        """Whether events of a directory still arrive, as far as watchdog knows: it notices a deleted directory."""
        watch = self._watches.get(directory)
        if watch is None or self._observer is None:
            return False
        return any(emitter.watch == watch and emitter.is_alive() for emitter in self._observer.emitters)

    def take(self) -> Hints:
        """Give the hints collected since the last call, and start anew."""
        with self._changed:
            taken, self._hints = self._hints, Hints()
            self._woken = False
            return taken

    def wait(self, seconds: float) -> bool:
        """Wait at most so long for a hint or a :meth:`wake`; False: the time is over."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._hints) or self._woken, max(0.0, seconds))

    def wait_for_more(self, seconds: float) -> None:
        """Wait so long for events to gather; :meth:`wake` ends the wait."""
        with self._changed:
            self._changed.wait_for(lambda: self._woken, seconds)

    def wake(self) -> None:
        """End any waiting."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def hint(self, directory: str, name: str) -> None:
        """Note that something happened to an entry of a watched directory."""
        with self._changed:
            if not self._hints:
                self._changed.notify_all()
            self._hints.names.setdefault(directory, set()).add(name)

    def overflowed(self) -> None:
        """Note that events were lost."""
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
    """Notices watchdog's warning of lost events."""

    def __init__(self, events: WatchEvents) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Take any warning of that logger to mean that events may be missing."""
        self._events.overflowed()
