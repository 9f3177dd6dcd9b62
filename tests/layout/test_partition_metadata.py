"""partition.metadata in its three forms. KIP516-2."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout import partition_metadata
from layout.errors import BrokerEffect, DamagedFileError, InvalidIdError
from layout.ids import DirectoryId, TopicId
from layout.partition_metadata import (
    EmptyFileError,
    Form,
    PartitionMetadata,
    ZeroTopicIdError,
    accepted_by_36,
    contradiction,
    encode,
    encode_json,
    fast_topic_id,
    parse,
    parse_shipped,
)

TEXT = "UXyU9i5ARn6W00ON2taeWA"
ID = TopicId.parse(TEXT)
ZERO = "A" * 22
SHIPPED = f"version: 0\ntopic_id: {TEXT}".encode()
KEY_VALUE = f"schema_version: 0\nid: {TEXT}\nname: orders\npartition: 3\n".encode()
JSON = json.dumps({"schema_version": 0, "id": TEXT, "name": "orders", "partition": 3}).encode()

TOPIC_IDS = st.binary(min_size=16, max_size=16).filter(any).map(TopicId)


@given(TOPIC_IDS)
def test_the_shipped_form_has_43_bytes_and_reads_back_on_both_paths(topic_id: TopicId) -> None:
    data = encode(topic_id)
    assert len(data) == 43
    assert fast_topic_id(data) == topic_id.to_bytes()
    assert parse(data) == parse_shipped(data) == PartitionMetadata(0, topic_id)


@given(TOPIC_IDS, st.text(min_size=1), st.integers(0, 2**31 - 1))
def test_the_json_form_reads_back_with_name_and_partition(topic_id: TopicId, topic: str, partition: int) -> None:
    # A broker splits the first line at every ": " and finds more than two parts, which is a malformed line.
    expected = PartitionMetadata(0, topic_id, topic, partition, Form.JSON, BrokerEffect.LOG_DIR_OFFLINE)
    assert parse(encode_json(topic_id, topic, partition)) == expected


def test_no_writer_writes_the_zero_id() -> None:
    with pytest.raises(InvalidIdError):
        encode(TopicId.ZERO)
    with pytest.raises(InvalidIdError):
        encode_json(TopicId.ZERO, "orders", 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        SHIPPED[:-1],
        SHIPPED + b"\n",
        SHIPPED.replace(b"\n", b"\r\n"),
        SHIPPED.replace(b"version: 0", b"version: 1"),
        SHIPPED.replace(TEXT.encode(), ZERO.encode()),
        SHIPPED.replace(b"UX", b"+X"),
        JSON,
    ],
)
def test_the_fast_path_answers_for_nothing_but_the_exact_shape(data: bytes) -> None:
    assert fast_topic_id(data) is None


def test_the_fast_path_drops_unused_bits_as_the_slow_one_does() -> None:
    data = SHIPPED[:-1] + b"B"
    assert fast_topic_id(data) == ID.to_bytes() == parse_shipped(data).topic_id.to_bytes()


@pytest.mark.parametrize(
    "data",
    [
        SHIPPED + b"\n",
        SHIPPED.replace(b"\n", b"\r\n"),
        SHIPPED.replace(b"\n", b"\r"),
        SHIPPED + b"\nanything at all",
        SHIPPED + b"==",
        b"  foo: +0\n\tbar:\t \x0b" + TEXT.encode(),
        "\ufeffversion: ٠\n".encode() + SHIPPED.partition(b"\n")[2],
        SHIPPED + b": ",
    ],
)
def test_what_a_broker_accepts_is_read_as_it_reads_it(data: bytes) -> None:
    assert parse(data) == PartitionMetadata(0, ID)


def test_a_later_version_is_accepted_but_not_by_36() -> None:
    later = parse(SHIPPED.replace(b"version: 0", b"version: 2147483647"))
    assert later.version == 2**31 - 1
    assert not accepted_by_36(later)
    assert accepted_by_36(parse(SHIPPED))
    assert not accepted_by_36(parse(JSON))


@pytest.mark.parametrize(
    ("data", "effect"),
    [
        (b"version: -1\ntopic_id: " + TEXT.encode(), BrokerEffect.LOG_DIR_OFFLINE),
        (b"version: x\ntopic_id: " + TEXT.encode(), BrokerEffect.LOG_DIR_OFFLINE),
        (b"version: 2147483648\ntopic_id: " + TEXT.encode(), BrokerEffect.LOG_DIR_OFFLINE),
        (b"version: 0 \ntopic_id: " + TEXT.encode(), BrokerEffect.LOG_DIR_OFFLINE),
        (b"version:0\ntopic_id: " + TEXT.encode(), BrokerEffect.LOG_DIR_OFFLINE),
        ("version:\u00a00\ntopic_id: ".encode() + TEXT.encode(), BrokerEffect.LOG_DIR_OFFLINE),
        (b"\n" + SHIPPED, BrokerEffect.LOG_DIR_OFFLINE),
        (b"version: 0\n\ntopic_id: " + TEXT.encode(), BrokerEffect.LOG_DIR_OFFLINE),
        (b"version: 0\ntopic_id: ", BrokerEffect.LOG_DIR_OFFLINE),
        (b"version: \xff\n", BrokerEffect.LOG_DIR_OFFLINE),
        (bytes(43), BrokerEffect.LOG_DIR_OFFLINE),
        (b"version: 0", BrokerEffect.STARTUP_ABORTS),
        (b"version: 0\n", BrokerEffect.STARTUP_ABORTS),
        (b"version: 0\ntopic_id: abc", BrokerEffect.STARTUP_ABORTS),
        (SHIPPED + b" ", BrokerEffect.STARTUP_ABORTS),
        (SHIPPED + b"\0", BrokerEffect.STARTUP_ABORTS),
    ],
)
def test_damage_says_what_a_broker_makes_of_it(data: bytes, effect: BrokerEffect) -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse(data)
    assert raised.value.effect is effect
    assert not isinstance(raised.value, EmptyFileError | ZeroTopicIdError)


def test_an_empty_file_is_damage_of_its_own_kind() -> None:
    with pytest.raises(EmptyFileError) as raised:
        parse(b"")
    assert raised.value.effect is BrokerEffect.STARTUP_ABORTS


@pytest.mark.parametrize(
    "data",
    [
        SHIPPED.replace(TEXT.encode(), ZERO.encode()),
        KEY_VALUE.replace(TEXT.encode(), ZERO.encode()),
        JSON.replace(TEXT.encode(), ZERO.encode()),
    ],
)
def test_a_zero_topic_id_is_damage_of_its_own_kind_in_every_form(data: bytes) -> None:
    with pytest.raises(ZeroTopicIdError) as raised:
        parse(data)
    assert raised.value.effect is BrokerEffect.LOG_DIR_OFFLINE


def test_the_key_value_form_gives_name_and_partition_and_a_broker_reads_it_too() -> None:
    assert parse(KEY_VALUE) == PartitionMetadata(0, ID, "orders", 3, Form.KEY_VALUE, BrokerEffect.NONE)
    assert accepted_by_36(parse(KEY_VALUE))


def test_key_value_lines_in_another_order_are_read_here_but_not_by_a_broker() -> None:
    data = b"\n".join(reversed(KEY_VALUE.splitlines()))
    # A broker takes the 3 of the first line for the version and "orders" of the second for a topic ID.
    assert parse(data) == PartitionMetadata(0, ID, "orders", 3, Form.KEY_VALUE, BrokerEffect.STARTUP_ABORTS)


def test_a_name_with_namespace_is_read_whole() -> None:
    assert parse(KEY_VALUE.replace(b"orders", b"org:apache:orders")).topic == "org:apache:orders"


@pytest.mark.parametrize(
    "data",
    [
        KEY_VALUE.replace(b"name: orders\n", b""),
        KEY_VALUE.replace(b"partition: 3", b"partition: x"),
        KEY_VALUE.replace(b"partition: 3", b"partition: -3"),
        KEY_VALUE + b"name: other\n",
        f"version: 0\ntopic_id: {TEXT}\nname: orders\npartition: 3\n".encode(),
        SHIPPED + KEY_VALUE.replace(b"schema_version: 0", b"\nschema_version: 5"),
        SHIPPED + b"\n" + KEY_VALUE.replace(b"UX", b"VX"),
        f"partition: 0\nname: {TEXT}\nid: {ZERO}\nschema_version: 9\n".encode(),
    ],
)
def test_what_a_broker_accepts_keeps_its_reading_when_the_other_fields_do_not_hold(data: bytes) -> None:
    assert parse(data) == PartitionMetadata(0, ID)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema_version": -1}, "schema_version: expected an integer from 0 to 2147483647, found -1"),
        ({"schema_version": True}, "schema_version: expected an integer, found true"),
        ({"schema_version": "0"}, 'schema_version: expected an integer, found "0"'),
        ({"id": "short"}, "id: 'short' is no ID"),
        ({"id": 5}, "id: expected an ID as a string, found 5"),
        ({"name": ""}, 'name: expected a string that is not empty, found ""'),
        ({"name": None}, "name: expected a string that is not empty, found null"),
        ({"partition": 2**31}, "partition: expected an integer from 0 to 2147483647, found 2147483648"),
        ({"partition": 0.0}, "partition: expected an integer, found 0.0"),
    ],
)
def test_each_field_of_the_json_form_is_checked(change: dict[str, object], problem: str) -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse(json.dumps({**json.loads(JSON), **change}).encode())
    assert problem in raised.value.problem
    assert raised.value.effect is BrokerEffect.LOG_DIR_OFFLINE


def test_every_missing_field_of_the_json_form_is_named() -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse(b"{}")
    assert all(f"{key}: missing" in raised.value.problem for key in ("schema_version", "id", "name", "partition"))


@pytest.mark.parametrize("data", [b"{", b'{"id": "x"', JSON + JSON, b" " + JSON, b'{"a": ' * 50_000])
def test_broken_json_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedFileError):
        parse(data)


def test_text_that_a_broker_accepts_is_no_json_even_when_it_begins_with_a_brace() -> None:
    assert parse(b"{version: 0\ntopic_id: " + TEXT.encode()) == PartitionMetadata(0, ID)


def test_a_name_or_partition_that_the_directory_denies_is_a_contradiction() -> None:
    found = parse(JSON)
    assert contradiction(found, "orders", 3) is None
    assert contradiction(found, "payments", 3) == "it names topic 'orders', its directory is of 'payments'"
    assert contradiction(found, "orders", 4) == "it names partition 3, its directory is of 4"
    assert str(contradiction(found, "payments", 4)).count(";") == 1


def test_the_shipped_form_contradicts_nothing() -> None:
    assert contradiction(parse(SHIPPED), "anything", 7) is None


@given(
    st.binary(max_size=80)
    | st.lists(st.sampled_from([b"version", b": ", b"0", b"\n", TEXT.encode(), b"{"])).map(b"".join)
)
def test_any_bytes_give_metadata_or_our_own_error(data: bytes) -> None:
    try:
        found = parse(data)
    except DamagedFileError:
        return
    assert not found.topic_id.is_zero
    assert found.version >= 0


@given(st.sampled_from([SHIPPED, KEY_VALUE]), st.integers(0, 100), st.binary(max_size=3))
def test_near_misses_never_change_what_a_broker_would_read(data: bytes, place: int, patch: bytes) -> None:
    changed = data[:place] + patch + data[place + len(patch) :]
    try:
        shipped = parse_shipped(changed)
    except DamagedFileError as refused:
        try:
            assert parse(changed).effect is refused.effect
        except DamagedFileError as damage:
            assert damage.effect is refused.effect
        return
    found = parse(changed)
    assert (found.version, found.topic_id, found.effect) == (shipped.version, shipped.topic_id, BrokerEffect.NONE)


@pytest.mark.parametrize("given", ["UXyU9i5ARn6W00ON2taeWA", None, DirectoryId(b"x" * 16)])
def test_what_is_no_topic_id_is_never_written(given: object) -> None:
    with pytest.raises(InvalidIdError, match="is no topic ID: a TopicId is expected"):
        partition_metadata.encode(given)
    with pytest.raises(InvalidIdError, match="is no topic ID"):
        partition_metadata.encode_json(given, "orders", 0)
