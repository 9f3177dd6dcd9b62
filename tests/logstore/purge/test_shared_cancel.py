"""A cancel that forked processes see: set before or after the fork, and when nobody is left who could set it."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from logstore.purge.shared_cancel import SharedCancel
from tests.logstore.children import child, ended_well

SECONDS = 30


@pytest.mark.parametrize("before", [True, False])
def test_a_child_sees_that_it_is_cancelled(before: bool) -> None:
    cancel = threading.Event()
    if before:
        cancel.set()
    with SharedCancel(cancel) as shared:
        forked = child(lambda: shared.in_child().wait(SECONDS))
        cancel.set()
        assert ended_well(forked)


def test_a_child_goes_on_while_nobody_cancels() -> None:
    with SharedCancel(threading.Event()) as shared:
        assert ended_well(child(lambda: not shared.in_child().wait(0.3)))


def test_what_a_child_sets_for_itself_is_its_own_affair() -> None:
    cancel = threading.Event()

    def set_it() -> bool:
        mine = shared.in_child()
        mine.set()
        return mine.is_set()

    with SharedCancel(cancel) as shared:
        assert ended_well(child(set_it))
        assert ended_well(child(lambda: not shared.in_child().wait(0.2)))
    assert not cancel.is_set()


def test_a_child_whose_parent_is_killed_is_cancelled() -> None:
    read, write = os.pipe()

    def waits(shared: SharedCancel) -> bool:
        cancel = shared.in_child()
        os.write(write, b"ready")
        return cancel.wait(SECONDS) and os.write(write, b"cancelled") > 0

    def fork_and_wait() -> bool:
        with SharedCancel(threading.Event()) as shared:
            child(lambda: waits(shared))
            signal.pause()
        return False

    parent = child(fork_and_wait)
    os.close(write)
    assert os.read(read, 100) == b"ready"
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert os.read(read, 100) == b"cancelled"
    os.close(read)
