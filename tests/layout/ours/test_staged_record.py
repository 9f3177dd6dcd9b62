"""The record of a staged replica: its rules. KIP516-6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.errors import BrokerEffect, DamagedFileError
from layout.ids import TopicId
from layout.ours import StagedRecord, check_record, stays_below

RECORD = StagedRecord(
    topic="org:apache:orders",
    partition=3,
    topic_id=TopicId.parse("UXyU9i5ARn6W00ON2taeWA"),
    path="org/apache/orders-3",
    verdict="STALE_ID",
    evidence="the cluster knows orders under another ID",
    staged_ms=1_700_000_000_000,
    due_ms=1_700_014_400_000,
    checkpoints={"recovery-point-offset-checkpoint": 42, "cleaner-offset-checkpoint": -1},
)

PART = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda part: part not in (".", "..")
)
TIMES = st.tuples(st.integers(0, 2**62), st.integers(0, 2**62))
RECORDS = st.builds(
    lambda times, **fields: StagedRecord(staged_ms=times[0], due_ms=times[0] + times[1], **fields),
    TIMES,
    topic=st.text(min_size=1, max_size=12),
    partition=st.integers(0, 2**31 - 1),
    topic_id=st.binary(min_size=16, max_size=16).map(TopicId),
    path=st.lists(PART, min_size=1, max_size=3).map("/".join),
    verdict=st.text(min_size=1, max_size=8),
    evidence=st.text(max_size=20),
    checkpoints=st.dictionaries(st.sampled_from(OFFSET_CHECKPOINTS), st.integers(-(2**63), 2**63 - 1)),
)


@given(RECORDS)
def test_every_record_that_staging_makes_is_valid(record: StagedRecord) -> None:
    check_record(record)


def test_records_are_values_of_which_equal_ones_are_the_same_in_a_set() -> None:
    same = RECORD._replace(checkpoints=dict(RECORD.checkpoints))
    other = RECORD._replace(checkpoints={})
    assert {RECORD, same, other} == {RECORD, other}
    assert hash(RECORD) != hash(RECORD._replace(partition=4))


def test_a_name_that_is_not_utf_8_is_valid_too() -> None:
    # The file system hands such bytes over as lone surrogates.
    check_record(RECORD._replace(path=b"caf\xe9-0".decode("utf-8", "surrogateescape")))


@pytest.mark.parametrize(
    ("now_ms", "due"), [(RECORD.due_ms - 1, False), (RECORD.due_ms, True), (RECORD.staged_ms - 1, False), (0, False)]
)
def test_a_purge_may_take_it_from_the_due_time_on(now_ms: int, due: bool) -> None:
    assert RECORD.is_due(now_ms) is due


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"topic": ""}, 'name: expected a string that is not empty, found ""'),
        ({"partition": -1}, "partition: expected an integer from 0 to 2147483647, found -1"),
        ({"partition": 2**31}, "partition: expected an integer from 0 to 2147483647, found 2147483648"),
        ({"path": ""}, "path is ''"),
        ({"path": "/etc"}, "path is '/etc'"),
        ({"path": "a/../../b"}, "path is 'a/../../b'"),
        ({"path": "./a"}, "path is './a'"),
        ({"path": "a/"}, "path is 'a/'"),
        ({"path": "a\0b"}, "expected a path"),
        ({"verdict": ""}, 'verdict: expected a string that is not empty, found ""'),
        ({"staged_ms": -1}, "staged_ms: expected an integer from 0 to 9223372036854775807, found -1"),
        ({"due_ms": 2**63}, "due_ms: expected an integer from 0 to 9223372036854775807, found 9223372036854775808"),
        ({"due_ms": 1}, "due_ms 1 lies before"),
        ({"checkpoints": {"meta.properties": 1}}, "'meta.properties' is no offset checkpoint"),
        ({"checkpoints": {"cleaner-offset-checkpoint": "1"}}, "the offset in cleaner-offset-checkpoint is '1'"),
        ({"checkpoints": {"cleaner-offset-checkpoint": 2**63}}, "the offset in cleaner-offset-checkpoint is"),
    ],
)
def test_every_rule_is_checked(change: dict[str, object], problem: str) -> None:
    with pytest.raises(DamagedFileError) as raised:
        check_record(RECORD._replace(**change))  # type: ignore[arg-type]
    assert problem in raised.value.problem
    assert raised.value.effect is BrokerEffect.NONE


def test_all_reasons_come_at_once() -> None:
    with pytest.raises(DamagedFileError) as raised:
        check_record(RECORD._replace(partition=-1, verdict="", path="../b"))
    assert all(reason in raised.value.problem for reason in ("partition", "verdict", "path is '../b'"))


@given(RECORDS, st.integers(-(2**64), 2**64), st.sampled_from(["partition", "staged_ms", "due_ms"]))
def test_the_fast_check_and_the_whole_one_agree(record: StagedRecord, number: int, field: str) -> None:
    changed = record._replace(**{field: number})  # type: ignore[arg-type]
    in_range = 0 <= changed.partition < 2**31 and 0 <= changed.staged_ms <= changed.due_ms < 2**63
    # A text outside of ASCII takes the whole check.
    for each in (changed, changed._replace(evidence="\u00fc")):
        if in_range:
            check_record(each)
        else:
            with pytest.raises(DamagedFileError):
                check_record(each)


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("orders-0", True),
        ("org/orders-0", True),
        ("", False),
        ("..", False),
        ("a/../b", False),
        ("/a", False),
        ("a\0", False),
    ],
)
def test_a_path_that_could_leave_the_log_dir_is_recognised(path: str, below: bool) -> None:
    assert stays_below(path) is below
