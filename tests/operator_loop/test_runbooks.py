"""Every runbook, walked step by step before a damaged broker: its commands are those that the tool prints.

What changes a disk must have been printed before by a step of the same runbook, so that pages and program cannot say
different things; at the end the broker is whole.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli import logstore
from reconciler.cli.guide import RUNBOOKS, inlines, parse_page, read_page
from tests.operator_loop.bench import Bench
from tests.operator_loop.faults import FAULTS
from tests.operator_loop.operator_loop import Operator

LOOKS = {"audit", "doctor", "preflight", "staged", "explain", "scan", "where"}
"""Verbs that change nothing, and may be asked at any time."""
PRINTED = re.compile(r"^ *((?:logstore|mv) .*)$", re.MULTILINE)
PLANTED = {
    "disk-full": ("staged_due", "not_assigned"),
    "strays-after-reassignment": ("not_assigned", "stray"),
    "id-drift-after-restore": ("stale_id", "unknown_topic", "no_id"),
    "broker-does-not-start": ("damaged", "damaged_checkpoint"),
    "zookeeper-to-kraft": ("no_id",),
}
"""The faults of the broker that each runbook is walked before."""


def steps(name: str) -> Iterator[tuple[str, list[str]]]:
    """What each step of a runbook says, and its commands."""
    (steps,) = [node for node in parse_page(read_page(name).text).children if node.type == "ordered_list"]
    for item in steps.children:
        said = "".join(piece.content or " " for piece in inlines(item.children[0]))
        code = "".join(node.content for node in item.children if node.type == "fence").replace("\\\n", " ")
        yield said, code.splitlines()


def normal(command: str) -> tuple[str, ...]:
    """The words of a command, in an order of their own: which option stands first does not matter."""
    words = ["-o" if word == "--output" else os.path.basename(word) if word.endswith(".json") else word
             for word in shlex.split(command)]  # fmt: skip
    return (*words[:2], *sorted(words[2:]))


@dataclass
class Walk:
    """Goes through a runbook, and keeps what was printed on the way."""

    bench: Bench
    printed: set[tuple[str, ...]] = field(default_factory=set)
    done: list[str] = field(default_factory=list)

    def filled(self, line: str) -> str:
        """A line of the runbook with the disks and the metadata of the broker."""
        first, second = map(str, self.bench.disks)
        places = {"/disks/*/kafka": f"{first} {second}", "/disks/2/kafka": second, "/disks/1/kafka": first}
        for place, here in (places | dict.fromkeys(("zk:zk-1:2181/kafka", "kafka:broker-1:9092"), "SRC")).items():
            line = line.replace(place, here)
        return " ".join(re.sub(r"\bSRC\b", self.bench.source, line).split())

    def step(self, said: str, lines: list[str]) -> None:
        if said.startswith("Start the broker"):
            self.bench.start()
        for line in lines:
            if line.startswith("logstore topic-ids"):  # asks a live ZooKeeper
                continue
            command = self.filled(line)
            words = shlex.split(command)
            if words[0] != "logstore":
                assert normal(command) in self.printed, (command, self.printed)
                subprocess.run(words, check=True)
                continue
            assert words[1] in LOOKS or normal(command) in self.printed, (command, self.printed)
            ran = CliRunner().invoke(logstore, words[1:])
            assert ran.exit_code in (0, 1), (command, ran.output)
            self.done.append(command)
            text = re.sub(r" \\\n +", " ", ran.output)
            self.printed |= {normal(found) for found in PRINTED.findall(text)}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)
    made = Bench(tmp_path / "broker-2")
    made.build()
    return made


def is_full_while_staged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the second disk have no room as long as something is staged beside it."""
    staging, real = bench.folder / "disk-2.deleting", os.statvfs

    def room(path: int | str) -> os.statvfs_result:
        found = real(path)
        name = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fspath(path)
        if not name.startswith(str(bench.disks[1])) or not any(each.is_dir() for each in staging.iterdir()):
            return found
        return os.statvfs_result((4096, 4096, 1 << 20, 100, 0, *found[5:10], 0))

    monkeypatch.setattr(os, "statvfs", room)


def test_every_runbook_has_a_broker_to_be_walked_before() -> None:
    assert set(PLANTED) == set(RUNBOOKS)


@pytest.mark.parametrize("name", RUNBOOKS)
def test_a_runbook_leads_to_a_whole_broker_by_commands_that_are_printed(
    name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fault in PLANTED[name]:
        FAULTS[fault](bench)
    if name == "broker-does-not-start":
        (bench.disks[1] / "backup").mkdir()
    then = time.time() - 3600
    for path in bench.folder.rglob("*"):
        os.utime(path, (then, then))  # so that the metadata is younger than what it judges
    bench.write_metadata()
    if name == "disk-full":
        is_full_while_staged(bench, monkeypatch)
    operator = Operator(bench)
    assert operator.left() != []
    walk = Walk(bench)
    for said, lines in steps(name):
        walk.step(said, lines)
    assert operator.left() == [], walk.done
