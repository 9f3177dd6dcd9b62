"""Golden vectors of control requests: JSON and bytes that upstream's own classes made of each other (FACTS §5).

Every vector of the kinds below is used; the last test counts them.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from reconciler.protocol import (
    ControlResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    decode_leader_and_isr,
    decode_response,
    decode_stop_replica,
    encode_message,
    parse_leader_and_isr,
    parse_stop_replica,
)
from reconciler.protocol.json_messages import encode_json, parse_response
from reconciler.protocol.messages import encode_request, encode_response, is_flexible

Vector = dict[str, Any]

KINDS = {
    "LeaderAndIsrRequest": 6,
    "LeaderAndIsrResponse": 6,
    "StopReplicaRequest": 4,
    "StopReplicaResponse": 4,
}
RESPONSES: dict[str, type[LeaderAndIsrResponse] | type[StopReplicaResponse]] = {
    "LeaderAndIsrResponse": LeaderAndIsrResponse,
    "StopReplicaResponse": StopReplicaResponse,
}
DEFAULTS = {
    "type": 0,
    "brokerEpoch": -1,
    "isKRaftController": False,
    "deletePartitions": False,
    "leaderEpoch": -1,
    "isNew": False,
    "addingReplicas": [],
    "removingReplicas": [],
    "leaderRecoveryState": 0,
}
"""What upstream leaves out of its JSON where it has this value."""


def without_defaults(tree: Any) -> Any:
    if isinstance(tree, dict):
        left = {name: without_defaults(value) for name, value in tree.items()}
        return {name: value for name, value in left.items() if name not in DEFAULTS or value != DEFAULTS[name]}
    return [without_defaults(each) for each in tree] if isinstance(tree, list) else tree


def read(vector: Vector) -> LeaderAndIsrRequest | StopReplicaRequest | ControlResponse:
    """The message that the bytes of a vector are."""
    kind, data, version = vector["kind"], bytes.fromhex(vector["output"]), vector["input"]["version"]
    if kind == "LeaderAndIsrRequest":
        return decode_leader_and_isr(data, version)
    if kind == "StopReplicaRequest":
        return decode_stop_replica(data, version)
    return decode_response(RESPONSES[kind], data, version)


@pytest.mark.shared(kinds=tuple(KINDS))
def test_the_bytes_are_read_and_written_again(vector: Vector) -> None:
    # KIP516-4
    assert encode_message(read(vector), vector["input"]["version"]).hex() == vector["output"]


@pytest.mark.shared(kinds=tuple(KINDS))
def test_the_bytes_come_out_as_upstream_s_json(vector: Vector) -> None:
    written = json.loads(encode_json(read(vector), vector["input"]["version"]))
    assert without_defaults(written) == without_defaults(json.loads(vector["input"]["json"]))


@pytest.mark.shared(kinds=tuple(KINDS))
def test_upstream_s_json_reads_as_the_same_message(vector: Vector) -> None:
    data, kind = vector["input"]["json"].encode(), vector["kind"]
    if kind == "LeaderAndIsrRequest":
        assert parse_leader_and_isr(data, "vector") == read(vector)
    elif kind == "StopReplicaRequest":
        assert parse_stop_replica(data, "vector") == read(vector)
    else:
        assert parse_response(RESPONSES[kind], data, "vector") == read(vector)


@pytest.mark.shared(kinds=("headerVersion",))
def test_the_header_is_flexible_when_the_body_is(vector: Vector) -> None:
    name, _, version = vector["input"].rpartition(" v")
    answered = {
        "LeaderAndIsr": (LeaderAndIsrRequest(1, 1, ()), LeaderAndIsrResponse(0)),
        "StopReplica": (StopReplicaRequest(1, 1, ()), StopReplicaResponse(0)),
        "UpdateMetadata": (UpdateMetadataRequest(1, 1, ()), UpdateMetadataResponse(0)),
    }
    request, response = answered[name]
    flexible = is_flexible(type(request), int(version))
    assert is_flexible(type(response), int(version)) is flexible
    assert vector["output"] == {"request": 1 + flexible, "response": int(flexible)}
    # A flexible header ends with the count of its tags.
    sent, body = encode_request(request, int(version)), encode_message(request, int(version))
    assert len(sent) - len(body) == 10 + flexible
    assert len(encode_response(response, int(version), 1)) - len(encode_message(response, int(version))) == 4 + flexible


@pytest.mark.shared
def test_every_vector_of_these_kinds_is_used(golden_vectors: list[Vector]) -> None:
    counted = Counter(vector["kind"] for vector in golden_vectors)
    assert {kind: counted[kind] for kind in KINDS} == KINDS
