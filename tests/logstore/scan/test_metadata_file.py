"""``partition.metadata`` as a scan reads it: topic ID, state and problem; and the same answer from bytes."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from logstore.scan import METADATA_LIMIT, judge_metadata, read_metadata_file, read_topic_id
from logstore.scan.metadata_file import VanishedError, check_against_name, unreadable

ZERO = "A" * 22


def _read(log_dir: Any, data: bytes | str | None, topic: str | None = "orders", partition: int | None = 3) -> Any:
    path = log_dir.replica("orders-3", data)
    return read_topic_id(str(path), topic, partition, {})


def test_what_a_broker_writes_gives_its_topic_id_and_is_remembered(log_dir: Any) -> None:
    known: dict[bytes, str] = {}
    for name in ("orders-0", "orders-1"):
        path = log_dir.replica(name)
        assert read_topic_id(str(path), "orders", 0, known) == (log_dir.topic_id, "ok", None, None)
    assert list(known.values()) == [log_dir.topic_id]


@pytest.mark.parametrize(
    ("data", "state", "effect"),
    [
        (None, "missing", None),
        (b"", "empty", "the broker does not start"),  # FACTS §2.1, as the effects below
        (ZERO, "zero_id", "the log dir goes offline"),
        (b"version: 0", "malformed", "the broker does not start"),
        (b"version: -1\ntopic_id: UXyU9i5ARn6W00ON2taeWA", "malformed", "the log dir goes offline"),
        (b"version: 0\ntopic_id: tooshort", "malformed", "the broker does not start"),
        (b"version: 0\ntopic_id: \xff", "malformed", "the log dir goes offline"),
    ],
)
def test_damage_is_reported_by_state_and_by_its_effect(log_dir: Any, data: Any, state: str, effect: Any) -> None:
    topic_id, found, problem, _ = _read(log_dir, data)
    assert (topic_id, found) == (None, state)
    assert (problem is None) if effect is None else problem.endswith(effect)


@pytest.mark.parametrize("tail", [b"\n", b"\r\n", b"\nanything\n", b"=="])
def test_odd_spellings_that_a_broker_accepts_are_ok(log_dir: Any, tail: bytes) -> None:
    found = _read(log_dir, b"version: 0\ntopic_id: " + log_dir.topic_id.encode() + tail)
    assert found[:3] == (log_dir.topic_id, "ok", None)


def test_another_partition_or_topic_in_the_file_contradicts(log_dir: Any) -> None:
    json = b'{"schema_version":0,"id":"UXyU9i5ARn6W00ON2taeWA","name":"orders","partition":3}'
    assert _read(log_dir, json) == (log_dir.topic_id, "ok", None, "orders")
    path = str(log_dir.path / "orders-3")
    for topic, partition in (("payments", 3), ("orders", 4)):
        topic_id, state, problem, _ = read_topic_id(path, topic, partition, {})
        assert (topic_id, state) == (log_dir.topic_id, "contradicts")
        assert "contradicts its directory" in (problem or "")
    assert read_topic_id(path, None, None, {})[1] == "ok"


def test_a_file_beyond_the_limit_is_unreadable_and_one_at_the_limit_is_read(log_dir: Any) -> None:
    shipped = b"version: 0\ntopic_id: UXyU9i5ARn6W00ON2taeWA\n"
    assert _read(log_dir, shipped + b"x" * (METADATA_LIMIT - len(shipped)))[1] == "ok"
    (log_dir.path / "orders-3" / "partition.metadata").write_bytes(shipped + b"x" * METADATA_LIMIT)
    found = read_topic_id(f"{log_dir}/orders-3", "orders", 3, {})
    assert found[1] == "unreadable"
    assert "larger than" in (found[2] or "")


@pytest.mark.parametrize(
    ("make", "words"),
    [(os.mkfifo, "a FIFO"), (os.mkdir, "a directory"), (lambda path: os.symlink("/dev/zero", path), "symbolic link")],
)
def test_what_is_no_plain_file_is_unreadable(log_dir: Any, make: Any, words: str) -> None:
    path = log_dir.replica("orders-3", None)
    make(path / "partition.metadata")
    topic_id, state, problem, _ = read_topic_id(str(path), "orders", 3, {})
    assert (topic_id, state) == (None, "unreadable")
    assert words in (problem or "")


def test_a_directory_that_is_gone_is_no_missing_file(log_dir: Any) -> None:
    with pytest.raises(VanishedError):
        read_topic_id(f"{log_dir}/gone-0", "gone", 0, {})


def test_the_id_in_a_directorys_name_is_held_against_the_file() -> None:
    one, other = TopicId.parse("UXyU9i5ARn6W00ON2taeWA"), TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")
    ok = (str(one), "ok", None, None)
    assert check_against_name(ok, None) == check_against_name(ok, TopicId.ZERO) == check_against_name(ok, one) == ok
    topic_id, state, problem, _ = check_against_name(ok, other)
    assert (topic_id, state) == (str(one), "contradicts")
    assert str(other) in (problem or "")
    assert check_against_name((None, "missing", None, None), one)[:2] == (str(one), "missing")


def test_a_directory_that_cannot_be_read_takes_a_log_dir_offline() -> None:
    assert unreadable("no") == (None, "unreadable", "no; a broker takes the log dir offline", None)


@given(data=st.binary(max_size=200) | st.text(max_size=80).map(lambda text: f"version: 0\ntopic_id: {text}".encode()))
def test_no_bytes_raise_and_an_id_comes_only_with_ok_or_a_contradiction(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz-0"
    path.mkdir(exist_ok=True)
    (path / "partition.metadata").write_bytes(data)
    topic_id, state, problem, _ = read_topic_id(str(path), "fuzz", 0, {})
    assert (topic_id is not None) == (state in ("ok", "contradicts"))
    assert (problem is None) == (state == "ok")


@given(data=st.binary(max_size=200) | st.text(max_size=80).map(lambda text: f"version: 0\ntopic_id: {text}".encode()))
def test_bytes_are_judged_as_the_file_that_holds_them(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "judged-0"
    path.mkdir(exist_ok=True)
    (path / "partition.metadata").write_bytes(data)
    judged = judge_metadata(data)
    assert read_metadata_file(str(path)) == judged
    assert (judged.found is not None) == (judged.state == "ok")
    text, state, problem, _ = read_topic_id(str(path), "fuzz", 0, {})
    assert text == (None if judged.topic_id is None else str(judged.topic_id))
    assert state in ("contradicts", judged.state)
    assert judged.found is not None or problem == f"partition.metadata: {judged.problem}; {judged.effect}"
