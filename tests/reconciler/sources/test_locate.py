"""Find out what a spec means: schemes, folders, globs, and which of several states counts."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layout.ids import TopicId
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.protocol import LeaderAndIsrRequest, PartitionState, RequestType, TopicState
from reconciler.protocol.messages import encode_request
from reconciler.sources import candidates, find, load, locate, newest_per_cluster, save_state, split_spec
from tools.writers import kraft_writer
from tools.writers.zookeeper_writer import snapshot_bytes, topic_nodes

A, B = "XB4QhweWTe-kZwMNW25y1A", "dx1v_xD5Q2qM8wRMAnoAaQ"

REQUEST: dict[str, Any] = {"controllerId": 1, "controllerEpoch": 1, "type": 2, "topicStates": []}


def zookeeper(folder: Path, cluster: str | None = A, *, zxid: int = 1, epoch: int = 1) -> Path:
    """A folder with one snapshot file, and that file's path."""
    nodes = {"/controller_epoch": str(epoch).encode(), **topic_nodes("orders", {0: [1]})}
    if cluster is not None:
        nodes["/cluster/id"] = json.dumps({"version": "1", "id": cluster}).encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"snapshot.{zxid:x}"
    path.write_bytes(snapshot_bytes(nodes))
    return path


def kraft(log_dir: Path, cluster: str = A) -> Path:
    """A log dir with a metadata directory of one topic, and that directory's path."""
    log_dir.mkdir(parents=True, exist_ok=True)
    topic_id = TopicId.from_halves(5, 5)
    records = [kraft_writer.topic_record("orders", topic_id), kraft_writer.partition_record(topic_id, 0, [1])]
    kraft_writer.write_metadata_dir(str(log_dir), snapshot=records, cluster_id=cluster)
    return log_dir / kraft_writer.METADATA_DIR


def request(path: Path, node: int, **values: Any) -> Path:
    state = {"partitionIndex": 0, "controllerEpoch": 1, "leader": node, "leaderEpoch": 0, "isr": [node],
             "partitionEpoch": 0, "replicas": [node]}  # fmt: skip
    document = {**copy.deepcopy(REQUEST), "topicStates": [{"topicName": f"t{node}", "partitionStates": [state]}]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**document, **values}))
    return path


def saved(folder: Path, cluster: str | None = A, **values: Any) -> Path:
    folder.mkdir(parents=True)
    identity = replace(MetadataIdentity("kraft", "/m", cluster_id=cluster), **values)
    save_state(DesiredBuilder().build(identity), str(folder))
    return folder


def described(path: Path) -> Path:
    """The output of kafka-topics for one topic."""
    path.write_text(
        "Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    )
    return path


def wire(path: Path, node: int = 1) -> Path:
    """A request as bytes, whose only partition lies on one broker."""
    only = PartitionState(0, 1, node, 0, (node,), 0, (node,))
    topic = TopicState(f"w{node}", TopicId.from_halves(6, node), (only,))
    path.write_bytes(encode_request(LeaderAndIsrRequest(1, 1, (topic,), type=RequestType.FULL), 7))
    return path


def sources(states: list[DesiredState]) -> list[str]:
    return [state.identity.source for state in states]


def test_each_scheme_loads_its_kind(tmp_path: Path) -> None:
    specs = {
        f"zk-snapshot:{zookeeper(tmp_path / 'zk' / 'version-2')}": "zookeeper-snapshot",
        f"kraft:{kraft(tmp_path / 'log')}": "kraft",
        f"request:{request(tmp_path / 'r.txt', 1)}@1": "request",
        f"parquet:{saved(tmp_path / 'p')}": "parquet",
        f"describe:{described(tmp_path / 'd.txt')}": "describe",
        f"describe-all:{described(tmp_path / 'd.txt')}": "describe",
        f"wire:{wire(tmp_path / 'w')}@1": "request",
    }
    assert {spec: sources(load(spec)) for spec in specs} == {spec: [source] for spec, source in specs.items()}


def test_each_kind_is_recognised_by_looking_at_it(tmp_path: Path) -> None:
    snapshot = zookeeper(tmp_path / "zk" / "version-2")
    metadata_dir = kraft(tmp_path / "log")
    (checkpoint,) = metadata_dir.glob("*.checkpoint")
    paths = {
        snapshot: "zookeeper-snapshot",
        snapshot.parent: "zookeeper-snapshot",
        snapshot.parent.parent: "zookeeper-snapshot",
        metadata_dir: "kraft",
        metadata_dir.parent: "kraft",
        checkpoint: "kraft",
        request(tmp_path / "r.json", 1): "request",
        request(tmp_path / "unnamed", 2): "request",
        saved(tmp_path / "p"): "parquet",
        described(tmp_path / "topics.txt"): "describe",
        wire(tmp_path / "capture"): "request",
    }
    assert {path: sources(load(str(path))) for path in paths} == {path: [source] for path, source in paths.items()}


@pytest.mark.parametrize("scheme", ["zookeeper", "http", "nonsense"])
def test_an_unknown_scheme_is_refused_with_those_that_are_known(scheme: str) -> None:
    with pytest.raises(UsageError, match="schemes are parquet:, kraft:, zk-snapshot:, describe:") as caught:
        load(f"{scheme}:somewhere")
    assert f"no scheme '{scheme}'" in str(caught.value)


@pytest.mark.parametrize("scheme", ["zk", "kafka", "kafka-all"])
def test_an_address_is_never_looked_for_on_a_disk(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kraft(tmp_path / "host*")
    ((source, address),) = candidates(*split_spec(f"{scheme}:host*"))
    assert (source.scheme, address) == (scheme, "host*")
    with pytest.raises(UsageError, match=f"is no address.*{scheme.removesuffix('-all')}:HOST:PORT"):
        load(f"{scheme}:host*")


@pytest.mark.parametrize("scheme", ["zk", "kafka", "kafka-all"])
def test_what_came_from_an_address_is_located_by_what_can_be_typed_again(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = DesiredBuilder().build(MetadataIdentity("zookeeper", "host:1/kafka", "C"))
    spoken = [replace(each, loader=lambda module, paths, location: [made]) for each in locate.SOURCES]
    monkeypatch.setattr(locate, "SOURCES", tuple(spoken))
    (state,) = load(f"{scheme}:host:1/kafka")
    assert state.identity.location == f"{scheme}:host:1/kafka"


def test_a_path_that_is_there_is_no_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request(tmp_path / "zk:copy.json", 1)
    assert sources(load("zk:copy.json")) == ["request"]


@pytest.mark.parametrize(
    "scheme", ["", "kraft:", "zk-snapshot:", "request:", "parquet:", "describe:", "describe-all:", "wire:"]
)
def test_an_absent_path_is_our_error_under_every_scheme(tmp_path: Path, scheme: str) -> None:
    with pytest.raises((UsageError, MetadataError), match="absent"):
        load(f"{scheme}{tmp_path}/absent")


@pytest.mark.parametrize("scheme", ["kraft:", "zk-snapshot:", "request:", "describe:", "wire:"])
@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF\x00\x00\x00\x02"])
def test_a_file_that_is_not_what_the_scheme_says_is_refused(tmp_path: Path, scheme: str, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(MetadataError, match="file"):
        load(f"{scheme}{tmp_path}/file")


def test_a_file_that_nothing_recognises_is_refused_with_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(UsageError, match="holds no metadata source that is known") as caught:
        load(str(tmp_path / "notes.txt"))
    assert all((source.looks_like in str(caught.value)) is source.is_path for source in locate.SOURCES)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no metadata source"):
        load(str(tmp_path))


def test_the_bootstrap_file_of_a_log_dir_is_no_metadata(tmp_path: Path) -> None:
    (tmp_path / "bootstrap.checkpoint").write_bytes(b"x")
    with pytest.raises(UsageError, match="holds no metadata source"):
        load(str(tmp_path))


def test_a_folder_of_sources_gives_one_state_for_each_cluster(tmp_path: Path) -> None:
    zookeeper(tmp_path / "one" / "version-2", A)
    zookeeper(tmp_path / "two" / "version-2", B)
    assert {state.identity.cluster_id for state in load(str(tmp_path))} == {A, B}


def test_a_spec_is_split_into_the_kinds_that_may_read_it_and_the_path(tmp_path: Path) -> None:
    assert split_spec("/metadata") == (locate.SOURCES, "/metadata")
    kinds, path = split_spec(f"zk-snapshot:{tmp_path}")
    assert ([kind.scheme for kind in kinds], path) == (["zk-snapshot"], str(tmp_path))
    snapshot = zookeeper(tmp_path / "version-2")
    assert candidates(kinds, str(snapshot)) == [(kinds[0], str(snapshot))]


def test_the_newest_state_of_each_cluster_names_the_older_ones() -> None:
    def state(cluster: str, offset: int) -> DesiredState:
        return DesiredBuilder().build(MetadataIdentity("kraft", f"/{offset}", cluster, offset=offset))

    first, other = newest_per_cluster([state(A, 1), state(A, 2), state(B, 1)])
    assert (first.identity.location, other.identity.location) == ("/2", "/1")
    assert (first.identity.problems, other.identity.problems) == (
        ("/1 (epoch None, offset 1) is passed over: not newer",),
        (),
    )


def test_a_source_without_a_path_is_an_error() -> None:
    with pytest.raises(UsageError, match="a metadata source without a path"):
        load("")


def test_a_glob_gives_what_it_matches(tmp_path: Path) -> None:
    zookeeper(tmp_path / "one" / "version-2", A)
    zookeeper(tmp_path / "two" / "version-2", B)
    (state,) = load(f"{tmp_path}/o*")
    assert state.identity.cluster_id == A
    with pytest.raises(UsageError, match="no such file"):
        load(f"{tmp_path}/x*")


def test_sources_deeper_in_a_folder_are_found_when_no_child_is_one(tmp_path: Path) -> None:
    zookeeper(tmp_path / "machine" / "disk" / "zk" / "version-2", A)
    assert sources(load(str(tmp_path))) == ["zookeeper-snapshot"]


def test_a_scheme_chooses_among_the_children_of_a_folder(tmp_path: Path) -> None:
    zookeeper(tmp_path / "zk" / "version-2", A)
    kraft(tmp_path / "log", A)
    assert sources(load(f"kraft:{tmp_path}")) == ["kraft"]
    assert sources(load(f"zk-snapshot:{tmp_path}")) == ["zookeeper-snapshot"]


def test_one_cluster_in_sources_of_two_kinds_is_refused_by_name(tmp_path: Path) -> None:
    zookeeper(tmp_path / "zk" / "version-2", A)
    kraft(tmp_path / "log", A)
    with pytest.raises(
        UsageError, match=f"log \\(kraft\\) and .*zk \\(zookeeper-snapshot\\) both speak for cluster {A}"
    ):
        load(str(tmp_path))


def test_of_one_cluster_the_greatest_epoch_then_offset_wins_and_the_rest_are_named(tmp_path: Path) -> None:
    zookeeper(tmp_path / "a" / "version-2", A, zxid=0x99, epoch=1)
    zookeeper(tmp_path / "b" / "version-2", A, zxid=0x11, epoch=2)
    zookeeper(tmp_path / "c" / "version-2", A, zxid=0x12, epoch=2)
    (state,) = load(str(tmp_path))
    assert (state.identity.epoch, state.identity.offset) == (2, 0x12)
    passed_over = [problem for problem in state.identity.problems if "not newer" in problem]
    assert [problem.split()[0] for problem in passed_over] == [str(tmp_path / "b"), str(tmp_path / "a")]


def test_a_source_among_several_that_cannot_be_read_is_named_in_every_state(tmp_path: Path) -> None:
    zookeeper(tmp_path / "a" / "version-2", A)
    zookeeper(tmp_path / "b" / "version-2", B)
    zookeeper(tmp_path / "c" / "version-2").write_bytes(b"")
    states = load(str(tmp_path))
    assert len(states) == 2
    for state in states:
        assert any(problem.startswith(f"{tmp_path}/c is passed over") for problem in state.identity.problems)


def test_sources_of_which_none_can_be_read_are_refused_with_the_reasons(tmp_path: Path) -> None:
    for name in ("a", "b"):
        zookeeper(tmp_path / name / "version-2").write_bytes(b"")
    with pytest.raises(MetadataError, match=r"none of 2 metadata sources can be read: .*/a .*; .*/b "):
        load(str(tmp_path))


def test_requests_in_a_folder_make_one_state(tmp_path: Path) -> None:
    request(tmp_path / "1.json", 1)
    request(tmp_path / "2.json", 2)
    (state,) = load(f"request:{tmp_path}")
    assert state.identity.scope == {1, 2}
    assert state.identity.location == str(tmp_path)
    (state,) = load(f"{tmp_path}/*.json")
    assert sorted(state.topics["topic"].to_pylist()) == ["t1", "t2"]


def test_a_malformed_request_among_several_is_refused(tmp_path: Path) -> None:
    request(tmp_path / "1.json", 1)
    request(tmp_path / "2.json", 2, controllerId="x")
    with pytest.raises(MetadataError, match=r"2.json is not a LeaderAndIsr request"):
        load(str(tmp_path))


def test_other_json_in_a_folder_is_passed_over_unless_requests_are_asked_for(tmp_path: Path) -> None:
    request(tmp_path / "1.json", 1)
    (tmp_path / "notes.json").write_text('{"author": "x"}')
    assert load(str(tmp_path))[0].identity.scope == {1}
    with pytest.raises(MetadataError, match=r"notes.json is not a LeaderAndIsr request"):
        load(f"request:{tmp_path}")
    with pytest.raises(MetadataError, match=r"notes.json is not a LeaderAndIsr request"):
        load(str(tmp_path / "notes.json"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]"])
def test_a_json_file_that_was_named_is_refused_with_its_reasons(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.json").write_bytes(content)
    for spec in (f"{tmp_path}/r.json", f"{tmp_path}/*.json"):
        with pytest.raises(MetadataError, match=r"r.json is not a LeaderAndIsr request"):
            load(spec)


def test_a_folder_that_may_not_be_listed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", refuse)
    for look in (load, find):
        with pytest.raises(UsageError, match="cannot be looked at: Permission denied"):
            look(str(tmp_path))


def test_find_lists_metadata_directories_and_snapshot_folders(tmp_path: Path) -> None:
    metadata_dir = kraft(tmp_path / "broker-1" / "disk")
    snapshots = zookeeper(tmp_path / "zk" / "data" / "version-2").parent
    (tmp_path / "empty" / "version-2").mkdir(parents=True)
    request(tmp_path / "r.json", 1)
    assert find(str(tmp_path)) == [str(metadata_dir), str(snapshots)]
    assert find(str(metadata_dir.parent)) == [str(metadata_dir)]
    assert find(str(snapshots)) == [str(snapshots)]


def test_find_goes_six_folders_deep_and_no_deeper(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"12345")
    zookeeper(deep / "version-2")
    zookeeper(deep / "6" / "version-2")
    assert find(str(tmp_path)) == [str(deep / "version-2")]


def test_find_does_not_enter_log_dirs_or_follow_links(tmp_path: Path) -> None:
    log_dir = tmp_path / "fleet" / "disk"
    zookeeper(log_dir / "orders-0" / "version-2")
    (log_dir / "meta.properties").write_text("version=1\n")
    zookeeper(tmp_path / "elsewhere" / "version-2")
    (tmp_path / "fleet" / "link").symlink_to(tmp_path / "elsewhere")
    assert find(str(tmp_path / "fleet")) == []
