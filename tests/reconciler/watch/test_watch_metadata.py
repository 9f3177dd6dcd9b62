"""Metadata is loaded again when its files change, and kept while they cannot be read.

Records at the new end of a KRaft log that are not about replicas load nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from layout.ids import TopicId
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, RefusedError
from reconciler.sources import load, parquet
from reconciler.watch import WatchedMetadata
from reconciler.watch.metadata import COPY_LAG_S, LIVE_S, RETRY_S, SHARE, quiet_until
from tools.writers import kraft_writer as kraft

A, B = (TopicId(bytes([number] * 16)) for number in (1, 2))


class Watching:
    """A watched source, with a clock that a test moves and the sentences that were said."""

    def __init__(self, spec: str) -> None:
        self.said: list[str] = []
        self.now = 0.0
        self.metadata = WatchedMetadata([spec], load(spec), self.said.append, clock=lambda: self.now)

    @property
    def topics(self) -> list[str]:
        return sorted(topic for state in self.metadata.states for topic in state.topics["topic"].to_pylist())

    def polled(self, seconds: float = 1000.0) -> bool:
        self.now += seconds
        return self.metadata.poll()


def appended(log_dir: Path, records: list[bytes], offset: int) -> None:
    with open(log_dir / "__cluster_metadata-0" / "00000000000000000001.log", "ab") as file:
        file.write(kraft.log_batch(records, offset))


@pytest.fixture
def kraft_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    kraft.write_metadata_dir(
        folder, snapshot=[kraft.topic_record("a", A)], log=[[kraft.no_op_record()]], cluster_id="C"
    )
    return folder


def saved(folder: Path, *topics: str) -> str:
    folder.mkdir(exist_ok=True)
    builder = DesiredBuilder()
    for topic in topics:
        builder.topic(topic, str(A))
    parquet.save_state(builder.build(MetadataIdentity("kraft", "x", "C")), str(folder))
    return str(folder)


def test_files_that_stand_still_may_lag_and_those_that_grow_say_how_things_are_now(kraft_dir: Path) -> None:
    watching = Watching(str(kraft_dir))
    assert not watching.polled(COPY_LAG_S / 2)
    assert watching.metadata.read_at == 0
    assert not watching.polled(COPY_LAG_S)
    assert watching.metadata.read_at == COPY_LAG_S / 2
    appended(kraft_dir, [kraft.no_op_record()], 2)
    assert not watching.polled(1)
    assert watching.metadata.read_at == watching.now


def test_nothing_is_loaded_while_nothing_changes(kraft_dir: Path) -> None:
    watching = Watching(str(kraft_dir))
    (kraft_dir / "orders-0").mkdir()
    assert not watching.polled()
    assert watching.topics == ["a"]


def test_a_record_of_a_new_topic_in_the_log_is_seen(kraft_dir: Path) -> None:
    watching = Watching(f"kraft:{kraft_dir}")
    appended(kraft_dir, [kraft.topic_record("b", B)], 3)
    assert watching.polled()
    assert watching.topics == ["a", "b"]
    assert not watching.polled()


def test_records_that_say_nothing_of_replicas_load_nothing(kraft_dir: Path, monkeypatch: Any) -> None:
    watching = Watching(str(kraft_dir))
    monkeypatch.setattr("reconciler.watch.metadata.load", lambda _: pytest.fail("loaded"))
    for offset in (3, 4):
        appended(kraft_dir, [kraft.no_op_record()], offset)
        assert not watching.polled()
    monkeypatch.undo()
    appended(kraft_dir, [kraft.topic_record("b", B)], 5)
    assert watching.polled()


def test_a_new_snapshot_a_new_file_and_another_file_are_seen(kraft_dir: Path, tmp_path: Path) -> None:
    watching = Watching(str(kraft_dir))
    folder = kraft_dir / "__cluster_metadata-0"
    snapshot = kraft.snapshot_bytes([kraft.topic_record("a", A), kraft.topic_record("c", B)], epoch=9)
    (folder / "00000000000000000020-0000000009.checkpoint").write_bytes(snapshot)
    assert watching.polled()
    assert watching.topics == ["a", "c"]
    other = Watching(saved(tmp_path / "saved", "a"))
    saved(tmp_path / "saved", "b")
    assert other.polled()
    assert other.topics == ["b"]


def test_what_cannot_be_read_is_said_once_and_the_last_state_holds(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    watching = Watching(saved(folder, "a"))
    shutil.rmtree(folder)
    assert [watching.polled(1.0) for _ in range(40)] == [False] * 40
    assert watching.topics == ["a"]
    assert len(watching.said) == 1
    assert "holds on" in watching.said[0]
    saved(folder, "b")
    assert watching.polled()
    assert watching.topics == ["b"]
    assert watching.said[1:] == ["the metadata can be read again"]


def test_what_cannot_be_used_is_refused_like_what_cannot_be_read(kraft_dir: Path) -> None:
    watching = Watching(str(kraft_dir))

    def refused(_: object) -> None:
        raise RefusedError("another cluster")

    appended(kraft_dir, [kraft.topic_record("b", B)], 3)
    for _ in range(3):
        watching.now += 2 * RETRY_S
        assert not watching.metadata.poll(refused)
    assert watching.topics == ["a"]
    assert len(watching.said) == 1


def test_what_looks_the_same_is_tried_again_after_a_while(kraft_dir: Path, monkeypatch: Any) -> None:
    watching = Watching(str(kraft_dir))

    def failing(_: str) -> list[DesiredState]:
        raise MetadataError("Input/output error")

    appended(kraft_dir, [kraft.topic_record("b", B)], 3)
    monkeypatch.setattr("reconciler.watch.metadata.load", failing)
    assert not watching.polled()
    monkeypatch.undo()
    assert not watching.polled(1.0)
    assert watching.polled(RETRY_S)


def test_what_took_long_to_load_is_not_loaded_again_soon(kraft_dir: Path, monkeypatch: Any) -> None:
    watching = Watching(str(kraft_dir))

    def slowly(spec: str) -> list[DesiredState]:
        watching.now += 2.0
        return load(spec)

    monkeypatch.setattr("reconciler.watch.metadata.load", slowly)
    polled = []
    for number, seconds in enumerate((1.0, 10.0, 31.0)):
        appended(kraft_dir, [kraft.topic_record(f"t{number}", TopicId(bytes([9, number] * 8)))], 3 + number)
        polled.append(watching.polled(seconds))
    assert polled == [True, False, True]


def test_a_request_that_names_its_receiver_is_watched_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    partition = (
        '{"partitionIndex": 0, "controllerEpoch": 1, "leader": 1, "leaderEpoch": 1, "isr": [1], "zkVersion": 1, '
    )
    body = (
        '{"controllerId": 1, "controllerEpoch": 1, "brokerEpoch": 1, "type": 2, "topicStates": [{"topicName": "NAME", '
        f'"topicId": "{A}", "partitionStates": [{partition}"replicas": [1], "addingReplicas": [], '
        '"removingReplicas": [], "isNew": false}]}], "liveLeaders": []}'
    )
    file.write_text(body.replace("NAME", "a"))
    watching = Watching(f"request:{file}@1")
    file.write_text(body.replace("NAME", "longer"))
    os.utime(file, ns=(1, 1))
    assert watching.polled()
    assert watching.topics == ["longer"]


def test_without_any_source_nothing_ever_changes() -> None:
    metadata = WatchedMetadata([], [], lambda _: None)
    assert not metadata.poll()


class LiveSource:
    """Stands for the cluster behind ``zk:`` in the place of a server; each reading takes as long as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.topics = ["a"]
        self.error: Exception | None = None
        self.now, self.seconds, self.loads = 0.0, 0.0, 0
        self.said: list[str] = []
        monkeypatch.setattr("reconciler.watch.metadata.load", self.load)
        self.metadata = WatchedMetadata(["zk:host:1"], self.load("zk:host:1"), self.said.append, clock=lambda: self.now)
        self.loads = 0

    def load(self, spec: str) -> list[DesiredState]:
        assert spec == "zk:host:1"
        self.loads += 1
        self.now += self.seconds
        if self.error is not None:
            raise self.error
        builder = DesiredBuilder()
        for topic in self.topics:
            builder.topic(topic, None)
        return [builder.build(MetadataIdentity("zookeeper", "host:1", "C", digest=",".join(self.topics)))]

    def polled(self, seconds: float) -> bool:
        self.now += seconds
        return self.metadata.poll()


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> LiveSource:
    return LiveSource(monkeypatch)


def test_a_live_source_is_asked_again_after_its_time_and_not_before(live: LiveSource) -> None:
    live.topics = ["b"]
    assert not live.polled(LIVE_S - 1)
    assert live.loads == 0
    assert live.polled(1)
    assert live.metadata.states[0].topics["topic"].to_pylist() == ["b"]
    assert not live.polled(LIVE_S - 1)
    assert live.loads == 1


def test_a_live_source_that_says_the_same_is_no_news(live: LiveSource) -> None:
    assert not live.polled(LIVE_S)
    assert live.loads == 1


def test_a_live_source_that_takes_long_is_asked_less_often(live: LiveSource) -> None:
    live.seconds = 10.0
    live.polled(LIVE_S)
    live.polled(10.0 / SHARE - 1)
    assert live.loads == 1
    live.polled(1)
    assert live.loads == 2


def test_a_live_source_that_does_not_answer_is_reported_once_and_what_it_said_holds(live: LiveSource) -> None:
    before, live.error = live.metadata.states, MetadataError("no ZooKeeper answered")
    assert not live.polled(LIVE_S)
    assert not live.polled(RETRY_S)
    assert live.metadata.states is before
    assert len(live.said) == 1
    live.error = None
    assert live.polled(RETRY_S)
    assert live.said[1] == "the metadata can be read again"
    assert not live.polled(LIVE_S)


def test_a_file_beside_a_live_source_is_still_seen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = saved(tmp_path / "p", "a")
    of_file = load

    def either(one: str) -> list[DesiredState]:
        return of_file(one) if one == spec else [DesiredBuilder().build(MetadataIdentity("zookeeper", "host:1", "D"))]

    monkeypatch.setattr("reconciler.watch.metadata.load", either)
    now = 0.0
    specs = [spec, "zk:host:1"]
    metadata = WatchedMetadata(specs, [state for one in specs for state in either(one)], pytest.fail, clock=lambda: now)
    saved(tmp_path / "p", "a", "b")
    now += 1
    assert metadata.poll()
    assert metadata.states[0].topics.num_rows == 2


TOPIC = TopicId(bytes(range(16)))
FIRST = kraft.log_batch([kraft.topic_record("a", TOPIC)], 0)


def tail(tmp_path: Path, *batches: Sequence[bytes], torn: bytes = b"") -> tuple[str, int, int]:
    data, offset = FIRST, 1
    for records in batches:
        data += kraft.log_batch(records, offset)
        offset += len(records)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data + torn)
    return str(path), len(FIRST), len(data + torn)


@pytest.mark.parametrize(
    "records",
    [
        [kraft.no_op_record()],
        [kraft.no_op_record(), kraft.feature_level_record("metadata.version", 20)],
        [kraft.partition_change_record(TOPIC, 0, isr=[1, 2], leader=2)],
    ],
)
def test_what_says_nothing_of_replicas_is_quiet(tmp_path: Path, records: list[bytes]) -> None:
    path, start, size = tail(tmp_path, records, records)
    assert quiet_until(path, start, size) == size


@pytest.mark.parametrize(
    "record",
    [
        kraft.topic_record("b", TOPIC),
        kraft.partition_record(TOPIC, 0, [1]),
        kraft.remove_topic_record(TOPIC),
        kraft.partition_change_record(TOPIC, 0, replicas=[1, 3]),
        kraft.partition_change_record(TOPIC, 0, removingReplicas=[1]),
        kraft.begin_transaction(),
        kraft.end_transaction(),
    ],
)
def test_what_says_something_of_replicas_is_not(tmp_path: Path, record: bytes) -> None:
    path, start, size = tail(tmp_path, [kraft.no_op_record()], [kraft.no_op_record(), record])
    assert quiet_until(path, start, size) is None


def test_a_control_batch_is_quiet(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(FIRST + kraft.leader_change_batch(1, epoch=2))
    assert quiet_until(str(path), len(FIRST), path.stat().st_size) == path.stat().st_size


def test_a_write_that_goes_on_is_looked_at_again_from_its_beginning(tmp_path: Path) -> None:
    path, start, size = tail(tmp_path, [kraft.no_op_record()], torn=FIRST[:20])
    assert quiet_until(path, start, size) == size - 20


def test_nothing_new_is_quiet_and_what_cannot_be_read_is_not(tmp_path: Path) -> None:
    path, start, _ = tail(tmp_path)
    assert quiet_until(path, start, start) == start
    assert quiet_until(f"{path}.none", 0, 10) is None
