"""Where nothing shows whose data a replica without topic ID holds, a plan that writes one says so, and the way on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.sources import parquet
from reconciler.verdicts import NOTHING_SHOWS
from tests.reconciler.cli.conftest import CLUSTER, ORDERS, Cluster

Run = Callable[..., Result]


def metadata(folder: Path, isr: list[int]) -> str:
    builder = DesiredBuilder()
    builder.partition("orders", str(ORDERS), 0, [1, 2], isr=isr, leader=2)
    folder.mkdir()
    parquet.save_state(
        builder.build(MetadataIdentity("kraft", "x", CLUSTER, timestamp_ms=time.time_ns() // 1_000_000)), str(folder)
    )
    return str(folder)


@pytest.fixture
def without_id(cluster: Cluster) -> str:
    """The only replica of ``orders`` on broker 1, without its file."""
    home = cluster.log_dir(1)
    (home / "orders-0" / "partition.metadata").unlink()
    for file in (home / "orders-1").iterdir():
        file.unlink()
    (home / "orders-1").rmdir()
    return str(home)


@pytest.mark.parametrize("verb", ["plan", "repair"])
def test_a_plan_says_that_nothing_shows_it_and_names_the_way_that_needs_no_such_line(
    without_id: str, run: Run, tmp_path: Path, verb: str
) -> None:
    source = metadata(tmp_path / "behind", [2])
    result = run(verb, without_id, "--metadata", source, "-o", tmp_path / "p.json")
    assert result.exit_code == 1, result.output
    (action,) = json.loads((tmp_path / "p.json").read_text())["actions"]
    assert NOTHING_SHOWS in str(action)
    assert "first: 1 topic ID is written over data of which nothing shows" in result.stderr
    assert "--refetch TOPIC has such a replica fetched anew" in result.stderr


@pytest.mark.parametrize("verb", ["plan", "repair"])
def test_nothing_is_said_where_the_metadata_counts_the_replica_as_in_sync(
    without_id: str, run: Run, tmp_path: Path, verb: str
) -> None:
    source = metadata(tmp_path / "in sync", [1, 2])
    result = run(verb, without_id, "--metadata", source, "-o", tmp_path / "p.json")
    (action,) = json.loads((tmp_path / "p.json").read_text())["actions"]
    assert (NOTHING_SHOWS in str(action), "first: " in result.stderr) == (False, False)
