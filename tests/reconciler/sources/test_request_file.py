"""Control requests from files: the content decides on the form and on the kind of request."""

from __future__ import annotations

import io
import json
import os
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from reconciler.errors import InvalidRequestError, MetadataError, UsageError
from reconciler.protocol import KIP516, MAX_PARTITIONS, ControlRequest, UpdateMetadataRequest, UpdateMetadataTopic
from reconciler.protocol.json_messages import encode_json
from reconciler.protocol.messages import encode_request
from reconciler.sources import STANDARD_INPUT, read_request, request_file
from tests.reconciler.protocol.control_requests import FULL, UNSPECIFIED, A, leader_and_isr, stop_replica, topic

LEAD = leader_and_isr(FULL, topic("orders", A, 0, 1))
OLD_LEAD = leader_and_isr(UNSPECIFIED, topic("orders", None, 0, 1))
STOP = stop_replica("orders", 0, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "request"


def kinds(request: ControlRequest) -> tuple[str, list[tuple[str, int]]]:
    named = [(each.topic, state.partition) for each in request.topics for state in each.partitions]
    return type(request).__name__, named


# KIP516-4, KIP516-7
@pytest.mark.parametrize("request_of", [LEAD, STOP], ids=["lead", "stop"])
@pytest.mark.parametrize("version", [*range(5), KIP516])
def test_every_version_of_both_requests_is_identified(path: Path, request_of: ControlRequest, version) -> None:
    old = request_of is LEAD and version in range(5)
    path.write_bytes(encode_json(OLD_LEAD if old else request_of, version))
    read, location = read_request(str(path))
    assert (kinds(read), location) == (kinds(request_of), str(path))


@pytest.mark.parametrize(("request_of", "version"), [(OLD_LEAD, 0), (LEAD, 7), (STOP, 0), (STOP, 4)])
@pytest.mark.parametrize("before", [b"", b"length"])
def test_bytes_are_read_with_and_without_their_length(
    path: Path, request_of: ControlRequest, version: int, before: bytes
) -> None:
    data = encode_request(request_of, version)
    path.write_bytes(struct.pack(">i", len(data)) + data if before else data)
    assert kinds(read_request(str(path))[0]) == kinds(read_request(f"wire:{path}")[0]) == kinds(request_of)


def test_the_form_can_be_said_and_a_file_of_such_a_name_is_meant_as_it_stands(path: Path, tmp_path: Path) -> None:
    path.write_bytes(encode_json(LEAD, 7))
    assert kinds(read_request(f"request:{path}")[0]) == kinds(LEAD)
    with pytest.raises(MetadataError):
        read_request(f"wire:{path}")
    os.chdir(tmp_path)
    (tmp_path / "wire:x").write_bytes(encode_json(STOP, 3))
    assert kinds(read_request("wire:x")[0]) == kinds(STOP)


@pytest.mark.parametrize(("key", "request_of", "version"), [(4, LEAD, 7), (5, STOP, 3), (5, STOP, 0)])
def test_a_line_of_a_request_log_holds_the_request_within(
    path: Path, key: int, request_of: ControlRequest, version: int
) -> None:
    inner = json.loads(encode_json(request_of, version))
    path.write_text(json.dumps({"requestHeader": {"requestApiKey": key}, "request": inner}))
    assert kinds(read_request(str(path))[0]) == kinds(request_of)


def test_a_request_log_line_of_another_request_is_refused(path: Path) -> None:
    path.write_text(json.dumps({"requestHeader": {"requestApiKey": 3}, "request": {"topics": []}}))
    with pytest.raises(InvalidRequestError, match="4 for LeaderAndIsr"):
        read_request(str(path))


@pytest.mark.parametrize("field", ["partitionIndexes", "partition_ids"])
def test_too_many_partitions_are_refused_before_anything_is_made_of_them(path: Path, field: str) -> None:
    numbers = ",".join(map(str, range(MAX_PARTITIONS + 1)))
    name = "topics" if field == "partitionIndexes" else "partitions"
    path.write_text(
        f'{{"controllerId":1,"controllerEpoch":1,"deletePartitions":true,"{name}":[{{"name":"t","{field}":[{numbers}]}}]}}'
    )
    with pytest.raises(InvalidRequestError, match=f"it names {MAX_PARTITIONS + 2} partitions"):
        read_request(str(path))


@pytest.mark.parametrize("each", [b"{},", b",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"])
def test_a_document_too_large_for_a_request_is_not_even_parsed(path: Path, each: bytes) -> None:
    # It is no JSON either, and nobody got as far as to notice.
    path.write_bytes(b"{" + each * (MAX_PARTITIONS + 100_001))
    with pytest.raises(InvalidRequestError, match="it has more in it than 1000000 partitions"):
        read_request(str(path))


def test_a_path_that_cannot_hold_a_request_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.touch()
    os.truncate(path, 2 << 30)
    with pytest.raises(MetadataError, match="longer than"):
        read_request(str(path))
    with pytest.raises(UsageError, match="no such file"):
        read_request(str(path) + "x")
    with pytest.raises(UsageError, match="is not a file"):
        read_request(str(path.parent))
    monkeypatch.setattr(request_file, "MAX_FILE_BYTES", 10)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"x" * 11)))
    with pytest.raises(MetadataError, match="standard input is longer than 10 bytes"):
        read_request(STANDARD_INPUT)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(MetadataError, match="standard input cannot be read"):
        read_request(STANDARD_INPUT)


@pytest.mark.parametrize(
    "document",
    [
        {"topicStates": 3}, {"topicStates": [3]}, {"topicStates": [{"partitionStates": [3]}]}, {"topics": [3]},
        {"partitions": {}}, {"request": {}}, {"request": 3}, {"requestHeader": 3, "request": {"topics": 1}}, {},
    ],
)  # fmt: skip
def test_documents_of_wrong_types_are_refused_with_their_reasons(path: Path, document: object) -> None:
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidRequestError, match=r"missing|expected"):
        read_request(str(path))


@pytest.mark.parametrize("form", ["request", "wire"])
def test_update_metadata_is_refused_by_its_name_and_nothing_is_done(path: Path, tmp_path: Path, form: str) -> None:
    sent = UpdateMetadataRequest(1, 1, (UpdateMetadataTopic("orders", A, ()),))
    path.write_bytes(encode_json(sent, 8) if form == "request" else encode_request(sent, 8))
    for spec in (str(path), f"{form}:{path}"):
        with pytest.raises(
            MetadataError, match=rf"is an UpdateMetadata request.*--metadata {form}:FILE compares disks"
        ):
            read_request(spec)
