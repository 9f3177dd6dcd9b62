"""The records of KIP-694 in a metadata log: a partition that is leaving may be on a disk or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import DirectoryId, TopicId
from logstore.scan import scan_all
from reconciler.protocol import KIP694_NUMBER, METADATA_RECORDS, PROPOSED_RECORDS, MalformedMessageError
from reconciler.sources.kraft import RecordDecoder, proposed_record, read_frame
from reconciler.sources.kraft import source as kraft
from reconciler.sources.kraft.image import MetadataImage, PartitionRegistration, ReplayError
from reconciler.verdicts import Verdict, compare
from tools.writers import (
    delete_topic_partitions_record,
    partition_change_record,
    partition_record,
    partition_with_mode_record,
    remove_topic_record,
    topic_record,
    write_metadata_dir,
)

ORDERS = TopicId.parse("cxBT72dK4si8Ied1iP4wBA")
OTHER = TopicId.parse("IG4dPxZf9SoYZxfZsXXdJg")
LEFT = DirectoryId.parse("s33AdXtkR8Gf_xRO-R_dpA")
RIGHT = DirectoryId.parse("oTM53yT_SbSfzlvkh_PfVA")
CLUSTER = "AtgGav8yQjiaJ3rTXE7VCA"


def play(*values: bytes) -> PartitionRegistration:
    """Partition 0 of orders on brokers 1 and 2, in log dirs that are known, and what follows."""
    image = MetadataImage()
    created = partition_record(ORDERS, 0, [1, 2], leader_epoch=5, partition_epoch=7, directories=[LEFT, RIGHT])
    for offset, value in enumerate((topic_record("orders", ORDERS), created, *values)):
        image.play(offset, value)
    return image.topics[ORDERS.to_bytes()].partitions[0]


def test_a_record_has_the_fields_that_the_proposal_draws_in_its_order() -> None:  # KIP694-3
    drawn = {message.name: [field.name for field in message.body.fields] for message in PROPOSED_RECORDS.values()}
    assert drawn == {
        "PartitionRecord": [
            *("partitionId", "topicId", "replicas", "isr", "removingReplicas", "addingReplicas", "leader"),
            *("leaderEpoch", "mode"),
        ],
        "DeleteTopicPartitionsRecord": [
            *("topicId", "deletePartitions", "deletePartitionsDelayTimestamp", "createTimestamp"),
        ],
    }


def test_no_shipped_record_has_the_number_that_stands_for_the_proposal() -> None:
    values = (partition_with_mode_record(ORDERS, 0, [1], 1), delete_topic_partitions_record(ORDERS, 0))
    frames = list(map(read_frame, values))
    assert [(frame.type, frame.version) for frame in frames] == [(3, KIP694_NUMBER), (KIP694_NUMBER, 0)]
    assert KIP694_NUMBER not in METADATA_RECORDS and KIP694_NUMBER not in METADATA_RECORDS[3].versions


@pytest.mark.parametrize("removing", [None, (3,)])
def test_records_come_back_as_they_were_written(removing: tuple[int, ...] | None) -> None:
    fields = {
        "partitionId": 3, "topicId": ORDERS.to_bytes(), "replicas": (1, 2), "isr": (2,), "removingReplicas": removing,
        "addingReplicas": (), "leader": 2, "leaderEpoch": 5, "mode": -1,
    }  # fmt: skip
    value = proposed_record("PartitionRecord", **fields)
    assert RecordDecoder().decode(read_frame(value), value) == fields
    fields = {
        "topicId": ORDERS.to_bytes(), "deletePartitions": 3, "deletePartitionsDelayTimestamp": True,
        "createTimestamp": 1_700_000_000_000,
    }  # fmt: skip
    value = proposed_record("DeleteTopicPartitionsRecord", **fields)
    assert RecordDecoder().decode(read_frame(value), value) == fields


# KIP694-1
@pytest.mark.parametrize(("mode", "leaving"), [(0, False), (1, True), (-1, True)])
def test_a_partition_that_is_not_read_and_written_is_leaving(mode: int, leaving: bool) -> None:
    assert play(partition_with_mode_record(ORDERS, 0, [1, 2], mode)).leaving is leaving


# KIP694-3
def test_it_is_leaving_from_the_request_on_and_until_it_is_given_back() -> None:
    request = delete_topic_partitions_record(ORDERS, 0, delayed=True, created_ms=17)
    change = partition_change_record(ORDERS, 0, isr=[1])
    assert not play().leaving
    assert play(request).leaving and play(request, change).leaving
    assert not play(request, partition_with_mode_record(ORDERS, 0, [1, 2], 0)).leaving


def test_what_the_form_has_no_field_for_stays_as_it_was() -> None:
    same = play(partition_with_mode_record(ORDERS, 0, [1, 2], 1, leader_epoch=6))
    assert (same.leader_epoch, same.partition_epoch, same.directories) == (6, 8, (LEFT.to_bytes(), RIGHT.to_bytes()))
    other = play(partition_with_mode_record(ORDERS, 0, [2, 3], 1))
    assert (other.replicas, other.partition_epoch, other.directories) == ((2, 3), 8, ())


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (partition_with_mode_record(ORDERS, 0, [1], 2), "partition orders-0 of mode 2, only -1, 0 and 1 are known"),
        (delete_topic_partitions_record(ORDERS, 4), "partition orders-4 is to be deleted, but there is no such partit"),
        (delete_topic_partitions_record(OTHER, 0), f"partition 0 of topic ID {OTHER}, but there is no such topic"),
    ],
)
def test_a_record_that_contradicts_the_state_is_refused(value: bytes, why: str) -> None:
    with pytest.raises(ReplayError, match=why):
        play(value)


def test_a_record_that_is_cut_off_is_refused_by_name() -> None:
    with pytest.raises(MalformedMessageError, match="DeleteTopicPartitionsRecord version 0 cannot be read"):
        play(delete_topic_partitions_record(ORDERS, 0)[:-3])


def verdicts(log_dir: Path, *log: bytes) -> dict[str, Verdict]:
    """What an audit says of a log dir that holds partitions 0 and 1 of orders, and should hold 2 and 3 too."""
    for number in (0, 1):
        (log_dir / f"orders-{number}").mkdir(parents=True)
        (log_dir / f"orders-{number}" / partition_metadata.FILE_NAME).write_bytes(partition_metadata.encode(ORDERS))
    snapshot = [
        topic_record("other", OTHER),
        topic_record("orders", ORDERS),
        *(partition_record(ORDERS, number, [1, 2]) for number in range(4)),
    ]
    write_metadata_dir(log_dir, snapshot=snapshot, log=[log], cluster_id=CLUSTER, timestamp_ms=1, directory_id=LEFT)
    rows = [row for seen in scan_all([str(log_dir)], sizes=False, jobs=0) for row in seen.rows.to_pylist()]
    judged = compare({CLUSTER: kraft.load(str(log_dir))}, rows, 2)
    partitions = ((each.observed or each.wanted or {}, each) for each in judged if each.row.topic == "orders")
    return {f"orders-{found['partition']}": each.verdict for found, each in partitions}


# KIP694-3, KIP694-4
def test_what_is_leaving_is_in_flight_whether_it_is_still_there_or_not(tmp_path: Path) -> None:
    found = verdicts(
        tmp_path / "disk", delete_topic_partitions_record(ORDERS, 1), partition_with_mode_record(ORDERS, 3, [1, 2], -1)
    )
    assert found == {
        "orders-0": Verdict.OK,
        "orders-1": Verdict.IN_FLIGHT,
        "orders-2": Verdict.MISSING,
        "orders-3": Verdict.IN_FLIGHT,
    }


def test_once_its_topic_is_gone_it_is_in_flight_no_longer(tmp_path: Path) -> None:
    found = verdicts(tmp_path / "disk", delete_topic_partitions_record(ORDERS, 1), remove_topic_record(ORDERS))
    assert found == dict.fromkeys(("orders-0", "orders-1"), Verdict.UNKNOWN_TOPIC)
