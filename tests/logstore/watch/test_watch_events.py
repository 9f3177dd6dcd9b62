"""Hints from watchdog: names, whatever happened to them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.watch.events import OVERFLOW_LOGGER, Hints, WatchEvents
from tests.patience import PATIENCE_S


@pytest.fixture
def events() -> Iterator[WatchEvents]:
    watching = WatchEvents()
    watching.start()
    yield watching
    watching.stop()


def names_until(events: WatchEvents, directory: Path, wanted: set[str]) -> set[str]:
    """The names that were hinted at, once all the wanted ones are among them."""
    seen: set[str] = set()
    end = time.monotonic() + PATIENCE_S
    while not wanted <= seen and time.monotonic() < end:
        events.wait(0.1)
        seen |= events.take().names.get(str(directory), set())
    return seen


def test_everything_that_happens_to_an_entry_is_a_hint_at_its_name(events: WatchEvents, tmp_path: Path) -> None:
    (tmp_path / "old-0").mkdir()
    events.watch(str(tmp_path))
    (tmp_path / "new-0").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "old-0").rename(tmp_path / "old-0.x-stray")
    wanted = {"new-0", "file", "old-0", "old-0.x-stray"}
    assert names_until(events, tmp_path, wanted) == wanted


def test_what_happens_inside_an_entry_is_none(events: WatchEvents, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    events.watch(str(tmp_path))
    (tmp_path / "orders-0" / "partition.metadata").write_text("x")
    (tmp_path / "last").mkdir()
    assert names_until(events, tmp_path, {"last"}) == {"last"}


def test_a_name_that_is_not_utf_8_comes_as_python_gives_it(events: WatchEvents, tmp_path: Path) -> None:
    events.watch(str(tmp_path))
    os.mkdir(os.fsencode(tmp_path) + b"/\xff-0")
    assert names_until(events, tmp_path, {"\udcff-0"}) == {"\udcff-0"}


def test_a_link_to_a_directory_is_watched_where_it_leads(events: WatchEvents, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    events.watch(str(tmp_path / "link"))
    (tmp_path / "real" / "orders-0").mkdir()
    assert names_until(events, tmp_path / "link", {"orders-0"}) == {"orders-0"}


def test_an_entry_that_moves_between_two_directories_is_a_hint_in_both(events: WatchEvents, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "orders-0").mkdir()
    events.watch(str(tmp_path / "one"))
    events.watch(str(tmp_path / "two"))
    (tmp_path / "one" / "orders-0").rename(tmp_path / "two" / "orders-0")
    hints: dict[str, set[str]] = {}
    end = time.monotonic() + PATIENCE_S
    while len(hints) < 2 and time.monotonic() < end:
        events.wait(0.1)
        hints |= events.take().names
    assert hints == {str(tmp_path / "one"): {"orders-0"}, str(tmp_path / "two"): {"orders-0"}}


def test_a_directory_that_is_deleted_is_watched_no_longer(events: WatchEvents, tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    events.watch(str(root))
    assert events.is_watched(str(root))
    root.rmdir()
    end = time.monotonic() + PATIENCE_S
    while events.is_watched(str(root)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not events.is_watched(str(root))
    root.mkdir()
    events.watch(str(root))
    (root / "orders-0").mkdir()
    assert names_until(events, root, {"orders-0"}) == {"orders-0"}


def test_a_directory_that_is_not_there_cannot_be_watched(events: WatchEvents, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        events.watch(str(tmp_path / "none"))
    assert not events.is_watched(str(tmp_path / "none"))


def test_lost_events_are_heard_of_in_the_log_of_watchdog(events: WatchEvents) -> None:
    logging.getLogger(OVERFLOW_LOGGER).warning("Inotify queue overflowed; filesystem events were lost")
    assert events.wait(0)
    assert events.take() == Hints({}, overflow=True)
    assert not events.take()


def test_a_stopped_one_listens_no_more() -> None:
    watching = WatchEvents()
    watching.start()
    before = len(logging.getLogger(OVERFLOW_LOGGER).handlers)
    watching.stop()
    assert len(logging.getLogger(OVERFLOW_LOGGER).handlers) == before - 1


def test_waiting_ends_when_another_thread_says_so(events: WatchEvents) -> None:
    threading.Timer(0.05, events.wake).start()
    assert events.wait(PATIENCE_S)
