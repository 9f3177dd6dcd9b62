"""The record of a replica's copy on another disk. KIP516-3."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.errors import DamagedFileError
from layout.ids import TopicId
from layout.ours import MoveRecord, encode_move_record, parse_move_record

RECORD = MoveRecord(
    topic="org:apache:orders",
    partition=3,
    topic_id=TopicId.parse("UXyU9i5ARn6W00ON2taeWA"),
    source_log_dir="/disk1/kafka",
    source_path="org/apache/orders-3",
    path="org/apache/orders-3",
    checkpoints={"recovery-point-offset-checkpoint": 42},
)
FIELDS = json.loads(encode_move_record(RECORD))
PART = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda part: part not in (".", "..")
)
PATHS = st.lists(PART, min_size=1, max_size=3).map("/".join)


@given(
    st.builds(
        MoveRecord,
        topic=st.text(min_size=1, max_size=12),
        partition=st.integers(0, 2**31 - 1),
        topic_id=st.binary(min_size=16, max_size=16).map(TopicId),
        source_log_dir=st.text(min_size=1, max_size=12),
        source_path=PATHS,
        path=PATHS,
        checkpoints=st.dictionaries(st.sampled_from(OFFSET_CHECKPOINTS), st.integers(-(2**63), 2**63 - 1)),
    )
)
def test_a_record_survives_a_round_trip(record: MoveRecord) -> None:
    assert parse_move_record(encode_move_record(record)) == record


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("schema_version", 2, "schema version 1 only"),
        ("name", "", "name"),
        ("partition", -1, "partition"),
        ("topic_id", "short", "topic_id"),
        ("source_log_dir", None, "source_log_dir"),
        ("source_path", "../orders-3", "source_path"),
        ("path", "/orders-3", "path"),
        ("checkpoints", {"meta.properties": 1}, "checkpoints"),
        ("checkpoints", {"recovery-point-offset-checkpoint": "1"}, "checkpoints"),
    ],
)
def test_a_field_that_breaks_a_rule_is_named(field: str, value: object, said: str) -> None:
    with pytest.raises(DamagedFileError, match=said):
        parse_move_record(json.dumps({**FIELDS, field: value}).encode())


def test_all_reasons_come_at_once() -> None:
    with pytest.raises(DamagedFileError) as refused:
        parse_move_record(json.dumps({**FIELDS, "partition": "3", "path": ".."}).encode())
    assert "partition" in refused.value.problem
    assert "path" in refused.value.problem


@given(st.binary(max_size=64))
def test_no_bytes_give_another_error_than_damage(data: bytes) -> None:
    with pytest.raises(DamagedFileError):
        parse_move_record(data)
