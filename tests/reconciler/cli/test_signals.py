"""The signals that end a command: what they call, what they leave alone, and that an import is no place for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.signals import ENDING_SIGNALS, interrupt_on_signals, on_signals
from tests.patience import PATIENCE_S, killed_at_last

REPOSITORY = Path(__file__).parents[3]

pytestmark = pytest.mark.usefixtures("every_signal_heard")


@pytest.fixture
def hangup_is_nothing() -> Iterator[None]:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, former)


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_each_is_reported_by_its_number_and_things_are_as_before_afterwards(number: signal.Signals) -> None:
    former = signal.getsignal(number)
    heard: list[int] = []
    with on_signals(heard.append):
        os.kill(os.getpid(), number)
    assert heard == [number]
    assert signal.getsignal(number) is former


def test_one_that_is_nothing_to_the_process_stays_nothing(hangup_is_nothing: None) -> None:
    heard: list[int] = []
    with on_signals(heard.append):
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_each_interrupts_where_nothing_else_is_asked_for(number: signal.Signals) -> None:
    interrupt_on_signals()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)


def test_what_is_nothing_to_the_process_interrupts_nothing(hangup_is_nothing: None) -> None:
    interrupt_on_signals()
    os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_watch_under_nohup_outlives_its_terminal(cluster, hangup_is_nothing: None) -> None:
    command = [sys.executable, "-m", "reconciler.cli", "watch", cluster.log_dirs[0], "--metadata", "none"]
    started = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with killed_at_last(started) as watch:
        assert watch.stderr is not None
        while b"watching" not in (line := watch.stderr.readline()):
            assert line, "it ended before it watched"
        watch.send_signal(signal.SIGHUP)
        (cluster.log_dir(1) / "orders-0").rename(cluster.log_dir(1) / "orders-7")
        assert watch.stdout is not None
        assert b"orders-" in watch.stdout.readline()
        assert watch.poll() is None
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(PATIENCE_S) == 0


GREEDY = """
import os, signal, time
try:
    os.kill(os.getpid(), {number})
    time.sleep({pause_s})
except BaseException:
    print("an import was interrupted", flush=True)
"""
"""A module that is interrupted while it is loaded, and drops that."""


def printed(folder: Path, *lines: str, number: int = signal.SIGINT, pause_s: float = 0.0) -> list[str]:
    """What a program prints that imports the greedy module; ``lines``: of its function main, after the first."""
    (folder / "greedy.py").write_text(GREEDY.format(number=int(number), pause_s=pause_s))
    (folder / "outer.py").write_text("import greedy\nprint('loaded', flush=True)\n")
    program = [
        "import signal, threading, time",
        "from reconciler.cli.signals import heed_interrupt, interrupt_after_imports, interrupt_on_signals, on_signals",
        "def main():",
        *(f"    {line}" for line in ("interrupt_after_imports()", *lines)),
        "signal.signal(signal.SIGINT, signal.default_int_handler)",
        "main()",
    ]
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{folder}"}
    command = [sys.executable, "-c", "\n".join(program)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_an_interrupt_in_the_middle_of_an_import_comes_when_all_is_loaded(tmp_path: Path, number: int) -> None:
    waiting = ["try:", "    import outer", f"    time.sleep({PATIENCE_S})", "except KeyboardInterrupt:"]
    lines = ["interrupt_on_signals()", *waiting, "    print('interrupted')"]
    assert printed(tmp_path, *lines, number=number, pause_s=0.05) == ["loaded", "interrupted"]


def test_what_has_not_begun_is_interrupted_before_it_does(tmp_path: Path) -> None:
    begins = ["    import outer", "    heed_interrupt()", "    print('begun')"]
    lines = ["heed_interrupt()", "try:", *begins, "except KeyboardInterrupt:", "    heed_interrupt()"]
    assert printed(tmp_path, *lines, "    print('interrupted')") == ["loaded", "interrupted"]


def test_what_an_interrupt_of_an_import_calls_then_is_what_a_signal_calls_then(tmp_path: Path) -> None:
    lines = [
        "heard = threading.Event()",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])",
        "import outer",
        "with on_signals(lambda _: heard.set()):",
        "    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])",
        f"    print(heard.wait({PATIENCE_S}))",
    ]
    assert printed(tmp_path, *lines) == ["loaded", "True"]
