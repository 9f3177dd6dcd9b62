"""The operator who knows nothing, before a real broker: what README says first, then only what was printed.

The broker was down while one of its topics was created anew, another was deleted and a third was given away. It is
healed from there, and once more after somebody has tried to cure it by hand. Then one that was healthy is given two
faults at a time: a sample of the pairs, in which every fault occurs once, or each fault and every pair with
``--whole``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from layout import meta_properties
from reconciler.next_steps import outcomes, table
from reconciler.verdicts import CLOCK_SKEW_MS
from tests.broker.conftest import two_brokers
from tests.broker.cure_bench import SICK, STALE, WANTED, SickBroker
from tests.broker.loop_bench import HealthyBroker
from tests.broker.loop_faults import FAULTS, one_and_two_of, sample
from tests.operator_loop.faults import disk_copied
from tests.operator_loop.operator_loop import Operator
from tools.real_broker.cluster import Cluster
from tools.real_broker.java import write_scripts
from tools.real_broker.releases import EACH_WAY, Mode

pytestmark = pytest.mark.broker

FETCHED_ANEW = re.compile(r"NO_ID .*/again-\d: ")
"""Release 2.8 writes no topic ID beside a replica that it only follows."""

SLOW = 1_000
"""Bytes a second, at which a move of 3 MB goes on for as long as a test."""

SERVED_ALONE = ("again", "orders")


class RealPatient:
    """A broker with stale replicas, as the operator finds it."""

    given = (0, 1)

    def __init__(self, sick: SickBroker, source: str) -> None:
        self.sick = sick
        self.source = self.first_source = source
        self.disks = sick.disks
        self.release = sick.cluster.release.version
        self.config = str(sick.broker.folder / f"{sick.broker.name}.properties")
        self.wanted = sorted({name for name in sick.replicas() if name not in STALE} | {"again-0", "again-1"})

    def learn(self) -> None:
        """Every disk is named already."""

    def mount(self) -> bool:
        """Every disk is mounted."""
        return False

    def start(self) -> None:
        """Start the broker; it must come up."""
        self.sick.start()

    def stop(self) -> None:
        """Stop the broker."""
        self.sick.cluster.stop_broker(SICK)


@dataclass(frozen=True)
class Case:
    """A broker of one release and mode, and what is planted on its disks."""

    way: tuple[str, str]
    faults: tuple[str, ...]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        in_kraft = [way for way in EACH_WAY if way[1] == Mode.KRAFT]
        ways = in_kraft if "with_disk_ids" in metafunc.fixturenames else EACH_WAY
        metafunc.parametrize("each_cluster", ways, ids="-".join, indirect=True)
        return
    whole = metafunc.config.getoption("--whole")
    chosen = {way: one_and_two_of(way[1]) for way in EACH_WAY} if whole else sample(EACH_WAY, 3)
    cases = [Case(way, faults) for way, found in chosen.items() for faults in found]
    metafunc.parametrize(
        ("each_cluster", "case"),
        [(case.way, case) for case in cases],
        ids=["-".join((*case.way, "+".join(case.faults))) for case in cases],
        indirect=["each_cluster"],
        scope="module",
    )


@pytest.fixture(scope="module")
def each_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two brokers of a release and mode, which the cases of the loop share with the stories before them."""
    with two_brokers(request.param, tmp_path_factory) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def planted(each_cluster: Cluster) -> SickBroker:
    """A broker with four stale replicas, of each release and mode in turn."""
    return SickBroker(each_cluster)


@pytest.fixture
def sick(planted: SickBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SickBroker:
    """That broker, stopped, with its disks as they were; plans are kept in a directory of the test's own."""
    monkeypatch.chdir(tmp_path)
    planted.put_back()
    return planted


def healed(sick: SickBroker, patient: RealPatient) -> Operator:
    """Let the operator heal the broker: it runs, is in sync, serves every record, and nobody has to act any more."""
    assert not sick.broker.running
    operator = Operator(patient)
    operator.heal()
    protocol = "\n".join(["", *operator.done])
    assert operator.failed == [], protocol
    assert sick.broker.running, protocol
    sick.until_in_sync()
    assert sick.served() == sick.records, protocol
    words = ("doctor", *patient.disks, "--metadata", patient.source, "--format", "json")
    (again,) = json.loads(sick.run(*words, codes=(0, 1)).stdout)["brokers"]
    assert [step["command"] for step in again["next"] if not step["later"]] == [], protocol
    sick.cluster.stop_broker(SICK)
    left = [each for each in operator.left() if sick.way != "2.8-zk" or not FETCHED_ANEW.match(each)]
    assert left == [], protocol
    return operator


def test_a_broker_that_was_down_while_topics_changed_is_healed_by_what_is_printed(sick: SickBroker) -> None:
    healed(sick, RealPatient(sick, f"kafka:{sick.cluster.brokers[1].address}"))
    assert sick.strays() == set()
    assert {name: each["verdict"] for name, each in sick.staged().items()} == STALE
    sick.start()
    sick.until_in_sync()
    # What it serves alone is on its own disks, and not what another broker gave.
    assert sick.served_alone(*SERVED_ALONE) == {name: sick.records[name] for name in SERVED_ALONE}


def delete_topic_id(replica: Path) -> None:
    """The cure that people copy from the internet."""
    (replica / "partition.metadata").unlink()


def rename(replica: Path) -> None:
    """Out of the way, as somebody thought."""
    replica.rename(replica.with_name("ordres-" + replica.name.rpartition("-")[2]))


@pytest.mark.parametrize("wrong_cure", [delete_topic_id, rename])
def test_a_wrong_cure_by_hand_is_put_right_by_what_is_printed(
    sick: SickBroker, wrong_cure: Callable[[Path], None]
) -> None:
    patient = RealPatient(sick, sick.source)
    wrong_cure(sick.replicas()["orders-1"])
    healed(sick, patient)
    assert sick.strays() == set()


@pytest.fixture(scope="module")
def healthy(planted: SickBroker) -> HealthyBroker:
    """The same broker after its cure, of each release and mode in turn."""
    return HealthyBroker(planted)


def test_faults_are_cured_by_what_is_printed_one_or_two_at_a_time(
    healthy: HealthyBroker, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with_kafkas_tools(healthy, tmp_path, monkeypatch)
    healthy.put_back()
    for name in case.faults:
        FAULTS[name](healthy)
    operator = Operator(healthy)
    operator.heal()
    protocol = "\n".join(["", *operator.done])
    assert operator.failed == [], protocol
    if not healthy.sick.broker.running:
        healthy.start()
    healthy.sick.until_in_sync()
    assert healthy.sick.served() == {name: healthy.sick.records[name] for name in WANTED}, protocol
    healthy.sick.cluster.stop_broker(SICK)
    assert healthy.unlike_the_leader() == [], protocol
    assert [each for each in operator.left() if not healthy.has_yet_to_write(each)] == [], protocol


@pytest.mark.root
def test_a_full_disk_whose_root_is_the_log_dir_is_cured_as_well(
    healthy: HealthyBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be staged beside such a log dir, no record finds room in it, and a broker may not stay up on it."""
    if os.getuid() != 0:
        pytest.skip("mounts a file system")
    for module in (table, outcomes):
        monkeypatch.setattr(module, "FALLBACK_FOLDER", str(tmp_path / "spare records"))
    monkeypatch.chdir(tmp_path)
    healthy.put_back()
    for name in ("stale_id", "not_assigned"):
        FAULTS[name](healthy)
    with mounted(healthy.disks):
        full = [
            fill(disk / name) for disk in healthy.disks for name in ("again-0", "moved-0") if (disk / name).is_dir()
        ]
        told = {each["effect"] for each in healthy.sick.starts()["findings"] if each["rule"] == "full_disk"}
        assert told == {"startup_aborts" if healthy.release.startswith("2.8") else "unknown"}
        if healthy.release.startswith("2.8"):
            healthy.sick.fails_to_start()  # as was tried before anybody looked, and it left what it could not write
            time.sleep(2 * CLOCK_SKEW_MS / 1000)  # what it wrote just now would count as younger than the metadata
        operator = Operator(healthy)
        try:
            operator.heal()
            protocol = "\n".join(["", *operator.done])
            assert operator.failed == [], protocol
            healthy.sick.until_in_sync()
            assert healthy.sick.served() == {name: healthy.sick.records[name] for name in WANTED}, protocol
        finally:
            healthy.stop()
        assert len(full) == 2 and not any(path.exists() for path in full), protocol
        assert healthy.unlike_the_leader() == [], protocol
        assert [each for each in operator.left() if not healthy.has_yet_to_write(each)] == [], protocol
        assert healthy.sick.starts()["starts"], protocol


@contextmanager
def mounted(disks: Sequence[Path]) -> Iterator[None]:
    """Make each log dir the root of a small file system, with all that it holds."""
    with ExitStack() as stack:
        for disk in disks:
            aside = disk.rename(disk.with_name(f"{disk.name}.aside"))
            disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16M", "tmpfs", str(disk)], check=True)
            stack.callback(subprocess.run, ["umount", str(disk)], check=True)
            shutil.copytree(aside, disk, dirs_exist_ok=True)
            shutil.rmtree(aside)
        yield


def fill(replica: Path) -> Path:
    """Leave no byte on the disk of a replica, as though it had grown so large long ago."""
    path, made = replica / "1.log", replica.stat().st_mtime_ns
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    for each in (path, replica):
        os.utime(each, ns=(made, made))
    return path


@pytest.fixture
def with_disk_ids(healthy: HealthyBroker) -> HealthyBroker:
    """The same broker, in KRaft mode alone: with ZooKeeper, its disks have no IDs."""
    healthy.put_back()
    assert "directory.id" in (healthy.disks[0] / meta_properties.FILE_NAME).read_text()
    return healthy


def test_a_disk_that_is_a_copy_keeps_the_broker_from_starting_and_is_left_to_a_person(
    with_disk_ids: HealthyBroker,
) -> None:
    healthy = with_disk_ids
    disk_copied(healthy)
    operator = Operator(healthy)
    operator.heal()
    assert operator.failed == []
    (looked,) = operator.done
    assert looked.startswith("grep -H = ") and str(healthy.disks[1]) in looked
    healthy.sick.fails_to_start()


def test_what_kafkas_own_tools_are_asked_by_is_printed_as_a_command_that_works(
    healthy: HealthyBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = healthy.sick.cluster
    with_kafkas_tools(healthy, tmp_path, monkeypatch)
    healthy.put_back()
    FAULTS["future"](healthy)
    between_disks = pasted_form(healthy, "FUTURE")
    healthy.start()
    assert str(healthy.disks[0]) in pasted(between_disks)
    cluster.client.create_topic("moving", [[1]])
    cluster.client.produce("moving", 600, size=5000)
    move = cluster.reassign("moving", {0: [1, SICK]}, wait=False, throttle=SLOW)
    listing = pasted_form(healthy, "IN_FLIGHT")
    assert listing.startswith("kafka-reassign-partitions.sh ")
    assert "moving-0" in pasted(listing)
    move.cancel()
    assert "moving-0" not in pasted(listing)


def with_kafkas_tools(healthy: HealthyBroker, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put Kafka's own commands on the PATH, as they are where a broker is installed."""
    write_scripts(healthy.sick.cluster.release, folder, healthy.sick.broker.quiet)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def pasted_form(healthy: HealthyBroker, verdict: str) -> str:
    """The command that an audit prints for a verdict, with the address of a broker that runs where it has a blank."""
    words = ("audit", *healthy.disks, "--metadata", healthy.source, "--format", "json")
    found = json.loads(healthy.sick.run(*words, codes=(0, 1)).stdout)["findings"]
    (command,) = {each["next"] for each in found if each["verdict"] == verdict}
    return str(command).replace("HOST:PORT", healthy.sick.cluster.brokers[1].address)


def pasted(command: str) -> str:
    """Run a command as it was printed; it must not fail."""
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout
