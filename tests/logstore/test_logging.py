"""What is logged is for the program that embeds the engine: without a handler nothing is printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from logstore import KafkaError
from tests.logstore.engine import formatted

PROGRAM = """
import logging, sys
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import LogStore
if {with_handler}:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
import reconciler
with LogStore.open({path!r}) as store:
    orders = TopicPartition("orders", 0)
    store.create(orders, TopicId(b"x" * 16))
    store.stage([orders], "STALE_ID", "orders was re-created")
    logging.getLogger("reconciler.broker").warning("a warning of the reconciler")
"""


@pytest.mark.parametrize(("with_handler", "lines"), [(False, 0), (True, 2)])
def test_warnings_reach_the_handlers_of_the_program_and_nobody_else(
    tmp_path: Path, with_handler: bool, lines: int
) -> None:
    path = formatted(tmp_path / "x")
    program = PROGRAM.format(with_handler=with_handler, path=str(path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert len(done.stderr.splitlines()) == lines, done.stderr


def test_an_answer_prints_as_its_name_and_number_and_is_the_number() -> None:
    answer = KafkaError.INCONSISTENT_TOPIC_ID
    assert (str(answer), f"{answer}", answer == 103) == ("INCONSISTENT_TOPIC_ID (103)",) * 2 + (True,)
