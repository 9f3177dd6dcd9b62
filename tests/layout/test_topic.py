"""The rules for names: what is legal, in which order reasons are given, what a namespace is, which names collide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout import checkpoint, clean_shutdown, meta_properties
from layout.directory_name import REMOTE_LOG_INDEX_CACHE
from layout.errors import InvalidNameError
from layout.scheme import MARKER_FILE, STAGING_DIR
from layout.topic import (
    INTERNAL_TOPICS,
    METADATA_TOPIC,
    RESERVED_TIERS,
    Namespace,
    TopicPartition,
    check_full_topic_name,
    check_topic_name,
    clash_with_tier,
    has_collision,
    has_collision_chars,
    named,
    namespace_of,
    partition_of_tier,
    unify_collision_chars,
    utf16_length,
)

LEGAL_TIERS = st.from_regex(r"[a-z][a-zA-Z0-9.-]{0,20}", fullmatch=True).filter(lambda tier: tier not in RESERVED_TIERS)
LEGAL_TOPICS = st.from_regex(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,30}", fullmatch=True)


@pytest.mark.parametrize("name", ["orders", "...", "a--1", "-", "_", "foo-delete", "a" * 249, METADATA_TOPIC])
def test_a_legal_topic_name_is_accepted(name: str) -> None:
    check_topic_name(name)
    check_full_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("", ["empty"]),
        (".", ["'.' names a directory"]),
        ("..", ["'..' names a directory"]),
        ("a" * 250, ["250 characters"]),
        ("foo bar", ["a character other than"]),
        ("orders\n", ["a character other than"]),
        ("é", ["a character other than"]),
        ("ns:orders", ["a character other than"]),
        ("٣", ["a character other than"]),
        ("é" * 250, ["250 characters", "a character other than"]),
    ],
)
def test_an_illegal_topic_name_is_refused_with_all_its_reasons_in_kafkas_order(name: str, reasons: list[str]) -> None:
    with pytest.raises(InvalidNameError) as refused:
        check_topic_name(name)
    positions = [str(refused.value).index(reason) for reason in reasons]
    assert positions == sorted(positions)
    assert str(refused.value).count(";") == len(reasons) - 1


def test_length_is_counted_in_utf_16_units() -> None:
    assert utf16_length("a\u00e9\U0001f600") == 4  # Java keeps a character above U+FFFF as two units.


def test_a_huge_name_does_not_make_a_huge_message() -> None:
    with pytest.raises(InvalidNameError) as refused:
        check_topic_name("x" * 1_000_000)
    assert len(str(refused.value)) < 300


def test_internal_topics_are_legal_names() -> None:
    for name in INTERNAL_TOPICS:
        check_topic_name(name)


@given(LEGAL_TOPICS.filter(lambda name: name not in (".", "..")), st.lists(LEGAL_TIERS, max_size=4))
def test_a_full_name_splits_into_the_namespace_and_the_topic_that_made_it(topic: str, tiers: list[str]) -> None:
    namespace = Namespace(tuple(tiers))
    full = namespace.full_name(topic)
    check_full_topic_name(full)
    partition = TopicPartition(full, 3)
    assert namespace_of(full) == partition.namespace == str(namespace)
    assert partition.local_topic == topic
    assert Namespace.parse(namespace_of(full)) == namespace


def test_the_default_namespace_is_empty_and_changes_no_name() -> None:
    # KIP37-1: without a namespace, everything works as before.
    assert Namespace.parse("") == Namespace.DEFAULT == Namespace()
    assert str(Namespace.DEFAULT) == ""
    assert Namespace.DEFAULT.full_name("orders") == "orders"
    assert TopicPartition("orders", 0).namespace == ""


def test_a_child_is_one_tier_below() -> None:
    assert str(Namespace.DEFAULT.child("org").child("apache")) == "org:apache"


@pytest.mark.parametrize(
    "text",
    [
        *(":", ":org", "org:", "org::kafka", "org:."),
        *("org:..", "org:a_b", "org:a b", "org:é", "deleting"),
        *("org:deleting", "__org", "org:__kafka", "meta.properties", "meta.properties.tmp"),
        *("meta.properties.logstore.tmp", "cleaner-offset-checkpoint.logstore.tmp"),
        *(".lock", "remote-log-index-cache", "org/apache", "org:a\n", "x" * 250),
    ],
)
def test_a_namespace_with_a_bad_tier_is_refused(text: str) -> None:
    # KIP37-1: tiers of [a-zA-Z0-9.-], 1 to 249 characters, neither "." nor "..", nor reserved.
    with pytest.raises(InvalidNameError):
        Namespace.parse(text)
    with pytest.raises(InvalidNameError):
        check_full_topic_name(f"{text}:orders")


@pytest.mark.parametrize("text", ["org", "org:apache:kafka", "a-1", "...", "1", "Deleting", "x" * 249, "a:b:c:d:e:f"])
def test_a_namespace_of_good_tiers_is_accepted(text: str) -> None:
    assert str(Namespace.parse(text)) == text


def test_every_bad_tier_of_a_namespace_is_named() -> None:
    with pytest.raises(InvalidNameError, match=r"tier 'a_b': .*tier '__c_d': .*tier '__c_d': it is reserved"):
        Namespace.parse("a_b:fine:__c_d")


def test_no_tier_can_take_the_place_of_something_that_a_log_dir_holds() -> None:
    held = {meta_properties.FILE_NAME, clean_shutdown.FILE_NAME, *checkpoint.OFFSET_CHECKPOINTS}
    held |= {STAGING_DIR, REMOTE_LOG_INDEX_CACHE, MARKER_FILE, "bootstrap.checkpoint", ".lock", METADATA_TOPIC}
    for name in held:
        with pytest.raises(InvalidNameError):
            Namespace((name,))


def test_a_full_name_needs_a_topic() -> None:
    with pytest.raises(InvalidNameError, match="empty"):
        check_full_topic_name("org:")


def test_a_topic_partition_prints_as_kafka_prints_it_and_sorts_by_name_then_number() -> None:
    assert str(TopicPartition("orders", 10)) == "orders-10"
    assert sorted([TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]) == [
        TopicPartition("a", 9),
        TopicPartition("a", 10),
        TopicPartition("b", 0),
    ]


@given(LEGAL_TOPICS, LEGAL_TOPICS)
def test_names_collide_when_they_differ_in_dots_and_underscores_only(one: str, other: str) -> None:
    same = len(one) == len(other) and all(a == b or {a, b} == {".", "_"} for a, b in zip(one, other, strict=True))
    assert has_collision(one, other) is has_collision(other, one) is same
    assert has_collision(one, unify_collision_chars(one))
    assert has_collision_chars(one) is any(character in "._" for character in one)


@pytest.mark.parametrize(("number", "said"), [(0, "nothing"), (1, "orders-0"), (3, "orders-0 and 2 more")])
def test_some_partitions_are_named_by_the_first_and_how_many_more(number: int, said: str) -> None:
    assert named([TopicPartition("orders", partition) for partition in range(number)]) == said


@given(LEGAL_TOPICS, st.integers(0, (1 << 31) - 1))
def test_each_partition_excludes_the_namespace_of_its_directorys_name(topic: str, number: int) -> None:  # KIP37-2
    partition = TopicPartition(topic, number)
    assert partition_of_tier(str(partition)) == partition
    assert partition_of_tier(f"ns:{partition}") == TopicPartition(f"ns:{topic}", number)


@pytest.mark.parametrize("namespace", ["", "a", "a-", "-1", "ns:-1", "a-01", "a-1:b", "a-2147483648", "a-1.x", "a-١"])
def test_a_namespace_of_another_form_excludes_no_partition(namespace: str) -> None:
    assert partition_of_tier(namespace) is None


def test_the_reason_names_both_and_their_directory() -> None:
    said = clash_with_tier(TopicPartition("ns:a", 1))
    assert said.startswith(
        "partition 1 of topic ns:a and namespace ns:a-1 would be one directory, ns/a-1: take another"
    )


@pytest.mark.parametrize("partition", [-1, 1 << 31, "0", None, 1.0, b"0"])
def test_what_is_no_partition_is_refused_in_a_sentence(partition: object) -> None:
    with pytest.raises(InvalidNameError, match="is no partition of 'orders': a number from 0 to 2147483647"):
        TopicPartition("orders", partition)


@pytest.mark.parametrize("topic", [None, b"orders", 7, ("orders", 0)])
def test_what_is_no_text_is_no_topic(topic: object) -> None:
    with pytest.raises(InvalidNameError, match="is no topic name: a text is expected"):
        TopicPartition(topic, 0)


@pytest.mark.parametrize("name", ["", "..", "two words", "\udcff", "a/b"])
def test_a_name_that_only_a_disk_may_hold_is_a_partition_all_the_same(name: str) -> None:
    assert str(TopicPartition(name, (1 << 31) - 1)) == f"{name}-2147483647"


@pytest.mark.parametrize("tiers", ["org", ["org"], (b"org",), (None,), None])
def test_tiers_are_a_tuple_of_texts(tiers: object) -> None:
    with pytest.raises(InvalidNameError, match="are no tiers"):
        Namespace(tiers)
