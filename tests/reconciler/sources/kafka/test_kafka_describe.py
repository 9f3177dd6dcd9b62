"""The output of kafka-topics as a metadata source: the forms of all releases, and every incomplete output."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.desired import Completeness
from reconciler.errors import MetadataError, UsageError
from reconciler.sources import load
from reconciler.sources.kafka import describe
from reconciler.sources.kafka.describe import DescribedPartition, DescribedTopic, is_log_dirs, parse

ORDERS_ID = "cxBT72dK4si8Ied1iP4wBA"
TEXT = (
    f"Topic: orders\tTopicId: {ORDERS_ID}\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
    "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3\tIsr: \tAdding Replicas: 3\tRemoving Replicas: 2\n"
    "Topic: legacy\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \tMarkedForDeletion: true\n"
    "\tTopic: legacy\tPartition: 0\tLeader: 3\tReplicas: 3\tIsr: 3\tMarkedForDeletion: true\n"
)
LOG_DIRS_OUTPUT = '{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/d","error":null,"partitions":[]}]}]}'


def written(folder: Path, text: str = TEXT, name: str = "topics.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_topics_replicas_leaders_and_moves_are_known(tmp_path: Path) -> None:
    state = describe.load(str(written(tmp_path)))
    assert state.topics.to_pylist() == [
        {"topic": "orders", "topic_id": ORDERS_ID, "partitions": 2},
        {"topic": "legacy", "topic_id": None, "partitions": 1},
    ]
    names = ("topic", "partition", "node_id", "leader", "in_sync", "isr_size", "adding", "removing")
    assert [tuple(row[name] for name in names) for row in state.replicas.to_pylist()] == [
        ("orders", 0, 1, True, True, 1, False, False),
        ("orders", 0, 2, False, False, 1, False, False),
        ("orders", 1, 2, False, False, 0, False, True),
        ("orders", 1, 3, False, False, 0, True, False),
        ("legacy", 0, 3, True, True, 1, False, False),
    ]
    assert state.replicas["leader_epoch"].null_count == state.replicas.num_rows
    assert state.brokers.num_rows == 0


def test_the_identity_claims_no_more_than_the_text(tmp_path: Path) -> None:
    path = written(tmp_path)
    identity = describe.load(str(path)).identity
    assert (identity.source, identity.location, identity.cluster_id) == ("describe", str(path), None)
    assert (identity.offset, identity.epoch, identity.timestamp_ms, identity.scope) == (None, None, None, None)
    assert identity.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert identity.completeness is Completeness.INCREMENTAL
    assert ["neither its cluster nor its time" in identity.problems[0], "describe-all:" in identity.problems[1]] == [
        True,
        True,
    ]
    assert identity.problems[2].startswith("1 topic is marked for deletion and counts as wanted until it goes: legacy")


def test_it_counts_as_complete_only_where_somebody_vouches_for_it(tmp_path: Path) -> None:
    path = written(tmp_path)
    kinds = {
        spec: load(spec)[0].identity.completeness for spec in (str(path), f"describe:{path}", f"describe-all:{path}")
    }
    assert list(kinds.values()) == [Completeness.INCREMENTAL, Completeness.INCREMENTAL, Completeness.FULL]
    assert not any("describe-all" in text for text in load(f"describe-all:{path}")[0].identity.problems)


def test_it_is_recognised_by_its_first_line(tmp_path: Path) -> None:
    assert describe.recognises(str(written(tmp_path)))
    assert describe.recognises(str(written(tmp_path, "Topic:t\tPartitionCount:1\n")))
    assert not describe.recognises(str(written(tmp_path, "Topic: t is a fine name\n")))
    assert not describe.recognises(str(tmp_path))
    assert not describe.recognises(str(tmp_path / "absent"))


@pytest.mark.parametrize("name", ["log-dirs.json", "log-dirs.txt"])
def test_what_brokers_have_is_refused_under_every_name(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, LOG_DIRS_OUTPUT, name)
    for spec in (str(path), f"describe:{path}", f"describe-all:{path}"):
        with pytest.raises(MetadataError, match="is what kafka-log-dirs prints"):
            load(spec)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "topics.txt"
    path.write_bytes(TEXT.encode("utf-16"))
    with pytest.raises(MetadataError, match="is no UTF-8 text"):
        load(f"describe:{path}")


def test_several_outputs_in_a_folder_are_refused_because_nothing_tells_which_holds(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        written(tmp_path, name=name)
    with pytest.raises(UsageError, match="holds 2 outputs of kafka-topics"):
        load(str(tmp_path))
    (tmp_path / "b.txt").unlink()
    assert load(str(tmp_path))[0].identity.location == str(tmp_path), "as it was typed, so that it can be typed again"


def test_an_absent_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent: no such file"):
        load(f"describe:{tmp_path}/absent")


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
    assert topic.partitions == {0: PARTITION_0, 1: DescribedPartition(1, -1, (2, 3), (), (), (), (2,))}


@pytest.mark.parametrize(
    ("said", "in_sync"),
    [
        ("Isr: 1\tElr: 2\tLastKnownElr: ", [True, False]),
        ("Isr: \tElr: 2\tLastKnownElr: 1", [False, True]),
        ("Isr: \tElr: \tLastKnownElr: 1", [True, False]),
        ("Isr: \tElr: N/A\tLastKnownElr: N/A", [False, False]),
    ],
)
def test_who_may_lead_counts_as_in_sync(tmp_path: Path, said: str, in_sync: list[bool]) -> None:
    text = HEADER + f"\tTopic: t\tPartition: 0\tLeader: none\tReplicas: 1,2\t{said}\n"
    rows = describe.load(str(written(tmp_path, text))).replicas.to_pylist()
    assert [row["in_sync"] for row in rows] == in_sync
    assert {row["isr_size"] for row in rows} == {sum(in_sync)}


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


def test_added_and_removed_replicas_are_distinguished() -> None:
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
        (HEADER, "topic t has 1 partition by its own line, and the line of partition 0 is not there"),
        (LINE, "line 1: a partition of 't', whose own line is not before it"),
        (HEADER + LINE + LINE, "line 3: t-0 is there twice"),
        (HEADER + LINE + HEADER + LINE, "line 3: topic t is there twice"),
        (
            HEADER + LINE.replace("Partition: 0", "Partition: 1"),
            "topic t has 1 partition by its own line, and the line of partition 0 is not there",
        ),
        (HEADER + LINE + LINE.replace("Partition: 0", "Partition: 7"), "numbered from 0, and partition 7 is listed"),
        (
            HEADER.replace("PartitionCount: 1", "PartitionCount: 9"),
            "the line of partition 0, 1, 2 and 6 more is",
        ),
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
    assert not is_log_dirs('"brokers": "logDirs": {')
    # By a pattern that tried every triple of places, this would take hours.
    assert not is_log_dirs('{"brokers":' * 5957)
    assert "kafka-log-dirs prints" in refused(LOG_DIRS)
    assert "kafka-log-dirs prints" in refused(LOG_DIRS.splitlines()[-1])


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text, "d.txt")
    except MetadataError as error:
        assert "d.txt" in str(error)
