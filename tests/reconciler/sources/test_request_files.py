"""The files that requests lie in: who received which, and files that are none or too long."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from reconciler.errors import MetadataError, UsageError
from reconciler.protocol import LeaderAndIsrRequest
from reconciler.sources import request_files
from reconciler.sources.request_files import load_requests, read_file, split_receiver
from tests.reconciler.protocol.control_requests import FULL, A, leader_and_isr, topic

REQUEST = leader_and_isr(FULL, topic("orders", A, 0))


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
        return REQUEST

    state = load_requests([f"{tmp_path}/a@1", f"{tmp_path}/b@2"], "here", parse, "wire")
    assert seen == [(b"a", f"{tmp_path}/a"), (b"b", f"{tmp_path}/b")]
    assert (state.identity.location, state.identity.scope) == ("here", frozenset({1, 2}))
    assert state.identity.digest == hashlib.sha256(b"ab").hexdigest()


def test_a_receiver_that_cannot_be_told_is_asked_for_by_the_scheme_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(UsageError, match=f"as wire:{tmp_path}/a@1"):
        load_requests([f"{tmp_path}/a"], "here", lambda _data, _location: REQUEST, "wire")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_file(f"{tmp_path}/absent")
    with pytest.raises(UsageError, match="is not a file"):
        read_file(str(tmp_path))


def test_a_file_that_is_too_long_is_refused_by_its_size_alone(tmp_path: Path) -> None:
    path = tmp_path / "long"
    with open(path, "wb") as file:
        os.truncate(file.fileno(), request_files.MAX_REQUEST_BYTES + 1)
    with pytest.raises(MetadataError, match=f"longer than {request_files.MAX_REQUEST_BYTES} bytes"):
        read_file(str(path))
