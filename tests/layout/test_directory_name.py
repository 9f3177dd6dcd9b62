"""Directory names: Kafka's rule for reading them, near misses, our own forms, and what the builders refuse."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.directory_name import (
    MAX_DIRECTORY_NAME,
    MAX_PARTITION,
    SUFFIXES,
    DirectoryKind,
    by_topic_id_name,
    delete_name,
    future_name,
    live_name,
    parse,
    parse_by_topic_id,
    parse_staged,
    split_live,
    staged_name,
    stray_name,
)
from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.topic import utf16_length

UNIQUE = "0123456789abcdef0123456789abcdef"
SAMPLE_ID = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")
SAMPLE_HEX = "517c94f62e40467e96d3438ddad69e58"  # the same 128 bits, by base64 -d | xxd

PARTITIONS = st.integers(0, MAX_PARTITION)
TOPIC_IDS = st.binary(min_size=16, max_size=16).map(TopicId)
TOPICS = st.text(st.sampled_from("ab._-0"), min_size=1, max_size=249)
# Few letters, so that the interesting ones meet: separators, white space, digits of two scripts, the suffixes in full.
PIECES = st.sampled_from(
    ["-", ".", "a", "0", "7", "٣", " ", "\t", "\x1c", "-delete", "-future", "-stray", "_", "\udcff"]
)
NAMES = st.lists(PIECES, max_size=12).map("".join)


def kafka_rule(name: str) -> tuple[str, int, str | None] | None:
    """FACTS §1.3 step by step, with the patterns themselves: topic, partition and suffix, or None for reject."""
    if not name or "-" not in name:
        return None
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)
    if suffix is not None and not re.fullmatch(rf"\S+-\S+\.\S+{suffix}", name, re.ASCII):
        return None
    rest = name[: name.rindex(".")] if suffix is not None else name
    topic, _, digits = rest.rpartition("-")
    if not topic or not re.fullmatch(r"[+-]?\d+", digits) or not 0 <= int(digits) <= MAX_PARTITION:
        return None
    return topic, int(digits), suffix


@given(NAMES)
def test_parsing_agrees_with_the_rule_step_by_step(name: str) -> None:
    read = parse(name)
    expected = kafka_rule(name)
    if expected is None:
        assert read.kind is DirectoryKind.FOREIGN
        assert (read.topic, read.partition, read.unique, read.topic_id) == (None, None, None, None)
        assert read.problem
    else:
        topic, partition, suffix = expected
        assert read.kind is (SUFFIXES[suffix] if suffix else DirectoryKind.LIVE)
        assert (read.text, read.topic, read.partition, read.problem) == (name, topic, partition, None)
        assert (read.unique is None) is (suffix is None)


@given(st.text(st.characters(exclude_categories=()), max_size=400))
def test_parsing_never_raises(name: str) -> None:
    for read in (parse(name), parse_staged(name), parse_by_topic_id(name)):
        assert read.text == name
        assert (read.problem is None) is (read.kind is not DirectoryKind.FOREIGN)
        assert (read.partition is None) is (read.kind is DirectoryKind.FOREIGN)


@given(NAMES)
def test_the_quick_way_answers_only_where_parse_says_live_and_the_same(name: str) -> None:
    quick = split_live(name)
    if quick is not None:
        read = parse(name)
        assert (read.kind, read.topic, read.partition) == (DirectoryKind.LIVE, *quick)


@pytest.mark.parametrize("name", ["orders-0", "a-b-12", "__consumer_offsets-49", "x-999999999", "foo--1", "foo-01"])
def test_the_quick_way_answers_for_plain_names(name: str) -> None:
    topic, _, digits = name.rpartition("-")
    assert split_live(name) == (topic, int(digits))


@pytest.mark.parametrize(
    "name",
    [
        "foo-+1",
        "foo-2147483647",
        "foo-٣",
        "foo-²",
        "foo-1_0",
        "foo- 1",
        "-0",
        "foo-",
        "",
        "__cluster_metadata-0",
        f"a-0.{UNIQUE}-delete",
    ],
)
def test_the_quick_way_leaves_rare_forms_to_parse(name: str) -> None:
    assert split_live(name) is None


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        ("foo--1", "foo-", 1),
        ("--0", "-", 0),
        (".Trash-1000", ".Trash", 1000),
        ("foo-01", "foo", 1),
        ("foo-+1", "foo", 1),
        ("foo-2147483647", "foo", 2147483647),
        ("foo-٣", "foo", 3),
        ("foo 1-0", "foo 1", 0),
        ("foo-delete-0", "foo-delete", 0),
        ("foo-0000000000000000000000007", "foo", 7),
        ("foo\udcff-0", "foo\udcff", 0),
    ],
)
def test_names_that_look_odd_are_live_replicas_to_kafka(name: str, topic: str, partition: int) -> None:
    # FACTS §1.3, the truth table; the last two follow from Java's integer parser and from the unchecked topic.
    read = parse(name)
    assert (read.kind, read.topic, read.partition) == (DirectoryKind.LIVE, topic, partition)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "no '-'"),
        ("lost+found", "no '-'"),
        ("deleting", "no '-'"),
        ("-0", "no topic"),
        ("foo-", "no partition"),
        ("foo-2147483648", "no partition: 0 to"),
        ("foo-1a", "no partition: 0 to"),
        ("foo-0 ", "no partition: 0 to"),
        ("foo-1_0", "no partition: 0 to"),
        ("foo-𝟏", "no partition: 0 to"),  # a digit outside the Basic Multilingual Plane is none to Java
        (f"foo-0.{UNIQUE}-deleted", "no partition: 0 to"),
        ("foo-0-delete", "topic-partition.unique-delete"),
        ("non_kafka_dir-delete", "topic-partition.unique-delete"),
        ("foo -0.x-future", "topic-partition.unique-future"),
        ("a-b.c-stray", "no partition: 0 to"),
    ],
)
def test_a_rejected_name_is_foreign_and_says_why(name: str, reason: str) -> None:
    read = parse(name)
    assert read.kind is DirectoryKind.FOREIGN
    assert read.problem is not None
    assert reason in read.problem
    assert "a broker does not start" in read.problem


def test_the_last_dot_and_the_last_dash_decide() -> None:
    assert parse("foo-0.a-b-delete").unique == "a-b"
    assert parse(f"foo-0.{UNIQUE}-stray-delete").kind is DirectoryKind.DELETE
    assert parse(f"foo.bar-baz-42.{UNIQUE}-stray")[2:5] == ("foo.bar-baz", 42, UNIQUE)
    # The pattern takes "b.c-1" for the partition, the split then takes only what follows the last '-'.
    assert parse("a-b.c-1.-delete")[1:5] == (DirectoryKind.DELETE, "a-b.c", 1, "")


@pytest.mark.parametrize(
    "name", ["__cluster_metadata-0", "__cluster_metadata-7", f"__cluster_metadata-0.{UNIQUE}-delete"]
)
def test_the_metadata_log_is_internal_in_any_form(name: str) -> None:
    assert parse(name).kind is DirectoryKind.INTERNAL
    assert parse(name).topic == "__cluster_metadata"


def test_the_cache_of_tiered_storage_is_internal_and_has_no_partition_in_its_name() -> None:
    read = parse("remote-log-index-cache")
    assert (read.kind, read.topic, read.problem) == (DirectoryKind.INTERNAL, None, None)


def test_a_name_made_to_be_slow_is_read_in_no_more_steps_than_any_other() -> None:
    # Backtracking would try each '-' with each '.' and each end: about 10^14 steps here.
    assert parse("-." * 50_000 + " -delete").kind is DirectoryKind.FOREIGN


@given(TOPICS, PARTITIONS)
def test_live_and_future_names_read_back_as_they_were_built(topic: str, partition: int) -> None:
    live = parse(live_name(topic, partition))
    assert live[1:] == (DirectoryKind.LIVE, topic, partition, None, None, None)
    future = parse(future_name(topic, partition, UNIQUE))
    assert future[1:] == (DirectoryKind.FUTURE, topic, partition, UNIQUE, None, None)


@given(TOPICS, PARTITIONS)
def test_delete_and_stray_names_fit_and_lose_only_the_end_of_the_topic(topic: str, partition: int) -> None:
    for kind, name in (
        (DirectoryKind.DELETE, delete_name(topic, partition, UNIQUE)),
        (DirectoryKind.STRAY, stray_name(topic, partition, UNIQUE)),
    ):
        read = parse(name)
        assert (read.kind, read.partition, read.unique) == (kind, partition, UNIQUE)
        assert read.topic is not None
        assert topic.startswith(read.topic)
        assert read.topic == topic or len(name) == MAX_DIRECTORY_NAME
        assert len(name) <= MAX_DIRECTORY_NAME


def test_a_cut_never_splits_a_character_in_two() -> None:
    # 213 units are left for the topic of a delete name; each of these characters takes two.
    name = delete_name("\U0001f600" * 120, 0, UNIQUE)
    assert parse(name).topic == "\U0001f600" * 106
    assert utf16_length(name) == 254


@pytest.mark.parametrize("unique", ["", "0" * 31, "0" * 33, "G" * 32, "A" * 32, UNIQUE + "\n"])
def test_a_unique_part_that_is_no_hex_is_refused(unique: str) -> None:
    for build in (delete_name, stray_name, future_name):
        with pytest.raises(InvalidNameError, match="unique"):
            build("orders", 0, unique)


@pytest.mark.parametrize(("topic", "partition"), [("", 0), ("a/b", 0), ("a\0", 0), ("a", -1), ("a", MAX_PARTITION + 1)])
def test_builders_refuse_what_would_not_read_back(topic: str, partition: int) -> None:
    with pytest.raises(InvalidNameError):
        live_name(topic, partition)
    for build in (delete_name, stray_name, future_name):
        with pytest.raises(InvalidNameError):
            build(topic, partition, UNIQUE)


def test_a_topic_with_white_space_has_a_live_name_but_no_suffixed_one() -> None:
    assert live_name("foo 1", 0) == "foo 1-0"
    with pytest.raises(InvalidNameError):
        stray_name("foo 1", 0, UNIQUE)


@given(TOPIC_IDS, PARTITIONS, st.integers(1, 999_999_999))
def test_staged_names_read_back_as_they_were_built(topic_id: TopicId, partition: int, copy: int) -> None:
    read = parse_staged(staged_name(topic_id, partition, copy))
    assert (read.kind, read.topic_id, read.partition) == (DirectoryKind.STAGED, topic_id, partition)
    assert read.unique == (str(copy) if copy > 1 else None)


def test_a_staged_name_is_split_after_the_id_even_when_the_id_has_separators() -> None:
    topic_id = TopicId.parse("_-_-_-_-_-_-_-_-_-_-_w")  # 'w' leaves the four unused bits of the last character zero
    assert staged_name(topic_id, 12, 3) == "_-_-_-_-_-_-_-_-_-_-_w_12.3"
    assert parse_staged("_-_-_-_-_-_-_-_-_-_-_w_12.3").topic_id == topic_id


@pytest.mark.parametrize(
    "name",
    [
        "UXyU9i5ARn6W00ON2taeWA",
        "UXyU9i5ARn6W00ON2taeWA_",
        "UXyU9i5ARn6W00ON2taeWA-0",
        "UXyU9i5ARn6W00ON2taeWA_00",
        "UXyU9i5ARn6W00ON2taeWA_-1",
        "UXyU9i5ARn6W00ON2taeWA_2147483648",
        "UXyU9i5ARn6W00ON2taeWA_٣",
        "UXyU9i5ARn6W00ON2taeWA_0.",
        "UXyU9i5ARn6W00ON2taeWA_0.0",
        "UXyU9i5ARn6W00ON2taeWA_0.1",
        "UXyU9i5ARn6W00ON2taeWA_0.02",
        "UXyU9i5ARn6W00ON2taeWA_0\n",
        "UXyU9i5ARn6W00ON2taeWB_0",  # the same ID in another text: 'B' sets an unused bit
        "UXyU9i5ARn6W00ON2taeWA==_0",
        "UXyU9i5ARn6W00ON2taeW_0",
        "orders-0",
        "",
    ],
)
def test_a_near_miss_of_a_staged_name_is_foreign(name: str) -> None:
    assert parse_staged(name).kind is DirectoryKind.FOREIGN


@given(TOPIC_IDS, PARTITIONS)
def test_by_id_names_read_back_as_they_were_built(topic_id: TopicId, partition: int) -> None:
    # KIP516-12: {id prefix}/{topic ID}_{partition}
    name = by_topic_id_name(topic_id, partition)
    read = parse_by_topic_id(name)
    assert (read.kind, read.topic, read.topic_id, read.partition) == (DirectoryKind.LIVE, None, topic_id, partition)
    prefix, _, directory = name.partition("/")
    assert directory.startswith(prefix)
    assert len(prefix) == 2


def test_a_by_id_name_is_the_hex_form_under_its_first_two_digits() -> None:
    assert by_topic_id_name(SAMPLE_ID, 7) == f"51/{SAMPLE_HEX}_7"


@pytest.mark.parametrize(
    "path",
    [
        f"{SAMPLE_HEX}_0",
        f"52/{SAMPLE_HEX}_0",
        f"51/{SAMPLE_HEX.upper()}_0",
        f"51/{SAMPLE_HEX}-0",
        f"51/{SAMPLE_HEX}_01",
        f"51/{SAMPLE_HEX}_2147483648",
        f"51/{SAMPLE_HEX[:-1]}_0",
        f"51/{SAMPLE_HEX}_0/x",
        f"51//{SAMPLE_HEX}_0",
        "51",
        "orders-0",
    ],
)
def test_a_near_miss_of_a_by_id_name_is_foreign(path: str) -> None:
    assert parse_by_topic_id(path).kind is DirectoryKind.FOREIGN


@pytest.mark.parametrize(("partition", "copy"), [(-1, 1), (MAX_PARTITION + 1, 1), (0, 0), (0, -2), (0, 10**9)])
def test_ids_do_not_make_up_for_a_bad_number(partition: int, copy: int) -> None:
    with pytest.raises(InvalidNameError):
        staged_name(SAMPLE_ID, partition, copy)
    if copy == 1:
        with pytest.raises(InvalidNameError):
            by_topic_id_name(SAMPLE_ID, partition)
