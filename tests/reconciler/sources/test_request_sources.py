"""LeaderAndIsr requests as a desired state, from JSON and from bytes: receivers, merging, and refused files."""

from __future__ import annotations

import gc
import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from layout.topic import METADATA_TOPIC
from reconciler.desired import Completeness, DesiredState
from reconciler.errors import InvalidRequestError, MetadataError, UsageError
from reconciler.protocol import (
    MAX_PARTITIONS,
    LeaderAndIsrRequest,
    PartitionState,
    RequestType,
    TopicState,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
    UpdateMetadataTopic,
)
from reconciler.protocol.messages import encode_request, tree
from reconciler.sources import files, load
from reconciler.sources.requests import (
    ReceivedRequest,
    is_json_request,
    is_wire_request,
    load_json,
    load_requests,
    load_wire,
    merge,
    parse_wire,
    receiver,
    split_receiver,
)
from tests.reconciler.protocol.control_requests import FULL, INCREMENTAL, A, B, leader_and_isr, stop_replica, topic
from tests.reconciler.protocol.json_requests import PROPOSED, SHIPPED, changed


def partition(index: int, replicas: tuple[int, ...], **more: Any) -> PartitionState:
    return PartitionState(index, 1, replicas[0], 5, replicas, 9, replicas, **more)


def request(*topics: TopicState, kind: RequestType = RequestType.FULL, epoch: int = 3) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(1, epoch, topics, type=kind)


def merged(*requests: tuple[LeaderAndIsrRequest, int]) -> DesiredState:
    received = [ReceivedRequest(one, node_id, f"{index}.json") for index, (one, node_id) in enumerate(requests)]
    return merge(received, "requests", "00")


def test_the_receiver_is_the_one_broker_that_all_replica_lists_share() -> None:
    topic = TopicState("t", A, (partition(0, (1, 3)), partition(1, (3, 2))))
    assert receiver(request(topic), "r.json") == 3


def test_an_ambiguous_receiver_is_refused_with_the_candidates_and_the_way_to_name_it() -> None:
    topic = TopicState("t", A, (partition(0, (1, 3)), partition(1, (3, 1))))
    with pytest.raises(UsageError, match=r"any of brokers 1, 3: .* request:r.json@1"):
        receiver(request(topic), "r.json")


def test_a_request_that_names_no_common_broker_is_refused() -> None:
    with pytest.raises(UsageError, match=r"request:r.json@N"):
        receiver(request(), "r.json")


def test_rows_are_those_of_the_receiver_alone() -> None:
    state = merged((request(TopicState("t", A, (partition(0, (1, 3)), partition(1, (3, 2), adding=(3,))))), 3))
    rows = [(row["partition"], row["node_id"], row["leader"], row["adding"]) for row in state.replicas.to_pylist()]
    assert rows == [(0, 3, False, False), (1, 3, True, True)]
    assert state.identity.scope == {3}
    assert {(row["isr_size"], row["leader_epoch"], row["partition_epoch"]) for row in state.replicas.to_pylist()} == {
        (2, 5, 9)
    }


def test_a_partition_without_the_receiver_is_known_and_not_wanted_here() -> None:
    state = merged((request(TopicState("t", A, (partition(0, (1, 2)),))), 3))
    assert state.replicas.num_rows == 0
    assert state.topics.to_pylist() == [{"topic": "t", "topic_id": str(A), "partitions": 1}]


@pytest.mark.parametrize(
    ("kind", "completeness"),
    [
        (RequestType.FULL, Completeness.FULL),
        (RequestType.INCREMENTAL, Completeness.INCREMENTAL),
        (RequestType.UNSPECIFIED, Completeness.INCREMENTAL),
    ],
)
def test_only_a_full_request_is_complete(kind: RequestType, completeness: Completeness) -> None:
    identity = merged((request(kind=kind), 3)).identity
    assert identity.completeness is completeness
    assert (identity.source, identity.cluster_id, identity.epoch) == ("request", None, 3)


def test_requests_for_several_brokers_make_one_state() -> None:
    first = request(TopicState("t", A, (partition(0, (1, 2)),)), epoch=3)
    second = request(TopicState("t", A, (partition(0, (1, 2)), partition(1, (2, 3)))), TopicState("u", B, ()), epoch=4)
    state = merged((first, 1), (second, 2))
    assert sorted((row["partition"], row["node_id"]) for row in state.replicas.to_pylist()) == [(0, 1), (0, 2), (1, 2)]
    counts = {row["topic"]: row["partitions"] for row in state.topics.to_pylist()}
    assert counts == {"t": 2, "u": 0}
    assert (state.identity.scope, state.identity.epoch) == ({1, 2}, 4)
    assert state.identity.completeness is Completeness.FULL


def test_an_incremental_request_among_full_ones_makes_the_whole_incremental_and_says_so() -> None:
    identity = merged((request(), 1), (request(kind=RequestType.INCREMENTAL), 2)).identity
    assert identity.completeness is Completeness.INCREMENTAL
    assert any("not every request is FULL" in problem for problem in identity.problems)


def test_of_two_requests_for_one_broker_the_greater_controller_epoch_counts() -> None:
    old = request(TopicState("t", A, (partition(0, (1,)),)), epoch=3)
    new = request(TopicState("t", B, (partition(0, (1,)),)), epoch=4)
    state = merged((old, 1), (new, 1))
    assert state.replicas["topic_id"].to_pylist() == [str(B)]
    assert any("0.json (controller epoch 3) is passed over" in problem for problem in state.identity.problems)


def test_two_requests_for_one_broker_and_epoch_are_refused() -> None:
    with pytest.raises(UsageError, match=r"0.json and 1.json are both for broker 1 and of controller epoch 3"):
        merged((request(), 1), (request(), 1))


def test_requests_that_give_one_topic_two_ids_are_refused() -> None:
    with pytest.raises(MetadataError, match=f"topic t the ID {B}, and another request gives it {A}"):
        merged((request(TopicState("t", A, ())), 1), (request(TopicState("t", B, ())), 2))


def test_requests_that_give_two_topics_one_id_are_refused() -> None:
    with pytest.raises(MetadataError, match=f"topic u the ID of topic t: {A}"):
        merged((request(TopicState("t", A, ())), 1), (request(TopicState("u", A, ())), 2))


ORDERS_REQUEST = leader_and_isr(FULL, topic("orders", A, 0))


def test_a_broker_stands_behind_the_file_unless_a_file_has_that_name(tmp_path: Path) -> None:
    (tmp_path / "r@7").touch()
    assert split_receiver(f"{tmp_path}/r@7") == (f"{tmp_path}/r@7", None)
    assert split_receiver(f"{tmp_path}/q@7") == (f"{tmp_path}/q", 7)
    assert split_receiver("a@b@12") == ("a@b", 12)
    assert split_receiver("a@1234567890") == ("a@1234567890", None)
    assert split_receiver("plain") == ("plain", None)


def test_every_file_is_parsed_under_its_name_and_all_bytes_are_in_the_digest(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    seen: list[tuple[bytes, str]] = []

    def parse(data: bytes, location: str) -> LeaderAndIsrRequest:
        seen.append((data, location))
        return ORDERS_REQUEST

    state = load_requests([f"{tmp_path}/a@1", f"{tmp_path}/b@2"], "here", parse, "wire")
    assert seen == [(b"a", f"{tmp_path}/a"), (b"b", f"{tmp_path}/b")]
    assert (state.identity.location, state.identity.scope) == ("here", frozenset({1, 2}))
    assert state.identity.digest == hashlib.sha256(b"ab").hexdigest()


def test_the_message_for_an_unknown_receiver_has_the_scheme_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(UsageError, match=f"as wire:{tmp_path}/a@1"):
        load_requests([f"{tmp_path}/a"], "here", lambda _data, _location: ORDERS_REQUEST, "wire")


def load_one(path: str) -> DesiredState:
    return load_json([path], path)


def write(path: Path, document: object) -> str:
    path.write_text(json.dumps(document))
    return str(path)


def test_the_receiver_may_be_named_behind_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", SHIPPED)
    state = load_one(f"{path}@3")
    assert state.identity.scope == {3}
    assert state.identity.completeness is Completeness.FULL
    assert state.identity.location == f"{path}@3"
    assert state.identity.digest == hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_a_file_whose_own_name_ends_like_a_receiver_is_meant_as_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json@7", changed(replicas=[2]))
    assert load_one(path).identity.scope == {2}


def test_an_ambiguous_receiver_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"any of brokers 1, 2, 3: .*request:.*r.json@1"):
        load_one(write(tmp_path / "r.json", SHIPPED))


def test_the_digest_of_several_files_is_that_of_their_bytes_in_order(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{node}.json", changed(replicas=[node])) for node in (1, 2)]
    state = load_json(paths, "requests")
    assert state.identity.digest == hashlib.sha256(b"".join(Path(path).read_bytes() for path in paths)).hexdigest()
    assert state.identity.scope == {1, 2}


def test_absent_and_strange_paths_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        load_one(str(tmp_path / "absent.json"))
    with pytest.raises(UsageError, match="is not a file"):
        load_one(str(tmp_path))


def test_a_request_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 100)
    with pytest.raises(MetadataError, match="longer than 100 bytes"):
        load_one(write(tmp_path / "r.json", SHIPPED))


def test_a_file_that_may_not_be_opened_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "r.json", SHIPPED)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(MetadataError, match="cannot be read: Permission denied"):
        load_one(path)


def test_more_than_a_request_can_hold_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_bytes(b"{" * (MAX_PARTITIONS + 100_001))  # no JSON, and nobody got as far as to notice
    with pytest.raises(InvalidRequestError, match="it has more in it than 1000000 partitions"):
        load_one(str(path))


def test_the_garbage_collector_runs_again_afterwards(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError):
        load_one(write(tmp_path / "r.json", []))
    assert gc.isenabled()


def test_requests_are_recognised_by_their_first_words(tmp_path: Path) -> None:
    write(tmp_path / "r.json", [])
    write(tmp_path / "named", SHIPPED)
    write(tmp_path / "proposed", PROPOSED)
    write(tmp_path / "other", {"a": 1})
    (tmp_path / "text").write_text("controllerId")
    found = [path.name for path in sorted(tmp_path.iterdir()) if is_json_request(str(path))]
    assert found == ["named", "proposed"]
    assert not is_json_request(str(tmp_path))


REQUEST = leader_and_isr(FULL, topic("orders", A, 0, 1), topic("other", B, 0))


def written(folder: Path, data: bytes, name: str = "capture.bin") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


BROKERS = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(tuple)
STATES = st.builds(
    PartitionState,
    partition=st.integers(0, 3),
    controller_epoch=st.just(3),
    leader=st.integers(-1, 5),
    leader_epoch=st.integers(0, 9),
    isr=BROKERS,
    partition_epoch=st.integers(0, 9),
    replicas=BROKERS,
    is_new=st.booleans(),
)
STATE_LISTS = st.lists(STATES, max_size=4, unique_by=lambda state: state.partition).map(tuple)


@st.composite
def typed_requests(draw: st.DrawFn) -> tuple[LeaderAndIsrRequest, int]:
    """A request, and a version that has words for all of it."""
    version = draw(st.integers(1, 7))
    names = draw(st.lists(st.sampled_from(["a", "b", "c"]), unique=True))
    # A list by partition, as of versions 0 and 1, has no words for a topic without any.
    lists = STATE_LISTS if version > 1 else STATE_LISTS.filter(bool)
    topics = [
        TopicState(name, TopicId.from_halves(1, 1 + number) if version >= 5 else None, draw(lists))
        for number, name in enumerate(names)
    ]
    kind = draw(st.sampled_from(RequestType)) if version >= 5 else RequestType.UNSPECIFIED
    return LeaderAndIsrRequest(9, draw(st.integers(0, 99)), tuple(topics), type=kind), version


@given(typed_requests(), st.integers(0, 5), st.booleans())
def test_bytes_make_the_state_that_the_json_of_the_same_request_makes(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[LeaderAndIsrRequest, int], node_id: int, with_length: bool
) -> None:
    # KIP516-4
    request, version = made
    folder = tmp_path_factory.mktemp("requests")
    data = encode_request(request, version, 0x0102_0304, "controller-1")
    wire = load_wire([written(folder, framed(data) if with_length else data) + f"@{node_id}"], "bytes")
    text = load_json([written(folder, orjson.dumps(tree(request, version)), "r.json") + f"@{node_id}"], "text")
    assert wire.replicas.equals(text.replicas)
    assert wire.topics.equals(text.topics)
    assert wire.brokers.equals(text.brokers)
    assert replace(wire.identity, location="", digest="") == replace(text.identity, location="", digest="")


def test_what_is_refused_as_bytes_is_refused_as_json(tmp_path: Path) -> None:
    request = leader_and_isr(FULL, topic(METADATA_TOPIC, A, 0))
    wire = written(tmp_path, encode_request(request, 7))
    text = written(tmp_path, orjson.dumps(tree(request, 7)), "r.json")
    for read, path in ((load_wire, wire), (load_json, text)):
        with pytest.raises(InvalidRequestError, match="no request gives or takes a replica of it"):
            read([f"{path}@1"], path)


@pytest.mark.parametrize("version", range(8))
@pytest.mark.parametrize("client", [None, "", "controller-1"])
@pytest.mark.parametrize("frame", [bytes, framed])
def test_a_request_of_every_version_is_recognised_and_read(
    tmp_path: Path, version: int, client: str | None, frame: Callable[[bytes], bytes]
) -> None:
    request = leader_and_isr(RequestType.UNSPECIFIED, topic("a", None, 0))
    path = written(tmp_path, frame(encode_request(request, version, 5, client)))
    assert is_wire_request(path)
    (state,) = load(f"wire:{path}@2")
    assert (state.identity.source, state.identity.scope) == ("request", frozenset({2}))
    assert state.replicas.select(["topic", "node_id"]).to_pylist() == [{"topic": "a", "node_id": 2}]


def test_an_unknown_receiver_of_bytes_must_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, encode_request(REQUEST, 7))
    with pytest.raises(UsageError, match=f"name the broker that received it, as wire:{path}@1"):
        load(path)


def test_requests_in_a_folder_make_one_state(tmp_path: Path) -> None:
    for node, kind in ((1, FULL), (2, INCREMENTAL)):
        only = PartitionState(0, 1, node, 0, (node,), 0, (node,))
        request = leader_and_isr(kind, TopicState(f"t{node}", (A, B)[node - 1], (only,)))
        written(tmp_path, encode_request(request, 7), f"{node}.bin")
    (state,) = load(f"wire:{tmp_path}")
    assert state.identity.scope == frozenset({1, 2})
    assert state.identity.completeness is Completeness.INCREMENTAL


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"text", "header"),
        (encode_request(stop_replica("a", 1), 4), "is a StopReplica request, which says what a broker should let go"),
        (struct.pack(">hhih", 3, 0, 0, -1), "does not begin with the header of a LeaderAndIsr request"),
        (struct.pack(">hhih", 4, 8, 0, -1), "no version 8 of a LeaderAndIsr request"),
        (encode_request(REQUEST, 7)[:-1], "capture.bin"),
        (encode_request(REQUEST, 7) + b"\0", "bytes follow"),
        (framed(encode_request(REQUEST, 7))[:-1], "capture.bin"),
    ],
)
def test_bytes_that_are_no_whole_request_are_refused(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(MetadataError, match=said) as caught:
        load(f"wire:{written(tmp_path, data)}@1")
    assert "capture.bin" in str(caught.value)


@given(st.integers(0, len(encode_request(REQUEST, 7)) - 1))
def test_a_request_that_is_cut_off_anywhere_is_refused(at: int) -> None:
    with pytest.raises(MetadataError):
        parse_wire(encode_request(REQUEST, 7)[:at], "r")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    try:
        parse_wire(data, "r")
    except MetadataError as error:
        assert "r" in str(error)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\4\0\7",
        struct.pack(">hhih", 4, 7, 0, 3) + b"a\0b",
        struct.pack(">hhih", 4, 7, 0, -2),
        struct.pack(">hhih", 5, 3, 0, -1),
        b"Topic: orders\tPartitionCount: 1",
    ],
)
def test_other_files_are_not_taken_for_requests(tmp_path: Path, data: bytes) -> None:
    assert not is_wire_request(written(tmp_path, data))
    assert not is_wire_request(str(tmp_path))


# UpdateMetadata


def of_cluster(*topics: UpdateMetadataTopic, kind: RequestType = RequestType.FULL) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(1, 3, topics, type=kind)


def known(index: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> UpdateMetadataPartition:
    return UpdateMetadataPartition(index, 3, leader, 5, isr, 9, replicas)


CLUSTER = of_cluster(
    UpdateMetadataTopic("orders", A, (known(0, 1, (1, 2), (1, 2)), known(1, 2, (2, 3), (2,)))),
    UpdateMetadataTopic("clicks", B, (known(0, -2, (3,), (3,)),)),
)


# KIP516-9
@pytest.mark.parametrize("scheme", ["request", "wire", ""])
def test_an_update_metadata_request_speaks_for_the_whole_cluster(tmp_path: Path, scheme: str) -> None:
    path = tmp_path / "metadata.json"
    path.write_bytes(encode_request(CLUSTER, 8) if scheme == "wire" else orjson.dumps(tree(CLUSTER, 8)))
    (state,) = load(f"{scheme}:{path}" if scheme else str(path))
    rows = state.replicas.select(["topic", "topic_id", "partition", "node_id", "leader", "in_sync"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("orders", str(A), 0, 1, True, True),
        ("orders", str(A), 0, 2, False, True),
        ("orders", str(A), 1, 2, True, True),
        ("orders", str(A), 1, 3, False, False),
        ("clicks", str(B), 0, 3, False, True),
    ]
    identity = state.identity
    assert (identity.scope, identity.completeness, identity.epoch) == (None, Completeness.FULL, 3)
    assert identity.problems == ("1 topic being deleted still counted as wanted: clicks",)


@pytest.mark.parametrize("kind", [RequestType.UNSPECIFIED, RequestType.INCREMENTAL])
def test_an_update_metadata_request_that_is_not_full_says_nothing_of_what_it_lacks(
    tmp_path: Path, kind: RequestType
) -> None:
    (tmp_path / "m").write_bytes(encode_request(of_cluster(CLUSTER.topics[0], kind=kind), 8))
    (state,) = load(str(tmp_path / "m"))
    assert (state.identity.completeness, state.identity.problems) == (Completeness.INCREMENTAL, ())


def test_an_update_metadata_request_has_no_receiver_and_no_request_beside_it(tmp_path: Path) -> None:
    path, other = tmp_path / "m.json", tmp_path / "r.json"
    path.write_bytes(orjson.dumps(tree(CLUSTER, 8)))
    other.write_bytes(orjson.dumps(SHIPPED))
    for paths in ([f"{path}@1"], [str(path), f"{other}@1"], [f"{other}@1", str(path)]):
        with pytest.raises(UsageError, match="speaks for the whole cluster: give it alone, as request:"):
            load_json(paths, "requests")
