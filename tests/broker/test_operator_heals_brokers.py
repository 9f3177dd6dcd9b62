"""The operator who knows nothing, before a real broker: what README says first, then only what was printed.

The broker was down while one of its topics was created anew, another was deleted and a third was given away. It is
healed from there, and once more after somebody has tried to cure it by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.cure_bench import SICK, STALE, SickBroker
from tests.operator_loop.operator_loop import Operator
from tools.real_broker.cluster import Cluster

pytestmark = pytest.mark.broker

FETCHED_ANEW = re.compile(r"NO_ID .*/again-\d: ")
"""Release 2.8 writes no topic ID beside a replica that it only follows."""

SERVED_ALONE = ("again", "orders")


class RealPatient:
    """A broker with stale replicas, as the operator finds it."""

    given = (0, 1)

    def __init__(self, sick: SickBroker, source: str) -> None:
        self.sick = sick
        self.source = self.first_source = source
        self.disks = sick.disks
        self.wanted = sorted({name for name in sick.replicas() if name not in STALE} | {"again-0", "again-1"})

    def learn(self) -> None:
        """Every disk is named already."""

    def mount(self) -> bool:
        """Every disk is mounted."""
        return False

    def start(self) -> None:
        """Start the broker; it must come up."""
        self.sick.start()


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
