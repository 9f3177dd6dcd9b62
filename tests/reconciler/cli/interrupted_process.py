"""Runs the real command line in a process of its own, which interrupts itself and all its workers, as Ctrl-C does.

``python -m tests.reconciler.cli.interrupted_process MODULE:FUNCTION ARGUMENTS``: the interrupt comes at the first call
of that function, however fast the machine is; ``-`` interrupts nothing. ZooKeeper is a tree in memory.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from reconciler.cli import main


def interrupt_at(place: str) -> None:
    """Send SIGINT to the group of this process at the first call of a function in it, in whichever thread."""
    module, name = place.split(":")

    def called(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_qualname == name and frame.f_globals.get("__name__") == module:
            sys.setprofile(None)
            threading.setprofile(None)
            os.killpg(0, signal.SIGINT)

    threading.setprofile(called)
    sys.setprofile(called)


def without_zookeeper() -> None:
    """Let the verbs about ZooKeeper find a tree in memory."""
    from reconciler.sources.zookeeper import Acl, AclOperation, encode_acls, encode_config
    from reconciler.topic_ids import write
    from tests.reconciler.topic_ids.test_topic_ids_write import Tree

    @contextmanager
    def connect(_: str) -> Iterator[Any]:
        tree = Tree()
        tree.put("/config/topics/org", encode_config({"retention.ms": "7"}))
        tree.put("/kafka-acl/Namespace/org", encode_acls([Acl("User:ann", AclOperation.ALL)]))
        yield tree

    write.connect = connect


if __name__ == "__main__":
    _, where, *arguments = sys.argv
    sys.argv = ["logstore", *arguments]
    if arguments[:1] == ["topic-ids"] or arguments[:2] in (["namespace", "configs"], ["namespace", "acls"]):
        without_zookeeper()
    if where != "-":
        interrupt_at(where)
    main()
