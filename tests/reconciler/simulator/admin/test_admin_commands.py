"""What an instruction to alter a topic changes."""

from __future__ import annotations

import pytest

from reconciler.simulator.admin import AlterTopic


@pytest.mark.parametrize(
    ("wanted", "changes"),
    [
        (AlterTopic("t"), []),
        (AlterTopic("t", 3), ["partitions"]),
        (AlterTopic("t", 3, assignment={2: [1]}), ["partitions"]),
        (AlterTopic("t", assignment={0: [1]}), ["replica assignment"]),
        (AlterTopic("t", factor=2), ["replication factor"]),
        (AlterTopic("t", configs={"segment.ms": "1"}), ["configs"]),
        (AlterTopic("t", deleted_configs=["segment.ms"]), ["configs"]),
        (AlterTopic("t", 3, 2, {0: [1]}, {"a": "b"}), ["partitions", "replication factor", "configs"]),
    ],
)
def test_minus_one_is_absent_and_all_else_is_a_change(wanted: AlterTopic, changes: list[str]) -> None:  # KIP4-3
    assert wanted.changes() == changes
