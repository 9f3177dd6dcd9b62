"""Every reason why a request is not valid; the broker's tests have the messages for whole requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.errors import InvalidRequestError
from reconciler.protocol import MAX_PARTITIONS, StopPartition, StopTopic, TopicState, check_extent, check_request
from reconciler.protocol.check import reasons
from tests.reconciler.protocol.control_requests import FULL, A, B, leader_and_isr, state, stop_replica, topic


def test_a_good_request_has_no_reasons() -> None:
    request = leader_and_isr(FULL, topic("a", A, 0, 2147483647), topic("b", None), topic("org:c", B, 0))
    assert reasons(request) == []
    check_request(request, "here")
    assert reasons(leader_and_isr(FULL)) == reasons(stop_replica("a", 0, 1, epoch=-2)) == []
    assert reasons(leader_and_isr(FULL, topic("a", A, state(0, leader=-1, replicas=())))) == []


def test_text_of_the_longest_request_may_be_parsed_and_any_longer_one_may_not() -> None:
    longest = b"{" * (MAX_PARTITIONS + 100_000) + b"," * (40 * MAX_PARTITIONS)
    check_extent(longest, "here")
    for more in (b"{", b","):
        with pytest.raises(InvalidRequestError, match="here"):
            check_extent(longest + more, "here")


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "a/b", "org::x", "../../etc", "ü"])
def test_a_name_that_is_no_topic_is_a_reason(name: str) -> None:
    assert len(reasons(leader_and_isr(FULL, topic(name, A, 0)))) == 1
    assert len(reasons(stop_replica(name))) == 1


@pytest.mark.parametrize("number", [-1, -(2**31), 2**31, 2**63])
def test_a_number_that_is_no_partition_is_a_reason(number: int) -> None:
    assert len(reasons(leader_and_isr(FULL, topic("a", A, 0, number)))) == 1
    assert len(reasons(stop_replica("a", number))) == 1


@pytest.mark.parametrize("field", ["replicas", "isr", "adding", "removing"])
@pytest.mark.parametrize("brokers", [(-1,), (1, 1), (2**31,)])
def test_a_list_that_is_none_of_brokers_is_a_reason_each_time(field: str, brokers: tuple[int, ...]) -> None:
    bad = [replace(state(number), **{field: brokers}) for number in (0, 1)]
    found = reasons(leader_and_isr(FULL, topic("a", A, *bad), topic("b", B, bad[0])))
    assert [each.split(" are ")[0] for each in found] == [f"a-0: {field}", f"a-1: {field}", f"b-0: {field}"]


def test_a_topic_that_is_named_twice_is_a_reason() -> None:
    assert reasons(leader_and_isr(FULL, topic("a", A, 0), topic("a", A, 1))) == ["topic 'a' is there 2 times"]


def test_one_topic_id_of_two_topics_is_a_reason() -> None:
    (reason,) = reasons(leader_and_isr(FULL, topic("a", A, 0), topic("b", A, 0)))
    assert "found of 'a' and 'b'" in reason


def test_too_many_are_counted_and_not_looked_at() -> None:
    bad = TopicState("a", A, (state(-1),) * (MAX_PARTITIONS + 1))
    (reason,) = reasons(leader_and_isr(FULL, bad))
    assert str(MAX_PARTITIONS) in reason
    (reason,) = reasons(leader_and_isr(FULL, *[TopicState("", None, ())] * (MAX_PARTITIONS + 1)))
    assert str(MAX_PARTITIONS) in reason


def test_the_message_says_what_it_should_have_been() -> None:
    with pytest.raises(InvalidRequestError, match=r"^x is not a LeaderAndIsr request: "):
        check_request(leader_and_isr(FULL, topic("", A)), "x")
    stopped = replace(stop_replica(), topics=(StopTopic("a", None, (StopPartition(0), StopPartition(0))),))
    with pytest.raises(InvalidRequestError, match=r"^y is not a StopReplica request: partition 0 of topic 'a'"):
        check_request(stopped, "y")
