"""A program outside the repository imports from the doors, runs, and is checked by ``mypy --strict`` against them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

PROGRAM = """
    from layout.ids import TopicId
    from layout.topic import TopicPartition
    from logstore import KafkaError, LogDir, LogStore, Observation, Watch, scan
    from reconciler import AuditResult, Broker, DesiredState, Plan, audit, compare


    def node_of(path: str) -> int | None:
        seen: Observation = scan(path)
        return None if seen.identity is None else seen.identity.node_id


    def is_fenced(store: LogStore, partition: TopicPartition, topic_id: TopicId) -> bool:
        error: KafkaError = store.fence(partition, topic_id)
        return error is not KafkaError.NONE


    def opened(path: str) -> LogDir:
        return LogDir.open(path)


    def broker_of(store: LogStore) -> Broker:
        return Broker(store)


    def actions(plan: Plan) -> int:
        return len(plan.actions)


    def judged(state: DesiredState, rows: list[dict[str, object]]) -> int:
        return len(list(compare({"": state}, rows, 0)))


    def audited(state: DesiredState, folder: str) -> AuditResult:
        return audit([], [], [state], folder, now_ms=0)


    print(node_of("/nowhere"), Watch.__name__)
"""

MISTAKES = """
    from logstore import scan
    from reconciler import Broker, no_such_name

    scan(7)
    Broker("a store")
"""


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_what_a_user_imports_is_typed_and_a_users_mistakes_are_found(tmp_path: Path) -> None:
    programs = written(tmp_path, "program.py", PROGRAM), written(tmp_path, "mistakes.py", MISTAKES)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", *programs]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not ran.stderr, ran.stderr
    errors = [line for line in ran.stdout.splitlines() if ": error: " in line]
    assert [(line.partition(":")[0], line.rpartition("[")[2]) for line in errors] == [
        ("mistakes.py", "attr-defined]"),
        ("mistakes.py", "arg-type]"),
        ("mistakes.py", "arg-type]"),
    ]


def test_what_a_user_imports_is_there(tmp_path: Path) -> None:
    command = [sys.executable, written(tmp_path, "program.py", PROGRAM)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("None Watch\n", "")
