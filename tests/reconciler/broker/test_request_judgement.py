"""The verdicts on the replicas of a request, without a disk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.store import Entry, replica_of
from reconciler.broker import DiskSnapshot, Judged, PartitionKey, judge
from reconciler.broker.judgement import OfflineReplica
from reconciler.protocol import LeaderAndIsrRequest, RequestType
from reconciler.verdicts import Verdict
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    OTHERS,
    UNSPECIFIED,
    A,
    B,
    C,
    leader_and_isr,
    state,
    topic,
)


def entry(topic_id: TopicId | None, *, log_dir: str = "/one", kept: str | None = None) -> Entry:
    text = None if topic_id is None else str(topic_id)
    return Entry(log_dir, "somewhere", text, kept or ("missing" if text is None else "ok"), 1)


def present(
    entries: dict[PartitionKey, Entry],
    *,
    duplicates: frozenset[PartitionKey] = frozenset(),
    offline: frozenset[str] = frozenset(),
) -> DiskSnapshot:
    names = {each.topic_id: (key[0],) for key, each in entries.items() if each.topic_id is not None}
    copies = [replica_of(TopicPartition(*key), entries[key]) for key in duplicates]
    return DiskSnapshot(entries, copies, offline, names)


def verdicts(request: LeaderAndIsrRequest, here: DiskSnapshot) -> tuple[list[object], dict[PartitionKey, Verdict]]:
    found = judge(request, 1, here)
    named = [each.verdict if isinstance(each, Judged) else each for each in found.named]
    return named, {key: each.verdict for key, each in found.others}


def test_each_partition_of_a_request_gets_its_verdict_in_order() -> None:
    here = {("a", 0): entry(A), ("a", 1): entry(B), ("a", 2): entry(None), ("b", 7): entry(B, kept="malformed")}
    request = leader_and_isr(
        INCREMENTAL,
        topic("a", A, 0, 1, 2, 3, state(4, replicas=OTHERS)),
        topic("b", None, 7, state(8)),
    )
    named, others = verdicts(request, present(here))
    assert named == [
        *(Verdict.OK, Verdict.STALE_ID, Verdict.NO_ID, Verdict.MISSING, None),
        *(Verdict.DAMAGED, Verdict.MISSING),
    ]
    assert others == {}


def test_a_full_request_speaks_of_everything_else_too() -> None:
    here = {("a", 0): entry(A), ("a", 9): entry(A), ("a", 8): entry(B), ("z", 0): entry(B), ("y", 0): entry(None)}
    named, others = verdicts(leader_and_isr(FULL, topic("a", A, 0)), present(here))
    assert named == [Verdict.OK]
    assert others == {
        ("a", 9): Verdict.NOT_ASSIGNED,
        ("a", 8): Verdict.STALE_ID,
        ("z", 0): Verdict.UNKNOWN_TOPIC,
        ("y", 0): Verdict.UNKNOWN_TOPIC,
    }


@pytest.mark.parametrize("kind", [INCREMENTAL, UNSPECIFIED])
def test_the_others_speak_of_nothing_but_what_they_name_by_name_or_by_id(kind: RequestType) -> None:
    here = {("a", 0): entry(A), ("a", 9): entry(A), ("z", 0): entry(B)}
    assert verdicts(leader_and_isr(kind, topic("a", A, 0)), present(here)) == ([Verdict.OK], {})
    named, others = verdicts(leader_and_isr(kind, topic("new", B, 0, 1)), present(here))
    assert named == [Verdict.MISSING, Verdict.MISSING]
    assert others == {("z", 0): Verdict.RENAMED}


@pytest.mark.parametrize("kind", [INCREMENTAL, UNSPECIFIED])
def test_under_a_former_name_nothing_of_another_topic_is_spoken_of(kind: RequestType) -> None:
    here = {("z", 0): entry(A), ("z", 1): entry(B)}
    asked = leader_and_isr(kind, topic("new", B, 0, 1), topic("z", C, 2))
    assert verdicts(asked, present(here))[1] == {("z", 1): Verdict.RENAMED}


def test_what_lies_on_an_offline_disk_is_not_judged() -> None:
    here = {("a", 0): entry(A, log_dir="/dead"), ("z", 0): entry(B, log_dir="/dead")}
    found = judge(leader_and_isr(FULL, topic("a", B, 0)), 1, present(here, offline=frozenset({"/dead"})))
    assert found.named == [OfflineReplica("/dead")] and found.others == []


def test_what_lives_twice_is_a_duplicate_wherever_it_is_named() -> None:
    here = {("a", 0): entry(A), ("z", 0): entry(B)}
    duplicates = frozenset({("a", 0), ("z", 0)})
    named, others = verdicts(leader_and_isr(FULL, topic("a", A, 0)), present(here, duplicates=duplicates))
    assert named == [Verdict.DUPLICATE] and others == {("z", 0): Verdict.DUPLICATE}


@pytest.mark.parametrize("side", ["adding", "removing"])
def test_a_reassignment_does_not_put_off_what_it_is_about(side: str) -> None:
    moving = replace(state(0, replicas=OTHERS), **{side: (1,)})
    request = leader_and_isr(FULL, topic("a", B, moving))
    assert verdicts(request, present({("a", 0): entry(None)}))[0] == [Verdict.NO_ID]
    assert verdicts(request, present({("a", 0): entry(A)}))[0] == [Verdict.STALE_ID]
    assert verdicts(request, present({}))[0] == [Verdict.MISSING]


def test_the_evidence_names_both_ids() -> None:
    found = judge(leader_and_isr(FULL, topic("a", B, 0)), 1, present({("a", 0): entry(A)}))
    (judged,) = found.named
    assert isinstance(judged, Judged)
    assert judged.evidence == f"the disk holds topic ID {A}; topic a was re-created, and is wanted here, as {B}"


def test_one_row_serves_all_replicas_that_are_alike() -> None:
    here = {("a", number): entry(A) for number in range(50)} | {("z", number): entry(B) for number in range(50)}
    found = judge(leader_and_isr(FULL, topic("a", A, *range(50))), 1, present(here))
    assert len({id(each) for each in found.named}) == 1
    assert len({id(each) for _, each in found.others}) == 1
