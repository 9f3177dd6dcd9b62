"""The scenarios of KIP-516, *Immediate delete scenarios*, and its rows, as a person meets them who has only disks.

Requests are files, brokers are stopped, and everything goes through ``logstore``; a broker that starts on the same
disks afterwards must find what the proposal promises. Brokers that are running have these scenarios in ``broker``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from layout import partition_metadata
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.broker import Broker
from reconciler.cli import logstore
from reconciler.protocol import (
    KIP516,
    ControlRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    Version,
    decode_request,
    decode_response,
)
from reconciler.protocol.json_messages import encode_json
from reconciler.protocol.messages import decode_response_header, encode_request, encode_response
from reconciler.sources.zookeeper import decode_topic
from reconciler.topic_ids.migrate import with_topic_id
from tests.logstore.engine import formatted, opened
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    A,
    B,
    leader_and_isr,
    state,
    stop_replica,
    topic,
)

A_P0 = TopicPartition("A", 0)
SEGMENT = "00000000000000000000.log"


class Node:
    """A broker that is stopped, and its two disks."""

    def __init__(self, folder: Path, node_id: int) -> None:
        self.node_id, self.folder = node_id, folder
        self.disks = [formatted(folder / f"b{node_id}-d{number}", number, node_id=node_id) for number in (1, 2)]

    def receive(self, request: ControlRequest, *options: str, version: Version = 7) -> Result:
        """Carry a request out with the command; a tiny broker would not pass the gates on shares and creations."""
        file = self.folder / f"request-{self.node_id}"
        file.write_bytes(encode_json(request, version))
        gates = ("--allow", "cluster", "--allow", "create", "--max-share", "100%")
        return run("reconcile", file, *self.disks, *gates, *options)

    def path(self, name: str) -> Path:
        """Where a replica lies."""
        (found,) = [disk / name for disk in self.disks if (disk / name).is_dir()]
        return found

    def staged(self) -> list[Path]:
        return sorted(path for disk in self.disks for path in disk.glob("deleting/*_*") if path.is_dir())

    @contextmanager
    def started(self) -> Iterator[Broker]:
        with opened(*self.disks) as store:
            yield Broker(store, self.node_id)


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(logstore, [str(each) for each in arguments])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


@pytest.fixture
def nodes(tmp_path: Path) -> list[Node]:
    return [Node(tmp_path, node_id) for node_id in (1, 2)]


def on_both(topic_id: TopicId | None, leader: int = 1) -> Any:
    """Partition 0 of topic A on brokers 1 and 2."""
    return topic("A", topic_id, state(0, leader=leader, replicas=(1, 2)))


# KIP516-8, KIP516-5
def test_stale_reads(nodes: list[Node]) -> None:
    b1, b2 = nodes
    # 1. B1 is a leader for A_p0_id0; B2 follows.
    for node in nodes:
        assert node.receive(leader_and_isr(FULL, on_both(A))).exit_code == 0
    (b1.path("A-0") / SEGMENT).write_bytes(b"of id0")
    # 2. A id0 is deleted. 3. A id1 is created. 4. B1 has heard of neither. 5. B2 has, and starts fetching from B1.
    assert b2.receive(leader_and_isr(INCREMENTAL, on_both(B))).exit_code == 0
    with b2.started() as follower, b1.started() as leader:
        asked_for = follower.store.get(A_P0).topic_id
        assert asked_for == B
        # "any request to stale partitions will not be successful"
        assert leader.fence(A_P0, asked_for) is KafkaError.INCONSISTENT_TOPIC_ID
        assert leader.fence(A_P0, A) is KafkaError.NONE
        assert follower.fence(A_P0, A) is KafkaError.INCONSISTENT_TOPIC_ID
        assert leader.fence(TopicPartition("B", 0), TopicId(b"n" * 16)) is KafkaError.UNKNOWN_TOPIC_ID
    # Once B1 has heard of it, the fetch goes through, and finds nothing of the old data.
    assert b1.receive(leader_and_isr(INCREMENTAL, on_both(B))).exit_code == 0
    with b1.started() as leader:
        assert leader.fence(A_P0, asked_for) is KafkaError.NONE
    assert not (b1.path("A-0") / SEGMENT).exists()
    assert [(path.name, (path / SEGMENT).read_bytes()) for path in b1.staged()] == [(f"{A}_0", b"of id0")]


# KIP516-5, KIP516-6
@pytest.mark.parametrize("kind", [FULL, INCREMENTAL])
def test_stale_state(nodes: list[Node], kind: Any) -> None:
    b1 = nodes[0]
    # 1. B1 is a replica for A_p0_id0.
    b1.receive(leader_and_isr(FULL, on_both(A)))
    (b1.path("A-0") / SEGMENT).write_bytes(b"of id0")
    # 2. A id0 is deleted. 3. B1 receives no StopReplica. 4. A id1 is created.
    # 5. B1 receives a LeaderAndIsr with A_p0_id1: "we will ... move A_p0_id0 to the deleting directory".
    result = b1.receive(leader_and_isr(kind, on_both(B)), "--delay", "0ms")
    assert (result.exit_code, "may be purged from" in result.stderr) == (0, True)
    assert partition_metadata.parse((b1.path("A-0") / "partition.metadata").read_bytes()).topic_id == B
    (staged,) = b1.staged()
    assert (staged.name, (staged / SEGMENT).read_bytes()) == (f"{A}_0", b"of id0")
    # When the delay is over, it goes for ever, and the new topic's replica stays.
    assert run("purge", *b1.disks).exit_code == 0
    assert b1.staged() == []
    assert b1.path("A-0").is_dir()


# KIP516-5
def test_both_kinds_of_stale_replicas_go_with_a_full_request_and_one_with_an_incremental(nodes: list[Node]) -> None:
    b1 = nodes[0]
    gone = topic("gone", TopicId(b"g" * 16), 0)
    b1.receive(leader_and_isr(FULL, on_both(A), gone))
    assert b1.receive(leader_and_isr(INCREMENTAL, on_both(B))).exit_code == 0
    # "any partitions on the broker with a topic ID that does not match"; the other one may only be missing here
    assert [path.name for path in b1.staged()] == [f"{A}_0"]
    assert b1.receive(leader_and_isr(FULL, on_both(B))).exit_code == 0
    assert {path.name for path in b1.staged()} == {f"{A}_0", f"{TopicId(b'g' * 16)}_0"}


# KIP516-1
def test_a_topic_id_is_the_same_text_in_the_request_on_the_disk_and_in_an_audit(nodes: list[Node]) -> None:
    b1 = nodes[0]
    drawn = TopicId.random(lambda number: bytes(range(number)))
    assert (len(str(drawn)), drawn.to_bytes()[6] >> 4) == (22, 4)
    b1.receive(leader_and_isr(FULL, on_both(drawn)))
    written = json.loads((b1.path("A-0") / "partition.metadata").read_bytes())
    assert written["id"] == str(drawn)
    (row,) = [
        each
        for line in run("scan", *b1.disks, "--format", "ndjson").stdout.splitlines()
        if (each := json.loads(line))["name"] == "A-0"
    ]
    assert row["topic_id"] == str(drawn)
    # The zero ID means that there is none, so it contradicts nothing.
    document = json.loads(encode_json(leader_and_isr(FULL, on_both(None)), 7))
    assert document["topicStates"][0]["topicId"] == "AAAAAAAAAAAAAAAAAAAAAA"
    assert b1.receive(leader_and_isr(FULL, on_both(None))).exit_code == 0
    assert b1.staged() == []


# KIP516-2
@pytest.mark.parametrize(
    "text",
    [
        f"version: 0\ntopic_id: {A}\n",
        f"version: 0\ntopic_id: {A}\ntopic_name: A\npartition_id: 0\n",
        partition_metadata.encode_json(A, "A", 0).decode(),
    ],
    ids=["shipped", "key-value", "json"],
)
def test_every_form_of_partition_metadata_is_a_topic_id_to_a_request(nodes: list[Node], text: str) -> None:
    b1 = nodes[0]
    replica = b1.disks[0] / "A-0"
    replica.mkdir()
    (replica / "partition.metadata").write_text(text)
    result = b1.receive(leader_and_isr(FULL, on_both(A)))
    assert (result.exit_code, "done: nothing" in result.stderr) == (0, True), result.output
    assert (replica / "partition.metadata").read_text() == text


# KIP516-2
def test_partition_metadata_that_contradicts_its_directory_is_left_alone(nodes: list[Node]) -> None:
    b1 = nodes[0]
    replica = b1.disks[0] / "A-0"
    replica.mkdir()
    (replica / "partition.metadata").write_bytes(partition_metadata.encode_json(A, "A", 7))
    result = b1.receive(leader_and_isr(FULL, on_both(A)), "--format", "json")
    (answered,) = json.loads(result.stdout)["partitions"]
    assert (result.exit_code, answered["verdict"], answered["error"]) == (4, "DAMAGED", 56)
    assert replica.is_dir()


# KIP516-3
def test_a_replica_that_was_moved_to_another_disk_took_its_topic_id_along(nodes: list[Node]) -> None:
    b1 = nodes[0]
    b1.receive(leader_and_isr(FULL, on_both(A)))
    (b1.path("A-0") / SEGMENT).write_bytes(b"data")
    was = b1.path("A-0").parent
    with b1.started() as broker:
        (other,) = [each.identity.directory_id for each in broker.store.log_dirs if each.path != str(was)]
        assert other is not None
        broker.store.move(A_P0, other)
    assert b1.path("A-0").parent != was
    result = b1.receive(leader_and_isr(FULL, on_both(A)))
    assert (result.exit_code, "done: nothing" in result.stderr) == (0, True)
    assert (b1.path("A-0") / SEGMENT).read_bytes() == b"data"


# KIP516-4
@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_request_and_its_answer_go_over_the_wire_by_topic_id(nodes: list[Node], version: int) -> None:
    with nodes[0].started() as broker:
        header, request = decode_request(encode_request(leader_and_isr(FULL, on_both(A)), version, 7))
        assert isinstance(request, LeaderAndIsrRequest)
        answered = encode_response(broker.handle(request), version, header.correlation_id)
    correlation_id, body = decode_response_header(LeaderAndIsrResponse, answered, version)
    response = decode_response(LeaderAndIsrResponse, body, version)
    assert (correlation_id, response.error) == (7, 0)
    assert [(each.topic, each.topic_id, each.partitions) for each in response.topics] == [("", A, ((0, 0),))]


# KIP516-7
@pytest.mark.parametrize(("version", "topic_id"), [(3, None), (KIP516, A)])
def test_a_replica_that_was_stopped_and_deleted_waits_and_comes_back_with_its_id(
    nodes: list[Node], version: Version, topic_id: TopicId | None
) -> None:
    b1 = nodes[0]
    b1.receive(leader_and_isr(FULL, on_both(A)))
    (b1.path("A-0") / SEGMENT).write_bytes(b"data")
    assert b1.receive(stop_replica("A", 0, topic_id=B), version=KIP516).exit_code == 4
    assert b1.staged() == []
    assert b1.receive(stop_replica("A", 0, topic_id=topic_id), version=version).exit_code == 0
    assert [path.name for path in b1.staged()] == [f"{A}_0"]
    assert b1.receive(leader_and_isr(INCREMENTAL, on_both(A))).exit_code == 0
    assert (b1.staged(), (b1.path("A-0") / SEGMENT).read_bytes()) == ([], b"data")


# KIP516-11
def test_an_id_that_a_topic_is_given_in_zookeeper_reaches_the_disks_and_is_never_guessed(nodes: list[Node]) -> None:
    b1, b2 = nodes
    for node, held in ((b1, None), (b2, TopicId(b"x" * 16))):
        (node.disks[0] / "A-0").mkdir()
        (node.disks[0] / "A-0" / SEGMENT).write_bytes(b"data")
        if held is not None:
            (node.disks[0] / "A-0" / "partition.metadata").write_bytes(partition_metadata.encode(held))
    old = decode_topic(b'{"version":1,"partitions":{"0":[1,2]}}')
    # Before the migration the controller knows no ID, and nothing is written.
    assert old.topic_id is None
    assert b1.receive(leader_and_isr(FULL, on_both(None))).exit_code == 0
    assert not (b1.path("A-0") / "partition.metadata").exists()
    node_data = decode_topic(with_topic_id(b'{"version":1,"partitions":{"0":[1,2]}}', B))
    assert (node_data.topic_id, node_data.partitions) == (str(B), {0: (1, 2)})
    request = leader_and_isr(FULL, topic("A", TopicId.parse(node_data.topic_id), state(0, 1, replicas=(1, 2))))
    assert b1.receive(request).exit_code == 0
    assert partition_metadata.parse((b1.path("A-0") / "partition.metadata").read_bytes()).topic_id == B
    assert (b1.path("A-0") / SEGMENT).read_bytes() == b"data"
    # The other broker holds the name under another ID: that is another topic, whose data is staged whole.
    assert b2.receive(request).exit_code == 0
    assert [(path / SEGMENT).read_bytes() for path in b2.staged()] == [b"data"]


# KIP516-10
def test_what_a_controller_gave_up_to_delete_goes_with_the_next_full_request_and_not_before(nodes: list[Node]) -> None:
    b1 = nodes[0]
    b1.receive(leader_and_isr(FULL, on_both(A), topic("B", B, 0)))
    # The StopReplica for B never came. What the controller sends meanwhile is not FULL, and does not name it.
    assert b1.receive(leader_and_isr(INCREMENTAL, on_both(A))).exit_code == 0
    assert b1.path("B-0").is_dir()
    assert b1.receive(leader_and_isr(FULL, on_both(A), controller_epoch=2)).exit_code == 0
    assert [path.name for path in b1.staged()] == [f"{B}_0"]


# KIP516-6
def test_an_operator_sees_when_it_goes_and_can_have_it_back_until_then(nodes: list[Node]) -> None:
    b1 = nodes[0]
    b1.receive(leader_and_isr(FULL, on_both(A), topic("B", B, 0)))
    (b1.path("B-0") / SEGMENT).write_bytes(b"wanted after all")
    document = json.loads(b1.receive(leader_and_isr(FULL, on_both(A)), "--format", "json").stdout)
    (change,) = document["changes"]
    (row,) = json.loads(run("staged", *b1.disks, "--format", "json").stdout)["rows"]
    assert (row["due_ms"], row["location"], row["verdict"]) == (change["due_ms"], change["location"], "UNKNOWN_TOPIC")
    assert row["due_ms"] - row["staged_ms"] == 4 * 3_600_000
    assert run("purge", *b1.disks).exit_code in (0, 1)
    assert run(*change["undo"].split()[1:]).exit_code == 0
    assert (b1.path("B-0") / SEGMENT).read_bytes() == b"wanted after all"
