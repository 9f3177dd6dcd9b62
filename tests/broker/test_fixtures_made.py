"""The archives of ``tests/disks`` can be made anew, and a real broker does to its disks what their manifests say."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.machine import ROOT
from tools.real_broker.client import until
from tools.real_broker.cluster import Cluster
from tools.real_broker.fixtures.archive import unpack
from tools.real_broker.fixtures.command import OPTIONS, write
from tools.real_broker.fixtures.story import Story

pytestmark = pytest.mark.broker

DISKS = ROOT / "tests" / "disks"
NAMED_ANEW = ("cluster_id", "topic_id")


def without_ids(value: Any) -> Any:
    """A manifest without what each run names anew."""
    if isinstance(value, dict):
        return {key: without_ids(each) for key, each in value.items() if key not in NAMED_ANEW}
    return sorted(map(without_ids, value), key=repr) if isinstance(value, list) else value


def directories(folder: Path) -> Counter[tuple[str, str]]:
    """Broker and name of each directory on its disks; what Kafka draws by batch is left out."""
    return Counter(
        (path.parts[-3], re.sub(r"\.[0-9a-f]{32}-", ".-", path.name))
        for path in folder.glob("broker-*/disk*/*")
        if path.is_dir()
    )


def strays(disks: list[Path]) -> Counter[str]:
    """The partitions that a broker has set aside."""
    return Counter(path.name.rpartition(".")[0] for disk in disks for path in disk.glob("*-stray"))


def test_made_anew_they_are_the_same_and_the_broker_makes_stray_what_they_say(
    start_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = start_cluster("3.9", mode="kraft", **OPTIONS)
    story = Story(cluster)
    story.tell()
    made = write("3.9-kraft", story, tmp_path / "made")

    committed = json.loads((DISKS / "3.9-kraft.json").read_text(encoding="utf-8"))
    assert without_ids(made) == without_ids(committed)
    for where in (DISKS, tmp_path / "made"):
        unpack(where / "3.9-kraft.tar.xz", tmp_path / "unpacked" / where.name)
    assert directories(tmp_path / "unpacked" / "made") == directories(tmp_path / "unpacked" / "disks")

    before = strays(cluster.brokers[2].log_dirs)
    planted = Counter(f"{each.topic}-{each.partition}" for each in story.planted if each.at_start == "renamed_to_stray")
    assert planted
    cluster.start()
    until("broker 2 sets aside what the manifest says", lambda: strays(cluster.brokers[2].log_dirs) == before + planted)
    cluster.client.wait_until_in_sync("late")
    assert strays(cluster.brokers[2].log_dirs) == before + planted
    assert not strays([*cluster.brokers[1].log_dirs, *cluster.brokers[3].log_dirs])
