"""Watching real directories: events, what gives none, what goes away and comes back, and what is too much at once."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from logstore.log_dir import LogDir
from logstore.staging import adopt_stray, forget_stray, list_staged
from logstore.watch import LOG_DIR_KEY, RowChange, Watch, WatchTimes
from logstore.watch.events import OVERFLOW_LOGGER, WatchEvents
from tests.patience import PATIENCE_S

QUICK = WatchTimes(gather=0.02, check=0.05, again=(0.05, 0.1))


def described(change: RowChange) -> tuple[str, str, str]:
    before, after = (seen.kind if seen else "" for seen in (change.before, change.after))
    return change.name, before, after


def until(watch: Watch, *wanted: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    """Every reported change, until all wanted changes are there."""
    reported: list[tuple[str, str, str]] = []
    end = time.monotonic() + PATIENCE_S
    while not set(wanted) <= set(reported) and time.monotonic() < end:
        reported += map(described, watch.poll(0.2))
    return reported


def until_state(watch: Watch, path: Path, *, lost: bool) -> list[RowChange]:
    reported: list[RowChange] = []
    end = time.monotonic() + PATIENCE_S
    while watch.log_dirs[str(path)].state.lost != lost and time.monotonic() < end:
        reported += watch.poll(0.2)
    assert watch.log_dirs[str(path)].state.lost == lost
    return reported


def nothing_is_reported(watch: Watch) -> None:
    assert watch.poll(0.3) == []


class StandingClock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def by_hand(*log_dirs: object, **times: Any) -> Iterator[tuple[Watch, StandingClock]]:
    """A watch whose time stands still, so that nothing is done but what an event or the test calls for."""
    clock = StandingClock()
    with Watch(map(str, log_dirs), WatchTimes(gather=0.0, **times), clock=clock) as watch:
        yield watch, clock


def test_what_is_there_when_it_starts_is_known_and_no_change(log_dir: Any) -> None:
    log_dir.replica("orders-0")
    with Watch([str(log_dir)], QUICK) as watch:
        assert set(watch.log_dirs[str(log_dir)].known) == {"orders-0"}
        nothing_is_reported(watch)


def test_directories_that_come_go_and_are_renamed_are_reported(log_dir: Any) -> None:
    log_dir.replica("old-0")
    log_dir.replica("moved-0")
    with Watch([str(log_dir)], QUICK) as watch:
        log_dir.replica("new-0")
        shutil.rmtree(log_dir.path / "old-0")
        (log_dir.path / "moved-0").rename(log_dir.path / "moved-1")
        wanted = {("new-0", "", "live"), ("old-0", "live", ""), ("moved-0", "live", ""), ("moved-1", "", "live")}
        assert set(until(watch, *wanted)) == wanted


def test_a_stray_that_is_given_a_due_time_is_reported_and_reported_again_when_it_is_taken_back(log_dir: Any) -> None:
    name = f"orders-0.{'0123456789abcdef' * 2}-stray"
    log_dir.replica(name)
    with Watch([str(log_dir)], QUICK) as watch:
        with LogDir.open(str(log_dir)) as opened:
            adopt_stray(opened, list_staged(opened)[0], ("STRAY", "nobody wants it"), 1, 1000)
        assert (name, "stray", "staged") in until(watch, (name, "stray", "staged"))
        with LogDir.open(str(log_dir)) as opened:
            forget_stray(opened, list_staged(opened)[0])
        assert (name, "staged", "stray") in until(watch, (name, "staged", "stray"))


def test_a_topic_id_that_comes_a_moment_later_is_reported_with_its_directory(log_dir: Any) -> None:
    with Watch([str(log_dir)], WatchTimes(gather=0.0, check=0.05, again=(0.5,))) as watch:
        path = log_dir.replica("orders-0", None)
        watch.poll(0.1)
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {log_dir.topic_id}")
        assert until(watch, ("orders-0", "", "live")) == [("orders-0", "", "live")]
        seen = watch.log_dirs[str(log_dir)].known.get("orders-0")
        assert seen is not None and seen.topic_id == log_dir.topic_id


def test_of_a_topic_that_is_made_anew_no_directory_is_reported_without_its_topic_id(log_dir: Any) -> None:
    old = log_dir.replica("orders-0")
    with Watch([str(log_dir)], WatchTimes(gather=0.0, check=0.05, again=(0.5,))) as watch:
        old.rename(log_dir.path / f"orders-0.{'0' * 32}-delete")
        path = log_dir.replica("orders-0", None)
        reported = watch.poll(0.1)
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {log_dir.other_id}")
        end = time.monotonic() + PATIENCE_S
        while log_dir.other_id not in _topic_ids(reported) and time.monotonic() < end:
            reported += watch.poll(0.2)
        assert log_dir.other_id in _topic_ids(reported) and None not in _topic_ids(reported)


def _topic_ids(reported: list[RowChange]) -> list[str | None]:
    return [change.after.topic_id for change in reported if change.after is not None]


def test_a_topic_id_that_comes_much_later_is_found_by_the_last_look(log_dir: Any) -> None:
    with Watch([str(log_dir)], QUICK) as watch:
        path = log_dir.replica("orders-0", None)
        assert until(watch, ("orders-0", "", "live")) == [("orders-0", "", "live")]
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {log_dir.topic_id}")
        assert until(watch, ("orders-0", "live", "live")) == [("orders-0", "live", "live")]


def test_a_change_inside_a_directory_is_found_by_the_next_sweep(log_dir: Any) -> None:
    path = log_dir.replica("orders-0")
    with by_hand(log_dir, interval=60.0) as (watch, clock):
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {log_dir.other_id}")
        assert watch.poll(0) == []
        clock.now += 61
        assert until(watch, ("orders-0", "live", "live")) == [("orders-0", "live", "live")]


def test_a_sweep_can_be_asked_for_by_another_thread(log_dir: Any) -> None:
    path = log_dir.replica("orders-0")
    with Watch([str(log_dir)], QUICK) as watch:
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {log_dir.other_id}")
        threading.Timer(0.05, watch.sweep_soon).start()
        assert until(watch, ("orders-0", "live", "live"))


def test_lost_events_make_everything_be_read_again(log_dir: Any, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr(WatchEvents, "hint", lambda *_: None)
    with by_hand(log_dir) as (watch, _):
        log_dir.replica("orders-0")
        assert watch.poll(0) == []
        logging.getLogger(OVERFLOW_LOGGER).warning("Inotify queue overflowed; filesystem events were lost")
        assert until(watch, ("orders-0", "", "live"))
        assert "everything is read again" in caplog.text


def test_a_burst_on_one_entry_is_one_change(log_dir: Any) -> None:
    with Watch([str(log_dir)], WatchTimes(gather=0.5, check=0.05)) as watch:
        for _ in range(50):
            shutil.rmtree(log_dir.replica("orders-0"))
        log_dir.replica("orders-0")
        assert until(watch, ("orders-0", "", "live")) == [("orders-0", "", "live")]
        nothing_is_reported(watch)


def test_thousands_of_new_directories_are_all_reported_once(log_dir: Any) -> None:
    with Watch([str(log_dir)], QUICK) as watch:
        wanted = [(f"orders-{number}", "", "live") for number in range(3000)]
        for name, *_ in wanted:
            log_dir.replica(name)
        assert sorted(until(watch, *wanted)) == sorted(wanted)


def test_a_name_that_is_not_utf_8_is_reported_and_taken_back(log_dir: Any) -> None:
    path = os.fsencode(log_dir.path) + b"/\xff-0"
    with Watch([str(log_dir)], QUICK) as watch:
        os.mkdir(path)
        assert until(watch, ("\udcff-0", "", "live"))
        os.rmdir(path)
        assert until(watch, ("\udcff-0", "live", ""))


def test_checkpoints_and_the_identity_are_read_again_when_they_are_replaced(log_dir: Any) -> None:
    with Watch([str(log_dir)], QUICK) as watch:
        for name, text in (("replication-offset-checkpoint", "broken"), ("meta.properties", "version=9\n")):
            log_dir.file(f"{name}.tmp", text).rename(log_dir.path / name)
        until_state(watch, log_dir.path, lost=True)
        log_dir.identity()
        until_state(watch, log_dir.path, lost=False)
        log_dir.file("replication-offset-checkpoint", "0\n0\n")
        assert until(watch, ("replication-offset-checkpoint", "checkpoint_entry", ""))


def test_a_staging_directory_is_watched_once_it_is_there(log_dir: Any) -> None:
    with Watch([str(log_dir)], QUICK) as watch:
        first, second = (f"../data.deleting/{log_dir.topic_id}_{number}" for number in range(2))
        log_dir.replica(first)
        assert until(watch, (first, "", "staged"))
        log_dir.replica(second)
        assert until(watch, (second, "", "staged"))
        shutil.rmtree(log_dir.path.with_name("data.deleting"))
        assert until(watch, (first, "staged", ""), (second, "staged", ""))


@pytest.mark.parametrize("way", ["rename", "delete"])
def test_a_log_dir_that_goes_away_is_lost_until_it_is_back(log_dir: Any, new_log_dir: Any, way: str) -> None:
    log_dir.replica("orders-0")
    log_dir.replica("orders-1")
    away = log_dir.path.with_name("away")
    with Watch([str(log_dir)], QUICK) as watch:
        log_dir.path.rename(away)
        reported = until_state(watch, log_dir.path, lost=True)
        assert [change.key for change in reported] == [LOG_DIR_KEY]
        nothing_is_reported(watch)
        if way == "rename":
            shutil.rmtree(away / "orders-1")
            away.rename(log_dir.path)
        else:
            shutil.rmtree(away)
            new_log_dir(log_dir.path).replica("orders-0")
            log_dir.identity()
        reported = until_state(watch, log_dir.path, lost=False)
        assert sorted(map(described, reported)) == [(".", "log_dir", "log_dir"), ("orders-1", "live", "")]
        log_dir.replica("orders-2")
        assert until(watch, ("orders-2", "", "live"))


def test_another_directory_put_in_its_place_at_once_is_noticed(log_dir: Any, new_log_dir: Any) -> None:
    log_dir.replica("orders-0")
    other = new_log_dir(log_dir.path.with_name("other")).identity()
    other.replica("orders-1")
    with Watch([str(log_dir)], QUICK) as watch:
        log_dir.path.rename(log_dir.path.with_name("away"))
        other.path.rename(log_dir.path)
        assert set(until(watch, ("orders-0", "live", ""))) >= {("orders-0", "live", ""), ("orders-1", "", "live")}
        log_dir.replica("orders-2")
        assert until(watch, ("orders-2", "", "live"))


def test_a_log_dir_that_is_not_there_yet_is_awaited(tmp_path: Path, new_log_dir: Any) -> None:
    path = tmp_path / "data"
    with Watch([str(path)], QUICK) as watch:
        assert watch.log_dirs[str(path)].state.lost
        made = new_log_dir(path)
        made.replica("orders-0")
        made.identity()
        assert until(watch, ("orders-0", "", "live"))
        assert not watch.log_dirs[str(path)].state.lost


@pytest.mark.root
def test_a_disk_that_is_unmounted_and_mounted_again_is_lost_meanwhile(log_dir: Any) -> None:
    def system(*command: str) -> int:
        return os.spawnvp(os.P_WAIT, command[0], command)

    kept = log_dir.path.with_name("kept")
    log_dir.path.rename(kept)
    log_dir.path.mkdir()
    log_dir_builder = log_dir
    if os.geteuid() != 0 or system("mount", "--bind", str(kept), str(log_dir.path)):
        pytest.skip("a bind mount needs to be root, and a system that lets it")
    try:
        log_dir_builder.replica("orders-0")
        with Watch([str(log_dir)], QUICK) as watch:
            assert system("umount", str(log_dir.path)) == 0
            assert [change.key for change in until_state(watch, log_dir.path, lost=True)] == [LOG_DIR_KEY]
            assert system("mount", "--bind", str(kept), str(log_dir.path)) == 0
            until_state(watch, log_dir.path, lost=False)
            log_dir_builder.replica("orders-1")
            assert until(watch, ("orders-1", "", "live"))
    finally:
        system("umount", str(log_dir.path))


def test_what_cannot_be_watched_is_said_once_and_found_by_sweeps(log_dir: Any, monkeypatch: Any, caplog: Any) -> None:
    def refused(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WatchEvents, "watch", refused)
    with by_hand(log_dir, interval=60.0) as (watch, clock):
        log_dir.replica("orders-0")
        for _ in range(5):
            clock.now += 2
            assert watch.poll(0) == []
        clock.now += 61
        assert until(watch, ("orders-0", "", "live"))
    assert caplog.text.count("cannot be watched") == 1
    assert "max_user_watches" in caplog.text


def test_what_took_long_is_not_begun_again_soon(log_dir: Any, monkeypatch: Any) -> None:
    name = "replication-offset-checkpoint"
    with by_hand(log_dir, share=0.1) as (watch, clock):
        disk, read = watch.log_dirs[str(log_dir)], []
        plain = disk.read_checkpoints

        def slowly() -> list[RowChange]:
            read.append(clock.now)
            clock.now += 1.0
            return plain()

        monkeypatch.setattr(disk, "read_checkpoints", slowly)
        for text, seconds in (("broken", 0.0), ("0\n0\n", 5.0), ("0\n0\n", 6.0)):
            clock.now += seconds
            log_dir.file(name, text)
            disk.look_again([name])
            watch.poll(0)
    assert read == [100.0, 112.0]


def test_iteration_ends_when_another_thread_stops_it(log_dir: Any) -> None:
    with Watch([str(log_dir)], QUICK) as watch:
        threading.Timer(0.3, watch.stop).start()
        log_dir.replica("orders-0")
        assert [described(change) for changes in watch for change in changes] == [("orders-0", "", "live")]
        assert watch.is_stopped
        assert watch.poll(None) == []


def test_events_of_several_log_dirs_are_kept_apart(log_dir: Any, new_log_dir: Any) -> None:
    other = new_log_dir(log_dir.path.with_name("other")).identity()
    log_dir.replica("orders-0")
    with Watch([str(log_dir), str(other)], QUICK) as watch:
        (log_dir.path / "orders-0").rename(other.path / "orders-0")
        reported: set[tuple[str, str]] = set()
        end = time.monotonic() + PATIENCE_S
        while len(reported) < 2 and time.monotonic() < end:
            reported |= {(change.log_dir, described(change)[2]) for change in watch.poll(0.2)}
    assert reported == {(str(log_dir), ""), (str(other), "live")}
