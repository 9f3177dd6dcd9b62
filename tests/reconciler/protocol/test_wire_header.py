"""The header says which request it is, and of which version."""

from __future__ import annotations

import struct

import pytest

from reconciler import ReconcilerError
from reconciler.protocol import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    RequestType,
    StopReplicaResponse,
    UnsupportedVersionError,
    decode_request,
    decode_response,
)
from reconciler.protocol.header import RequestHeader, decode_response_header, encode_request, encode_response
from reconciler.protocol.wire_errors import MalformedMessageError
from tests.reconciler.protocol.control_requests import leader_and_isr, stop_replica, topic

PLAIN = leader_and_isr(RequestType.UNSPECIFIED, topic("a", None, 0))


@pytest.mark.parametrize("version", range(8))
@pytest.mark.parametrize("client", [None, "", "controller-1"])
def test_a_leader_and_isr_request_is_read_without_being_told_its_version(version: int, client: str | None) -> None:
    # KIP516-4
    header, request = decode_request(encode_request(PLAIN, version, 77, client))
    assert header == RequestHeader(4, version, 77, client)
    assert request == PLAIN


@pytest.mark.parametrize("version", range(5))
def test_so_is_a_stop_replica_request(version: int) -> None:
    header, request = decode_request(encode_request(stop_replica("a", 1), version, -5, "x"))
    assert (header.api_key, header.api_version) == (5, version)
    assert request == stop_replica("a", 1)


def test_the_header_of_a_flexible_version_may_carry_tags() -> None:
    data = encode_request(PLAIN, 7, 1, "x")
    assert data[11:12] == b"\0"
    assert decode_request(data[:11] + b"\x01\x09\x02hi" + data[12:])[1] == PLAIN


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (struct.pack(">hhih", 3, 0, 0, -1), UnsupportedVersionError, "API key 3 is no control request"),
        (struct.pack(">hhih", 4, 8, 0, -1), UnsupportedVersionError, "no version 8 of a LeaderAndIsr request"),
        (struct.pack(">hhih", 5, -1, 0, -1), UnsupportedVersionError, "no version -1 of a StopReplica request"),
        (b"", MalformedMessageError, "end in the middle of a request's header"),
        (struct.pack(">hhi", 4, 7, 0), MalformedMessageError, "end in the middle"),
        (struct.pack(">hhih", 4, 7, 0, 9), MalformedMessageError, "has no request's header"),
        (struct.pack(">hhih", 4, 7, 0, -1) + b"\x01", MalformedMessageError, "end in the middle"),
    ],
)
def test_what_has_no_such_header_is_refused(data: bytes, error: type[ReconcilerError], said: str) -> None:
    with pytest.raises(error, match=said):
        decode_request(data)


def test_a_request_that_is_cut_off_anywhere_is_refused() -> None:
    data = encode_request(PLAIN, 7, 1, "client")
    for length in range(len(data)):
        with pytest.raises(MalformedMessageError):
            decode_request(data[:length])


@pytest.mark.parametrize(("kind", "versions"), [(LeaderAndIsrResponse, range(8)), (StopReplicaResponse, range(5))])
def test_an_answer_has_its_correlation_id_before_it(
    kind: type[LeaderAndIsrResponse] | type[StopReplicaResponse], versions: range
) -> None:
    for version in versions:
        correlation_id, body = decode_response_header(kind, encode_response(kind(11), version, 42), version)
        assert (correlation_id, decode_response(kind, body, version)) == (42, kind(11))
    with pytest.raises(MalformedMessageError, match="an answer's header"):
        decode_response_header(kind, b"\0\0\0", 0)


def test_the_kinds_are_told_apart_by_their_key() -> None:
    assert isinstance(decode_request(encode_request(leader_and_isr(RequestType.FULL), 7))[1], LeaderAndIsrRequest)
