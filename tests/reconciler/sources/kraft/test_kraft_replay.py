"""Snapshots and logs together: older but true states, damage, and missing files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from layout.ids import TopicId
from layout.segment_name import metadata_snapshot_name
from layout.topic import METADATA_DIR
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.kraft import batch, control_record
from reconciler.sources.kraft.replay import Replay, read
from tools.writers import log_batch, no_op_record, partition_record, remove_topic_record, topic_record
from tools.writers.kraft_writer import (
    abort_transaction,
    begin_transaction,
    control_batch,
    end_transaction,
    leader_change_batch,
    log_bytes,
    snapshot_bytes,
)

IDS = [TopicId.from_halves(1000 + number, 1) for number in range(10)]
TOPICS = [topic_record(f"t{number}", IDS[number]) for number in range(10)]


class Folder:
    """A log dir with a metadata directory that a test fills file by file."""

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = log_dir
        self.path = log_dir / METADATA_DIR
        self.path.mkdir()

    def snapshot(self, offset: int, epoch: int, content: bytes) -> Path:
        file = self.path / metadata_snapshot_name(offset, epoch)
        file.write_bytes(content)
        return file

    def segment(self, offset: int, content: bytes) -> Path:
        file = self.path / f"{offset:020d}.log"
        file.write_bytes(content)
        return file

    def read(self) -> Replay:
        return read(str(self.log_dir), hashlib.sha256())

    def refused(self) -> str:
        with pytest.raises(MetadataError) as error:
            self.read()
        return str(error.value)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def _names(replay: Replay) -> list[str]:
    return sorted(found.name for found in replay.image.topics.values())


def _broken(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


# What is whole


def test_a_log_from_offset_0_is_enough(folder: Folder) -> None:
    folder.segment(0, log_bytes([TOPICS[:2], [remove_topic_record(IDS[0])]], epoch=4, timestamp_ms=1000))
    replay = folder.read()
    assert _names(replay) == ["t1"]
    # One offset for the LeaderChange, then three records.
    assert (replay.last_offset, replay.epoch, replay.timestamp_ms, replay.log_played) == (3, 4, 1000, True)
    assert replay.problems == []


def test_the_log_goes_on_where_the_snapshot_ends(folder: Folder) -> None:
    folder.snapshot(50, 2, snapshot_bytes(TOPICS[:2], epoch=2, timestamp_ms=500))
    folder.segment(50, log_bytes([[TOPICS[2]]], 50, epoch=3, timestamp_ms=900))
    replay = folder.read()
    assert _names(replay) == ["t0", "t1", "t2"]
    assert (replay.last_offset, replay.epoch, replay.timestamp_ms, replay.problems) == (51, 3, 900, [])


def test_records_that_the_snapshot_contains_are_not_played_again(folder: Folder) -> None:
    # Offsets 0 LeaderChange, 1 t0, 2 t1, 3 t2; the snapshot ends in the middle of the second batch.
    folder.segment(0, log_bytes([[TOPICS[0]], TOPICS[1:3]]))
    folder.snapshot(3, 1, snapshot_bytes(TOPICS[:2]))
    replay = folder.read()
    assert _names(replay) == ["t0", "t1", "t2"]
    assert (replay.last_offset, replay.problems) == (3, [])


def test_a_log_over_several_segments_is_one_log(folder: Folder) -> None:
    folder.segment(0, log_bytes([[TOPICS[0]]]))
    folder.segment(2, log_bytes([[TOPICS[1]]], 2, leader_change=False))
    folder.segment(3, b"")
    assert _names(folder.read()) == ["t0", "t1"]


def test_segments_that_the_snapshot_covers_are_not_even_read(folder: Folder) -> None:
    folder.segment(0, b"anything at all")
    folder.segment(40, log_bytes([[TOPICS[1]]], 40))
    folder.snapshot(40, 1, snapshot_bytes(TOPICS[:1]))
    replay = folder.read()
    assert (_names(replay), replay.problems) == (["t0", "t1"], [])


def test_the_newest_snapshot_is_the_one_of_the_highest_epoch(folder: Folder) -> None:
    folder.snapshot(90, 4, snapshot_bytes(TOPICS[:1], epoch=4))
    folder.snapshot(100, 3, snapshot_bytes(TOPICS[:2], epoch=3))
    assert _names(folder.read()) == ["t0"]


def test_an_empty_segment_at_the_end_of_the_snapshot_is_a_log_without_news(folder: Folder) -> None:
    folder.snapshot(5, 1, snapshot_bytes(TOPICS[:1]))
    folder.segment(5, b"")
    replay = folder.read()
    assert (replay.problems, replay.log_played, replay.last_offset) == ([], False, 4)


def test_a_snapshot_that_holds_nothing_is_what_a_new_cluster_begins_with(folder: Folder) -> None:
    voters = control_record("VotersRecord", voters=[])
    version = control_record("KRaftVersionRecord", kRaftVersion=1)
    folder.snapshot(0, 0, snapshot_bytes([], epoch=0, extra_controls=[version, voters]))
    replay = read(str(folder.path / metadata_snapshot_name(0, 0)), hashlib.sha256())
    assert (_names(replay), replay.last_offset, replay.timestamp_ms) == ([], None, None)
    folder.segment(0, log_bytes([[TOPICS[0]]]))
    assert _names(folder.read()) == ["t0"]


def test_the_digest_is_that_of_the_bytes(folder: Folder) -> None:
    first = folder.snapshot(5, 1, snapshot_bytes(TOPICS[:1])).read_bytes()
    second = folder.segment(5, log_bytes([[TOPICS[1]]], 5)).read_bytes()
    digest = hashlib.sha256()
    read(str(folder.log_dir), digest)
    assert digest.digest() == hashlib.sha256(first + second).digest()


# What is older, but true


def test_a_snapshot_by_itself_says_that_the_log_is_not_known(folder: Folder) -> None:
    path = folder.snapshot(5, 1, snapshot_bytes(TOPICS[:1], timestamp_ms=700))
    for replay in (folder.read(), read(str(path), hashlib.sha256())):
        assert (_names(replay), replay.last_offset, replay.timestamp_ms, replay.log_played) == (["t0"], 4, 700, False)
        (problem,) = replay.problems
        assert "unknown" in problem or "not known" in problem


@pytest.mark.parametrize("cut", [1, 50, 80, 200])
def test_a_newer_snapshot_that_is_cut_off_is_passed_over_and_the_log_makes_up_for_it(folder: Folder, cut: int) -> None:
    folder.snapshot(2, 1, snapshot_bytes(TOPICS[:1]))
    newer = folder.snapshot(3, 1, snapshot_bytes(TOPICS[:2])[:-cut])
    folder.segment(0, log_bytes([[TOPICS[0]], [TOPICS[1]], [TOPICS[2]]]))
    replay = folder.read()
    assert (_names(replay), replay.last_offset) == (["t0", "t1", "t2"], 3)
    (problem,) = replay.problems
    assert str(newer) in problem
    assert "is not whole" in problem


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (bytes(300), "zero padding"),
        (snapshot_bytes(TOPICS[:2]) + log_batch([no_op_record()], 4), "does not end with a footer"),
        (log_bytes([TOPICS[:2]]), "does not begin with the header"),
        (log_batch(TOPICS[:2], 0), "does not begin with the header"),
        (snapshot_bytes(TOPICS[:2], epoch=2), "epoch 2 stands where 0 and 1 must"),
        (snapshot_bytes(TOPICS[:2])[80:], "is not whole"),
        (snapshot_bytes([remove_topic_record(IDS[0])]), "at offset 1: topic ID"),
        (snapshot_bytes([begin_transaction(), no_op_record()]), "ends within a transaction"),
        (_broken(snapshot_bytes(TOPICS[:2]), 150), "CRC-32C"),
    ],
)
def test_a_newer_snapshot_that_is_wrong_is_passed_over(folder: Folder, content: bytes, said: str) -> None:
    folder.snapshot(2, 1, snapshot_bytes(TOPICS[:1]))
    folder.snapshot(3, 1, content)
    replay = folder.read()
    assert (_names(replay), replay.last_offset) == (["t0"], 1)
    assert said in replay.problems[0]


def test_without_any_whole_snapshot_the_log_from_offset_0_is_the_answer(folder: Folder) -> None:
    folder.snapshot(2, 1, b"")
    folder.segment(0, log_bytes([[TOPICS[0]]]))
    replay = folder.read()
    assert (_names(replay), len(replay.problems)) == (["t0"], 1)


def test_a_log_that_begins_after_the_snapshot_leaves_the_snapshot(folder: Folder) -> None:
    folder.snapshot(2, 1, snapshot_bytes(TOPICS[:1]))
    folder.segment(10, log_bytes([[TOPICS[1]]], 10))
    replay = folder.read()
    assert (_names(replay), replay.last_offset, replay.log_played) == (["t0"], 1, False)
    assert "begins at offset 10" in replay.problems[0]


def test_an_emptied_segment_counts_as_absent(folder: Folder) -> None:
    folder.snapshot(2, 1, snapshot_bytes(TOPICS[:1]))
    folder.segment(0, b"")
    folder.segment(10, log_bytes([[TOPICS[1]]], 10))
    replay = folder.read()
    assert (_names(replay), replay.last_offset) == (["t0"], 1)
    assert "begins at offset 10" in replay.problems[0]


def test_a_log_that_ends_before_the_snapshot_leaves_the_snapshot(folder: Folder) -> None:
    folder.snapshot(20, 1, snapshot_bytes(TOPICS[:1]))
    folder.segment(0, log_bytes([[TOPICS[1]]]))
    replay = folder.read()
    assert (_names(replay), replay.last_offset, replay.log_played) == (["t0"], 19, False)
    assert "ends at offset 2" in replay.problems[0]


def test_a_log_of_an_older_epoch_was_left_behind(folder: Folder) -> None:
    folder.snapshot(2, 5, snapshot_bytes(TOPICS[:1], epoch=5))
    folder.segment(0, log_bytes([[TOPICS[0]], [TOPICS[1]]], epoch=3))
    replay = folder.read()
    assert (_names(replay), replay.epoch, replay.log_played) == (["t0"], 5, False)
    assert "only the snapshot counts" in replay.problems[0]


@pytest.mark.parametrize(
    "tail",
    [
        log_batch([TOPICS[2]], 3)[:-1],
        log_batch([TOPICS[2]], 3)[:30],
        bytes(4096),
        _broken(log_batch([TOPICS[2]], 3), 70),
    ],
    ids=["cut in the records", "cut in the header", "zero padding", "a bad CRC"],
)
def test_a_torn_tail_is_a_problem_with_its_offset(folder: Folder, tail: bytes) -> None:
    whole = log_bytes([TOPICS[:2]])
    path = folder.segment(0, whole + tail)
    replay = folder.read()
    assert (_names(replay), replay.last_offset) == (["t0", "t1"], 2)
    (problem,) = replay.problems
    assert problem.startswith(f"{path.name}: at offset 3:"), "who tells it names the folder"
    assert f"at byte {len(whole)}" in problem


def test_a_transaction_without_an_end_is_left_out_and_so_are_its_offsets(folder: Folder) -> None:
    folder.segment(0, log_bytes([[TOPICS[0]], [begin_transaction(), TOPICS[1]], [TOPICS[2]]]))
    replay = folder.read()
    assert (_names(replay), replay.last_offset) == (["t0"], 1)
    assert "began at offset 2 has no end: 2 records of it left out" in replay.problems[0]


def test_a_transaction_over_several_batches_ends_or_is_aborted(folder: Folder) -> None:
    first = [[begin_transaction(), TOPICS[0]], [TOPICS[1], end_transaction(), TOPICS[2]]]
    second = [[begin_transaction(), TOPICS[3]], [abort_transaction()]]
    folder.segment(0, log_bytes([*first, *second]))
    replay = folder.read()
    assert (_names(replay), replay.problems) == (["t0", "t1", "t2"], [])


def test_unknown_types_are_counted_once_for_all_files(folder: Folder) -> None:
    unknown = bytes.fromhex("01630000")
    folder.snapshot(2, 1, snapshot_bytes([unknown]))
    odd_control = control_batch([(bytes.fromhex("00000009"), b"")], 3)
    folder.segment(2, log_bytes([[unknown]], 2, leader_change=False) + odd_control)
    replay = folder.read()
    assert len(replay.problems) == 2
    assert "99 (2 times)" in replay.problems[0]
    assert "control record types that are not known were skipped: 9 (1 time)" in replay.problems[1]


# What is wrong


def test_damage_with_a_sound_batch_behind_it_is_an_error(folder: Folder) -> None:
    first, second, third = log_batch([TOPICS[0]], 0), log_batch([TOPICS[1]], 1), log_batch([TOPICS[2]], 2)
    folder.segment(0, first + _broken(second, 70) + third)
    said = folder.refused()
    assert "at offset 1: a batch whose CRC-32C" in said
    assert f"sound batches stand behind it at byte {len(first) + len(second)}" in said


def test_a_preallocated_tail_of_a_gigabyte_of_holes_is_torn(folder: Folder) -> None:
    os.truncate(folder.segment(0, log_bytes([TOPICS[:2]])), 1 << 30)
    replay = folder.read()
    assert _names(replay) == ["t0", "t1"]
    assert "zero padding" in replay.problems[0]


def test_a_segment_of_more_bytes_than_any_broker_writes_is_refused_by_its_size(folder: Folder) -> None:
    os.truncate(folder.segment(0, log_bytes([TOPICS[:2]])), 10 << 30)
    assert "has 10737418240 bytes, and no broker writes a segment of more than 2147483647" in folder.refused()


def test_a_length_that_was_damaged_does_not_pass_for_a_torn_tail(folder: Folder) -> None:
    first, second, third = log_batch([TOPICS[0]], 0), log_batch([TOPICS[1]], 1), log_batch([TOPICS[2]], 2)
    folder.segment(0, first + second[:8] + b"\x00\xff\xff\xff" + second[12:] + third)
    assert "sound batches stand behind it" in folder.refused()


def test_damage_at_the_end_of_a_segment_that_has_a_successor_is_an_error(folder: Folder) -> None:
    folder.segment(0, log_bytes([[TOPICS[0]]])[:-1])
    folder.segment(2, log_bytes([[TOPICS[1]]], 2, leader_change=False))
    assert "behind it in a later segment" in folder.refused()


@pytest.mark.parametrize("offset", [2, 4, 9])
def test_a_gap_or_an_overlap_between_batches_is_an_error(folder: Folder, offset: int) -> None:
    folder.segment(0, log_bytes([TOPICS[:2]]) + log_batch([TOPICS[2]], offset))
    assert "where offset 3 must stand" in folder.refused()


@pytest.mark.parametrize("offset", [1, 3])
def test_a_gap_or_an_overlap_between_segments_is_an_error(folder: Folder, offset: int) -> None:
    folder.segment(0, log_bytes([[TOPICS[0]]]))
    folder.segment(offset, log_bytes([[TOPICS[1]]], offset))
    assert f"begins at offset {offset} where 2 must follow" in folder.refused()


def test_a_segment_whose_first_batch_is_not_the_one_of_its_name_is_an_error(folder: Folder) -> None:
    folder.segment(0, log_bytes([[TOPICS[0]]], 7))
    assert "where offset 0 must stand" in folder.refused()


def test_an_epoch_that_goes_back_is_an_error(folder: Folder) -> None:
    folder.segment(0, log_bytes([[TOPICS[0]]], epoch=5) + leader_change_batch(2, epoch=4))
    assert "follows on epoch 5" in folder.refused()


def test_a_log_of_a_newer_epoch_below_the_snapshot_contradicts_it(folder: Folder) -> None:
    folder.snapshot(5, 1, snapshot_bytes(TOPICS[:1]))
    folder.segment(0, log_bytes([[TOPICS[0]]], epoch=2))
    assert "contradicts the snapshot" in folder.refused()


@pytest.mark.parametrize(
    "group",
    [
        [remove_topic_record(IDS[0])],
        [partition_record(IDS[0], 0, [1])],
        [topic_record("t1", IDS[1]), end_transaction()],
    ],
)
def test_a_record_that_cannot_be_true_is_an_error_with_its_offset(folder: Folder, group: list[bytes]) -> None:
    path = folder.segment(0, log_bytes([[no_op_record()], group]))
    assert f"{path}: at offset {1 + len(group)}:" in folder.refused()


def test_two_live_topics_of_one_name_are_an_error(folder: Folder) -> None:
    folder.segment(0, log_bytes([[topic_record("same", IDS[0]), topic_record("same", IDS[1])]]))
    assert "two topics are named same" in folder.refused()


def test_a_data_record_with_a_key_is_an_error(folder: Folder) -> None:
    folder.segment(0, batch([(b"key", TOPICS[0])], base_offset=0, epoch=1, timestamp_ms=0))
    assert "a data record with a key" in folder.refused()


# What is not there


def test_an_empty_directory_is_an_error(folder: Folder) -> None:
    assert "the log is absent, and no snapshot" in folder.refused()


def test_a_log_that_does_not_begin_at_0_needs_a_snapshot(folder: Folder) -> None:
    folder.segment(10, log_bytes([[TOPICS[0]]], 10))
    folder.snapshot(10, 1, b"torn")
    said = folder.refused()
    assert "begins at offset 10, and no snapshot that can be read" in said
    assert "a snapshot was passed over" in said


@pytest.mark.parametrize("content", [b"", bytes(5000), b"not a batch at all", log_bytes([[TOPICS[0]]])[:40]])
def test_a_log_without_a_sound_batch_is_an_error(folder: Folder, content: bytes) -> None:
    folder.segment(0, content)
    assert "holds no snapshot, and a log without a sound batch" in folder.refused()


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or directory"):
        read(str(tmp_path / "absent"), hashlib.sha256())
