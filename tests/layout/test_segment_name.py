"""File names in a partition dir: every row of FACTS §1.9 and §7.2, near misses, and what would stop a broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import InvalidNameError
from layout.segment_name import (
    FileKind,
    MetadataSnapshotName,
    Transient,
    filename_prefix,
    metadata_snapshot_name,
    parse,
    parse_metadata_snapshot,
    segment_file_name,
)

OFFSETS = st.integers(0, 2**63 - 1)
EPOCHS = st.integers(0, 2**31 - 1)
BY_OFFSET = [
    FileKind.LOG,
    FileKind.OFFSET_INDEX,
    FileKind.TIME_INDEX,
    FileKind.TRANSACTION_INDEX,
    FileKind.PRODUCER_SNAPSHOT,
]
ARABIC_42 = "٠" * 18 + "٤٢"


@given(OFFSETS, st.sampled_from(BY_OFFSET))
def test_names_by_offset_read_back_as_they_were_built(offset: int, kind: FileKind) -> None:
    name = segment_file_name(offset, kind)
    assert len(name) == 20 + len(kind)
    assert parse(name) == (name, kind, offset, None, None, None)


@given(OFFSETS, st.sampled_from(BY_OFFSET), st.sampled_from(Transient))
def test_a_transient_suffix_keeps_kind_and_offset(offset: int, kind: FileKind, transient: Transient) -> None:
    name = segment_file_name(offset, kind) + transient
    assert parse(name) == (name, kind, offset, None, transient, None)


@given(OFFSETS, EPOCHS)
def test_metadata_snapshot_names_read_back_as_they_were_built(offset: int, epoch: int) -> None:
    name = metadata_snapshot_name(offset, epoch)
    assert parse_metadata_snapshot(name) == MetadataSnapshotName(epoch, offset)
    assert parse_metadata_snapshot(name + ".part") == MetadataSnapshotName(epoch, offset, partial=True)
    assert parse_metadata_snapshot(name + ".deleted") == MetadataSnapshotName(epoch, offset, deleted=True)
    assert parse(name) == (name, FileKind.METADATA_SNAPSHOT, offset, epoch, None, None)
    assert parse(name + ".deleted").transient is Transient.DELETED


@given(
    st.text(st.characters(exclude_categories=()), max_size=60), st.sampled_from(["", ".log", ".checkpoint", ".swap"])
)
def test_parsing_never_raises(stem: str, suffix: str) -> None:
    read = parse(stem + suffix)
    assert read.text == stem + suffix
    assert read.problem is None or read.offset is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("leader-epoch-checkpoint", FileKind.LEADER_EPOCH_CHECKPOINT),
        ("partition.metadata", FileKind.PARTITION_METADATA),
        ("quorum-state", FileKind.QUORUM_STATE),
        ("remote_log_snapshot", FileKind.REMOTE_LOG_SNAPSHOT),
    ],
)
def test_files_with_a_name_of_their_own_are_known(name: str, kind: FileKind) -> None:
    assert parse(name) == (name, kind, None, None, None, None)
    assert parse(f"{name}.tmp") == (f"{name}.tmp", kind, None, None, Transient.TMP, None)


@pytest.mark.parametrize(
    "name", ["notes.txt", "log", "42", "", ".hidden", "x.LOG", "x.logs", "partition.metadata2", "other"]
)
def test_anything_else_is_no_concern_of_a_broker(name: str) -> None:
    assert parse(name) == (name, FileKind.OTHER, None, None, None, None)


@pytest.mark.parametrize(
    "name",
    [
        *("x.log", "x.index", "x.timeindex", "x.txnindex", "x.snapshot"),
        *(".log", " 42.log", "4_2.log", "0x2a.log", "42a.log", "9223372036854775808.log"),
        *("x.cleaned", "x.swap", ".swap", "leader-epoch-checkpoint.swap", "00000000000000000042 .log"),
    ],
)
def test_a_name_without_the_offset_that_a_broker_reads_from_it_is_a_problem(name: str) -> None:
    read = parse(name)
    assert read.offset is None
    assert read.problem is not None
    assert "no offset" in read.problem


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("42.log", 42),
        ("+42.log", 42),
        ("42.bak.log", 42),
        ("9223372036854775807.index", 2**63 - 1),
        (f"{ARABIC_42}.log", 42),
    ],
)
def test_offsets_are_read_as_java_reads_them(name: str, offset: int) -> None:
    # FACTS §12: a broker under an Arabic locale writes such digits, and any broker reads them.
    assert (parse(name).offset, parse(name).problem) == (offset, None)


def test_what_awaits_removal_is_deleted_without_a_look_at_its_offset() -> None:
    assert parse("x.log.deleted").problem is None


def test_a_checkpoint_with_another_name_is_a_strangers_file_outside_the_metadata_log() -> None:
    assert parse("bootstrap.checkpoint") == ("bootstrap.checkpoint", FileKind.OTHER, None, None, None, None)


@pytest.mark.parametrize(
    "name", ["bootstrap.checkpoint", "x.checkpoint", ".checkpoint", ".checkpoint.part", "0" * 20 + "-x.checkpoint"]
)
def test_a_checkpoint_with_another_name_would_stop_a_broker_in_the_metadata_log(name: str) -> None:
    with pytest.raises(InvalidNameError, match="__cluster_metadata-0"):
        parse_metadata_snapshot(name)


@pytest.mark.parametrize(
    "name", ["00000000000000000100-0000000003.checkpoint.tmp", "checkpoint", "leader-epoch-checkpoint", ""]
)
def test_a_name_without_the_suffix_is_no_metadata_snapshot(name: str) -> None:
    assert parse_metadata_snapshot(name) is None


def test_a_snapshot_being_written_has_a_random_part_that_does_not_matter() -> None:
    name = "00000000000000000100-0000000003-4711.checkpoint.part"
    assert parse_metadata_snapshot(name) == MetadataSnapshotName(epoch=3, offset=100, partial=True)


def test_the_latest_snapshot_is_the_greatest_by_epoch_and_then_by_offset() -> None:
    names = [metadata_snapshot_name(offset, epoch) for offset, epoch in [(500, 1), (300, 2), (400, 2)]]
    snapshots = [snapshot for name in names if (snapshot := parse_metadata_snapshot(name)) is not None]
    assert max(snapshots) == MetadataSnapshotName(epoch=2, offset=400)


@pytest.mark.parametrize("name", ["a.deleted", "a.cleaned", "a.swap", "a.part", "a.tmp", ".tmp"])
def test_transient_suffixes_make_a_leftover(name: str) -> None:
    assert parse(name).transient is not None


@pytest.mark.parametrize("name", ["a.log", "deleted", "tmp", "a.tmp.log", "a.swap2", "a.DELETED", ""])
def test_other_names_are_no_leftovers(name: str) -> None:
    assert parse(name).transient is None


@pytest.mark.parametrize("offset", [-1, 2**63])
def test_an_offset_out_of_range_has_no_name(offset: int) -> None:
    with pytest.raises(InvalidNameError):
        filename_prefix(offset)
    with pytest.raises(InvalidNameError):
        segment_file_name(offset, FileKind.LOG)
    with pytest.raises(InvalidNameError):
        metadata_snapshot_name(offset, 0)


@pytest.mark.parametrize("epoch", [-1, 2**31])
def test_an_epoch_out_of_range_has_no_name(epoch: int) -> None:
    with pytest.raises(InvalidNameError):
        metadata_snapshot_name(0, epoch)


@pytest.mark.parametrize("kind", sorted(set(FileKind) - set(BY_OFFSET)))
def test_only_files_by_offset_are_built_from_one(kind: FileKind) -> None:
    with pytest.raises(InvalidNameError):
        segment_file_name(0, kind)
