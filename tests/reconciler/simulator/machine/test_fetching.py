"""Followers cut off records that the leader never had, fetch, and continue after errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logstore import KafkaError
from reconciler.simulator.kernel import (
    Answer,
    EpochEndRequest,
    EpochEndResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    Record,
    Request,
)
from tests.reconciler.simulator.machine.brokers import ORDERS, A, B, Brokers


class Leader:
    """Broker 3 as somebody else plays it: it answers as instructed, and notes what it was asked."""

    def __init__(self, brokers: Brokers) -> None:
        self.asked: list[Request] = []
        self.answers: list[object] = []
        brokers.world.network.serve("broker-3", self.serve)

    def serve(self, sender: str, request: Request, answer: Answer) -> None:
        self.asked.append(request)
        if self.answers:
            answer(self.answers.pop(0))  # type: ignore[arg-type]

    def offsets(self) -> list[int]:
        return [each.offset for each in self.asked if isinstance(each, FetchRequest)]


def records(*epochs: int) -> tuple[Record, ...]:
    return tuple(Record(offset, epoch, A, f"v{offset}") for offset, epoch in enumerate(epochs))


def test_a_new_follower_cuts_off_what_only_the_old_leader_had(brokers: Brokers) -> None:
    """KIP-101: 1 wrote c alone, 2 was elected and wrote d; 1 comes back."""
    brokers.lead(1)
    brokers.produce(1, "a", "b")
    brokers.run()
    brokers.lead(1, 1, to=(1,), isr=(1,))
    assert brokers.produce(1, "c") == [2]
    brokers.lead(2, 2, to=(2, 3), isr=(2, 3))
    assert brokers.produce(2, "d") == [2]
    brokers.lead(2, 2, to=(1,), isr=(2, 3))
    brokers.run(8_000)
    assert brokers.values(1) == brokers.values(2) == brokers.values(3) == ["a", "b", "d"]
    assert brokers.said("orders-0 is cut off from 3 to 2")
    assert [record.leader_epoch for record in brokers.partition(1).log.read(0, 9)] == [0, 0, 2]


def test_logs_that_parted_in_several_epochs_come_together_step_by_step(brokers: Brokers) -> None:
    """KIP-279: the leader has epochs 0 and 2, the follower 0, 1 and 3: what 3 and 1 wrote goes."""
    brokers.lead(2, 0, to=(1, 2))
    brokers.produce(2, "a", wait_ms=100)
    brokers.run()
    brokers.lead(1, 1, to=(1,), isr=(1,))
    brokers.produce(1, "b")
    brokers.lead(2, 2, to=(2,), isr=(2,))
    brokers.produce(2, "x", "y", "z")
    brokers.lead(1, 3, to=(1,), isr=(1,))
    brokers.produce(1, "c", "d")
    brokers.lead(2, 4, to=(1, 2), isr=(2,))
    brokers.run(8_000)
    assert brokers.values(1) == brokers.values(2) == ["a", "x", "y", "z"]


def test_it_asks_where_the_logs_part_before_it_fetches_and_an_empty_log_does_not_ask(brokers: Brokers) -> None:
    leader = Leader(brokers)
    brokers.lead(3, 1, to=(2,))
    leader.answers = []
    brokers.run(100)
    assert [type(each) for each in leader.asked] == [FetchRequest]
    brokers.partition(2).log.append(records(0, 1))
    brokers.lead(3, 2, to=(2,))
    brokers.run(100)
    assert leader.asked[-1] == EpochEndRequest(ORDERS, A, 2, 1)


def test_one_request_at_a_time_with_all_that_it_has(brokers: Brokers) -> None:
    leader = Leader(brokers)
    leader.answers = [FetchResponse(KafkaError.NONE, records(0, 0), 1, 2)]
    brokers.lead(3, to=(2,))
    brokers.run(5_000)
    assert leader.offsets() == [0, 2]
    assert (brokers.values(2), brokers.partition(2).high_watermark) == (["v0", "v1"], 1)


def test_records_that_it_has_already_are_passed_over_and_a_gap_is_not_filled(brokers: Brokers) -> None:
    leader = Leader(brokers)
    three = records(0, 0, 0, 0)
    leader.answers = [
        FetchResponse(KafkaError.NONE, three[:2], 0, 2),
        FetchResponse(KafkaError.NONE, three[1:3], 0, 3),
        FetchResponse(KafkaError.NONE, (Record(5, 0, A, "far"),), 9, 6),
    ]
    brokers.lead(3, to=(2,))
    brokers.run(5_000)
    assert brokers.values(2) == ["v0", "v1", "v2"]
    assert brokers.partition(2).high_watermark == 3


# KIP37-5
def test_a_follower_begins_where_the_leader_has_deleted_all_before(brokers: Brokers) -> None:
    leader = Leader(brokers)
    seven = tuple(Record(7 + number, 0, A, f"v{7 + number}") for number in range(2))
    leader.answers = [
        FetchResponse(KafkaError.NONE, records(0, 0), 2, 2),
        FetchResponse(KafkaError.OFFSET_OUT_OF_RANGE, (), 9, 9, 7),
        FetchResponse(KafkaError.NONE, seven, 9, 9, 7),
        FetchResponse(KafkaError.NONE, (), 9, 9, 8),
    ]
    brokers.lead(3, to=(2,))
    brokers.run(10_000)
    assert leader.offsets()[:4] == [0, 2, 7, 9]
    log = brokers.partition(2).log
    assert (log.start, log.end, brokers.values(2)) == (8, 9, ["v8"])


def test_the_records_that_retention_deletes_go_on_every_broker_and_new_followers_get_the_rest(
    make_brokers: Callable[..., Brokers],
) -> None:
    brokers = make_brokers(retention_ms=50_000, purge_ms=10_000)
    brokers.lead(1, to=(1, 2), isr=(1, 2))
    brokers.produce(1, "a", "b")
    brokers.run(30_000)
    brokers.produce(1, "c")
    brokers.run(40_000)
    assert [brokers.values(node_id) for node_id in (1, 2)] == [["c"], ["c"]]
    assert brokers.fetch(1).error is KafkaError.OFFSET_OUT_OF_RANGE
    assert brokers.ask(1, ListOffsetsRequest(ORDERS, A)).start == 2
    brokers.lead(1, to=(3,), isr=(1, 2))
    brokers.run(5_000)
    assert brokers.values(3) == ["c"]
    brokers.run(60_000)
    assert [brokers.values(node_id) for node_id in (1, 2, 3)] == [[], [], []]
    brokers.crash(1)
    brokers.of[1].start()
    brokers.lead(1, 1, isr=(1, 2))
    assert brokers.produce(1, "d", wait_ms=5_000) == [3]
    assert brokers.values(3) == ["d"]


def test_records_that_are_not_committed_stay_however_old_they_are(make_brokers: Callable[..., Brokers]) -> None:
    brokers = make_brokers(retention_ms=1, purge_ms=5_000, replica_lag_ms=10_000_000, request_timeout_ms=60_000)
    brokers.lead(1, to=(1,), isr=(1, 2))
    brokers.produce(1, "a")
    brokers.run(20_000)
    assert brokers.values(1) == ["a"]


# KIP516-8
@pytest.mark.parametrize(
    "error",
    [
        KafkaError.INCONSISTENT_TOPIC_ID,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.NOT_LEADER_OR_FOLLOWER,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
    ],
)
def test_after_an_error_it_waits_and_asks_again(brokers: Brokers, error: KafkaError) -> None:
    leader = Leader(brokers)
    leader.answers = [FetchResponse(error)]
    begun = brokers.world.now_ms
    brokers.lead(3, to=(2,))
    while len(leader.asked) < 2 and brokers.world.now_ms < begun + 60_000:
        brokers.run(10)
    assert leader.offsets() == [0, 0]
    assert brokers.world.now_ms - begun >= brokers.settings.backoff_ms


def test_a_follower_with_an_older_epoch_waits_for_the_controller(brokers: Brokers) -> None:
    leader = Leader(brokers)
    leader.answers = [FetchResponse(KafkaError.FENCED_LEADER_EPOCH)]
    brokers.lead(3, to=(2,))
    brokers.run(20_000)
    assert len(leader.asked) == 1
    brokers.lead(3, 1, to=(2,))
    assert len(leader.asked) == 2


def test_a_leader_that_cannot_be_reached_is_asked_again(brokers: Brokers) -> None:
    brokers.crash(3)
    brokers.lead(3, to=(1, 2))
    brokers.run(3_000)
    brokers.of[3].start()
    brokers.lead(3, to=(3,))
    brokers.produce(3, "a", wait_ms=5_000)
    assert brokers.values(2) == ["a"]


def test_an_answer_from_an_earlier_role_is_passed_over(brokers: Brokers) -> None:
    held: list[Answer] = []
    brokers.world.network.serve("broker-3", lambda sender, request, answer: held.append(answer))
    brokers.lead(3, to=(2,))
    brokers.run(100)
    brokers.lead(-1, 1, to=(2,))
    held[0](FetchResponse(KafkaError.NONE, records(0), 1, 1))
    brokers.run(5_000)
    assert brokers.values(2) == []
    assert len(held) == 1


def test_a_log_that_goes_on_behind_the_leaders_is_cut_off_there(brokers: Brokers) -> None:
    leader = Leader(brokers)
    leader.answers = [
        FetchResponse(KafkaError.NONE, records(0, 0, 0), 0, 3),
        FetchResponse(KafkaError.OFFSET_OUT_OF_RANGE, (), 1, 1),
    ]
    brokers.lead(3, to=(2,))
    brokers.run(5_000)
    assert brokers.values(2) == ["v0"]
    assert isinstance(leader.asked[-1], EpochEndRequest)


def test_where_the_leader_knows_of_no_such_epoch_only_what_is_committed_stays(brokers: Brokers) -> None:
    leader = Leader(brokers)
    leader.answers = [FetchResponse(KafkaError.NONE, records(0, 0, 4), 1, 3)]
    brokers.lead(3, to=(2,))
    brokers.run(100)
    leader.answers = [EpochEndResponse(KafkaError.NONE)]
    brokers.lead(3, 1, to=(2,))
    brokers.run(100)
    assert brokers.values(2) == ["v0"]
    assert leader.offsets()[-1] == 1


# KIP516-8
def test_a_follower_of_a_topic_that_was_made_anew_gets_none_of_the_new_records(brokers: Brokers) -> None:
    """The scenario "Stale reads" of the proposal."""
    brokers.lead(1, to=(1, 2))
    brokers.produce(1, "old", wait_ms=100)
    brokers.run()
    brokers.lead(1, 1, to=(1,), topic_id=B, isr=(1,))
    assert brokers.produce(1, "new", topic_id=B) == [0]
    brokers.run(8_000)
    assert brokers.values(2) == ["old"]
    assert brokers.ask(1, FetchRequest(2, ORDERS, A, 0, 0)).error is KafkaError.INCONSISTENT_TOPIC_ID


def test_a_full_disk_holds_a_follower_up_until_there_is_room(brokers: Brokers) -> None:
    brokers.lead(1)
    brokers.disks[2].fill(0)
    brokers.produce(1, "a", wait_ms=100)
    brokers.run()
    assert (brokers.values(2), brokers.values(3)) == ([], ["a"])
    brokers.disks[2].make_room(0)
    brokers.run()
    assert brokers.values(2) == ["a"]
