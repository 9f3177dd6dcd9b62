"""What a cluster refuses, the settings it writes, and the command round it; no broker is started."""

from __future__ import annotations

import base64
import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.real_broker import RELEASES, java, reassign, settings, znodes
from tools.real_broker import __main__ as command
from tools.real_broker import cluster as cluster_module
from tools.real_broker.client import Partition, until
from tools.real_broker.cluster import Cluster, random_cluster_id
from tools.real_broker.errors import CommandError, NotInTimeError, RealBrokerError, StartError
from tools.real_broker.releases import Mode
from tools.real_broker.servers import answers, free_ports, gives_sessions


@pytest.fixture(autouse=True)
def no_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fetched."""
    for module in (cluster_module, java, command):
        monkeypatch.setattr(module, "class_path", lambda release: "a.jar")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    """Makes clusters that never run."""
    made: list[Cluster] = []

    def build(name: str, **options: Any) -> Cluster:
        made.append(Cluster(name, tmp_path / f"cluster-{len(made)}", **options))
        return made[-1]

    yield build
    for each in made:
        each.close()


def written(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(RealBrokerError, match="is not empty"):
        Cluster("3.9", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize("options", [{"brokers": 0}, {"brokers": 10}, {"log_dirs": 0}, {"log_dirs": 10}])
def test_too_few_and_too_many_are_refused(tmp_path: Path, options: dict[str, int]) -> None:
    with pytest.raises(RealBrokerError, match="take 1 to 9"):
        Cluster("3.9", tmp_path / "new", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_each_broker_has_its_id_its_port_and_its_disks(make: Any) -> None:
    cluster = make("3.9", mode="zk", brokers=3, log_dirs=2, settings={"num.io.threads": 7})
    texts = [written(broker.folder / f"broker-{n}.properties") for n, broker in cluster.brokers.items()]
    assert [text["broker.id"] for text in texts] == ["1", "2", "3"]
    assert len({text["listeners"] for text in texts}) == 3
    assert texts[0]["log.dirs"] == ",".join(map(str, cluster.brokers[1].log_dirs))
    assert len(set(cluster.log_dirs)) == 6
    assert {text["num.io.threads"] for text in texts} == {"7"}
    assert {text["zookeeper.connect"] for text in texts} == {cluster.zookeeper}
    assert cluster.bootstrap.split(",") == [broker.address for broker in cluster.brokers.values()]


def test_in_kraft_the_controller_is_no_broker_and_there_is_no_zookeeper(make: Any) -> None:
    cluster = make("4.3", brokers=2)
    controller = written(cluster.metadata.folder / "controller.properties")
    assert controller["process.roles"] == "controller"
    broker = written(cluster.brokers[2].folder / "broker-2.properties")
    assert broker["process.roles"] == "broker"
    assert broker["controller.quorum.voters"] == controller["controller.quorum.voters"]
    assert broker["node.id"] != controller["node.id"]
    with pytest.raises(RealBrokerError, match="runs without ZooKeeper"):
        cluster.forget_topic("orders")


def test_settings_of_one_broker_are_written_at_its_next_start(make: Any) -> None:
    broker = make("3.9", mode="zk").brokers[1]
    broker.settings["num.io.threads"] = 9
    broker.write_settings()
    assert written(broker.folder / "broker-1.properties")["num.io.threads"] == "9"


def test_everything_listens_on_the_loopback_interface_alone() -> None:
    for mode in Mode:
        text = settings.broker_settings(mode, 1, 20001, ["/d"], metadata_port=20000, brokers=1)
        assert text["listeners"] == text["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20001"
    assert settings.zookeeper_settings(20000, "/d")["clientPortAddress"] == "127.0.0.1"
    assert settings.controller_settings(20000, "/d")["listeners"] == "CONTROLLER://127.0.0.1:20000"


def test_log_lines_are_set_in_the_language_of_the_release() -> None:
    assert "log4j.rootLogger" in settings.logging_settings(RELEASES["2.8"])
    assert "rootLogger.level" in settings.logging_settings(RELEASES["4.3"])


def test_a_cluster_id_is_one_that_kafka_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    # A dash in front would be read as an option by Kafka's own commands.
    drawn = iter(["fb" * 16, "0b" * 16])
    monkeypatch.setattr(cluster_module.uuid, "uuid4", lambda: cluster_module.uuid.UUID(hex=next(drawn)))
    assert base64.urlsafe_b64decode(random_cluster_id() + "==") == bytes.fromhex("0b" * 16)


def test_free_ports_are_distinct_and_nothing_answers_there() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    assert not any(answers(port) for port in ports)


@pytest.mark.parametrize(
    ("answer", "is_at_work"),
    [
        (b"Zookeeper version: 3.8.4\nLatency min/avg/max: 0/0.0/0\nMode: standalone\nNode count: 5\n", True),
        (b"This ZooKeeper instance is not currently serving requests\n", False),
        (b"", False),
    ],
)
def test_a_zookeeper_that_listens_is_not_at_work_before_it_says_so(answer: bytes, is_at_work: bool) -> None:
    asked: list[bytes] = []

    class Zookeeper(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked.append(self.request.recv(4))
            self.request.sendall(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Zookeeper) as server:
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        assert gives_sessions(server.server_address[1]) is is_at_work
        serving.join()
    assert asked == [b"srvr"]


def test_a_zookeeper_that_forgets_the_question_is_not_waited_for_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as forgetful:
        assert not gives_sessions(forgetful.getsockname()[1])


def test_without_a_session_the_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kazoo")
    monkeypatch.setattr(znodes, "SECONDS", 0.2)
    with pytest.raises(NotInTimeError, match=r"ZooKeeper at 127\.0\.0\.1:1 gave no session within 0\.2 s"):
        znodes.set_cluster_id("127.0.0.1:1", "x")


def test_the_input_of_a_reassignment_names_disks_only_where_they_were_asked_for() -> None:
    text = reassign.as_json("orders", {0: [1, 2], 1: [2]}, {0: ["/disk1", "any"]})
    assert json.loads(text) == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["/disk1", "any"]},
            {"topic": "orders", "partition": 1, "replicas": [2]},
        ],
    }


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("Reassignment of partition orders-0 is complete.", True),
        ("Reassignment of partition orders-0 is completed.\nReassignment of replica orders-0-1 completed.", True),
        ("Reassignment of partition orders-0 is still in progress.", False),
        ("Reassignment of partition a-0 is complete.\nReassignment of partition a-1 is still in progress.", False),
        ("Reassignment of partition a-0 is complete.\nReassignment of replica a-0-1 is still in progress.", False),
        ("There is no active reassignment of partition orders-0, but replica set is 1 rather than 2.", False),
        ("", False),
    ],
)
def test_a_reassignment_is_done_when_each_part_of_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, done: bool
) -> None:
    monkeypatch.setattr(reassign, "run_command", lambda *_: f"Status of partition reassignment:\n{text}\n")
    assert reassign.Reassignment(RELEASES["3.9"], "127.0.0.1:1", tmp_path, "{}").verify() is done


def test_a_move_to_a_broker_that_is_not_there_is_refused(make: Any) -> None:
    with pytest.raises(CommandError, match=r"no broker 7 in this cluster; it has \[1\]"):
        make("3.9").reassign("orders", {0: [1, 7]})


def test_a_partition_is_under_replicated_when_a_replica_is_not_in_sync() -> None:
    assert Partition(1, (1, 2), (1,)).under_replicated
    assert not Partition(1, (1, 2), (2, 1)).under_replicated


def test_what_never_comes_is_given_up_with_what_was_waited_for() -> None:
    assert until("it is there", lambda: 0) == 0
    with pytest.raises(NotInTimeError, match="until it is there, and it did not happen"):
        until("it is there", lambda: None, seconds=0)


def test_a_server_that_ends_while_it_starts_is_reported_with_the_tail_of_its_log(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho no such disk; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "java_version", lambda: 17)
    monkeypatch.setattr(java, "release_folder", lambda release: tmp_path)
    with pytest.raises(StartError, match=r"(?s)zookeeper ended before it could listen.*no such disk"):
        make("3.9", mode="zk").start()


def test_the_command_lists_each_release_with_its_modes(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["versions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[:3] for line in lines] == [
        [release.name, release.version, ",".join(release.modes)] for release in RELEASES.values()
    ]


def test_the_command_fetches_all_or_what_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["fetch"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(RELEASES)
    assert command.main(["fetch", "2.8"]) == 0
    assert capsys.readouterr().out == "Kafka 2.8.2: 1 jars\n"


@pytest.mark.parametrize("arguments", [["up", "9.9"], ["fetch", "9.9"], ["up", "4.3", "--mode", "zk"]])
def test_the_command_says_in_one_line_what_it_cannot_do(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert command.main(arguments) == 1
    said = capsys.readouterr().err
    assert said.startswith("real-broker: ")
    assert said.count("\n") == 1


def test_what_is_up_is_described_with_its_addresses_and_disks(make: Any) -> None:
    cluster = make("3.9", mode="zk", brokers=2, log_dirs=2)
    lines = dict(line.partition("\t")[::2] for line in command.described(cluster).splitlines())
    assert lines["bootstrap"] == cluster.bootstrap
    assert lines["zookeeper"] == cluster.zookeeper
    assert lines["broker 2"] == str(cluster.brokers[2].log_dirs[-1])
    assert "zookeeper" not in command.described(make("4.3"))
