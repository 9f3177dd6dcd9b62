"""Topics of a real ZooKeeper get their IDs once, and a concurrent writer wins."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from layout.ids import TopicId
from reconciler.cli import logstore
from reconciler.sources.zookeeper import decode_topic
from reconciler.topic_ids import TopicIdState, assign_topic_id, connect, read_cluster
from tests.zookeeper.conftest import below_chroot

pytestmark = pytest.mark.zookeeper

CLUSTER = "XB4QhweWTe-kZwMNW25y1A"
ID = "cxBT72dK4si8Ied1iP4wBA"
NEW = TopicId.parse("b8tRS7h4TJ2Vt43Dp85v2A")
NODES: dict[str, object] = {
    "/cluster/id": {"version": "1", "id": CLUSTER},
    "/controller_epoch": 27,
    "/brokers/topics/first": {"version": 1, "partitions": {"0": [1, 2], "1": [2, 1]}},
    "/brokers/topics/first/partitions/0/state": {"leader": 1, "leader_epoch": 0, "isr": [1, 2]},
    "/brokers/topics/second": {"version": 2, "partitions": {"0": [1]}, "adding_replicas": {}, "removing_replicas": {}},
    "/brokers/topics/third": {"version": 3, "topic_id": ID, "partitions": {"0": [3]}},
    "/brokers/topics/broken": "{",
    "/brokers/topics/org/apache/orders": {"version": 1, "partitions": {"0": [1]}},
    "/brokers/topics/going": {"version": 1, "partitions": {"0": [1]}},
    "/admin/delete_topics/going": "",
}


@pytest.fixture
def client(server: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A client below a chroot of this test's own, which holds the nodes of a cluster without a controller."""
    contents = {path: each if isinstance(each, str) else json.dumps(each) for path, each in NODES.items()}
    yield from below_chroot(server, request, {path: each.encode() for path, each in contents.items()})


@pytest.fixture
def run(server: Any, client: Any) -> Callable[..., Result]:
    return lambda *args: CliRunner().invoke(logstore, ["topic-ids", f"{server.address}{client.chroot}", *args])


def states(result: Result) -> dict[str, str]:
    return {each["topic"]: each["state"] for each in json.loads(result.stdout)["topics"]}


def everything(client: Any) -> dict[str, tuple[bytes, int]]:
    found = {}
    for path in NODES:
        data, status = client.get(path)
        found[path] = (data, status.version)
    return found


# KIP516-11
def test_nothing_is_written_unless_it_is_asked_for(run: Callable[..., Result], client: Any) -> None:
    before = everything(client)
    result = run("--format", "json")
    assert (result.exit_code, "nothing was written" in result.stderr) == (1, True), result.output
    assert states(result) == {
        "first": "without_id", "second": "without_id", "third": "has_id", "broken": "left_alone",
        "org:apache:orders": "without_id", "going": "left_alone",
    }  # fmt: skip
    assert everything(client) == before


# KIP516-11
def test_topics_without_an_id_get_one_each_and_no_other_node_is_touched(
    run: Callable[..., Result], client: Any
) -> None:
    before = everything(client)
    result = run("--assign", "--format", "json")
    assert result.exit_code == 1, result.output  # what is left alone is a finding
    document = json.loads(result.stdout)
    given = {each["topic"]: each["topic_id"] for each in document["topics"] if each["state"] == "assigned"}
    assert (document["schema_version"], document["cluster_id"], len(set(given.values()))) == (1, CLUSTER, 3)
    after = everything(client)
    for path, (data, version) in after.items():
        topic = path.removeprefix("/brokers/topics/").replace("/", ":")
        if topic in given:
            assert (version, json.loads(data)["version"]) == (1, 3)
            assert decode_topic(data).topic_id == given[topic]
            assert decode_topic(data).partitions == decode_topic(before[path][0]).partitions
        else:
            assert (data, version) == before[path]
    again = run("--assign", "--format", "json")
    assert set(states(again).values()) == {"has_id", "left_alone"}
    assert everything(client) == after


def test_only_the_topics_that_are_named_get_one(run: Callable[..., Result]) -> None:
    result = run("--assign", "--topic", "org:*", "--format", "json")
    assert (result.exit_code, states(result)) == (0, {"org:apache:orders": "assigned"})
    assert states(run("--format", "json"))["first"] == "without_id"


def test_a_controller_in_office_is_a_refusal_that_can_be_overridden(run: Callable[..., Result], client: Any) -> None:
    client.create("/controller", b'{"version":1,"brokerid":1,"timestamp":"1"}', ephemeral=True)
    before = everything(client)
    result = run("--assign")
    assert (result.exit_code, "--running-controller" in result.stderr) == (3, True)
    assert everything(client) == before
    assert run("--format", "json").exit_code == 1
    assert run("--assign", "--running-controller", "--topic", "first").exit_code == 0


def test_a_cluster_that_kraft_has_taken_over_is_refused(run: Callable[..., Result], client: Any) -> None:
    client.create("/migration", b'{"version":0,"kraft_controller_id":3000,"kraft_controller_epoch":1}')
    result = run("--assign")
    assert (result.exit_code, "KRaft controller 3000" in result.stderr) == (3, True)


# KIP516-11
@pytest.mark.parametrize("path", ["/brokers/topics/first", "/controller_epoch"])
def test_whoever_writes_after_the_reading_wins(server: Any, client: Any, path: str) -> None:
    address = f"{server.address}{client.chroot}"
    with connect(address) as other:
        seen = read_cluster(other, address)
        (first,) = [topic for topic in seen.topics if topic.topic == "first"]
        assert first.state is TopicIdState.WITHOUT_ID
        newer = b'{"version":3,"topic_id":"cxBT72dK4si8Ied1iP4wBA","partitions":{"0":[1,2]}}'
        client.set(path, b"28" if path == "/controller_epoch" else newer)
        before = everything(client)
        problem = assign_topic_id(other, seen, first, NEW)
        assert "after it was read" in (problem or "")
        assert everything(client) == before


def test_a_topic_that_is_deleted_meanwhile_stays_deleted(server: Any, client: Any) -> None:
    address = f"{server.address}{client.chroot}"
    with connect(address) as other:
        seen = read_cluster(other, address)
        client.delete("/brokers/topics/second")
        (second,) = [topic for topic in seen.topics if topic.topic == "second"]
        assert assign_topic_id(other, seen, second, NEW) == "its node is gone"
        assert client.exists("/brokers/topics/second") is None


@pytest.mark.parametrize(
    ("address", "code", "said"),
    [("{}/absent", 3, "no node /absent"), ("{}", 3, "no Kafka uses this place"), ("a b", 2, "no address")],
)
def test_places_without_a_cluster_are_refused_in_a_sentence(server: Any, address: str, code: int, said: str) -> None:
    result = CliRunner().invoke(logstore, ["topic-ids", address.format(server.address)])
    assert (result.exit_code, said in result.stderr, result.stdout) == (code, True, ""), result.output
