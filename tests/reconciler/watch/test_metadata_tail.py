"""The new end of a KRaft log: what says nothing of replicas need not be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from layout.ids import TopicId
from reconciler.watch.metadata_tail import quiet_until
from tools.writers import kraft_writer as kraft

A = TopicId(bytes(range(16)))
FIRST = kraft.log_batch([kraft.topic_record("a", A)], 0)


def tail(tmp_path: Path, *batches: Sequence[bytes], torn: bytes = b"") -> tuple[str, int, int]:
    data, offset = FIRST, 1
    for records in batches:
        data += kraft.log_batch(records, offset)
        offset += len(records)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data + torn)
    return str(path), len(FIRST), len(data + torn)


@pytest.mark.parametrize(
    "records",
    [
        [kraft.no_op_record()],
        [kraft.no_op_record(), kraft.feature_level_record("metadata.version", 20)],
        [kraft.partition_change_record(A, 0, isr=[1, 2], leader=2)],
    ],
)
def test_what_says_nothing_of_replicas_is_quiet(tmp_path: Path, records: list[bytes]) -> None:
    path, start, size = tail(tmp_path, records, records)
    assert quiet_until(path, start, size) == size


@pytest.mark.parametrize(
    "record",
    [
        kraft.topic_record("b", A),
        kraft.partition_record(A, 0, [1]),
        kraft.remove_topic_record(A),
        kraft.partition_change_record(A, 0, replicas=[1, 3]),
        kraft.partition_change_record(A, 0, removingReplicas=[1]),
        kraft.begin_transaction(),
        kraft.end_transaction(),
    ],
)
def test_what_says_something_of_replicas_is_not(tmp_path: Path, record: bytes) -> None:
    path, start, size = tail(tmp_path, [kraft.no_op_record()], [kraft.no_op_record(), record])
    assert quiet_until(path, start, size) is None


def test_a_control_batch_is_quiet(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(FIRST + kraft.leader_change_batch(1, epoch=2))
    assert quiet_until(str(path), len(FIRST), path.stat().st_size) == path.stat().st_size


def test_a_write_that_goes_on_is_looked_at_again_from_its_beginning(tmp_path: Path) -> None:
    path, start, size = tail(tmp_path, [kraft.no_op_record()], torn=FIRST[:20])
    assert quiet_until(path, start, size) == size - 20


def test_nothing_new_is_quiet_and_what_cannot_be_read_is_not(tmp_path: Path) -> None:
    path, start, _ = tail(tmp_path)
    assert quiet_until(path, start, start) == start
    assert quiet_until(f"{path}.none", 0, 10) is None
