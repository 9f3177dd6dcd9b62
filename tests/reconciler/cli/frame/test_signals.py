"""Signals that end a command, and those that are nothing to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.frame import lifecycle as signals

REPOSITORY = Path(__file__).parents[4]
SECONDS = 30

pytestmark = pytest.mark.usefixtures("every_signal_heard")


@pytest.fixture
def hangup_is_nothing() -> Iterator[None]:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, former)


@pytest.mark.parametrize("number", signals.ENDING)
def test_each_is_told_by_its_number_and_things_are_as_before_afterwards(number: signal.Signals) -> None:
    former = signal.getsignal(number)
    heard: list[int] = []
    with signals.on_signals(heard.append):
        os.kill(os.getpid(), number)
    assert heard == [number]
    assert signal.getsignal(number) is former


def test_one_that_is_nothing_to_the_process_stays_nothing(hangup_is_nothing: None) -> None:
    heard: list[int] = []
    with signals.on_signals(heard.append):
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("number", signals.ENDING)
def test_each_interrupts_where_nothing_else_is_asked_for(number: signal.Signals) -> None:
    signals.interrupt_on_signals()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)


def test_what_is_nothing_to_the_process_interrupts_nothing(hangup_is_nothing: None) -> None:
    signals.interrupt_on_signals()
    os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_watch_under_nohup_outlives_its_terminal(cluster, hangup_is_nothing: None) -> None:
    command = [sys.executable, "-m", "reconciler.cli", "watch", cluster.log_dirs[0], "--metadata", "none"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watch:
        assert watch.stderr is not None
        while b"watching" not in watch.stderr.readline():
            pass
        watch.send_signal(signal.SIGHUP)
        (cluster.log_dir(1) / "orders-0").rename(cluster.log_dir(1) / "orders-7")
        assert watch.stdout is not None
        assert b"orders-" in watch.stdout.readline()
        assert watch.poll() is None
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(SECONDS) == 0
