"""LeaderAndIsr requests as JSON: the shapes that are read, and every reason for those that are not (KIP516-4)."""

from __future__ import annotations

import copy
import gc
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler.desired import Completeness
from reconciler.errors import SHOWN_REASONS, InvalidRequestError, MetadataError, UsageError
from reconciler.protocol import MAX_PARTITIONS, LeaderAndIsrRequest, LiveLeader, PartitionState, RequestType, TopicState
from reconciler.sources import request_files, request_json

ID = TopicId.parse("b8tRS7h4TJ2Vt43Dp85v2A")

SHIPPED: dict[str, Any] = {
    "controllerId": 1000,
    "isKRaftController": True,
    "controllerEpoch": 3,
    "brokerEpoch": 2**40,
    "type": 2,
    "topicStates": [
        {
            "topicName": "foo",
            "topicId": str(ID),
            "partitionStates": [
                {
                    "partitionIndex": 0,
                    "controllerEpoch": 3,
                    "leader": 1,
                    "leaderEpoch": 5,
                    "isr": [1, 2],
                    "partitionEpoch": 9,
                    "replicas": [1, 2, 3],
                    "addingReplicas": [3],
                    "removingReplicas": [],
                    "isNew": True,
                    "leaderRecoveryState": 1,
                }
            ],
        }
    ],
    "liveLeaders": [{"brokerId": 1, "hostName": "host1", "port": 9092}],
}

PROPOSED: dict[str, Any] = {
    "controller_id": 1000,
    "controller_epoch": 3,
    "broker_epoch": 2**40,
    "type": "FULL",
    "topic_states": [
        {
            "topic": "foo",
            "topic_id": str(ID),
            "partition_states": [
                {
                    "partition": 0,
                    "controller_epoch": 3,
                    "leader": 1,
                    "leader_epoch": 5,
                    "isr": [1, 2],
                    "zk_version": 9,
                    "replicas": [1, 2, 3],
                    "is_new": True,
                }
            ],
        }
    ],
    "live_leaders": [{"id": 1, "host": "host1", "port": 9092}],
}


def parse(document: object) -> LeaderAndIsrRequest:
    return request_json.parse(json.dumps(document).encode(), "r.json")


def reasons(document: object) -> tuple[str, ...]:
    with pytest.raises(InvalidRequestError) as caught:
        parse(document)
    return caught.value.reasons


def changed(**values: Any) -> dict[str, Any]:
    """SHIPPED with fields of its one partition replaced; ``...`` takes a field out."""
    document = copy.deepcopy(SHIPPED)
    state = document["topicStates"][0]["partitionStates"][0]
    for name, value in values.items():
        if value is ...:
            del state[name]
        else:
            state[name] = value
    return document


def test_the_shipped_shape_is_read_whole() -> None:
    state = PartitionState(0, 3, 1, 5, (1, 2), 9, (1, 2, 3), (3,), (), True, 1)
    topics = (TopicState("foo", ID, (state,)),)
    leaders = (LiveLeader(1, "host1", 9092),)
    assert parse(SHIPPED) == LeaderAndIsrRequest(1000, 3, topics, 2**40, RequestType.FULL, True, leaders)


def test_the_shape_of_the_proposal_is_read_whole() -> None:
    state = PartitionState(0, 3, 1, 5, (1, 2), 9, (1, 2, 3), is_new=True)
    topics = (TopicState("foo", ID, (state,)),)
    leaders = (LiveLeader(1, "host1", 9092),)
    assert parse(PROPOSED) == LeaderAndIsrRequest(1000, 3, topics, 2**40, RequestType.FULL, False, leaders)


@pytest.mark.shared
def test_every_golden_request_is_read_as_kafka_wrote_it(shared: Path) -> None:
    vectors = json.loads((shared / "kafka/golden/control_requests_and_replica_assignment.json").read_bytes())
    golden = [vector["input"] for vector in vectors if vector["kind"] == "LeaderAndIsrRequest"]
    assert [vector["version"] for vector in golden] == [0, 1, 2, 5, 6, 7]
    for vector in golden:
        version, request = vector["version"], request_json.parse(vector["json"].encode(), "golden")
        (topic,) = request.topics
        (state,) = topic.partitions
        assert (request.controller_id, request.controller_epoch) == (1000, 3)
        assert request.broker_epoch == (77 if version >= 2 else -1)
        assert request.type is (RequestType.FULL if version >= 5 else RequestType.UNSPECIFIED)
        assert request.is_kraft_controller is (version >= 7)
        assert (topic.topic, topic.topic_id is not None) == ("foo", version >= 5)
        assert (state.isr, state.replicas, state.partition_epoch) == ((1, 2), (1, 2, 3), 9)
        assert state.adding == ((3,) if version >= 5 else ())
        assert state.is_new is (version >= 1)
        assert state.leader_recovery_state == (1 if version >= 6 else 0)


def test_the_wrapper_of_a_request_log_is_taken_off() -> None:
    assert parse({"requestHeader": {"requestApiKey": 4}, "request": SHIPPED}) == parse(SHIPPED)


def test_another_request_in_a_request_log_is_refused() -> None:
    found = reasons({"requestHeader": {"requestApiKey": 5}, "request": SHIPPED})
    assert found == ("requestHeader.requestApiKey: expected 4 for LeaderAndIsr, found 5",)


@pytest.mark.parametrize(
    ("value", "kind"), [(0, 0), (1, 1), (2, 2), (9, 0), ("INCREMENTAL", 1), ("UNSPECIFIED", 0), ("UNKNOWN", 0)]
)
def test_the_type_is_a_number_or_a_name(value: object, kind: int) -> None:
    assert parse({**SHIPPED, "type": value}).type == kind


@pytest.mark.parametrize("value", ["Full", True, 2.0, None, []])
def test_a_type_that_is_neither_is_refused(value: object) -> None:
    (reason,) = reasons({**SHIPPED, "type": value})
    assert reason.startswith("type: expected")


@pytest.mark.parametrize("text", ["AAAAAAAAAAAAAAAAAAAAAA", None])
def test_a_zero_or_absent_topic_id_is_none(text: str | None) -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"][0]["topicId"] = text
    assert parse(document).topics[0].topic_id is None


@pytest.mark.parametrize("text", ["short", "", 7, []])
def test_a_malformed_topic_id_is_refused(text: object) -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"][0]["topicId"] = text
    (reason,) = reasons(document)
    assert reason.startswith("topicStates[0].topicId: expected a topic ID")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"leader": "x"}, 'leader: expected an integer, found "x"'),
        ({"leader": True}, "leader: expected an integer, found true"),
        ({"leader": 1.0}, "leader: expected an integer, found 1.0"),
        ({"leader": 2**31}, "leader: expected an integer from -2147483648 to 2147483647, found 2147483648"),
        ({"leaderEpoch": None}, "leaderEpoch: expected an integer, found null"),
        ({"partitionIndex": -1}, "partitionIndex: expected an integer from 0 to 2147483647, found -1"),
        ({"replicas": [1, 1]}, "replicas: expected distinct broker ids, found [1,1]"),
        ({"replicas": [1, -2]}, "replicas[1]: expected a broker id, found -2"),
        ({"isr": {}}, "isr: expected an array, found an object"),
        ({"isNew": 1}, "isNew: expected true or false, found 1"),
        ({"replicas": ...}, "replicas: missing"),
        ({"partitionEpoch": ...}, "partitionEpoch: missing"),
    ],
)
def test_a_wrong_field_of_a_partition_is_a_reason_with_its_place(values: dict[str, Any], reason: str) -> None:
    assert reasons(changed(**values)) == (f"topicStates[0].partitionStates[0].{reason}",)


def test_all_reasons_come_at_once() -> None:
    document = changed(leader="x", isr=7)
    document["controllerId"] = False
    document["liveLeaders"] = [{}]
    assert reasons(document) == (
        "controllerId: expected an integer, found false",
        'topicStates[0].partitionStates[0].leader: expected an integer, found "x"',
        "topicStates[0].partitionStates[0].isr: expected an array, found 7",
        "liveLeaders[0].brokerId: missing",
        "liveLeaders[0].hostName: missing",
        "liveLeaders[0].port: missing",
    )


def test_a_message_lists_the_first_reasons_and_counts_the_rest_which_are_kept() -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"] = [7] * 50
    with pytest.raises(InvalidRequestError, match=f"; and {50 - SHOWN_REASONS} more$") as caught:
        parse(document)
    assert len(caught.value.reasons) == 50


def test_a_name_that_no_topic_can_have_is_refused() -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"][0]["topicName"] = "../orders"
    (reason,) = reasons(document)
    assert reason.startswith("topicStates[0].topicName: '../orders' is no topic name")


# KIP37-1
def test_a_topic_of_a_namespace_is_read_under_its_full_name() -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"][0]["topicName"] = "org:apache:orders"
    assert parse(document).topics[0].topic == "org:apache:orders"


def test_a_partition_that_is_there_twice_is_refused() -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"][0]["partitionStates"] *= 2
    assert reasons(document) == ("topicStates[0].partitionStates[1]: foo-0 is there twice",)


def test_a_topic_that_is_there_twice_is_one_topic_unless_its_ids_differ() -> None:
    document = copy.deepcopy(SHIPPED)
    again = copy.deepcopy(document["topicStates"][0])
    again["partitionStates"][0]["partitionIndex"] = 1
    document["topicStates"].append(again)
    (topic,) = parse(document).topics
    assert [state.partition for state in topic.partitions] == [0, 1]
    again["topicId"] = str(TopicId.from_halves(4, 4))
    (reason,) = reasons(document)
    assert reason.startswith(f"topicStates[1].topicId: expected the ID that foo has before, {ID}")


def test_two_topics_with_one_id_are_refused() -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"].append({**document["topicStates"][0], "topicName": "bar"})
    (reason,) = reasons(document)
    assert reason == f"topic ID {ID}: expected of one topic, found of foo and bar"


@pytest.mark.parametrize("document", [[], 7, "x", None])
def test_a_document_that_is_no_object_is_refused(document: object) -> None:
    (reason,) = reasons(document)
    assert reason.startswith("the document: expected an object")


def test_a_document_without_topics_is_refused() -> None:
    assert reasons({"controllerId": 1, "controllerEpoch": 1}) == ("topicStates: missing",)


@pytest.mark.parametrize(("data", "said"), [(b"", "the file is empty"), (b"{", "no JSON"), (b"\xff", "no JSON")])
def test_what_is_no_json_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        request_json.parse(data, "r.json")


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="no JSON"):
        request_json.parse(b'{"topicStates":' + b"[" * 100_000, "r.json")


def write(path: Path, document: object) -> str:
    path.write_text(json.dumps(document))
    return str(path)


def test_the_receiver_may_be_named_behind_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", SHIPPED)
    state = request_json.load(f"{path}@3")
    assert state.identity.scope == {3}
    assert state.identity.completeness is Completeness.FULL
    assert state.identity.location == f"{path}@3"
    assert state.identity.digest == hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_a_file_whose_own_name_ends_like_a_receiver_is_meant_as_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json@7", changed(replicas=[2]))
    assert request_json.load(path).identity.scope == {2}


def test_an_ambiguous_receiver_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"any of brokers 1, 2, 3: .*request:.*r.json@1"):
        request_json.load(write(tmp_path / "r.json", SHIPPED))


def test_the_digest_of_several_files_is_that_of_their_bytes_in_order(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{node}.json", changed(replicas=[node])) for node in (1, 2)]
    state = request_json.load_all(paths, "requests")
    assert state.identity.digest == hashlib.sha256(b"".join(Path(path).read_bytes() for path in paths)).hexdigest()
    assert state.identity.scope == {1, 2}


def test_absent_and_strange_paths_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        request_json.load(str(tmp_path / "absent.json"))
    with pytest.raises(UsageError, match="is not a file"):
        request_json.load(str(tmp_path))


def test_a_file_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_files, "MAX_REQUEST_BYTES", 100)
    with pytest.raises(MetadataError, match="longer than 100 bytes"):
        request_json.load(write(tmp_path / "r.json", SHIPPED))


def test_a_file_that_may_not_be_opened_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "r.json", SHIPPED)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(MetadataError, match="cannot be read: Permission denied"):
        request_json.load(path)


def test_more_than_a_request_can_hold_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_bytes(b"{" * (MAX_PARTITIONS + 100_001))  # no JSON, and nobody got as far as to notice
    with pytest.raises(InvalidRequestError, match="it has more in it than 1000000 partitions"):
        request_json.load(str(path))


def test_the_garbage_collector_runs_again_afterwards(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError):
        request_json.load(write(tmp_path / "r.json", []))
    assert gc.isenabled()


def test_requests_are_recognised_by_their_first_words(tmp_path: Path) -> None:
    write(tmp_path / "r.json", [])
    write(tmp_path / "named", SHIPPED)
    write(tmp_path / "proposed", PROPOSED)
    write(tmp_path / "other", {"a": 1})
    (tmp_path / "text").write_text("controllerId")
    found = [path.name for path in sorted(tmp_path.iterdir()) if request_json.recognises(str(path))]
    assert found == ["named", "proposed"]
    assert not request_json.recognises(str(tmp_path))


SCALARS = st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False) | st.text(max_size=23)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


@given(st.sampled_from([SHIPPED, PROPOSED]), st.data(), ANYTHING)
def test_any_value_in_any_place_gives_a_request_or_its_reasons(
    base: dict[str, Any], data: st.DataObject, value: object
) -> None:
    document: Any = copy.deepcopy(base)
    place = data.draw(st.sampled_from(places(base)))
    if not place:
        document = value
    else:
        owner = document
        for step in place[:-1]:
            owner = owner[step]
        owner[place[-1]] = value
    try:
        assert isinstance(parse(document), LeaderAndIsrRequest)
    except InvalidRequestError as error:
        assert error.reasons


@given(st.binary(max_size=80))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequestError):
        request_json.parse(data, "r.json")
