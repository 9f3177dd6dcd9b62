"""The text of kafka-topics --describe: the forms of all releases, and every way in which it is not whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import MetadataError
from reconciler.sources.kafka.kafka_topics_text import DescribedPartition, DescribedTopic, is_log_dirs, parse

ID, OTHER = "cxBT72dK4si8Ied1iP4wBA", "b8tRS7h4TJ2Vt43Dp85v2A"

RECENT = (
    f"Topic: orders\tTopicId: {ID}\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: cleanup.policy=compact,a.ms=5\n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: \n"
    "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3\tIsr: \tElr: 2\tLastKnownElr: N/A\n"
)
PARTITION_0 = DescribedPartition(0, 1, (1, 2), (1, 2), (), ())
HEADER = f"Topic: t\tTopicId: {ID}\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
LINE = "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
TWO = "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2"

LOG_DIRS = (
    "Querying brokers for log directories information\nReceived log directory information from brokers 1\n"
    '{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/d","error":null,"partitions":'
    '[{"partition":"t-0","size":1,"offsetLag":0,"isFuture":false}]}]}]}\n'
)


def refused(text: str) -> str:
    with pytest.raises(MetadataError) as caught:
        parse(text, "d.txt")
    assert str(caught.value).startswith("d.txt ")
    return str(caught.value)


def test_a_recent_release_is_read_whole() -> None:
    (topic,) = parse(RECENT, "d.txt")
    assert (topic.topic, topic.topic_id, topic.partition_count, topic.is_marked) == ("orders", ID, 2, False)
    assert topic.partitions == {0: PARTITION_0, 1: DescribedPartition(1, -1, (2, 3), (), (), ())}


@pytest.mark.parametrize(
    "text",
    [
        f"Topic:t\tPartitionCount:1\tReplicationFactor:2\tConfigs:\n{TWO}\n",
        f"Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n{TWO}\n",
        f"\nTopic: t   PartitionCount: 1   ReplicationFactor: 2\r\n{TWO.expandtabs(2)}\r\n\r\n",
        "Topic: t\tTopicId: AAAAAAAAAAAAAAAAAAAAAA\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: a=b\n"
        f"{TWO}\tOffline: \tSomethingNew: 7\n",
    ],
)
def test_a_topic_without_an_id_is_read_from_every_older_form(text: str) -> None:
    assert parse(text, "d.txt") == [DescribedTopic("t", None, 1, False, {0: PARTITION_0})]


def test_replicas_that_are_added_and_removed_are_told_apart() -> None:
    text = (
        HEADER
        + LINE.replace("Replicas: 1", "Replicas: 1,2,3").rstrip()
        + ("\tAdding Replicas: 3\tRemoving Replicas: 1,2\tElr: N/A\n")
    )
    (topic,) = parse(text, "d.txt")
    assert topic.partitions[0] == DescribedPartition(0, 1, (1, 2, 3), (1,), (3,), (1, 2))


@pytest.mark.parametrize("configs", ["", "a=b", "a=Topic: x,b=Leader: 3", "x=MarkedForDeletion: maybe"])
@pytest.mark.parametrize("is_marked", [True, False])
def test_configs_may_hold_anything_and_a_mark_stands_behind_them(configs: str, is_marked: bool) -> None:
    mark = "\tMarkedForDeletion: true" if is_marked else ""
    text = f"Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: {configs}{mark}\n" + LINE
    (topic,) = parse(text, "d.txt")
    assert topic.is_marked is is_marked


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it has no topics"),
        ("\n \n", "it has no topics"),
        (HEADER, "topic t has 1 partitions, and 0 are listed"),
        (LINE, "line 1: a partition of 't', whose own line is not before it"),
        (HEADER + LINE + LINE, "line 3: t-0 is there twice"),
        (HEADER + LINE + HEADER + LINE, "line 3: topic t is there twice"),
        (HEADER + LINE.replace("Partition: 0", "Partition: 1"), "has 1 partitions, and 1 are listed"),
        (HEADER + LINE.replace("Partition: 0", "Partition: -1"), "Partition: a number is expected, found '-1'"),
        (HEADER + LINE.replace("Replicas: 1", "Replicas: "), "line 2: a partition without replicas"),
        (HEADER + LINE.replace("Replicas: 1", "Replicas: 1,1"), "Replicas: a broker is there twice"),
        (HEADER + LINE.replace("Replicas: 1", "Replicas: 1,x"), "found 'x'"),
        (HEADER + LINE.replace("Replicas: 1", "Replicas: 99999999999"), "found '99999999999'"),
        (HEADER + LINE.replace("Leader: 1", "Leader: ?"), "Leader: a number is expected, found '?'"),
        (HEADER + LINE.replace("\tIsr: 1", ""), "line 2: .* is cut off"),
        (HEADER + LINE.replace("\tIsr: 1", "\tIsr: 1\tIsr: 1"), "line 2: Isr: is there twice"),
        (HEADER.replace(ID, "short") + LINE, "line 1: 'short'"),
        (HEADER.replace("Topic: t", "Topic: a/b") + LINE, "line 1: "),
        (HEADER.replace("\tReplicationFactor: 1", "") + LINE, "line 1: .* is the line of no topic"),
        ("Error while executing topic command : Timed out\n" + HEADER + LINE, "line 1: 'Error while executing"),
        ("Topic: ReplicationFactor: TopicId: Configs: PartitionCount: 1\n", "line 1: .* is the line of no topic"),
        (HEADER + LINE + "[2024-01-01] WARN something\n", "line 3: "),
        (HEADER + LINE + (HEADER + LINE).replace(" t\t", " u\t"), f"topic ID {ID} is that of t and of u"),
    ],
)
def test_what_is_not_whole_is_refused_with_its_line(text: str, reason: str) -> None:
    message = refused(text)
    assert re.search(reason if ".*" in reason else re.escape(reason), message), message
    assert "no whole output of kafka-topics --describe" in message


@given(st.integers(1, len(RECENT) - 1))
def test_a_text_that_is_cut_anywhere_but_after_its_last_word_is_refused(at: int) -> None:
    refused(RECENT[:at])


@given(st.sets(st.integers(0, 2), min_size=1, max_size=2))
def test_a_text_that_lacks_lines_is_refused(lacking: set[int]) -> None:
    refused("".join(line for number, line in enumerate(RECENT.splitlines(keepends=True)) if number not in lacking))


def test_many_reasons_are_cut_and_counted() -> None:
    assert "; and 5 more" in refused("WARN\n" * 10)


def test_what_brokers_have_is_recognised_and_refused_as_that() -> None:
    assert is_log_dirs(LOG_DIRS)
    assert not is_log_dirs(RECENT)
    assert "kafka-log-dirs prints" in refused(LOG_DIRS)
    assert "kafka-log-dirs prints" in refused(LOG_DIRS.splitlines()[-1])


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text, "d.txt")
    except MetadataError as error:
        assert "d.txt" in str(error)
