"""Which brokers a log dir can belong to, and what they do with a directory given the metadata."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.cli.frame import PathInLogDir, log_dir_of_path
from reconciler.cli.pages.at_start import BROKERS, possible_brokers
from reconciler.desired import DesiredState, MetadataIdentity, Mode
from reconciler.sources import load
from tests.reconciler.cli.conftest import make_log_dir


def names(home: PathInLogDir | None, states: list[DesiredState]) -> list[str]:
    return [f"{each.release.major}.{each.release.minor} {each.mode}" for each in possible_brokers(home, states)]


def of_metadata(cluster, **said: object) -> list[DesiredState]:
    """The metadata of the small cluster, as another source would have them."""
    (state,) = load(cluster.metadata)
    return [replace(state, identity=replace(MetadataIdentity("kraft", "here"), **said))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("version=0\nbroker.id=1\n", ["2.8 ZooKeeper", "3.5 ZooKeeper", "3.9 ZooKeeper"]),
        ("version=0\nbroker.id=1\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n", ["3.9 ZooKeeper"]),
        ("version=1\nnode.id=1\ncluster.id=a\n", ["3.5 KRaft", "3.9 KRaft", "4.3 KRaft"]),
        ("version=1\nnode.id=1\ncluster.id=a\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n", ["3.9 KRaft", "4.3 KRaft"]),
    ],
)
def test_meta_properties_tells_the_mode_and_whether_the_broker_is_late(
    tmp_path: Path, properties: str, expected: list[str]
) -> None:
    log_dir = make_log_dir(tmp_path / "disk", 1, {})
    (log_dir / "meta.properties").write_text(properties)
    assert names(log_dir_of_path(str(log_dir)), []) == expected


def test_the_metadata_of_a_kraft_cluster_tell_the_release(cluster) -> None:
    home = log_dir_of_path(str(cluster.log_dir(1)))
    assert names(home, of_metadata(cluster, metadata_version=30)) == ["4.3 KRaft"]
    assert names(home, of_metadata(cluster, metadata_version=19)) == ["3.7 KRaft"]


def test_where_nothing_tells_more_every_answer_is_given(cluster) -> None:
    assert len(names(None, [])) == len(BROKERS)
    assert {each.mode for each in possible_brokers(None, of_metadata(cluster, source="zookeeper"))} == {Mode.ZOOKEEPER}
