"""The record of a staged directory. KIP516-6."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.errors import BrokerEffect, DamagedFileError
from layout.ids import TopicId
from layout.ours import (
    RecordFile,
    StagedRecord,
    check_record,
    encode_record,
    encode_records,
    is_shared_records,
    parse_record,
    parse_records,
    shared_records_name,
    stays_below,
)

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
FIELDS = json.loads(encode_record(RECORD))

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
def test_a_record_survives_a_round_trip(record: StagedRecord) -> None:
    assert parse_record(encode_record(record)) == record


def test_a_name_that_is_not_utf_8_survives_too() -> None:
    # The file system hands such bytes over as lone surrogates.
    record = dataclasses.replace(RECORD, path=b"caf\xe9-0".decode("utf-8", "surrogateescape"))
    assert encode_record(record).isascii()
    assert parse_record(encode_record(record)) == record


def test_the_file_holds_every_field_under_its_name() -> None:
    assert FIELDS == {
        "schema_version": 1,
        "name": "org:apache:orders",
        "namespace": "org:apache",
        "topic_id": "UXyU9i5ARn6W00ON2taeWA",
        "partition": 3,
        "path": "org/apache/orders-3",
        "verdict": "STALE_ID",
        "evidence": "the cluster knows orders under another ID",
        "staged_ms": 1_700_000_000_000,
        "due_ms": 1_700_014_400_000,
        "checkpoints": {"recovery-point-offset-checkpoint": 42, "cleaner-offset-checkpoint": -1},
    }


@pytest.mark.parametrize(
    ("now_ms", "due"), [(RECORD.due_ms - 1, False), (RECORD.due_ms, True), (RECORD.staged_ms - 1, False), (0, False)]
)
def test_a_purge_may_take_it_from_the_due_time_on(now_ms: int, due: bool) -> None:
    assert RECORD.is_due(now_ms) is due


def test_a_replica_without_an_id_is_staged_under_the_zero_id() -> None:
    record = dataclasses.replace(RECORD, topic_id=TopicId.ZERO)
    assert parse_record(encode_record(record)).topic_id.is_zero


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema_version": 2}, "schema version 1 only"),
        ({"schema_version": "1"}, 'schema_version: expected an integer, found "1"'),
        ({"name": ""}, 'name: expected a string that is not empty, found ""'),
        ({"namespace": "org"}, "namespace is 'org'"),
        ({"namespace": None}, "namespace is None"),
        ({"topic_id": "short"}, "topic_id: 'short'"),
        ({"partition": -1}, "partition: expected an integer from 0 to 2147483647, found -1"),
        ({"path": ""}, "path is ''"),
        ({"path": "/etc"}, "path is '/etc'"),
        ({"path": "a/../../b"}, "path is 'a/../../b'"),
        ({"path": "./a"}, "path is './a'"),
        ({"path": "a/"}, "path is 'a/'"),
        ({"path": "a\0b"}, "expected a path"),
        ({"verdict": ""}, 'verdict: expected a string that is not empty, found ""'),
        ({"evidence": 5}, "evidence: expected a string, found 5"),
        ({"staged_ms": -1}, "staged_ms: expected an integer from 0 to 9223372036854775807, found -1"),
        ({"due_ms": 2**63}, "due_ms: expected an integer from 0 to 9223372036854775807, found 9223372036854775808"),
        ({"due_ms": 1}, "due_ms 1 lies before"),
        ({"due_ms": True}, "due_ms: expected an integer, found true"),
        ({"checkpoints": []}, "checkpoints: expected an object"),
        ({"checkpoints": {"meta.properties": 1}}, "'meta.properties' is no offset checkpoint"),
        ({"checkpoints": {"cleaner-offset-checkpoint": "1"}}, "the offset in cleaner-offset-checkpoint is '1'"),
    ],
)
def test_every_field_is_checked(change: dict[str, object], problem: str) -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse_record(json.dumps({**FIELDS, **change}).encode())
    assert problem in raised.value.problem


def test_all_reasons_come_at_once() -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse_record(b"{}")
    missing = {reason.split(":")[0] for reason in raised.value.problem.split("; ") if "missing" in reason}
    assert missing == FIELDS.keys() - {"checkpoints"}
    assert "checkpoints: expected" in raised.value.problem


def test_damage_in_a_record_does_nothing_to_a_broker() -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse_record(b"")
    assert raised.value.effect is BrokerEffect.NONE


def test_a_record_that_could_not_be_read_again_is_not_written() -> None:
    with pytest.raises(DamagedFileError, match=r"\.\./b"):
        encode_record(dataclasses.replace(RECORD, path="../b"))


def test_unknown_fields_are_ignored() -> None:
    assert parse_record(json.dumps({**FIELDS, "later": 1}).encode()) == RECORD


@given(st.dictionaries(st.sampled_from(list(FIELDS)), st.none() | st.integers() | st.text(max_size=5) | st.just({})))
def test_any_object_gives_a_record_or_our_own_error(change: dict[str, object]) -> None:
    try:
        record = parse_record(json.dumps({**FIELDS, **change}).encode())
    except DamagedFileError:
        return
    assert parse_record(encode_record(record)) == record


@given(st.dictionaries(st.text(min_size=1, max_size=8), RECORDS, min_size=1, max_size=4))
def test_replicas_that_are_staged_together_share_a_file(records: dict[str, StagedRecord]) -> None:
    data = encode_records(records)
    assert data.isascii()
    assert parse_records(data) == records
    for name, record in records.items():
        assert parse_record(data, name) == record


def test_a_shared_file_answers_only_for_the_directories_that_it_names() -> None:
    data = encode_records({"UXyU9i5ARn6W00ON2taeWA_3": RECORD})
    with pytest.raises(DamagedFileError, match="1 records, and none of 'other_0'"):
        parse_record(data, "other_0")


@pytest.mark.parametrize("name", ['x": {"y', "a: b", '"', "x\\", "ü", "x\n"])
def test_a_name_that_looks_like_the_text_around_it_has_its_own_record(name: str) -> None:
    other = dataclasses.replace(RECORD, partition=7)
    data = encode_records({"x": RECORD, name: other, "y": RECORD})
    assert parse_record(data, name) == other
    assert parse_record(data, "x") == parse_record(data, "y") == RECORD


def test_damage_to_the_record_of_one_is_none_to_those_of_the_others() -> None:
    data = encode_records({"a_0": RECORD, "b_1": RECORD}).replace(b'"b_1": {"name"', b'"b_1": {"nome"')
    assert parse_record(data, "a_0") == RECORD
    with pytest.raises(DamagedFileError, match="name: missing"):
        parse_record(data, "b_1")
    with pytest.raises(DamagedFileError):
        parse_records(data)


@given(st.integers(0, 2000), st.binary(max_size=3), st.integers(0, 3))
def test_whatever_is_read_of_a_damaged_file_is_what_all_the_rules_allow(at: int, new: bytes, lost: int) -> None:
    data = encode_records({"a_0": RECORD, "b_1": dataclasses.replace(RECORD, partition=1, checkpoints={})})
    place = at % len(data)
    damaged = data[:place] + new + data[place + lost :]
    for name in ("a_0", "b_1"):
        try:
            record = parse_record(damaged, name)
        except DamagedFileError:
            continue
        check_record(record)
        line = next(line for line in damaged.split(b"\n") if f'"{name}": '.encode() in line)
        alone = b'{"schema_version": 1, "records": {' + line.removesuffix(b",") + b"}}"
        assert parse_records(alone)[name] == record


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("partition", value) for value in (1.0, True, -1, 2**31, "1", None)),
        *(("due_ms", value) for value in (1.8e12, 0, 2**63, "1")),
        *(("topic_id", value) for value in ("UXyU9i5ARn6W00ON2taeW", 1, [], None)),
        *(("checkpoints", value) for value in ([], None, {"x": 1}, {"cleaner-offset-checkpoint": 1.5})),
        *(("path", value) for value in ("../x", "", 1, "/a")),
        ("name", ""),
        ("namespace", "other"),
        ("verdict", None),
        ("evidence", ["x"]),
    ],
)
def test_a_line_that_is_nearly_as_it_was_written_is_held_to_every_rule(field: str, value: object) -> None:
    line = json.dumps({key: each for key, each in {**FIELDS, field: value}.items() if key != "schema_version"})
    written = encode_records({"a_0": RECORD})
    own = written.split(b"\n")[1]
    with pytest.raises(DamagedFileError):
        parse_record(written.replace(own, b'"a_0": ' + line.encode()), "a_0")


def test_a_line_that_nests_without_end_is_damaged() -> None:
    written = encode_records({"a_0": RECORD})
    own = json.dumps(dict(RECORD.checkpoints)).encode()
    nested = b'{"cleaner-offset-checkpoint": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert own in written
    with pytest.raises(DamagedFileError):
        parse_record(written.replace(own, nested), "a_0")


@pytest.mark.parametrize(
    "change", [(b"}}\n", b"}"), (b'"schema_version": 1', b'"schema_version": 2'), (b"a_0", b"b_1")]
)
def test_a_shared_file_that_is_damaged_as_a_whole_is_damaged_for_all(change: tuple[bytes, bytes]) -> None:
    data = encode_records({"a_0": RECORD, "b_1": RECORD}).replace(*change)
    with pytest.raises(DamagedFileError):
        parse_record(data, "b_1")


def test_a_file_that_one_replica_has_for_itself_answers_under_any_name() -> None:
    assert parse_record(encode_record(RECORD), "UXyU9i5ARn6W00ON2taeWA_3") == RECORD


@pytest.mark.parametrize("shared", [[], {"a_0": 1}, "text", {"a_0": {**FIELDS, "due_ms": 0}}])
def test_a_shared_file_that_breaks_a_rule_is_damaged(shared: object) -> None:
    with pytest.raises(DamagedFileError):
        parse_records(json.dumps({"schema_version": 1, "records": shared}).encode())


@given(RECORDS)
def test_what_passes_the_check_can_be_read_back(record: StagedRecord) -> None:
    check_record(record)
    assert parse_records(encode_records({"a_0": record})) == {"a_0": record}


@pytest.mark.parametrize(
    "changes",
    [{"path": "../orders-3"}, {"due_ms": 1}, {"partition": -1}, {"topic": ""}, {"verdict": ""}, {"staged_ms": 1 << 63}],
)
def test_a_record_that_its_reader_would_refuse_is_not_written(changes: dict[str, object]) -> None:
    record = dataclasses.replace(RECORD, **changes)
    with pytest.raises(DamagedFileError):
        check_record(record)
    with pytest.raises(DamagedFileError):
        encode_record(record)


def test_a_file_of_records_gives_the_record_of_each_name() -> None:
    other = dataclasses.replace(RECORD, partition=4, evidence='with "quotes"')
    file = RecordFile(encode_records({"a_3": RECORD, "a_4": other}))
    assert (file.record_of("a_3"), file.record_of("a_4")) == (RECORD, other)
    with pytest.raises(DamagedFileError, match="2 records, and none of 'a_5'"):
        file.record_of("a_5")
    assert RecordFile(encode_record(RECORD)).record_of("any name") == RECORD


def test_the_name_of_a_file_of_records_is_recognised() -> None:
    assert is_shared_records(shared_records_name(7))
    assert not any(
        map(is_shared_records, ("staged.json", "staged.json.tmp", "staged.json.x.tmp", "staged.json.7.tmp~"))
    )


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
