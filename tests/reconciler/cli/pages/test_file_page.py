"""The explanation of a plain file."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout import checkpoint
from layout.segment_files import AbortedTransaction, OffsetIndexEntry, ProducerState, TimeIndexEntry
from reconciler.cli.frame import log_dir_of_path
from reconciler.cli.pages import Explanation, explain_file
from tests.layout.segment_files.segment_writers import (
    offset_index,
    producer_snapshot,
    time_index,
    transaction_index,
)


def explained(path: Path, content: bytes | None = None) -> Explanation:
    if content is not None:
        path.write_bytes(content)
    return explain_file(str(path), log_dir_of_path(str(path)))


def facts(explanation: Explanation) -> dict[str, str]:
    return dict(explanation.facts)


@pytest.mark.parametrize("name", [*checkpoint.OFFSET_CHECKPOINTS])
def test_an_offset_checkpoint_tells_how_many_entries_it_has(cluster, name: str) -> None:
    explanation = explained(cluster.log_dir(1) / name, checkpoint.encode_offsets({("orders", 0): 5, ("orders", 1): 7}))
    assert facts(explanation)["content"] == "2 entries"
    assert "each" in explanation.what


def test_an_empty_offset_checkpoint_is_normal_and_a_torn_one_is_not(cluster) -> None:
    path = cluster.log_dir(1) / checkpoint.RECOVERY_POINT_CHECKPOINT
    assert facts(explained(path, b""))["content"] == "empty, which is normal"
    assert "what a broker does" in facts(explained(path, b"0\n2\norders 0 5\n"))["content"]
    assert "a broker warns and ignores it" in facts(explained(path, b"0\n1\norders 0 x\n"))["content"]


def test_the_identity_is_reported_key_by_key_or_with_its_problem(cluster) -> None:
    path = cluster.log_dir(1) / "meta.properties"
    found = facts(explained(path))
    assert (found["node.id"], found["cluster.id"], found["content"]) == ("1", "cluster-of-the-tests", "in order")
    assert "version" in facts(explained(path, b"version=9\n"))["content"]


def test_files_of_a_partition_dir_are_reported_by_their_names(cluster) -> None:
    folder = cluster.log_dir(1) / "orders-0"
    assert explained(folder / "00000000000000000000.log").what == "a segment: records from offset 0 on"
    assert facts(explained(folder / "partition.metadata"))["topic ID"] == "AAECAwQFBgcICQoLDA0ODw"
    swap = explained(folder / "00000000000000000042.log.swap", b"")
    assert swap.what == "a segment: records from offset 42 on; it is finished output of a compaction, and takes its " \
        "place at the next start"  # fmt: skip
    epochs = explained(folder / "leader-epoch-checkpoint", checkpoint.encode_leader_epochs([(3, 0), (5, 70)]))
    assert facts(epochs)["content"] == "2 epochs, the last of epoch 5 from offset 70"


def test_a_segment_whose_name_is_no_offset_stops_a_broker(cluster) -> None:
    assert "no offset" in facts(explained(cluster.log_dir(1) / "orders-0" / "backup.log", b""))["stops a broker"]


def test_the_lock_and_the_clean_stop_are_reported(cluster) -> None:
    assert facts(explained(cluster.log_dir(1) / ".lock", b""))["held by"] == "nobody who can be seen from here"
    marker = cluster.log_dir(1) / ".kafka_cleanshutdown"
    assert facts(explained(marker, b'{"version":0,"brokerEpoch":10}'))["broker epoch"] == "10"
    assert facts(explained(marker, b""))["broker epoch"].startswith("none")


def test_a_strangers_file_is_nothing_to_a_broker(cluster) -> None:
    assert "no file of Kafka's" in explained(cluster.log_dir(1) / "notes.txt", b"hello").what


def test_a_temporary_file_is_reported_as_one(cluster) -> None:
    assert "never read" in explained(cluster.log_dir(1) / "cleaner-offset-checkpoint.tmp", b"").what


def test_a_link_is_not_followed(cluster) -> None:
    (cluster.log_dir(1) / ".lock").symlink_to("/etc/hostname")
    link = cluster.log_dir(1) / checkpoint.RECOVERY_POINT_CHECKPOINT
    link.symlink_to("/etc/hostname")
    found = facts(explained(link))
    assert (found["is"], "not followed" in found["content"]) == ("a symbolic link", True)


OFFSETS = [OffsetIndexEntry(142, 4096), OffsetIndexEntry(180, 8200)]
TIMES = [TimeIndexEntry(1_700_000_000_000, 150)]


@pytest.mark.parametrize(
    ("suffix", "content", "expected"),
    [
        (".index", offset_index(OFFSETS, 42), "2 entries in 16 B, the last for offset 180 at position 8200"),
        (".index.deleted", b"", "0 entries in 0 B"),
        (".timeindex", time_index(TIMES, 42), "1 entry in 12 B, the last for 2023-11-14 22:13:20 UTC at offset 150"),
        (
            ".txnindex",
            transaction_index([AbortedTransaction(7, 50, 60, 50), AbortedTransaction(8, 55, 70, 55)]),
            "2 aborted transactions, the last from offset 55 to 70",
        ),
        (
            ".snapshot",
            producer_snapshot(
                [
                    ProducerState(7, 0, 3, 41, 0, 0, 1, 30),
                    ProducerState(8, 0, 3, 35, 0, 0, 1, 20),
                    ProducerState(9, 0, None, None, 0, 0, None, None),
                ]
            ),
            "3 producers, the last record at offset 41; 2 open transactions, the first from offset 20",
        ),
        (".snapshot", producer_snapshot([]), "0 producers"),
    ],
)
def test_a_file_beside_a_segment_is_reported_by_what_is_in_it(
    cluster, suffix: str, content: bytes, expected: str
) -> None:
    found = facts(explained(cluster.log_dir(1) / "orders-0" / f"{42:020d}{suffix}", content))
    assert (found["content"], "preallocated" in found) == (expected, False)


@pytest.mark.parametrize(
    ("suffix", "content", "expected"),
    [
        (".index", offset_index(OFFSETS, 42, preallocated=10_485_744), ("2 entries in 16 B", "10 MB of zeros")),
        (".timeindex", time_index([], 42, preallocated=10_485_756), ("0 entries in 0 B", "10 MB of zeros")),
    ],
)
def test_a_preallocated_index_is_weighed_by_its_content(
    cluster, suffix: str, content: bytes, expected: tuple[str, str]
) -> None:
    found = facts(explained(cluster.log_dir(1) / "orders-0" / f"{42:020d}{suffix}", content))
    assert (found["content"].startswith(expected[0]), found["preallocated"].startswith(expected[1])) == (True, True)


@pytest.mark.parametrize(
    ("suffix", "problem", "effect"),
    [
        (".index", "7 bytes are no multiple of 8", "it does not look, and reads by it"),
        (".timeindex", "7 bytes are no multiple of 12", "it does not look, and reads by it"),
        (
            ".txnindex",
            "7 bytes are no multiple of 34",
            "where a transaction ends before the segment, or after an unclean",
        ),
        (".snapshot", "7 bytes are fewer than the 10 of its header", "removes the snapshot and takes an older one"),
    ],
)
def test_a_damaged_file_beside_a_segment_is_reported_with_what_a_broker_does(
    cluster, suffix: str, problem: str, effect: str
) -> None:
    (cluster.log_dir(1) / "orders-0" / f"{42:020d}.log").write_bytes(b"")
    found = facts(explained(cluster.log_dir(1) / "orders-0" / f"{42:020d}{suffix}", b"damaged"))
    assert problem in found["content"] and effect in found["content"]
    assert "removed at start" not in found


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [(".index", b"damaged"), (".timeindex", b""), (".txnindex", b"damaged"), (".snapshot", b"damaged")],
)
def test_a_file_without_its_segment_goes_when_the_broker_starts_whatever_is_in_it(
    cluster, suffix: str, damage: bytes
) -> None:
    folder = cluster.log_dir(1) / "orders-0"
    (folder / f"{43:020d}.snapshot").write_bytes(b"")  # the last of all stays
    found = facts(explained(folder / f"{42:020d}{suffix}", damage))
    assert found["removed at start"] == "no segment of this offset lies beside it"
    assert not damage or found["content"].endswith("it removes the file when it starts")
    elsewhere = cluster.log_dir(1) / "deleting" / "orders-0"
    elsewhere.mkdir(parents=True)
    for path in (elsewhere / f"{42:020d}{suffix}", cluster.log_dir(1).parent / f"{42:020d}{suffix}"):
        assert "removed at start" not in facts(explained(path, damage))


def test_output_of_a_compaction_takes_its_place_only_where_the_compaction_had_finished(cluster) -> None:
    folder = cluster.log_dir(1) / "orders-0"
    swaps = [folder / f"{offset:020d}.index.swap" for offset in (5, 42)]
    for swap in swaps:
        assert "takes its place at the next start" in explained(swap, b"").what
    (folder / f"{42:020d}.log.cleaned").write_bytes(b"")
    assert "takes its place at the next start" in explained(swaps[0]).what
    assert "a compaction that was not finished, and goes at the next start" in explained(swaps[1]).what


def test_a_link_beside_a_segment_is_not_followed(cluster) -> None:
    link = cluster.log_dir(1) / "orders-0" / f"{42:020d}.index"
    link.symlink_to("/etc/hostname")
    assert "not followed" in facts(explained(link))["content"]
