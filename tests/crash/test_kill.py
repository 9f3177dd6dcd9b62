"""``kill -9`` of a real process in a loop, on a real disk: what it had said was done is so at the next start.

The seed is printed. ``LOGSTORE_KILL_SEED=n`` runs another one.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from layout.ids import DirectoryId
from layout.meta_properties import MetaProperties, encode
from logstore.log_dir import LogDir
from tests.crash.engine_histories import drafts_of_brokers, litter, without
from tests.crash.images import read_tree
from tests.crash.killed_worker import DELAY_MS, MOVED, SEGMENT, START_MS, at, content, fill, opened

ROOT = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("LOGSTORE_KILL_SEED", "516"))
KILLS = 25
MOST_LINES = 60
"""Lines of the process after which it is killed at the latest; two lines are one operation."""


@dataclass(slots=True)
class Said:
    """What follows from what the process said: for each partition the states that it may be in.

    The states are ``live``, ``staged`` and ``gone``.
    """

    now_ms: int = START_MS
    states: dict[int, set[str]] = field(default_factory=dict)
    due_ms: dict[int, int] = field(default_factory=dict)

    def take(self, line: dict[str, Any]) -> None:
        """What was begun may be so or not; what was done is so."""
        self.now_ms = line.get("now_ms", self.now_ms)
        result = {"create": "live", "stage": "staged", "restore": "live", "move": "live"}.get(line["op"])
        for number in line.get("partitions", []):
            before = self.states.get(number, {"gone"})
            assert result is not None
            self.states[number] = {result} if line["done"] else before | {result}
            if line["op"] == "stage":
                self.due_ms[number] = self.now_ms + DELAY_MS
        if line["op"] == "purge":
            for number, states in self.states.items():
                if "staged" in states and self.due_ms[number] <= self.now_ms:
                    states |= {"gone"}
                    if line["done"]:
                        states -= {"staged"}


def check(log_dirs: list[Path], said: Said) -> None:
    """Open the store, and hold all that lies there against what was said."""
    with opened([str(path) for path in log_dirs], said.now_ms) as store:
        assert not store.offline
        assert not store.duplicates
        live = {replica.partition.partition: replica for replica in store.replicas()}
        staged: dict[int, list[Path]] = {}
        begun: set[Path] = set()
        for each in store.staged():
            assert each.record is not None, each.problem
            assert each.partition is not None
            if each.record.verdict != MOVED:
                log_dir = Path(each.log_dir)
                staged.setdefault(each.partition.partition, []).append(log_dir / each.location)
                if each.may_be_partly_purged:
                    begun.add(log_dir / each.location)
        for number, states in said.states.items():
            found = "live" if number in live else "staged" if number in staged else "gone"
            assert found in states, f"{at(number)} is {found}, and by what was said it is {' or '.join(sorted(states))}"
            assert len(staged.get(number, [])) + (number in live) <= 1, f"{at(number)} lies in two places"
            places = [Path(live[number].log_dir) / live[number].path] if number in live else staged.get(number, [])
            is_being_purged = "gone" in states and bool(begun & set(places))
            for place in places if not is_being_purged else ():  # half of it may be gone: it can only be purged
                if "gone" in states and number in live:
                    fill(store, number, live[number].path)  # it may have been killed before it came to the end of this
                assert (place / SEGMENT).exists(), f"{place} has lost its segment"
                assert (place / SEGMENT).read_bytes() == content(number)
            said.states[number] = {"staged", "gone"} if is_being_purged else {found}
        assert set(live) | set(staged) <= set(said.states), "something is there that nobody spoke of"
    trees = {path: read_tree(str(path)) for path in log_dirs}
    for path, tree in trees.items():
        left = litter(without(tree, drafts_of_brokers(tree)))
        assert not left, f"left over in {path}: {', '.join(left)}"
    opened([str(path) for path in log_dirs], said.now_ms).close()
    assert {path: read_tree(str(path)) for path in log_dirs} == trees, "a second start changed something"


def run_and_kill(log_dirs: list[Path], run: int, chance: random.Random, said: Said) -> None:
    """Start the process, kill it at a moment that is drawn, and take to heart what it had said by then."""
    lines = chance.choice([1, chance.randint(2, MOST_LINES)])
    pause_s = chance.random() * 0.01
    command = [sys.executable, "-m", "tests.crash.killed_worker", str(SEED), str(said.now_ms), *map(str, log_dirs)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(lines):
            line = process.stdout.readline()
            if not line:
                pytest.fail(f"seed {SEED}, run {run}: it ended by itself: {process.stderr.read().decode()}")
            said.take(json.loads(line))
        time.sleep(pause_s)
        process.kill()
        for line in process.stdout.read().splitlines():
            said.take(json.loads(line))


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "a broker's"])
def test_what_a_killed_process_had_done_is_done_and_nothing_is_lost(
    tmp_path: Path, ours: bool, record_property: Callable[[str, object], None]
) -> None:
    print(f"LOGSTORE_KILL_SEED={SEED}")
    log_dirs = [tmp_path / "one", tmp_path / "two"]
    for number, path in enumerate(log_dirs):
        identity = MetaProperties(1, "C", 1, DirectoryId.from_halves(1001 + number, 1), "flat" if ours else None)
        if ours:
            LogDir.format(str(path), identity).close()
        else:
            path.mkdir()
            (path / "meta.properties").write_bytes(encode(identity, "today"))
    chance, said = random.Random(SEED), Said()
    for run in range(KILLS):
        run_and_kill(log_dirs, run, chance, said)
        try:
            check(log_dirs, said)
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}, after kill {run + 1}: {error}") from error
    assert len(said.states) >= 5, "it has hardly done anything"
    record_property("kills", KILLS)
