"""How far a metadata log is proven to be committed, and what its state lacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from layout import meta_properties, quorum_state
from layout.ids import TopicId
from layout.meta_properties import MetaProperties
from layout.quorum_state import QuorumState
from layout.segment_name import metadata_snapshot_name
from reconciler.desired import MetadataIdentity
from reconciler.sources.kraft import control_record
from reconciler.sources.kraft import source as kraft
from tools.writers import (
    feature_level_record,
    log_batch,
    no_op_record,
    partition_change_record,
    partition_record,
    remove_topic_record,
    topic_record,
)
from tools.writers.kraft_writer import begin_transaction, leader_change_batch, snapshot_bytes

GONE, NEW, MOVED, STAYS = (TopicId.from_halves(number, 1) for number in range(1, 5))
MINUTE = 60_000
THEN = 1_700_000_000_000
IN_SNAPSHOT = [
    *(topic_record("gone", GONE), partition_record(GONE, 0, [1, 2])),
    *(topic_record("moved", MOVED), partition_record(MOVED, 0, [1, 2])),
    *(topic_record("stays", STAYS), partition_record(STAYS, 0, [1, 2])),
]
CHANGES = [
    remove_topic_record(GONE),
    topic_record("new", NEW),
    partition_change_record(MOVED, 0, replicas=[2, 3]),
    partition_change_record(STAYS, 0, isr=[1]),
]
CHANGED = (GONE, NEW, MOVED)
MODERN = feature_level_record("metadata.version", 15)
OLD = feature_level_record("metadata.version", 14)


class Metadata:
    """A metadata directory: a snapshot, and batches of a log after it."""

    def __init__(self, folder: Path, feature: bytes = MODERN, controls: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self.folder = folder / "__cluster_metadata-0"
        self.folder.mkdir()
        self.offset = 10
        content = snapshot_bytes([feature, *IN_SNAPSHOT], timestamp_ms=THEN, extra_controls=controls)
        (self.folder / metadata_snapshot_name(10, 1)).write_bytes(content)
        self.segment = self.folder / f"{10:020d}.log"
        self.segment.touch()

    def lead(self, *voters: int, epoch: int = 2, at: int = THEN) -> None:
        self._add(leader_change_batch(self.offset, epoch=epoch, timestamp_ms=at, voters=voters), 1)

    def write(self, *records: bytes, epoch: int = 2, at: int = THEN) -> None:
        self._add(log_batch(records, self.offset, epoch=epoch, timestamp_ms=at), len(records))

    def _add(self, batch: bytes, offsets: int) -> None:
        self.segment.write_bytes(self.segment.read_bytes() + batch)
        self.offset += offsets

    def identity(self) -> MetadataIdentity:
        return kraft.load(str(self.folder)).identity

    def uncommitted(self) -> set[str]:
        identity = self.identity()
        assert set(identity.uncommitted) == set() or identity.tail_uncommitted
        return set(identity.uncommitted)


def texts(*ids: TopicId) -> set[str]:
    return {str(topic_id) for topic_id in ids}


def test_one_voter_commits_what_it_writes(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path, OLD)
    metadata.lead(1)
    metadata.write(*CHANGES)
    assert (metadata.uncommitted(), metadata.identity().tail_uncommitted) == (set(), False)


def test_of_several_voters_a_majority_may_never_have_had_the_newest_records(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path)
    metadata.lead(1, 2, 3)
    metadata.write(*CHANGES)
    assert metadata.uncommitted() == texts(*CHANGED)  # a change of the ISR assigns nothing


def test_a_leader_that_goes_on_for_a_minute_has_its_majority(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path)
    metadata.lead(1, 2, 3)
    metadata.write(CHANGES[0], at=THEN)
    metadata.write(*CHANGES[1:], at=THEN + 1)
    metadata.write(no_op_record(), at=THEN + MINUTE)
    assert metadata.uncommitted() == texts(NEW, MOVED)
    metadata.write(no_op_record(), at=THEN + MINUTE + 1)
    assert metadata.uncommitted() == set()


def test_before_3_7_a_leader_without_a_majority_goes_on_for_ever(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path, OLD)
    metadata.lead(1, 2, 3)
    metadata.write(*CHANGES, at=THEN)
    metadata.write(no_op_record(), at=THEN + 10 * MINUTE)
    assert metadata.uncommitted() == texts(*CHANGED)


def test_a_new_leader_proves_nothing_of_what_the_last_one_wrote_until_it_has_gone_on_itself(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path)
    metadata.lead(1, 2, 3)
    metadata.write(*CHANGES, at=THEN)
    metadata.lead(1, 2, 3, epoch=3, at=THEN + 10 * MINUTE)
    assert metadata.uncommitted() == texts(*CHANGED)
    metadata.write(no_op_record(), epoch=3, at=THEN + 11 * MINUTE)
    assert metadata.uncommitted() == set()


def test_records_without_a_time_prove_nothing(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path)
    metadata.lead(1, 2, 3, at=0)
    metadata.write(*CHANGES, at=0)
    metadata.write(no_op_record(), at=THEN)
    assert metadata.uncommitted() == texts(*CHANGED)


@pytest.mark.parametrize(("voters", "expected"), [((1,), set()), ((1, 2, 3), texts(*CHANGED)), ((), texts(*CHANGED))])
def test_the_voters_may_stand_beside_the_log(tmp_path: Path, voters: tuple[int, ...], expected: set[str]) -> None:
    metadata = Metadata(tmp_path, OLD)
    metadata.write(*CHANGES)
    (metadata.folder / "quorum-state").write_bytes(quorum_state.encode(QuorumState(2, 1, voters=voters), 0))
    assert metadata.uncommitted() == expected
    (metadata.folder / "quorum-state").write_bytes(b"{")
    assert metadata.uncommitted() == texts(*CHANGED)


def test_the_voters_may_stand_in_the_snapshot(tmp_path: Path) -> None:
    voter = {
        **{"voterId": 1, "voterDirectoryId": TopicId.ZERO, "endpoints": []},
        "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
    }
    metadata = Metadata(tmp_path, OLD, [control_record("VotersRecord", voters=[voter])])
    metadata.write(*CHANGES)
    assert metadata.uncommitted() == set()


def test_a_whole_log_lacks_nothing(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path)
    metadata.lead(1)
    assert metadata.identity().ends_early == ()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda made: made.segment.write_bytes(made.segment.read_bytes()[:-1]), "the log ends there"),
        (lambda made: made.segment.write_bytes(made.segment.read_bytes() + bytes(100)), "zero padding"),
        (lambda made: made.segment.unlink(), "the log after the snapshot is absent"),
        (lambda made: made.segment.rename(made.folder / f"{11:020d}.log"), "begins at offset 11"),
        (lambda made: made.write(begin_transaction()), "has no end"),
        (lambda made: (made.folder / metadata_snapshot_name(99, 2)).write_bytes(b"cut"), "ends at offset 99"),
    ],
)
def test_a_log_that_ends_early_says_so(tmp_path: Path, damage, said: str) -> None:
    metadata = Metadata(tmp_path)
    metadata.lead(1)
    metadata.write(*CHANGES)
    damage(metadata)
    (sentence,) = metadata.identity().ends_early
    assert said in sentence and str(metadata.folder) not in sentence  # whoever tells it names the place


def test_a_damaged_snapshot_takes_nothing_away_where_the_log_goes_on_after_it(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path)
    metadata.lead(1)
    metadata.write(*CHANGES)
    (metadata.folder / metadata_snapshot_name(12, 2)).write_bytes(b"cut")
    identity = metadata.identity()
    assert (identity.ends_early, len(identity.problems)) == ((), 2)  # the snapshot, and a cluster that is not known


def test_a_snapshot_by_itself_lacks_what_came_after_it(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path)
    (snapshot,) = metadata.folder.glob("*.checkpoint")
    (sentence,) = kraft.load(str(snapshot)).identity.ends_early
    assert "was read by itself" in sentence


@pytest.mark.parametrize(("voters", "decides"), [((1,), True), ((1, 2, 3), False), ((2,), False), ((), False)])
def test_a_node_decides_alone_where_it_is_the_only_voter(
    tmp_path: Path, voters: tuple[int, ...], decides: bool
) -> None:
    metadata = Metadata(tmp_path)
    metadata.lead(*voters)
    assert metadata.identity().keeper_decides is False, "nothing says whose disk this is"
    identity = meta_properties.encode(MetaProperties(1, "a cluster", 1), "today")
    (tmp_path / meta_properties.FILE_NAME).write_bytes(identity)
    assert metadata.identity().keeper_decides is decides
    metadata.lead(1, 2, epoch=3)
    assert metadata.identity().keeper_decides is False, "the newest voters count"
