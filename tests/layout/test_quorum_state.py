"""quorum-state, layouts 0 and 1."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import BrokerEffect, DamagedFileError
from layout.ids import DirectoryId
from layout.quorum_state import NO_DIRECTORY_ID, QuorumState, encode, parse

LAYOUT_0 = {
    "clusterId": "",
    "leaderId": 1,
    "leaderEpoch": 2,
    "votedId": -1,
    "appliedOffset": 0,
    "currentVoters": [{"voterId": 1}],
    "data_version": 0,
}
LAYOUT_1 = {"leaderId": -1, "leaderEpoch": 2, "votedId": 1, "votedDirectoryId": "AQ" * 11, "data_version": 1}

NODE_ID = st.integers(0, 2**31 - 1)
STATES = st.builds(
    QuorumState,
    st.integers(-(2**31), 2**31 - 1),
    st.none() | NODE_ID,
    st.none() | NODE_ID,
    st.binary(min_size=16, max_size=16).map(DirectoryId),
    st.lists(NODE_ID, max_size=4).map(tuple),
)


@given(STATES)
def test_layout_0_forgets_the_directory_id_and_nothing_else(state: QuorumState) -> None:
    assert parse(encode(state, 0)) == dataclasses.replace(state, voted_directory_id=NO_DIRECTORY_ID)


@given(STATES)
def test_layout_1_forgets_the_voters_and_nothing_else(state: QuorumState) -> None:
    assert parse(encode(state, 1)) == dataclasses.replace(state, voters=())


def test_only_the_first_line_is_read() -> None:
    data = json.dumps(LAYOUT_0).encode()
    expected = QuorumState(2, leader_id=1, voters=(1,))
    assert parse(data) == parse(data + b"\nanything") == parse(data + b"\r\n{") == expected


def test_further_fields_are_ignored_and_voters_may_be_null() -> None:
    assert parse(json.dumps({**LAYOUT_0, "extra": [1], "currentVoters": None}).encode()) == QuorumState(2, leader_id=1)


@pytest.mark.parametrize("layout", [LAYOUT_0, LAYOUT_1])
def test_every_field_of_a_layout_is_mandatory(layout: dict[str, object]) -> None:
    for key in layout:
        with pytest.raises(DamagedFileError, match=key):
            parse(json.dumps({name: value for name, value in layout.items() if name != key}).encode())


@pytest.mark.parametrize(
    ("layout", "change"),
    [
        (LAYOUT_0, {"leaderId": "1"}),
        (LAYOUT_0, {"leaderEpoch": 2**31}),
        (LAYOUT_0, {"votedId": True}),
        (LAYOUT_0, {"clusterId": None}),
        (LAYOUT_0, {"appliedOffset": 0.5}),
        (LAYOUT_0, {"currentVoters": {}}),
        (LAYOUT_0, {"currentVoters": [1]}),
        (LAYOUT_0, {"currentVoters": [{}]}),
        (LAYOUT_0, {"currentVoters": [{"voterId": "1"}]}),
        (LAYOUT_1, {"votedDirectoryId": "short"}),
        (LAYOUT_1, {"votedDirectoryId": None}),
        (LAYOUT_0, {"data_version": 2}),
        (LAYOUT_0, {"data_version": -1}),
        (LAYOUT_0, {"data_version": True}),
    ],
)
def test_a_field_of_another_type_or_an_unknown_layout_is_damage(
    layout: dict[str, object], change: dict[str, object]
) -> None:
    with pytest.raises(DamagedFileError, match=next(iter(change))) as raised:
        parse(json.dumps({**layout, **change}).encode())
    assert raised.value.effect is BrokerEffect.STARTUP_ABORTS


def test_all_reasons_come_at_once() -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse(b'{"data_version": 1}')
    assert raised.value.problem.count(": missing") == 4


@pytest.mark.parametrize("data", [b"", b"\n{}", b"[]", b"{", b"\xff"])
def test_a_first_line_that_is_no_object_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedFileError):
        parse(data)


@given(
    st.binary(max_size=40)
    | st.dictionaries(st.sampled_from(list(LAYOUT_0)), st.integers() | st.none()).map(
        lambda fields: json.dumps({"data_version": 0, **fields}).encode()
    )
)
def test_any_bytes_give_a_state_or_our_own_error(data: bytes) -> None:
    try:
        state = parse(data)
    except DamagedFileError:
        return
    assert state.leader_id != -1
