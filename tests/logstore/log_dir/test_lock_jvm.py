"""The lock against a real JVM, in both directions: what shuts a broker out, and what a broker shuts out."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from logstore import LogDirInUseError
from logstore.log_dir import LogDir, find_lock_holder
from logstore.parallel import spread
from logstore.scan import scan
from tests.logstore.engine import ORDERS, ORDERS_ID, fill, opened
from tests.patience import PATIENCE_S
from tools.machine import java_command, why_no_java

pytestmark = pytest.mark.java

PROBE = Path(__file__).with_name("LockProbe.java")


class JavaLock:
    """A JVM that takes and releases locks on command; it ends when its input does."""

    def __init__(self) -> None:
        java = java_command()
        assert java is not None
        self._process = subprocess.Popen(
            [java, "-Xmx64m", "-XX:TieredStopAtLevel=1", str(PROBE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        word, _, pid = self._answer().partition(" ")
        assert word == "ready"
        self.pid = int(pid)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _ask(self, command: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._answer()

    def gets_it(self, log_dir: Path) -> bool:
        """Whether ``tryLock`` gives the lock; it is released at once."""
        if self._ask(f"take {log_dir}/.lock") == "refused":
            return False
        return self.release() == "released"

    def take(self, log_dir: Path) -> None:
        assert self._ask(f"take {log_dir}/.lock") == "held"

    def release(self) -> str:
        return self._ask("release")

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def __enter__(self) -> JavaLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def java() -> Iterator[JavaLock]:
    reason = why_no_java()
    if reason is not None:
        pytest.skip(reason)
    with JavaLock() as started:
        yield started


def test_a_broker_that_runs_shuts_us_out_and_is_named(our_log_dir: Path, java: JavaLock) -> None:
    java.take(our_log_dir)
    with pytest.raises(LogDirInUseError, match=f"is in use by process {java.pid} .*: stop the broker"):
        LogDir.open(str(our_log_dir))
    with pytest.raises(LogDirInUseError):
        opened(our_log_dir)
    observation = scan(str(our_log_dir))
    assert observation.lock is not None
    assert observation.lock.pid == java.pid
    java.release()
    LogDir.open(str(our_log_dir)).close()


def test_a_log_dir_that_we_hold_shuts_a_broker_out_until_we_give_it_back(our_log_dir: Path, java: JavaLock) -> None:
    with LogDir.open(str(our_log_dir)):
        assert not java.gets_it(our_log_dir)
    assert java.gets_it(our_log_dir)


def test_two_log_dirs_of_a_store_are_held_each_by_itself(tmp_path: Path, our_log_dir: Path, java: JavaLock) -> None:
    (tmp_path / "free").mkdir()
    with opened(our_log_dir):
        assert java.gets_it(tmp_path / "free")
        assert not java.gets_it(our_log_dir)


def test_closing_the_file_elsewhere_in_our_process_does_not_let_a_broker_in(our_log_dir: Path, java: JavaLock) -> None:
    with LogDir.open(str(our_log_dir)):
        with (our_log_dir / ".lock").open("r+"):
            pass
        os.close(os.open(our_log_dir / ".lock", os.O_RDONLY))
        find_lock_holder(str(our_log_dir))
        assert not java.gets_it(our_log_dir)


def test_a_forked_child_that_ends_does_not_let_a_broker_in(our_log_dir: Path, java: JavaLock) -> None:
    with LogDir.open(str(our_log_dir)):
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
        assert not java.gets_it(our_log_dir)
        spread(lambda units: ((number, b"x") for number, _ in units), range(8), 3, take=lambda _, result: result)
        assert not java.gets_it(our_log_dir)
    assert java.gets_it(our_log_dir)


def test_a_forked_child_that_lives_on_does_not_keep_a_broker_out(our_log_dir: Path, java: JavaLock) -> None:
    log_dir = LogDir.open(str(our_log_dir))
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    log_dir.close()
    got_it = java.gets_it(our_log_dir)
    os.close(write)
    os.waitpid(pid, 0)
    os.close(read)
    assert got_it


def test_a_child_that_dies_of_a_signal_does_not_let_a_broker_in(our_log_dir: Path, java: JavaLock) -> None:
    with LogDir.open(str(our_log_dir)):
        pid = os.fork()
        if not pid:
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        assert not java.gets_it(our_log_dir)


def test_scanning_a_log_dir_that_we_hold_does_not_let_a_broker_in(our_log_dir: Path, java: JavaLock) -> None:
    for number in range(30):
        fill(our_log_dir / f"orders-{number}")
    with opened(our_log_dir) as store:
        scan(str(our_log_dir), jobs=2)
        store.reload()
        assert not java.gets_it(our_log_dir)


def test_every_change_of_a_store_keeps_a_broker_out(our_log_dir: Path, java: JavaLock) -> None:
    with opened(our_log_dir) as store:
        store.create(ORDERS, ORDERS_ID)
        assert not java.gets_it(our_log_dir)
        store.stage([ORDERS], "x", "")
        assert not java.gets_it(our_log_dir)
        store.restore(store.staged()[0])
        assert not java.gets_it(our_log_dir)
    assert java.gets_it(our_log_dir)


def test_a_store_that_cannot_open_all_lets_the_broker_have_the_rest(
    our_log_dir: Path, java: JavaLock, log_dir: Any
) -> None:
    log_dir.identity(node_id=9)
    with pytest.raises(Exception, match="not one broker's"):
        opened(our_log_dir, log_dir.path)
    assert java.gets_it(our_log_dir)


def test_a_broker_that_is_killed_lets_us_in(our_log_dir: Path) -> None:
    if (reason := why_no_java()) is not None:
        pytest.skip(reason)
    with JavaLock() as doomed:
        doomed.take(our_log_dir)
        doomed.kill()
        LogDir.open(str(our_log_dir)).close()
