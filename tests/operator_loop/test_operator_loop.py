"""Every fault, and pairs of faults, are cured by what the tool prints: no command fails or is repeated."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from reconciler.cli import logstore
from reconciler.next_steps import outcomes, table
from reconciler.verdicts import FLEET_ADVICE, Verdict
from tests.operator_loop.bench import FORMAT, Bench
from tests.operator_loop.faults import CONTRADICTIONS, FAULTS, NOT_PLANTABLE, OF_ONE_DISK, PLAYED_ALONE, WHOSE_DISK
from tests.operator_loop.operator_loop import Operator

PAIRS = [pair for pair in combinations(FAULTS, 2) if pair not in CONTRADICTIONS]
SAMPLE = sorted(Random(3).sample(PAIRS, 20))


def healed(folder: Path, *faults: str, places: bool = True) -> None:
    bench = Bench(folder, places=places)
    bench.build()
    for name in faults:
        {**FAULTS, **PLAYED_ALONE}[name](bench)
    bench.write_metadata()
    operator = Operator(bench)
    operator.heal()
    protocol = "\n".join(["", *operator.done])
    assert operator.failed == [], protocol
    assert operator.left() == [], protocol
    assert bench.falsely_live() == [], protocol


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which the operator stands, where plans are kept."""
    monkeypatch.chdir(tmp_path)
    tool = tmp_path / "bin" / "kafka-storage.sh"
    tool.parent.mkdir()
    tool.write_text(FORMAT)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    return tmp_path / "broker-2"


def test_a_healthy_broker_needs_nothing(here: Path) -> None:
    bench = Bench(here)
    bench.build()
    bench.write_metadata()
    operator = Operator(bench)
    operator.heal()
    assert (operator.done, operator.failed, operator.left()) == ([], [], [])


@pytest.mark.parametrize("fault", [*FAULTS, *PLAYED_ALONE])
def test_each_fault_is_cured_by_what_is_printed(here: Path, fault: str) -> None:
    healed(here, fault)


@pytest.mark.parametrize(
    "fault", sorted({*OF_ONE_DISK, *PLAYED_ALONE, "disk_not_given", "missing", "stray_that_is_wanted"})
)
def test_a_fault_is_cured_as_well_where_the_metadata_places_no_replica_in_a_log_dir(here: Path, fault: str) -> None:
    healed(here, fault, places=False)


@pytest.mark.parametrize("fault", list(WHOSE_DISK))
def test_whose_disk_it_is_only_a_person_can_say_and_the_last_step_says_so(here: Path, fault: str) -> None:
    plant, kinds = WHOSE_DISK[fault]
    bench = Bench(here)
    bench.build()
    plant(bench)
    bench.write_metadata()
    operator = Operator(bench)
    operator.heal()
    assert operator.failed == []
    assert all(line.startswith("grep -H = ") for line in operator.done)
    assert str(bench.disks[1]) in operator.done[-1]
    words = ["doctor", *map(str, bench.disks), "--metadata", str(bench.metadata), "--format", "json"]
    brokers = json.loads(CliRunner().invoke(logstore, words).stdout)["brokers"]
    assert kinds <= {found["kind"] for broker in brokers for found in broker["fleet"]}
    steps = [step for broker in brokers for step in broker["next"]]
    assert all("find out which, and leave it out of every command" in step["why"] for step in steps)


def test_where_the_lost_disk_had_the_only_copy_in_sync_nobody_is_told_to_start_the_broker(here: Path) -> None:
    bench = Bench(here)
    bench.build()
    bench.sole.add("orders-1")
    FAULTS["disk_made_anew"](bench)
    bench.write_metadata()
    operator = Operator(bench)
    operator.heal()
    assert operator.failed == []
    assert [line.partition(" ")[0] for line in operator.done] == ["findmnt", "logstore"]
    assert " audit " in operator.done[-1] and operator.done[-1].endswith(" --verdict ABSENT")
    (said,) = [step["why"] for step in doctor(bench)["next"] if "only copy in sync" in step["why"]]
    assert said.startswith("1 replica of 6 on the disk that is not here had the only copy in sync")


@pytest.mark.root
def test_a_full_disk_whose_root_is_the_log_dir_is_cured_as_well(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be staged beside such a log dir, and no record finds room in it."""
    if os.getuid() != 0:
        pytest.skip("mounts a file system")
    for module in (table, outcomes):
        monkeypatch.setattr(module, "FALLBACK_FOLDER", str(tmp_path / "spare records"))
    bench = Bench(here)
    mounted = []
    try:
        for disk in bench.disks:
            disk.mkdir(parents=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "tmpfs", str(disk)], check=True)
            mounted.append(disk)
        bench.build()
        for name in ("stale_id", "not_assigned"):
            FAULTS[name](bench)
        for disk in bench.disks:
            fill(disk)
        bench.write_metadata()
        operator = Operator(bench)
        operator.heal()
        protocol = "\n".join(["", *operator.done])
        assert operator.failed == [], protocol
        assert "apply plan.json --spare-records" in protocol
        assert "--before-due" in protocol
        again = doctor(bench, "--spare-records", str(tmp_path / "spare records"))
        # No checkpoint could be written anew without room, so an entry may name what was staged: a real start drops it.
        assert (set(again["totals"]) - {"CHECKPOINT_ENTRY"}, again["staged"], again["starts"]) == (set(), 0, True), (
            protocol
        )
    finally:
        for disk in mounted:
            subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path) -> None:
    """Leave no byte on the disk."""
    with contextlib.suppress(OSError), (next(disk.glob("clicks-*")) / "1.log").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_every_verdict_and_every_finding_of_the_fleet_is_planted_or_has_its_reason(tmp_path: Path) -> None:
    found: set[str] = set()
    for name, plant in {**FAULTS, **{name: plant for name, (plant, _) in WHOSE_DISK.items()}}.items():
        bench = Bench(tmp_path / name)
        bench.build()
        plant(bench)
        bench.write_metadata()
        given = [str(bench.disks[number]) for number in bench.given]
        words = ["audit", *given, "--metadata", bench.first_source, "--format", "json"]
        audit = json.loads(CliRunner().invoke(logstore, words).stdout)
        found |= {each["verdict"] for each in audit["findings"]} | {each["kind"] for each in audit["fleet"]}
    assert found | NOT_PLANTABLE.keys() == {*Verdict, *FLEET_ADVICE}
    assert found & NOT_PLANTABLE.keys() == set(), "planted after all"


def doctor(bench: Bench, *options: str) -> Any:
    """Ask the doctor once more."""
    words = ["doctor", *map(str, bench.disks), "--metadata", str(bench.metadata), *options, "--format", "json"]
    (broker,) = json.loads(CliRunner().invoke(logstore, words).stdout)["brokers"]
    return broker


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "pair" in metafunc.fixturenames:
        pairs = PAIRS if metafunc.config.getoption("--whole") else SAMPLE
        metafunc.parametrize("pair", pairs, ids=["+".join(pair) for pair in pairs])


def test_two_faults_at_a_time_are_cured_as_well(here: Path, pair: tuple[str, str]) -> None:
    healed(here, *pair)
