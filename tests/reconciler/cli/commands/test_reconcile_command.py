"""``logstore reconcile`` from end to end: requests of every form on real disks, gates, refusals, and the dry run."""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from layout.ids import TopicId
from layout.ours import RunJournal, parse_run_journal
from logstore import OfflineLogDirError
from logstore.log_dir import LogDir
from reconciler.broker import broker
from reconciler.cli import logstore
from reconciler.protocol import KIP516, ControlRequest, Version
from reconciler.protocol.json_messages import encode_json
from reconciler.protocol.messages import encode_request
from tests.logstore.engine import NOW_MS, identity, ledger_entries, picture
from tests.reconciler.cli.conftest import ORDERS, make_log_dir
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    UNSPECIFIED,
    A,
    B,
    C,
    Sim,
    leader_and_isr,
    state,
    stop_replica,
    topic,
)

Run = Callable[..., Result]
KEPT = TopicId(b"kept" * 4)
CLUSTER_ID = identity(1).cluster_id
ALLOWED = ("--allow", "cluster")
MANY = 10


@pytest.fixture
def sim(tmp_path: Path) -> Sim:
    """Two disks with ten replicas that are wanted, one that was re-created, one without an ID, and one that is gone."""
    made = Sim(tmp_path)
    made.put("orders-0", A)
    made.put("orders-1", None)
    made.put("gone-0", C, disk=1)
    for number in range(MANY):
        made.put(f"kept-{number}", KEPT, disk=number % 2)
    return made


@pytest.fixture
def send(run: Run, sim: Sim, tmp_path: Path) -> Callable[..., Result]:
    """Writes a request to a file and runs the command on it: ``send(request, "--dry-run")``."""

    def sent(request: ControlRequest, *options: object, version: Version = 7) -> Result:
        (tmp_path / "request").write_bytes(encode_json(request, version))
        result = run("reconcile", tmp_path / "request", *sim.paths, "--cluster-id", CLUSTER_ID, *options)
        assert isinstance(result.exception, SystemExit | None), result.exception
        return result

    return sent


def wanted(*more: Any, kind: Any = FULL) -> ControlRequest:
    return leader_and_isr(kind, topic("orders", B, 0, 1, state(2, new=True)), topic("kept", KEPT, *range(MANY)), *more)


def trees(sim: Sim) -> list[Any]:
    return [picture(path) for path in sim.paths]


def names(sim: Sim) -> dict[str, list[str]]:
    found = {"live": [], "staged": []}
    for path in sim.paths:
        found["live"] += [each.name for each in path.glob("*-*") if each.is_dir()]
        found["staged"] += [each.name for each in path.glob("deleting/*") if each.is_dir()]
    return {key: sorted(each) for key, each in found.items()}


def kept() -> list[str]:
    return [f"kept-{number}" for number in range(MANY)]


def changes(result: Result) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in json.loads(result.stdout)["changes"]:
        found.setdefault(each["kind"], []).append(f"{each['topic']}-{each['partition']}")
    return found


# KIP516-5, KIP516-6, KIP516-11
def test_a_full_request_stages_creates_and_writes_ids_and_says_where_until_when_and_how_to_undo_it(
    send: Callable[..., Result], sim: Sim
) -> None:
    result = send(wanted())
    assert result.exit_code == 0, result.output
    assert names(sim) == {"live": [*sorted(kept()), "orders-0", "orders-1", "orders-2"], "staged": [f"{C}_0", f"{A}_0"]}
    (line,) = [line for line in result.stdout.splitlines() if "gone-0" in line]
    undo = f"logstore restore {' '.join(map(str, sim.paths))} --topic gone --partition 0 --topic-id={C}"
    assert result.stdout.startswith(f"WHERE: … is {sim.paths[1].parent}\n")
    assert all(word in line for word in ("UNKNOWN_TOPIC", f" …/{sim.paths[1].name}/deleting/{C}_0", " UTC ", undo))
    assert "13 partitions answered: 13 with 0" in result.stderr
    assert "done: 2 staged, 2 created, 1 topic id written" in result.stderr
    assert "may be purged from" in result.stderr


def test_the_undo_that_it_prints_brings_the_replica_back(send: Callable[..., Result], run: Run, sim: Sim) -> None:
    before = (sim.paths[1] / "gone-0" / "00000000000000000000.log").read_bytes()
    document = json.loads(send(wanted(), "--format", "json").stdout)
    (undo,) = [each["undo"] for each in document["changes"] if each["topic"] == "gone"]
    assert run(*undo.split()[1:]).exit_code == 0
    assert (sim.paths[1] / "gone-0" / "00000000000000000000.log").read_bytes() == before


def test_a_dry_run_foretells_what_the_request_then_does_and_changes_nothing(
    send: Callable[..., Result], sim: Sim
) -> None:
    before = trees(sim)
    planned = send(wanted(), "--dry-run", "--format", "json")
    assert (planned.exit_code, trees(sim)) == (1, before)
    done = send(wanted(), "--format", "json")
    shown, document = json.loads(planned.stdout), json.loads(done.stdout)
    for each in (*shown["changes"], *document["changes"]):
        del each["due_ms"]
    assert (shown.pop("dry_run"), document.pop("dry_run")) == (True, False)
    assert shown == document
    assert (document["schema_version"], document["request"]["type"], document["error"]) == (1, "FULL", 0)
    assert {each["verdict"] for each in document["partitions"]} == {"STALE_ID", "NO_ID", "MISSING", "OK"}


def test_a_dry_run_with_nothing_to_do_and_a_second_run_are_clean(send: Callable[..., Result], sim: Sim) -> None:
    send(wanted())
    before = trees(sim)
    assert send(wanted(), "--dry-run").exit_code == 0
    again = send(wanted())
    assert (again.exit_code, "done: nothing" in again.stderr) == (0, True)
    assert trees(sim) == before


# KIP516-5
@pytest.mark.parametrize(("kind", "expected"), [(INCREMENTAL, ["orders-0"]), (UNSPECIFIED, [])])
def test_other_types_leave_alone_what_they_do_not_name(
    send: Callable[..., Result], kind: Any, expected: list[str]
) -> None:
    result = send(wanted(kind=kind), "--format", "json")
    assert changes(result).get("staged", []) == expected
    errors = {f"{each['topic']}-{each['partition']}": each["error"] for each in json.loads(result.stdout)["partitions"]}
    # UNSPECIFIED refuses the other ID, as older versions did; that makes the run partly failed.
    assert (errors["orders-0"], result.exit_code) == ((0, 0) if expected else (103, 4))


def test_what_is_staged_under_the_wanted_id_is_brought_back_as_planned(send: Callable[..., Result], sim: Sim) -> None:
    # The old ID comes back into force: the newer replica makes room for the older one, which is there still.
    send(wanted())
    again = leader_and_isr(FULL, topic("orders", A, 0), topic("kept", KEPT, *range(MANY)), topic("gone", C, 0))
    planned = changes(send(again, "--dry-run", "--format", "json"))
    done = changes(send(again, "--format", "json"))
    assert (
        done
        == planned
        == {
            "staged": ["orders-0", "orders-1", "orders-2"],
            "restored": ["gone-0", "orders-0"],
        }
    )
    assert [path.read_bytes() for root in sim.paths for path in root.glob("orders-0/*.log")] == [b"data"]


# KIP516-4
@pytest.mark.parametrize("version", range(5, 8))
@pytest.mark.parametrize("length", [False, True])
@pytest.mark.parametrize("spec", ["wire:{}", "{}"])
def test_bytes_of_a_connection_are_recognised(
    run: Run, sim: Sim, tmp_path: Path, version: int, length: bool, spec: str
) -> None:
    data = encode_request(wanted(), version, client_id="controller")
    (tmp_path / "captured").write_bytes(struct.pack(">i", len(data)) + data if length else data)
    result = run("reconcile", spec.format(tmp_path / "captured"), *sim.paths, *ALLOWED, "--dry-run", "--format", "json")
    assert (result.exit_code, changes(result)["staged"]) == (1, ["gone-0", "orders-0"]), result.output


@pytest.mark.parametrize("version", [5, 7, KIP516])
def test_every_form_with_a_type_is_read_from_json(send: Callable[..., Result], version: Version) -> None:
    assert changes(send(wanted(), "--dry-run", "--format", "json", version=version))["staged"] == ["gone-0", "orders-0"]


def test_a_line_of_a_request_log_is_read_from_standard_input(sim: Sim) -> None:
    inner = json.loads(encode_json(stop_replica("kept", 3), 3))
    line = json.dumps({"requestHeader": {"requestApiKey": 5, "requestApiVersion": 3}, "request": inner})
    arguments = ["reconcile", "-", *map(str, sim.paths), *ALLOWED, "--format", "json"]
    result = CliRunner().invoke(logstore, arguments, input=line)
    assert (result.exit_code, changes(result)) == (0, {"staged": ["kept-3"]}), result.output


# KIP516-7
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, KIP516])
def test_a_stop_replica_is_distinguished_from_a_leader_and_isr_by_its_fields(
    send: Callable[..., Result], sim: Sim, version: Version
) -> None:
    result = send(stop_replica("kept", 3), "--format", "json", version=version)
    document = json.loads(result.stdout)
    assert (document["request"]["kind"], changes(result)) == ("StopReplica", {"staged": ["kept-3"]})
    (staged,) = document["changes"]
    (entry,) = ledger_entries((sim.paths[1] / staged["location"]).parent).values()
    assert entry.record is not None and entry.record.due_ms - entry.record.staged_ms == 60_000


# KIP516-7
def test_a_stop_replica_with_another_topic_id_is_answered_with_103(send: Callable[..., Result], sim: Sim) -> None:
    before = names(sim)
    result = send(stop_replica("kept", 3, topic_id=A), version=KIP516)
    assert (result.exit_code, "1 with INCONSISTENT_TOPIC_ID (103)" in result.stderr) == (4, True)
    assert names(sim) == before


def test_the_delay_can_be_set(send: Callable[..., Result], sim: Sim) -> None:
    send(wanted(), "--delay", "7d")
    record = ledger_entries(sim.paths[1] / "deleting")[f"{C}_0"].record
    assert record is not None
    assert record.due_ms - record.staged_ms == 7 * 86_400_000
    assert record.staged_ms > NOW_MS


GATES = {
    "an empty FULL request": (
        leader_and_isr(FULL),
        (),
        ("--allow empty", "--allow broker", "--allow no-id", "--max-share "),
    ),
    "one for other brokers": (
        leader_and_isr(FULL, topic("kept", KEPT, *(state(each, replicas=(2, 3)) for each in range(MANY)))),
        (),
        ("--allow empty", "--allow broker", "--allow no-id", "--max-share "),
    ),
    "a share that is too large": (
        leader_and_isr(FULL, topic("kept", KEPT, *range(6))),
        (),
        ("--max-share 54%", "--allow no-id"),
    ),
    "a number that is too large": (wanted(), ("--max-count", "1"), ("--max-count 2",)),
    "no other is in sync": (
        leader_and_isr(
            FULL,
            topic("orders", B, 0, 1),
            topic("kept", KEPT, replace(state(0, replicas=(2, 3)), isr=()), *range(1, MANY)),
        ),
        (),
        ("--allow sole-copy",),
    ),
    "a StopReplica for half of them": (stop_replica("kept", *range(7)), (), ("--max-share 54%",)),
}


@pytest.mark.parametrize("case", GATES)
def test_a_gate_refuses_with_the_numbers_and_its_override_and_nothing_is_changed(
    send: Callable[..., Result], sim: Sim, case: str
) -> None:
    request, options, overrides = GATES[case]
    before = names(sim)
    for more in ((), ("--dry-run",)):
        result = send(request, *options, *more, version=3 if "Stop" in case else 7)
        assert result.exit_code == 3
        assert all(f"(override: {each}" in result.stderr for each in overrides), result.stderr
        assert names(sim) == before
    opened = [word for each in overrides if each.startswith("--allow") for word in each.split()]
    numbers = ("--max-share", "100%", "--max-count", "99")
    done = send(request, *numbers, *opened, version=3 if "Stop" in case else 7)
    assert (done.exit_code in (0, 4), names(sim) != before) == (True, True), done.output


def test_an_internal_topic_needs_to_be_allowed(send: Callable[..., Result], sim: Sim) -> None:
    sim.put("__consumer_offsets-3", A, disk=1)
    assert "--allow internal" in send(wanted()).stderr
    assert (sim.paths[1] / "__consumer_offsets-3").is_dir()
    assert send(wanted(), "--allow", "internal").exit_code == 0
    assert not (sim.paths[1] / "__consumer_offsets-3").exists()


def test_a_topic_is_internal_by_a_pattern(send: Callable[..., Result], sim: Sim) -> None:
    assert "--allow internal" in send(wanted(), "--internal", "gon?").stderr
    sim.put("_schemas-0", A, disk=1)
    assert "--allow internal" in send(wanted()).stderr
    assert (sim.paths[1] / "_schemas-0").is_dir()


def test_only_a_full_request_may_not_be_empty(send: Callable[..., Result], sim: Sim) -> None:
    before = names(sim)
    assert send(leader_and_isr(INCREMENTAL)).exit_code == 0
    assert names(sim) == before


def test_a_real_brokers_log_dir_gets_no_empty_replicas_unasked(run: Run, tmp_path: Path) -> None:
    held = {f"orders-{number}": ORDERS for number in range(4)} | {"gone-0": C}
    path = make_log_dir(tmp_path / "kafka", 1, held)
    request = leader_and_isr(FULL, topic("orders", ORDERS, *range(6)))
    (tmp_path / "r.json").write_bytes(encode_json(request, 7))
    result = run("reconcile", tmp_path / "r.json", path, *ALLOWED)
    assert (result.exit_code, "2 empty replicas would be made" in result.stderr) == (3, True), result.output
    assert (path / "gone-0").is_dir()
    assert run("reconcile", tmp_path / "r.json", path, *ALLOWED, "--allow", "create").exit_code == 0
    # Inside a real broker's log dir a staging directory would stop it at its next start.
    assert (tmp_path / "kafka.deleting" / f"{C}_0").is_dir()
    assert (path / "orders-5" / "partition.metadata").read_text() == f"version: 0\ntopic_id: {ORDERS}"


def test_a_stale_epoch_is_reported_for_the_whole_request(send: Callable[..., Result], sim: Sim) -> None:
    before = names(sim)
    request = leader_and_isr(FULL, broker_epoch=5)
    result = send(request, "--broker-epoch", "6")
    assert (result.exit_code, "STALE_BROKER_EPOCH (77)" in result.stderr) == (3, True)
    assert names(sim) == before


def test_a_request_names_its_cluster_by_an_option_or_not_at_all_by_a_gate(
    send: Callable[..., Result], run: Run, sim: Sim, tmp_path: Path
) -> None:
    before = names(sim)
    other = send(wanted(), "--cluster-id", "another")
    assert (other.exit_code, "was sent in cluster another" in other.stderr) == (3, True)
    unnamed = run("reconcile", tmp_path / "request", *sim.paths)
    assert (unnamed.exit_code, "--cluster-id" in unnamed.stderr, "--allow cluster" in unnamed.stderr) == (3, True, True)
    assert CLUSTER_ID not in unnamed.stderr.replace(str(tmp_path), "").split(), "what to type is not given away"
    assert names(sim) == before
    assert run("reconcile", tmp_path / "request", *sim.paths, *ALLOWED).exit_code == 0
    assert names(sim) != before


def journals(sim: Sim) -> list[RunJournal]:
    return [parse_run_journal(each.read_bytes()) for path in sim.paths for each in sorted(path.glob(".logstore_run.*"))]


def test_it_leaves_a_journal_in_every_log_dir_with_epochs_and_changes(send: Callable[..., Result], sim: Sim) -> None:
    result = send(wanted())
    assert result.stderr.count("journal: ") == 2
    found = journals(sim)
    assert [len(each.lines) for each in found] == [3, 2]
    assert {line["status"] for each in found for line in each.lines} == {"done"}
    assert all(each.finished_ms is not None and each.metadata[0]["controller_epoch"] == "1" for each in found)
    assert [line["kind"] for line in found[1].lines] == ["stage", "create"]
    send(wanted())
    assert len(journals(sim)) == 2, "the same request again has nothing to add"
    assert send(wanted(), "--dry-run").exit_code == 0
    assert len(journals(sim)) == 2


@pytest.mark.parametrize(
    ("older", "code", "said"),
    [
        ({"controller_epoch": 4, "broker_epoch": 7}, 11, "it is of controller epoch 4, and one of epoch 5 was carried"),
        ({"controller_epoch": 5, "broker_epoch": 6}, 77, "it is of broker epoch 6, and one of broker epoch 7 was"),
    ],
)
@pytest.mark.parametrize("kind", [FULL, INCREMENTAL, UNSPECIFIED])
def test_a_request_of_an_older_controller_or_broker_is_answered_for_the_whole_and_changes_nothing(
    send: Callable[..., Result], sim: Sim, older: dict[str, int], code: int, said: str, kind: Any
) -> None:
    def request(**epochs: int) -> ControlRequest:
        return leader_and_isr(kind, topic("orders", B, 0, 1), topic("kept", KEPT, *range(MANY)), **epochs)

    newest = leader_and_isr(INCREMENTAL, topic("kept", KEPT, *range(MANY)), controller_epoch=5, broker_epoch=7)
    assert send(newest).exit_code == 0
    before = trees(sim)
    for more in ((), ("--dry-run",)):
        result = send(request(**older), *more, "--format", "json")
        document = json.loads(result.stdout)
        assert (result.exit_code, document["error"], document["changes"]) == (3, code, [])
        assert said in result.stderr and "(override: --allow epoch)" in result.stderr
        assert trees(sim) == before
    assert send(request(**older), "--allow", "epoch").exit_code in (0, 4)
    assert send(request(**older)).exit_code == 3, "the newest one still counts"
    assert send(request(controller_epoch=5, broker_epoch=7)).exit_code in (0, 4)
    assert send(request(controller_epoch=6, broker_epoch=8)).exit_code in (0, 4)


def test_an_older_stop_replica_is_answered_for_the_whole(send: Callable[..., Result], sim: Sim) -> None:
    send(leader_and_isr(INCREMENTAL, topic("kept", KEPT, 3), controller_epoch=5))
    before = names(sim)
    result = send(stop_replica("kept", 3), version=3)
    assert (result.exit_code, "STALE_CONTROLLER_EPOCH (11)" in result.stderr) == (3, True)
    assert names(sim) == before


def with_epoch(sim: Sim, name: str, epoch: int) -> None:
    (path,) = (root / name for root in sim.paths if (root / name).is_dir())
    (path / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n{epoch} 7\n")


def test_without_a_journal_the_records_say_that_a_request_is_older(send: Callable[..., Result], sim: Sim) -> None:
    with_epoch(sim, "kept-3", 5)
    request = leader_and_isr(INCREMENTAL, topic("kept", KEPT, state(3, 4), state(4, 4)), topic("orders", B, 0))
    errors = {
        f"{each['topic']}-{each['partition']}": each["error"]
        for each in json.loads(send(request, "--dry-run", "--format", "json").stdout)["partitions"]
    }
    assert errors == {"kept-3": 11, "kept-4": 0, "orders-0": 0}
    refused = send(request)
    assert (refused.exit_code, "older than the records of 1 replica" in refused.stderr) == (3, True)
    assert "kept-3 (epoch 4, and 5 here)" in refused.stderr
    assert send(request, "--allow", "epoch").exit_code == 0


@pytest.mark.parametrize("epoch", [5, 6])
def test_the_epoch_of_the_records_and_a_later_one_are_in_order(
    send: Callable[..., Result], sim: Sim, epoch: int
) -> None:
    with_epoch(sim, "kept-3", 5)
    result = send(leader_and_isr(INCREMENTAL, topic("kept", KEPT, state(3, epoch))))
    assert result.exit_code == 0, result.output


def test_under_another_topic_id_epochs_start_again(send: Callable[..., Result], sim: Sim) -> None:
    with_epoch(sim, "orders-0", 5)
    result = send(wanted(), "--format", "json")
    assert (result.exit_code, "orders-0" in changes(result)["staged"]) == (0, True)


def test_a_replica_that_an_older_request_gives_away_stays(send: Callable[..., Result], sim: Sim) -> None:
    with_epoch(sim, "kept-3", 5)
    away = state(3, 4, leader=2, replicas=(2, 3))
    others = [state(each) for each in range(MANY) if each != 3]
    request = leader_and_isr(FULL, topic("orders", B, 0, 1), topic("kept", KEPT, away, *others), topic("gone", C, 0))
    assert "kept-3 (epoch 4, and 5 here)" in send(request).stderr
    assert "kept-3" in names(sim)["live"]
    send(request, "--allow", "epoch")
    assert "kept-3" not in names(sim)["live"]


def test_a_running_broker_another_broker_and_disks_of_none_are_refused(
    send: Callable[..., Result], run: Run, sim: Sim, tmp_path: Path
) -> None:
    before = names(sim)
    assert "belong to broker 1, and not to broker 2" in send(wanted(), "--node-id", "2").stderr
    with LogDir.open(str(sim.paths[1])):
        for more in ((), ("--dry-run",)):
            result = send(wanted(), *more)
            assert (result.exit_code, "in use by" in result.stderr) == (3, True)
    assert send(wanted(), "--node-id", "2").exit_code == 3
    assert names(sim) == before
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "meta.properties").write_text("version=0\ncluster.id=C\n")
    result = run("reconcile", tmp_path / "request", bare)
    assert (result.exit_code, "names no broker" in result.stderr) == (2, True), result.output


BAD = {
    "empty": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "nested too deep": b"[" * 100_000,
    "bytes": b"\xff\xfe\x00",
    "another request of Kafka": struct.pack(">hhi", 3, 9, 1) + b"\xff\xff\x00",
    "a version that there is not": struct.pack(">hhi", 4, 99, 1) + b"\xff\xff\x00",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(1000),
    "bytes cut off": encode_request(wanted(), 7)[:50],
    "a partition twice": json.dumps(
        {"controllerId": 1, "controllerEpoch": 1, "deletePartitions": True, "topics": [
            {"name": "kept", "partitionIndexes": [1, 1]}]}
    ).encode(),
    "a negative partition": json.dumps(
        {"controllerId": 1, "controllerEpoch": 1, "deletePartitions": True, "topics": [
            {"name": "kept", "partitionIndexes": [-1]}]}
    ).encode(),
    "a topic that climbs": json.dumps(
        {"controllerId": 1, "controllerEpoch": 1, "deletePartitions": True, "topics": [
            {"name": "../..", "partitionIndexes": [1]}]}
    ).encode(),
    "two million partitions": json.dumps(
        {"controllerId": 1, "controllerEpoch": 1, "deletePartitions": True, "topics": [
            {"name": "kept", "partitionIndexes": list(range(2_000_000))}]}
    ).encode(),
    "too many fields": b"{" + b"," * 40_000_001,
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_request_is_refused_whole_in_a_sentence(run: Run, sim: Sim, tmp_path: Path, case: str) -> None:
    before = trees(sim)
    (tmp_path / "bad").write_bytes(BAD[case])
    result = run("reconcile", tmp_path / "bad", *sim.paths)
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert (result.stdout, len(result.stderr.splitlines())) == ("", 1), result.output
    assert (result.exit_code, str(tmp_path / "bad") in result.stderr) == (3, True)
    assert trees(sim) == before


def test_a_leader_and_isr_with_bad_partitions_is_refused_with_every_reason(run: Run, sim: Sim, tmp_path: Path) -> None:
    document = json.loads(encode_json(wanted(), 7))
    states = document["topicStates"][1]["partitionStates"]
    states[1]["partitionIndex"] = states[0]["partitionIndex"]
    states[2]["partitionIndex"] = -7
    states[3]["replicas"] = [1, -5]
    states[4]["leader"] = "me"
    (tmp_path / "bad").write_text(json.dumps(document))
    result = run("reconcile", tmp_path / "bad", *sim.paths)
    assert result.exit_code == 3
    for reason in ("is there twice", "found -7", "a broker id, found -5", 'leader: expected an integer, found "me"'):
        assert reason in result.stderr


@pytest.mark.parametrize(
    "options", [("--delay", "soon"), ("--max-share", "2"), ("--node-id", "-1"), ("--allow", "all")]
)
def test_options_that_make_no_sense_are_usage_errors(send: Callable[..., Result], options: tuple[str, ...]) -> None:
    assert send(wanted(), *options).exit_code == 2


def test_a_request_that_is_not_there_and_a_log_dir_that_is_none_are_usage_errors(run: Run, sim: Sim) -> None:
    assert run("reconcile", sim.paths[0].parent / "absent", *sim.paths).exit_code == 2
    request = sim.paths[0].parent / "r"
    request.write_bytes(encode_json(wanted(), 7))
    assert run("reconcile", request, sim.paths[0].parent / "absent").exit_code == 2
    assert run("reconcile", request, sim.paths[0] / "kept-0").exit_code == 2
    assert run("reconcile", request, *sim.paths, "-o", sim.paths[0] / "out").exit_code == 2
    assert run("reconcile", request, *sim.paths, "-o", request).exit_code == 2
    assert request.read_bytes() == encode_json(wanted(), 7)


def test_an_interrupt_says_that_the_same_command_does_the_rest(
    send: Callable[..., Result], sim: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(broker, "carry_out", interrupted)
        result = send(wanted())
    assert (result.exit_code, "the same command again does the rest" in result.stderr) == (130, True)
    assert send(wanted()).exit_code == 0
    assert names(sim)["staged"] == [f"{C}_0", f"{A}_0"]


def test_a_disk_that_is_away_shuts_a_gate_and_its_partitions_are_not_made_elsewhere(
    send: Callable[..., Result], sim: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = LogDir.open

    def failing(path: str, **more: Any) -> LogDir:
        if path == str(sim.paths[1]):
            raise OfflineLogDirError(f"{path}: Input/output error")
        return opened(path, **more)

    before = names(sim)
    monkeypatch.setattr(LogDir, "open", failing)
    assert "(override: --allow absent)" in send(wanted()).stderr
    assert names(sim) == before
    result = send(wanted(), "--allow", "absent", "--format", "json")
    errors = {f"{each['topic']}-{each['partition']}": each["error"] for each in json.loads(result.stdout)["partitions"]}
    assert (result.exit_code, errors["kept-0"], errors["kept-1"]) == (4, 0, 56)
    assert "kept-1" not in {path.name for path in sim.paths[0].iterdir()}


@pytest.mark.parametrize("place", ["gone-0/partition.metadata", "recovery-point-offset-checkpoint"])
def test_nothing_is_staged_under_a_clock_that_is_behind_what_the_disks_say(
    send: Callable[..., Result], sim: Sim, place: str
) -> None:
    """It would be due the moment the clock is set right, and a purge would take it."""
    ahead = time.time() + 86_460
    (sim.paths[1] / place).touch()
    os.utime(sim.paths[1] / place, (ahead, ahead))
    before = trees(sim)
    refused = send(wanted())
    assert (refused.exit_code, trees(sim)) == (3, before)
    assert "what is staged now would be due 24 h too early (override: --allow clock)" in refused.stderr
    assert send(wanted(), "--allow", "clock").exit_code == 0
    assert names(sim)["staged"] == [f"{C}_0", f"{A}_0"]


@pytest.mark.parametrize("kind", [FULL, INCREMENTAL, UNSPECIFIED])
def test_a_replica_that_should_be_here_and_is_not_is_made_empty_only_where_that_is_allowed(
    send: Callable[..., Result], sim: Sim, kind: Any
) -> None:
    lost = leader_and_isr(kind, topic("kept", KEPT, *range(MANY), state(MANY, new=True), MANY + 1))
    before = trees(sim)
    refused = send(lost)
    assert refused.exit_code == 3 and trees(sim) == before
    assert "would be made in the place of one that is missing: the request does not call it new" in refused.stderr
    assert f"kept-{MANY + 1} (override: --allow create)" in refused.stderr and f"kept-{MANY}," not in refused.stderr
    assert send(lost, "--allow", "create", "--allow", "no-id").exit_code == 0
    assert f"kept-{MANY + 1}" in names(sim)["live"]
